"""Faults that a lesson plants into the learner's own checkpoint, and what is seen of them.

Each is a change that the app carries out, too, so that what a question tells was computed of the learner's sentence.
Tokens and rows count from 1.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

import numpy as np
import torch

from transformer.analysis.another_piece import another_piece
from transformer.lessons.case import Case, NotHere
from transformer.lessons.picks.masks import exchanged, positions_read
from transformer.model.tap import Tap
from transformer.runs.changing import tap_for
from transformer.runs.interventions import CausalMask, Intervention, Replace
from transformer.runs.interventions.pieces import own_places

MASK_FAULTS: Final[dict[str, tuple[Intervention, ...]]] = {
    "none": (),
    "off": (CausalMask("off"),),
    "inverted": (CausalMask("inverted"),),
    "peek": (CausalMask("peek"),),
}
"""What may be wrong with the causal mask. Of those that look alike in a short output the first one is planted."""

LEAST_ROWS: Final = 4
MOST_REPLACED: Final = 40


def wrong_heads(case: Case) -> dict[str, Any]:
    """A number of heads that the checkpoint was not trained with."""
    config = case.checkpoint.config
    told = 1 if config.n_heads > 1 else next((n for n in (2, 4, 3) if config.d_head % n == 0), 1)
    if told == config.n_heads or config.n_kv_heads != config.n_heads or config.n_decoder_heads:
        raise NotHere("The heads of this model cannot be cut in another way; choose another checkpoint.")
    return {"told": told, "own": config.n_heads}


def mask_evidence(case: Case) -> dict[str, Any]:
    """Which rows move when a token is replaced, under a mask that a fault may have been planted in."""
    n = positions_read(case)
    if n < LEAST_ROWS:
        raise NotHere("The output is too short to tell one fault from another; try a longer sentence.")
    at = n - 2
    seen = {name: _span(_rows_moved(case, at, *changes)) for name, changes in MASK_FAULTS.items()}
    spans = {span: name for name, span in reversed(seen.items()) if span}  # the first of those that look alike
    apart = [name for name in MASK_FAULTS if name in spans.values()]
    if len(apart) < 3 or seen["none"] != (at + 1, n):
        raise NotHere("Different faults look alike in this model; try a longer sentence.")
    planted = apart[hashlib.sha256(case.trace.query.to_json().encode()).digest()[0] % len(apart)]
    first, last = next(span for span, name in spans.items() if name == planted)
    return exchanged(case, at) | {"a": first, "b": last, "planted": planted, "apart": apart}


@torch.inference_mode()
def _rows_moved(case: Case, at: int, *changes: Intervention) -> np.ndarray:
    """Which rows of the decoder give other logits when the token at a place, from 0, is another one; bool [T]."""
    checkpoint, trace = case.checkpoint, case.trace
    tap = tap_for(changes, checkpoint)
    read = list(trace.read_ids)
    before = _logits(case, read, tap)
    read[at] = another_piece(trace, at, config=checkpoint.config)
    moved: np.ndarray = (before != _logits(case, read, tap)).any(axis=-1)
    return moved


def _logits(case: Case, read: list[int], tap: Tap) -> np.ndarray:
    logits: torch.Tensor = case.checkpoint.model(torch.tensor([case.trace.src_ids]), torch.tensor([read]), tap=tap)
    return logits[0].numpy()


def _span(rows: np.ndarray) -> tuple[int, int] | None:
    """The first and the last row that moved, from 1; None if there is none, or one between them did not."""
    places = np.flatnonzero(rows)
    if not len(places) or len(places) != places[-1] - places[0] + 1:
        return None
    return int(places[0]) + 1, int(places[-1]) + 1


def shifted_pieces(case: Case) -> dict[str, Any]:
    """Every piece of the source as its neighbour in the vocabulary: as if one piece had been added in front."""
    config, trace = case.checkpoint.config, case.trace
    places, tokenizer = own_places(trace.src_ids, config), case.checkpoint.src_tokenizer
    if not 0 < len(places) <= MOST_REPLACED:
        raise NotHere("This step replaces each piece of the source; try a sentence with 1 to {most} of them.",
                      most=MOST_REPLACED)  # fmt: skip
    ids = [_neighbour(trace.src_ids[place], config.src_vocab_size, tokenizer.is_special) for place in places]
    changes = tuple(Replace(place, piece) for place, piece in zip(places, ids, strict=True))
    return {
        "first": trace.src_pieces[places[0]],
        "instead": tokenizer.piece(ids[0]),
        "changes": changes,
    }


def _neighbour(piece_id: int, size: int, is_special: Any) -> int:
    """The next ordinary piece of a vocabulary; after the last one the first."""
    for step in range(1, size):
        other = (piece_id + step) % size
        if not is_special(other):
            return other
    return piece_id


PICKS: Final = (wrong_heads, mask_evidence, shifted_pieces)
