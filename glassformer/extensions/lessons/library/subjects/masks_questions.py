"""Questions about masks: causal mask and padding mask, what moves without them, and which fill closes a key.

Picks: which rows, tokens and keys a lesson about masks looks at. Rows, tokens, layers and heads count from 1.

Source: Vaswani et al. (2017), section 3.2.3.
"""

from typing import Any, Final

import numpy as np
import torch

from glassformer.extensions.lessons.library.lesson import (
    Answer,
    Case,
    QuestionNotApplicable,
    Refusal,
    amount,
    largest,
    numbered,
    only_rounding,
    refuse_if,
)
from transformer.analysis.mask_checks import (
    Movement,
    another_piece,
    batch_masks,
    check_causality,
    check_padding,
    record_attention,
)
from transformer.model.anatomy import anatomy
from transformer.model.attention_scores import masked_softmax

LEAST_READ: Final = 3  # a row with one before it and one after it
PADS: Final = 4


def masked_row(case: Case) -> dict[str, Any]:
    """A row of the decoder with rows before it and after it."""
    n = positions_read(case)
    row = max(2, n // 2)
    return {"row": row, "n": n, "read": case.trace.read_tokens[row - 1]}


def replaced_token(case: Case) -> dict[str, Any]:
    """A token in the middle of what the decoder reads, and what is put in its place; as the page chooses both."""
    return exchanged(case, positions_read(case) // 2)


def exchanged(case: Case, at: int) -> dict[str, Any]:
    """What is said of a token that the decoder reads, at a place from 0, and of what is put in its place."""
    other = another_piece(case.trace, at, config=case.checkpoint.config)
    return {
        "place": at + 1,
        "n": positions_read(case),
        "piece": case.trace.read_tokens[at],
        "other": case.trace.vocabulary[other],
        "other_id": other,
    }


def pads_that_fit(case: Case) -> dict[str, Any]:
    """How many pads are appended to the source."""
    config, trace = case.checkpoint.config, case.trace
    parts = anatomy(config)
    refuse_if(not (parts.reads and parts.writes), Refusal.NEEDS_BOTH)
    refuse_if(config.pad_id is None, Refusal.NO_PADS)
    room = config.max_len - max(len(trace.src_ids), len(trace.read_ids))
    refuse_if(room < 1, Refusal.TOO_LONG)
    return {"pads": min(PADS, room)}


def closed_key(case: Case) -> dict[str, Any]:
    """A key that comes after its query and, were it not closed, would have much weight: in the first layer."""
    n = positions_read(case)
    config, trace = case.checkpoint.config, case.trace
    if config.mask_fill is not None:
        raise QuestionNotApplicable(
            "This model replaces the scores of closed keys with {fill:g} instead of adding −∞ to them.",
            fill=config.mask_fill,
        )
    found = record_attention(case.checkpoint.model, (trace.src_ids,), (trace.read_ids,), kind="decoder", layer=0)
    scores = found.scores[0]  # [H, T, T]
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True)).astype(np.float64)
    shares /= shares.sum(axis=-1, keepdims=True)  # as if all keys were open
    future = np.triu(np.ones((n, n), bool), k=1)
    future[0] = False  # the first row has but one open key, which takes all in any case
    head, query, key = np.unravel_index(largest(np.where(future, shares, -1.0)), shares.shape)
    return {
        "head": int(head) + 1,
        "query": int(query) + 1,
        "key": int(key) + 1,
        "key_piece": trace.read_tokens[key],
        "score": f"{scores[head, query, key]:.2f}".replace("-", "−"),
    }


def positions_read(case: Case) -> int:
    """How many tokens the decoder reads."""
    refuse_if(not anatomy(case.checkpoint.config).writes, Refusal.WRITES_NOTHING)
    n = len(case.trace.read_ids)
    refuse_if(n < LEAST_READ, Refusal.TOO_SHORT)
    return n


FILLS: Final = (-1.0, -10.0, -1e9)
FILL_WORDS: Final = ("one", "ten", "billion")


def keys_seen(case: Case) -> Answer:
    """How many positions a row of the decoder may see."""
    row, n = int(case.picked["row"]), int(case.picked["n"])
    masks = batch_masks(case.checkpoint.model, (case.trace.src_ids,), (case.trace.read_ids,))
    seen = int(masks.whole("causal")[0, row - 1].sum())
    numbers = {"itself": row, "before": row - 1, "all": n, "next": row + 1}
    right = next(word for word, k in numbers.items() if k == seen)
    return Answer(right, {"k": seen}, options=numbered(numbers))


def rows_moved(case: Case) -> Answer:
    """Which rows' logits move where a token is replaced."""
    at, moved = case.at("place"), _causality(case)
    before, beyond = float(moved.kept[:at].max()), moved.kept > moved.rounding
    refuse_if(not beyond[at + 1 :].any(), Refusal.NO_EFFECT)
    values = {"a": at + 1, "b": len(moved.kept), "kept": amount(before)}
    if not only_rounding(before, moved.rounding):
        return Answer("all", values, variant="open")
    return Answer("from", values, variant="closed")


def rows_moved_without_mask(case: Case) -> Answer:
    """Which rows' logits move where a token is replaced and no causal mask closes the future."""
    at, moved = case.at("place"), _causality(case)
    taken = float(moved.taken[:at].max())
    refuse_if(taken <= moved.rounding, Refusal.NO_EFFECT)
    return Answer("earlier", {"taken": amount(taken), "before": at})


def _causality(case: Case) -> Movement:
    ids, other = ((case.trace.src_ids,), (case.trace.read_ids,)), int(case.picked["other_id"])
    return check_causality(case.checkpoint.model, *ids, sentence=0, place=case.at("place"), piece_id=other)


def pads_move(case: Case) -> Answer:
    """How far pads after the source move the logits."""
    source = _padding(case)["source"]
    most = float(source.kept.max())
    right = "rounding" if only_rounding(most, source.rounding) else "visibly"
    return Answer(right, {"amount": amount(most)})


def sides_moved_without_mask(case: Case) -> Answer:
    """On which side pads move the logits where nothing closes padding."""
    found = _padding(case)
    moves = {side: not only_rounding(float(one.taken.max()), one.rounding) for side, one in found.items()}
    refuse_if(not moves["source"], Refusal.NO_EFFECT)
    right = "both" if moves["target"] else "source"
    return Answer(right, {side: amount(float(one.taken.max())) for side, one in found.items()})


def _padding(case: Case) -> dict[str, Movement]:
    trace, n_pads = case.trace, int(case.picked["pads"])
    found = check_padding(case.checkpoint.model, trace.src_ids, trace.read_ids, n_pads=n_pads)
    assert found.source is not None  # the pick has asked for both stacks
    assert found.target is not None
    return {"source": found.source, "target": found.target}


def closed_weight(case: Case) -> Answer:
    """What a closed key weighs."""
    scores, mask, weights = _row(case)
    key = case.at("key")
    right = "zero" if weights[key] == 0 else "tiny"
    would = float(torch.tensor(scores).softmax(-1)[key])  # were it open
    return Answer(right, {"w": float(weights[key]), "open": would, "keys": int(mask.sum())})


def fill_that_closes(case: Case) -> Answer:
    """Which number in the place of −∞ leaves closed keys no weight at all."""
    scores, mask, _ = _row(case)
    left = {word: _left(scores, mask, fill) for word, fill in zip(FILL_WORDS, FILLS, strict=True)}
    right = next((word for word, share in left.items() if share == 0), "none")
    return Answer(right, {"left_one": left["one"], "left_ten": amount(left["ten"]), "left_billion": left["billion"]})


def _row(case: Case) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores, mask and weights [K] of the row that was picked, in the first layer."""
    trace, picked = case.trace, case.picked
    found = record_attention(case.checkpoint.model, (trace.src_ids,), (trace.read_ids,), kind="decoder", layer=0)
    where = (0, int(picked["head"]) - 1, int(picked["query"]) - 1)
    return found.scores[where], found.mask[where], found.weights[where]


def _left(scores: np.ndarray, mask: np.ndarray, fill: float) -> float:
    """How much weight the closed keys of a row have together when their scores are a number."""
    weights = masked_softmax(torch.from_numpy(scores), torch.from_numpy(mask), fill=fill)
    return float(weights[~torch.from_numpy(mask)].sum())
