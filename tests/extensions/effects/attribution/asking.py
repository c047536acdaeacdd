"""What the tests of this folder ask about: tiny models in float64, which read drawn ids."""

from typing import Any

import torch

from glassformer.extensions.effects.attribution.target import AttributionTarget
from tests.transformer.tiny import random_ids, tiny_model
from transformer.model.taps import NO_TAP, Replacer, Tap


def asked(
    *, n_source: int = 5, n_read: int = 4, piece: int = 7, tap: Tap = NO_TAP, **changes: Any
) -> AttributionTarget:
    """One question about a tiny model; of an encoder alone, about its third token."""
    model = tiny_model(**changes)
    read = random_ids(1, n_read, seed=1)
    if model.anatomy.reads:
        read[:, 0] = 2
    return AttributionTarget(model, random_ids(1, n_source), read, piece, n_source if model.anatomy.reads else 0, tap,
                             place=None if model.anatomy.writes else 2)  # fmt: skip


def steps(whole: AttributionTarget, pieces: list[int], *, first_row: int = 0) -> list[AttributionTarget]:
    """The steps of a run that read all of it, the first of which predicts from a row."""
    return [
        AttributionTarget(
            whole.model, whole.src_ids, whole.read_ids[:, : first_row + n + 1], piece, whole.n_source, whole.tap
        )
        for n, piece in enumerate(pieces)
    ]


def with_gradient(question: AttributionTarget, site: str, of: Any = lambda logits: logits) -> tuple[torch.Tensor, ...]:
    """What a site had, and the gradient of what the logits of the piece come to by it."""
    kept = {}

    def keep(value: torch.Tensor) -> torch.Tensor:
        kept[site] = value.detach().clone().requires_grad_(True)
        return kept[site]

    with torch.enable_grad():
        of(question.logits(tap=question.tap.also(Replacer({site: keep}, causal=True))))[0, question.piece].backward()
    return kept[site].detach()[0], kept[site].grad[0]
