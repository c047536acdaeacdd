"""Changes of source tokens (replace, drop, swap, shuffle, pad, blank), of one output token, and of positions.

Pieces of the source are replaced, dropped, moved, padded or blanked. For a decoder-only model the source is its
prompt. Places count in the source with its special pieces, as the changes before this one left it.

An output piece that is insisted on is written at one step, whatever the model finds probable. All other steps are
chosen as usual, after that piece. Decoding closes every other piece at that step, as the rules of a model's config
do, so greedy decoding, beam search and sampling all write it.

Positions: a table's vectors are taken from other rows or multiplied. Positions inside attention are taken from other
places: the angles of rotary ones, the distances of a bias.

Source: Li et al., "Understanding Neural Networks through Representation Erasure" (2016), for erased words; Sinha et
al., "Masked Language Modeling and the Distributional Hypothesis" (2021), for shuffled ones; Hokamp and Liu,
"Lexically Constrained Decoding for Sequence Generation Using Grid Beam Search" (2017), for pieces that an output must
have; here at a given place. Vaswani et al. (2017), section 3.5, for positions; those inside attention as in
`transformer.model.attention_positions`.
"""

import random
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import torch
from torch import Tensor

from transformer.errors import QueryError
from transformer.i18n import Sentence, say, say_n
from transformer.model.anatomy import anatomy
from transformer.model.config import MAX_LENGTH, MAX_VOCAB, ModelConfig
from transformer.model.taps import Hook, Replacer, Rewirer
from transformer.runs.interventions.base import Intervention, InterventionContext, InterventionError
from transformer.runs.interventions.fields import number, place, whole
from transformer.runs.interventions.targets import AtPlace, StackChange

MOST_PADS: Final = 64
MAX_SEED: Final = 2**32 - 1


def check_place(change: Intervention, where: int, ids: tuple[int, ...]) -> None:
    """Check that the source has a place, or raise an InterventionError."""
    if where >= len(ids):
        raise InterventionError(
            "{change} names token {place}, but the source has only {n} token. Choose that token.",
            "{change} names token {place}, but the source has only {n} tokens. Choose one of them.",
            len(ids),
            change=str(change),
            place=where + 1,
        )


def _check_piece(change: Intervention, piece: int, size: int) -> None:
    """Check that a vocabulary has an id, or raise an InterventionError."""
    if piece >= size:
        raise InterventionError(
            "{change} names token {piece}, but its vocabulary has the ids 0 to {last:,}.",
            change=str(change),
            piece=piece,
            last=size - 1,
        )


def own_places(ids: tuple[int, ...], config: ModelConfig) -> range:
    """The places of the text's own pieces, without the special pieces around them and the padding after them."""
    stop = len(ids)
    while stop and ids[stop - 1] == config.pad_id:
        stop -= 1
    start, begin, end = 0, config.source_start, config.source_end
    if begin and ids[: len(begin)] == begin:
        start = len(begin)
    if end and ids[max(start, stop - len(end)) : stop] == end:
        stop -= len(end)
    return range(start, stop)


class SourceChange(Intervention):
    place: int = place(say("Token of the source"), MAX_LENGTH, what="source")  # which token of the input, from 0

    group = "pieces"


class Replace(SourceChange):
    # The id of the piece that is read there.
    piece: int = whole(say("Token to read instead"), 0, MAX_VOCAB - 1, what="source_piece")

    word = "replace"
    title = say("A token of the source is replaced")
    about = say(
        "At this token, the model reads a different token; everything else stays unchanged. Sinha et al. (2021) do "
        "this with words."
    )

    def check(self, config: ModelConfig) -> None:
        super().check(config)
        _check_piece(self, self.piece, config.src_vocab_size)
        if self.piece == config.pad_id:
            raise InterventionError(
                "{change} puts padding into the source, where no token may attend to it; choose another token, or "
                "drop the token instead.",
                change=str(self),
            )

    def told(self) -> str:
        return say("Source, token {place}: read as token {piece}", place=self.place + 1, piece=self.piece)

    def edited(self, ids: tuple[int, ...], config: ModelConfig) -> tuple[int, ...]:
        check_place(self, self.place, ids)
        return (*ids[: self.place], self.piece, *ids[self.place + 1 :])


class Drop(SourceChange):
    word = "drop"
    title = say("A token of the source is dropped")
    about = say("The tokens after it move up by one position. Li et al. (2016), section 4, erase words in this way.")

    def told(self) -> str:
        return say("Source, token {place}: dropped", place=self.place + 1)

    def edited(self, ids: tuple[int, ...], config: ModelConfig) -> tuple[int, ...]:
        check_place(self, self.place, ids)
        left = ids[: self.place] + ids[self.place + 1 :]
        if all(i == config.pad_id for i in left):
            raise InterventionError(
                "{change} leaves nothing to read; give the source more tokens, or replace this token instead.",
                change=str(self),
            )
        return left


class Swap(Intervention):
    first: int = place(say("Token of the source"), MAX_LENGTH, what="source")  # which tokens of the source, from 0
    second: int = place(say("Changes places with token"), MAX_LENGTH, what="source")

    word = "swap"
    group = "pieces"
    title = say("Two tokens of the source change places")
    about = say(
        "The tokens stay the same, but in a different order; each token gets the positional encoding of its new "
        "position."
    )

    @property
    def target(self) -> tuple[object, ...]:
        """The two places, in any order."""
        return (self.word, *sorted((self.first, self.second)))

    def agree(self) -> None:
        if self.first == self.second:
            raise QueryError(
                "token {place} cannot change places with itself; name two different tokens.", place=self.first + 1
            )

    def told(self) -> str:
        return say("Source: tokens {a} and {b} change places", a=self.first + 1, b=self.second + 1)

    def edited(self, ids: tuple[int, ...], config: ModelConfig) -> tuple[int, ...]:
        for where in (self.first, self.second):
            check_place(self, where, ids)
        found = list(ids)
        found[self.first], found[self.second] = ids[self.second], ids[self.first]
        return tuple(found)


class Shuffle(Intervention):
    seed: int = whole(say("Seed"), 0, MAX_SEED, 0)  # decides the order

    word = "shuffle"
    group = "pieces"
    title = say("The source's tokens are shuffled")
    about = say("The same tokens in a random order; special tokens at the ends stay in place. Sinha et al. (2021).")

    def told(self) -> str:
        return say("Source: its tokens are shuffled (seed {seed})", seed=self.seed)

    def edited(self, ids: tuple[int, ...], config: ModelConfig) -> tuple[int, ...]:
        """The ids in an order given by random numbers, the same on every machine."""
        own, generator = own_places(ids, config), random.Random(self.seed)
        order = sorted(own, key={where: generator.random() for where in own}.__getitem__)
        return ids[: own.start] + tuple(ids[where] for where in order) + ids[own.stop :]


class Pads(Intervention):
    count: int = whole(say("Tokens of padding"), 1, MOST_PADS, 4)  # how many pieces of it

    word = "pads"
    group = "pieces"
    title = say("Padding after the source")
    about = say(
        "This is like the padding after a short sentence in a batch. The padding changes the result only if there "
        "is no padding mask."
    )

    @classmethod
    def unfit(cls, config: ModelConfig) -> Sentence | None:
        if config.pad_id is None:
            return say("This model has no padding token, so no padding can be appended.")
        if not anatomy(config).reads:
            return say(
                "This is a decoder-only model: it continues where its prompt ends, so no padding can be placed there."
            )
        return None

    def told(self) -> str:
        return say_n(
            "Source: followed by {n} token of padding", "Source: followed by {n} tokens of padding", self.count
        )

    def edited(self, ids: tuple[int, ...], config: ModelConfig) -> tuple[int, ...]:
        room = config.max_len - len(ids)
        if self.count > room:
            raise InterventionError(
                "{change} makes the source {n} tokens long, but this model reads at most {most}. Append fewer "
                "tokens of padding, or shorten the source.",
                change=str(self),
                n=len(ids) + self.count,
                most=config.max_len,
            )
        return ids + (config.fill_id,) * self.count


class Blank(SourceChange):
    word = "blank"
    title = say("A source token's embedding is set to 0")
    about = say("The token carries only its position, which is added as usual. Li et al. (2016), section 4.")

    def told(self) -> str:
        return say("Source, token {place}: its embedding is set to 0", place=self.place + 1)

    def fits(self, ids: tuple[int, ...], config: ModelConfig) -> None:
        check_place(self, self.place, ids)

    def visitors(self, ground: InterventionContext) -> tuple[Hook, ...]:
        site = f"{anatomy(ground.config).stacks[0].name}.embedding.tokens"
        return (AtPlace(site, partial(_zeroed, self.place)),)


def _zeroed(where: int, x: Tensor, offset: int) -> Tensor:
    """Vectors [B, T, D], of tokens from `offset` on, with 0 at one token."""
    if not offset <= where < offset + x.size(1):
        return x
    changed = x.clone()
    changed[:, where - offset] = 0.0
    return changed


class Insist(Intervention):
    step: int = place(say("Step"), MAX_LENGTH, what="step")  # which, from 0
    piece: int = whole(say("Token to write"), 0, MAX_VOCAB - 1, what="target_piece")  # the piece's id

    word = "insist"
    group = "pieces"
    title = say("A token of the output is required")
    about = say(
        "The token is written at this step; all other tokens are chosen freely. An output that ends earlier stays "
        "unchanged. Hokamp and Liu (2017)."
    )

    @classmethod
    def unfit(cls, config: ModelConfig) -> Sentence | None:
        if anatomy(config).writes:
            return None
        return say("This is an encoder-only model: it writes nothing, so no token can be required.")

    def check(self, config: ModelConfig) -> None:
        super().check(config)
        _check_piece(self, self.piece, config.tgt_vocab_size)
        if self.piece in config.never_written:
            raise InterventionError(
                "{change} names a token that is never written: it is padding, or banned by the model's config. "
                "Choose another token.",
                change=str(self),
            )

    def told(self) -> str:
        return say("Output, step {step}: token {piece} is written", step=self.step + 1, piece=self.piece)

    def insisted(self, forced: tuple[int, ...], most: int) -> Mapping[int, int]:
        if self.step >= most:
            raise InterventionError(
                "{change} names step {step}, but this run writes at most {most} tokens. Choose an earlier step, or "
                "allow more tokens.",
                change=str(self),
                step=self.step + 1,
                most=most,
            )
        if self.step < len(forced) and forced[self.step] != self.piece:
            raise InterventionError(
                "{change} contradicts the forced beginning of the output, which has token {piece} at that step. "
                "Leave out either the change or the forced beginning.",
                change=str(self),
                piece=forced[self.step],
            )
        return {self.step: self.piece}


# ------------------------------------------------------------------------------------------------ positions

MOST_SHIFT = 4096


class _OfPositions(StackChange):
    group = "positions"

    @classmethod
    def unfit(cls, config: ModelConfig) -> Sentence | None:
        if config.placing.adds == "nothing":
            return say(
                "This model has no positional encoding: only its causal mask, if it has one, shows the order of tokens."
            )
        return None

    def _moved(self, ground: InterventionContext, moves: Callable[[Tensor], Tensor]) -> Hook:
        config = ground.config
        part = "embedding" if config.placing.adds == "table" else "order"

        def after(before: Callable[[Tensor], Tensor] | None) -> Callable[[Tensor], Tensor]:
            """First what another change does with places, if there is one."""
            return moves if before is None else lambda places: moves(before(places))

        return Rewirer({f"{name}.{part}.moves": after for name in self.stacks(config)})

    def _sized(self, ground: InterventionContext, by: float) -> Hook:
        config = ground.config
        part = "embedding.positions" if config.placing.adds == "table" else "*.self_attn.bias"
        return Replacer({f"{name}.{part}": lambda value: value * by for name in self.stacks(config)},
                        causal=True)  # fmt: skip


class NoPositions(_OfPositions):
    word = "unplaced"
    title = say("No positions")
    about = say(
        "Nothing tells the model where a token is: its position vectors or biases are 0, or its queries and keys "
        "are not rotated. Without positions, an encoder reads only a bag of words (Vaswani et al., 2017, section "
        "3.5)."
    )

    def told(self) -> str:
        return say("{stack}: no positions", stack=self.name)

    def visitors(self, ground: InterventionContext) -> tuple[Hook, ...]:
        """Sets vectors or a bias to 0; with rotary positions, all tokens are at the first place."""
        if ground.config.placing.adds == "turn":
            return (self._moved(ground, torch.zeros_like),)
        return (self._sized(ground, 0.0),)


class ShiftPositions(_OfPositions):
    by: int = whole(say("Places"), -MOST_SHIFT, MOST_SHIFT, 1)  # a table's first row follows its last

    word = "shift"
    title = say("Positions shifted")
    about = say(
        "All tokens move by this many positions. With a table of positions, each token then gets a different row "
        "than in training. Positions inside attention depend only on distances, which stay the same, so nothing "
        "changes."
    )

    def told(self) -> str:
        return say("{stack}: positions are shifted by {n}", stack=self.name, n=self.by)

    def visitors(self, ground: InterventionContext) -> tuple[Hook, ...]:
        return (self._moved(ground, lambda places: places + self.by),)


class ScalePositions(_OfPositions):
    by: float = number(say("Factor"), 0, 100, 2)  # what vectors, a bias or angles are multiplied by

    word = "stretch"
    title = say("Positions scaled")
    about = say(
        "The effect of positions is multiplied by a factor: the vectors of a table, a bias, or the angles by which "
        "queries and keys rotate. Position interpolation does this with a factor below 1 (Chen et al., 2023)."
    )

    def told(self) -> str:
        return say("{stack}: positions times {factor:g}", stack=self.name, factor=self.by)

    def visitors(self, ground: InterventionContext) -> tuple[Hook, ...]:
        """Multiplies vectors or a bias; with rotary positions, the places and so the angles."""
        if ground.config.placing.adds == "turn":
            return (self._moved(ground, lambda places: places * self.by),)
        return (self._sized(ground, self.by),)


class ShufflePositions(_OfPositions):
    """Tokens swap places: a fixed shuffle of each group of neighbouring places.

    It depends only on the seed and the group's size, so it is the same for any text length and any way of decoding.
    """

    seed: int = whole(say("Seed"), 0, 2**31 - 1, 0)  # gives the shuffle
    among: int = whole(say("Positions per group"), 2, 512, 8)  # the first group from the first place on

    word = "misplaced"
    title = say("Positions shuffled")
    about = say(
        "Tokens take each other's positions. Neighbouring positions form groups, and all groups are shuffled in "
        "the same way, which the seed determines. The tokens themselves stay where they are."
    )

    def told(self) -> str:
        return say(
            "{stack}: positions are shuffled in groups of {n}, seed {seed}",
            stack=self.name,
            n=self.among,
            seed=self.seed,
        )

    def visitors(self, ground: InterventionContext) -> tuple[Hook, ...]:
        return (self._moved(ground, self._shuffled),)

    def _shuffled(self, places: Tensor) -> Tensor:
        order = torch.randperm(self.among, generator=torch.Generator().manual_seed(self.seed)).to(places.device)
        group = places.long() // self.among
        return group * self.among + order[places.long() % self.among]
