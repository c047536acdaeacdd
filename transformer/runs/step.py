"""Records of a `Trace`: one decoding step, one decoder row, and one result of beam search."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from transformer.i18n import say

RuleChange = Literal["closed", "lowered", "raised"]
StopReason = Literal["end of sentence", "length limit", "no decoder"]
BY_STEPS = say(
    "With this change, what the decoder computes for a token also depends on later tokens. Each row of the maps "
    "was computed at its own step, when its token was still the last one, so reading the whole output in one pass "
    "would give different rows."
)
ROWS_BY_STEPS = say("each decoder row was computed at its own step")


@dataclass(frozen=True)
class RowLabel:
    """What a decoder row reads and what it predicts; None for padding, and where the next piece was given."""

    reads: str
    predicts: str | None

    def __str__(self) -> str:
        return f"{self.reads} → {self.predicts}" if self.predicts is not None else self.reads


@dataclass(frozen=True)
class Candidate:
    """A piece that a step could have chosen."""

    id: int  # which piece
    piece: str  # which piece
    probability: float  # under the model, 0 to 1
    log_probability: float  # under the model, in nats
    sampling_probability: float | None  # in the distribution that sampling drew from; None unless the query samples
    # What the rules of the model's config do to it at this step: "closed", it could not be chosen; "lowered" or
    # "raised", its score changed; None: nothing.
    rule: RuleChange | None
    chosen: bool  # whether it is in the output


@dataclass(frozen=True, eq=False)
class Step:
    """One decoding step."""

    index: int  # the step, from 0: it predicts target piece `index`
    label: RowLabel  # what its row reads and predicts
    candidates: tuple[Candidate, ...]  # the most probable pieces, best first; the chosen one is always among them
    entropy: float  # of the whole distribution, in bits
    rank: int  # rank of the chosen piece, 1 for the most probable
    forced: bool  # whether the choice was forced, by the query or by the model
    # Weights over the decoder's tokens so far [layer, head, token]; [0, 0, 0] if no maps are kept.
    decoder_rows: np.ndarray
    cross_rows: np.ndarray  # weights over the source [layer, head, source]; [0, 0, 0] also for a decoder-only model

    @property
    def chosen(self) -> Candidate:
        """The candidate that is in the output."""
        return next(c for c in self.candidates if c.chosen)


@dataclass(frozen=True)
class Ranked:
    """One result of beam search."""

    text: str
    ids: tuple[int, ...]
    log_prob: float
    score: float
    stop_reason: StopReason
