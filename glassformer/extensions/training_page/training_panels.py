"""Parts "Curves" and "Your sentence" of the Training page: outputs by snapshot, doctor's verdicts as a job, CSV."""

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import partial
from html import escape
from itertools import groupby
from typing import Final

from glassformer.extensions.snapshots.snapshot_run_jobs import growing, name_here, progress, snapshot_of
from glassformer.extensions.snapshots.snapshot_runs import AtSnapshot, Growth, has_snapshots
from glassformer.extensions.snapshots.snapshot_slider import NO_SNAPSHOTS, move_to, whole_page_if_moved
from glassformer.extensions.training_page import training_pictures
from glassformer.extensions.training_page.training_pictures import TRAINING, Curves, TrainingLook
from glassformer.frame.decoding import hidden_while_guessing
from glassformer.frame.sentence_stepper import Still, sentence
from glassformer.runs import loading
from glassformer.runs.error_boundary import Examiner, attempt, examiner
from glassformer.runs.map_axes import KIND_NAMES
from glassformer.runs.measurement_jobs import LOOK_SECONDS, studies
from glassformer.runs.open_run import OpenRun, open_run
from glassformer.runs.run_address import address, publish
from glassformer.runs.show import choose_part, show, show_beside
from glassformer.server.jobs import Job, JobStatus
from glassformer.shared import controls, cover_box, drawing, menu
from glassformer.shared.i18n import frame, here, st
from glassformer.state import session
from glassformer.state.view import MAIN
from transformer.checkpoint.load import Checkpoint
from transformer.checkpoint.snapshots import SnapshotInfo, at_step
from transformer.errors import CheckpointError, GlassformerError
from transformer.i18n import Sentence, joined, say, say_n
from transformer.model.anatomy import anatomy
from transformer.runs.inputs import read_given

_LINE = 84  # characters


@st.fragment
def draw(checkpoint: Checkpoint) -> None:
    """Draw the row of parts and the chosen one; a click runs this again, alone, unless it chose another model."""
    whole_page_if_moved()
    TRAINING.listed()[session.view().of(TrainingLook).training_panel].draw(checkpoint)


def curves(checkpoint: Checkpoint) -> None:
    """Draw the part "Curves"."""
    scene = _scene(checkpoint)
    with controls.bar(MAIN):
        choose_part(TRAINING, MAIN)
        if isinstance(scene, Curves) and scene.moments:
            _axis(scene)
    drawing.notes(session.take_notes())
    cover_box.part(partial(_curves, checkpoint, scene))
    publish(checkpoint)


def _scene(checkpoint: Checkpoint) -> Curves | CheckpointError | None:
    try:
        return training_pictures.curves(checkpoint, session.view())
    except CheckpointError as error:
        return error


def _axis(scene: Curves) -> None:
    kept = controls.field(MAIN, "by_step")
    named = {True: say("By step"), False: say("By epoch")}
    controls.choose(
        controls.ControlBinding(kept.key, scene.by_step, kept.take), say("Horizontal axis"), named, bare=True
    )


def _curves(checkpoint: Checkpoint, scene: Curves | CheckpointError | None) -> None:
    """Draw how a checkpoint was trained, as far as its folder says."""
    if isinstance(scene, CheckpointError):
        st.warning(drawing.with_code(scene.sentence), icon=":material/warning:")
    elif scene is None:
        st.caption(say("This folder has no training.csv, so there is no learning curve to show."))
    else:
        drawing.notes(scene.curve.notes)
        show_beside(training_pictures.losses, training_pictures.scores, scene, take=move_to)
        show(training_pictures.rates, scene, take=move_to)
    command = checkpoint.card.training.get("command")
    if isinstance(command, str) and command:
        st.caption(say("The command that trained this checkpoint:"))
        st.code(in_lines(command), language="shell")


def in_lines(command: str) -> str:
    """A long command on several lines that a shell takes as one, each new one begun by an option."""
    if any(sign in command for sign in "'\"\\\n"):
        return command  # quoted text must stay unchanged
    lines = [""]
    for option in re.split(r" (?=--)", command):
        fits = len(lines[-1]) + len(option) < _LINE
        lines = [*lines[:-1], f"{lines[-1]} {option}".strip()] if fits else [*lines, option]
    return " \\\n    ".join(filter(None, lines))


def your_sentence(checkpoint: Checkpoint) -> None:
    """Draw the part "Your sentence": what each snapshot makes of it."""
    with controls.bar(MAIN):
        choose_part(TRAINING, MAIN)
        kinds = {kind: KIND_NAMES[kind] for kind in anatomy(checkpoint.config).kinds}
        kind = controls.menu(controls.field(MAIN, "kind"), say("Attention"), kinds, bare=True, width=160)
    run = open_run(checkpoint, kind=kind)
    if run is None:
        return
    sentence(run, compact=True, still=Still())
    cover_box.part(partial(_over_training, run))
    run.publish()


def _over_training(run: OpenRun) -> None:
    if not has_snapshots(run.checkpoint):
        st.info(NO_SNAPSHOTS, icon=":material/info:")
        return
    if hidden_while_guessing(run.view.guess):
        return
    found = growing(run)
    if found is None:
        return
    progress(found)
    told = known_verdicts(run.checkpoint, found.moments)
    if run.trace.n_steps and not cover_box.stands_for(run.key("training_outputs")):
        draw_outputs(found, told.said() if told else {})
    show(training_pictures.entropies, found, take=_open_head)
    ask_the_doctor(run.checkpoint, found.moments, n_drawn=told.done if told else 0)


def _open_head(meant: Mapping[str, int]) -> None:
    """Callback: select a head of a snapshot."""
    session.replace(MAIN, layer=meant["layer"], head=meant["head"])
    move_to(meant["step"])


# ------------------------------------------------------------------------------------------------ what each writes


MOST_PIECES: Final = 40  # of an output that are shown
MANY_ALIKE: Final = 4  # pieces in a row
CSV: Final = "training_outputs_csv"
COLUMNS: Final = [say("Training step"), say("Dev loss"), say("Loss here"), say("Right"), say("Output")]
_RULES: Final = """
<style>
.gf-grown { border-collapse: collapse; font-size: 0.875rem; }
.gf-grown :is(th, td) {
  padding: 0.2rem 0.75rem 0.2rem 0; text-align: right; vertical-align: baseline; white-space: nowrap;
  border-bottom: 1px solid color-mix(in srgb, currentColor 15%, transparent);
}
.gf-grown :is(th, td):is(:last-child, .gf-said) { text-align: left; white-space: normal; }
.gf-grown th { font-weight: 400; opacity: 0.72; white-space: normal; vertical-align: bottom; }
.gf-grown [aria-current] td { background: color-mix(in srgb, currentColor 7%, transparent); }
.gf-grown a { color: inherit; }
.gf-grown :is(b, i) {
  display: inline-block; margin: 1px 2px 1px 0; padding: 0 0.3rem; border-radius: 0.25rem; font: inherit;
  font-family: monospace; white-space: pre; border: 1px dashed color-mix(in srgb, currentColor 35%, transparent);
}
.gf-grown b { border: 1px solid #D55E00; background: color-mix(in srgb, #D55E00 18%, transparent); }
@media (max-width: 640px) { .gf-grown .gf-wide { display: none; } }
</style>
"""


@dataclass(frozen=True)
class Right:
    """The output that snapshots are measured by."""

    ids: tuple[int, ...]
    by_reader: bool  # whether the user gave it; else it is the finished checkpoint's output


def right_of(found: Growth) -> Right:
    """The right output: the user's, else the finished checkpoint's."""
    run, given = found.run, session.reference_of(found.run.link.source)
    read = attempt(lambda: read_given(run.checkpoint, run.trace.query, given)) if given else None
    return Right(found.finished.trace.tgt_ids if read is None else read.ids, by_reader=read is not None)


def matching(written: Sequence[int], right: Sequence[int]) -> list[bool]:
    """Which pieces of an output are also in the right one, in that order."""
    found = [False] * len(written)
    for block in SequenceMatcher(None, written, right, autojunk=False).get_matching_blocks():
        found[block.a : block.a + block.size] = [True] * block.size
    return found


def draw_outputs(found: Growth, verdicts: Mapping[int, str]) -> None:
    """Draw the table; the doctor's verdicts are by the step of a snapshot."""
    right, checkpoint = right_of(found), found.run.checkpoint
    head = [*COLUMNS, *[say("Doctor")] * bool(verdicts)]
    rows = [
        _row(moment, one, right, _link(checkpoint, moment), verdicts, moment.step == found.chosen)
        for moment, one in zip(found.moments, found.found, strict=True)
    ]
    heads = _cells("th", [escape(here(name)) for name in head])
    body = f"<thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody>"
    st.html(f'{_RULES}<table class="gf-grown gf-at-step">{body}</table>')
    st.caption(_how_to_read(right))
    _save(found, right)


def _how_to_read(right: Right) -> str:
    if right.by_reader:
        return say(
            "Filled tokens are also in the correct output that you gave, in the same order. “Loss here” is the mean "
            "loss of the finished checkpoint's output, in nats per token. A step opens its snapshot."
        )
    return say(
        "Filled tokens are also in the finished checkpoint's output, in the same order. “Loss here” is the mean loss "
        "of that output, in nats per token. A step opens its snapshot."
    )


def _link(checkpoint: Checkpoint, moment: SnapshotInfo) -> str:
    name = at_step(name_here(), moment.step)
    there = replace(address(checkpoint, session.asked()), model=name, revision="")
    return menu.href("training", there)


def _cells(tag: str, cells: Sequence[str]) -> str:
    """A row; a phone hides the dev loss, which the curves have."""
    kinds = ("", "gf-wide", "", "", "gf-said", "")
    return "".join(f'<{tag} class="{kind}">{cell}</{tag}>' for kind, cell in zip(kinds, cells, strict=False))


def _row(
    moment: SnapshotInfo, one: AtSnapshot | None, right: Right, link: str, verdicts: Mapping[int, str], is_chosen: bool
) -> str:
    number, said, count = "", "…", ""
    if one is not None and one.problem is not None:
        said = escape(here(one.problem))
    elif one is not None:
        flags = matching(one.ids, right.ids)
        number = "" if one.loss is None else f"{one.loss:.2f}"
        said, count = _pieces(one, flags), here(say("{n} of {m}", n=sum(flags), m=len(right.ids)))
    dev = "" if moment.dev_loss is None else f"{moment.dev_loss:.2f}"
    step = f'<a href="{escape(link)}">{moment.step:,}</a>'
    cells = [step, dev, number, count, said, *[escape(here(verdicts.get(moment.step, "")))] * bool(verdicts)]
    return f"<tr{' aria-current=true' * is_chosen}>{_cells('td', cells)}</tr>"


def _pieces(one: AtSnapshot, flags: Sequence[bool]) -> str:
    """The pieces; a run of equal ones is shown once, with its count."""
    shown = list[str]()
    for (piece, good), alike in groupby(zip(one.pieces[:MOST_PIECES], flags, strict=False)):
        mark, count = "b" if good else "i", len(list(alike))
        chip = f"<{mark}>{escape(piece)}</{mark}>"
        shown += [chip] * count if count < MANY_ALIKE else [f"{chip}×{count} "]
    more = len(one.pieces) - MOST_PIECES
    if more > 0:
        shown.append(escape(here(say_n("and {n} more token", "and {n} more tokens", more))))
    return "".join(shown)


def _save(found: Growth, right: Right) -> None:
    rows = [
        [moment.step, moment.dev_loss, one.loss, sum(matching(one.ids, right.ids)), " ".join(one.pieces)]
        for moment, one in found.known()
    ]
    drawing.csv_button(frame(rows, columns=COLUMNS), key=found.run.key(CSV), title=say("outputs over training"))


# ------------------------------------------------------------------------------------------------ the doctor


@dataclass(frozen=True)
class Verdicts:
    """What was found so far: of each snapshot, by its step, how many tests say what."""

    whole: int  # how many snapshots there are
    counts: Mapping[int, tuple[int, int, int] | None]  # broken, worth a look, well; None if it cannot be opened

    @property
    def done(self) -> int:
        """Those that were examined."""
        return len(self.counts)

    @property
    def nbytes(self) -> int:
        """Memory, about."""
        return 200 * self.whole

    def said(self) -> dict[int, Sentence]:
        """A verdict by the step."""
        return {step: _verdict(counts) for step, counts in self.counts.items()}


def known_verdicts(checkpoint: Checkpoint, moments: Sequence[SnapshotInfo]) -> Verdicts | None:
    """The doctor's results so far; None if not requested."""
    seen = studies().look(_key_of(checkpoint, moments), loading.visitor())
    found: Verdicts | None = None if seen is None else seen.result or seen.so_far
    return found


def ask_the_doctor(checkpoint: Checkpoint, moments: Sequence[SnapshotInfo], *, n_drawn: int) -> None:
    """Draw the button that asks the doctor, or how far that is; the page is drawn again as more is known."""
    key, by = _key_of(checkpoint, moments), examiner()
    seen = studies().look(key, loading.visitor())
    if by is None or (seen is not None and seen.state == "done"):
        return
    if seen is not None and seen.is_under_way:
        st.fragment(_follow_doctor, run_every=LOOK_SECONDS)(key, n_drawn)
        return
    begin = partial(_begin, key, partial(_examine, by, name_here(), checkpoint, tuple(moments)))
    label = say("Ask the doctor about each snapshot")
    st.button(label, key="examine_snapshots", icon=":material/stethoscope:", on_click=begin)


def _begin(key: Hashable, work: partial[Verdicts]) -> None:
    attempt(lambda: studies().ask(key, work, visitor=loading.visitor()))


def _follow_doctor(key: Hashable, n_drawn: int) -> None:
    seen: JobStatus | None = studies().look(key, loading.visitor())
    found: Verdicts | None = None if seen is None else seen.so_far
    if seen is None or not seen.is_under_way or (found is not None and found.done > n_drawn):
        st.rerun()
        return
    done, whole = (found.done, found.whole) if found is not None else (0, 0)
    said = say("The doctor examines each snapshot: {done} of {whole}", done=done, whole=whole)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.progress(done / whole if whole else 0.0, text=said)
        stop = partial(studies().withdraw, key, loading.visitor())
        st.button(say("Stop"), key="stop_examining_snapshots", icon=":material/stop:", on_click=stop)


def _key_of(checkpoint: Checkpoint, moments: Sequence[SnapshotInfo]) -> Hashable:
    return "health", str(checkpoint.folder), tuple(moments)


def _examine(by: Examiner, name: str, checkpoint: Checkpoint, moments: Sequence[SnapshotInfo], job: Job) -> Verdicts:
    """The work of a job: one examination after the other, interleaved with those of other users."""
    found: dict[int, tuple[int, int, int] | None] = {}
    for moment in moments:
        job.tell(Verdicts(len(moments), dict(found)))
        job.pause()
        try:
            found[moment.step] = by.counts(snapshot_of(name, checkpoint, moment.step), job)
        except GlassformerError:
            found[moment.step] = None
    return Verdicts(len(moments), found)


def _verdict(counts: tuple[int, int, int] | None) -> Sentence:
    if counts is None:
        return say("could not be examined")
    broken, look, well = counts
    parts: list[Sentence] = [say_n("{n} test failed", "{n} tests failed", broken)] if broken else []
    parts += [say("{n} worth a look", n=look)] if look else []
    return joined(", ", [*parts, say("{n} well", n=well)])
