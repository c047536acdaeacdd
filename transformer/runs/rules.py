"""Decoding rules of a config (banned ids, n-grams, lengths), as logits processors.

A rule closes pieces or changes their scores. It never changes the model's own log-probabilities, which a run keeps
separately. The rules apply in this order, each to the result of the one before:

    repetition penalty   logit z of a piece that is in the text: z / c above 0, z c below
    runs of n pieces     a piece is closed if it would complete one that is in the text
    banned               ids, and the last id of a run if the text ends with the others
    too short            the ends are closed
    the last place       all but the forced end are closed
    insisted             if a change of the run insists on a piece, all others are closed

Source: `transformer.model.config_fields` names it; the order is that of transformers 5.23, whose greedy outputs the
tests compare.

Shapes: V target vocabulary.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from transformer.errors import QueryError
from transformer.model.config import ModelConfig


def ban(log_probs: Tensor, ids: Sequence[int]) -> Tensor:
    """Close pieces that are never written, in place: [..., V] with -inf at each of `ids`."""
    if ids:
        log_probs[..., list(ids)] = -torch.inf
    return log_probs


@dataclass(frozen=True)
class Rules:
    """The rules of one output."""

    config: ModelConfig  # of the model
    n_prompt: int  # tokens before the output: the start piece, or the prompt
    most: int  # most pieces that can be written
    # Pieces that a change of the run insists on, by their places in the output, from 0.
    insisted: Mapping[int, int] = field(default_factory=dict)

    @property
    def any(self) -> bool:
        """Whether a choice depends on the text before it, or on its place."""
        return self.config.has_rules or bool(self.insisted)

    def scores(self, log_probs: Tensor, text: Sequence[int], log_sum: float) -> Tensor:
        """The scores of a choice [V]: the model's own log-probabilities, some lowered, and -inf for a closed piece.

        Their probabilities need not sum to 1. The text is the start piece or the prompt, then the output so far;
        `log_sum` is logits minus log-probabilities.
        """
        config, own = self.config, log_probs.clone()
        if config.repetition_penalty != 1.0:
            _lower(own, sorted(set(text)), config.repetition_penalty, log_sum)
        ban(own, [*config.never_written, *self._closed(text)])
        only = self.only_at(len(text) - self.n_prompt)
        if only is not None:
            own.fill_(-torch.inf)[only] = log_probs[only]
        return own

    def all_scores(self, log_probs: Tensor, text: Sequence[int], log_sums: Tensor) -> Tensor:
        """The same for every step of an output [T, V], by what the model computed over the whole text."""
        if not self.any:
            return ban(log_probs.clone(), self.config.never_written)
        rows = [
            self.scores(row, text[: self.n_prompt + step], float(log_sum))
            for step, (row, log_sum) in enumerate(zip(log_probs, log_sums, strict=True))
        ]
        return torch.stack(rows) if rows else log_probs

    def only_at(self, place: int) -> int | None:
        """The only piece that can be chosen at a place of the output, from 0: one insisted on, or the forced end."""
        if place in self.insisted:
            return self.insisted[place]
        return self.config.forced_end_id if place == self.most - 1 else None

    def _closed(self, text: Sequence[int]) -> Iterator[int]:
        config, written = self.config, len(text) - self.n_prompt
        if config.no_repeat_ngram:
            yield from _repeating(text, config.no_repeat_ngram)
        for sequence in config.banned_sequences:
            before = len(sequence) - 1
            if text[-1] == sequence[-2] and tuple(text[-before:]) == sequence[:-1]:
                yield sequence[-1]
        if len(text) < config.min_length or written < config.min_new:
            yield from config.end_ids
        if written == len(config.forced_ids):
            yield from config.first_banned_ids


def _lower(log_probs: Tensor, ids: Sequence[int], penalty: float, log_sum: float) -> None:
    """Divide or multiply some logits, in place."""
    logits = log_probs[ids] + log_sum
    log_probs[ids] = torch.where(logits < 0, logits * penalty, logits / penalty) - log_sum


def _repeating(text: Sequence[int], n: int) -> Iterator[int]:
    """The pieces that would complete a run of n that the text already has."""
    before = tuple(text[len(text) - n + 1 :])
    for start in range(len(text) - n + 1):
        if tuple(text[start : start + n - 1]) == before:
            yield text[start + n - 1]


def scores_of(log_probs: Tensor, texts: Tensor, log_sums: Tensor, rules: Sequence[Rules]) -> Tensor:
    """The scores of a batch's choices [B, V]; if only ids are banned, the log-probabilities, changed in place."""
    if not rules[0].any:
        return ban(log_probs, rules[0].config.never_written)
    rows = zip(log_probs, texts.tolist(), log_sums.tolist(), rules, strict=True)
    return torch.stack([rule.scores(row, text, log_sum) for row, text, log_sum, rule in rows])


def check_open(scores: Tensor) -> Tensor:
    """Check that every row [B, V] has a piece left to choose; a QueryError if all pieces of a row are closed."""
    if bool((scores.amax(dim=-1) == -torch.inf).any()):
        raise QueryError(
            "At one step, the rules in this model's config (no_repeat_ngram, banned_ids, min_length and others) "
            "rule out every token, so none can be chosen. Lower the maximum output length, or change the rules in "
            "config.json."
        )
    return scores
