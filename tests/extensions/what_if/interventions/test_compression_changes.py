"""A model made smaller by a change computes what one computes whose matrices were cut by hand, in 64 and 32 bits."""

from copy import deepcopy
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from glassformer.extensions.what_if.interventions import HalfPrecision, Narrower
from tests.extensions.what_if.interventions.test_changes import SOURCE, WRITTEN, both_widths, tap_of_text
from tests.transformer.tiny import tiny_model
from transformer.errors import NotFiniteError, QueryError
from transformer.model.taps import NO_TAP, Recorder
from transformer.runs import recording_pass
from transformer.runs.apply_interventions import tap_for
from transformer.runs.interventions import ChangeError, parse

EVERY = ("both", "post", "decoder", "rotary", "alibi", "encoder", "gated")


def model_of(name, dtype):
    if name == "gated":
        return tiny_model(dtype=dtype, gated=True, activation="silu", n_kv_heads=1, n_decoder_layers=2)
    return both_widths(name)[dtype == torch.float64]


@torch.inference_mode()
def outputs(model, tap=NO_TAP):
    source, read = torch.tensor([SOURCE]), torch.tensor([[2, *WRITTEN]])
    return model(source, read, tap=tap) if model.anatomy.writes else model.encode(source, tap=tap)


def layers(model):
    """The stack, the layer's number and the layer of each."""
    return [
        (name, number, layer)
        for name in ("encoder", "decoder")
        if hasattr(model, name)
        for number, layer in enumerate(getattr(model, name).layers)
    ]


def attentions(layer):
    return [one for one in (layer.self_attn, getattr(layer, "cross_attn", None)) if one is not None]


def keeps(strengths, share):
    """The places of the largest, by counting."""
    order = sorted(range(len(strengths)), key=lambda place: -float(strengths[place]))
    return order[: round(share * len(strengths))]


def silence(ffn, kept):
    gone = [n for n in range(ffn.down_proj.weight.size(1)) if n not in kept]
    ffn.down_proj.weight[:, gone] = 0


def neurons_off(model):
    for name, number, layer in layers(model):
        if (name, number) in (("decoder", 1), ("encoder", 1)):
            silence(layer.ffn, set(range(layer.ffn.down_proj.weight.size(1))) - {0, 6})


def strongest_neurons(model):
    for _, _, layer in layers(model):
        ffn = layer.ffn
        before = [ffn.up_proj, *([ffn.gate_proj] if ffn.gated else [])]
        strengths = [
            sum(float((one.weight[n] ** 2).sum()) for one in before) * float((ffn.down_proj.weight[:, n] ** 2).sum())
            for n in range(ffn.up_proj.weight.size(0))
        ]
        silence(ffn, keeps(strengths, 0.3))


def first_neurons(model):
    for _, _, layer in layers(model):
        silence(layer.ffn, range(5))


def cut_heads(choose):
    def cut(model):
        for _, _, layer in layers(model):
            for one in attentions(layer):
                d, shared = one.d_head, one.n_heads // one.n_kv_heads
                for group in range(one.n_kv_heads):
                    theirs = [range(h * d, (h + 1) * d) for h in range(group * shared, (group + 1) * shared)]
                    own = range(group * d, (group + 1) * d)
                    q, k, v, o = one.q_proj.weight, one.k_proj.weight, one.v_proj.weight, one.out_proj.weight
                    scored = choose([
                        float((k[own[j]] ** 2).sum()) * sum(float((q[head[j]] ** 2).sum()) for head in theirs)
                        for j in range(d)
                    ])  # fmt: skip
                    written = choose([
                        float((v[own[j]] ** 2).sum()) * sum(float((o[:, head[j]] ** 2).sum()) for head in theirs)
                        for j in range(d)
                    ])  # fmt: skip
                    for j in range(d):
                        for proj, rows in ((one.q_proj, [h[j] for h in theirs]), (one.k_proj, [own[j]])):
                            if j not in scored:
                                proj.weight[rows] = 0
                                proj.bias[rows] = 0
                        if j not in written:
                            o[:, [head[j] for head in theirs]] = 0
                # a head's values stay, as nothing behind them reads them

    return cut


def of_rank(rank):
    def cut(model):
        for _, _, layer in layers(model):
            ffn = layer.ffn
            for one in (ffn.up_proj, ffn.down_proj, *([ffn.gate_proj] if ffn.gated else [])):
                left, sizes, right = np.linalg.svd(one.weight.double().numpy())
                found = sum(sizes[i] * np.outer(left[:, i], right[i]) for i in range(min(rank, len(sizes))))
                one.weight.copy_(torch.from_numpy(found))

    return cut


CUT = {
    "neuron-all.2.1_neuron-all.2.7": neurons_off,
    "width-all.all.ffn.0p3.strongest.0": strongest_neurons,
    "width-all.all.ffn.0p25.first.0": first_neurons,
    "width-all.all.heads.0p67.strongest.0": cut_heads(lambda strengths: keeps(strengths, 0.67)),
    "width-all.all.heads.0p5.first.0": cut_heads(lambda strengths: range(round(0.5 * len(strengths)))),
    "ffrank-all.all.3": of_rank(3),
    "ffrank-all.all.99": lambda model: None,
    "width-all.all.ffn.1.random.0": lambda model: None,
    "width-all.all.heads.1.strongest.0": lambda model: None,
}


@pytest.mark.parametrize("text", CUT)
@pytest.mark.parametrize("name", EVERY)
def test_a_change_is_what_matrices_cut_by_hand_give(name, text):
    for dtype, tolerance in ((torch.float64, 1e-10), (torch.float32, 1e-4)):
        model = model_of(name, dtype)
        by_hand = deepcopy(model)
        with torch.no_grad():
            CUT[text](by_hand)
        changed = outputs(model, tap_of_text(text, model))
        assert (changed - outputs(by_hand)).abs().max() < tolerance
        moved = float((changed - outputs(model)).abs().max())
        assert (moved < tolerance) == (text in list(CUT)[-3:])


def test_random_neurons_are_a_share_that_the_seed_decides_in_each_layer():
    model = deepcopy(model_of("both", torch.float64))
    for _, _, layer in layers(model):
        layer.ffn.activation = torch.exp  # so that none is 0 by itself

    def silent(seed):
        seen = Recorder(["*.ffn.activation"])
        outputs(model, tap_of_text(f"width-all.all.ffn.0p4.random.{seed}", model).also(seen))
        return [(value[0] == 0).all(0).tolist() for value in seen.values.values()]

    one, again, other = silent(1), silent(1), silent(2)
    assert one == again != other
    assert {sum(layer) for layer in one} == {20 - round(0.4 * 20)}
    assert len({tuple(layer) for layer in one}) == len(one)


# Half precision


def test_a_fill_value_of_a_billion_is_infinite_in_half_precision_and_ten_thousand_is_not():
    one, other = HalfPrecision("all"), HalfPrecision("all", fill=-1e4)
    with np.errstate(over="ignore"):
        assert one.filled == -np.inf == float(np.float32(-1e9).astype(np.float16))
    assert other.filled == -1e4 == float(np.float16(-1e4))
    assert "−∞" in one.told()
    assert "−10000" in other.told()
    assert one.closed_score("cross", -1.0) is None
    assert other.closed_score("cross", None) == -1e4
    assert HalfPrecision("decoder").closed_score("cross", -1.0) == -1.0
    assert HalfPrecision("all", fill=-65519).filled == -65504  # rounded, and from 65,520 on infinite
    assert HalfPrecision("all", fill=-65520).filled == -np.inf


def closed_rows(model, change):
    tap, ids = tap_of_text(f"causal-inverted_{change}", model), torch.tensor([SOURCE])
    memory, _ = recording_pass.read_source(model, ids, ["*.weights"], tap=tap)
    read = torch.tensor([[2, *WRITTEN]])
    return recording_pass.read_target(model, read, memory, model.source_mask(ids), ["*.weights"], tap=tap)


def test_rows_whose_keys_are_all_closed_are_nan_with_a_billion_and_alike_with_ten_thousand():
    model = model_of("both", torch.float32)
    with pytest.raises(NotFiniteError, match=r"at decoder\.0\.self_attn\.weights"):
        closed_rows(model, "half-decoder.m1e9")
    with torch.inference_mode():
        weights = closed_rows(model, "half-decoder.m10000")["decoder.0.self_attn.weights"]
        for row, keys in enumerate(weights[0, 0]):
            n = row + 1  # keys when this row was written, all of them closed
            assert torch.equal(keys[:n], torch.full((n,), float(np.float16(1 / n))))


def test_large_scores_overflow_in_half_precision():
    model = model_of("decoder", torch.float32)
    seen = Recorder(["decoder.0.self_attn.scores"])
    outputs(model, tap_of_text("scale-all.number.100_half-all.m1e9", model).also(seen))
    (scores,) = seen.values.values()
    with np.errstate(over="ignore"):
        assert np.array_equal(scores.numpy(), scores.numpy().astype(np.float16).astype(np.float32))
    large = deepcopy(model)
    large.attentions("decoder")[0].q_proj.weight.mul_(1e4)
    large.attentions("decoder")[0].k_proj.weight.mul_(1e3)
    seen = Recorder(["decoder.0.self_attn.scores"])
    outputs(large, tap_of_text("half-all.m1e9", large).also(seen))
    assert next(iter(seen.values.values())).isinf().any()


# Values that are refused

HOSTILE = [
    ("width-all.all.ffn.1p5.strongest.0", "from 0 to 1"),
    ("width-all.all.ffn.m1.strongest.0", "from 0 to 1"),
    ("width-all.all.ffn.0p5.weakest.0", "strongest, first, random"),
    ("width-all.all.mlp.0p5.strongest.0", "ffn, heads"),
    ("ffrank-all.all.0", "from 1 to 4,096"),
    ("ffrank-all.all.4097", "from 1 to 4,096"),
    ("projected-all.0", "from 1 to 4,096"),
    ("projected-all.4097", "from 1 to 4,096"),
    *((f"neuron-all.all.{said}", "from 1 to 131,072") for said in ("", "0", "m1", "1~2", "2p5", "131073")),
    ("half-all.1", "from −1 × 10⁹ to 0"),
    ("half-all.m1e10", "from −1 × 10⁹ to 0"),
]


@pytest.mark.parametrize(("text", "said"), HOSTILE)
def test_a_value_out_of_range_is_refused_in_one_sentence_with_the_limit(text, said):
    with pytest.raises(QueryError, match=said) as caught:
        parse(text)
    assert "\n" not in str(caught.value)


def test_a_neuron_that_a_model_does_not_have_is_refused():
    model = model_of("both", torch.float64)
    with pytest.raises(ChangeError, match=r"names neuron 21, .* only neurons 1 to 20"):
        tap_of_text("neuron-all.all.3_neuron-all.all.21", model)


def test_a_layer_that_only_the_deeper_stack_has_is_cut_there():
    model, seen = tiny_model(), Recorder(["*.ffn.activation"])  # of 2 and 3 layers
    outputs(model, tap_of_text("width-all.3.ffn.0.first.0", model).also(seen))
    assert [site for site, value in seen.values.items() if not value.any()] == ["decoder.2.ffn.activation"]
    assert outputs(model, tap_of_text("width-all.3.heads.0p5.strongest.0", model)).isfinite().all()


def test_heads_that_were_told_are_cut_as_they_are_told():
    model, seen = model_of("both", torch.float64), Recorder(["decoder.0.self_attn.values"])
    outputs(model, tap_for([*parse("heads-2"), Narrower(part="heads", share=0.5, how="first")], SimpleNamespace(
        config=model.config, model=model)).also(seen))  # fmt: skip
    (values,) = seen.values.values()
    assert values.shape[1:] == (2, 6, 6)
    assert (values[..., 3:] == 0).all()
    assert (values[..., :3] != 0).all()
