"""Which cross-attention a lesson looks at: a head, a step and a source token. All count from 1."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from transformer.analysis.worth_seeing import hardest_step as least_sure
from transformer.lessons.case import Case, NotHere
from transformer.lessons.picks.steps import written
from transformer.model.anatomy import anatomy


def copying_first(case: Case) -> dict[str, Any]:
    """The first step, in the head of the cross-attention that is surest where to look."""
    return _at_step(case, 1)


def copying_second(case: Case) -> dict[str, Any]:
    """The same head at the second step."""
    return _at_step(case, 2)


def looked_at(case: Case) -> dict[str, Any]:
    """The step at which the model was least sure, and the piece of the text that it weighs most there."""
    weights = cross_maps(case)
    at = least_sure(case.trace.entropies(), range(written(case, least=2)))
    own = own_pieces(case)
    row = weights.mean(axis=(0, 1))[at]  # [key]
    key = max(own, key=lambda place: (float(row[place]), -place))
    return {
        "step": at + 1,
        "piece": case.trace.tgt_pieces[at],
        "key": key + 1,
        "looked": case.trace.src_pieces[key],
        "n_heads": weights.shape[0] * weights.shape[1],
    }


def cross_maps(case: Case) -> np.ndarray:
    """The weights of the cross-attention, [layer, head, step, key], without a batch's padding.

    Raises:
        NotHere: The model has none, or the run keeps no maps.
    """
    trace = case.trace
    if "cross" not in anatomy(case.checkpoint.config).kinds:
        raise NotHere("This model has no cross-attention; choose one with an encoder and a decoder.")
    if not trace.keeps_maps:
        raise NotHere("The maps of this run are too large to be kept; try a shorter sentence.")
    return trace.maps("cross")[:, :, : trace.n_steps, : trace.n_tokens("encoder")]


def own_pieces(case: Case) -> tuple[int, ...]:
    """The places of the source that hold text, from 0.

    Raises:
        NotHere: Only special pieces were read.
    """
    trace, tokenizer = case.trace, case.checkpoint.src_tokenizer
    places = range(trace.n_tokens("encoder"))
    own = tuple(place for place in places if not tokenizer.is_special(trace.src_ids[place]))
    if not own:
        raise NotHere("The source has no piece of text; type a sentence.")
    return own


def _at_step(case: Case, step: int) -> dict[str, Any]:
    written(case, least=step)
    weights = cross_maps(case)
    sure = weights.max(axis=-1).mean(axis=-1)  # [layer, head]
    layer, head = np.unravel_index(int(sure.argmax()), sure.shape)
    return {"step": step, "layer": int(layer) + 1, "head": int(head) + 1, "piece": case.trace.tgt_pieces[step - 1]}


PICKS: Final = (copying_first, copying_second, looked_at)
