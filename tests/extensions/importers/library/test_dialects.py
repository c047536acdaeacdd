"""A file that a tutorial's reader saved computes what its model did: logits, last vectors and every map.

The models are typed anew, and so are their names; batches are padded.
"""

import pytest
import torch

from glassformer.extensions.importers.library.opening import preview
from tests.extensions.importers.library.tutorial_models import (
    IDS,
    MAPS,
    PADDED,
    POST,
    PRE,
    STYLES,
    Annotated,
    Article,
    Block,
    Blocks,
    Least,
    TorchModel,
    at_random,
    saved,
)
from transformer.checkpoint.opening import load
from transformer.tap import Recorder, tap_of

MODELS = {
    "annotated": (Annotated, PRE),
    "torch, pre": (lambda: TorchModel(norm_first=True, layers=(2, 3)), PRE),
    "torch, post": (lambda: TorchModel(layers=(2, 3)), PRE | {"norm": "post"}),
    **{
        name: (lambda style=style: Article(style, layers=(2, 3)), POST | {"scale_embedding": style["scaled"]})
        for name, style in STYLES.items()
    },
    "S2": (Blocks, POST),
    "S3": (Least, {name: POST[name] for name in ("scale_embedding", *IDS)} | {"residual": False}),
}


@pytest.fixture
def maps(monkeypatch):
    """The weights that the reference computes, call by call; torch's own layers are asked for them."""
    MAPS.clear()
    monkeypatch.setattr(torch.backends.mha, "get_fastpath_enabled", lambda: False)
    real = torch.nn.MultiheadAttention.forward

    def forward(self, *args, **settings):
        out, weights = real(self, *args, **settings | {"need_weights": True, "average_attn_weights": False})
        MAPS.append(weights)
        return out, None

    monkeypatch.setattr(torch.nn.MultiheadAttention, "forward", forward)
    yield MAPS
    MAPS.clear()


def in_order(config, recorded):
    """Our maps in the order in which they are computed."""
    cross = ["self_attn", "cross_attn"] if config.n_encoder_layers else ["self_attn"]
    yield from (recorded[f"encoder.{i}.self_attn.weights"] for i in range(config.n_encoder_layers))
    yield from (recorded[f"decoder.{i}.{kind}.weights"] for i in range(config.n_decoder_layers) for kind in cross)


def compare(theirs, ours, maps, *, within):
    maps.clear()
    expected, recorder = theirs(*PADDED), Recorder(["*weights"])
    found = ours(*PADDED, tap=tap_of(recorder))
    assert expected.abs().max() > 0.5
    assert (found - expected).abs().max() < within
    own = list(in_order(ours.config, recorder.values))
    assert len(own) == len(maps)
    assert all((one - other).abs().max() < within for one, other in zip(own, maps, strict=True))


def own_positions(theirs, ours):
    """Give theirs our table, which is the formula's, too, but for the rounding of float32."""
    for name, table in theirs.named_buffers():
        if name.endswith(("pe", "pos_embedding")):
            own = (ours.encoder if ours.config.n_encoder_layers else ours.decoder).embedding.positions.table
            assert (table.reshape(own.shape) - own).abs().max() < 1e-6
            table.copy_(own.reshape(table.shape))


@pytest.mark.parametrize("name", MODELS)
def test_a_saved_file_computes_what_its_model_did(tmp_path, name, maps):
    make, answers = MODELS[name]
    torch.manual_seed(0)
    theirs = at_random(make())
    checkpoint = load(saved(tmp_path / "m.pt", theirs.state_dict()), answers=answers)
    ours = checkpoint.model
    assert ours.config.max_len == 32
    if name == "S3":
        PADDED[0][1, 4:] = torch.tensor([7, 8])  # it knows no padding
    try:
        compare(theirs, ours, maps, within=1e-5)
        theirs = theirs.double()
        own_positions(theirs, ours.double())
        compare(theirs, ours, maps, within=1e-10)
    finally:
        PADDED[0][1, 4:] = 0
        ours.float()
    assert checkpoint.run("5 6 7").src_tokens[:3] == ("5", "6", "7")


def test_a_block_by_itself_reads_unit_vectors(tmp_path, maps):
    """It has no embeddings, so that a piece stands for a dimension."""
    theirs = at_random(Block())
    answers = {"n_heads": 4, "activation": "relu", "norm": "post", "eos_id": 3}
    checkpoint = load(saved(tmp_path / "m.pt", theirs.state_dict()), answers=answers | {"pad_id": None})
    assert (checkpoint.config.n_encoder_layers, checkpoint.config.src_vocab_size) == (1, 16)
    ids = torch.tensor([[3, 0, 15, 7, 7]])
    recorder = Recorder(["*weights"])
    found = checkpoint.model(ids, ids, tap=tap_of(recorder))
    assert (found - theirs(torch.eye(16)[ids])).abs().max() < 1e-5
    assert (recorder.values["encoder.0.self_attn.weights"] - maps[0]).abs().max() < 1e-6
    report = str(preview(tmp_path / "m.pt", answers=answers).report)
    assert "the unit vector of dimension i represents token i" in report
    assert "They are read as encoder layers" in report
