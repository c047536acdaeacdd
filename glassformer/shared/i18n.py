"""Localised Streamlit (`st`), texts and tables in the session's language, fragments under the render lock.

Every sentence among the arguments of a call is said in the session's language: labels, bodies, help, option labels,
names of pages and columns. In English, the language of the code, a call passes straight through. Options are values
and stay unchanged; only their labels are translated.

Tables: pandas turns sentences into plain text, so build them with `frame`. A figure goes through `drawing.chart`.

A browser sends the label that it showed. Just after a change of language that is a label of the old language, which
Streamlit takes for a typed value, such as the name of an unknown checkpoint. So a label of any language counts as its
option, and as no choice if that is the option that was shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, wraps
from typing import TYPE_CHECKING, Any, TypeVar

import streamlit

from glassformer.server.render_lock import RENDER_LOCK
from glassformer.state.language import current
from transformer.i18n import ENGLISH, Sentence, languages, said, said_throughout

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    import streamlit as st


SENT_AS_SHOWN = {"multiselect", "radio", "selectbox"}  # Streamlit finds out by itself for the others


class Heard:
    """One choice; as a callback it calls the choice's own only if the reader chose something else."""

    def __init__(self, name: str, args: Sequence[Any], named: dict[str, Any]) -> None:
        """Look at a call that draws a choice, and put an option in the place of a label that is known for it.

        The call is of Streamlit's function `name`; a callback among what it is given by name is replaced by this.
        """
        self._key = str(named.get("key", "")) if name in SENT_AS_SHOWN else ""
        self._options = list(args[1] if len(args) > 1 else named.get("options", ()))
        self._form: Callable[[Any], str] = named.get("format_func", str)
        self._shown: Any = None
        if not self._key:
            return
        self._settle()
        if callable(named.get("on_change")):
            self._then: Callable[..., None] = named["on_change"]
            named["on_change"] = self

    def shows(self, chosen: Any) -> None:
        """Remember what is shown."""
        self._shown = chosen

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """The browser says that something else is chosen."""
        if not (self._settle() and streamlit.session_state[self._key] == self._shown):
            self._then(*args, **kwargs)

    def _settle(self) -> bool:
        """Put options in the places of labels; tells whether there were any."""
        value = streamlit.session_state.get(self._key)
        meant = [*map(self._meant, value)] if isinstance(value, list) else self._meant(value)
        if meant == value:
            return False
        streamlit.session_state[self._key] = meant
        return True

    def _meant(self, value: Any) -> Any:
        if not isinstance(value, str) or value in self._options:
            return value
        named = (one for one in self._options for language in languages() if said(self._form(one), language) == value)
        return next(named, value)


_Text = TypeVar("_Text")

__all__ = ["frame", "here", "st", "table"]

_PACKED = 64  # tables
_Block = type(streamlit.sidebar)

# Neither draws nor speaks, or decorates a function.
_AS_THEY_ARE = {
    "cache_data",
    "cache_resource",
    "column_config",
    "components",
    "context",
    "fragment",
    "query_params",
    "rerun",
    "secrets",
    "session_state",
    "stop",
}
_CHOICES = {"multiselect", "pills", "radio", "segmented_control", "select_slider", "selectbox"}
# Streamlit would write "None" for what a table lacks, and code would slide, out of the keyboard's reach.
_USUAL: Mapping[str, Mapping[str, Any]] = {"dataframe": {"placeholder": "–"}, "code": {"wrap_lines": True}}
_NOT_TEXT = {"args", "data", "key", "kwargs", "options"}  # given to callbacks, into a file, or values


class _Door:
    """Stands before an object of Streamlit's and translates what is said to it."""

    def __init__(self, inner: Any) -> None:
        self.__dict__["_inner"] = inner

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name in _AS_THEY_ARE:
            found = _fragment if name == "fragment" else found
            self.__dict__[name] = found  # next time this function is not even asked
        elif isinstance(found, _Block):
            return _Door(found)  # st.sidebar
        elif callable(found):
            self.__dict__[name] = found = _speaking(self._inner, name)
        return found

    def __enter__(self) -> Any:
        return self._inner.__enter__()

    def __exit__(self, *raised: object) -> Any:
        return self._inner.__exit__(*raised)


def _fragment(function: Callable[..., Any], *, run_every: Any = None) -> Any:
    """`streamlit.fragment`, whose runs take turns with all others."""

    @wraps(function)
    def draw(*args: Any, **kwargs: Any) -> Any:
        with RENDER_LOCK.one():
            return function(*args, **kwargs)

    return streamlit.fragment(draw, run_every=run_every)


if not TYPE_CHECKING:
    st = _Door(streamlit)


def here(said_later: _Text, language: str = "") -> _Text:
    """A text, or plain data such as a figure, in a language (by default the session's), to be sent without `st`."""
    language = language or current()
    return said_later if language == ENGLISH else said_throughout(said_later, language)


def frame(data: Any, *, columns: Sequence[str] | None = None, index: Sequence[str] | None = None) -> pd.DataFrame:
    """A table whose cells, columns and index are in the session's language; draw it, never cache it."""
    import pandas as pd  # here, because it takes 70 MB and half a second, and the first page has no such table

    names, rows = (None if one is None else here(list(one)) for one in (columns, index))
    return pd.DataFrame(here(data), columns=names, index=rows)


def table(columns: Mapping[str, Sequence[Any]]) -> pa.Table:
    """A table whose names and cells are in the session's language, packed as Streamlit sends it; to be drawn only.

    Packing is slower than the rest of drawing, so equal tables, such as a whole class sees, are packed once. The cells
    of a column are all strings or all numbers.
    """
    told = here(columns)
    return _packed(tuple((str(name), tuple(cells)) for name, cells in told.items()))


@lru_cache(maxsize=_PACKED)
def _packed(columns: tuple[tuple[str, tuple[Any, ...]], ...]) -> pa.Table:
    import pyarrow as pa  # here, as pandas above

    return pa.table({name: [str(cell) if isinstance(cell, str) else cell for cell in cells] for name, cells in columns})


def _speaking(owner: Any, name: str) -> Callable[..., Any]:
    @wraps(getattr(owner, name))
    def call(*args: Any, **kwargs: Any) -> Any:
        function = getattr(owner, name)  # looked up now: a test may have put another one there
        for option, usual in _USUAL.get(name, {}).items():
            kwargs.setdefault(option, usual)
        if name in _CHOICES:
            return _choosing(function, name, args, kwargs)
        language = current()
        if language == ENGLISH:
            return _behind_doors(function(*args, **kwargs))  # a table may be drawn in it
        named = {key: part if key in _NOT_TEXT else _told(part, language) for key, part in kwargs.items()}
        return _behind_doors(function(*(_told(part, language) for part in args), **named))

    return call


def _choosing(function: Callable[..., Any], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    heard, language = Heard(name, args, kwargs), current()
    if language != ENGLISH:
        kwargs["format_func"] = _shown(kwargs.get("format_func", str), language)
        args = tuple(part if place else _told(part, language) for place, part in enumerate(args))
        kwargs = {key: part if key in _NOT_TEXT else _told(part, language) for key, part in kwargs.items()}
    chosen = function(*args, **kwargs)
    heard.shows(chosen)
    return chosen


def _told(part: Any, language: str) -> Any:
    """One argument of a call; options of a choice come here neither by place nor by name."""
    return said_throughout(part, language) if isinstance(part, Sentence | list | tuple | Mapping) else part


def _shown(form: Callable[[Any], str], language: str) -> Callable[[Any], str]:
    """What an option is called, in a language."""
    return lambda option: said(option if isinstance(option, Sentence) else form(option), language)


def _behind_doors(result: Any) -> Any:
    """Containers speak the language too."""
    if isinstance(result, _Block):
        return _Door(result)
    if isinstance(result, list | tuple) and result and isinstance(result[0], _Block):
        return [_Door(one) for one in result]
    return result
