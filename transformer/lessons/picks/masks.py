"""Which rows, tokens and keys a lesson about masks looks at. Rows, tokens, layers and heads count from 1."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from transformer.analysis.another_piece import another_piece
from transformer.analysis.mask_checks import record_attention
from transformer.lessons.case import Case, NotHere
from transformer.model.anatomy import anatomy
from words import say_n

LEAST_READ: Final = 3
"""A row with one before it and one after it."""

PADS: Final = 4


def masked_row(case: Case) -> dict[str, Any]:
    """A row of the decoder with rows before it and after it."""
    n = positions_read(case)
    row = max(2, n // 2)
    return {"row": row, "n": n, "read": case.trace.read_pieces[row - 1]}


def replaced_token(case: Case) -> dict[str, Any]:
    """A token in the middle of what the decoder reads, and what is put in its place; as the page chooses both."""
    return exchanged(case, positions_read(case) // 2)


def exchanged(case: Case, at: int) -> dict[str, Any]:
    """What is said of a token that the decoder reads, at a place from 0, and of what is put in its place."""
    other = another_piece(case.trace, at, config=case.checkpoint.config)
    return {
        "place": at + 1,
        "n": positions_read(case),
        "piece": case.trace.read_pieces[at],
        "other": case.trace.vocabulary[other],
        "other_id": other,
    }


def pads_that_fit(case: Case) -> dict[str, Any]:
    """How many pads are put behind the source."""
    config, trace = case.checkpoint.config, case.trace
    parts = anatomy(config)
    if not (parts.reads and parts.writes):
        raise NotHere("This model has one stack alone; the step needs a source and a target to pad.")
    if config.pad_id is None:
        raise NotHere("This model has no padding piece, so no batch of it is ever padded.")
    room = config.max_len - max(len(trace.src_ids), len(trace.read_ids))
    if room < 1:
        raise NotHere("This sentence fills all the {n} positions that the model has; try a shorter one.",
                      n=config.max_len)  # fmt: skip
    return {"pads": min(PADS, room)}


def closed_key(case: Case) -> dict[str, Any]:
    """A key that comes after its query and, were it not closed, would have much weight: in the first layer."""
    n = positions_read(case)
    config, trace = case.checkpoint.config, case.trace
    if config.mask_fill is not None:
        raise NotHere("This model puts {fill:g} in the place of closed scores; it adds no −∞.", fill=config.mask_fill)
    found = record_attention(case.checkpoint.model, (trace.src_ids,), (trace.read_ids,), kind="decoder", layer=0)
    scores = found.scores[0]  # [H, T, T]
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True)).astype(np.float64)
    shares /= shares.sum(axis=-1, keepdims=True)  # as if all keys were open
    future = np.triu(np.ones((n, n), bool), k=1)
    future[0] = False  # the first row has but one open key, which takes all in any case
    head, query, key = np.unravel_index(np.where(future, shares, -1.0).argmax(), shares.shape)
    return {
        "head": int(head) + 1,
        "query": int(query) + 1,
        "key": int(key) + 1,
        "key_piece": trace.read_pieces[key],
        "score": f"{scores[head, query, key]:.2f}".replace("-", "−"),
    }


def positions_read(case: Case) -> int:
    """How many tokens the decoder reads.

    Args:
        case: The run.

    Raises:
        NotHere: There is no decoder, or there are too few.
    """
    if not anatomy(case.checkpoint.config).writes:
        raise NotHere("This model is an encoder alone; it has no causal mask.")
    n = len(case.trace.read_ids)
    if n < LEAST_READ:
        raise NotHere(
            say_n(
                "The decoder reads {n} token here, and this step needs {least}; try a longer sentence.",
                "The decoder reads {n} tokens here, and this step needs {least}; try a longer sentence.",
                n,
                least=LEAST_READ,
            )
        )
    return n


PICKS: Final = (masked_row, replaced_token, pads_that_fit, closed_key)
