"""What is asked about the stream, neurons and embeddings has the answer of numpy on a recorded pass."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from glassformer.extensions.lessons.library.lesson import QuestionNotApplicable
from glassformer.extensions.lessons.library.subjects import inside_questions
from tests.extensions.lessons.library.posed import approx, case, picked, told
from tests.extensions.lessons.library.subjects.conftest import RUNS
from transformer.model.taps import Replacer, tap_of
from transformer.runs.interventions import parse
from transformer.runs.running import replay

PARTS = {"self": "self_attn", "cross": "cross_attn", "ffn": "ffn"}
WITH_A_DECODER_ALONE = [*RUNS.items(), ("gpt2", "a dog")]
of_two_kinds = pytest.mark.parametrize("run", WITH_A_DECODER_ALONE, indirect=True, ids=lambda one: one[0])


@pytest.fixture
def run(request):
    """Of a pair of a checkpoint and a sentence."""
    return case(*request.param)


def size(vector):
    return float(np.sqrt(np.mean(vector**2)))


def rows(run, *sites):
    """What was recorded at the row of the step, in float64, by its site."""
    row = run.trace.first_row + int(run.picked["step"]) - 1
    return {site: one[row].astype(np.float64) for site, one in replay(run.checkpoint, run.trace, sites).items()}


def by_hand(*parameters):
    return [one.detach().double().numpy() for one in parameters]


@of_two_kinds
def test_the_largest_addition_is_that_of_all_outputs(run):
    run = picked(inside_questions.stream_row, run)
    sizes = {word: [] for word in PARTS}
    for site, value in rows(run, "decoder.*.*.output").items():
        for word, part in PARTS.items():
            sizes[word] += [size(value)] if f".{part}." in site else []
    sizes = {word: max(found) for word, found in sizes.items() if found}
    best, second = sorted(sizes.values(), reverse=True)[:2]
    if best < 1.05 * second:
        with pytest.raises(QuestionNotApplicable):
            inside_questions.largest_addition(run)
        return
    answer = inside_questions.largest_addition(run)
    told(answer, max(sizes, key=sizes.get), size=approx(best, rel=1e-5))
    assert {option.word for option in answer.options} == set(sizes)


@of_two_kinds
def test_what_is_left_of_the_start_is_a_cosine(run):
    run = picked(inside_questions.stream_row, run)
    config = run.checkpoint.config
    after = "norm" if config.norm == "post" else "residual"
    a, b = rows(run, "decoder.embedding.output", f"decoder.{config.n_decoder_layers - 1}.ffn.{after}").values()
    kept = float(a @ b / np.sqrt((a @ a) * (b @ b)))
    right = "none" if kept < 0.1 else "little" if kept < 0.3 else "some" if kept < 0.7 else "most"
    told(inside_questions.left_of_the_start(run), right, kept=approx(kept, abs=1e-5))


each = pytest.mark.parametrize("run", RUNS.items(), indirect=True, ids=lambda one: one[0])


@each
def test_the_depth_is_the_first_from_which_the_piece_stays_on_top(run):
    run = picked(inside_questions.lens_step, run)
    model, config = run.checkpoint.model, run.checkpoint.config
    after = [f"decoder.{layer}.ffn.residual" for layer in range(config.n_decoder_layers)]
    gamma, beta, table = by_hand(model.decoder.final_norm.weight, model.decoder.final_norm.bias, model.output_weight)
    settled = 0
    for depth, x in enumerate(rows(run, "decoder.embedding.output", *after).values(), start=1):
        y = gamma * (x - x.mean()) / np.sqrt(x.var() + config.norm_eps) + beta
        on_top = int((table @ y).argmax()) == run.trace.tgt_ids[int(run.picked["step"]) - 1]
        settled = settled if on_top else depth
    told(inside_questions.settled_depth(run), f"depth-{settled}" if settled else "embedding", layer=settled)


@each
def test_what_two_changes_cost_is_what_taps_by_hand_cost(run):
    """Pre-norm: the stream after layer 1 is what went in, or what the feed-forward adds, alone."""
    run, written = picked(inside_questions.stream_row, run), torch.tensor(run.trace.tgt_ids)
    answer = inside_questions.stream_or_sublayer(run)
    changed = run.checkpoint.run(replace(run.trace.query, interventions=parse(answer.values["do"])))
    assert 1 <= answer.values["shown"] <= max(1, changed.n_steps)
    for word, site in (("skip", "decoder.0.cross_attn.residual"), ("alone", "decoder.0.ffn.output")):
        value = replay(run.checkpoint, run.trace, [site])[site]

        def put(stream, value=value):
            changed = stream.clone()
            changed[0] = stream.new_tensor(value)
            return changed

        tap = tap_of(Replacer({"decoder.0.ffn.residual": put}, causal=True))
        logits = replay(run.checkpoint, run.trace, ["logits"], tap=tap)["logits"][run.trace.first_row :]
        loss = torch.nn.functional.cross_entropy(
            torch.tensor(logits).double()[: len(written)], written, reduction="sum"
        )
        assert answer.values[word] == approx(run.trace.log_prob + float(loss), abs=2e-3)
    gap = answer.values["alone"] - answer.values["skip"]
    assert answer.right == ("equal" if abs(gap) < 0.5 else "alone" if gap > 0 else "skip")


def hidden(run):
    """The neurons of the last decoder layer by hand, ReLU(W x + b) [T, d_ff]."""
    layer = run.checkpoint.config.n_decoder_layers - 1
    site, up = f"decoder.{layer}.ffn.norm", run.checkpoint.model.decoder.layers[layer].ffn.up_proj
    weight, bias = by_hand(up.weight, up.bias)
    return np.maximum(replay(run.checkpoint, run.trace, [site])[site].astype(np.float64) @ weight.T + bias, 0)


MORE = [*WITH_A_DECODER_ALONE, ("s4", "5 7 9 11"), ("bert", "a dog sees a cat")]


@pytest.mark.parametrize("run", MORE, indirect=True, ids=lambda one: one[0])
def test_a_feed_forward_network_reads_one_token(run):
    answer = inside_questions.ffn_alone(picked(inside_questions.top_neuron, run))
    assert (answer.right, answer.values["by"] < 1e-5) == ("none", True)


def test_a_sub_layer_that_does_read_others_is_found_out(monkeypatch):
    """The same question about attention has another answer, on either side of an encoder's token."""
    run = picked(inside_questions.top_neuron, case("bert", "a dog sees a cat"))
    layer = int(run.picked["layer"]) - 1
    monkeypatch.setattr(inside_questions.neurons, "site", "{}.{}.self_attn.{}".format)
    before = f"encoder.{layer - 1}.ffn.norm" if layer else "encoder.embedding.output"
    monkeypatch.setattr(inside_questions, "_read", lambda *_: before)
    assert inside_questions.ffn_alone(run).right == "all"


@each
def test_the_largest_neuron_is_picked_the_silent_are_counted_and_the_tokens_that_wake_it(run):
    run = picked(inside_questions.top_neuron, run)
    activation, step = hidden(run), int(run.picked["step"]) - 1
    neuron = int(activation[step].argmax())
    assert run.picked["neuron"] == neuron + 1
    assert run.picked["activation"] == approx(activation[step].max(), abs=1e-4)
    share = float((activation[step] <= 0).mean())
    right = "few" if share < 0.5 else "half" if share < 0.75 else "most" if share < 0.9 else "nearly_all"
    told(inside_questions.silent_share(run), right, share=approx(share, abs=2e-3))
    awake = np.delete(activation[:, neuron], step) > 0
    right = "only" if not awake.any() else "some" if awake.sum() < len(awake) / 2 else "many"
    told(inside_questions.active_elsewhere(run), right, n=awake.sum(), n_others=len(awake))


@each
def test_what_the_neuron_does_to_the_logit(run):
    """Through the final norm alone, whose size is that of the whole stream."""
    run = picked(inside_questions.top_neuron, run)
    model, layer = run.checkpoint.model, run.checkpoint.config.n_decoder_layers - 1
    step, column = int(run.picked["step"]) - 1, int(run.picked["neuron"]) - 1
    [summed] = rows(run, f"decoder.{layer}.ffn.residual").values()
    down, gamma, table = by_hand(
        model.decoder.layers[layer].ffn.down_proj.weight, model.decoder.final_norm.weight, model.output_weight
    )
    part = down[:, column] * hidden(run)[step].max()
    logits = table @ (gamma * (part - part.mean()) / summed.std())
    change = float(logits[run.trace.tgt_ids[step]] - logits.mean())
    right = "hardly" if abs(change) < 0.1 else "raises" if change > 0 else "lowers"
    raised = run.trace.vocabulary[int(logits.argmax())]
    told(inside_questions.pushes(run), right, change=approx(change, abs=1e-3), raised=raised)
