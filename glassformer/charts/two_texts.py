"""Two texts of pieces, one above the other: equal up to where they diverge, then how each continues."""

from collections.abc import Sequence

from glassformer.charts.bands import Cell, bands, window
from glassformer.charts.hover import bold, on_lines
from glassformer.charts.theme import Colour, Spec, literal
from transformer.i18n import say
from transformer.i18n.numbers import chance

HOW_TO_READ = say(
    "The two texts, position by position. Blue: identical up to the first difference, which is framed. Orange: "
    "what follows in each text; pieces in the same column need not correspond. Purple: the ending, identical in "
    "both texts."
)
AXIS = say("Position (wrapped into lines)")
_SHADES: dict[str, tuple[Colour, float]] = {
    "before": ("source", 0.25), "parts": ("target", 0.5), "after": ("target", 0.2), "end": ("neutral", 0.3),
}  # fmt: skip


def two_texts_spec(
    names: tuple[str, str],
    texts: tuple[Sequence[str], Sequence[str]],
    probabilities: tuple[Sequence[float], Sequence[float]],
    *,
    parts_at: int | None,
    tail: int,
    title: str,
) -> Spec:
    """Draw two texts, with the probability, 0 to 1, of each piece given the pieces before it in its own text.

    From place `parts_at` on, counted from 0, they differ, or only one continues; None if they are equal. After that
    place both end with the same `tail` pieces.
    """
    if [*map(len, texts)] != [*map(len, probabilities)]:
        raise ValueError("Give one probability for each piece.")
    drawn = window(max(map(len, texts)), parts_at)
    rows = [
        (name, [_cell(name, text, each, i, parts_at, tail) if i < len(text) else None for i in drawn])
        for name, text, each in zip(names, texts, probabilities, strict=True)
    ]
    figure = bands(rows, first=drawn.start, title=title, axis=AXIS)
    columns = [say("text"), say("place"), say("piece"), say("probability"), say("part")]
    told = {
        "before": say("same"),
        "parts": say("first difference"),
        "after": say("after the first difference"),
        "end": say("same ending"),
    }
    cells = [
        [name, i + 1, piece, float(p), told[_part(i, len(text), parts_at, tail)]]
        for name, text, each in zip(names, texts, probabilities, strict=True)
        for i, (piece, p) in enumerate(zip(text, each, strict=True))
    ]
    figure["layout"]["meta"] = {"first": drawn.start, "table": {"columns": columns, "rows": cells}}
    return figure


def _part(place: int, length: int, parts_at: int | None, tail: int) -> str:
    if parts_at is None or place < parts_at:
        return "before"
    if place >= length - tail:
        return "end"
    return "parts" if place == parts_at else "after"


def _cell(
    name: str, text: Sequence[str], probabilities: Sequence[float], place: int, parts_at: int | None, tail: int
) -> Cell:
    part = _part(place, len(text), parts_at, tail)
    said = on_lines(
        say("{text}, piece {n}: {piece}", text=name, n=place + 1, piece=bold(text[place])),
        say("probability {p}", p=literal(chance(float(probabilities[place])))),
    )
    return Cell(text[place], said, *_SHADES[part], framed=place == parts_at)
