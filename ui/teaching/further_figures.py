"""Charts of a handout for what the page Inside the model shows of a run.

What the page draws of the same arrays, without its controls: a step's address says what is looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

import charts
from charts.theme import Spec
from transformer.analysis import neighbours, neurons
from transformer.checkpoint.load import Checkpoint
from transformer.model.anatomy import StackName, anatomy
from transformer.runs.trace import Trace
from ui.runs import figures, loading
from ui.runs.looking import fit_view, row_labels
from ui.runs.sides import STACKS, fit_parts
from ui.state.link import Link
from ui.state.view import Side, View
from ui.teaching import model_figures
from ui.teaching.model_figures import Draw
from words import say


@dataclass(frozen=True)
class _Token:
    """What a step on the page Inside the model looks at."""

    side: Side  # whose stack
    pieces: list[str]  # its tokens; of the output the rows "reads → predicts"
    place: int  # the one that is looked at
    layer: int  # which layer

    @property
    def stack(self) -> StackName:
        """Whose layers."""
        return STACKS[self.side]

    @property
    def whose(self) -> str:
        """The token, for titles."""
        return self.pieces[self.place]


def _token(view: View, checkpoint: Checkpoint, trace: Trace) -> _Token:
    parts = anatomy(checkpoint.config)
    view, _ = fit_parts(fit_view(view, trace, kind=view.kind)[0], parts)
    if view.side == "source":
        pieces, place = list(trace.src_pieces), view.key or 0
    else:
        pieces, place = row_labels(trace, len(trace.read_ids), covered=False), trace.row_of(view.step)
    layer = min(view.layer or 0, parts.stack(STACKS[view.side]).n_layers - 1)
    return _Token(view.side, pieces, min(place, len(pieces) - 1), layer)


# ------------------------------------------------------------------------------------------------ neurons, pieces


def _shares(link: Link, checkpoint: Checkpoint, trace: Trace) -> Spec:
    token = _token(link.view, checkpoint, trace)
    shares = figures.silent_shares(checkpoint, trace, token.stack)[:, : len(token.pieces)]
    exact = checkpoint.config.activation == "relu"
    return figures.silent_map(
        shares, token.pieces, marked=(token.layer, token.place), exact=exact, stack=token.stack, side=token.side
    )


def _activations(token: _Token, checkpoint: Checkpoint, trace: Trace) -> tuple[np.ndarray, np.ndarray]:
    """Pre-activations and activations of a layer `[token, neuron]`."""
    sites = [neurons.site(token.stack, token.layer, name) for name in ("pre_activation", "activation")]
    recorded = loading.replay(checkpoint, trace, sites)
    before, after = (recorded[site][: len(token.pieces)] for site in sites)
    return before, after


def _neuron_map(link: Link, checkpoint: Checkpoint, trace: Trace) -> Spec:
    token = _token(link.view, checkpoint, trace)
    _, after = _activations(token, checkpoint, trace)
    listed = neurons.most_active_anywhere(after, figures.MOST_MAPPED).tolist()
    return figures.neuron_map(
        after, listed, token.pieces, marked=(token.place, None), layer=token.layer, side=token.side
    )


def _neuron(link: Link, checkpoint: Checkpoint, trace: Trace) -> Spec:
    token, asked = _token(link.view, checkpoint, trace), link.view.neuron
    before, after = _activations(token, checkpoint, trace)
    neuron = int(neurons.most_active(after[token.place], 1)[0]) if asked is None else min(asked, after.shape[1] - 1)
    return figures.neuron_tokens(
        before, after, token.pieces, neuron=neuron, layer=token.layer, token=token.place, side=token.side
    )


def _nearest(link: Link, checkpoint: Checkpoint, trace: Trace) -> Spec | None:
    token = _token(link.view, checkpoint, trace)
    source = token.side == "source"
    table = (checkpoint.model.src_table if source else checkpoint.model.target_table).detach().float().numpy()
    tokenizer = checkpoint.src_tokenizer if source else checkpoint.tgt_tokenizer
    row = (trace.src_ids if source else trace.read_ids)[token.place]
    ordinary = np.array([not tokenizer.is_special(i) for i in range(tokenizer.size)])
    norms = neighbours.row_norms(table)
    found = neighbours.nearest(table, norms, row, count=figures.NEIGHBOURS, by="cosine", allowed=ordinary)
    if not len(found.ids):
        return None
    return charts.neighbour_bars_spec(
        [tokenizer.piece(i) for i in found.ids.tolist()],
        found.ids.tolist(),
        found.cosine,
        found.distance,
        by="cosine",
        title=say("Nearest to {piece}", piece=tokenizer.piece(row)),
        colour="neutral" if checkpoint.config.shared_vocab else token.side,
    )


CHARTS: Final[Mapping[str, Draw]] = {
    "ffn_shares": _shares,
    "ffn_map": _neuron_map,
    "ffn_tokens": _neuron,
    "piece_neighbours": _nearest,
    **model_figures.CHARTS,
}
"""By the key of the chart of a page."""

PARTS: Final[Mapping[str, Draw]] = {"ffn": _shares, "pieces": _nearest}
"""By the part of the page Inside the model, where a step names no chart."""
