"""Charts of a handout for what the page Inside the model shows of a run.

What the page draws of the same arrays, without its controls: a step's address says what is looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

import charts
from charts.lens import Depth
from charts.theme import Spec
from transformer.analysis import neighbours, neurons, stream
from transformer.analysis.logit_lens import logit_lens
from transformer.checkpoint.load import Checkpoint
from transformer.model.anatomy import StackName, anatomy
from transformer.runs.trace import Trace
from ui.runs import loading
from ui.runs.looking import fit_view, row_labels
from ui.runs.sides import STACKS, fit_parts
from ui.state.link import Link
from ui.state.view import Side, View
from ui.teaching import model_figures
from ui.teaching.model_figures import Draw
from words import say

_MOST_NEURONS: Final = 32
_NEIGHBOURS: Final = 10
_AXES: Final[Mapping[Side, str]] = {"source": say("Source piece"), "target": say("Reads → predicts")}
_STACK_NAMES: Final[Mapping[StackName, str]] = {"encoder": say("encoder"), "decoder": say("decoder")}


@dataclass(frozen=True)
class _Token:
    """What a step on the page Inside the model looks at.

    Attributes:
        side: Whose stack.
        pieces: Its tokens; of the output the rows "reads → predicts".
        place: The one that is looked at.
        layer: Which layer.
    """

    side: Side
    pieces: list[str]
    place: int
    layer: int

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


def _depths(places: tuple[stream.Place, ...]) -> list[Depth]:
    return [Depth(place.short, place.name) for place in places]


# ------------------------------------------------------------------------------------------------ the stream


def _measured(token: _Token, checkpoint: Checkpoint, trace: Trace) -> stream.Stream:
    recorded = loading.replay(checkpoint, trace, stream.sites(checkpoint.config, token.stack))
    return stream.measure(recorded, checkpoint.config, token.stack, n_tokens=len(token.pieces))


def _kept(link: Link, checkpoint: Checkpoint, trace: Trace) -> Spec:
    token = _token(link.view, checkpoint, trace)
    measured = _measured(token, checkpoint, trace)
    return charts.stream_lines_spec(
        _depths(measured.places),
        measured.kept,
        token.pieces,
        chosen=token.place,
        title=say("How much of the embedding is left"),
        value_name=say("cosine"),
        limits=(min(0.0, float(np.nan_to_num(measured.kept).min()) - 0.05), 1.05),
        colour=token.side,
    )


def _size(link: Link, checkpoint: Checkpoint, trace: Trace) -> Spec:
    token = _token(link.view, checkpoint, trace)
    measured = _measured(token, checkpoint, trace)
    return charts.stream_lines_spec(
        _depths(measured.places),
        measured.size,
        token.pieces,
        chosen=token.place,
        title=say("How large the stream is"),
        value_name=say("root mean square"),
        colour=token.side,
    )


def _added(link: Link, checkpoint: Checkpoint, trace: Trace) -> Spec:
    token = _token(link.view, checkpoint, trace)
    measured = _measured(token, checkpoint, trace)
    return charts.stream_added_spec(
        _depths(measured.sublayers),
        measured.before[:, token.place],
        measured.added[:, token.place],
        measured.aligned[:, token.place],
        title=say("What each sub-layer adds to the stream of {token}", token=token.whose),
        colour=token.side,
    )


def _lens(link: Link, checkpoint: Checkpoint, trace: Trace) -> Spec | None:
    if not anatomy(checkpoint.config).writes or not trace.n_steps:
        return None
    lens = (
        loading.runner()
        .compute(
            ("logit_lens", trace.query, trace.tgt_ids, trace.src_ids, trace.read_ids),
            partial(logit_lens, checkpoint, trace),
            nbytes=lambda found: found.nbytes,
        )
        .by_layer()
    )
    step = fit_view(link.view, trace)[0].step
    ids = lens.top_ids[:, step]  # [depth, place]
    layers = [
        place.name if place.layer is None else say("layer {layer}", layer=place.layer + 1) for place in lens.places
    ]
    return charts.lens_table_spec(
        [Depth(layer, layer) for layer in layers],
        [[trace.vocabulary[i] for i in row] for row in ids.tolist()],
        lens.top_probs[:, step],
        chosen=ids == trace.tgt_ids[step],
        title=say(
            "Step {step}: what each depth would write after {piece}",
            step=step + 1,
            piece=trace.row_label(trace.row_of(step)).reads,
        ),
    )


# ------------------------------------------------------------------------------------------------ neurons, pieces


def _shares(link: Link, checkpoint: Checkpoint, trace: Trace) -> Spec:
    token = _token(link.view, checkpoint, trace)
    shares = loading.runner().compute(
        ("silent_neurons", trace.query, trace.src_ids, trace.read_ids, token.stack),
        partial(neurons.silent_shares, checkpoint, trace, token.stack),
        nbytes=lambda values: values.nbytes,
    )[:, : len(token.pieces)]
    exact = checkpoint.config.activation == "relu"
    return charts.silent_shares_spec(
        shares,
        token.pieces,
        marked=(token.layer, token.place),
        title=say("Silent neurons of the {stack}", stack=_STACK_NAMES[token.stack]),
        token_axis=_AXES[token.side],
        value_name=say("share of zeros") if exact else say("share within {near:g} of 0", near=neurons.NEAR_ZERO),
        colour=token.side,
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
    listed = neurons.most_active_anywhere(after, _MOST_NEURONS)
    return charts.neuron_map_spec(
        after[:, listed],
        listed.tolist(),
        token.pieces,
        marked=(token.place, None),
        title=say(
            "The {n} neurons of layer {layer} that are most active anywhere in this sentence",
            n=len(listed),
            layer=token.layer + 1,
        ),
        token_axis=_AXES[token.side],
        colour=token.side,
    )


def _neuron(link: Link, checkpoint: Checkpoint, trace: Trace) -> Spec:
    token, asked = _token(link.view, checkpoint, trace), link.view.neuron
    before, after = _activations(token, checkpoint, trace)
    neuron = int(neurons.most_active(after[token.place], 1)[0]) if asked is None else min(asked, after.shape[1] - 1)
    return charts.neuron_tokens_spec(
        after[:, neuron],
        before[:, neuron],
        token.pieces,
        chosen=token.place,
        title=say("What drives neuron {neuron} of layer {layer}", neuron=neuron + 1, layer=token.layer + 1),
        token_axis=_AXES[token.side],
        colour=token.side,
    )


def _nearest(link: Link, checkpoint: Checkpoint, trace: Trace) -> Spec | None:
    token = _token(link.view, checkpoint, trace)
    source = token.side == "source"
    table = (checkpoint.model.src_table if source else checkpoint.model.target_table).detach().float().numpy()
    tokenizer = checkpoint.src_tokenizer if source else checkpoint.tgt_tokenizer
    row = (trace.src_ids if source else trace.read_ids)[token.place]
    ordinary = np.array([not tokenizer.is_special(i) for i in range(tokenizer.size)])
    norms = neighbours.row_norms(table)
    found = neighbours.nearest(table, norms, row, count=_NEIGHBOURS, by="cosine", allowed=ordinary)
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
    "stream_kept": _kept,
    "stream_size": _size,
    "stream_added": _added,
    "lens_table": _lens,
    "ffn_shares": _shares,
    "ffn_map": _neuron_map,
    "ffn_tokens": _neuron,
    "piece_neighbours": _nearest,
    **model_figures.CHARTS,
}
"""By the key of the chart of a page."""

PARTS: Final[Mapping[str, Draw]] = {"stream": _kept, "lens": _lens, "ffn": _shares, "pieces": _nearest}
"""By the part of the page Inside the model, where a step names no chart."""
