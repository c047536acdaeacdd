"""What is asked about heads has the answer of their maps, of matrices by hand, and of runs without one."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from glassformer.extensions.effects.attribution.attribution_graph import attribution_graph
from glassformer.extensions.effects.attribution.target import ask
from glassformer.extensions.lessons.library.case import Case, QuestionNotApplicable
from glassformer.extensions.lessons.library.lesson_files import lessons
from glassformer.extensions.lessons.library.posing import pose
from glassformer.extensions.lessons.library.subjects import heads_questions as heads
from glassformer.extensions.lessons.library.subjects.inside_questions import lens_step
from glassformer.extensions.what_if.interventions import ZeroHead
from tests.extensions.lessons.library.posed import RUNS, SPOKEN, case_at, picked
from tests.extensions.lessons.library.posed import case as case_of
from tests.healthy import healthy
from transformer.model.taps import Replacer, tap_of
from transformer.runs.running import replay

both = pytest.mark.parametrize(("name", "sentence"), RUNS)


def bits(row: list[float]) -> float:
    """Entropy by its formula."""
    return -sum(weight * math.log2(weight) for weight in row if weight > 0)


@both
def test_what_the_maps_of_a_layer_alone_say(name: str, sentence: str) -> None:
    case = case_at(name, sentence, heads.first_layer)
    maps = case.trace.encoder_self[0].astype(np.float64)
    first, second = maps[:2].argmax(axis=-1)
    same = int((first == second).sum())
    answer = heads.two_heads_agree(case)
    assert answer.values == {"count": same, "rows": len(first)}
    assert answer.right == ("all" if same == len(first) else "half" if same >= len(first) / 2 else "few")
    own = [bits(row) for head in maps.tolist() for row in head]
    mixed = [bits(row) for row in maps.mean(axis=0).tolist()]
    answer = heads.entropy_of_mean(case)
    assert answer.right == "above"
    assert answer.values["own"] == pytest.approx(sum(own) / len(own), abs=1e-6)
    assert answer.values["mixed"] == pytest.approx(sum(mixed) / len(mixed), abs=1e-6)
    query, key = np.indices(maps.shape[1:])
    far = (maps * np.abs(query - key)).sum(axis=-1).mean(axis=-1)
    if np.diff(np.sort(far))[-1] < heads.CLEAR_TOKENS:
        with pytest.raises(QuestionNotApplicable):
            heads.furthest_head(case)
        return
    answer = heads.furthest_head(case)
    assert answer.right == f"head-{far.argmax() + 1}"
    assert answer.values["far"] == pytest.approx(far.max(), abs=1e-5)
    assert answer.values["least"] == far.argmin() + 1


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


def test_a_decoder_alone_is_asked_about_its_own_attention() -> None:
    checkpoint = healthy("gpt2")
    case = Case(checkpoint=checkpoint, trace=checkpoint.run("abcdef="))
    assert heads.first_layer(case)["kind"] == heads.last_writer(case)["kind"] == "decoder"
    rows = checkpoint.run("abcdef=").decoder_self[0][:2, 1:].argmax(axis=-1)  # the first row sees itself only
    answer = heads.two_heads_agree(picked(heads.first_layer, case))
    assert answer.values["count"] == int((rows[0] == rows[1]).sum())


BUILDING = lessons()["building"].steps
spoken = pytest.mark.parametrize(("name", "sentence"), SPOKEN)


def attention_of(run, picked):
    layer = picked["layer"] - 1
    return run.checkpoint.model.decoder.layers[layer].cross_attn, f"decoder.{layer}.cross_attn"


@spoken
def test_the_query_of_a_head_is_a_slice_of_w_q_times_the_vector(name, sentence):
    run = case_of(name, sentence)
    posed = pose(BUILDING[0], run)
    own, site = attention_of(run, posed.picked)
    found = replay(run.checkpoint, run.trace, [f"{site}.norm", f"{site}.queries"])
    projection = own.q_proj
    whole = found[f"{site}.norm"] @ projection.weight.detach().numpy().T + projection.bias.detach().numpy()
    width = posed.answer.values["width"]
    assert posed.answer.right == "share"
    assert width * posed.picked["n_heads"] == posed.picked["d_model"] == whole.shape[-1]
    for head, queries in enumerate(found[f"{site}.queries"]):
        assert queries == pytest.approx(whole[:, head * width : (head + 1) * width], abs=1e-4)


@spoken
def test_joining_then_w_o_is_adding_each_heads_own_rows(name, sentence):
    run = case_of(name, sentence)
    joined, added, reach = (pose(BUILDING[n], run) for n in (2, 3, 4))
    own, site = attention_of(run, joined.picked)
    found = replay(run.checkpoint, run.trace, [f"{site}.heads", f"{site}.output"])
    heads, output = found[f"{site}.heads"].astype(np.float64), found[f"{site}.output"]
    weight, bias = (one.detach().double().numpy() for one in (own.out_proj.weight, own.out_proj.bias))
    width, rows = heads.shape[-1], np.concatenate(list(heads), axis=-1)
    assert rows @ weight.T + bias == pytest.approx(output, abs=1e-4)
    assert joined.answer.right == "block"
    assert (joined.answer.values["first"], joined.answer.values["last"]) == (width + 1, 2 * width)
    sums = sum(head @ weight[:, n * width : (n + 1) * width].T for n, head in enumerate(heads)) + bias
    assert sums == pytest.approx(output, abs=1e-4)
    assert added.answer.right == "rounding"
    head = reach.picked["head"] - 1
    without = rows.copy()
    without[:, head * width : (head + 1) * width] = 0
    changed = np.abs(without @ weight.T - rows @ weight.T).max(axis=0) > 1e-9
    assert reach.answer.right == "all"
    assert reach.answer.values["changed"] == changed.sum()


@both
def test_a_cut_edge_into_the_output_is_the_last_vector_without_what_was_written(name: str, sentence: str) -> None:
    case = case_at(name, sentence, lens_step)
    answer = heads.cut_edge(case)
    model, trace, step = case.checkpoint.model, case.trace, case.at("step")
    graph = attribution_graph(ask(case.checkpoint, trace, step))
    source, token, target, _ = map(int, answer.values["cut"].split("."))
    part, last = graph.parts[source], f"decoder.{case.checkpoint.config.n_decoder_layers - 1}.output"
    ratio = answer.values["true"] / answer.values["predicted"]
    assert answer.right == ("less" if ratio < 0.5 else "near" if ratio < 1.5 else "more")
    if graph.parts[target].kind != "logit" or part.kind not in ("ffn", "tokens"):
        return
    site = "decoder.embedding.tokens" if part.kind == "tokens" else f"{part.place}.output"
    recorded = replay(case.checkpoint, trace, [last, site])
    wrote = torch.tensor(recorded[site][token])
    bias = 0.0 if part.kind == "tokens" else model.decoder.layers[part.layer].ffn.down_proj.bias.detach()
    x, norm, piece = torch.tensor(recorded[last][trace.row_of(step)]), model.decoder.final_norm, trace.tgt_ids[step]
    with torch.inference_mode():
        before, after = (model.output_weight @ norm(one) for one in (x, x - wrote + bias))
    assert answer.values["true"] == pytest.approx(float(after[piece] - before[piece]), abs=1e-3)
    assert answer.values["before"] == pytest.approx(float(before.softmax(0)[piece]), abs=1e-4)
    assert answer.values["after"] == pytest.approx(float(after.softmax(0)[piece]), abs=1e-4)
