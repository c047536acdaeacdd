"""Each change of the wiring against a model in NumPy that is wired so: alone, and with two others."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from glassformer.extensions.what_if.interventions import KINDS, WIRING
from glassformer.extensions.what_if.interventions.layer_changes import drawn, rounded
from glassformer.extensions.what_if.interventions.score_changes import LowRank
from tests.extensions.what_if.interventions.plain import Plain, Wires
from tests.extensions.what_if.interventions.wired import CASES, INERT, MODELS, model_of
from tests.transformer.tiny import DECODER, tiny_model
from transformer.errors import NotFiniteError, QueryError
from transformer.model.cache import KVCache
from transformer.model.taps import Recorder
from transformer.runs import recording_pass
from transformer.runs.apply_interventions import tap_for
from transformer.runs.decoding import Prefix
from transformer.runs.interventions import ChangeError, parse

SOURCE = [5, 9, 4, 12, 0, 0]  # with padding, where there is an encoder
WRITTEN = [7, 11, 4, 6, 10]
NEVER_BESIDE = ("unguarded-all", "causal-hidden", "causal-inverted")  # rows that are closed throughout, and NaN
# Each with the model that is next in turn whenever tests run, and with those in which it must change nothing.
TURNS = {text: (models[n % len(models)], *INERT.get(text, ())) for n, (text, (models, _)) in enumerate(CASES.items())}
ONE = [
    pytest.param(text, model, marks=() if model in TURNS[text] else pytest.mark.deep)
    for text, (models, _) in CASES.items()
    for model in models
]


def together(text, model):
    """The text and two others that can be made in the same model and change other things."""
    texts = [other for other, (models, _) in CASES.items() if model in models]
    place, words = texts.index(text), {text.split("-")[0]}
    found = [text]
    for other in texts[place + 1 :] + texts[:place]:
        word = other.split("-")[0]
        if len(found) < 3 and word not in words and other not in NEVER_BESIDE:
            words.add(word)
            found.append(other)
    return found


def expected(model, texts, source, start):
    """Log-probabilities of each step [T, V]; of an encoder its vectors [S, D]."""
    wires = Wires()
    for text in texts:
        CASES[text][1](wires)
    plain = Plain(model, wires)
    if not model.anatomy.writes:
        return plain.memory(source)
    return np.array([plain.log_probs(source, [*start, *WRITTEN[:n]]) for n in range(len(WRITTEN) + 1)])


@torch.inference_mode()
def written(model, tap, source, *, cached):
    ids = torch.tensor([source])
    kept = KVCache(model.config.n_decoder_layers) if cached else None
    prefix = Prefix(model, ids, cache=kept, tap=tap)
    found = []
    for piece in [*WRITTEN, None]:
        found.append(prefix.next_log_probs()[0].numpy())
        if piece is not None:
            prefix.append(torch.tensor([piece]))
    return found


@torch.inference_mode()
def recorded(model, tap, source, start):
    ids = torch.tensor([source])
    memory, _ = recording_pass.read_source(model, ids, [], tap=tap)
    if not model.anatomy.writes:
        return memory[0].numpy()
    read = torch.tensor([[*start, *WRITTEN]])
    values = recording_pass.read_target(model, read, memory, model.source_mask(ids), ["logits"], tap=tap)
    return values["logits"][0, len(start) - 1 :].log_softmax(-1).numpy()


@cache
def unchanged(model_name):
    return expected(*beginning(model_of(model_name)))


def beginning(model):
    """Of a model: no changes, the source and what the decoder reads before it writes."""
    reads = model.anatomy.reads
    return model, [], *((SOURCE, [2]) if reads else (SOURCE[:4], SOURCE[:4]))


def check(model_name, texts, dtype, tolerance):
    """Compare decoding with and without a cache, and the recording pass; returns the reference."""
    model, _, source, start = beginning(model_of(model_name, dtype))
    reference = expected(model, texts, source, start)
    tap = tap_for(parse("_".join(texts)), SimpleNamespace(config=model.config, model=model))
    for cached in (True, False) if model.anatomy.writes else ():
        np.testing.assert_allclose(written(model, tap, source, cached=cached), reference, atol=tolerance, rtol=0)
    np.testing.assert_allclose(recorded(model, tap, source, start), reference, atol=tolerance, rtol=0)
    return reference


@pytest.mark.parametrize(("text", "model"), ONE)
def test_a_change_is_what_a_model_wired_so_computes(text, model):
    reference = check(model, [text], torch.float64, 1e-10)
    inert = model in INERT.get(text, ())
    assert (np.abs(reference - unchanged(model)).max() < 1e-10) == inert  # or the comparison would prove nothing


@pytest.mark.parametrize("text", CASES)
def test_so_it_is_with_two_others(text):
    models = CASES[text][0]
    model = models[(list(CASES).index(text) + 1) % len(models)]
    check(model, together(text, model), torch.float64, 1e-10)


@pytest.mark.parametrize("text", CASES)
def test_so_it_is_in_32_bits(text):
    check(CASES[text][0][0], [text], torch.float32, 1e-5)


# Where each makes sense

REFUSED = {
    "both": {"bits": None},
    "decoder": {"padding": "no padding piece"},
    "encoder": {"causal": "An encoder-only model has no causal mask"},
    "rotary": {"heads": "Rotary positions rotate pairs"},
    "alibi": {"heads": "its own distance bias"},
    "none": dict.fromkeys(("unplaced", "shift", "stretch", "misplaced"), "has no positional encoding"),
    "sandwich": {"swapnorms": "before and after"},
    "bare": {"nonorm": "no norms anyway", "swapnorms": "no norms to swap", "noresidual": "no residual"},
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
    for kind in WIRING:
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
]


@pytest.mark.parametrize(("model_name", "text", "why"), CONTRADICTIONS)
def test_what_a_model_does_not_have_is_refused(model_name, text, why):
    model = model_of(model_name)
    with pytest.raises(ChangeError, match=why):
        tap_for(parse(text), SimpleNamespace(config=model.config, model=model))


def test_heads_that_were_told_count_for_others():
    model = model_of("both")
    tap = tap_for(parse("zero-cross.1.7_heads-12"), SimpleNamespace(config=model.config, model=model))
    recorder = Recorder(["decoder.0.cross_attn.heads"])
    model(torch.tensor([SOURCE]), torch.tensor([[2, *WRITTEN]]), tap=tap.also(recorder))
    (heads,) = recorder.values.values()
    assert heads.shape[1] == 12
    assert [bool((head == 0).all()) for head in heads[0]] == [head == 6 for head in range(12)]


def test_two_fill_values_contradict_each_other():
    with pytest.raises(QueryError, match="change the same thing"):
        parse("fill-all.m1_unguarded-all")


@pytest.mark.parametrize("kind", WIRING, ids=lambda kind: kind.word)
def test_what_is_written_is_read_back_and_told(kind):
    one = kind()
    assert parse(str(one)) == (one,)
    assert kind.from_record(one.to_record()) == one
    assert one.told()
    assert not one.told().endswith(".")
    assert str(kind.about).endswith(".")


# Laws


def test_minus_infinity_without_a_guard_is_nan_where_a_row_is_closed():
    model = model_of("both")
    tap = tap_for(parse("causal-inverted_unguarded-decoder"), SimpleNamespace(config=model.config, model=model))
    for cached in (True, False):
        with pytest.raises(NotFiniteError, match=r"^With its changes, this model .* at decoder\.0\.self_attn\.weights"):
            written(model, tap, SOURCE, cached=cached)
    guarded = tap_for(parse("causal-inverted"), SimpleNamespace(config=model.config, model=model))
    assert np.isfinite(written(model, guarded, SOURCE, cached=True)).all()


@torch.inference_mode()
def logits_under(model, text):
    tap = tap_for(parse(text), SimpleNamespace(config=model.config, model=model))
    return model(torch.tensor([SOURCE]), torch.tensor([[2, *WRITTEN]]), tap=tap)


def test_the_more_random_features_the_nearer_to_the_softmax():
    model = model_of("both")
    untouched = logits_under(model, "")
    apart = [float((logits_under(model, f"features-all.{n}.0") - untouched).abs().max()) for n in (4, 64, 4096)]
    assert apart[2] < apart[1] < apart[0]
    assert apart[2] < 0.25 * apart[0]


def test_a_map_of_its_own_rank_stays_and_one_of_rank_1_has_equal_open_rows():
    model = model_of("both")
    assert torch.allclose(logits_under(model, "rank-all.6"), logits_under(model, ""), rtol=0, atol=1e-10)
    recorder = Recorder(["encoder.0.self_attn.weights"])
    tap = tap_for(parse("rank-encoder.1"), SimpleNamespace(config=model.config, model=model))
    model.encode(torch.tensor([SOURCE]), tap=tap.also(recorder))
    (maps,) = recorder.values.values()
    assert torch.allclose(maps.sum(-1), torch.ones(1, dtype=maps.dtype))
    assert torch.allclose(maps, maps[:, :, :1].expand_as(maps))


def test_every_row_of_a_map_of_low_rank_keeps_its_sum():
    low = LowRank("all", rank=2)._nearest
    own = torch.eye(5, dtype=torch.float64).flip(0).expand(1, 2, 5, 5)  # of rows without a common key two are kept
    assert torch.equal(low(own), own)
    assert torch.equal(low(own * 0), own * 0)  # a row without open keys stays 0
    random = torch.rand(50, 1, 6, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64).tril()
    random = random / random.sum(-1, keepdim=True)
    assert torch.allclose(low(random).sum(-1), random.sum(-1))
    assert not torch.allclose(low(random), random, atol=1e-2)


def test_dropout_drops_its_share_and_keeps_the_mean():
    kept = torch.cat([drawn("encoder.embedding.output", block, 100, 0) for block in range(20)]) >= 0.25
    assert abs(float(kept.double().mean()) - 0.75) < 0.01
    one, other = (drawn("encoder.embedding.output", 0, 8, seed) for seed in (0, 1))
    assert not torch.equal(one, other)
    assert not torch.equal(one, drawn("encoder.0.ffn.output", 0, 8, 0))
    assert torch.equal(logits_under(model_of("both"), "dropout-0.0"), logits_under(model_of("both"), ""))


@pytest.mark.parametrize("bits", [8, 4])
def test_a_rounded_row_has_few_values_its_largest_and_no_other_sign(bits):
    rows = torch.randn(5, 200, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    rows[3] = 0
    found = rounded(rows, bits=bits)
    most = 2 ** (bits - 1) - 1
    for row, before in zip(found, rows, strict=True):
        assert len(row.unique()) <= 2 * most + 1
        assert torch.isclose(row.abs().max(), before.abs().max())
        assert (row - before).abs().max() <= before.abs().max() / most / 2 + 1e-12
        assert (row * before >= 0).all()


def test_the_model_is_as_before_when_the_run_is_over():
    model = model_of("both")
    before = {name: value.clone() for name, value in model.state_dict().items()}
    untouched = logits_under(model, "")
    for kind in WIRING:
        logits_under(model, str(kind()))
    assert torch.equal(logits_under(model, ""), untouched)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_a_control_run_meanwhile_is_as_if_it_were_alone():
    model = model_of("both", torch.float32)
    texts = ["", *(str(kind()) for kind in WIRING)]
    alone = [logits_under(model, text) for text in texts]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda place: logits_under(model, texts[place % len(texts)]), range(4 * len(texts))))
    assert all(torch.equal(one, alone[place % len(texts)]) for place, one in enumerate(found))
