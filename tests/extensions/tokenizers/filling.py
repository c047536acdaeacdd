"""A tiny encoder alone that fills in what is hidden, with the pieces of a tiny BERT."""

from pathlib import Path
from typing import Any

from glassformer.extensions.tokenizers.options import Options
from glassformer.extensions.tokenizers.tokenizer_families import Vocabularies
from tests.extensions.tokenizers import foreign
from tests.transformer.tiny import tiny_model
from transformer.checkpoint.load import Checkpoint, load
from transformer.checkpoint.save import CheckpointContents, save


def filling(folder: Path, **changes: Any) -> Checkpoint:
    """Write an encoder alone with an MLM head and the pieces of a tiny BERT, [MASK] among them, and open it."""
    vocabulary = Vocabularies("bert", Options(), foreign.word_pieces())
    size = vocabulary.open()[0].size
    sizes = {"src_vocab_size": size, "tgt_vocab_size": size, "shared_vocab": True, "max_len": 24, "unk_id": 1}
    model = tiny_model(**({"n_decoder_layers": 0, "mlm_head": True, "prepend_source_bos": True} | sizes | changes))
    save(CheckpointContents(model.config, model.state_dict(), vocabulary, {"title": "filling"}), folder / "filling")
    return load(folder / "filling")
