"""Which vector, which neuron and which piece a lesson looks at inside the model. All count from 1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from transformer.analysis import neurons
from transformer.analysis.worth_seeing import hardest_step as least_sure
from transformer.lessons.case import Case, NotHere
from transformer.lessons.picks.looking import own_pieces
from transformer.lessons.picks.steps import written
from transformer.model.anatomy import StackName, anatomy
from transformer.runs.replay import replay

SMALL_VOCABULARY: Final = 500
"""A vocabulary with fewer pieces has letters and marks, but hardly a word."""


@dataclass(frozen=True)
class Place:
    """A token of the stack that writes, or of an encoder alone; `row` counts from 0."""

    stack: StackName
    n_layers: int
    row: int


def stream_row(case: Case) -> dict[str, Any]:
    """The step at which the model was least sure; of an encoder alone, a token in the middle."""
    trace = case.trace
    if anatomy(case.checkpoint.config).writes:
        at = least_sure(trace.entropies(), range(written(case, least=2)))
        reads = trace.row_label(trace.row_of(at)).reads
        return {"side": "target", "step": at + 1, "key": 1, "token": reads, "piece": trace.tgt_pieces[at]}
    key = _middle(case)
    return {"side": "source", "step": 1, "key": key + 1, "token": trace.src_pieces[key], "piece": ""}


def first_norm(case: Case) -> dict[str, Any]:
    """The first norm of the same stack."""
    return stream_row(case) | {"norm": 1, "d_model": case.checkpoint.config.d_model}


def lens_step(case: Case) -> dict[str, Any]:
    """The step at which the model was least sure."""
    if not anatomy(case.checkpoint.config).writes:
        raise NotHere("This model writes nothing, so that no depth can be read as a prediction.")
    return stream_row(case)


def source_token(case: Case) -> dict[str, Any]:
    """A piece of text in the middle of what the encoder reads."""
    if not anatomy(case.checkpoint.config).reads:
        raise NotHere("This model has no encoder; choose one that reads a source as a whole.")
    key = _middle(case)
    return {"key": key + 1, "token": case.trace.src_pieces[key]}


def longest_piece(case: Case) -> dict[str, Any]:
    """The piece of the source with the longest text, the first of those: most likely a word with a meaning."""
    trace, size = case.trace, case.checkpoint.config.src_vocab_size
    if size < SMALL_VOCABULARY:
        raise NotHere("The {n:,} pieces of this vocabulary are letters and marks; choose a model with words.", n=size)
    key = max(own_pieces(case), key=lambda place: (len(trace.src_pieces[place].strip("▁")), -place))
    return {"key": key + 1, "token": trace.src_pieces[key], "pieces": size}


def top_neuron(case: Case) -> dict[str, Any]:
    """The most active neuron of the last layer at that token."""
    picked = stream_row(case)
    place = place_of(case, picked)
    sites = [neurons.site(place.stack, place.n_layers - 1, name) for name in ("activation", "pre_activation")]
    after, before = (replay(case.checkpoint, case.trace, sites)[site] for site in sites)
    here, told = after[place.row], before[: case.trace.n_tokens(place.stack)]
    neuron = int(neurons.most_active(here, 1)[0])
    if not here[neuron] > 0:
        raise NotHere("No neuron is active at this token; try another sentence.")
    return picked | {
        "layer": place.n_layers,
        "neuron": neuron + 1,
        "n_neurons": case.checkpoint.config.of(place.stack).d_ff,
        "activation": float(here[neuron]),
        "mean": float(told[place.row].mean()),
        "deviation": float(told[place.row].std()),
        "own_mean": float(told[:, neuron].mean()),
    }


def place_of(case: Case, picked: Mapping[str, Any]) -> Place:
    """Where in the model a pick of this module looks.

    Args:
        case: The run.
        picked: What `stream_row` found.
    """
    parts = anatomy(case.checkpoint.config)
    stack = parts.stacks[-1] if picked["side"] == "target" else parts.stack("encoder")
    row = case.trace.row_of(int(picked["step"]) - 1) if picked["side"] == "target" else int(picked["key"]) - 1
    return Place(stack.name, stack.n_layers, row)


def _middle(case: Case) -> int:
    own = own_pieces(case)
    return own[len(own) // 2]


def spelled_alike(one: str, other: str) -> bool:
    """Whether two pieces share how they are written: the first three letters, or a character of a script without.

    Args:
        one, other: As the tokenizer wrote them.
    """
    a, b = one.strip("▁").lower(), other.strip("▁").lower()
    if a.isascii() or b.isascii():
        return len(a) >= 3 and a[:3] == b[:3]
    if any("\u4e00" <= sign <= "\u9fff" for sign in a):
        return bool(set(a) & set(b))
    return a[:3] == b[:3]


def table_of(case: Case) -> np.ndarray:
    """The embeddings of the source's pieces [V, D]."""
    table: np.ndarray = case.checkpoint.model.src_table.detach().float().numpy()
    return table


PICKS: Final = (stream_row, first_norm, lens_step, source_token, longest_piece, top_neuron)
