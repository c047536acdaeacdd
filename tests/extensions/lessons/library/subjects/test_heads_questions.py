"""What is asked about heads has the answer of their maps, of matrices by hand, and of runs without one."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from glassformer.extensions.effects.attribution.attribution_graph import attribution_graph
from glassformer.extensions.effects.attribution.target import ask
from glassformer.extensions.lessons.library.lesson import QuestionNotApplicable
from glassformer.extensions.lessons.library.lesson_files import lessons
from glassformer.extensions.lessons.library.posing import pose
from glassformer.extensions.lessons.library.subjects import heads_questions as heads
from glassformer.extensions.lessons.library.subjects.inside_questions import lens_step
from glassformer.extensions.what_if.interventions import ZeroHead
from tests.extensions.lessons.library.posed import approx, case, picked, told
from transformer.model.taps import Replacer, tap_of
from transformer.runs.running import replay

BUILDING = lessons()["building"].steps


def bits(rows):
    """The mean entropy of rows of weights, by its formula."""
    return float(-(rows * np.log2(np.where(rows > 0, rows, 1))).sum(axis=-1).mean())


def written(trace):
    """The log-probability of each piece of the output."""
    return trace.log_probs[np.arange(trace.n_steps), list(trace.tgt_ids)]


def attention_of(run, layer):
    """A cross-attention, and its site."""
    return run.checkpoint.model.decoder.layers[layer].cross_attn, f"decoder.{layer}.cross_attn"


def recorded(run, *sites):
    found = replay(run.checkpoint, run.trace, sites)
    return [found[site].astype(np.float64) for site in sites]


def test_what_the_maps_of_a_layer_alone_say(run):
    run = picked(heads.first_layer, run)
    maps = run.trace.encoder_self[0].astype(np.float64)
    first, second = maps[:2].argmax(axis=-1)
    same, n = int((first == second).sum()), len(first)
    told(heads.two_heads_agree(run), "all" if same == n else "half" if same >= n / 2 else "few", count=same, rows=n)
    own, mixed = (approx(bits(rows), abs=1e-6) for rows in (maps, maps.mean(axis=0)))
    told(heads.entropy_of_mean(run), "above", own=own, mixed=mixed)
    query, key = np.indices(maps.shape[1:])
    far = (maps * np.abs(query - key)).sum(axis=-1).mean(axis=-1)
    if np.diff(np.sort(far))[-1] < heads.CLEAR_TOKENS:
        with pytest.raises(QuestionNotApplicable):
            heads.furthest_head(run)
        return
    least, most = approx(far.max(), abs=1e-5), far.argmin() + 1
    told(heads.furthest_head(run), f"head-{far.argmax() + 1}", far=least, least=most)


def test_what_heads_write_is_their_values_times_their_part_of_w_o(run):
    run = picked(heads.last_writer, run)
    layer = run.picked["layer"] - 1
    attention, site = attention_of(run, layer)
    [vectors] = recorded(run, f"{site}.heads")  # [head, step, d_head]
    parts = np.split(attention.out_proj.weight.detach().double().numpy(), len(vectors), axis=1)
    lengths = np.array([np.linalg.norm(own @ part.T, axis=1) for own, part in zip(vectors, parts, strict=True)])
    shares = (lengths / lengths.sum(axis=0)).mean(axis=1)
    assert len(shares) == run.picked["n_heads"]
    assert heads.written_shares(run, "cross", layer) == approx(shares, abs=1e-6)
    found = picked(heads.sharpest, run)
    sharp = int(run.trace.cross[layer].max(axis=-1).mean(axis=-1).argmax())
    most = {"most": shares.argmax() + 1, "least": shares.argmin() + 1, "sharp": sharp + 1}
    assert found.picked | most == found.picked
    own = shares[sharp]
    if own == shares.max() or shares.max() - own >= heads.CLEAR_SHARE:
        told(heads.sharpest_writes_most(found), "yes" if own == shares.max() else "no", own=approx(own, abs=1e-6))


def test_a_head_is_worth_what_a_run_without_it_loses(run):
    run = picked(heads.two_writers, run)
    lost = []
    for head in range(run.picked["n_heads"]):
        changes = (ZeroHead("cross", run.picked["layer"] - 1, head),)
        other = run.checkpoint.run(replace(run.trace.query, forced=run.trace.tgt_ids, interventions=changes))
        lost.append(float(written(other).sum() - written(run.trace).sum()))
    most, least = (lost[run.picked[which] - 1] for which in ("most", "least"))
    right = "same" if abs(most - least) < heads.SAME_NATS else "most" if most < least else "least"
    told(heads.worth_of_size(run), right, by_most=approx(most, abs=1e-3), by_least=approx(least, abs=1e-3))
    costliest = heads.costliest_head(run)
    assert (costliest["head"], costliest["cost"]) == (lost.index(min(lost)) + 1, approx(-min(lost), abs=1e-3))


def test_a_bias_of_all_keys_does_nothing(run):
    def added(keys):
        numbers = torch.Generator().manual_seed(5)
        return keys + 3 * torch.randn(1, keys.size(1), 1, keys.size(3), generator=numbers)

    tap = tap_of(Replacer({"*.keys": added}, causal=True))
    by_hand = run.checkpoint.run(run.trace.query.source, tap=tap)
    assert np.abs(by_hand.log_probs - run.trace.log_probs).max() < 1e-3
    answer = heads.random_key_bias(run)
    assert (answer.right, 0 < answer.values["moved"] < 1e-3) == ("rounding", True)


def test_a_decoder_alone_is_asked_about_its_own_attention():
    run = picked(heads.first_layer, case("gpt2", "abcdef="))
    assert run.picked["kind"] == heads.last_writer(run)["kind"] == "decoder"
    rows = run.trace.decoder_self[0][:2, 1:].argmax(axis=-1)  # the first row sees itself only
    assert heads.two_heads_agree(run).values["count"] == int((rows[0] == rows[1]).sum())


def test_the_query_of_a_head_is_a_slice_of_w_q_times_the_vector(run):
    posed = pose(BUILDING[0], run)
    own, site = attention_of(run, posed.picked["layer"] - 1)
    read, queries = recorded(run, f"{site}.norm", f"{site}.queries")
    whole = read @ own.q_proj.weight.detach().numpy().T + own.q_proj.bias.detach().numpy()
    assert np.concatenate(queries, axis=-1) == approx(whole, abs=1e-4)
    told(posed.answer, "share", width=whole.shape[-1] // len(queries))
    assert posed.picked["d_model"] == whole.shape[-1]


def test_joining_then_w_o_is_adding_each_heads_own_rows(run):
    joined, added, reach = (pose(BUILDING[n], run) for n in (2, 3, 4))
    own, site = attention_of(run, joined.picked["layer"] - 1)
    heads, output = recorded(run, f"{site}.heads", f"{site}.output")
    weight, bias = (one.detach().double().numpy() for one in (own.out_proj.weight, own.out_proj.bias))
    parts = np.split(weight, len(heads), axis=1)
    assert np.concatenate(heads, axis=-1) @ weight.T + bias == approx(output, abs=1e-4)
    assert sum(head @ part.T for head, part in zip(heads, parts, strict=True)) + bias == approx(output, abs=1e-4)
    told(joined.answer, "block", first=heads.shape[-1] + 1, last=2 * heads.shape[-1])
    assert added.answer.right == "rounding"
    head = reach.picked["head"] - 1
    changed = np.abs(heads[head] @ parts[head].T).max(axis=0) > 1e-9
    told(reach.answer, "all", changed=changed.sum())


def test_a_cut_edge_into_the_output_is_the_last_vector_without_what_was_written(run):
    run = picked(lens_step, run)
    answer = heads.cut_edge(run)
    model, trace, step = run.checkpoint.model, run.trace, run.at("step")
    graph = attribution_graph(ask(run.checkpoint, trace, step))
    source, token, target, _ = map(int, answer.values["cut"].split("."))
    part, last = graph.parts[source], f"decoder.{run.checkpoint.config.n_decoder_layers - 1}.output"
    ratio = answer.values["true"] / answer.values["predicted"]
    assert answer.right == ("less" if ratio < 0.5 else "near" if ratio < 1.5 else "more")
    if graph.parts[target].kind != "logit" or part.kind not in ("ffn", "tokens"):
        return
    tokens = part.kind == "tokens"
    streams, outputs = recorded(run, last, "decoder.embedding.tokens" if tokens else f"{part.place}.output")
    x, wrote = (torch.tensor(row, dtype=torch.float32) for row in (streams[trace.row_of(step)], outputs[token]))
    bias = 0.0 if tokens else model.decoder.layers[part.layer].ffn.down_proj.bias
    piece = trace.tgt_ids[step]
    with torch.inference_mode():
        before, after = (model.output_weight @ model.decoder.final_norm(one) for one in (x, x - wrote + bias))
    true = approx(float(after[piece] - before[piece]), abs=1e-3)
    shares = [approx(float(one.softmax(0)[piece]), abs=1e-4) for one in (before, after)]
    told(answer, answer.right, true=true, before=shares[0], after=shares[1])
