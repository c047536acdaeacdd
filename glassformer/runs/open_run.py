"""A slot's run (`OpenRun`) or given maps (`OpenMaps`), opened from its link; suggested sentences; stepper data.

What cannot be run is said, and the last that could be is shown.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final

import numpy as np

from glassformer.charts.theme import capitalised
from glassformer.components.stepper_view import SourceChip, StepperRun, TargetChip, settled_step
from glassformer.runs import loading, sources
from glassformer.runs.error_boundary import attempt
from glassformer.runs.map_axes import fit_aggregate, fit_given, fit_parts
from glassformer.runs.run_address import REVISION_LENGTH, RunUrl, address, publish
from glassformer.runs.viewed_run import Viewed, ViewedRun, VisibleMaps, VisibleTrace, fit_view, is_yours, own_choice
from glassformer.server.model_runner import BusyError
from glassformer.shared import drawing, menu
from glassformer.shared.i18n import st
from glassformer.shared.page_blocks import page_blocks
from glassformer.state import session
from glassformer.state.link import Link
from glassformer.state.session import SlotState
from glassformer.state.view import MAIN, Slot
from transformer.errors import GlassformerError, QueryError
from transformer.i18n import joined, say, say_n
from transformer.model.anatomy import anatomy
from transformer.runs.interventions import InterventionError
from transformer.runs.query import Query
from transformer.runs.trace import Kind, LabelledMaps, Trace
from transformer.text.tokenizer import AnyTokenizer, RawIds

if TYPE_CHECKING:
    from transformer.checkpoint.load import Checkpoint

SUGGESTED = "suggested"


@dataclass(frozen=True)
class OpenRun(ViewedRun):
    """The run that a page draws."""

    stepper: StepperRun  # the same for the stepper in the browser
    earlier: bool = False  # it is the last run that could be done, not what the session asks for

    @property
    def run_id(self) -> str:
        """Changes exactly when the run does."""
        return self.stepper.run_id

    def again(self) -> Callable[[], Trace]:
        """Gets the trace once more, for what a session keeps."""
        return partial(loading.trace_again, self.checkpoint.name, self.trace.query)

    def publish(self) -> None:
        """Write the address of what is shown."""
        self.shown().publish(self.view.step)

    def shown(self) -> RunUrl:
        """The same for what comes later and must not hold the run."""
        says = not self.earlier and self.slot == MAIN
        return RunUrl(self.checkpoint, replace(self.link, view=self.view), own_choice(self.trace.query), says=says)


def open_run(
    checkpoint: Checkpoint, *, kind: Kind | None = None, slot: Slot = MAIN, link: Link | None = None
) -> OpenRun | None:
    """Run what the session asks for in a slot, or the link of a comparison's second run; None if there is none.

    If that cannot be done, a sentence says why, and the last run that could be done is shown instead. `kind` is the
    attention that the chosen layer and head are of; None for the one that the view names. A model that does not have
    it shows its own.
    """
    told = link is None  # of a second run the page says what is changed
    asked, here = session.asked(slot), session.standing(slot)
    link, here = _fitted(checkpoint, asked if link is None else link, here)
    above = st.container()
    has_source = bool((link.source or "").strip())
    done = attempt(partial(_ran, checkpoint, link, here)) if has_source else None
    trace = None
    if done is not None:
        link, here, trace = done
        here = replace(here, last_query=trace.query, last_rows=trace.rows_note())
    elif slot == MAIN:  # the menu keeps the request, though it failed
        menu.carry(address(checkpoint, link))
    with above:
        for blocks in page_blocks() if told else ():
            blocks.above_run(checkpoint, link, slot)
    last = trace or (_last_trace(checkpoint, here) if has_source else None)
    if last is None:
        session.leave(slot, here)
        drawing.notes(here.notes)
        if not has_source:
            st.info(_ask_for_source(checkpoint), icon=":material/keyboard:")
            _suggest(checkpoint, slot)
        return None
    if trace is None:
        st.caption(say("The previous result is still shown below."))
    opened = attempt(partial(_opened, checkpoint, link, last, here, kind, slot))  # of a long run maps are computed now
    session.leave(slot, here if opened is None else replace(here, view=replace(here.view, step=opened.view.step)))
    if opened is not None and trace is not None:
        for source in sources.sources():
            source.ran(slot, link)
        return opened
    return opened if opened is None else replace(opened, earlier=True)


def _fitted(checkpoint: Checkpoint, link: Link, here: SlotState) -> tuple[Link, SlotState]:
    """The link for this version of this checkpoint, with changes that it allows, else with none; says what is not."""
    revision = checkpoint.content_hash[:REVISION_LENGTH]
    if link.revision and link.revision != revision and not sources.changes(link.model):
        note = say(
            "This link was made with a different version of {name}, so what it shows may have changed.",
            name=checkpoint.name,
        )
        here = here.noting(note)
    link = replace(link, revision=revision, max_new=min(link.max_new, checkpoint.config.max_len))
    here = replace(here, revision=revision)
    try:
        for change in link.interventions:
            change.check(checkpoint.config)
    except QueryError as error:
        return _unchanged(link, here, error)
    return link, here


def _ran(checkpoint: Checkpoint, link: Link, here: SlotState) -> tuple[Link, SlotState, Trace]:
    """Run a link; if its changes, its forced pieces or its place among the results are refused, without them."""
    try:
        return link, here, loading.run(checkpoint, link.query(checkpoint.content_hash))
    except InterventionError as error:
        return _ran(checkpoint, *_unchanged(link, here, error))
    except QueryError as error:
        if not link.forced and not link.hypothesis:
            raise
        note = joined(" ", [capitalised(error.sentence), say("The model's own choice is shown instead.")])
        here = here.at_another(link.view.step).noting(note)
        return _ran(checkpoint, replace(link, forced=(), hypothesis=0), here)


def _unchanged(link: Link, here: SlotState, error: QueryError) -> tuple[Link, SlotState]:
    note = joined(" ", [capitalised(error.sentence), say("The unchanged run is shown instead.")])
    return replace(link, interventions=()), replace(here.noting(note), interventions=())


def seen(
    checkpoint: Checkpoint, link: Link, trace: Trace, *, kind: Kind | None = None, slot: Slot = MAIN
) -> tuple[ViewedRun, tuple[str, ...]]:
    """What a link looks at of a run, and a note for each thing that is not there; `kind` as for `open_run`."""
    view, missing = fit_parts(link.view, anatomy(checkpoint.config))
    view, instead = fit_aggregate(view, checkpoint.config)
    view, moved = fit_view(view, trace, kind=kind or view.kind)
    visible = VisibleTrace(trace, view, slot=slot, by_layer=partial(loading.by_layer, checkpoint, trace))
    return ViewedRun(visible, checkpoint, link, loading), (*missing, *instead, *moved)


def _opened(
    checkpoint: Checkpoint, link: Link, trace: Trace, here: SlotState, kind: Kind | None, slot: Slot
) -> OpenRun:
    run, told = seen(checkpoint, link, trace, kind=kind, slot=slot)
    drawing.notes((*here.notes, *told, *trace.notes))
    visible, run_id = run.visible, f"{checkpoint.content_hash[:REVISION_LENGTH]} {trace.query.to_json()}"
    of_source = (kind or run.view.kind) in ("cross", visible.kind)  # another attention's head says nothing of it
    bare = visible if of_source else replace(visible, view=replace(run.view, layer=None, head=None))
    stepper = _kept_stepper(bare, checkpoint, run_id)
    step = settled_step(stepper, key=f"{slot}{session.STEPPER}", step=run.view.step, step_revision=here.step_revision)
    visible = replace(visible, view=replace(run.view, step=step), revealed=here.revealed == (run_id, step))
    return OpenRun(visible, checkpoint, link, loading, stepper)


def _last_trace(checkpoint: Checkpoint, here: SlotState) -> Trace | None:
    query = here.last_query
    if query is None or query.checkpoint != checkpoint.content_hash:
        return None
    try:
        return loading.run(checkpoint, query)
    except (GlassformerError, BusyError):
        return None


def _suggest(checkpoint: Checkpoint, slot: Slot) -> None:
    """Offer a sentence that the model can read."""
    others = [entry.examples[0] for entry in loading.usable().values() if entry.examples]
    if text := suggested(checkpoint, others):
        label = drawing.plain(say("Try “{sentence}”", sentence=text))
        take = partial(session.use_example, text)
        st.button(label, key=f"{slot}{SUGGESTED}", icon=":material/lightbulb:", on_click=take)


def _ask_for_source(checkpoint: Checkpoint) -> str:
    if not anatomy(checkpoint.config).reads or not checkpoint.card.source_code:
        return say("Type some text above, or pick an example.")
    language = checkpoint.card.source_language
    return say("Type a sentence in {language} above, or pick an example.", language=language)


N_IDS: Final = 4
MOST_A_WORD: Final = 7  # tokens; a tokenizer that has more spells the text in letters or bytes
LETTERS_A_WORD: Final = 2  # of a text without spaces
_PARTS: Final = re.compile(r"\w+|[^\w\s]")


def suggested(checkpoint: Checkpoint, others: Iterable[str]) -> str:
    """A text that a model can read: its own example, else the best read of some others, else ids of its own.

    How well a tokenizer reads a text is measured by what it makes of it: nothing unknown, and few tokens a word. What
    language a model was trained on it does not know; of two that share a vocabulary either may be suggested.
    """
    tokenizer = checkpoint.src_tokenizer
    if own := checkpoint.card.first_example():
        return own
    if not isinstance(tokenizer, RawIds):
        read = {text: _tokens_a_word(tokenizer, text) for text in others}
        best = min(read, key=read.__getitem__, default="")
        if best and read[best] <= MOST_A_WORD:
            return best
    ordinary = (i for i in range(tokenizer.size) if not tokenizer.is_special(i) and tokenizer.decode([i]).strip())
    return tokenizer.decode(list(islice(ordinary, N_IDS))).strip()


def _tokens_a_word(tokenizer: AnyTokenizer, text: str) -> float:
    """Infinite where something is unknown."""
    found = tokenizer.encode(text)
    if found.unread or not found.ids or any(map(tokenizer.is_special, found.ids)):
        return float("inf")
    unspaced = sum(unicodedata.category(letter) == "Lo" for letter in text)  # such as ideographs
    parts = len(_PARTS.findall(text)) - bool(unspaced)
    return (len(found.ids) + 1) / (unspaced / LETTERS_A_WORD + parts)  # one more: of two alike the longer


# ------------------------------------------------------------------------------------------------ its stepper


def stepper_run(visible: VisibleTrace, checkpoint: Checkpoint, run_id: str) -> StepperRun:
    """The run as the stepper component wants it."""
    trace = visible.trace
    source, target = checkpoint.src_tokenizer, checkpoint.tgt_tokenizer
    unknown = checkpoint.config.unk_id
    own = np.exp(trace.log_probs[np.arange(trace.n_steps), list(trace.tgt_ids)])
    return StepperRun(
        run_id=run_id,
        source=tuple(
            SourceChip(piece, i, special=source.is_special(i) and i != unknown, unknown=i == unknown)
            for piece, i in zip(trace.src_tokens, trace.src_ids, strict=True)
        ),
        target=tuple(
            TargetChip(piece, i, float(own[t]), forced=is_yours(trace, t), special=target.is_special(i))
            for t, (piece, i) in enumerate(zip(trace.tgt_tokens, trace.tgt_ids, strict=True))
        ),
        start_piece=trace.row_label(trace.first_row).reads if trace.n_steps else "",
        texts=trace.texts,
        shading=_shading(visible),
        shading_label=_shading_label(visible),
        stop_reason=_stop_sentence(trace),
        cut=trace.stop_reason == "length limit",
    )


def _shading(visible: VisibleTrace) -> np.ndarray | None:
    """How much each step looks at each source piece [step, source]; of a decoder-only model, also at its own output."""
    trace = visible.trace
    if not trace.n_steps:
        return None
    steps = slice(trace.first_row, trace.first_row + trace.n_steps)
    return visible.weights()[steps, : len(trace.src_tokens)].copy()  # a session keeps it: no view of all maps


def _shading_label(visible: VisibleTrace) -> str:
    if not visible.trace.n_steps:
        return ""
    if visible.kind == "cross":
        return say("Source shaded by cross-attention, {whose}", whose=visible.whose())
    return say("Prompt shaded by self-attention, {whose}", whose=visible.whose())


def _stop_sentence(trace: Trace) -> str:
    if trace.stop_reason == "end of sentence":
        return say("The model ended the sentence.")
    if trace.stop_reason == "no decoder":
        return say("This is an encoder-only model: it reads text but does not write any.")
    return say_n(
        "The output was cut off at the limit of {n} token.",
        "The output was cut off at the limit of {n} tokens.",
        trace.n_steps,
    )


STEPPER_RUN = "stepper_run"


def _kept_stepper(visible: VisibleTrace, checkpoint: Checkpoint, run_id: str) -> StepperRun:
    """What the stepper holds; a step changes nothing of it, so it is kept from step to step."""
    which, key = (run_id, visible.view.layer, visible.view.head), f"{visible.slot}{STEPPER_RUN}"
    kept: tuple[object, StepperRun] | None = st.session_state.get(key)
    if kept is None or kept[0] != which:
        kept = (which, stepper_run(visible, checkpoint, run_id))
        st.session_state[key] = kept
    return kept[1]


# ------------------------------------------------------------------------------------------------ given maps

MOST_OF_SENTENCE: Final = 1_000  # characters; a query would refuse a very long one


@dataclass(frozen=True)
class OpenMaps(Viewed):
    """Given maps that a page draws: to panels that need weights and labels alone they are what an `OpenRun` is."""

    visible: VisibleMaps  # the maps and what of them is looked at
    checkpoint: None
    name: str  # of the file

    @property
    def trace(self) -> LabelledMaps:
        """The maps."""
        return self.visible.trace

    @property
    def run_id(self) -> str:
        """Changes exactly when the maps do."""
        return self.trace.content_hash

    def again(self) -> Callable[[], LabelledMaps]:
        """Gets the maps once more, for what a session keeps."""
        return partial(loading.open_maps, self.name)

    def publish(self) -> None:
        """Write the address of what is shown."""
        publish(self.trace, replace(session.asked(), view=replace(self.view, guess=session.view().guess)))


AnyRun = OpenRun | OpenMaps
"""What a panel draws that needs weights and labels alone."""


def open_maps(maps: LabelledMaps, name: str) -> OpenMaps:
    """What the main slot looks at of given maps."""
    here, revision = session.standing(MAIN), maps.content_hash[:REVISION_LENGTH]
    if here.revision and here.revision != revision:
        session.add_note(
            say("This link was made with a different version of {name}, so what it shows may have changed.", name=name)
        )
    query = Query(checkpoint=maps.content_hash, source=maps.sentence[:MOST_OF_SENTENCE])
    session.stand(MAIN, revision=revision, last_query=query, last_rows="")  # which saved files say they are of
    view, notes = fit_given(session.view(), maps)
    drawing.notes((*session.take_notes(), *notes))
    return OpenMaps(VisibleMaps(maps, view), None, name)
