"""A changed model computes what a model in NumPy that is wired so computes, with its maps, at each step.

With and without a cache, recorded in one pass, in 64 and 32 bits; each change alone, and with two others.
"""

from copy import deepcopy
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from glassformer.extensions.what_if.interventions import KINDS, HalfPrecision, Temper
from glassformer.extensions.what_if.interventions.layer_changes import drawn
from glassformer.extensions.what_if.interventions.score_changes import LowRank
from tests.extensions.what_if.interventions.plain import Plain
from tests.extensions.what_if.interventions.wired import CASES, INERT, MODELS, model_of
from tests.transformer.tiny import DECODER, tiny_model
from transformer.errors import NotFiniteError, QueryError
from transformer.model.cache import KVCache
from transformer.model.taps import Recorder
from transformer.runs import recording_pass
from transformer.runs.apply_interventions import tap_for
from transformer.runs.decoding import Prefix
from transformer.runs.interventions import ChangeError, parse
from transformer.runs.reading import WEIGHTS

SOURCE = [5, 9, 4, 12, 0, 0]  # with padding, where there is an encoder
WRITTEN = [7, 11, 4, 6, 10]
NEVER_BESIDE = ("unguarded-all", "causal-hidden", "causal-inverted")  # rows that are closed throughout, and NaN
SEES_LATER = ("causal-off", "causal-peek", "causal-transposed")
# Each with the model that is next in turn whenever tests run, and with those in which it must change nothing.
TURNS = {text: (models[n % len(models)], *INERT.get(text, ())) for n, (text, (models, *_)) in enumerate(CASES.items())}
ONE = [
    pytest.param(text, model, marks=() if model in TURNS[text] else pytest.mark.deep)
    for text, (models, *_) in CASES.items()
    for model in models
]


def beginning(model):
    """The source of a model, and what its decoder reads before it writes."""
    return (SOURCE, [2]) if model.anatomy.reads else (SOURCE[:4], SOURCE[:4])


def tap_of_text(text, model):
    return tap_for(parse(text), SimpleNamespace(config=model.config, model=model))


def together(text, model):
    """The text and two others that can be made in the same model and change other things."""
    texts = [other for other, (models, *_) in CASES.items() if model in models]
    place, words = texts.index(text), {text.split("-")[0]}
    found = [text]
    for other in texts[place + 1 :] + texts[:place]:
        word = other.split("-")[0]
        if len(found) < 3 and word not in words and other not in NEVER_BESIDE:
            words.add(word)
            found.append(other)
    return found


def expected(model, texts):
    """Log-probabilities of each step [T, V], of an encoder its vectors [S, D]; and the maps by place [H, Q, K].

    Each row of the decoder is as when its token was the last that had been read.
    """
    plain = Plain(model, [change for text in texts for change in CASES[text][1:]])
    (source, start), rows, found = beginning(model), {}, []
    if not model.anatomy.writes:
        return plain.memory(source), plain.maps
    read = [*start, *WRITTEN]
    for n in range(1, len(read) + 1):
        found.append(plain.log_probs(source, read[:n]))
        for name, maps in plain.maps.items():
            width = len(source) if "cross" in name else len(read)
            rows.setdefault(name, []).append(np.pad(maps[:, -1], ((0, 0), (0, max(width - maps.shape[-1], 0)))))
    maps = {name: np.stack(rows[name], 1) if name.startswith("decoder") else plain.maps[name] for name in rows}
    return np.array(found[len(start) - 1 :]), maps


@cache
def both_widths(name):
    """A model in 32 bits, and the same numbers in 64."""
    small = model_of(name, torch.float32)
    return small, deepcopy(small).double()


@cache
def unchanged(name):
    return expected(both_widths(name)[1], [])[0]


@torch.inference_mode()
def written(model, tap, *, cached):
    kept = KVCache(model.config.n_decoder_layers) if cached else None
    prefix = Prefix(model, torch.tensor([beginning(model)[0]]), cache=kept, tap=tap)
    found = []
    for piece in [*WRITTEN, None]:
        found.append(prefix.next_log_probs()[0].numpy())
        if piece is not None:
            prefix.append(torch.tensor([piece]))
    return found


@torch.inference_mode()
def recorded(model, tap):
    """The same by the recording pass; its maps, and those that one pass over the whole output would give."""
    source, start = beginning(model)
    ids, read = torch.tensor([source]), torch.tensor([[*start, *WRITTEN]])
    memory, seen = recording_pass.read_source(model, ids, [WEIGHTS], tap=tap)
    if not model.anatomy.writes:
        return memory[0].numpy(), seen, seen
    mask, whole = model.source_mask(ids), Recorder([WEIGHTS])
    model.decode(read, memory, mask, tap=tap.also(whole))
    seen |= recording_pass.read_target(model, read, memory, mask, [WEIGHTS, "logits"], tap=tap)
    return seen.pop("logits")[0, len(start) - 1 :].log_softmax(-1).numpy(), seen, whole.values


def check(model, texts, reference, tolerance, *, ways=(True, False)):
    """Compare decoding with and without a cache, and the recording pass; gives back whether one pass differs."""
    tap, (rows, maps) = tap_of_text("_".join(texts), model), reference
    for cached in ways if model.anatomy.writes else ():
        np.testing.assert_allclose(written(model, tap, cached=cached), rows, atol=tolerance, rtol=0)
    found, seen, whole = recorded(model, tap)
    np.testing.assert_allclose(found, rows, atol=tolerance, rtol=0)
    assert {site.removesuffix(".weights") for site in seen} == maps.keys()
    for site, values in seen.items():
        np.testing.assert_allclose(values[0], maps[site.removesuffix(".weights")], atol=tolerance, rtol=0)
    differs = any((seen[site] - values).abs().max() > 1e-6 for site, values in whole.items() if site in seen)
    assert not (differs and tap.causal)
    return differs


@pytest.mark.parametrize(("text", "model"), ONE)
def test_a_change_is_what_a_model_wired_so_computes(text, model):
    small, large = both_widths(model)
    reference = expected(large, [text])
    differs = check(large, [text], reference, 1e-10)
    if not text.startswith("half"):  # what is rounded so coarsely depends on the last bit of what was there before
        check(small, [text], reference, 1e-4, ways=[True])  # as the app runs it
    moved = np.abs(reference[0] - unchanged(model)).max()
    assert (moved < 1e-10) == (model in INERT.get(text, ()))  # or the comparison would prove nothing
    assert differs or text not in SEES_LATER


@pytest.mark.parametrize(
    "text", [pytest.param(text, marks=[pytest.mark.deep] * (n % 5 > 0)) for n, text in enumerate(CASES)]
)
def test_so_it_is_with_two_others(text):
    models = CASES[text][0]
    name = models[(list(CASES).index(text) + 1) % len(models)]
    (_, model), texts = both_widths(name), together(text, name)
    check(model, texts, expected(model, texts), 1e-10)


# Where each makes sense

REFUSED = {
    "both": {"bits": None},
    "decoder": {"padding": "no padding token"},
    "encoder": {"causal": "An encoder-only model has no causal mask"},
    "rotary": {"heads": "Rotary positions rotate pairs"},
    "alibi": {"heads": "its own distance bias"},
    "none": dict.fromkeys(("unplaced", "shift", "stretch", "misplaced"), "has no positional encoding"),
    "sandwich": {"swapnorms": "before and after"},
    "bare": {"nonorm": "no norms anyway", "swapnorms": "no norms anyway", "noresidual": "no residual"},
    "parallel": {"swapnorms": "no sum between the two where a norm could go"},
    "normed": {"heads": "norms of queries and keys"},
    "grouped": {"heads": "share keys and values"},
}
OTHERS = {
    "none": {"positions": "none"},
    "sandwich": {"norm": "both"},
    "bare": {"norm_kind": "none", "norm_bias": False, "residual": False, "final_norm": False},
    "parallel": {**DECODER, "parallel_residual": True},
    "normed": {"qk_norm": True},
    "grouped": {"n_kv_heads": 1},
}


@pytest.mark.parametrize("name", REFUSED)
def test_each_kind_works_in_a_model_or_says_why_not(name):
    model = model_of(name) if name in MODELS else tiny_model(**OTHERS[name])
    pad = {"pad_id": None} if name == "decoder" else {}
    config = replace(model.config, **pad)
    refused = {}
    for kind in KINDS.values():
        if kind.group in ("heads", "rows", "pieces") or kind.word in (
            "skip",
            "neuron",
        ):  # of a named head, token, layer
            continue
        try:
            tap = tap_for([kind()], SimpleNamespace(config=config, model=model))
        except ChangeError as error:
            refused[kind.word] = str(error)
            continue
        with torch.inference_mode():
            assert model(torch.tensor([SOURCE]), torch.tensor([[2, *WRITTEN]]), tap=tap).isfinite().all()
    assert refused.keys() == {word for word, why in REFUSED[name].items() if why}
    for word, why in refused.items():
        assert REFUSED[name][word] in why
        assert KINDS[word].unfit(config) == why


CONTRADICTIONS = [
    ("decoder", "scale-cross.off.1", "no cross-attention"),
    ("decoder", "shift-encoder.1", "no encoder"),
    ("both", "noresidual-decoder.9.all", "layers 1 to 2"),
    ("both", "noresidual-encoder.all.crossattn", "names cross-attention, but this model has none in the chosen part"),
    ("both", "padding-cross.rows", "rows of cross-attention"),
    ("both", "heads-5", "for example 1, 2, 3, 4, 6, 12"),
    ("both", "similar-all.1.9.dot.1", "heads 1 to 4"),
    ("both", "similar-cross.3.all.dot.1", "layers 1 to 2"),
    ("both", "zero-cross.1.3_heads-2", "heads 1 to 2"),
    ("both", "nonorm-all.1.final", "names a layer"),
    ("post", "nonorm-all.all.final", "this model has none"),
    ("rotary", "similar-all.all.all.general.1", "rotates or normalises queries after W_Q and keys after W_K"),
    ("both", "mean-cross.3.1", r"mean-cross\.3\.1 names layer 3, but this part of the model has only layers 1 to 2"),
    ("both", "uniform-decoder.all.5", r"uniform-decoder\.all\.5 names head 5, but this model has only heads 1 to 4"),
    ("both", "skip-encoder.1.cross", "an encoder has none"),
    ("decoder", "skip-encoder.1.whole", "This model has no encoder"),
    ("both", "mute-decoder.1.1.all.13.1", "names token 13, but this model reads at most 12 tokens"),
    ("both", "neuron-all.all.3_neuron-all.all.21", r"names neuron 21, .* only neurons 1 to 20"),
]


@pytest.mark.parametrize(("model_name", "text", "why"), CONTRADICTIONS)
def test_what_a_model_does_not_have_is_refused(model_name, text, why):
    model = model_of(model_name)
    with pytest.raises(ChangeError, match=why):
        tap_of_text(text, model)


HOSTILE = [
    ("width-all.all.ffn.1p5.strongest.0", "from 0 to 1"),
    ("width-all.all.ffn.m1.strongest.0", "from 0 to 1"),
    ("width-all.all.ffn.0p5.weakest.0", "strongest, first, random"),
    ("width-all.all.mlp.0p5.strongest.0", "ffn, heads"),
    *((f"{word}.{n}", "from 1 to 4,096") for word in ("ffrank-all.all", "projected-all") for n in (0, 4097)),
    *((f"neuron-all.all.{said}", "from 1 to 131,072") for said in ("", "0", "m1", "1~2", "2p5", "131073")),
    *((f"half-all.{fill}", "from −1 × 10⁹ to 0") for fill in ("1", "m1e10")),
    *((text, "change the same thing") for text in (
        "fill-all.m1_unguarded-all", "force-cross.1.1.2.3_force-cross.1.1.2.4")),
    ("weigh-cross.1.1.2.0~0.1", "cannot be renormalised"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "said"), HOSTILE)
def test_a_value_out_of_range_is_refused_in_one_sentence_with_the_limit(text, said):
    with pytest.raises(QueryError, match=said) as caught:
        parse(text)
    assert "\n" not in str(caught.value)


def test_two_keys_of_a_row_are_muted_and_a_temperature_has_limits():
    assert len(parse("mute-cross.1.1.all.3.1_mute-cross.1.1.all.4.1")) == 2
    for temperature in (0.01, -1, 21, float("nan"), "1"):
        with pytest.raises(QueryError, match="expected"):
            Temper("cross", 0, 0, temperature=temperature)


# Laws


@torch.inference_mode()
def logits_under(model, text, *recorders):
    read = torch.tensor([[2, *WRITTEN]])
    return model(torch.tensor([SOURCE]), read, tap=tap_of_text(text, model).also(*recorders))


def value_under(model, text, site):
    """What a model has at a site while it is changed."""
    recorder = Recorder([site])
    logits_under(model, text, recorder)
    return recorder.values[site][0]


def test_heads_that_were_told_count_for_others():
    heads = value_under(model_of("both"), "zero-cross.1.7_heads-12", "decoder.0.cross_attn.heads")
    assert [bool((head == 0).all()) for head in heads] == [head == 6 for head in range(12)]
    values = value_under(model_of("both"), "heads-2_width-all.all.heads.0p5.first.0", "decoder.0.self_attn.values")
    assert values.shape == (2, 6, 6)
    assert (values[..., 3:] == 0).all()
    assert (values[..., :3] != 0).all()


def test_minus_infinity_without_a_guard_is_nan_where_a_row_is_closed():
    model = model_of("both")
    for cached in (True, False):
        with pytest.raises(NotFiniteError, match=r"^With its changes, this model .* at decoder\.0\.self_attn\.weights"):
            written(model, tap_of_text("causal-inverted_unguarded-decoder", model), cached=cached)
    assert np.isfinite(written(model, tap_of_text("causal-inverted", model), cached=True)).all()


def test_a_row_whose_only_weight_is_muted_has_none_and_of_equal_keys_the_first_is_looked_up():
    model = model_of("both")
    model.attentions("cross")[0].q_proj.weight.zero_()
    model.attentions("cross")[0].q_proj.bias.zero_()
    changes = "temper-cross.1.all.0_force-cross.1.1.2.3_mute-cross.1.1.2.3.1"
    maps = value_under(model, changes, "decoder.0.cross_attn.weights")
    assert (maps[0, 1] == 0).all()
    assert (maps[1:, :, 0] == 1).all()
    assert (maps[0, [0, 2, 3, 4, 5], 0] == 1).all()


def test_the_more_random_features_the_nearer_to_the_softmax():
    model = model_of("both")
    untouched = logits_under(model, "")
    apart = [float((logits_under(model, f"features-all.{n}.0") - untouched).abs().max()) for n in (4, 64, 4096)]
    assert apart[2] < apart[1] < apart[0]
    assert apart[2] < 0.25 * apart[0]


def test_a_row_of_a_map_of_low_rank_that_has_nothing_left_stays():
    low = LowRank("all", rank=2)._nearest
    own = torch.eye(5, dtype=torch.float64).flip(0).expand(1, 2, 5, 5)  # of rows without a common key two are kept
    assert torch.equal(low(own), own)
    assert torch.equal(low(own * 0), own * 0)


def test_dropout_drops_its_share_and_keeps_the_mean():
    kept = torch.cat([drawn("encoder.embedding.output", block, 100, 0) for block in range(20)]) >= 0.25
    assert abs(float(kept.double().mean()) - 0.75) < 0.01
    one, other = (drawn("encoder.embedding.output", 0, 8, seed) for seed in (0, 1))
    assert not torch.equal(one, other)
    assert not torch.equal(one, drawn("encoder.0.ffn.output", 0, 8, 0))
    assert torch.equal(logits_under(model_of("both"), "dropout-0.0"), logits_under(model_of("both"), ""))


def test_random_neurons_are_a_share_that_the_seed_decides_in_each_layer():
    model = model_of("both")
    for stack in (model.encoder, model.decoder):
        for layer in stack.layers:
            layer.ffn.activation = torch.exp  # so that none is 0 by itself

    def silent(seed):
        seen = Recorder(["*.ffn.activation"])
        logits_under(model, f"width-all.all.ffn.0p4.random.{seed}", seen)
        return [(value[0] == 0).all(0).tolist() for value in seen.values.values()]

    one, again, other = silent(1), silent(1), silent(2)
    assert one == again != other
    assert {sum(layer) for layer in one} == {20 - round(0.4 * 20)}
    assert len({tuple(layer) for layer in one}) == len(one)


def test_a_layer_that_only_the_deeper_stack_has_is_cut_there():
    model, seen = tiny_model(), Recorder(["*.ffn.activation"])  # of 2 and 3 layers
    logits_under(model, "width-all.3.ffn.0.first.0", seen)
    assert [site for site, value in seen.values.items() if not value.any()] == ["decoder.2.ffn.activation"]
    assert logits_under(model, "width-all.3.heads.0p5.strongest.0").isfinite().all()


# Half precision


def test_a_fill_value_of_a_billion_is_infinite_in_half_precision_and_ten_thousand_is_not():
    one, other = HalfPrecision("all"), HalfPrecision("all", fill=-1e4)
    assert (one.filled, other.filled) == (-np.inf, -1e4)
    assert "−∞" in one.told()
    assert "−10000" in other.told()
    assert one.closed_score("cross", -1.0) is None
    assert other.closed_score("cross", None) == -1e4
    assert HalfPrecision("decoder").closed_score("cross", -1.0) == -1.0
    assert HalfPrecision("all", fill=-65519).filled == -65504  # rounded, and from 65,520 on infinite
    assert HalfPrecision("all", fill=-65520).filled == -np.inf


def test_rows_whose_keys_are_all_closed_are_nan_with_a_billion_and_alike_with_ten_thousand():
    model = model_of("both", torch.float32)
    with pytest.raises(NotFiniteError, match=r"at decoder\.0\.self_attn\.weights"):
        recorded(model, tap_of_text("causal-inverted_half-decoder.m1e9", model))
    _, maps, _ = recorded(model, tap_of_text("causal-inverted_half-decoder.m10000", model))
    for n, keys in enumerate(maps["decoder.0.self_attn.weights"][0, 0], 1):
        # keys when this row was written, all of them closed
        assert torch.equal(keys[:n], torch.full((n,), float(np.float16(1 / n))))


def test_large_scores_overflow_in_half_precision():
    model, site = model_of("decoder", torch.float32), "decoder.0.self_attn.scores"
    scores = value_under(model, "scale-all.number.100_half-all.m1e9", site).numpy()
    assert np.array_equal(scores, scores.astype(np.float16).astype(np.float32))
    model.attentions("decoder")[0].q_proj.weight.mul_(1e4)
    model.attentions("decoder")[0].k_proj.weight.mul_(1e3)
    assert value_under(model, "half-all.m1e9", site).isinf().any()
