"""A trace: everything that one run did, as plain arrays and labels.

The output is decoded at full speed with a KV cache and nothing recorded. Then one teacher-forced pass reads the
finished output with a recording tap: the causal mask makes row t of every decoder map what step t saw.

Row labels. Step t (from 0) predicts target piece t. The decoder row it comes from reads target piece t - 1 (the
start piece at step 0). Every label of a decoder row names both.

Axes: maps are [layer, head, query, key]; steps are rows of the decoder's maps.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Literal

import numpy as np
import pandas as pd
import torch

from transformer.errors import QueryError
from transformer.runs.decoding import sampling_distribution
from transformer.runs.query import Query, Sampling

Kind = Literal["encoder", "decoder", "cross"]
StopReason = Literal["end of sentence", "length limit"]


@dataclass(frozen=True)
class RowLabel:
    """What a decoder row reads and what it predicts; None where the row is padding or predicts nothing."""

    reads: str
    predicts: str | None

    def __str__(self) -> str:
        return f"{self.reads} → {self.predicts}" if self.predicts is not None else self.reads


@dataclass(frozen=True)
class Candidate:
    """A piece that a step could choose.

    Attributes:
        id, piece: Which piece.
        probability: Under the model, 0 to 1.
        log_probability: Under the model, in nats.
        sampling_probability: In the distribution that sampling drew from; None unless the query samples.
        chosen: Whether the output has it.
    """

    id: int
    piece: str
    probability: float
    log_probability: float
    sampling_probability: float | None
    chosen: bool


@dataclass(frozen=True, eq=False)
class Step:
    """One decoding step.

    Attributes:
        index: The step, from 0: it predicts target piece `index`.
        label: What its row reads and predicts.
        candidates: The most probable pieces, best first; the chosen one is always among them.
        entropy: Of the whole distribution, in bits.
        rank: Place of the chosen piece, 1 for the most probable.
        forced: Whether the query forced the choice.
        decoder_rows: Weights over the decoder's tokens so far [layer, head, index + 1].
        cross_rows: Weights over the source [layer, head, source].
    """

    index: int
    label: RowLabel
    candidates: tuple[Candidate, ...]
    entropy: float
    rank: int
    forced: bool
    decoder_rows: np.ndarray
    cross_rows: np.ndarray

    @property
    def chosen(self) -> Candidate:
        """The candidate that the output has."""
        return next(c for c in self.candidates if c.chosen)


@dataclass(frozen=True)
class Ranked:
    """One of the results of beam search."""

    text: str
    ids: tuple[int, ...]
    log_prob: float
    score: float
    stop_reason: StopReason


@dataclass(frozen=True, eq=False)
class Trace:
    """One run. Its arrays are read-only.

    Attributes:
        query: What was asked for.
        checkpoint: Name of the checkpoint.
        notes: What a reader should know: text that was converted, unknown pieces, an output that was cut.
        source_text: The source after the checkpoint's normalisation.
        src_ids, src_pieces: What the encoder read, special pieces and (in a batch) padding included.
        tgt_ids, tgt_pieces: The output, the end piece included if it ended.
        read_ids, read_pieces: What the decoder read: the start piece, the output without its last piece, and (in a
            batch) padding.
        texts: The output as text after each step.
        stop_reason: Why decoding stopped.
        log_prob: Of the output under the model, in nats.
        log_probs: Log-probabilities [step, tgt_vocab], in nats, float32.
        encoder_self, decoder_self, cross: Attention weights [layer, head, query, key], float32;
            [layer, head, 0, 0] if the run kept none.
        encoder_mask, decoder_mask, cross_mask: Bool [query, key] as used; True = may attend.
        hypotheses: Beam search's results, best first; empty for the other ways of decoding.
        vocabulary: The target's pieces by id.
        pad_id: The padding piece, which is never written.
        seconds: How long the run took; not part of equality.
    """

    query: Query
    checkpoint: str
    notes: tuple[str, ...]
    source_text: str
    src_ids: tuple[int, ...]
    src_pieces: tuple[str, ...]
    tgt_ids: tuple[int, ...]
    tgt_pieces: tuple[str, ...]
    read_ids: tuple[int, ...]
    read_pieces: tuple[str, ...]
    texts: tuple[str, ...]
    stop_reason: StopReason
    log_prob: float
    log_probs: np.ndarray
    encoder_self: np.ndarray
    decoder_self: np.ndarray
    cross: np.ndarray
    encoder_mask: np.ndarray
    decoder_mask: np.ndarray
    cross_mask: np.ndarray
    hypotheses: tuple[Ranked, ...]
    vocabulary: tuple[str, ...]
    pad_id: int
    seconds: float

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False  # many sessions look at one trace

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Trace):
            return NotImplemented
        names = (field.name for field in fields(self) if field.name != "seconds")
        return all(_same(getattr(self, name), getattr(other, name)) for name in names)

    __hash__ = None  # type: ignore[assignment]

    @property
    def n_steps(self) -> int:
        """Number of steps, one a target piece."""
        return len(self.tgt_ids)

    @property
    def output_text(self) -> str:
        """The whole output as text."""
        return self.texts[-1]

    @property
    def nbytes(self) -> int:
        """Memory of the arrays, in bytes."""
        values = (getattr(self, field.name) for field in fields(self))
        return sum(value.nbytes for value in values if isinstance(value, np.ndarray))

    def maps(self, kind: Kind) -> np.ndarray:
        """Attention weights of one kind, [layer, head, query, key]."""
        return {"encoder": self.encoder_self, "decoder": self.decoder_self, "cross": self.cross}[kind]

    def mask(self, kind: Kind) -> np.ndarray:
        """The mask of one kind as used, bool [query, key]; True = may attend."""
        return {"encoder": self.encoder_mask, "decoder": self.decoder_mask, "cross": self.cross_mask}[kind]

    def row_label(self, row: int) -> RowLabel:
        """What a decoder row reads and predicts; rows after the last step are a batch's padding."""
        return RowLabel(self.read_pieces[row], self.tgt_pieces[row] if row < self.n_steps else None)

    def row_labels(self) -> tuple[RowLabel, ...]:
        """The labels of all decoder rows, in order."""
        return tuple(self.row_label(row) for row in range(len(self.read_pieces)))

    def entropies(self) -> np.ndarray:
        """Entropy of the next piece at every step, in bits, [step]."""
        return self._entropies

    @cached_property
    def _entropies(self) -> np.ndarray:
        entropies = np.array([_entropy(row) for row in self.log_probs])
        entropies.flags.writeable = False
        return entropies

    def step(self, index: int, *, top_k: int = 10) -> Step:
        """All that belongs to one step.

        Args:
            index: The step, 0 to n_steps - 1.
            top_k: Candidates to list; the chosen piece is added if it is not among them.

        Raises:
            QueryError: There is no such step.
        """
        if not 0 <= index < self.n_steps:
            raise QueryError(f"step {index} does not exist; this run has steps 0 to {self.n_steps - 1}.")
        chosen = self.tgt_ids[index]
        rank = self.rank_of(chosen, step=index)
        listed = _best(self.log_probs[index], top_k)
        if rank > top_k:
            listed.append(chosen)
        return Step(
            index=index,
            label=self.row_label(index),
            candidates=self._candidates(index, listed),
            entropy=float(self._entropies[index]),
            rank=rank,
            forced=index < len(self.query.forced),
            decoder_rows=self.decoder_self[:, :, index, : index + 1],
            cross_rows=self.cross[:, :, index, :],
        )

    def rank_of(self, piece_id: int, *, step: int) -> int:
        """The place of a piece among the candidates of a step, 1 for the most probable; ties go by id."""
        row = self.log_probs[step]
        return int((row > row[piece_id]).sum() + (row[:piece_id] == row[piece_id]).sum()) + 1

    def to_frame(self) -> pd.DataFrame:
        """One row a step: what it read and predicted, how probable that was, and how sure the model was."""
        steps = [self.step(t, top_k=1) for t in range(self.n_steps)]
        return pd.DataFrame(
            {
                "step": [s.index for s in steps],
                "reads": [s.label.reads for s in steps],
                "predicts": [s.label.predicts for s in steps],
                "id": list(self.tgt_ids),
                "probability": [s.chosen.probability for s in steps],
                "log_probability": [s.chosen.log_probability for s in steps],
                "rank": [s.rank for s in steps],
                "entropy_bits": [s.entropy for s in steps],
                "forced": [s.forced for s in steps],
                "text": list(self.texts),
            }
        )

    def _candidates(self, index: int, ids: Sequence[int]) -> tuple[Candidate, ...]:
        row = self.log_probs[index]
        drawn = self._sampling_row(index)
        return tuple(
            Candidate(
                id=i,
                piece=self.vocabulary[i],
                probability=float(np.exp(row[i])),
                log_probability=float(row[i]),
                sampling_probability=None if drawn is None else float(drawn[i]),
                chosen=i == self.tgt_ids[index],
            )
            for i in ids
        )

    def _sampling_row(self, index: int) -> np.ndarray | None:
        decoding = self.query.decoding
        if not isinstance(decoding, Sampling):
            return None
        log_probs = torch.tensor(self.log_probs[index])
        log_probs[self.pad_id] = -torch.inf
        probs = sampling_distribution(
            log_probs,
            temperature=decoding.temperature,
            top_k=decoding.top_k,
            top_p=decoding.top_p,
        )
        return probs.numpy()


def _best(log_probs: np.ndarray, k: int) -> list[int]:
    """The k most probable ids of a distribution [tgt_vocab], best first, without sorting all of it."""
    least = -np.partition(-log_probs, k - 1)[k - 1] if k < len(log_probs) else -np.inf
    among = np.flatnonzero(log_probs >= least)
    order = np.argsort(-log_probs[among], kind="stable")[:k]
    return [int(i) for i in among[order]]


def _entropy(log_probs: np.ndarray) -> float:
    """Entropy of one distribution [tgt_vocab] in bits, from 0; a piece of probability 0 adds nothing."""
    precise = log_probs.astype(np.float64)
    probs = np.exp(precise)
    return abs(float((probs * np.where(probs > 0, precise, 0.0)).sum()) / np.log(2))


def _same(a: object, b: object) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.shape == b.shape and a.dtype == b.dtype and np.array_equal(a, b)
    return bool(a == b)
