"""What is asked about the stream, neurons and embeddings has the answer of numpy on a recorded pass."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from glassformer.extensions.lessons.library.case import Case, QuestionNotApplicable
from glassformer.extensions.lessons.library.subjects import inside_questions
from tests.extensions.lessons.library.posed import RUNS, case_at
from transformer.model.taps import Replacer, tap_of
from transformer.runs.interventions import parse
from transformer.runs.running import replay

SENTENCES = [*RUNS, ("gpt2", "a dog")]
PARTS = {"self": "self_attn", "cross": "cross_attn", "ffn": "ffn"}


def row_of(case: Case) -> int:
    """The decoder's row of the step."""
    return case.trace.first_row + int(case.picked["step"]) - 1


def size(vector: np.ndarray) -> float:
    return float(np.sqrt(np.mean(vector.astype(np.float64) ** 2)))


def between(a: np.ndarray, b: np.ndarray) -> float:
    a, b = a.astype(np.float64), b.astype(np.float64)
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))


@pytest.mark.parametrize(("name", "sentence"), SENTENCES)
def test_the_largest_addition_is_that_of_all_outputs(name: str, sentence: str) -> None:
    case = case_at(name, sentence, inside_questions.stream_row)
    row, recorded = row_of(case), replay(case.checkpoint, case.trace, ["decoder.*.*.output"])
    sizes = {
        word: max(size(value[row]) for site, value in recorded.items() if f".{part}." in site)
        for word, part in PARTS.items()
        if any(f".{part}." in site for site in recorded)
    }
    best, second = sorted(sizes.values(), reverse=True)[:2]
    if best < 1.05 * second:
        with pytest.raises(QuestionNotApplicable):
            inside_questions.largest_addition(case)
        return
    answer = inside_questions.largest_addition(case)
    assert answer.right == max(sizes, key=lambda word: sizes[word])
    assert answer.values["size"] == pytest.approx(best, rel=1e-5)
    assert {option.word for option in answer.options} == set(sizes)


@pytest.mark.parametrize(("name", "sentence"), SENTENCES)
def test_what_is_left_of_the_start_is_a_cosine(name: str, sentence: str) -> None:
    case = case_at(name, sentence, inside_questions.stream_row)
    last = case.checkpoint.config.n_decoder_layers - 1
    after = "norm" if case.checkpoint.config.norm == "post" else "residual"
    sites = ["decoder.embedding.output", f"decoder.{last}.ffn.{after}"]
    recorded = replay(case.checkpoint, case.trace, sites)
    kept = between(*(recorded[site][row_of(case)] for site in sites))
    answer = inside_questions.left_of_the_start(case)
    assert answer.values["kept"] == pytest.approx(kept, abs=1e-5)
    least = {"none": -1.0, "little": 0.1, "some": 0.3, "most": 0.7}
    assert least[str(answer.right)] <= kept
    assert answer.right == max((word for word in least if least[word] <= kept), key=lambda word: least[word])


@pytest.mark.parametrize(("name", "sentence"), SENTENCES[:3])
def test_the_depth_is_the_first_from_which_the_piece_stays_on_top(name: str, sentence: str) -> None:
    case = case_at(name, sentence, inside_questions.lens_step)
    model, n_layers = case.checkpoint.model, case.checkpoint.config.n_decoder_layers
    after = [f"decoder.{layer}.ffn.residual" for layer in range(n_layers)]
    recorded = replay(case.checkpoint, case.trace, ["decoder.embedding.output", *after])
    norm = model.decoder.final_norm
    gamma, beta, table = (one.detach().double().numpy() for one in (norm.weight, norm.bias, model.output_weight))
    on_top = []
    for site in ("decoder.embedding.output", *after):
        x = recorded[site][row_of(case)].astype(np.float64)
        y = gamma * (x - x.mean()) / np.sqrt(x.var() + case.checkpoint.config.norm_eps) + beta
        on_top.append(int((table @ y).argmax()) == case.trace.tgt_ids[int(case.picked["step"]) - 1])
    settled = len(on_top)
    while settled and on_top[settled - 1]:
        settled -= 1
    answer = inside_questions.settled_depth(case)
    assert answer.values["layer"] == settled
    assert answer.right == ("embedding" if settled == 0 else f"depth-{settled}")


@pytest.mark.parametrize(("name", "sentence"), SENTENCES[:3])
def test_what_two_changes_cost_is_what_taps_by_hand_cost(name: str, sentence: str) -> None:
    """Pre-norm: the stream after layer 1 is what went in, or what the feed-forward adds, alone."""
    case = case_at(name, sentence, inside_questions.stream_row)
    streams = ["decoder.0.cross_attn.residual", "decoder.0.ffn.output", "decoder.0.ffn.residual"]
    recorded = replay(case.checkpoint, case.trace, streams)
    answer = inside_questions.stream_or_sublayer(case)
    changed = case.checkpoint.run(dataclasses.replace(case.trace.query, interventions=parse(answer.values["do"])))
    assert 1 <= answer.values["shown"] <= max(1, changed.n_steps)
    for word, site in (("skip", streams[0]), ("alone", streams[1])):
        value = recorded[site]

        def put(stream, value=value):
            changed = stream.clone()
            changed[0] = stream.new_tensor(value)
            return changed

        tap = tap_of(Replacer({streams[2]: put}, causal=True))
        output = replay(case.checkpoint, case.trace, ["logits"], tap=tap)["logits"].astype(np.float64)
        rows = output[case.trace.first_row :][: case.trace.n_steps]
        peaks = rows.max(axis=1)
        sums = peaks + np.log(np.exp(rows - peaks[:, None]).sum(axis=1))
        cost = case.trace.log_prob - sum(
            row[i] - total for row, i, total in zip(rows, case.trace.tgt_ids, sums, strict=True)
        )
        assert answer.values[word] == pytest.approx(cost, abs=2e-3)
    gap = answer.values["alone"] - answer.values["skip"]
    assert answer.right == ("equal" if abs(gap) < 0.5 else "alone" if gap > 0 else "skip")


def hidden(case: Case) -> np.ndarray:
    """The neurons of the last decoder layer by hand, ReLU(W x + b) [T, d_ff]."""
    layer = case.checkpoint.config.n_decoder_layers - 1
    site = f"decoder.{layer}.ffn.norm"
    read = replay(case.checkpoint, case.trace, [site])[site].astype(np.float64)
    decoder: Any = case.checkpoint.model.decoder
    up = decoder.layers[layer].ffn.up_proj
    return np.maximum(read @ up.weight.detach().double().numpy().T + up.bias.detach().double().numpy(), 0)


def step_of(case: Case) -> int:
    return int(case.picked["step"]) - 1


@pytest.mark.parametrize(
    ("name", "sentence"), [*RUNS, ("s4", "5 7 9 11"), ("gpt2", "a dog"), ("bert", "a dog sees a cat")]
)
def test_a_feed_forward_network_reads_one_token(name: str, sentence: str) -> None:
    answer = inside_questions.ffn_alone(case_at(name, sentence, inside_questions.top_neuron))
    assert answer.right == "none"
    assert answer.values["by"] < 1e-5


def test_a_sub_layer_that_does_read_others_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same question about attention has another answer, on either side of an encoder's token."""
    case = case_at("bert", "a dog sees a cat", inside_questions.top_neuron)
    layer = int(case.picked["layer"]) - 1
    monkeypatch.setattr(
        inside_questions.neurons, "site", lambda stack, layer, name: f"{stack}.{layer}.self_attn.{name}"
    )
    before = f"encoder.{layer - 1}.ffn.norm" if layer else "encoder.embedding.output"
    monkeypatch.setattr(inside_questions, "_read", lambda *_: before)
    assert inside_questions.ffn_alone(case).right == "all"


@pytest.mark.parametrize(("name", "sentence"), RUNS)
def test_the_largest_neuron_is_picked_the_silent_are_counted_and_the_tokens_that_wake_it(name, sentence) -> None:
    case = case_at(name, sentence, inside_questions.top_neuron)
    activation, step = hidden(case), step_of(case)
    neuron = int(activation[step].argmax())
    assert case.picked["neuron"] == neuron + 1
    assert case.picked["activation"] == pytest.approx(activation[step].max(), abs=1e-4)
    share = float((activation[step] <= 0).mean())
    answer = inside_questions.silent_share(case)
    assert answer.values["share"] == pytest.approx(share, abs=2e-3)
    floors = {"few": 0.0, "half": 0.5, "most": 0.75, "nearly_all": 0.9}
    assert answer.right == max((one for one in floors if floors[one] <= share), key=lambda one: floors[one])
    awake = np.delete(activation[:, neuron], step) > 0
    answer = inside_questions.active_elsewhere(case)
    assert (answer.values["n"], answer.values["n_others"]) == (awake.sum(), len(awake))
    assert answer.right == ("only" if not awake.any() else "some" if awake.sum() < len(awake) / 2 else "many")


@pytest.mark.parametrize(("name", "sentence"), RUNS)
def test_what_the_neuron_does_to_the_logit(name: str, sentence: str) -> None:
    """Through the final norm alone, whose size is that of the whole stream."""
    case = case_at(name, sentence, inside_questions.top_neuron)
    model, layer = case.checkpoint.model, case.checkpoint.config.n_decoder_layers - 1
    decoder: Any = model.decoder
    whole = f"decoder.{layer}.ffn.residual"
    summed = replay(case.checkpoint, case.trace, [whole])[whole][step_of(case)].astype(np.float64)
    column = decoder.layers[layer].ffn.down_proj.weight.detach().double().numpy()[:, int(case.picked["neuron"]) - 1]
    part = column * hidden(case)[step_of(case)].max()
    through = decoder.final_norm.weight.detach().double().numpy() * (part - part.mean()) / summed.std()
    logits = model.output_weight.detach().double().numpy() @ through
    change = float(logits[case.trace.tgt_ids[step_of(case)]] - logits.mean())
    answer = inside_questions.pushes(case)
    assert answer.values["change"] == pytest.approx(change, abs=1e-3)
    assert answer.values["raised"] == case.trace.vocabulary[int(logits.argmax())]
    assert answer.right == ("hardly" if abs(change) < 0.1 else "raises" if change > 0 else "lowers")
