"""Sentence pairs: read, turned into ids, and put into batches of similar length.

A training file holds one pair a line, `source TAB target`, UTF-8. A batch holds about the same number of target
tokens whatever its length, so that every step costs the same; rows of similar length share a batch, so that little
of it is padding; and lengths are rounded up, so that few different shapes occur (each new one costs a CPU time).

Shapes: B pairs, S source tokens, T target tokens.
"""

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from transformer.errors import ConfigError, DataError
from transformer.model.config import ModelConfig
from transformer.text.normalise import normalise
from transformer.text.tokenizer import AnyTokenizer, Tokenizer
from transformer.training.corpus import read_lines
from words import say_n

Pair = tuple[str, str]
LENGTH_STEP = 2


@dataclass(frozen=True)
class Example:
    """One pair as ids: the source with its end piece (if the config wants one), the target with its end piece."""

    src: tuple[int, ...]
    tgt: tuple[int, ...]


@dataclass(frozen=True)
class Batch:
    """Padded ids."""

    src: Tensor  # what the encoder reads [B, S]
    tgt_in: Tensor  # what the decoder reads [B, T], beginning with the start id
    tgt_out: Tensor  # what it is to predict [B, T]
    n_tokens: int = 0  # real tokens in `tgt_out`

    def to(self, device: torch.device) -> "Batch":
        """The same batch on another device."""
        return Batch(self.src.to(device), self.tgt_in.to(device), self.tgt_out.to(device), self.n_tokens)


def read_pairs(path: Path) -> list[Pair]:
    """Read a file of `source TAB target` lines; empty lines are skipped.

    A `DataError` as of `read_lines`, or where the file is empty, or a line has no or more than one tab.
    """
    return [pair for _, pair in read_numbered_pairs(path)]


def read_numbered_pairs(path: Path) -> list[tuple[int, Pair]]:
    """The same, each pair with the line that it stands in, from 1."""
    pairs = []
    for number, columns in read_lines([path]):
        if not any(column.strip() for column in columns):
            continue
        if len(columns) != 2 or not columns[0].strip() or not columns[1].strip():
            raise DataError(
                say_n(
                    "{file}, line {number}: expected `source TAB target`, found {n} column.",
                    "{file}, line {number}: expected `source TAB target`, found {n} columns.",
                    len(columns),
                    file=str(path),
                    number=number,
                )
            )
        pairs.append((number, (columns[0].strip(), columns[1].strip())))
    if not pairs:
        raise DataError("{file}: contains no pairs.", file=str(path))
    return pairs


def encode_source(text: str, tokenizer: AnyTokenizer, config: ModelConfig) -> tuple[int, ...]:
    """A source text as the ids that the encoder reads."""
    ids = tokenizer.encode(normalise(text, config.normalisation)).ids
    return (*config.source_start, *ids, *config.source_end)


def encode_pairs(pairs: Sequence[Pair], src: AnyTokenizer, tgt: AnyTokenizer, config: ModelConfig) -> list[Example]:
    """All pairs that fit into `max_len` on both sides."""
    return _fitting(
        (
            Example(encode_source(source, src, config), (*tgt.encode(target).ids, config.eos_id))
            for source, target in pairs
        ),
        config,
    )


def _fitting(examples: Iterable[Example], config: ModelConfig) -> list[Example]:
    return [one for one in examples if max(len(one.src), len(one.tgt)) <= config.max_len]


def sample_pairs(
    pairs: Sequence[Pair], src: Tokenizer, tgt: Tokenizer, config: ModelConfig, *, alpha: float, seed: int
) -> list[Example]:
    """All pairs that fit, split into pieces by chance (see `Sampler.draw`).

    The same seed gives the same splits, in any process and whatever else was drawn before. A `TokenizerError` where a
    vocabulary has one split only for each text.
    """
    rng = random.Random(seed)
    src_sampler, tgt_sampler = src.sampler(), tgt.sampler()

    def drawn(source: str, target: str) -> Example:
        ids = src_sampler.draw(normalise(source, config.normalisation), alpha=alpha, rng=rng)
        written = tgt_sampler.draw(target, alpha=alpha, rng=rng)
        return Example((*config.source_start, *ids, *config.source_end), (*written, config.eos_id))

    return _fitting((drawn(*pair) for pair in pairs), config)


class Batches:
    """The batches of one epoch after another, each epoch in an order of its own.

    `draw` gives the examples of an epoch by its number from 0: the same ones in any process. `batch_tokens` are of
    the target, padding included. `seed` decides every order; epoch n is the same whether or not those before it were
    drawn.
    """

    def __init__(self, draw: Callable[[int], Sequence[Example]], *, batch_tokens: int, seed: int) -> None:
        self._draw, self._batch_tokens, self._seed = draw, batch_tokens, seed

    def epoch(self, number: int) -> list[list[Example]]:
        """The groups of epoch `number`, shuffled."""
        rng = np.random.default_rng((self._seed, number))
        examples = self._draw(number)
        shuffled = [examples[i] for i in rng.permutation(len(examples))]
        # A stable sort keeps the shuffled order among pairs of one shape: groups differ from epoch to epoch.
        shuffled.sort(key=lambda e: (_rounded(len(e.tgt)), _rounded(len(e.src))))
        groups = self._cut(shuffled)
        return [groups[i] for i in rng.permutation(len(groups))]

    def _cut(self, ordered: Sequence[Example]) -> list[list[Example]]:
        groups: list[list[Example]] = []
        start = 0
        while start < len(ordered):
            longest = _rounded(len(ordered[start].tgt))
            size = max(self._batch_tokens // longest, 1)
            group = [e for e in ordered[start : start + size] if _rounded(len(e.tgt)) == longest]
            groups.append(group)
            start += len(group)
        return groups


def make_batch(group: Sequence[Example], config: ModelConfig) -> Batch:
    """Pad the pairs of a group to common, rounded lengths."""
    src = _padded([e.src for e in group], config)
    tgt_out = _padded([e.tgt for e in group], config)
    start = torch.full((len(group), 1), config.decoder_start_id)
    tgt_in = torch.cat((start, tgt_out[:, :-1]), dim=1)
    return Batch(src, tgt_in, tgt_out, sum(len(e.tgt) for e in group))


def _padded(rows: Sequence[Sequence[int]], config: ModelConfig) -> Tensor:
    width = min(_rounded(max(len(row) for row in rows)), config.max_len)
    if config.pad_id is None:
        raise ConfigError("pad_id", "is null; training pads the rows of a batch, so it needs a padding id.")
    padded = torch.full((len(rows), width), config.pad_id)
    for i, row in enumerate(rows):
        padded[i, : len(row)] = torch.tensor(row)
    return padded


def _rounded(length: int) -> int:
    return -(-length // LENGTH_STEP) * LENGTH_STEP
