"""Feed-forward sub-layers and embeddings, against plain numpy with the stored weights."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from torch import Tensor

from glassformer.extensions.lessons.library.case import Case, QuestionNotApplicable
from glassformer.extensions.lessons.library.subjects import neurons_questions
from glassformer.extensions.lessons.library.subjects import stream_questions as stream
from tests.extensions.lessons.library.posed import RUNS, case_at
from transformer.model.taps import Replacer, tap_of
from transformer.runs.replay import replay


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


@pytest.mark.parametrize(("name", "sentence"), RUNS)
def test_the_neuron_that_is_picked_is_the_largest(name: str, sentence: str) -> None:
    case = case_at(name, sentence, stream.top_neuron)
    here = hidden(case)[step_of(case)]
    assert case.picked["neuron"] == int(here.argmax()) + 1
    assert case.picked["activation"] == pytest.approx(here.max(), abs=1e-4)


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
def test_silent_neurons_are_counted(name: str, sentence: str) -> None:
    case = case_at(name, sentence, stream.top_neuron)
    activation = hidden(case)
    share = float((activation[step_of(case)] <= 0).mean())
    answer = neurons_questions.silent_share(case)
    assert answer.values["share"] == pytest.approx(share, abs=2e-3)
    floors = {"few": 0.0, "half": 0.5, "most": 0.75, "nearly_all": 0.9}
    assert answer.right == max((one for one in floors if floors[one] <= share), key=lambda one: floors[one])


@pytest.mark.parametrize(("name", "sentence"), RUNS)
def test_tokens_that_wake_the_neuron_are_counted(name: str, sentence: str) -> None:
    case = case_at(name, sentence, stream.top_neuron)
    column = hidden(case)[:, int(case.picked["neuron"]) - 1]
    others = [value for token, value in enumerate(column) if token != step_of(case)]
    count = sum(value > 0 for value in others)
    answer = neurons_questions.active_elsewhere(case)
    assert (answer.values["n"], answer.values["n_others"]) == (count, len(others))
    assert answer.right == ("only" if count == 0 else "some" if count < len(others) / 2 else "many")


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


@pytest.mark.parametrize(("name", "sentence"), RUNS)
def test_without_the_network_each_step_takes_the_best_of_a_pass_without_it(name: str, sentence: str) -> None:
    case = case_at(name, sentence, stream.top_neuron)
    layer = case.checkpoint.config.n_decoder_layers - 1

    def nothing(value: Tensor) -> Tensor:
        return value * 0

    query = dataclasses.replace(case.trace.query)
    tap = tap_of(Replacer({f"decoder.{layer}.ffn.output": nothing}, causal=True))
    other = case.checkpoint.run(query, tap=tap).tgt_ids
    mine = case.trace.tgt_ids
    longer = max(len(mine), len(other))
    differ = sum(mine[i : i + 1] != other[i : i + 1] for i in range(longer))
    answer = neurons_questions.without_ffn(case)
    assert answer.values["n"] == differ
    assert 1 <= answer.values["shown"] <= max(1, len(other))
    assert answer.right == ("same" if not differ else "some" if differ <= len(mine) / 2 else "most")


@pytest.mark.parametrize(("name", "sentence"), RUNS[:2])
def test_the_nearest_piece_has_the_largest_cosine(name: str, sentence: str) -> None:
    case = case_at(name, sentence, stream.longest_piece)
    table = case.checkpoint.model.src_table.detach().double().numpy()
    tokenizer = case.checkpoint.src_tokenizer
    own = case.trace.src_ids[int(case.picked["key"]) - 1]
    unit = table / np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-30)
    cosines = unit @ unit[own]
    usable = [i for i in range(len(table)) if i != own and not tokenizer.is_special(i)]
    order = sorted(usable, key=lambda i: -cosines[i])
    alike = neurons_questions.near_by_spelling(case)
    assert alike.values["ten"] == " · ".join(tokenizer.piece(i) for i in order[:10])
    answer = neurons_questions.nearest_piece(case)
    label = next(option.label for option in answer.options if option.word == answer.right)
    assert label == tokenizer.piece(order[0])
    assert answer.values["cosine"] == pytest.approx(cosines[order[0]], abs=1e-5)


def test_spelling_is_compared_by_letters_or_characters() -> None:
    assert stream.spelled_alike("▁coffee", "▁Coffees")
    assert stream.spelled_alike("喝咖啡", "▁咖啡")
    assert not stream.spelled_alike("▁coffee", "▁cold")
    assert not stream.spelled_alike("喝茶", "咖啡")
    assert not stream.spelled_alike("▁a", "▁a")


def test_letters_have_no_neighbours_by_meaning() -> None:
    with pytest.raises(QuestionNotApplicable, match="letters"):
        case_at("reverse", "lantern", stream.longest_piece)


def test_an_encoder_alone_has_neurons_but_no_output() -> None:
    case = case_at("bert", "a dog sees a cat", stream.top_neuron)
    neurons_questions.silent_share(case)
    for question in (neurons_questions.pushes, neurons_questions.without_ffn):
        with pytest.raises(QuestionNotApplicable):
            question(case)
