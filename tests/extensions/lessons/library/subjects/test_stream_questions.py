"""What is asked about the residual stream has the answer of numpy on a recorded pass, and of taps by hand."""

import dataclasses

import numpy as np
import pytest

from glassformer.extensions.lessons.library.case import Case, QuestionNotApplicable
from glassformer.extensions.lessons.library.subjects import stream_questions as stream
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
    case = case_at(name, sentence, stream.stream_row)
    row, recorded = row_of(case), replay(case.checkpoint, case.trace, ["decoder.*.*.output"])
    sizes = {
        word: max(size(value[row]) for site, value in recorded.items() if f".{part}." in site)
        for word, part in PARTS.items()
        if any(f".{part}." in site for site in recorded)
    }
    best, second = sorted(sizes.values(), reverse=True)[:2]
    if best < 1.05 * second:
        with pytest.raises(QuestionNotApplicable):
            stream.largest_addition(case)
        return
    answer = stream.largest_addition(case)
    assert answer.right == max(sizes, key=lambda word: sizes[word])
    assert answer.values["size"] == pytest.approx(best, rel=1e-5)
    assert {option.word for option in answer.options} == set(sizes)


@pytest.mark.parametrize(("name", "sentence"), SENTENCES)
def test_what_is_left_of_the_start_is_a_cosine(name: str, sentence: str) -> None:
    case = case_at(name, sentence, stream.stream_row)
    last = case.checkpoint.config.n_decoder_layers - 1
    after = "norm" if case.checkpoint.config.norm == "post" else "residual"
    sites = ["decoder.embedding.output", f"decoder.{last}.ffn.{after}"]
    recorded = replay(case.checkpoint, case.trace, sites)
    kept = between(*(recorded[site][row_of(case)] for site in sites))
    answer = stream.left_of_the_start(case)
    assert answer.values["kept"] == pytest.approx(kept, abs=1e-5)
    least = {"none": -1.0, "little": 0.1, "some": 0.3, "most": 0.7}
    assert least[str(answer.right)] <= kept
    assert answer.right == max((word for word in least if least[word] <= kept), key=lambda word: least[word])


@pytest.mark.parametrize(("name", "sentence"), SENTENCES[:3])
def test_the_depth_is_the_first_from_which_the_piece_stays_on_top(name: str, sentence: str) -> None:
    case = case_at(name, sentence, stream.lens_step)
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
    answer = stream.settled_depth(case)
    assert answer.values["layer"] == settled
    assert answer.right == ("embedding" if settled == 0 else f"depth-{settled}")


@pytest.mark.parametrize(("name", "sentence"), SENTENCES[:3])
def test_what_two_changes_cost_is_what_taps_by_hand_cost(name: str, sentence: str) -> None:
    """Pre-norm: the stream after layer 1 is what went in, or what the feed-forward adds, alone."""
    case = case_at(name, sentence, stream.stream_row)
    streams = ["decoder.0.cross_attn.residual", "decoder.0.ffn.output", "decoder.0.ffn.residual"]
    recorded = replay(case.checkpoint, case.trace, streams)
    answer = stream.stream_or_sublayer(case)
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
