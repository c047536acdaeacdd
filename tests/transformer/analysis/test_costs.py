"""Parameters and multiply-adds: counted again with torch's own counter, with loops, and from the state."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from tests.transformer.tiny import random_ids, tiny_config, tiny_model
from transformer.analysis import costs
from transformer.analysis.costs import shapes_of
from transformer.errors import QueryError
from transformer.tap import Recorder, sites, tap_of

FEATURES = [
    {},
    {"norm": "post", "final_norm": False, "bias": False, "positions": "learned", "tie_output": False},
    {"shared_vocab": True, "tgt_vocab_size": 17, "output_bias": True, "n_heads": 2, "n_encoder_layers": 3},
    {"n_encoder_layers": 1, "n_decoder_layers": 1, "d_model": 6, "n_heads": 1, "d_ff": 5, "final_norm": False},
]


@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize(("n_source", "n_target"), [(1, 1), (6, 6), (7, 4), (2, 9)])
def test_torch_counts_the_same_multiply_adds(features, n_source, n_target):
    model = tiny_model(dtype=torch.float32, **features)
    recorder = Recorder(("*.scores",))  # with scores wanted, attention does its two products one by one
    with FlopCounterMode(display=False) as counter:
        model(random_ids(1, n_source), random_ids(1, n_target), tap=tap_of(recorder))
    counted = costs.multiply_adds(model.config, n_source=n_source, n_target=n_target)
    assert 2 * sum(counted.values()) == counter.get_total_flops()


def test_each_component_is_what_loops_over_matrices_give():
    config, s, t = tiny_config(), 7, 4
    d, f = config.d_model, config.d_ff

    def product(rows, inner, columns):
        return sum(inner for _ in range(rows) for _ in range(columns))

    def maps(queries, keys):
        head = product(queries, config.d_head, keys) + product(queries, keys, config.d_head)
        return config.n_heads * head

    expected = {
        "encoder_projections": 2 * 4 * product(s, d, d),
        "encoder_maps": 2 * maps(s, s),
        "encoder_ffn": 2 * (product(s, d, f) + product(s, f, d)),
        "decoder_projections": 3 * 4 * product(t, d, d),
        "decoder_maps": 3 * maps(t, t),
        "cross_projections": 3 * (2 * product(t, d, d) + 2 * product(s, d, d)),
        "cross_maps": 3 * maps(t, s),
        "decoder_ffn": 3 * (product(t, d, f) + product(t, f, d)),
        "output": product(t, d, config.tgt_vocab_size),
    }
    counted = costs.multiply_adds(config, n_source=s, n_target=t)
    assert list(counted) == list(costs.PARTS)
    assert {part: count for part, count in counted.items() if count} == expected


def test_a_length_below_1_is_refused():
    with pytest.raises(ValueError, match="0 source and 3 target"):
        costs.multiply_adds(tiny_config(), n_source=0, n_target=3)


@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("parts", [None, costs.PROJECTIONS, ("output",)])
def test_the_crossing_is_the_first_length_at_which_the_maps_need_more(features, parts):
    config = tiny_config(**features)
    crossing = costs.overtakes(config, parts=parts)

    def more(n):
        counts = costs.multiply_adds(config, n_source=n, n_target=n)
        linear = [part for part in costs.PARTS if part not in costs.MAPS] if parts is None else parts
        return sum(counts[part] for part in costs.MAPS) > sum(counts[part] for part in linear)

    assert next(n for n in range(1, 400) if more(n)) == crossing.n
    if parts == costs.PROJECTIONS:
        assert crossing.n == 2 * config.d_model + 1


def test_groups_keep_the_sum():
    counts = costs.multiply_adds(tiny_config(), n_source=3, n_target=5)
    groups = costs.grouped(counts)
    assert sum(groups.values()) == sum(counts.values())
    assert groups["output"] == counts["output"]
    assert groups["maps"] == counts["encoder_maps"] + counts["decoder_maps"] + counts["cross_maps"]


@pytest.mark.parametrize("features", FEATURES)
def test_parameters_add_up_and_buffers_stand_apart(features):
    model = tiny_model(**features)
    held, config = costs.holdings(model), model.config
    assert sum(one.parameters for one in held.values()) == config.count_parameters()
    state = dict(model.state_dict())
    assert sum(one.parameters for one in held.values()) == sum(tensor.numel() for tensor in state.values())
    for part, one in held.items():
        assert one.parameters == sum(count * torch.Size(shape).numel() for _, shape, count in one.tensors)
        assert one.parameters == sum(t.numel() for name, t in state.items() if costs.part_of(name) == part)
    norms = config.n_encoder_layers * 2 + config.n_decoder_layers * 3 + 2 * config.final_norm
    assert held["norms"].parameters == norms * config.d_model * (1 + config.bias)
    sinusoids = {f"{stack}.embedding.positions.table": (16, config.d_model) for stack in ("encoder", "decoder")}
    assert costs.buffers(model) == ({} if config.positions == "learned" else sinusoids)


KINDS = (("weight", (12, 12)), ("bias", (12,)))


def test_tensors_are_named_once_with_how_many_there_are():
    held = costs.holdings(tiny_model())
    assert held["cross_projections"].tensors == (
        *((f"cross_attn.{name}_proj.{kind}", shape, 3) for name in "qkv" for kind, shape in KINDS),
        ("cross_attn.out_proj.weight", (12, 12), 3),
        ("cross_attn.out_proj.bias", (12,), 3),
    )
    assert held["output"].tensors == ()  # tied
    with pytest.raises(KeyError, match="no component"):
        costs.part_of("encoder.layers.0.gate")


def test_recorded_shapes_are_those_of_the_values():
    model = tiny_model(dtype=torch.float32)
    src, tgt = random_ids(1, 7), random_ids(1, 4)
    recorder = Recorder(("*",))
    model(src, tgt, tap=tap_of(recorder))
    seen = shapes_of(model, src[0].tolist(), tgt[0].tolist())
    assert (seen.src_ids, seen.tgt_ids) == ((1, 7), (1, 4))
    assert seen.sites == {site: tuple(value.shape) for site, value in recorder.values.items()}
    assert seen.sites.keys() == sites(model.config).keys()
    assert seen.sites["decoder.2.cross_attn.weights"] == (1, 3, 4, 7)
    with pytest.raises(QueryError, match="at most 16"):
        shapes_of(model, range(4, 17), [4] * 17)


@pytest.mark.parametrize(
    "features",
    [{}, *({"shared_vocab": True, "tgt_vocab_size": 17, f"n_{one}_layers": 0} for one in ("encoder", "decoder"))],
)
def test_a_model_lists_the_components_that_it_has(features):
    model = tiny_model(**features)
    found, done = costs.parts_of(model.config), costs.multiply_adds(model.config, n_source=3, n_target=3)
    holding = {part for part, one in costs.holdings(model).items() if one.parameters} | {
        k for k, n in done.items() if n
    }
    assert holding <= set(found)
    assert set(found) - holding <= {"positions"}  # sinusoids hold nothing
    assert len(found) == (7 if features.get("n_encoder_layers") == 0 else 6 if features else len(costs.PARTS))
