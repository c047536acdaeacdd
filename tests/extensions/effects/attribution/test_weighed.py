"""What a step takes from each piece is what plain loops find, also in changed runs and on another device."""

import numpy as np
import pytest

from glassformer.extensions.effects.attribution import gradients
from glassformer.extensions.effects.attribution.gradients import embeddings, gradient, integrating
from glassformer.extensions.effects.attribution.occlusion import hiding
from glassformer.extensions.effects.attribution.parts import contributions
from glassformer.extensions.effects.attribution.target import ask, ask_each, weigh
from tests.extensions.effects.attribution.asking import asked
from tests.healthy import healthy
from tests.transformer.devices import TEXT, same
from tests.transformer.devices import of_name as of_name
from tests.transformer.devices import pair as pair
from tests.transformer.one_stack import alone
from tests.transformer.tiny import DECODER
from transformer import Query, load, run
from transformer.analysis.rollout import cross_rollout, self_rollout
from transformer.model.taps import Recorder, Replacer, tap_of
from transformer.runs.array_records import whole
from transformer.runs.interventions import parse


@pytest.mark.parametrize("shape", [{}, {"n_kv_heads": 1, "d_head": 5}, {**DECODER, "n_kv_heads": 1}])
def test_lengths_are_those_of_what_each_head_takes(shape):
    question, recorder = asked(**shape), Recorder(("*",))
    question.logits(tap=tap_of(recorder))
    found = weigh(question)
    part = "cross_attn" if question.stack == "encoder" else "self_attn"
    config = question.model.config
    for layer, module in enumerate(getattr(one, part) for one in question.model.decoder.layers):
        place = f"decoder.{layer}.{part}"
        weights, values = recorder.values[f"{place}.weights"][0, :, -1], recorder.values[f"{place}.values"][0]
        for piece in range(question.n_pieces):
            total = 0
            for head in range(config.n_heads):
                value = values[head * config.n_kv_heads // config.n_heads, piece]
                columns = module.out_proj.weight[:, head * config.d_head : (head + 1) * config.d_head]
                taken = weights[head, piece] * (columns @ value)
                assert found.weights[layer, head, piece] == pytest.approx(float(weights[head, piece]), abs=1e-12)
                assert found.lengths[layer, head, piece] == pytest.approx(float(taken.norm()), abs=1e-12)
                total = total + taken
            assert found.together[layer, piece] == pytest.approx(float(total.norm()), abs=1e-12)
    np.testing.assert_allclose(found.attention(1, 2), found.weights[1, 2])
    np.testing.assert_allclose(found.attention(None, None), found.weights.mean(axis=(0, 1)))
    np.testing.assert_allclose(found.attention(None, 1), found.weights[:, 1].mean(axis=0))
    np.testing.assert_allclose(found.moved(1, None), found.together[1])
    np.testing.assert_allclose(found.moved(None, None), found.together.mean(axis=0))
    np.testing.assert_allclose(found.moved(0, 1), found.lengths[0, 1])
    assert found.attention(None, None).sum() == pytest.approx(1)


def test_rollout_is_that_of_the_whole_run(checkpoint_folder, tmp_path):
    checkpoint = load(checkpoint_folder)
    trace = checkpoint.run("ba lo mi ta")
    rolled = cross_rollout(trace.maps("encoder"), trace.maps("decoder"), trace.maps("cross"))
    found = weigh(ask(checkpoint, trace, 1))
    np.testing.assert_allclose(found.rollout, rolled[1], atol=1e-6)
    np.testing.assert_allclose(found.weights, trace.maps("cross")[:, :, 1], atol=1e-6)
    decoder = alone("decoder", tmp_path)
    trace = decoder.run("ba lo mi ta")
    row, found = trace.row_of(2), weigh(ask(decoder, trace, 2))
    np.testing.assert_allclose(found.rollout, self_rollout(trace.maps("decoder"))[row, : row + 1], atol=1e-6)
    assert found.kind == "decoder"


def test_rows_that_were_changed_to_nothing_have_no_rollout():
    question = asked(tap=tap_of(Replacer({"decoder.0.cross_attn.weights": lambda weights: weights * 0})))
    found = weigh(question)
    assert np.isnan(found.rollout).all()
    assert not found.weights[0].any()
    assert not found.together[0].any()


CHANGES = [
    "zero-cross.2.1_mean-decoder.1.2_skip-encoder.1.self",
    "skip-decoder.2.whole_mute-cross.all.all.all.2.0",
    "patch-decoder.2.layer.all.abcde",
    "patch-encoder.1.layer.2.abcde_drop-2",
    "causal-off_pads-3",
    "fill-all.m1_twice-all.1",
    "heads-2_noresidual-all.all.all",
    "swapnorms-all_noffn-all.all_embed-all.3",
]


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_measured_is_the_changed_run(change):
    checkpoint = healthy("reverse")
    query = Query(checkpoint=checkpoint.content_hash, source="glass", interventions=parse(change), max_new=8)
    trace = run(checkpoint, query)
    questions = ask_each(checkpoint, trace)
    chosen = trace.log_probs[np.arange(trace.n_steps), list(trace.tgt_ids)]
    np.testing.assert_allclose(whole(hiding(questions)).plain, chosen, atol=1e-4)
    one = questions[trace.n_steps // 2]
    found = contributions(one, (5,))
    assert np.abs(found.logits - found.values.sum(axis=1)).max() < max(1e-4, 1e-6 * np.abs(found.values).sum())
    values, _ = gradient(one, embeddings(one))
    assert float(values[0]) == pytest.approx(chosen[trace.n_steps // 2], abs=1e-4)
    assert np.isfinite(whole(integrating(one, n_points=2)).credit).all()
    assert np.isfinite(weigh(one).lengths).all()
    patched = [part.kind for part in found.parts].count("changed")  # a value of another run is a part of its own
    assert patched == 1 or not change.startswith("patch-decoder")


@pytest.mark.parametrize("pair", ["fairseq", "windows"], indirect=True)
def test_what_matters_to_a_decoder(pair):
    def work(one):
        asked = ask_each(one, one.run(one.query(TEXT, max_new=5)))
        return (
            [contributions(asked[-1], (5, 6)), weigh(asked[-1]), whole(hiding(asked))],
            gradients.input_times_gradient(asked[-1]),
            whole(gradients.integrating(asked[-1], baseline="mean", n_points=4)),
        )

    same(pair, work)
