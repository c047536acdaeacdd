"""What each snapshot writes for a sentence, as a table with its losses and with the pieces that are right."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from html import escape
from itertools import groupby
from typing import Final

from glassformer.extensions.snapshots.growing import name_here
from glassformer.extensions.snapshots.grown import AtSnapshot, Growth
from glassformer.runs.attempt import attempt
from glassformer.runs.open_run import address
from glassformer.shared import drawing, menu
from glassformer.shared.door import frame, here, st
from glassformer.state import session
from transformer.checkpoint.load import Checkpoint
from transformer.checkpoint.snapshots import Moment, at_step
from transformer.i18n import say, say_n
from transformer.runs.targets import read_given

MOST_PIECES: Final = 40  # of an output that are shown
MANY_ALIKE: Final = 4  # pieces in a row
CSV: Final = "training_outputs_csv"
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
    by_reader: bool  # whether the reader gave it; else it is what the finished checkpoint writes


def right_of(found: Growth) -> Right:
    """The right output that the reader gave, else what the finished checkpoint writes."""
    run, given = found.run, session.reference_of(found.run.link.source)
    read = attempt(lambda: read_given(run.checkpoint, run.trace.query, given)) if given else None
    return Right(found.finished.trace.tgt_ids if read is None else read.ids, by_reader=read is not None)


def matching(written: Sequence[int], right: Sequence[int]) -> list[bool]:
    """Which pieces of an output are also in the right one, in that order."""
    found = [False] * len(written)
    for block in SequenceMatcher(None, written, right, autojunk=False).get_matching_blocks():
        found[block.a : block.a + block.size] = [True] * block.size
    return found


def draw(found: Growth, verdicts: Mapping[int, str]) -> None:
    """Draw the table; the doctor's verdicts are by the step of a snapshot."""
    right, checkpoint = right_of(found), found.run.checkpoint
    head = [say("Training step"), say("Dev loss"), say("Loss here"), say("Right"), say("Output")]
    head += [say("Doctor")] * bool(verdicts)
    rows = [
        _row(moment, one, right, _link(checkpoint, moment), verdicts, moment.step == found.chosen)
        for moment, one in zip(found.moments, found.found, strict=True)
    ]
    heads = "".join(f"<th{_wide(place)}>{escape(here(name))}</th>" for place, name in enumerate(head))
    body = f"<thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody>"
    st.html(f'{_RULES}<table class="gf-grown gf-at-step">{body}</table>')
    st.caption(_how_to_read(right))
    _save(found, right)


def _how_to_read(right: Right) -> str:
    if right.by_reader:
        return say(
            "Filled pieces are also in the correct output that you gave, in the same order. “Loss here” is the mean "
            "loss of the finished checkpoint's output, in nats per piece. A step opens its snapshot."
        )
    return say(
        "Filled pieces are also in the finished checkpoint's output, in the same order. “Loss here” is the mean loss "
        "of that output, in nats per piece. A step opens its snapshot."
    )


def _link(checkpoint: Checkpoint, moment: Moment) -> str:
    name = at_step(name_here(), moment.step)
    there = replace(address(checkpoint, session.asked()), model=name, revision="")
    return menu.href("training", there)


def _wide(place: int) -> str:
    """A telephone has no room for the dev loss, which the curves have."""
    return ' class="gf-wide"' if place == 1 else ""


def _row(
    moment: Moment, one: AtSnapshot | None, right: Right, link: str, verdicts: Mapping[int, str], is_chosen: bool
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
    inner = "".join(
        f'<td class="gf-said">{cell}</td>' if place == 4 else f"<td{_wide(place)}>{cell}</td>"
        for place, cell in enumerate(cells)
    )
    return f"<tr aria-current='true'>{inner}</tr>" if is_chosen else f"<tr>{inner}</tr>"


def _pieces(one: AtSnapshot, flags: Sequence[bool]) -> str:
    """The pieces, of which many alike in a row stand as one, with their number."""
    shown = list[str]()
    for (piece, good), alike in groupby(zip(one.pieces[:MOST_PIECES], flags, strict=False)):
        mark, count = "b" if good else "i", len(list(alike))
        chip = f"<{mark}>{escape(piece)}</{mark}>"
        shown += [chip] * count if count < MANY_ALIKE else [f"{chip}×{count} "]
    more = len(one.pieces) - MOST_PIECES
    if more > 0:
        shown.append(escape(here(say_n("and {n} more piece", "and {n} more pieces", more))))
    return "".join(shown)


def _save(found: Growth, right: Right) -> None:
    rows = [
        [moment.step, moment.dev_loss, one.loss, sum(matching(one.ids, right.ids)), " ".join(one.pieces)]
        for moment, one in found.known()
    ]
    columns: list[str] = [say("Training step"), say("Dev loss"), say("Loss here"), say("Right"), say("Output")]
    drawing.csv_button(frame(rows, columns=columns), key=found.run.key(CSV), title=say("outputs over training"))
