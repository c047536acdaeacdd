"""Training batches: pairs as ids, random subword splits, masked tokens (MLM), padded groups of similar length.

A training file has one pair per line (`transformer.runs.sentence_files`). A decoder-only model learns to continue the
source, its prompt, and only the target counts. A file for an encoder-only model has one text per line; its hidden
pieces are drawn anew each epoch (`hiding`).

Every batch has about the same number of tokens (of the target, or of the one row that a model of one stack reads),
so every step costs the same. Rows of similar length share a batch, which keeps padding low. Lengths are rounded up
to few different shapes (each new one costs a CPU time).

Shapes: B pairs, S source tokens, T target tokens.

Of each text 15 % of the pieces, at least one, are to be predicted. The model reads the mask piece in place of 80 % of
them, another piece in place of 10 %, and 10 % unchanged: it cannot know which pieces are right, so it learns something
about each. The pieces around a text are never predicted.

Every draw depends only on the seed, the epoch and the row: all processes of a training, and a resumed one, hide the
same pieces.

Source: Devlin et al., "BERT" (2019), section 3.1 and appendix C.2; that a text has at least one is from their code.
"""

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import torch
from torch import Tensor

from transformer.analysis.hidden_pieces import MASK_PIECES, mask_id
from transformer.errors import ConfigError, DataError
from transformer.model.anatomy import anatomy
from transformer.model.config import ModelConfig
from transformer.runs.reading import read_before
from transformer.runs.sentence_files import Pair
from transformer.text.subword_sampling import Sampler
from transformer.text.tokenizer import AnyTokenizer, Tokenizer, normalise

LENGTH_STEP = 2


@dataclass(frozen=True)
class Example:
    """One pair as ids: the source with its end piece (if the config wants one), the target with its end piece."""

    src: tuple[int, ...]  # what is read: the source, the prompt, or the text with hidden pieces
    tgt: tuple[int, ...]  # every piece that is to be predicted, and no other
    # In a model with one stack: the position in its row where each is predicted, from 0.
    places: Sequence[int] = ()

    @property
    def width(self) -> int:
        """Tokens of its row in a batch, padding aside."""
        return max(len(self.src), self.places[-1] + 1) if self.places else len(self.tgt)


@dataclass(frozen=True)
class Batch:
    """Padded ids; a side that the model does not have is [B, 0]."""

    src: Tensor  # what the encoder reads [B, S]
    tgt_in: Tensor  # what the decoder reads [B, T], beginning with the start id or the prompt
    # Pieces to predict [B, T], in an encoder-only model [B, S]; padding elsewhere.
    tgt_out: Tensor
    n_tokens: int = 0  # how many pieces are to be predicted

    def to(self, device: torch.device) -> "Batch":
        """The same batch on another device."""
        return Batch(self.src.to(device), self.tgt_in.to(device), self.tgt_out.to(device), self.n_tokens)


def encode_source(text: str, tokenizer: AnyTokenizer, config: ModelConfig) -> tuple[int, ...]:
    """A source text as the ids that the encoder, or a decoder-only model, reads."""
    ids = tokenizer.encode(normalise(text, config.normalisation)).ids
    return (*config.source_start, *ids, *config.source_end)


def encode_pairs(pairs: Sequence[Pair], src: AnyTokenizer, tgt: AnyTokenizer, config: ModelConfig) -> list[Example]:
    """All pairs that fit into `max_len` on both sides, or in the one row of a model with one stack.

    A text for an encoder-only model has no hidden pieces yet (see `hiding`).
    """
    return _fitting(
        (_example(encode_source(source, src, config), tgt.encode(target).ids, config) for source, target in pairs),
        config,
    )


def _example(source: tuple[int, ...], target: Sequence[int], config: ModelConfig) -> Example:
    """A pair as ids; a decoder-only model's row is the source and the target, without the end piece."""
    parts = anatomy(config)
    if not parts.writes:
        return Example(source, ())
    written = (*target, config.eos_id)
    return Example(source, written, () if parts.reads else range(len(source) - 1, len(source) + len(target)))


def _fitting(examples: Iterable[Example], config: ModelConfig) -> list[Example]:
    """The examples that fit, and for a model with one stack are not empty."""
    parts, around = anatomy(config), len(config.source_start) + len(config.source_end)
    least = 0 if parts.reads and parts.writes else around + 1
    return [one for one in examples if least <= len(one.src) and max(len(one.src), one.width) <= config.max_len]


def n_source(example: Example, config: ModelConfig) -> int:
    """The tokens of a source text, without those around it."""
    return len(example.src) - len(config.source_start) - len(config.source_end)


def sample_pairs(
    pairs: Sequence[Pair], src: Tokenizer, tgt: Tokenizer, config: ModelConfig, *, alpha: float, seed: int
) -> list[Example]:
    """All pairs that fit, split into pieces at random (see `Sampler.draw`).

    The splits depend only on the seed. A `TokenizerError` if a vocabulary has only one split of each text.
    """
    rng = random.Random(seed)
    src_sampler, tgt_sampler = Sampler(src), Sampler(tgt)

    def drawn(source: str, target: str) -> Example:
        ids = src_sampler.draw(normalise(source, config.normalisation), alpha=alpha, rng=rng)
        written = tgt_sampler.draw(target, alpha=alpha, rng=rng)
        return _example((*config.source_start, *ids, *config.source_end), written, config)

    return _fitting((drawn(*pair) for pair in pairs), config)


class Batches:
    """The batches of one epoch after another, each epoch in its own order.

    `draw` returns an epoch's examples by its number from 0: the same in any process. `batch_tokens` are of the target,
    or of the row of a model with one stack, including padding. Each epoch's order depends only on `seed` and its
    number.
    """

    def __init__(self, draw: Callable[[int], Sequence[Example]], *, batch_tokens: int, seed: int) -> None:
        self._draw, self._batch_tokens, self._seed = draw, batch_tokens, seed

    def epoch(self, number: int) -> list[list[Example]]:
        """The groups of epoch `number`, shuffled."""
        rng = np.random.default_rng((self._seed, number))
        examples = self._draw(number)
        shuffled = [examples[i] for i in rng.permutation(len(examples))]
        # A stable sort keeps the shuffled order among pairs of one shape: groups differ from epoch to epoch.
        shuffled.sort(key=lambda e: (_rounded(e.width), _rounded(len(e.src))))
        groups = self._cut(shuffled)
        return [groups[i] for i in rng.permutation(len(groups))]

    def _cut(self, ordered: Sequence[Example]) -> list[list[Example]]:
        groups: list[list[Example]] = []
        start = 0
        while start < len(ordered):
            longest = _rounded(ordered[start].width)
            size = max(self._batch_tokens // longest, 1)
            group = [e for e in ordered[start : start + size] if _rounded(e.width) == longest]
            groups.append(group)
            start += len(group)
        return groups


def make_batch(group: Sequence[Example], config: ModelConfig) -> Batch:
    """Pad the pairs of a group to common, rounded lengths."""
    parts, n_tokens = anatomy(config), sum(len(e.tgt) for e in group)
    if parts.reads and parts.writes:
        src, tgt_out = _padded([e.src for e in group], config), _padded([e.tgt for e in group], config)
        return Batch(src, read_before(tgt_out, config.decoder_start_id), tgt_out, n_tokens)
    none = torch.zeros(len(group), 0, dtype=torch.long)
    width = min(_rounded(max(e.width for e in group)), config.max_len)  # a shorter row keeps its end, as above
    read = _padded([(*e.src, *e.tgt)[:width] if parts.writes else e.src for e in group], config)
    asked = torch.full_like(read, config.fill_id)
    counts = torch.tensor([len(e.places) for e in group])
    rows, places = torch.arange(len(group)).repeat_interleave(counts), [place for e in group for place in e.places]
    asked[rows, torch.tensor(places)] = torch.tensor([piece for e in group for piece in e.tgt])
    return Batch(none, read, asked, n_tokens) if parts.writes else Batch(read, none, asked, n_tokens)


def _padded(rows: Sequence[Sequence[int]], config: ModelConfig) -> Tensor:
    if config.pad_id is None:
        raise ConfigError("pad_id", "is null; training pads the rows of a batch, so it needs a padding id.")
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    width = min(_rounded(int(lengths.max())), config.max_len)
    padded = np.full((len(rows), width), config.pad_id)
    padded[np.arange(width) < lengths[:, None]] = np.fromiter(chain.from_iterable(rows), np.int64)
    return torch.from_numpy(padded)


def _rounded(length: int) -> int:
    return -(-length // LENGTH_STEP) * LENGTH_STEP


SHARE = 0.15  # of a text's pieces
AS_MASK, AS_ANOTHER = 0.8, 0.1  # of those

Draw = Callable[[int], Sequence[Example]]  # the examples of an epoch, by its number from 0


def hiding(draw: Draw, tokenizer: AnyTokenizer, config: ModelConfig, *, seed: int) -> Draw:
    """The same texts with pieces hidden, others each epoch; the examples of a model that writes are unchanged.

    A `DataError` if the vocabulary has no mask piece, or the model no MLM head.
    """
    if anatomy(config).writes:
        return draw
    mask = _mask(tokenizer, config)
    others = [i for i in range(tokenizer.size) if i != mask and not tokenizer.is_special(i)]

    def drawn(epoch: int) -> list[Example]:
        rows = enumerate(draw(epoch))
        return [_hidden(e, mask, others, config, random.Random(f"{seed} {epoch} {row}")) for row, e in rows]

    return drawn


def each_alone(examples: Sequence[Example], tokenizer: AnyTokenizer, config: ModelConfig) -> list[Example]:
    """Each piece of each text hidden alone, as the app hides one; a `DataError` as of `hiding`."""
    mask = _mask(tokenizer, config)
    return [
        Example((*e.src[:place], mask, *e.src[place + 1 :]), (e.src[place],), (place,))
        for e in examples
        for place in _of_text(e, config)
    ]


def _hidden(example: Example, mask: int, others: Sequence[int], config: ModelConfig, rng: random.Random) -> Example:
    text = _of_text(example, config)
    places = sorted(rng.sample(text, max(1, round(SHARE * len(text)))))
    read = list(example.src)
    for place in places:
        drawn = rng.random()
        if drawn < AS_MASK:
            read[place] = mask
        elif drawn < AS_MASK + AS_ANOTHER:
            read[place] = rng.choice(others)
    return replace(example, src=tuple(read), tgt=tuple(example.src[place] for place in places), places=tuple(places))


def _of_text(example: Example, config: ModelConfig) -> range:
    """The positions of a text's own pieces."""
    return range(len(config.source_start), len(config.source_start) + n_source(example, config))


def _mask(tokenizer: AnyTokenizer, config: ModelConfig) -> int:
    found = mask_id(tokenizer)
    if found is None or not anatomy(config).fills:
        raise DataError(
            "an encoder-only model learns to predict hidden tokens; it needs an MLM head, and its vocabulary a mask "
            "token: {names}.",
            names=", ".join(MASK_PIECES),
        )
    return found
