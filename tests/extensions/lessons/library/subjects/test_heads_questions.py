"""Several heads, against loops over the maps, sums by hand, and whole runs without a head."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from glassformer.extensions.lessons.library.case import Case, QuestionNotApplicable
from glassformer.extensions.lessons.library.subjects import heads_questions as heads
from glassformer.extensions.what_if.interventions import ZeroHead
from tests.extensions.lessons.library.posed import RUNS, case_at, picked
from tests.extensions.lessons.library.posed import case as case_of
from tests.healthy import healthy
from transformer.model.taps import Replacer, tap_of
from transformer.runs.replay import replay

both = pytest.mark.parametrize(("name", "sentence"), RUNS)


def bits(row: list[float]) -> float:
    """Entropy by its formula."""
    return -sum(weight * math.log2(weight) for weight in row if weight > 0)


@both
def test_two_heads_agree_where_their_largest_weights_do(name: str, sentence: str) -> None:
    case = case_at(name, sentence, heads.first_layer)
    first, second = case.trace.encoder_self[0][:2].tolist()
    same = [one.index(max(one)) == other.index(max(other)) for one, other in zip(first, second, strict=True)]
    answer = heads.two_heads_agree(case)
    assert answer.values == {"count": sum(same), "rows": len(same)}
    assert answer.right == ("all" if all(same) else "half" if sum(same) >= len(same) / 2 else "few")


@both
def test_entropies_are_those_of_the_formula(name: str, sentence: str) -> None:
    case = case_at(name, sentence, heads.first_layer)
    maps = case.trace.encoder_self[0].astype(np.float64)
    own = [bits(row) for head in maps.tolist() for row in head]
    mixed = [bits(row) for row in (sum(maps) / len(maps)).tolist()]
    answer = heads.entropy_of_mean(case)
    assert answer.right == "above"
    assert answer.values["own"] == pytest.approx(sum(own) / len(own), abs=1e-6)
    assert answer.values["mixed"] == pytest.approx(sum(mixed) / len(mixed), abs=1e-6)


@both
def test_the_furthest_head_is_that_of_a_loop(name: str, sentence: str) -> None:
    case = case_at(name, sentence, heads.first_layer)
    found = []
    for head in case.trace.encoder_self[0].tolist():
        rows = [sum(w * abs(query - key) for key, w in enumerate(row)) for query, row in enumerate(head)]
        found.append(sum(rows) / len(rows))
    best, second = sorted(found, reverse=True)[:2]
    if best - second < heads.CLEAR_TOKENS:
        with pytest.raises(QuestionNotApplicable):
            heads.furthest_head(case)
        return
    answer = heads.furthest_head(case)
    assert answer.right == f"head-{found.index(best) + 1}"
    assert answer.values["far"] == pytest.approx(best, abs=1e-5)
    assert answer.values["least"] == found.index(min(found)) + 1


@both
def test_what_heads_write_is_their_values_times_their_part_of_w_o(name: str, sentence: str) -> None:
    case = case_at(name, sentence, heads.last_writer)
    layer, n_heads = case.picked["layer"] - 1, case.picked["n_heads"]
    site = f"decoder.{layer}.cross_attn.heads"
    vectors = replay(case.checkpoint, case.trace, [site])[site].astype(np.float64)  # [head, step, d_head]
    matrix = case.checkpoint.model.decoder.layers[layer].cross_attn.out_proj.weight.detach().double().numpy()
    lengths = np.array(
        [
            np.linalg.norm(own @ matrix[:, h * own.shape[1] : (h + 1) * own.shape[1]].T, axis=1)
            for h, own in enumerate(vectors)
        ]
    )
    shares = (lengths / lengths.sum(axis=0)).mean(axis=1)
    assert len(shares) == n_heads
    assert heads.written_shares(case, "cross", layer) == pytest.approx(shares, abs=1e-6)
    found = picked(heads.sharpest, case)
    assert (found.picked["most"], found.picked["least"]) == (shares.argmax() + 1, shares.argmin() + 1)
    tops = [np.mean([max(row) for row in head]) for head in case.trace.cross[layer].tolist()]
    assert found.picked["sharp"] == int(np.argmax(tops)) + 1
    own = shares[found.picked["sharp"] - 1]
    if own == shares.max() or shares.max() - own >= heads.CLEAR_SHARE:
        answer = heads.sharpest_writes_most(found)
        assert answer.right == ("yes" if own == shares.max() else "no")
        assert answer.values["own"] == pytest.approx(own, abs=1e-6)


def test_a_twentieth_of_a_nat_is_no_verdict() -> None:
    case = case_at("zh-en", "他有一只狗。", heads.two_writers)
    answer = heads.worth_of_size(case)
    assert 0.05 < abs(answer.values["by_most"] - answer.values["by_least"]) < 0.2
    assert answer.right == "same"


def log_prob_without(case: Case, layer: int, head: int) -> float:
    """Log-probability of the same output in a whole run without a head, in nats."""
    query = replace(case.trace.query, forced=case.trace.tgt_ids, interventions=(ZeroHead("cross", layer, head),))
    run = case.checkpoint.run(query)
    return sum(float(run.log_probs[step, piece]) for step, piece in enumerate(case.trace.tgt_ids))


@both
def test_a_head_is_worth_what_a_run_without_it_loses(name: str, sentence: str) -> None:
    case = case_at(name, sentence, heads.two_writers)
    layer = case.picked["layer"] - 1
    whole = sum(float(case.trace.log_probs[step, piece]) for step, piece in enumerate(case.trace.tgt_ids))
    lost = [log_prob_without(case, layer, head) - whole for head in range(case.picked["n_heads"])]
    answer = heads.worth_of_size(case)
    most, least = (lost[case.picked[which] - 1] for which in ("most", "least"))
    assert answer.values["by_most"] == pytest.approx(most, abs=1e-3)
    assert answer.values["by_least"] == pytest.approx(least, abs=1e-3)
    assert answer.right == ("same" if abs(most - least) < heads.SAME_NATS else "most" if most < least else "least")
    costliest = heads.costliest_head(case)
    assert costliest["head"] == lost.index(min(lost)) + 1
    assert costliest["cost"] == pytest.approx(-min(lost), abs=1e-3)


@both
def test_without_the_costliest_head_the_output_is_that_of_a_tap(name: str, sentence: str) -> None:
    case = case_at(name, sentence, heads.costliest_head)
    head = case.picked["head"] - 1

    def silent(heads: Tensor) -> Tensor:
        left = heads.clone()
        left[:, head] = 0
        return left

    site = f"decoder.{case.picked['layer'] - 1}.cross_attn.heads"
    by_hand = case.checkpoint.run(sentence, tap=tap_of(Replacer({site: silent}, causal=True)))
    answer = heads.without_costliest(case)
    assert answer.values["after"] == by_hand.output_text
    same, first = by_hand.tgt_ids == case.trace.tgt_ids, by_hand.tgt_ids[0] == case.trace.tgt_ids[0]
    assert answer.right == ("same" if same else "later" if first else "other")


@both
def test_a_bias_of_all_keys_does_nothing(name: str, sentence: str) -> None:
    case = case_of(name, sentence)
    numbers = torch.Generator().manual_seed(5)

    def added(keys: Tensor) -> Tensor:
        return keys + 3 * torch.randn(1, keys.size(1), 1, keys.size(3), generator=numbers.manual_seed(5))

    by_hand = case.checkpoint.run(sentence, tap=tap_of(Replacer({"*.keys": added}, causal=True)))
    assert np.abs(by_hand.log_probs - case.trace.log_probs).max() < 1e-3
    answer = heads.random_key_bias(case)
    assert answer.right == "rounding"
    assert 0 < answer.values["moved"] < 1e-3


def test_where_keys_are_turned_the_bias_is_not_asked_about() -> None:
    checkpoint = healthy("llama")
    with pytest.raises(QuestionNotApplicable, match="rotates or normalises its keys"):
        heads.random_key_bias(Case(checkpoint=checkpoint, trace=checkpoint.run("abc=")))


def test_a_decoder_alone_is_asked_about_its_own_attention() -> None:
    checkpoint = healthy("gpt2")
    case = Case(checkpoint=checkpoint, trace=checkpoint.run("abcdef="))
    assert heads.first_layer(case)["kind"] == heads.last_writer(case)["kind"] == "decoder"
    rows = checkpoint.run("abcdef=").decoder_self[0][:2, 1:].argmax(axis=-1)  # the first row sees itself only
    answer = heads.two_heads_agree(picked(heads.first_layer, case))
    assert answer.values["count"] == int((rows[0] == rows[1]).sum())


def test_an_encoder_alone_writes_nothing_that_could_change() -> None:
    checkpoint = healthy("bert")
    case = Case(checkpoint=checkpoint, trace=checkpoint.run("the cat sees a dog"))
    assert heads.first_layer(case)["kind"] == "encoder"
    with pytest.raises(QuestionNotApplicable, match="encoder-only model writes nothing"):
        heads.last_writer(case)
