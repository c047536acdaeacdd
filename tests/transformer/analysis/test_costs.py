"""Parameters, multiply-adds and shapes are counted as torch counts them, for every kind of model.

Counted again with torch's own counter, with loops, and from the state.
"""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from tests.transformer.tiny import DECODER, ENCODER, random_ids, tiny_config, tiny_model
from transformer.analysis import costs
from transformer.errors import QueryError
from transformer.tap import Recorder, sites, tap_of

MODELS = {
    "paper": {},
    "post": {"norm": "post", "final_norm": False, "bias": False, "positions": "learned", "tie_output": False},
    "shared": {"shared_vocab": True, "tgt_vocab_size": 17, "output_bias": True, "n_heads": 2, "n_encoder_layers": 3},
    "small": {"n_encoder_layers": 1, "n_decoder_layers": 1, "d_model": 6, "n_heads": 1, "d_ff": 5, "final_norm": False},
    "decoder": {**DECODER, "d_head": 5, "tie_output": False},
    "encoder": {**ENCODER, "n_heads": 6, "n_kv_heads": 2, "d_head": 3},
    "fills": {**ENCODER, "mlm_head": True, "n_token_types": 2, "output_bias": True, "gated": True},
    "both norms": {**DECODER, "norm": "both", "norm_kind": "rms", "gated": True, "embedding_norm": True},
    "own decoder": {"n_decoder_heads": 2, "d_decoder_ff": 28},
    "relative": {"positions": "relative", "relative_buckets": 8, "relative_distance": 12},
}


@pytest.mark.parametrize("name", MODELS)
def test_torch_counts_the_same_multiply_adds_and_shapes_are_those_of_the_values(name):
    model = tiny_model(dtype=torch.float32, **MODELS[name])
    for n_source, n_target in ((1, 1), (7, 4)):
        src, tgt = random_ids(1, n_source), random_ids(1, n_target)
        with FlopCounterMode(display=False) as counter:  # with scores wanted, attention's two products are apart
            model(src, tgt, tap=tap_of(Recorder(("*.scores",))))
        counted = costs.multiply_adds(model.config, n_source=n_source, n_target=n_target)
        assert 2 * sum(counted.values()) == counter.get_total_flops()
    recorder = Recorder(("*",))
    model(src, tgt, tap=tap_of(recorder))
    seen = costs.shapes_of(model, src[0].tolist(), tgt[0].tolist())
    assert seen.sites == {site: tuple(value.shape) for site, value in recorder.values.items()}
    assert seen.sites.keys() == sites(model.config).keys()
    with pytest.raises(QueryError, match="at most 16"):
        costs.shapes_of(model, [4] * 17, [4] * 17)


def test_each_component_is_counted_by_itself_and_only_a_stack_that_is_there_needs_a_length():
    config, s, t = tiny_config(), 7, 4
    d, f = config.d_model, config.d_ff
    expected = {
        "encoder_projections": 2 * 4 * s * d * d,
        "encoder_maps": 2 * 2 * s * s * d,
        "encoder_ffn": 2 * 2 * s * d * f,
        "decoder_projections": 3 * 4 * t * d * d,
        "decoder_maps": 3 * 2 * t * t * d,
        "cross_projections": 3 * 2 * (t + s) * d * d,
        "cross_maps": 3 * 2 * t * s * d,
        "decoder_ffn": 3 * 2 * t * d * f,
        "output": t * d * config.tgt_vocab_size,
    }
    counted = costs.multiply_adds(config, n_source=s, n_target=t)
    assert {part: count for part, count in counted.items() if count} == expected
    groups = costs.grouped(counted)
    assert sum(groups.values()) == sum(expected.values())
    assert groups["maps"] == sum(expected[part] for part in costs.MAPS)
    assert costs.multiply_adds(tiny_config(**ENCODER), n_source=3, n_target=0)["output"] == 0
    assert costs.multiply_adds(tiny_config(**DECODER), n_source=0, n_target=3)["cross_maps"] == 0
    for config, lengths in ((tiny_config(), (0, 3)), (tiny_config(**DECODER), (3, 0))):
        with pytest.raises(ValueError, match=f"{lengths[0]} source and {lengths[1]} target"):
            costs.multiply_adds(config, n_source=lengths[0], n_target=lengths[1])


@pytest.mark.parametrize("name", ["paper", "small", "decoder"])
@pytest.mark.parametrize("parts", [None, costs.PROJECTIONS, ("output",)])
def test_the_crossing_is_the_first_length_at_which_the_maps_need_more(name, parts):
    config, linear = tiny_config(**MODELS[name]), parts or set(costs.PARTS) - set(costs.MAPS)

    def more(n):
        counts = costs.multiply_adds(config, n_source=n, n_target=n)
        return sum(counts[part] for part in costs.MAPS) > sum(counts[part] for part in linear)

    assert next(n for n in range(1, 400) if more(n)) == costs.overtakes(config, parts=parts).n


@pytest.mark.parametrize("name", MODELS)
def test_parameters_add_up_in_the_components_that_a_model_has_and_buffers_stand_apart(name):
    model = tiny_model(dtype=torch.float32, **MODELS[name])
    held, config = costs.holdings(model), model.config
    assert sum(one.parameters for one in held.values()) == config.count_parameters()
    state = {name: value for name, value in model.state_dict().items() if value.numel()}
    for part, one in held.items():
        assert one.parameters == sum(count * torch.Size(shape).numel() for _, shape, count in one.tensors)
        assert one.parameters == sum(t.numel() for name, t in state.items() if costs.part_of(name) == part)
    used = {part for part, n in costs.multiply_adds(config, n_source=3, n_target=3).items() if n}
    used |= {part for part, one in held.items() if one.parameters}
    assert used <= set(costs.parts_of(config)) <= used | {"positions", "target_embedding"}  # sinusoids, a shared table
    tables = {f"{one.name}.embedding.positions.table": (16, config.d_model) for one in model.anatomy.stacks}
    assert costs.buffers(model) == (tables if config.positions == "sinusoidal" else {})


def layers_until_they_meet(n, reach):
    """How many layers take the first of n tokens to the last; `reach` says how far apart layer i's neighbours are."""
    seen, layer = {0}, 0
    while n - 1 not in seen:
        seen |= {token + step for token in seen for step in reach(layer) if token + step < n}
        layer += 1
    return layer


@pytest.mark.parametrize("n", [1, 2, 11, 15, 64])
@pytest.mark.parametrize("side", [1, 2])
def test_kinds_of_layers_by_walking_and_by_loops(n, side):
    d, k = 6, 2 * side + 1
    found, near = costs.kinds_of_layers(n, d, side=side), range(-side, side + 1)
    reaches = {
        "attention": lambda layer: range(n),
        "window": lambda layer: near,
        "convolution": lambda layer: near,
        "recurrence": lambda layer: (0, 1),
        "dilated": lambda layer: [step * k**layer for step in near],
    }
    counted = costs.multiply_adds(
        tiny_config(**DECODER, d_model=d, n_heads=1, n_decoder_layers=1), n_source=1, n_target=n
    )
    products = {
        "attention": counted["decoder_projections"] + counted["decoder_maps"],
        "window": counted["decoder_projections"] + 2 * d * n * min(k, n),
        "recurrence": 2 * n * d * d,  # one matrix for the token, one for the state
        **dict.fromkeys(("convolution", "dilated"), k * n * d * d),
    }
    assert found == {
        name: (layers_until_they_meet(n, reach), n if name == "recurrence" else 1, products[name])
        for name, reach in reaches.items()
    }
