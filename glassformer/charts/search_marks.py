"""The marks of a search tree: what happened to each partial output, its piece next to it, and the results."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from glassformer.charts.grammar import layer
from glassformer.charts.hover import bold, on_lines
from glassformer.charts.theme import GUIDE_COLOR, MARK_COLOR, TARGET_COLOR, Spec, literal, shortened
from transformer.i18n import joined, say

Kind = Literal["open", "ended", "dropped", "closed"]
Places = Mapping[int, tuple[float, float]]
"""Where each beginning stands, by its name."""

LEAST_STEP = 25  # pixels; with less the chart is wider than its place, and scrolls
_PLOT = 640  # pixels that a window of 1280 leaves for the steps
_FONT = {"size": 11, "family": "monospace"}  # pieces are written so in the sentence, too
_LETTER = 6.6  # pixels
_BESIDE: Spec = {"showlegend": False, "cliponaxis": False}
_LINE = 36  # letters in a line of a result


@dataclass(frozen=True)
class Twig:
    """One partial output in the tree."""

    place: int  # its name, which a click returns; parents come first
    parent: int | None  # that of what it continues; None for a first piece
    step: int  # of its last piece, from 0
    piece: str  # its last piece
    kind: Kind  # what became of it
    numbers: Sequence[str]  # what hover says beside its piece, line by line; not yet escaped
    result: int | None = None  # the best result that it leads to, from 0; None if it leads to none
    named: bool = True  # whether its piece is written beside it

    @property
    def is_kept(self) -> bool:
        """Whether its round kept it."""
        return self.kind in ("open", "ended")


@dataclass(frozen=True)
class Leaf:
    """A result."""

    place: int  # the name of its last beginning
    text: str  # what it says
    numbers: str  # its numbers in a few words


def start_mark(piece: str, root: tuple[float, float]) -> Spec:
    """The mark before the first step."""
    look = {"text": [literal(shortened(piece, limit=8))], "textposition": "middle left", "textfont": _FONT, **_BESIDE}
    look |= {"marker": {"symbol": "circle-open", "size": 9, "color": MARK_COLOR}}
    return layer("markers+text", [root[0]], [root[1]], look)


def marks(twigs: Sequence[Twig], at: Places, step: int | None) -> list[Spec]:
    """The marks, one trace per kind, because a shape shows what happened; they take hover and clicks."""
    kinds: list[tuple[Kind, str, Spec]] = [
        ("open", "", {"symbol": "circle", "color": TARGET_COLOR}),
        ("ended", say("ended"), {"symbol": "square", "color": TARGET_COLOR}),
        ("dropped", "", {"symbol": "x-thin-open", "color": GUIDE_COLOR}),
        ("closed", say("excluded by a rule"), {"symbol": "diamond-open", "color": GUIDE_COLOR}),
    ]
    found = []
    for kind, name, style in kinds:
        ones = [twig for twig in twigs if twig.kind == kind and twig.place in at]
        if not ones:
            continue
        sizes = [(11 if twig.step == step else 7) if twig.is_kept else 6 for twig in ones]
        edges = [2 if twig.step == step and twig.is_kept else 0.8 for twig in ones]
        marker = {**style, "size": sizes, "line": {"color": MARK_COLOR, "width": edges}}
        look = {"showlegend": bool(name), "cliponaxis": False, "marker": marker}
        x, y = ([at[twig.place][axis] for twig in ones] for axis in (0, 1))
        texts = [on_lines(bold(twig.piece), *map(literal, twig.numbers)) for twig in ones]
        found.append(layer("markers", x, y, look, name=name, texts=texts, clicks=[twig.place for twig in ones]))
    return found


def names(twigs: Sequence[Twig], at: Places, n_steps: int) -> list[Spec]:
    """The pieces next to their marks; if longer than a step, they alternate above and below."""
    room = max(LEAST_STEP, _PLOT / (n_steps + 1.4))
    kept = [twig for twig in twigs if twig.is_kept]
    longest = max((len(twig.piece) for twig in kept), default=0)
    in_turns = longest * _LETTER > room
    limit = max(3, int((2 if in_turns else 1) * room / _LETTER) - 1)
    above = [twig for twig in kept if not in_turns or twig.step % 2 == 0]
    below = [twig for twig in kept if in_turns and twig.step % 2]
    ends = [twig for twig in twigs if not twig.is_kept and twig.named and twig.place in at]
    groups = (
        (above, "top center", MARK_COLOR, -0.08),
        (below, "bottom center", MARK_COLOR, 0.08),
        (ends, "middle left", GUIDE_COLOR, 0.0),  # what is kept has its names at the right of them
    )
    return [_text(ones, at, side, colour, limit, lower) for ones, side, colour, lower in groups if ones]


def _text(ones: Sequence[Twig], at: Places, side: str, colour: str, limit: int, lower: float) -> Spec:
    look = {"textposition": side, "textfont": {**_FONT, "color": colour}, **_BESIDE}
    beside = "\u00a0" * (side == "middle left")  # such a text ends in the middle of its mark
    look["text"] = [literal(shortened(twig.piece, limit=limit)) + beside for twig in ones]
    return layer("text", [at[twig.place][0] for twig in ones], [at[twig.place][1] + lower for twig in ones], look)


def results(leaves: Sequence[Leaf], at: Places, n_steps: int) -> list[Spec]:
    """The results at the right, each a mark that takes clicks."""
    if not leaves:
        return []
    look = {"textposition": "middle right", "textfont": {"size": 11, "color": MARK_COLOR}, **_BESIDE}
    look |= {"marker": {"symbol": "triangle-right", "size": 9, "color": TARGET_COLOR}}
    look["text"] = [on_lines(*lines_of(n, leaf)) for n, leaf in enumerate(leaves, start=1)]
    x, y = [n_steps + 0.8] * len(leaves), [at[leaf.place][1] for leaf in leaves]
    texts = [on_lines(bold(leaf.text), literal(leaf.numbers)) for leaf in leaves]
    return [layer("markers+text", x, y, look, texts=texts, clicks=[leaf.place for leaf in leaves])]


def lines_of(n: int, leaf: Leaf) -> list[str]:
    """A result with its number, on lines not much longer than `_LINE`."""
    lines = _wrapped(f"{n}. {leaf.text}")
    short = len(lines[-1]) + len(leaf.numbers) < _LINE
    end = joined(" ", [literal(lines.pop()), literal(leaf.numbers)]) if short else literal(leaf.numbers)
    return [*map(literal, lines), end]


def _wrapped(text: str) -> list[str]:
    """A text on lines, broken between words where there are such."""
    lines = [""]
    for word in text.split():
        while len(word) > _LINE:
            lines.append(word[:_LINE])
            word = word[_LINE:]
        if lines[-1] and len(lines[-1]) + 1 + len(word) > _LINE:
            lines.append("")
        lines[-1] = " ".join(filter(None, (lines[-1], word)))
    return [line for line in lines if line]
