"""Tiny SentencePiece models, learned on the spot."""

import io
from collections.abc import Sequence
from typing import Any

import sentencepiece


def learn_pieces(texts: Sequence[str], *, size: int, kind: str = "unigram", **options: Any) -> bytes:
    """Learn pieces from sentences; padding, unknown, start and end are ids 0, 1, 2 and 3.

    The `options` are further ones of SentencePiece's trainer.
    """
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=iter(texts),
        model_writer=model,
        model_type=kind,
        vocab_size=size,
        hard_vocab_limit=False,
        character_coverage=1.0 if kind == "char" else 0.9995,
        add_dummy_prefix=kind != "char",
        split_digits=True,
        pad_id=0,
        unk_id=1,
        bos_id=2,
        eos_id=3,
        num_threads=1,  # the result depends on the number of threads
        minloglevel=2,
        **options,
    )
    return model.getvalue()
