"""The pictures of the part Queries and keys: those of a head over the lines that keep vectors, and of its layer.

What is selected is a set of tokens, the same in every head: all that are of the clicked token's piece or line, or
that are nearest to it in the head that is looked at.

Knows nothing of Streamlit.
"""

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final

import numpy as np

from glassformer.extensions.corpus.charts.corpus_joined import (
    HOW_TO_READ,
    HOW_TO_READ_HEADS,
    Cloud,
    Group,
    joined_heads_spec,
    joined_spec,
)
from glassformer.extensions.corpus.corpus_look import CorpusLook
from glassformer.extensions.corpus.library.joined import Joined, Tokens, nearest
from glassformer.extensions.corpus.page.corpus_pictures import CORPUS, head_name, of_no_run
from glassformer.runs.picture import Part, Picture, Plot
from glassformer.state.click import Click, place_of
from glassformer.state.view import MAIN, Slot
from transformer.i18n import joined, say, say_n
from transformer.i18n.numbers import written
from transformer.model.anatomy import Kind
from transformer.text.tokenizer import SPACE_MARK

JOINED: Final[Part[Any]] = CORPUS.part("joined", of_no_run, of_sentence=False)
STRONG, WEAK = -0.9, -0.6  # correlations up to which distance accounts for most of the score, or for a third
N_NEAR: Final = 20


@dataclass(frozen=True, eq=False)
class Layer:
    """The queries and keys of the heads of a layer, by the heads' places from 0; all of the same tokens."""

    kind: Kind
    layer: int  # from 0
    head: int  # the one that is looked at, from 0
    heads: Mapping[int, Joined]
    special: frozenset[str]  # the pieces that stand for no text
    look: CorpusLook
    slot: Slot = MAIN

    @property
    def own(self) -> Joined:
        """Those of the head that is looked at."""
        return self.heads[self.head]

    @property
    def tokens(self) -> Tokens:
        """Those of all heads, but for their vectors."""
        return self.own.tokens

    @cached_property
    def spot(self) -> int | None:
        """The token that was clicked, by its place among all; None for one that is not drawn."""
        line, side, place = spot_of(self.look.spot) or (0, "", 0)
        tokens = self.tokens
        found = (tokens.line == line) & (tokens.place == place - 1) & (tokens.is_query == (side == "query"))
        return int(np.flatnonzero(found)[0]) if found.any() else None

    @cached_property
    def lit(self) -> np.ndarray | None:
        """Which tokens are selected [N]; None if nothing is."""
        tokens, spot, how = self.tokens, self.spot, self.look.lit
        if self.look.lit_piece:
            asked = bare(self.look.lit_piece)
            return np.array([bare(piece) == asked for piece in tokens.pieces])
        if spot is None:
            return None
        lit = np.zeros(len(tokens.line), bool)
        if how == "near":
            lit[nearest(self.own, spot, N_NEAR)] = True
        elif how == "piece":
            lit |= tokens.pieces == tokens.pieces[spot]
        elif how == "line":
            lit |= tokens.line == tokens.line[spot]
        lit[spot] = True
        return lit

    @cached_property
    def selected(self) -> list[int]:
        """The places of those tokens, the clicked one first, then in their order, or the nearest first."""
        if self.lit is None:
            return []
        found = np.flatnonzero(self.lit).tolist()
        if self.look.lit == "near" and self.spot is not None and not self.look.lit_piece:
            return [self.spot, *nearest(self.own, self.spot, N_NEAR).tolist()]
        return sorted(found, key=lambda token: token != self.spot)

    def cloud(self, head: int) -> Cloud:
        """A head's tokens as they are drawn."""
        of = self.heads[head]
        tokens, spot = of.tokens, None if self.look.lit_piece else self.spot
        return Cloud(
            of.plane.points, tokens.is_query, tokens.pieces.tolist(), tokens.line, tokens.place + 1, self.lit, spot
        )


def spot_of(text: str) -> tuple[int, str, int] | None:
    """Line, side and place of a token as the view has it; None for anything else."""
    parts = text.split(".")
    if len(parts) != 3 or parts[1] not in ("query", "key") or not (parts[0].isdecimal() and parts[2].isdecimal()):
        return None
    return int(parts[0]), parts[1], int(parts[2])


def spot_text(tokens: Tokens, token: int) -> str:
    """The same as text."""
    side = "query" if tokens.is_query[token] else "key"
    return f"{tokens.line[token]}.{side}.{tokens.place[token] + 1}"


def clicked_on(name: str) -> dict[str, Any]:
    """What is looked at when a token was clicked, by its name as of `spot_text`: it, and its line."""
    return {"spot": name, "lit_piece": "", "line": int(name.split(".")[0]) - 1}


def bare(piece: str) -> str:
    """A piece without its mark for a space and without capitals."""
    return piece.replace(SPACE_MARK, " ").strip().casefold()


def group_of(piece: str, special: frozenset[str]) -> Group:
    """What kind of piece it is: punctuation has no characters but those of the Unicode categories P and S."""
    if piece in special:
        return "special"
    text = bare(piece)
    return "punctuation" if text and all(unicodedata.category(c)[0] in "PS" for c in text) else "other"


# ------------------------------------------------------------------------------------------------ pictures


def _points(scene: Layer) -> Plot:
    """The head that is looked at; a click selects a token."""
    own, tokens, look = scene.own, scene.tokens, scene.look
    n, n_lines = len(tokens.line), len(np.unique(tokens.line))
    count = say_n("{n:,} token", "{n:,} tokens", n)
    lines = say_n("{n:,} line", "{n:,} lines", n_lines)
    selected = [say("{n:,} selected", n=int(scene.lit.sum()))] if scene.lit is not None else []
    spec = joined_spec(
        scene.cloud(scene.head),
        shares=own.plane.shares,
        title=say("{head}: queries and keys", head=head_name(scene.kind, scene.layer, scene.head)),
        note=joined("; ", [say("{tokens} of {lines}", tokens=count, lines=lines), *selected]),
        by=look.points_by,
        groups=[group_of(piece, scene.special) for piece in tokens.pieces] if look.points_by == "group" else (),
    )
    alt = say(
        "The queries and keys of {head} on {lines}: {n:,} points on two axes, which hold {share:.0%} of the "
        "variance. The table that can be saved has every token.",
        head=head_name(scene.kind, scene.layer, scene.head),
        lines=lines,
        n=n,
        share=sum(own.plane.shares),
    )
    read = joined(" ", [HOW_TO_READ, scaling(own)])
    return Plot(
        spec=spec, alt=alt, how_to_read=read, fit=True, of_sentence=False, clicked=partial(_clicked, _names(tokens))
    )


def scaling(own: Joined) -> str:
    """Why near should mean a large score, and how far it does here."""
    why = say(
        "Keys were moved so that both sides have the same mean, which softmax ignores. Queries were multiplied by "
        "c = {c:.2f} and keys by 1 / c, which leaves every q·k unchanged; c makes small distances go with large "
        "scores as far as possible.",
        c=own.scale,
    )
    if own.correlation is None:
        return why
    how = say(
        "Over all pairs of a query and a key in one line, the score q·(k − mean key) and the squared distance have "
        "the correlation r = {r}, so distance accounts for r² = {share:.0%} of the differences between scores.",
        r=written(f"{own.correlation:.2f}"),
        share=own.correlation**2,
    )
    if own.correlation <= STRONG:
        means = say("In this head, a large score goes with a small distance.")
    elif own.correlation <= WEAK:
        means = say("In this head, a large score often goes with a small distance, but not always.")
    else:
        means = say("In this head, distance says little about the score.")
    return joined(" ", [why, how, means])


def _names(tokens: Tokens) -> list[str]:
    return [spot_text(tokens, token) for token in range(len(tokens.line))]


def _clicked(names: Sequence[str], click: Click) -> Mapping[str, Any] | None:
    place = place_of(click)
    return None if place is None or place >= len(names) else clicked_on(names[place])


points: Final = Picture(JOINED, "corpus_joined", say("Queries and keys of a head over a corpus"), _points)


def _heads(scene: Layer) -> Plot | None:
    """All heads of the layer; a click opens one and selects a token."""
    if len(scene.heads) < 2:
        return None
    return Plot(
        spec=joined_heads_spec(
            {head: scene.cloud(head) for head in scene.heads},
            chosen=scene.head,
            title=say("All heads of layer {layer}: the same tokens", layer=scene.layer + 1),
        ),
        alt=say(
            "The same queries and keys in each of the {n} heads of layer {layer}, one small chart per head.",
            n=len(scene.heads),
            layer=scene.layer + 1,
        ),
        how_to_read=HOW_TO_READ_HEADS,
        of_sentence=False,
        clicked=partial(_head_clicked, _names(scene.tokens), list(scene.heads)),
    )


def _head_clicked(names: Sequence[str], heads: Sequence[int], click: Click) -> Mapping[str, Any] | None:
    match click.customdata:
        case [int(head), int(token)] if head in heads and 0 <= token < len(names):
            return {"head": head, **clicked_on(names[token])}
    return None


heads: Final = Picture(JOINED, "corpus_joined_heads", say("Queries and keys of all heads of a layer"), _heads)
