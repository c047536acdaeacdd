"""A control for each kind of field that an intervention has."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from glassformer.shared import choices, drawing
from glassformer.shared.door import st
from glassformer.state.view import View
from transformer.checkpoint.load import Checkpoint
from transformer.errors import QueryError, shown
from transformer.i18n import say
from transformer.model.anatomy import Attention, anatomy
from transformer.runs.interventions.spelling import MOST_TEXT, Spelling
from transformer.runs.trace import Trace
from transformer.text.tokenizer import AnyTokenizer

ALL: Final = choices.NONE
FINE: Final = 100.0  # a range of numbers up to which arrows change tenths


@dataclass(frozen=True)
class Around:
    """What the controls choose from."""

    checkpoint: Checkpoint  # the one that is open
    view: View  # what is looked at, which is proposed first
    trace: Trace | None  # the unchanged run of the sentence; None if there is none
    # What the controls before this one say, by what they are of.
    chosen: Mapping[str, Any] = field(default_factory=dict)

    @property
    def attention(self) -> Attention:
        """The attention that is chosen, or the one that is looked at, or the last one."""
        parts = anatomy(self.checkpoint.config)
        kind = self.chosen.get("attention", self.view.kind)
        return parts.attention(kind if kind in parts.kinds else parts.kinds[-1])

    @property
    def n_heads(self) -> int:
        """Of that attention."""
        return self.checkpoint.config.of(self.attention.stack).n_heads


def control(spelling: Spelling, key: str, around: Around) -> Any:
    """Draw a control; what it says, as the field takes it. Raises `QueryError`: what was typed is no such value."""
    return _CONTROLS[spelling.what](spelling, key, around)


def _attention(spelling: Spelling, key: str, around: Around) -> Any:
    kinds = anatomy(around.checkpoint.config).kinds
    options = {kind: said for kind, said in spelling.options.items() if kind in kinds or kind not in _KINDS}
    return _menu(spelling.label, key, options, around.view.kind)


_KINDS: Final = ("encoder", "decoder", "cross")


def _places(spelling: Spelling, key: str, count: int, first: int | None) -> Any:
    return _menu(spelling.label, key, _every(spelling) | choices.numbered(count), first)


def _pieces(around: Around, stack: str) -> Sequence[str]:
    if around.trace is None:
        return ()
    return around.trace.src_pieces if stack == "encoder" else around.trace.read_pieces


def _piece_of(spelling: Spelling, key: str, pieces: Sequence[str], first: int | None) -> Any:
    if not pieces:
        number = st.number_input(spelling.label, min_value=1, max_value=int(spelling.most), key=key)
        return int(number) - 1
    return _menu(spelling.label, key, _every(spelling) | choices.labelled(pieces), first)


def _every(spelling: Spelling) -> dict[Any, str]:
    return {ALL: choices.ALL} if spelling.optional else {}


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
    """A piece as it is drawn elsewhere, or its id."""
    typed = (
        st.text_input(spelling.label, key=key, help=say("A piece as shown on the page, or its id."), max_chars=100)
        or ""
    ).strip()
    if not typed:
        raise QueryError("Type a piece.")
    found = tokenizer.id_of(typed)
    if found is None and typed.isascii() and typed.isdigit() and int(typed) < tokenizer.size:
        found = int(typed)
    if found is None:
        found = tokenizer.id_of(f"▁{typed}")
    if found is None:
        raise QueryError("{typed} is neither a piece of this vocabulary nor an id.", typed=shown(typed))
    st.caption(drawing.plain(say("That is piece {id}: {piece}", id=found, piece=tokenizer.piece(found))))
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
    "head": lambda one, key, of: _places(one, key, of.n_heads, of.view.head),
    "query": lambda one, key, of: _piece_of(one, key, _pieces(of, of.attention.stack), of.view.query),
    "key": lambda one, key, of: _piece_of(one, key, _pieces(of, of.attention.keys_from), of.view.key),
    "source": lambda one, key, of: _piece_of(one, key, of.trace.src_pieces if of.trace else (), None),
    "step": lambda one, key, of: _piece_of(one, key, of.trace.tgt_pieces if of.trace else (), of.view.step),
    "source_piece": lambda one, key, of: _typed_piece(one, key, of.checkpoint.src_tokenizer),
    "target_piece": lambda one, key, of: _typed_piece(one, key, of.checkpoint.tgt_tokenizer),
    "number": _number,
    "whole": _whole,
    "choice": lambda one, key, of: _menu(one.label, key, dict(one.options), None),
    "yes": lambda one, key, of: bool(st.toggle(one.label, value=one.default, key=key)),
    "text": _text,
    "numbers": _numbers,
}
