"""Widgets bound to fields of the view state: button rows, menus, sliders, switches, number and text boxes, folds.

The view is the source of truth. A control is set from it before it is drawn, but only where the two differ: a slider
that is written while it is dragged would jump. Menus and rows of buttons send the chosen label, so they are also set
when their labels have changed; else the browser would lose the choice.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeVar

from glassformer.shared import page_style
from glassformer.shared.i18n import here, st
from glassformer.state import session
from glassformer.state.fields import MAX_STEP
from glassformer.state.view import Slot, View, all_fields
from transformer.i18n import Sentence, say, say_n

KEEP: Final = "session"  # a widget of the request keeps its value while another page is looked at
ALL: Final = say("All")  # layers or heads together
MOST_SEGMENTS: Final = 8  # more choices are in a menu
MORE: Final = "more_options"
NARROW: Final = 92  # pixels of a menu that says "Layer 1"; it grows with what it says

NONE: Final = "none"  # stands for None among a widget's options: Streamlit takes None for nothing chosen
_LABELS: Final = "labels"
_NUMBERS: Final = "folded_keys"  # in the session: how often each was renewed
_Value = TypeVar("_Value")
_Number = TypeVar("_Number", int, float)


@dataclass(frozen=True)
class ControlBinding:
    """What a control shows and where it goes. A session keeps it with the callback: it must not hold a run."""

    key: str  # of the widget
    value: Any  # what is shown
    take: Callable[[Any], None]  # called with what the reader chose


def field(slot: Slot, name: str, *, key: str = "", forgets: Sequence[str] = ()) -> ControlBinding:
    """A field of the view; `key` is the widget's if not the field's name; `forgets` are fields that a change resets."""
    return ControlBinding(
        f"{slot}{key or name}", session.view(slot).get(name), partial(put, slot, name, tuple(forgets))
    )


def together(slot: Slot, shown: Mapping[str, Any], *, key: str) -> Iterator[ControlBinding]:
    """Fields of the view that belong together: once the user changes one, the others' defaults are fixed, too.

    `shown` has the current value of each, chosen or default; `key` begins the keys of their widgets.
    """
    for name, value in shown.items():
        yield ControlBinding(f"{slot}{key}{name}", value, partial(_take_one, slot, shown, name))


def _take_one(slot: Slot, shown: Mapping[str, Any], name: str, value: object) -> None:
    session.replace(slot, **{**shown, name: value})


def put(slot: Slot, name: str, forgets: Sequence[str], value: object) -> None:
    """Callback: replace a field of the view; what only the old value gave a meaning is forgotten."""
    if session.view(slot).get(name) != value:
        session.replace(slot, **{one: all_fields()[one].default for one in forgets}, **{name: value})


def numbered(count: int) -> dict[int, str]:
    """Options for layers or heads, named from 1."""
    return {place: str(place + 1) for place in range(count)}


def menu_of_layers(
    kept: ControlBinding, n_layers: int, *, all_together: bool = True, width: int | None = NARROW
) -> int | None:
    """Draw the choice of a layer as a menu that names itself, for a row without labels above."""
    layers: dict[int | None, str] = {place: say("Layer {n}", n=place + 1) for place in range(n_layers)}
    every: dict[int | None, str] = {None: say("All layers")} if all_together else {}
    return menu(kept, say("Layer"), every | layers, bare=True, width=width, folded=width is None)


def menu_of_heads(
    kept: ControlBinding, n_heads: int, *, all_together: bool = True, disabled: bool = False, width: int | None = NARROW
) -> int | None:
    """Draw the choice of a head likewise."""
    heads: dict[int | None, str] = {place: say("Head {n}", n=place + 1) for place in range(n_heads)}
    every: dict[int | None, str] = {None: say("All heads")} if all_together else {}
    help = say("Choose a layer first, then one of its heads.") if disabled else None
    return menu(
        kept, say("Head"), every | heads, bare=True, disabled=disabled, help=help, width=width, folded=width is None
    )


def let_go(slot: Slot, n_layers: int, n_heads: int) -> View:
    """Let go of a layer and of a head that there is not; returns the view without them."""
    view = session.view(slot)
    gone = [name for name, count in (("layer", n_layers), ("head", n_heads)) if (view.get(name) or 0) >= count]
    session.replace(slot, **dict.fromkeys(gone))
    return session.view(slot)


def bar(slot: Slot) -> Any:
    """A row for the controls of a page; they have no label above."""
    return st.container(horizontal=True, gap="small", vertical_alignment="center", key=f"{slot}{page_style.BAR}")


def more(slot: Slot, *names: str) -> Any:
    """A menu at the end of a row for what is rarely changed; it says how much of it is not as at first."""
    view = session.view(slot)
    count = sum(view.get(name) != all_fields()[name].default for name in names)
    return st.popover(
        say("Options · {n}", n=count) if count else say("Options"),
        key=f"{slot}{MORE}",
        icon=":material/tune:",
        help=say_n("{n} option differs from its default.", "{n} options differ from their defaults.", count)
        if count
        else None,
    )


def labelled(pieces: Sequence[str], *, first: int = 0) -> dict[int, str]:
    """Options for pieces, each with its number from 1."""
    return {place: f"{place + 1}: {piece}" for place, piece in enumerate(pieces) if place >= first}


def choose(
    kept: ControlBinding,
    label: str,
    options: Mapping[_Value, str],
    *,
    otherwise: _Value | None = None,
    bare: bool = False,
) -> _Value:
    """Draw a choice of a few as a row of buttons, of many as a menu; returns what is chosen.

    Where `kept` is none of the options, `otherwise` is shown, or the first. A `bare` label is for screen readers only.
    """
    if len(options) - (None in options) > MOST_SEGMENTS:
        return menu(kept, label, options, otherwise=otherwise, bare=bare, width=120)
    value, widget = _shown(kept, options, otherwise)
    st.segmented_control(label, **widget, required=True, label_visibility="collapsed" if bare else "visible", wrap=True)
    return value


def menu(
    kept: ControlBinding,
    label: str,
    options: Mapping[_Value, str],
    *,
    otherwise: _Value | None = None,
    bare: bool = False,
    disabled: bool = False,
    help: str | None = None,
    width: int | None = None,
    folded: bool = False,
) -> _Value:
    """Draw a choice as a menu; arguments as for `choose`. Its width is in pixels; without one it takes all there is.

    In a popover it is `folded`, as `folded_key` says.
    """
    value, widget = _shown(kept, options, otherwise, folded=folded)
    st.selectbox(
        label,
        **widget,
        label_visibility="collapsed" if bare else "visible",
        disabled=disabled,
        help=help,
        width=width or "stretch",
    )
    return value


def scale(
    kept: ControlBinding, label: str, options: Mapping[_Value, str], *, otherwise: _Value, help: str | None = None
) -> _Value:
    """Draw a choice along a line, for values that have an order; arguments as for `choose`.

    The labels have to be the same in every language: one that Streamlit does not know is the line's first for it.
    """
    if any(isinstance(said, Sentence) for said in options.values()):
        raise TypeError("the labels along a line are no sentences")
    value, widget = _shown(kept, options, otherwise)
    st.select_slider(label, **widget, help=help)
    return value


def several(kept: ControlBinding, label: str, options: Iterable[int], *, most: int, placeholder: str) -> None:
    """Draw a choice of up to `most` numbers."""
    _set(kept.key, list(kept.value))
    st.multiselect(
        label, options, key=kept.key, max_selections=most, placeholder=placeholder, on_change=_taking(kept, tuple)
    )


def switch(kept: ControlBinding, label: str, *, help: str | None = None, folded: bool = False) -> bool:
    """Draw a switch; in a popover it is `folded`, as `folded_key` says."""
    kept = _bound(kept, bool(kept.value), folded=folded)
    return st.toggle(label, key=kept.key, help=help, on_change=_taking(kept, bool))


def fold(kept: ControlBinding, label: str) -> Any:
    """Draw a fold that the address opens; what is in it is drawn only if its `open` says so."""
    return st.expander(label, type="compact", key=kept.key, expanded=bool(kept.value), on_change=_taking(kept, bool))


def slider(
    kept: ControlBinding,
    label: str,
    least: _Number,
    most: _Number,
    *,
    step: _Number | None = None,
    help: str | None = None,
) -> _Number:
    """Draw a slider of whole numbers, or of fractions where its ends are; a value outside shows as the nearest."""
    kind = type(least)
    value = min(max(kind(kept.value), least), most)
    _set(kept.key, value)
    st.slider(label, least, most, step=step, key=kept.key, on_change=_taking(kept, kind), help=help)
    return value


def number(
    kept: ControlBinding,
    label: str,
    most: int,
    *,
    width: int,
    placeholder: str = "",
    help: str | None = None,
    bare: bool = False,
) -> None:
    """Draw a box for one of many things, counted from 1; empty for None, and for one that there is not."""
    _set(kept.key, None if kept.value is None or kept.value >= most else kept.value + 1)
    st.number_input(
        label,
        min_value=1,
        max_value=most,
        value=None,
        key=kept.key,
        placeholder=placeholder or label,
        on_change=_taking(kept, lambda number: None if number is None else int(number) - 1),
        help=help,
        width=width,
        label_visibility="collapsed" if bare else "visible",
    )


def box(kept: ControlBinding, label: str, *, step: float, width: int, help: str | None = None) -> float | None:
    """Draw a box for a number of at most a million, whole ones where the step is; returns it, None if it is empty."""
    _set(kept.key, kept.value)
    look: dict[str, Any] = {"step": step, "min_value": -1e6, "max_value": 1e6, "format": "%.2f"}
    if isinstance(step, int):
        look = {"step": step, "min_value": 1, "max_value": MAX_STEP}
    st.number_input(
        label,
        value=None,
        key=kept.key,
        placeholder="–",
        on_change=_taking(kept, lambda number: number),
        help=help,
        width=width,
        **look,
    )
    value: float | None = kept.value
    return value


def typed(kept: ControlBinding, label: str, *, most: int, width: int, help: str | None = None) -> str:
    """Draw a box for a text, which shows its label as long as it is empty; returns its text."""
    _set(kept.key, str(kept.value))
    st.text_input(
        label,
        key=kept.key,
        placeholder=label,
        label_visibility="collapsed",
        max_chars=most,
        on_change=_taking(kept, lambda text: str(text or "").strip()),
        help=help,
        width=width,
    )
    return str(kept.value)


def keep_label(key: str, labels: Iterable[str]) -> None:
    """Before a choice of the request, which its own widget keeps: its labels may be others than before."""
    if key in st.session_state:
        _set(key, st.session_state[key], labels)


def _shown(
    kept: ControlBinding, options: Mapping[_Value, str], otherwise: _Value | None, *, folded: bool = False
) -> tuple[_Value, dict[str, Any]]:
    """Set a choice of labels; returns what is chosen, and what its widget is made with."""
    value: _Value = next(one for one in (kept.value, otherwise, *options) if one in options)
    labels: dict[object, str] = {NONE if one is None else one: said for one, said in options.items()}
    kept = _bound(kept, NONE if value is None else value, labels.values(), folded=folded)
    return value, {
        "options": list(labels),
        "key": kept.key,
        # Streamlit also asks for the label of what was chosen before, which may be no option any more.
        "format_func": lambda option: labels.get(option, str(option)),
        "on_change": partial(_take_option, kept, tuple(labels)),
    }


def folded_key(key: str, value: object) -> str:
    """The key of a widget in a popover, which is set to a value: a new one where something else has chosen that.

    In a closed popover there is no widget to be told so, and the browser goes on sending what was chosen there last.
    In an open one it begins anew each time, and takes what it is not told again for the first option.
    """
    state = st.session_state
    numbers: dict[str, int] = state.setdefault(_NUMBERS, {})
    n = numbers.get(key, 0)
    found = f"{key}-{n}" if n else key
    if state.get(found, value) != value:
        numbers[key] = n + 1
        found = f"{key}-{n + 1}"
    state[found] = value
    return found


def _bound(kept: ControlBinding, value: object, labels: Iterable[str] = (), *, folded: bool) -> ControlBinding:
    """The binding with its widget set; in a popover that may be another widget."""
    if folded:
        return replace(kept, key=folded_key(kept.key, value))
    _set(kept.key, value, labels)
    return kept


def _set(key: str, value: object, labels: Iterable[str] = ()) -> None:
    """Set a widget that has another value, or whose labels have changed since it was last drawn."""
    state, said = st.session_state, hash(tuple(map(here, labels)))  # as the browser knows them: another language's
    drawn: dict[str, int] = state.setdefault(_LABELS, {})
    if key not in state or state[key] != value or drawn.get(key) != said:
        state[key] = value
    drawn[key] = said


def _take_option(kept: ControlBinding, options: Sequence[object]) -> None:
    chosen = st.session_state.get(kept.key)
    if chosen in options:
        kept.take(None if chosen == NONE else chosen)


def _taking(kept: ControlBinding, read: Callable[[Any], object]) -> Callable[[], None]:
    """Callback of a widget whose value is what it sends."""
    return lambda: kept.take(read(st.session_state[kept.key]))
