"""The parts of an attention score add up to it, and each is the product of what two parts became."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from glassformer.extensions.effects.attribution.held_run import HeldRun, reads
from glassformer.extensions.effects.attribution.parts import score_parts
from tests.extensions.effects.attribution.asking import asked
from tests.transformer.featured import FEATURED
from tests.transformer.model.test_layer_features import features
from tests.transformer.tiny import DECODER
from transformer.errors import QueryError
from transformer.model.attention_scores import capped
from transformer.model.taps import Replacer, tap_of

PLACED = {name: changes for name, changes in FEATURED.items() if "n_decoder_layers" not in changes}


def all_scores(question):
    """Each head's parts at a few places, with its cap."""
    held = HeldRun(question)
    for one, own, keys in reads(held):
        for head in one.writers if one and one.writers[0].kind == "head" else ():
            n_queries, n_keys = own.rows.size(1), keys.rows.size(1)
            for query, key in [(0, 0), (n_queries - 1, 0), (n_queries - 1, n_keys - 1)]:
                yield score_parts(held, head, query, key)


def check_sums(question):
    cap = question.model.config.score_cap
    found = list(all_scores(question))
    assert found
    for one in found:
        total = capped(torch.tensor(one.values.sum() + one.bias), cap)
        assert float(total) == pytest.approx(one.score, abs=1e-9 * max(1.0, np.abs(one.values).max()))


@settings(max_examples=15)
@given(features().filter(lambda changes: changes.get("n_decoder_layers", 1) or changes["mlm_head"]))
def test_all_pairs_add_up_to_the_score(changes):
    check_sums(asked(**changes))


@pytest.mark.parametrize("name", PLACED)
def test_so_they_do_with_any_kind_of_positions(name):
    shape = PLACED[name]
    check_sums(asked(**(DECODER if "n_encoder_layers" in shape else {}) | shape))


def test_a_pair_is_what_both_became_on_the_way():
    question = asked(**DECODER, positions="learned", bias=False)
    held = HeldRun(question)
    layer = question.model.decoder.layers[0]
    tokens, positions = held.value("decoder.embedding.tokens"), held.value("decoder.embedding.positions")
    norm, stream = layer.self_attn_residual.norm, tokens + positions
    size = (stream.var(dim=-1, correction=0) + question.model.config.norm_eps).sqrt()

    def became(vector, token, weight):
        return weight[4:8] @ (norm.weight * (vector - vector.mean()) / size[token])

    head = next(reads(held))[0].writers[1]
    found = score_parts(held, head, 3, 1)
    names = [part.kind for part in found.queries]
    expected = became(tokens[3], 3, layer.self_attn.q_proj.weight) @ became(
        positions[1], 1, layer.self_attn.k_proj.weight
    )
    assert found.values[names.index("tokens"), names.index("positions")] == pytest.approx(float(expected) / 2)


def test_changed_queries_have_no_parts():
    question = asked(tap=tap_of(Replacer({"decoder.0.self_attn.queries": lambda value: value + 1.0}, causal=True)))
    with pytest.raises(QueryError, match="this run is changed where queries and keys are made"):
        list(all_scores(question))
