"""What tests of trainings of models with one stack learn from: a few texts, and which of their pieces are hidden."""

from collections.abc import Sequence
from typing import Any

from glassformer.extensions.training.library.data import Example, encode_pairs, hiding
from glassformer.extensions.training.library.run import learn_vocabulary
from tests.conftest import SOURCES, TARGETS
from tests.transformer.tiny import tiny_config
from transformer.text.tokenizer import Tokenizer

PIECES = learn_vocabulary(SOURCES + TARGETS, size=40, kind="char", with_mask=True)
TOKENIZER = Tokenizer(PIECES)
ONE = {"shared_vocab": True, "src_vocab_size": TOKENIZER.size, "tgt_vocab_size": TOKENIZER.size, "max_len": 90}
DECODER = ONE | {"n_encoder_layers": 0, "prepend_source_bos": True, "append_source_eos": False, "n_kv_heads": 1}
ENCODER = ONE | {"n_decoder_layers": 0, "prepend_source_bos": True, "mlm_head": True}
PAIRS = list(zip(SOURCES, TARGETS, strict=True))
TEXTS = [(text, "") for text in SOURCES + TARGETS]


def examples_of(features: dict[str, Any], pairs: Sequence[tuple[str, str]] = PAIRS) -> list[Example]:
    """Pairs or texts as a model with these features reads them."""
    return encode_pairs(pairs, TOKENIZER, TOKENIZER, tiny_config(**features))


def hidden(texts: Sequence[tuple[str, str]] = TEXTS, *, seed: int = 1, epoch: int = 0) -> list[Example]:
    """The texts with some of their pieces hidden, as an encoder learns from them in an epoch."""
    config = tiny_config(**ENCODER)
    return hiding(lambda _: examples_of(ENCODER, texts), TOKENIZER, config, seed=seed)(epoch)
