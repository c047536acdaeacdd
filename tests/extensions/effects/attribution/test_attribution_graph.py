"""Edges of a logit's graph add up to it, each is what the held model gives, and cuts are what a plain run gives."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from glassformer.extensions.effects.attribution.attribution_graph import MOST_LAYERS, attribution_graph, cut
from glassformer.extensions.effects.attribution.held_run import HeldRun, LogitPart
from glassformer.extensions.effects.attribution.target import AttributionTarget, ask
from tests.extensions.effects.attribution.asking import asked, with_gradient
from tests.extensions.effects.attribution.holding import holding
from tests.extensions.effects.attribution.test_logit import VALUES, WIRINGS, changed
from tests.transformer.model.test_layer_features import features
from tests.transformer.tiny import DECODER
from transformer import load
from transformer.errors import QueryError
from transformer.model.taps import Recorder, Replacer, Rewirer, tap_of

POST = {"norm": "post", "final_norm": False}
GPT2 = {**DECODER, "positions": "learned", "activation": "gelu_tanh", "scale_embedding": False, "bias": True}
answers = features().filter(lambda changes: changes.get("n_decoder_layers", 1) or changes["mlm_head"])


def check_sums(question, graph, *, rival=None, within=1e-10):
    with torch.inference_mode():
        logits = question.logits()[0].double()
    logit = float(logits[question.piece] - (0.0 if rival is None else logits[rival]))
    scale = max(1.0, float(graph.size.max()))
    assert graph.into[-1] == pytest.approx(logit, abs=within * scale)
    into, out = (np.bincount(ends, graph.value, len(graph.part)) for ends in (graph.target, graph.source))
    np.testing.assert_allclose(into, graph.into, atol=within * scale, rtol=0)
    inside = [n for n, part in enumerate(graph.part) if graph.parts[part].kind in ("head", "ffn")]
    np.testing.assert_allclose(out[inside], into[inside], atol=within * scale, rtol=0)
    assert graph.explained(np.arange(len(graph.value))) == pytest.approx(1.0)


@settings(max_examples=40)
@given(answers, st.integers(8, 16))
def test_edges_add_up_at_every_node(changes, rival):
    question = asked(**changes | {"logit_cap": None})
    check_sums(question, attribution_graph(question, rival=rival), rival=rival)


@settings(max_examples=25)
@given(answers, st.integers(0, 10**6))
def test_an_edge_is_what_its_cut_does_while_the_rest_is_held(changes, seed):
    question = asked(**changes | {"logit_cap": None})
    graph, still = attribution_graph(question), HeldRun(holding(question))
    edges, scale = np.flatnonzero(graph.source), max(1.0, float(graph.size.max()))
    for edge in np.random.default_rng(seed).choice(edges, min(6, len(edges)), replace=False).tolist():
        assert cut(still, *graph.ends_of(edge)).change(7) == pytest.approx(-graph.value[edge], abs=1e-9 * scale)


def shipped(name, source):
    checkpoint = load(f"checkpoints/{name}")
    trace = checkpoint.run(source)
    if checkpoint.model.anatomy.writes:
        return ask(checkpoint, trace, trace.n_steps - 1)
    none = torch.zeros(1, 0, dtype=torch.long)
    return AttributionTarget(checkpoint.model, torch.tensor([trace.src_ids]), none, 7, len(trace.src_ids), place=3)


SHIPPED = [("reverse", "glass"), ("addition", "123+456="), ("palindrome", "abccba"), ("zh-en", "我喜欢喝咖啡。")]


@pytest.mark.parametrize("name", SHIPPED)
def test_so_do_those_of_the_shipped_models(name):
    question = shipped(*name)
    check_sums(question, graph := attribution_graph(question), within=1e-5)
    with torch.inference_mode():
        assert graph.into[-1] == pytest.approx(float(question.logits()[0, question.piece]), abs=1e-4)


@pytest.mark.parametrize("shape", [{}, POST, GPT2, {"norm": "both", "gated": True, "n_kv_heads": 1}])
def test_what_goes_through_a_node_is_its_gradient_times_its_value(shape):
    question = asked(**shape)
    graph, still = attribution_graph(question), holding(question)
    for n, part in enumerate(graph.parts):
        site = {
            "head": f"{part.place}.heads", "ffn": f"{part.place}.activation", "tokens": f"{part.stack}.embedding.tokens"
        }.get(part.kind)  # fmt: skip
        if site is None:
            continue
        value, slope = (one[... if part.head is None else part.head] for one in with_gradient(still, site))
        own = graph.part == n
        out = np.bincount(graph.source, graph.value, len(graph.part))[own]
        np.testing.assert_allclose(out, (value * slope).sum(dim=-1).numpy(), atol=1e-10)


# ------------------------------------------------------------------------------------------------ changed runs


@pytest.mark.parametrize("shape", [POST, {"norm": "both", "embedding_norm": True}])
@pytest.mark.parametrize("site", [*VALUES, "encoder.0.self_attn.heads", "encoder.1.ffn.activation", "encoder.output"])
def test_what_a_change_put_in_the_place_of_a_value_is_a_constant(site, shape):
    noise = (lambda value, noise: value + noise[0]) if "embed" not in site else (lambda value, noise: value + noise)
    question = asked(tap=tap_of(changed(site, noise)), **shape)
    check_sums(question, attribution_graph(question))


@pytest.mark.parametrize("wiring", WIRINGS)
def test_edges_go_by_the_wiring_of_the_run(wiring):
    question = asked(tap=tap_of(Rewirer(WIRINGS[wiring])), **POST)
    check_sums(question, attribution_graph(question))


def test_a_head_that_writes_nothing_owes_nothing():
    site = "decoder.2.cross_attn.heads"
    silent = tap_of(Replacer({site: lambda value: value * torch.tensor([1.0, 0, 1])[:, None, None]}, causal=True))
    graph = attribution_graph(asked(tap=silent))
    at = graph.parts.index(LogitPart("head", 2, "cross_attn", 1, "decoder"))
    assert not (graph.part[graph.target] == at).any()
    assert not (graph.part[graph.source] == at).any()


# ------------------------------------------------------------------------------------------------ pruning


def weight_of_paths(graph, kept):
    """The weight of all paths along some edges, path by path."""
    into = {}
    for edge in kept:
        into.setdefault(int(graph.target[edge]), []).append(edge)

    def below(node):
        if graph.parts[graph.part[node]].kind not in ("head", "ffn", "logit"):
            return 1.0
        return sum(
            abs(graph.value[edge]) / graph.size[node] * below(int(graph.source[edge])) for edge in into.get(node, [])
        )

    return below(len(graph.part) - 1)


def test_the_strongest_edges_explain_what_is_asked_for_and_fewer_do_not():
    graph = attribution_graph(asked(n_source=3, n_read=2, n_encoder_layers=1, n_decoder_layers=1))
    for share in (0.3, 0.8):
        kept = graph.strongest(share)
        assert graph.explained(kept) == pytest.approx(weight_of_paths(graph, kept.tolist()))
        assert graph.explained(kept) >= share
        weakest = kept[np.argmin(graph.influence[kept])]
        assert graph.explained(kept[kept != weakest]) < share
    few = graph.strongest(0.8, most=5)
    assert len(few) <= 5
    assert set(graph.target[few].tolist()) <= {*graph.source[few].tolist(), len(graph.part) - 1}


def test_edges_that_are_not_kept_still_count():
    question = asked()
    whole, some = attribution_graph(question), attribution_graph(question, keep=6)
    assert len(some.value) < len(whole.value)
    np.testing.assert_array_equal(some.into, whole.into)
    assert 0 < some.explained(np.arange(len(some.value))) < 1


# ------------------------------------------------------------------------------------------------ cuts


def naive(question, source, target):
    """The logits of a decoder-only model after a cut, computed sub-layer by sub-layer, without the code under test."""
    model, recorder = question.model, Recorder(["*"])
    question.logits(tap=tap_of(recorder))
    seen, config = recorder.values, model.config
    (writer, token), (reader, at) = source, target

    def attention(module, x):
        q, k, v = (one(x)[0].unflatten(-1, (-1, config.d_head)).transpose(0, 1)
                   for one in (module.q_proj, module.k_proj, module.v_proj))  # fmt: skip
        k, v = (one.repeat_interleave(len(q) // len(one), dim=0) for one in (k, v))
        scores = q @ k.mT / config.d_head**0.5
        scores = scores.masked_fill(torch.ones_like(scores[0]).triu(1).bool(), -torch.inf)
        return scores.softmax(dim=-1) @ v  # [H, T, d]

    def go(*, cutting, patch=None):
        x = seen["decoder.embedding.tokens"].clone()
        if cutting and writer.kind == "tokens":
            x[0, token] = 0
        places = seen["decoder.embedding.positions"].clone()
        if cutting and writer.kind == "positions":
            places[token] = 0
        x = x + places
        for n, layer in enumerate(model.decoder.layers):
            for part in ("self_attn", "ffn"):
                around, module = getattr(layer, f"{part}_residual"), getattr(layer, part)
                read = x if config.norm == "post" else around.norm(x)
                here = (n, part) == (reader.layer, reader.sublayer)
                heads = attention(module, read) if part == "self_attn" else None
                made = module.out_proj(heads.transpose(0, 1).flatten(1))[None] if heads is not None else module(read)
                if cutting and here:
                    return heads[reader.head, at] if heads is not None else made[0, at]
                if cutting:  # every other sub-layer writes what it wrote
                    made = seen[f"decoder.{n}.{part}.output"].clone()
                    if (n, part) == (writer.layer, writer.sublayer):
                        lost = made[0, token] - module.down_proj.bias if part == "ffn" else None
                        if lost is None:
                            own = slice(writer.head * config.d_head, (writer.head + 1) * config.d_head)
                            took = seen[f"decoder.{n}.self_attn.heads"][0, writer.head, token]
                            lost = module.out_proj.weight[:, own] @ took
                        made[0, token] -= lost
                elif patch is not None and here:
                    if heads is not None:
                        heads[reader.head, at] = patch
                        made = module.out_proj(heads.transpose(0, 1).flatten(1))[None]
                    else:
                        made[0, at] = patch
                x = around.norm(x + made) if config.norm == "post" else x + made
        return (model.output_weight @ model.decoder.final_norm(x)[0, -1]).numpy()

    found = go(cutting=True)
    return found if reader.kind == "logit" else go(cutting=False, patch=found)


@pytest.mark.parametrize("shape", [GPT2, {**GPT2, **POST, "n_kv_heads": 1}], ids=["pre", "post"])
def test_a_cut_is_a_run_in_which_one_input_lacks_what_one_part_wrote(shape):
    question = asked(**shape)
    graph, held = attribution_graph(question), HeldRun(question)
    edges = np.flatnonzero(graph.source)
    kinds = set()
    for edge in np.random.default_rng(0).choice(edges, 60, replace=False).tolist():
        ends = graph.ends_of(edge)
        kinds.add((ends[0][0].kind, ends[1][0].kind))
        np.testing.assert_allclose(cut(held, *ends).after, naive(question, *ends), atol=1e-10)
    assert len(kinds) >= 6
    direct = next(edge for edge in edges[::-1].tolist() if graph.target[edge] == len(graph.part) - 1)
    found = cut(held, *graph.ends_of(direct))
    np.testing.assert_allclose(found.after, naive(question, *graph.ends_of(direct)), atol=1e-10)
    expected = torch.softmax(torch.tensor(found.before), 0)[7], torch.softmax(torch.tensor(found.after), 0)[7]
    assert found.probabilities(7) == pytest.approx(tuple(map(float, expected)))


# ------------------------------------------------------------------------------------------------ what is refused


def test_what_cannot_be_computed_is_said_in_one_sentence():
    with pytest.raises(QueryError, match=f"this model has 13 layers.*at most {MOST_LAYERS} in a stack"):
        attribution_graph(asked(n_decoder_layers=13))
    with pytest.raises(
        QueryError, match="a text of 5,000 tokens is too long for the graph of a logit: for this model the limit is"
    ):
        attribution_graph(asked(n_source=5000, n_read=4, max_len=6000))
    question = asked()
    graph = attribution_graph(question)
    with pytest.raises(QueryError, match="an edge from them cannot be cut"):
        cut(HeldRun(question), *graph.ends_of(int(np.flatnonzero(graph.source == 0)[0])))
