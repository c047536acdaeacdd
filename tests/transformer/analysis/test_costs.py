"""Parameters, multiply-adds and shapes are counted as torch counts them, for every kind of model.

Counted again with torch's own counter, with loops, and from the state.
"""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from tests.transformer.tiny import DECODER, ENCODER, random_ids, tiny_config, tiny_model
from transformer.analysis import costs
from transformer.analysis.costs import shapes_of
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


@pytest.fixture(params=MODELS)
def model(request):
    return tiny_model(dtype=torch.float32, **MODELS[request.param])


@pytest.mark.parametrize(("n_source", "n_target"), [(1, 1), (7, 4)])
def test_torch_counts_the_same_multiply_adds(model, n_source, n_target):
    recorder = Recorder(("*.scores",))  # with scores wanted, attention does its two products one by one
    with FlopCounterMode(display=False) as counter:
        model(random_ids(1, n_source), random_ids(1, n_target), tap=tap_of(recorder))
    counted = costs.multiply_adds(model.config, n_source=n_source, n_target=n_target)
    assert 2 * sum(counted.values()) == counter.get_total_flops()


def test_each_component_is_counted_by_itself_and_groups_keep_the_sum():
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


def test_only_a_stack_that_is_there_needs_a_length():
    assert costs.multiply_adds(tiny_config(**ENCODER), n_source=3, n_target=0)["output"] == 0
    assert costs.multiply_adds(tiny_config(**DECODER), n_source=0, n_target=3)["cross_maps"] == 0
    for config, lengths in ((tiny_config(), (0, 3)), (tiny_config(**DECODER), (3, 0))):
        with pytest.raises(ValueError, match=f"{lengths[0]} source and {lengths[1]} target"):
            costs.multiply_adds(config, n_source=lengths[0], n_target=lengths[1])


@pytest.mark.parametrize("name", ["paper", "small", "decoder"])
@pytest.mark.parametrize("parts", [None, costs.PROJECTIONS, ("output",)])
def test_the_crossing_is_the_first_length_at_which_the_maps_need_more(name, parts):
    config = tiny_config(**MODELS[name])

    def more(n):
        counts = costs.multiply_adds(config, n_source=n, n_target=n)
        linear = [part for part in costs.PARTS if part not in costs.MAPS] if parts is None else parts
        return sum(counts[part] for part in costs.MAPS) > sum(counts[part] for part in linear)

    assert next(n for n in range(1, 400) if more(n)) == costs.overtakes(config, parts=parts).n


def test_parameters_add_up_in_the_components_that_a_model_has_and_buffers_stand_apart(model):
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


def test_recorded_shapes_are_those_of_the_values(model):
    src, tgt = random_ids(1, 7), random_ids(1, 4)
    recorder = Recorder(("*",))
    model(src, tgt, tap=tap_of(recorder))
    seen = shapes_of(model, src[0].tolist(), tgt[0].tolist())
    assert seen.sites == {site: tuple(value.shape) for site, value in recorder.values.items()}
    assert seen.sites.keys() == sites(model.config).keys()
    with pytest.raises(QueryError, match="at most 16"):
        shapes_of(model, [4] * 17, [4] * 17)


def layers_until_they_meet(n, reach):
    """How many layers take the first of n tokens to the last; `reach` says how far apart layer i's neighbours are."""
    seen, layer = {0}, 0
    while n - 1 not in seen:
        seen |= {token + step for token in seen for step in reach(layer) if token + step < n}
        layer += 1
    return layer


@pytest.mark.parametrize("n", [1, 2, 3, 11, 14, 15, 64])
@pytest.mark.parametrize("side", [1, 2])
def test_kinds_of_layers_by_walking_and_by_loops(n, side):
    d, k = 6, 2 * side + 1
    found = costs.kinds_of_layers(n, d, side=side)
    near = range(-side, side + 1)
    walked = {
        "attention": layers_until_they_meet(n, lambda layer: range(n)),
        "window": layers_until_they_meet(n, lambda layer: near),
        "convolution": layers_until_they_meet(n, lambda layer: near),
        "recurrence": layers_until_they_meet(n, lambda layer: (0, 1)),
        "dilated": layers_until_they_meet(n, lambda layer: [step * k**layer for step in near]),
    }
    assert {name: path for name, (path, _, _) in found.items()} == walked
    assert {name: steps for name, (_, steps, _) in found.items()} == dict.fromkeys(found, 1) | {"recurrence": n}
    one = tiny_config(**DECODER, d_model=d, n_heads=1, n_decoder_layers=1)
    counted = costs.multiply_adds(one, n_source=1, n_target=n)
    assert found["attention"][2] == counted["decoder_projections"] + counted["decoder_maps"]
    assert found["window"][2] == counted["decoder_projections"] + sum(2 * d for _ in range(n) for _ in range(min(k, n)))
    products = [(i, o) for _ in range(n) for o in range(d) for i in range(d)]
    assert found["recurrence"][2] == 2 * len(products)  # one matrix for the token, one for the state
    assert found["convolution"][2] == found["dilated"][2] == k * len(products)
