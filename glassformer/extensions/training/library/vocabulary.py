"""Learn a vocabulary from text, with SentencePiece.

Every vocabulary has padding, unknown, start and end as ids 0, 1, 2 and 3; that of an encoder-only model has the mask
piece as 4, which may be typed, too.
"""

import io
from collections.abc import Sequence
from typing import Literal

import sentencepiece

from transformer.analysis.hidden_pieces import MASK_PIECES
from transformer.errors import DataError
from transformer.i18n import say_n

PieceModel = Literal["unigram", "bpe", "char"]


def learn_vocabulary(
    texts: Sequence[str], *, size: int, kind: PieceModel = "unigram", with_mask: bool = False
) -> bytes:
    """Learn pieces from sentences: the bytes of a SentencePiece model.

    `size` is the most pieces, special ones included; a small text may give fewer. "unigram" and "bpe" learn pieces of
    words; "char" takes single characters, and leaves spaces alone. A `DataError` where SentencePiece cannot learn it.
    """
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.Train(
            sentence_iterator=iter(texts),
            model_writer=model,
            model_type=kind,
            vocab_size=size,
            hard_vocab_limit=False,
            # Chinese has thousands of rare characters: the rarest 0.05 % become the unknown piece.
            character_coverage=1.0 if kind == "char" else 0.9995,
            add_dummy_prefix=kind != "char",
            split_digits=True,
            pad_id=0,
            unk_id=1,
            bos_id=2,
            eos_id=3,
            user_defined_symbols=list(MASK_PIECES[:1]) if with_mask else [],
            num_threads=1,  # the result depends on the number of threads
            minloglevel=2,
        )
    except (RuntimeError, OSError) as error:
        raise DataError(
            say_n(
                "no vocabulary of {n} piece could be learned: {reason}",
                "no vocabulary of {n} pieces could be learned: {reason}",
                size,
                reason=str(error)[:200],
            )
        ) from None
    return model.getvalue()
