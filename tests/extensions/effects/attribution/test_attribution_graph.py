"""Edges of a logit's graph add up to it, are what the held model itself gives, and cuts are what a plain run gives."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from glassformer.extensions.effects.attribution.attribution_graph import attribution_graph
from glassformer.extensions.effects.attribution.held_run import HeldRun
from glassformer.extensions.effects.attribution.path_patching import cut
from tests.extensions.effects.attribution.asking import asked
from tests.extensions.effects.attribution.holding import holding
from tests.transformer.model.test_layer_features import features
from tests.transformer.tiny import DECODER

POST = {"norm": "post", "final_norm": False}


def graph_of(question, **more):
    return HeldRun(question), attribution_graph(question, **more)


def node(graph, n):
    return graph.parts[graph.part[n]], int(graph.token[n])


@settings(max_examples=40, deadline=None)
@given(features().filter(lambda changes: changes.get("n_decoder_layers", 1) or changes["mlm_head"]), st.integers(8, 16))
def test_edges_add_up_at_every_node(changes, rival):
    question = asked(**changes | {"logit_cap": None})
    held, graph = graph_of(question, rival=rival)
    scale = max(1.0, float(graph.size.max()))
    logit = float(held.logits[7] - held.logits[rival])
    assert graph.into[-1] == pytest.approx(logit, abs=1e-10 * scale)
    inside = [n for n, part in enumerate(graph.part) if graph.parts[part].kind in ("head", "ffn")]
    out = np.bincount(graph.source, graph.value, minlength=len(graph.part))
    np.testing.assert_allclose(out[inside], graph.into[inside], atol=1e-10 * scale, rtol=0)
    assert graph.explained(np.arange(len(graph.value))) == pytest.approx(1.0)


@settings(max_examples=25, deadline=None)
@given(features().filter(lambda changes: changes.get("n_decoder_layers", 1) or changes["mlm_head"]), st.integers(0, 10**6))
def test_an_edge_is_what_its_cut_does_while_the_rest_is_held(changes, seed):
    question = asked(**changes | {"logit_cap": None})
    _, graph = graph_of(question)
    still = HeldRun(holding(question))
    drawn = np.random.default_rng(seed)
    edges = np.flatnonzero(graph.source)
    scale = max(1.0, float(graph.size.max()))
    for edge in drawn.choice(edges, min(6, len(edges)), replace=False):
        found = cut(still, node(graph, graph.source[edge]), node(graph, graph.target[edge]))
        assert found.change(7) == pytest.approx(-graph.value[edge], abs=1e-9 * scale)
