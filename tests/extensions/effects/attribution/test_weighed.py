"""What a step's row takes from each piece: against plain loops over what was recorded."""

import numpy as np
import pytest

from glassformer.extensions.effects.attribution.target import ask, weigh
from tests.extensions.effects.attribution.asking import asked
from tests.transformer.one_stack import alone
from tests.transformer.tiny import DECODER
from transformer import load
from transformer.analysis.rollout import cross_rollout, self_rollout
from transformer.model.taps import Recorder, Replacer, tap_of


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
