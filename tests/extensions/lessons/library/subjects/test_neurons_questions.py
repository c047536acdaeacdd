"""What is asked about feed-forward networks has the answer of plain numpy on the stored weights."""

from typing import Any

import numpy as np
import pytest

from glassformer.extensions.lessons.library.case import Case
from glassformer.extensions.lessons.library.subjects import neurons_questions
from glassformer.extensions.lessons.library.subjects import stream_questions as stream
from tests.extensions.lessons.library.posed import RUNS, case_at
from transformer.runs.running import replay


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
    answer = neurons_questions.ffn_alone(case_at(name, sentence, stream.top_neuron))
    assert answer.right == "none"
    assert answer.values["by"] < 1e-5


def test_a_sub_layer_that_does_read_others_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same question about attention has another answer, on either side of an encoder's token."""
    case = case_at("bert", "a dog sees a cat", stream.top_neuron)
    layer = int(case.picked["layer"]) - 1
    monkeypatch.setattr(
        neurons_questions.neurons, "site", lambda stack, layer, name: f"{stack}.{layer}.self_attn.{name}"
    )
    before = f"encoder.{layer - 1}.ffn.norm" if layer else "encoder.embedding.output"
    monkeypatch.setattr(neurons_questions, "_read", lambda *_: before)
    assert neurons_questions.ffn_alone(case).right == "all"


@pytest.mark.parametrize(("name", "sentence"), RUNS)
def test_the_largest_neuron_is_picked_the_silent_are_counted_and_the_tokens_that_wake_it(name, sentence) -> None:
    case = case_at(name, sentence, stream.top_neuron)
    activation, step = hidden(case), step_of(case)
    neuron = int(activation[step].argmax())
    assert case.picked["neuron"] == neuron + 1
    assert case.picked["activation"] == pytest.approx(activation[step].max(), abs=1e-4)
    share = float((activation[step] <= 0).mean())
    answer = neurons_questions.silent_share(case)
    assert answer.values["share"] == pytest.approx(share, abs=2e-3)
    floors = {"few": 0.0, "half": 0.5, "most": 0.75, "nearly_all": 0.9}
    assert answer.right == max((one for one in floors if floors[one] <= share), key=lambda one: floors[one])
    awake = np.delete(activation[:, neuron], step) > 0
    answer = neurons_questions.active_elsewhere(case)
    assert (answer.values["n"], answer.values["n_others"]) == (awake.sum(), len(awake))
    assert answer.right == ("only" if not awake.any() else "some" if awake.sum() < len(awake) / 2 else "many")


@pytest.mark.parametrize(("name", "sentence"), RUNS)
def test_what_the_neuron_does_to_the_logit(name: str, sentence: str) -> None:
    """Through the final norm alone, whose size is that of the whole stream."""
    case = case_at(name, sentence, stream.top_neuron)
    model, layer = case.checkpoint.model, case.checkpoint.config.n_decoder_layers - 1
    decoder: Any = model.decoder
    whole = f"decoder.{layer}.ffn.residual"
    summed = replay(case.checkpoint, case.trace, [whole])[whole][step_of(case)].astype(np.float64)
    column = decoder.layers[layer].ffn.down_proj.weight.detach().double().numpy()[:, int(case.picked["neuron"]) - 1]
    part = column * hidden(case)[step_of(case)].max()
    through = decoder.final_norm.weight.detach().double().numpy() * (part - part.mean()) / summed.std()
    logits = model.output_weight.detach().double().numpy() @ through
    change = float(logits[case.trace.tgt_ids[step_of(case)]] - logits.mean())
    answer = neurons_questions.pushes(case)
    assert answer.values["change"] == pytest.approx(change, abs=1e-3)
    assert answer.values["raised"] == case.trace.vocabulary[int(logits.argmax())]
    assert answer.right == ("hardly" if abs(change) < 0.1 else "raises" if change > 0 else "lowers")
