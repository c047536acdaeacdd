"""Widgets of the Compare page: kind of comparison; second sentence, checkpoint, branch or change, and its opening.

The main slot stores the second run's difference, as query parameters. Before a choice, a message tells what to do. In
the comparison of a changed run with its control the main slot has the changed run, on the right; otherwise it is on
the left.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import partial
from typing import Final

from glassformer.extensions.what_if import comparison, head_effect_jobs
from glassformer.extensions.what_if.comparison import Compared, Pair
from glassformer.extensions.what_if.interventions import Skip, ZeroHead
from glassformer.frame.source_box import glossed
from glassformer.runs import loading, sources
from glassformer.runs.map_axes import KIND_NAMES
from glassformer.runs.measurement_jobs import begins_by_itself
from glassformer.runs.open_run import OpenRun, open_run
from glassformer.runs.run_address import RunUrl
from glassformer.runs.viewed_run import own_choice
from glassformer.server.model_runner import BusyError
from glassformer.shared import controls, drawing, menu, page_style
from glassformer.shared.controls import ControlBinding
from glassformer.shared.i18n import st
from glassformer.shared.page_blocks import page_blocks
from glassformer.state import session
from glassformer.state.fields import Branch
from glassformer.state.link import STEP, Link, read_nested, without, write_nested
from glassformer.state.view import MAIN, SECOND
from transformer.checkpoint.listing import Entry
from transformer.checkpoint.load import Checkpoint
from transformer.checkpoint.snapshots import at_step
from transformer.errors import GlassformerError, UnansweredError
from transformer.i18n import Sentence, say
from transformer.model.anatomy import anatomy
from transformer.runs.interventions import Intervention
from transformer.runs.interventions.targets import STACKS
from transformer.runs.query import Query

COMPARED: Final[dict[Compared, str]] = {
    "changed": say("Control and changed"),
    "sentences": say("Two sentences"),
    "checkpoints": say("Two checkpoints"),
    "branches": say("Two branches"),
    "heads": say("Two heads"),
}
WAYS: Final = say("Two ways to run")
CHOICE: Final = "compared"
SENTENCE: Final = f"{SECOND}compared_sentence"
EXAMPLE: Final = f"{SECOND}compared_example"
PROPOSAL: Final = "compared_proposal"
PROPOSED: Final = "compared_proposed"  # in the session: a query, its proposal and what is said of that
ONE_HEAD: Final = say(
    "Nothing has been changed in this run yet. As a suggestion, the run on the right leaves out one head."
)
HEAD_THAT_MATTERS: Final = say(
    "Nothing has been changed in this run yet. As a suggestion, the run on the right leaves out the head "
    "that matters most for this output."
)
ONE_LAYER: Final = say(
    "Nothing has been changed in this run yet. As a suggestion, the run on the right skips one layer, which changes "
    "the output."
)
MOST_EXAMPLES: Final = 3
CHECKPOINT: Final = f"{SECOND}compared_checkpoint"
BRANCH: Final = f"{SECOND}compared_branch"
NONE: Final = "none"  # no branch was chosen
OWN: Final = ""  # no piece is forced


def differs_in() -> dict[str, str]:
    """The second run's difference, by query parameters."""
    return read_nested(session.standing(MAIN).beside) or {}


def differ(**changes: str | None) -> None:
    """Callback: change the difference, by query parameters; None removes one."""
    session.stand(MAIN, beside=comparison.with_said(session.standing(MAIN).beside, **changes), notes=())


def address_of(value: str | int | None) -> str:
    """An attention, a layer or a head as in a URL."""
    return "" if value is None else value if isinstance(value, str) else str(value + 1)


def row(compared: Compared) -> None:
    """Draw the choice of what is compared."""
    options = {**COMPARED, "ways": WAYS} if compared == "ways" else COMPARED
    with st.container(key=f"compared-{page_style.BAR}"):
        controls.choose(ControlBinding(CHOICE, compared, _take), say("What is compared"), options, bare=True)


def _take(compared: Compared) -> None:
    """Callback: change the comparison; for two heads both are the selected one at first."""
    beside = ""
    if compared == "heads":
        view = session.view()
        said = {"kind": view.kind, "layer": view.layer, "head": view.head}
        beside = write_nested({name: address_of(value) for name, value in said.items()})
    session.stand(MAIN, beside=beside, notes=())
    session.replace(MAIN, compared="auto" if compared == "changed" else compared)
    session.move_to(SECOND, session.view().step)


def chosen(main: OpenRun, compared: Compared) -> Checkpoint | None:
    """Draw the choice of the second run; a changed one is chosen by `proposed` instead.

    Returns its checkpoint; None with a message if there is no second run yet.
    """
    if compared in ("heads", "ways"):  # both sides show one run, or one checkpoint
        return main.checkpoint
    draw: dict[Compared, Callable[[OpenRun], Checkpoint | None]]
    draw = {"sentences": _sentence, "checkpoints": _checkpoint, "branches": _branch}
    return draw[compared](main)


# ------------------------------------------------------------------------------------------------ control and changed


def proposed(main: OpenRun) -> ZeroHead | Skip:
    """Say that nothing was changed yet, and propose a change, which the right run has.

    It takes the selected head away; without one, what `_telling` finds, and then that stays.
    """
    view, query = main.view, main.trace.query
    change: ZeroHead | Skip
    if view.layer is not None and view.head is not None:
        change, said = ZeroHead(view.kind, view.layer, view.head), ONE_HEAD
    else:
        kept = st.session_state.get(PROPOSED)
        if kept is None or kept[0] != query:
            kept = st.session_state[PROPOSED] = query, *_telling(main)
        _, change, said = kept
    layer = (change.layer or 0) + 1
    if isinstance(change, Skip):
        label = say("Skip layer {layer} ({stack})", layer=layer, stack=STACKS[change.stack])
    else:
        label = say(
            "Set head {head} of layer {layer} to zero ({kind})",
            head=change.head + 1,
            layer=layer,
            kind=KIND_NAMES[change.kind],
        )
    st.button(label, key=PROPOSAL, on_click=_make, args=(change,), icon=":material/science:", help=said)
    return change


def _telling(main: OpenRun) -> tuple[ZeroHead | Skip, Sentence]:
    """A change that changes the output, and what is said of it.

    It is the head that matters most, or the first of the last layer if that is not known at once. If the output stays
    without it, a layer goes instead, the one without which the output is most alike. A large model runs too long for
    that, and the head goes anyway.
    """
    trace, checkpoint = main.trace, main.checkpoint
    found = head_effect_jobs.found_now(checkpoint, trace)
    if found is None:
        change, said = ZeroHead(kind := trace.kinds[-1], trace.maps(kind).shape[0] - 1, 0), ONE_HEAD
    else:
        change, said = ZeroHead(*head_effect_jobs.matters_most(found)), HEAD_THAT_MATTERS
    if not trace.n_steps or not begins_by_itself(checkpoint) or _likeness(main, change):
        return change, said
    layers = [Skip(stack.name, n) for stack in anatomy(checkpoint.config).stacks for n in range(stack.n_layers)]
    likeness = {one: _likeness(main, one) for one in layers}
    layer = max(likeness, key=likeness.__getitem__)
    return (layer, ONE_LAYER) if likeness[layer] else (change, said)


def _likeness(main: OpenRun, change: Intervention) -> float:
    """How much of the output stays with a change, from 0 to 1; 0 if all of it does, or the change cannot be made."""
    query, before = main.trace.query, main.trace.tgt_ids
    most = min(query.max_new, 2 * len(before))  # what never ends is not worth the wait
    try:
        changed = replace(query, interventions=(change,), hypothesis=0, max_new=most)
        after = loading.runner().trace(main.checkpoint, changed).tgt_ids
    except (GlassformerError, BusyError):
        return 0.0
    return 0.0 if after == before else SequenceMatcher(None, before, after).ratio()


def _make(change: Intervention) -> None:
    session.stand(MAIN, interventions=(change,), hypothesis=0, beside="", notes=())
    session.replace(MAIN, compared="auto")
    session.move_to(SECOND, session.view().step)


# ------------------------------------------------------------------------------------------------ two sentences


def _sentence(main: OpenRun) -> Checkpoint | None:
    asked = differs_in().get("src", "")
    if st.session_state.get(SENTENCE) != asked:
        st.session_state[SENTENCE] = asked
    st.text_input(
        say("The other sentence"),
        key=SENTENCE,
        on_change=lambda: differ(src=st.session_state[SENTENCE] or None),
        placeholder=say("The other sentence"),
        label_visibility="collapsed",
    )
    if asked.strip():
        return main.checkpoint
    st.info(say("Type another sentence above, or pick one below."), icon=":material/keyboard:")
    card = main.checkpoint.card
    others = [example for example in card.tried() if example != main.trace.query.source]
    for place, example in enumerate(others[:MOST_EXAMPLES]):
        shown = drawing.plain(glossed(example, card.glosses.get(example, "")))
        st.button(shown, key=f"{EXAMPLE}_{place}", type="tertiary", on_click=partial(differ, src=example))
    return None


# ------------------------------------------------------------------------------------------------ two checkpoints


def _checkpoint(main: OpenRun) -> Checkpoint | None:
    """Draw the choice of a second checkpoint; returns it, None before a choice."""
    asked, own = differs_in().get("model", ""), main.link.model
    there = {name: entry for name, entry in loading.choosable(asked).items() if sources.has_model(entry)}
    others = {name: entry for name, entry in there.items() if name != own or loading.moments(entry)[0]}
    labels = {name: _labelled(entry) for name, entry in others.items()}
    snapshot = None if asked in there else loading.found(asked)
    chosen = others.get(asked) if snapshot is None else loading.whole(asked)
    kept = ControlBinding(CHECKPOINT, "" if chosen is None else chosen.name, partial(_other, own))
    controls.menu(kept, say("The other checkpoint"), {"": say("Choose another checkpoint"), **labels}, bare=True)
    if asked and chosen is None:
        drawing.notes([say("There is no other checkpoint named “{name}”.", name=asked[:60])])
    if chosen is not None:
        for blocks in page_blocks():
            blocks.under_choice(asked, slot=SECOND, take=_other_moment)
        return _open(snapshot or chosen)
    st.info(
        say("Choose a second checkpoint above. The same sentence then runs through both checkpoints."),
        icon=":material/compare_arrows:",
    )
    return None


def _labelled(entry: Entry) -> str:
    if sources.changes(entry.name):
        return entry.title
    return say("{title} ({name})", title=entry.title or entry.name, name=entry.name)


def _other(own: str, name: str) -> None:
    """Callback: another checkpoint; for the same one its last snapshot."""
    entry = loading.whole(own) if name == own else None
    if entry is not None:
        name = at_step(own, loading.moments(entry)[0][-1].step)
    _other_moment(name)


def _other_moment(name: str) -> None:
    differ(model=name or None, rev=None, answers=None)


def _open(entry: Entry) -> Checkpoint | None:
    """Open the second checkpoint; if that fails, or needs answers first, show a message."""
    try:
        source = sources.opens(entry)
        return loading.open_checkpoint(entry) if source is None else source.open(entry)
    except UnansweredError:
        said = say("“{name}” cannot be opened until you answer some questions about the model.", name=entry.title)
        st.info(drawing.with_code(said), icon=":material/quiz:")
        there = replace(session.asked(), model=entry.name, revision="", beside="")
        menu.link("open", say("Answer the questions"), there, icon=":material/quiz:", at=sources.QUESTIONS)
    except (GlassformerError, OSError) as error:
        why = error.sentence if isinstance(error, GlassformerError) else say("The checkpoint's folder cannot be read.")
        said = say("{name} cannot be opened. {why} Choose another checkpoint.", name=entry.name, why=why)
        st.error(drawing.with_code(said))
    return None


# ------------------------------------------------------------------------------------------------ two branches


def _branch(main: OpenRun) -> Checkpoint | None:
    """Draw the choice of another branch; returns its checkpoint, None before a choice."""
    if not main.trace.n_steps:
        st.info(say("This model does not generate output, so there are no branches."), icon=":material/info:")
        return None
    asked = differs_in().get("forced", NONE)
    options = _branches(main, asked)
    kept = ControlBinding(BRANCH, asked, lambda chosen: differ(forced=None if chosen == NONE else chosen, result=None))
    controls.menu(kept, say("The other branch"), options, bare=True)
    if NONE not in options:
        return main.checkpoint
    said = say(
        "Choose a branch above, or click a candidate below. From that token on, the run on the right continues "
        "differently."
    )
    st.info(said, icon=":material/call_split:")
    return None


def _branches(main: OpenRun, asked: str) -> dict[str, str]:
    """The options: the model's own choice, every branch but the first run's, and none before a choice."""
    here = main.trace.query.forced
    known = [_written(branch) for branch in session.tried_on(MAIN, own_choice(main.trace.query)) if branch != here]
    branches = {text: branch for text in (*known, asked) if (branch := _read_branch(text, main)) is not None}
    found: dict[str, str] = {OWN: say("Model's own choice")} if here else {}
    piece = main.trace.vocabulary
    found |= {text: say("Step {n}: {piece}", n=len(one), piece=piece[one[-1]]) for text, one in branches.items()}
    return found if asked in found else {NONE: say("Choose a branch"), **found}


def _written(branch: Branch) -> str:
    return ".".join(map(str, branch))


def _read_branch(text: str, main: OpenRun) -> Branch | None:
    """A branch from the URL; None if it is invalid."""
    if not text or not all(part.isascii() and part.isdigit() and len(part) < 8 for part in text.split(".")):
        return None
    branch = tuple(map(int, text.split(".")))
    return branch if max(branch) < len(main.trace.vocabulary) else None


def branch_off(base: Query, branch: Branch) -> None:
    """Callback: set the second run's branch; it does not hold the run, because sessions keep callbacks."""
    session.remember(MAIN, base, branch)
    session.stand(MAIN, notes=())
    differ(forced=_written(branch), result=None)


def beside(main: OpenRun, compared: Compared) -> Pair[OpenRun] | None:
    """Open the second run, and draw its notes; None with a message if there is none."""
    if stands_right(compared):
        control = _second(main.checkpoint, comparison.control_of(replace(main.link, view=main.view)), main, ())
        return None if control is None else Pair(compared, control, main)
    if compared == "changed":
        change = proposed(main)
        changed = replace(main.link, view=main.view, interventions=(change,), hypothesis=0, beside="")
        run = _second(main.checkpoint, changed, main, ())
        return None if run is None else Pair(compared, main, run)
    checkpoint = chosen(main, compared)
    if checkpoint is None:
        return None
    second, notes = comparison.second_of(replace(main.link, view=main.view))
    run = _second(checkpoint, second, main, notes)
    return None if run is None else Pair(compared, main, run)


def stands_right(compared: Compared) -> bool:
    """Whether the main slot's run is on the right: a changed run with its control on the left."""
    return compared == "changed" and bool(session.asked().interventions)


def _second(checkpoint: Checkpoint, link: Link, main: OpenRun, notes: tuple[str, ...]) -> OpenRun | None:
    """Open a run in the second slot, at the step of the first."""
    own = link.view.step if STEP in differs_in() else session.view(SECOND).step
    session.stand(MAIN, beside=without(session.standing(MAIN).beside, STEP))
    n_own = _n_steps(checkpoint, link)
    step = step_beside(main.view.step, main.trace.n_steps, own, n_own)
    if session.view(SECOND).step != step:
        session.move_to(SECOND, step)
    link = replace(link, view=replace(link.view, step=step))
    session.stand(SECOND, view=link.view, interventions=(), notes=notes)
    st.session_state[f"{SECOND}{session.MODEL}"] = checkpoint.name  # which saved files say they are of
    return open_run(checkpoint, slot=SECOND, link=link)


def step_beside(step: int, n_steps: int, own: int, n_own: int) -> int:
    """The step, from 0, of a second run of `n_own` steps, last at `own`, when the first of `n_steps` is at `step`."""
    ahead = step == n_steps - 1 and own > step  # past the end of the first
    return max(min(own if ahead else step, n_own - 1), 0)


def _n_steps(checkpoint: Checkpoint, link: Link) -> int:
    """The number of a run's steps; 0 if it fails, which is reported when it is opened."""
    most = min(link.max_new, checkpoint.config.max_len)
    try:
        query = replace(link, max_new=most).query(checkpoint.content_hash)
        return loading.runner().trace(checkpoint, query).n_steps
    except (GlassformerError, BusyError):
        return 0


@dataclass(frozen=True)
class ShownPair:
    """The URL of two runs, without the runs."""

    main: RunUrl
    n_steps: int  # of the main slot's run
    n_second: int  # of the second one; 0 if there is none

    def publish(self, step: int = 0, *, carries: bool = True) -> None:
        """Publish the URL for the session's steps: of the main slot's run, and the other's difference."""
        step, own, beside = session.view(MAIN).step, session.view(SECOND).step, session.standing(MAIN).beside
        if self.n_second:
            ahead = step == self.n_steps - 1 and step < own < self.n_second
            beside = comparison.with_said(beside, step=str(own + 1) if ahead else None)
        replace(self.main, link=replace(self.main.link, beside=beside)).publish(step, carries=carries)


def shown(main: OpenRun, pair: Pair[OpenRun] | None) -> ShownPair:
    """The same for what comes later and must not hold the runs."""
    return ShownPair(main.shown(), main.trace.n_steps, pair.second.trace.n_steps if pair else 0)
