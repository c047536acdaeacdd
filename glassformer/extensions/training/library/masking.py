"""Which pieces of a text are hidden from an encoder-only model while it learns, and what stands in their place.

Of each text 15 % of the pieces are asked for, but at least one. The model reads the mask piece in the place of 80 %
of them, in the place of 10 % some other piece, and 10 % stay as they are: it cannot know which pieces are right, so
it learns something about each. The pieces around a text are never asked for.

Every draw follows from the seed, the epoch and the row alone, so that all processes of a training, and one that goes
on, hide the same.

Source: Devlin et al., "BERT" (2019), section 3.1 and appendix C.2; that a text has at least one is from their code.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from glassformer.extensions.training.library.data import Example
from transformer.analysis.hidden_pieces import MASK_PIECES, mask_id
from transformer.errors import DataError
from transformer.model.anatomy import anatomy
from transformer.model.config import ModelConfig
from transformer.text.tokenizer import AnyTokenizer

SHARE = 0.15  # of a text's pieces
AS_MASK, AS_ANOTHER = 0.8, 0.1  # of those

Draw = Callable[[int], Sequence[Example]]  # the examples of an epoch, by its number from 0


def hiding(draw: Draw, tokenizer: AnyTokenizer, config: ModelConfig, *, seed: int) -> Draw:
    """The same texts with some pieces hidden, others each epoch; for a model that writes, its examples as they are.

    A `DataError` where the vocabulary has no mask piece, or the model no head that could guess.
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
    """The places of a text's own pieces."""
    return range(len(config.source_start), len(example.src) - len(config.source_end))


def _mask(tokenizer: AnyTokenizer, config: ModelConfig) -> int:
    found = mask_id(tokenizer)
    if found is None or not anatomy(config).fills:
        raise DataError(
            "an encoder-only model learns to predict hidden pieces; it needs an MLM head, and its vocabulary a mask "
            "piece: {names}.",
            names=", ".join(MASK_PIECES),
        )
    return found
