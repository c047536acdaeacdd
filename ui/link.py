"""What a web address says: which run is asked for and what of it is looked at.

A `Link` is read from query parameters and written back to them. It never trusts them: what is unknown or out of
range is put right and said in a note. Only what differs from the defaults is written, so the plain address of the
app is the default view.

Knows nothing of Streamlit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from transformer.errors import QueryError
from transformer.query import (
    MAX_BEAM,
    MAX_NEW,
    MAX_SEED,
    MAX_TOP_K,
    Beam,
    Decoding,
    Greedy,
    Query,
    Sampling,
    check_source,
)

MAX_FORCED = MAX_NEW
MAX_NAME = 100
MAX_STEP = 1_000_000  # the run says how many steps there are
DEFAULT_NEW = 128


@dataclass(frozen=True, kw_only=True)
class View:
    """What is looked at; it decides no result.

    Attributes:
        step: The decoding step, from 0.
        layer: Decoder layer from 0, None for the mean over all layers.
        head: Head from 0, None for the mean over the layer's heads.
        guess: Hide what comes next until it was guessed.
    """

    step: int = 0
    layer: int | None = None
    head: int | None = None
    guess: bool = False


@dataclass(frozen=True, kw_only=True)
class Link:
    """Everything that an address can say.

    Attributes:
        model: Name of a checkpoint; empty for the default one.
        revision: Beginning of the content hash that the link was made with; empty if not said.
        source: The sentence; None for the checkpoint's first example.
        decoding, max_new, forced, hypothesis: As in `transformer.Query`.
        view: What is looked at.
    """

    model: str = ""
    revision: str = ""
    source: str | None = None
    decoding: Decoding = field(default_factory=Greedy)
    max_new: int = DEFAULT_NEW
    forced: tuple[int, ...] = ()
    hypothesis: int = 0
    view: View = field(default_factory=View)

    def query(self, content_hash: str, source: str) -> Query:
        """The query on a checkpoint.

        Args:
            content_hash: Of the checkpoint that `model` means.
            source: The sentence, with the default already put in.

        Raises:
            QueryError: The source is too long.
        """
        return Query(
            checkpoint=content_hash,
            source=source,
            decoding=self.decoding,
            max_new=self.max_new,
            forced=self.forced,
            hypothesis=self.hypothesis,
        )

    def new_run(self) -> Link:
        """The same request without what belonged to an earlier run: forced pieces, chosen result, step."""
        return replace(self, forced=(), hypothesis=0, view=replace(self.view, step=0))


def write_link(link: Link) -> dict[str, str]:
    """The query parameters of a link; what is at its default is left out."""
    view = link.view
    values: dict[str, object] = {
        "model": link.model or None,
        "rev": link.revision or None,
        "src": link.source,
        "max": None if link.max_new == DEFAULT_NEW else link.max_new,
        **_decoding_values(link.decoding),
        "forced": ".".join(map(str, link.forced)) or None,
        "result": link.hypothesis + 1 if link.hypothesis else None,
        "step": view.step + 1 if view.step else None,
        "layer": None if view.layer is None else view.layer + 1,
        "head": None if view.head is None else view.head + 1,
        "guess": 1 if view.guess else None,
    }
    return {key: str(value) for key, value in values.items() if value is not None}


def read_link(parameters: Mapping[str, Sequence[str]]) -> tuple[Link, tuple[str, ...]]:
    """Read query parameters.

    Args:
        parameters: Each name with all its values.

    Returns:
        The link, and a note for everything that had to be put right.
    """
    reader = _Reader(parameters)
    view = View(
        step=(reader.integer("step", 1, MAX_STEP) or 1) - 1,
        layer=_from_one(reader.integer("layer", 1, 1000)),
        head=_from_one(reader.integer("head", 1, 1000)),
        guess=reader.text("guess", MAX_NAME) == "1",
    )
    link = Link(
        model=reader.text("model", MAX_NAME) or "",
        revision=reader.text("rev", MAX_NAME) or "",
        source=reader.source("src"),
        decoding=_read_decoding(reader),
        max_new=reader.integer("max", 1, MAX_NEW) or DEFAULT_NEW,
        forced=reader.ids("forced"),
        view=view,
    )
    if isinstance(link.decoding, Beam):
        result = (reader.integer("result", 1, link.decoding.size) or 1) - 1
        link = replace(link, hypothesis=result)
    if len(link.forced) > link.max_new:
        link = replace(link, forced=())
        reader.notes.append("The link forces more pieces than the output may have; they were left out.")
    return link, tuple(reader.notes)


def _decoding_values(decoding: Decoding) -> dict[str, object]:
    match decoding:
        case Beam():
            return {"how": "beam", "beam": decoding.size, "lp": _digits(decoding.length_penalty)}
        case Sampling():
            return {
                "how": "sampling",
                "temp": _digits(decoding.temperature),
                "k": decoding.top_k or None,
                "p": None if decoding.top_p == 1 else _digits(decoding.top_p),
                "seed": decoding.seed,
            }
        case _:
            return {}


def _digits(number: float) -> str:
    """As few digits as give the same number again."""
    return repr(float(number)).removesuffix(".0")


def _read_decoding(reader: _Reader) -> Decoding:
    how = reader.text("how", MAX_NAME)
    if how == "beam":
        return Beam(
            size=_or(reader.integer("beam", 1, MAX_BEAM), Beam().size),
            length_penalty=_or(reader.number("lp", 0.0, 2.0), Beam().length_penalty),
        )
    if how == "sampling":
        return Sampling(
            temperature=_or(reader.number("temp", 0.05, 5.0), 1.0),
            top_k=_or(reader.integer("k", 0, MAX_TOP_K), 0),
            top_p=_or(reader.number("p", 0.01, 1.0), 1.0),
            seed=_or(reader.integer("seed", 0, MAX_SEED), 0),
        )
    if how not in (None, "greedy"):
        reader.notes.append(f"The link asks for the unknown way of decoding “{_short(how)}”; greedy was taken.")
    return Greedy()


class _Reader:
    """Reads parameters one by one and writes down what was wrong with them."""

    def __init__(self, parameters: Mapping[str, Sequence[str]]) -> None:
        self._parameters = parameters
        self.notes: list[str] = []

    def text(self, name: str, longest: int) -> str | None:
        """The value as it is; None if it is missing or too long."""
        values = self._values(name)
        if values and len(values[0]) > longest:
            self.notes.append(f"“{name}” in the link is {len(values[0]):,} characters long; it was left out.")
            return None
        return values[0] if values else None

    def integer(self, name: str, least: int, most: int) -> int | None:
        """A whole number, moved into its range."""
        return self._in_range(name, int, least, most)

    def number(self, name: str, least: float, most: float) -> float | None:
        """A number, moved into its range."""
        return self._in_range(name, float, least, most)

    def source(self, name: str) -> str | None:
        """The sentence."""
        values = self._values(name)
        try:
            return check_source(values[0]) if values else None
        except QueryError as error:
            self.notes.append(f"The link's sentence was left out. {error}")
            return None

    def ids(self, name: str) -> tuple[int, ...]:
        """Ids joined by dots."""
        text = self.text(name, MAX_FORCED * 8)
        if not text:
            return ()
        parts = text.split(".")
        if len(parts) > MAX_FORCED or not all(part.isascii() and part.isdigit() and len(part) < 8 for part in parts):
            self.notes.append("The link's forced pieces could not be read; they were left out.")
            return ()
        return tuple(int(part) for part in parts)

    def _values(self, name: str) -> Sequence[str]:
        values = self._parameters.get(name) or []
        if len(values) > 1:
            self.notes.append(f"The link says “{name}” {len(values)} times; the first was taken.")
        return values

    def _in_range(self, name: str, kind: Callable[[str], Any], least: Any, most: Any) -> Any:
        text = self.text(name, 40)
        if text is None:
            return None
        try:
            value = kind(text)
        except ValueError:
            self.notes.append(f"“{name}” in the link is “{_short(text)}”, which is no number; it was left out.")
            return None
        clamped = min(max(value, least), most) if value == value else least  # NaN is not equal to itself
        if clamped != value:
            self.notes.append(f"“{name}” in the link is {_short(text)}; the limit is {least:g} to {most:g}.")
        return clamped


def _from_one(value: int | None) -> int | None:
    return None if value is None else value - 1


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "…"
