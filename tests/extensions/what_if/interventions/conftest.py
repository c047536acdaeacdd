"""The made-up checkpoints that are changed: tests of one file share theirs."""

import pytest

from glassformer.extensions.training.library.run import learn_vocabulary
from tests.conftest import SOURCES, TARGETS
from tests.transformer.tiny import tiny_model
from transformer.checkpoint.load import load
from transformer.checkpoint.save import CheckpointContents, save
from transformer.text.tokenizer import Tokenizer


def made(folder, stack):
    """A checkpoint of 2 layers and 3 heads: post-norm with sinusoids, or pre-norm of one stack alone."""
    pieces = learn_vocabulary(SOURCES + TARGETS, size=48)
    size = Tokenizer(pieces).size
    changes = {
        "both": {"norm": "post", "final_norm": False, "n_encoder_layers": 2},
        "decoder": {"n_encoder_layers": 0, "append_source_eos": False, "prepend_source_bos": True, "n_kv_heads": 1},
    }[stack]
    sizes = {"src_vocab_size": size, "tgt_vocab_size": size, "shared_vocab": True, "max_len": 24}
    model = tiny_model(**({"n_decoder_layers": 2} | sizes | changes))
    save(CheckpointContents(model.config, model.state_dict(), (pieces,), {"title": stack}), folder / stack)
    return load(folder / stack)


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    return made(tmp_path_factory.mktemp("made"), "both")


@pytest.fixture(scope="module")
def decoder(tmp_path_factory):
    return made(tmp_path_factory.mktemp("made"), "decoder")


@pytest.fixture(scope="module", params=["both", "decoder"])
def checkpoint(request, tmp_path_factory):
    return made(tmp_path_factory.mktemp("made"), request.param)
