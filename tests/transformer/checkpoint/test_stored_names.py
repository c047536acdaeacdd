import torch

from tests.transformer.tiny import tiny_model
from transformer.checkpoint.agreement import expected_shapes
from transformer.checkpoint.stored_names import from_stored, to_stored


def test_a_file_has_three_projections_and_the_way_back_gives_the_same():
    for changes in ({}, {"bias": False}, {"shared_vocab": True, "src_vocab_size": 11, "tgt_vocab_size": 11}):
        state = tiny_model(**changes).state_dict()
        stored = to_stored(state)
        assert not any("in_proj" in name for name in stored)
        assert sum("q_proj.weight" in name for name in stored) == sum("in_proj.weight" in name for name in state)
        back = from_stored(stored)
        assert back.keys() == state.keys()
        assert all(torch.equal(back[name], state[name]) for name in state)


def test_the_order_is_queries_keys_values():
    model = tiny_model()
    stored, joined = to_stored(model.state_dict()), model.decoder.layers[1].cross_attn.in_proj.weight
    width = model.config.d_model
    for i, part in enumerate(("q_proj", "k_proj", "v_proj")):
        rows = joined[i * width : (i + 1) * width]
        assert torch.equal(stored[f"decoder.layers.1.cross_attn.{part}.weight"], rows)


def test_the_order_in_the_file_does_not_matter():
    state = tiny_model().state_dict()
    back = from_stored(dict(reversed(to_stored(state).items())))
    assert back.keys() == state.keys()
    assert all(torch.equal(back[name], state[name]) for name in state)


def test_the_expected_names_are_those_of_a_file():
    model = tiny_model()
    assert {name: tuple(tensor.shape) for name, tensor in to_stored(model.state_dict()).items()} == dict(
        expected_shapes(model.config)
    )
