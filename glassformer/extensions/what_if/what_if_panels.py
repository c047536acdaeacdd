"""Dialog “What if”: kind of change, a widget per field, effect preview; chips of changes; button under a head.

The fields are in a panel at the right edge, with the effect of the change.

`transformer.runs.interventions.kinds` defines the kinds of change; only the head that writes nothing is named here.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, get_args

import numpy as np

from glassformer.extensions.what_if import head_effect_jobs, sweeps
from glassformer.extensions.what_if.comparison import of_what_is_looked_at
from glassformer.extensions.what_if.interventions import LowRankFeedForward, ZeroHead
from glassformer.extensions.what_if.two_runs import first_difference, own_log_probs
from glassformer.runs import loading
from glassformer.runs.error_boundary import attempt
from glassformer.runs.measurement_jobs import AT_ONCE, COST, takes_about
from glassformer.runs.open_run import OpenRun
from glassformer.server.model_runner import BusyError
from glassformer.server.streamlit_private import styled
from glassformer.shared import controls, cover_box, drawing, menu
from glassformer.shared.drawing import pressed
from glassformer.shared.i18n import st
from glassformer.shared.page_blocks import PageBlocks
from glassformer.state import session
from glassformer.state.link import Link
from glassformer.state.view import MAIN, Slot, View
from transformer.checkpoint.load import Checkpoint
from transformer.errors import GlassformerError, QueryError, shown
from transformer.i18n import Sentence, joined, say, say_n
from transformer.model.anatomy import Attention, Kind, anatomy
from transformer.runs.apply_interventions import tap_for
from transformer.runs.interventions import Intervention, kinds
from transformer.runs.interventions.base import Group
from transformer.runs.interventions.fields import MOST_TEXT, Spelling, spelled
from transformer.runs.trace import Trace
from transformer.text.tokenizer import AnyTokenizer

OPEN: Final = "what_if"
FIELD: Final = "what_if_"  # prefix of the dialog's keys
GROUPS: Final[dict[Group, Sentence]] = {
    "heads": say("Heads"),
    "rows": say("Rows of a map"),
    "pieces": say("Tokens"),
    "attention": say("Scores and weights"),
    "masks": say("Masks"),
    "positions": say("Positions"),
    "layers": say("Layers"),
}
_PANEL: Final = styled("""
<style>
:--dialog:has([class*="st-key-what_if_"]) { background: none !important; backdrop-filter: none; }
:--dialog > div:has([class*="st-key-what_if_"]) {
  position: fixed; inset: 0 0 0 auto; margin: 0; width: 25rem; max-width: 100vw; height: 100dvh; max-height: 100dvh;
  border-radius: 0; border-left: 1px solid rgb(128 128 128 / 45%); overflow-y: auto;
}
:--dialog :--vertical:has([class*="st-key-what_if_"]) { gap: 0.4rem; }
:--dialog .st-key-what_if_make {
  position: sticky; bottom: 0; z-index: 1; width: 100%; padding: 0.5rem 0; backdrop-filter: blur(12px);
}
@media (max-width: 640px) {
  :--dialog > div:has([class*="st-key-what_if_"]) {
    inset: auto 0 0 0; width: 100vw; height: auto; max-height: 62dvh; border-radius: 0.75rem 0.75rem 0 0;
    border: 1px solid rgb(128 128 128 / 45%);
  }
}
</style>
""")
assert set(GROUPS) == set(get_args(Group))
PRODUCTS_A_SECOND: Final = 1e10  # multiplications of one thread, about
FIRST: Final[Group] = "heads"
OF_PAGE: Final[dict[str, Group]] = {"masks": "masks", "positions": "positions", "inside": "layers"}  # first there


def _becomes(run: OpenRun, changes: tuple[Intervention, ...]) -> Sentence | None:
    """What the output becomes with these changes; None if it cannot be known, or may not be."""
    if run.view.guess or cover_box.is_on() or not run.trace.n_steps:
        return None
    after = _trace(run.checkpoint, run.slot, changes)
    if after is None:
        return None
    if after.tgt_ids == run.trace.tgt_ids:  # which is in sight
        return say("Output stays the same.")
    return say("“{before}” → “{after}”", before=run.trace.output_text, after=after.output_text)


def draw(checkpoint: Checkpoint) -> None:
    """Draw the dialog: the kind of change, its fields, and its description; its defaults are the view."""
    config, trace, first = checkpoint.config, _trace(checkpoint, MAIN), OF_PAGE.get(menu.current(), FIRST)
    st.html(_PANEL)
    most = _most(checkpoint, trace)
    group: Group = (
        st.segmented_control(
            say("What to change"),
            list(GROUPS),
            format_func=GROUPS.__getitem__,
            default=first,
            required=True,
            key=f"{FIELD}group",
            label_visibility="collapsed",
        )
        or first
    )
    here = [kind for kind in kinds().values() if kind.group == group]
    fits = {kind.word: kind for kind in here if kind.unfit(config) is None}
    if fits:
        word = st.selectbox(
            say("Change"),
            list(fits),
            format_func=lambda word: fits[word].title if word in fits else str(word),
            key=f"{FIELD}{group}",
        )
        _one(checkpoint, fits[word], trace, most)
    for kind in here:
        if (why := kind.unfit(config)) is not None:
            st.caption(drawing.plain(say("Not possible for this model: {title}. {why}", title=kind.title, why=why)))


def _most(checkpoint: Checkpoint, trace: Trace | None) -> ZeroHead | None:
    """Offer the head that matters most, if it is known at once and no question is open; else None."""
    found = None if trace is None or cover_box.is_on() else head_effect_jobs.found_now(checkpoint, trace)
    if found is None:
        return None
    change = ZeroHead(*head_effect_jobs.matters_most(found))
    help = drawing.plain(change.told())
    said = say("Take away the head that matters most for this output")
    _make(change, said, key=f"{FIELD}most", icon=":material/content_cut:", help=help)
    return change


def _proposed(kind: type[Intervention], most: ZeroHead | None) -> View:
    """The fields' defaults: the current view; for a head, if none is selected, the one that matters most."""
    view = session.view()
    if kind.group != "heads" or most is None or view.layer is not None:
        return view
    return replace(view, kind=most.kind, layer=most.layer, head=most.head)


def _one(checkpoint: Checkpoint, kind: type[Intervention], trace: Trace | None, most: ZeroHead | None) -> None:
    st.caption(drawing.plain(kind.about))
    around = Around(checkpoint, _proposed(kind, most), trace)
    values: dict[str, object] = {}
    try:
        for name, (_, spelling) in spelled(kind).items():
            values[name] = _CONTROLS[spelling.what](spelling, f"{FIELD}{kind.word}_{name}", around)
            around = replace(around, chosen={**around.chosen, spelling.what: values[name]})
        made = kind(**values)
        made.check(checkpoint.config)
    except QueryError as error:
        st.warning(drawing.with_code(error.sentence))
        return
    st.markdown(say("After the change: **{change}**", change=drawing.plain(made.told())))
    if trace is not None and not session.view().guess and not cover_box.is_on():
        _effect(checkpoint, trace, _with(made))
        _error(checkpoint, trace, made)
    _make(made, say("Change it"), key=f"{FIELD}make", type="primary")


def _make(change: Intervention, label: str, **look: Any) -> None:
    if st.button(label, on_click=partial(session.change, MAIN, _with(change)), **look):
        st.rerun()  # the whole page: the panel closes


def _with(change: Intervention) -> tuple[Intervention, ...]:
    """The changes with a new one, which replaces one of the same target."""
    return (*(one for one in session.standing(MAIN).interventions if one.target != change.target), change)


def _effect(checkpoint: Checkpoint, trace: Trace, changes: tuple[Intervention, ...]) -> None:
    """Show the effect of the changes: the output before and after, and where it first differs."""
    after = _trace(checkpoint, MAIN, changes)
    if after is None or not trace.n_steps:
        return  # the page says it once the change is made
    n = first_difference(trace.tgt_ids, after.tgt_ids)
    if n is None:
        n = int(np.abs(np.exp(own_log_probs(after)) - np.exp(own_log_probs(trace))).argmax())
        said = say("The output stays “{before}”.", before=trace.output_text)
    else:
        said = say("Output: “{before}” → “{after}”", before=trace.output_text, after=after.output_text)
    before, now = (float(np.exp(run.log_probs[n, trace.tgt_ids[n]])) for run in (trace, after))
    moved = say("{piece}, step {n}: {before:.2f} → {after:.2f}", piece=trace.tgt_tokens[n], n=n + 1, before=before,
                after=now)  # fmt: skip
    with st.container(key=f"{FIELD}effect", gap=None):
        st.markdown(drawing.strong(said))
        st.caption(drawing.plain(moved))


def _error(checkpoint: Checkpoint, trace: Trace, change: Intervention) -> None:
    """Draw the error by the amount of the change, at once if that is quick, and say what it would save."""
    if (said := sweeps.costs_in_words(change, trace, checkpoint.config)) is not None:
        st.caption(drawing.plain(said))
    if not change.swept:
        return
    key, config = ("sweep", trace.query, change), checkpoint.config
    rows = 1 if tap_for((change,), checkpoint).causal else len(trace.read_ids)  # one pass, or one for each row
    products = config.count_parameters() * rows * len(trace.src_ids)
    if isinstance(change, LowRankFeedForward):  # two matrices of each layer are decomposed
        products += 30 * config.d_model**3 * (config.n_encoder_layers + config.n_decoder_layers)
    seconds = len(sweeps.amounts(change)) * products / PRODUCTS_A_SECOND
    asked = seconds <= AT_ONCE or loading.runner().kept(key) is not None
    if asked or st.button(say("Draw the error by amount"), key=f"{FIELD}sweep", help=takes_about(seconds)):
        work = partial(sweeps.sweep, checkpoint, trace, change)
        found = attempt(lambda: loading.long(key, work, cost=seconds * COST, nbytes=lambda one: one.nbytes))
        if found is not None:
            plot = sweeps.error_plot(found, change)
            drawing.chart(plot.spec, key=f"{FIELD}error", alt=plot.alt, how_to_read=plot.how_to_read)


def _trace(checkpoint: Checkpoint, slot: Slot, changes: tuple[Intervention, ...] = ()) -> Trace | None:
    """A run of the sentence with these changes, by default none; None if it fails."""
    link = replace(session.asked(slot), interventions=changes)
    if changes:
        link = replace(link, hypothesis=0)
    try:
        return loading.runner().trace(checkpoint, link.query(checkpoint.content_hash))
    except (GlassformerError, BusyError):
        return None


# ---------------------------------------------------------------- what is around pages

CHANGES: Final = "changes"
UNTOUCHED: Final = "untouched"
MOST_CHIPS: Final = 8  # more would fill the page
MOST_TOLD: Final = 3
HERE: Final = say("**Changed in this run:**")
ELSEWHERE: Final = say("**Changed on pages that show a run:**")


def chips(changes: Sequence[Intervention], slot: Slot, *, of_runs: str = HERE) -> None:
    """Draw the changes, if any, after a label; a click on a change removes it."""
    if not changes:
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key=f"{slot}{CHANGES}"):
        st.markdown(of_runs, width="content")
        for place, one in enumerate(changes[:MOST_CHIPS]):
            st.button(
                drawing.plain(one.told()),
                key=f"{slot}{CHANGES}_{place}",
                icon=":material/close:",
                help=say("Undo this change."),
                on_click=partial(session.change, slot, tuple(other for other in changes if other != one)),
            )
        more = len(changes) - MOST_CHIPS
        if more > 0:
            st.markdown(say_n("and {n} more", "and {n} more", more), width="content")
        st.button(
            say("Show the unchanged run"),
            key=f"{slot}{UNTOUCHED}",
            type="tertiary",
            on_click=partial(session.change, slot, ()),
        )


def told(changes: Sequence[Intervention]) -> str:
    """The description of the changes."""
    parts = [say("The model was changed for this run.")]
    parts += [say("{change}.", change=one.told()) for one in changes[:MOST_TOLD]]
    more = len(changes) - MOST_TOLD
    if more > 0:
        parts.append(say_n("And {n} more change.", "And {n} more changes.", more))
    return joined(" ", parts)


COMPARE = "compare"  # the path of the page


class WhatIfBlocks(PageBlocks):
    """See the module."""

    def leads_to(self, path: str, run: Link) -> Link | None:
        """To a comparison of what is looked at."""
        return of_what_is_looked_at(run, menu.current()) if path == COMPARE else None

    def under_title(self) -> None:
        """What is changed, of a page without a run."""
        chips(session.standing(MAIN).interventions, MAIN, of_runs=ELSEWHERE)

    def in_source_row(self, checkpoint: Checkpoint) -> None:
        """The button that opens the dialog."""
        said, help = say("What if …"), say("Change something inside the model.")
        with pressed(st.button, said, key=OPEN, about=menu.current(), icon=":material/science:", help=help) as asked:
            if asked:
                for key in [key for key in st.session_state if str(key).startswith(FIELD)]:
                    del st.session_state[key]
                st.dialog(said, width="medium")(partial(draw, checkpoint))()

    def above_run(self, checkpoint: Checkpoint, link: Link, slot: Slot) -> None:
        """What is changed."""
        chips(link.interventions, slot)

    def for_head(self, run: OpenRun, kind: Kind, layer: int | None, head: int | None) -> None:
        """Under the choice of one head: take it away with one click, or put it back; of one alone."""
        if layer is None or head is None or run.earlier:
            return
        changes, own = run.trace.query.interventions, ZeroHead(kind, layer, head)
        gone = own in changes
        after = tuple(one for one in changes if one != own) if gone else (*changes, own)
        with st.container(horizontal=True, gap="small", vertical_alignment="center", key=run.key("of_head")):
            st.button(
                say("Put this head back") if gone else say("Take this head away"),
                key=run.key("take_head"),
                icon=":material/undo:" if gone else ":material/content_cut:",
                help=say("Taking the head away sets its output to 0, and the model generates a new output."),
                on_click=partial(session.change, run.slot, after),
            )
            if (becomes := _becomes(run, after)) is not None:
                st.markdown(drawing.plain(becomes), width="content")


BLOCKS = WhatIfBlocks()


# ---------------------------------------------------------------- a control for each kind of field

ALL: Final = controls.NONE
FINE: Final = 100.0  # a range of numbers up to which arrows change tenths


@dataclass(frozen=True)
class Around:
    """What the controls choose from."""

    checkpoint: Checkpoint  # the one that is open
    view: View  # the current view, for defaults
    trace: Trace | None  # the unchanged run of the sentence; None if there is none
    # The previous controls' values, by what they choose.
    chosen: Mapping[str, Any] = field(default_factory=dict)

    @property
    def attention(self) -> Attention:
        """The chosen attention, or the one in view, or the last one."""
        parts = anatomy(self.checkpoint.config)
        kind = self.chosen.get("attention", self.view.kind)
        return parts.attention(kind if kind in parts.kinds else parts.kinds[-1])


def _attention(spelling: Spelling, key: str, around: Around) -> Any:
    kinds = anatomy(around.checkpoint.config).kinds
    options = {kind: said for kind, said in spelling.options.items() if kind in kinds or kind not in get_args(Kind)}
    return _menu(spelling.label, key, options, around.view.kind)


def _places(spelling: Spelling, key: str, count: int, first: int | None) -> Any:
    return _menu(spelling.label, key, _every(spelling) | controls.numbered(count), first)


def _pieces(around: Around, stack: str) -> Sequence[str]:
    if around.trace is None:
        return ()
    return around.trace.src_tokens if stack == "encoder" else around.trace.read_tokens


def _piece_of(spelling: Spelling, key: str, pieces: Sequence[str], first: int | None) -> Any:
    if not pieces:
        number = st.number_input(spelling.label, min_value=1, max_value=int(spelling.most), key=key)
        return int(number) - 1
    return _menu(spelling.label, key, _every(spelling) | controls.labelled(pieces), first)


def _every(spelling: Spelling) -> dict[Any, str]:
    return {ALL: controls.ALL} if spelling.optional else {}


def _menu(label: str, key: str, options: dict[Any, str], first: Any) -> Any:
    values = list(options)
    chosen = st.selectbox(
        label,
        values,
        format_func=lambda one: options.get(one, str(one)),
        index=values.index(first) if first in values else 0,
        key=key,
    )
    return None if chosen == ALL else chosen


def _typed_piece(spelling: Spelling, key: str, tokenizer: AnyTokenizer) -> int:
    """Draw an input for a piece as displayed, or its id; returns the id."""
    typed = (
        st.text_input(spelling.label, key=key, help=say("A token as shown on the page, or its id."), max_chars=100)
        or ""
    ).strip()
    if not typed:
        raise QueryError("Type a token.")
    found = tokenizer.id_of(typed)
    if found is None and typed.isascii() and typed.isdigit() and int(typed) < tokenizer.size:
        found = int(typed)
    found = tokenizer.id_of(f"▁{typed}") if found is None else found
    if found is None:
        raise QueryError("{typed} is neither a token of this vocabulary nor an id.", typed=shown(typed))
    st.caption(drawing.plain(say("That is token {id}: {piece}", id=found, piece=tokenizer.piece(found))))
    return found


def _number(spelling: Spelling, key: str, around: Around) -> float:
    least, most = float(spelling.least), float(spelling.most)
    first = float(min(max(spelling.default, least), most))
    step = 0.1 if most - least <= FINE else 1.0
    return float(st.number_input(spelling.label, least, most, first, step=step, key=key, format="%g"))


def _whole(spelling: Spelling, key: str, around: Around) -> int:
    least, most = int(spelling.least), int(spelling.most)
    return int(st.number_input(spelling.label, least, most, int(spelling.default), step=1, key=key))


def _text(spelling: Spelling, key: str, around: Around) -> str:
    typed = st.text_input(spelling.label, key=key, max_chars=MOST_TEXT) or ""
    if not typed.strip():
        raise QueryError("Type some text.")
    return str(typed)


def _numbers(spelling: Spelling, key: str, around: Around) -> tuple[float, ...]:
    typed = st.text_input(spelling.label, key=key, help=say("Numbers, separated by spaces.")) or ""
    try:
        found = tuple(float(part) for part in typed.replace(",", " ").split())
    except ValueError:
        raise QueryError("{typed}: type only numbers, for example 0.5 0.25 0.25.", typed=shown(typed)) from None
    if not found:
        raise QueryError("Type numbers, for example 0.5 0.25 0.25.")
    return found


_CONTROLS: Final[dict[str, Callable[[Spelling, str, Around], Any]]] = {
    "attention": _attention,
    "layer": lambda one, key, of: _places(one, key, of.attention.n_layers, of.view.layer),
    "head": lambda one, key, of: _places(one, key, of.checkpoint.config.of(of.attention.stack).n_heads, of.view.head),
    "query": lambda one, key, of: _piece_of(one, key, _pieces(of, of.attention.stack), of.view.query),
    "key": lambda one, key, of: _piece_of(one, key, _pieces(of, of.attention.keys_from), of.view.key),
    "source": lambda one, key, of: _piece_of(one, key, of.trace.src_tokens if of.trace else (), None),
    "step": lambda one, key, of: _piece_of(one, key, of.trace.tgt_tokens if of.trace else (), of.view.step),
    "source_piece": lambda one, key, of: _typed_piece(one, key, of.checkpoint.src_tokenizer),
    "target_piece": lambda one, key, of: _typed_piece(one, key, of.checkpoint.tgt_tokenizer),
    "number": _number,
    "whole": _whole,
    "choice": lambda one, key, of: _menu(one.label, key, dict(one.options), None),
    "yes": lambda one, key, of: bool(st.toggle(one.label, value=one.default, key=key)),
    "text": _text,
    "numbers": _numbers,
    "neuron": lambda one, key, of: int(st.number_input(one.label, 1, of.checkpoint.config.d_ff, 1, key=key)) - 1,
}
"""Each draws a control and returns its value for the field; a `QueryError` says that the input is not valid."""
