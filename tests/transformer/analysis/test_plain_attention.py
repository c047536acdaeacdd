"""softmax(A·Aᵀ) of embeddings is what plain sums give, and needs W_Q and W_K to be what a trained head is."""

import math

import numpy as np
import pytest
from safetensors.numpy import load_file

from glassformer.runs.loading import SHIPPED
from tests.transformer.featured import FEATURED, featured
from tests.transformer.one_stack import ALONE, alone
from transformer.analysis.one_weight import sites, walk
from transformer.analysis.plain_attention import plain_weights, projected, read_by, without_parameters
from transformer.checkpoint.load import load
from transformer.runs.running import replay, run

SENTENCE = "小美长得很漂亮而且人还很好"
MODELS = ("pair", *ALONE, *FEATURED)


@pytest.fixture(scope="module", params=MODELS)
def checkpoint(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("plain")
    if request.param == "pair":
        return request.getfixturevalue("pair")
    return alone(request.param, folder) if request.param in ALONE else featured(request.param, folder)


def by_hand(queries, keys, allowed, factor):
    """The same in plain Python."""
    found = []
    for row, query in enumerate(queries):
        scores = {
            column: factor * factor * math.fsum(a * b for a, b in zip(query, key, strict=True))
            for column, key in enumerate(keys)
            if allowed[row][column]
        }
        peak = max(scores.values())
        total = math.fsum(math.exp(score - peak) for score in scores.values())
        found.append([math.exp(scores[c] - peak) / total if c in scores else 0.0 for c in range(len(keys))])
    return found


def test_every_attention_of_every_kind_of_model_is_what_sums_by_hand_give(checkpoint):
    trace = run(checkpoint, checkpoint.query("ba lo mi ta", max_new=4))
    ids = {"encoder": trace.src_ids, "decoder": trace.read_ids}
    for kind in trace.kinds:
        of = checkpoint.model.anatomy.attention(kind)
        q_ids, k_ids, allowed = ids[of.stack], ids[of.keys_from], trace.mask(kind)
        found = without_parameters(checkpoint.model, kind, q_ids, k_ids, allowed)
        tables = {"encoder": checkpoint.model.src_table, "decoder": checkpoint.model.target_table}
        a, b = ([tables[of_stack][one].tolist() for one in of_ids]
                for of_stack, of_ids in ((of.stack, q_ids), (of.keys_from, k_ids)))  # fmt: skip
        for weights, factor in zip(found, (1.0, math.sqrt(checkpoint.config.d_model)), strict=True):
            np.testing.assert_allclose(weights, by_hand(a, b, allowed, factor), atol=1e-9)


def test_a_row_without_open_keys_has_no_weight():
    weights = plain_weights(np.eye(2), np.eye(2), np.array([[True, True], [False, False]]))
    np.testing.assert_allclose(weights, [[math.e / (math.e + 1), 1 / (math.e + 1)], [0, 0]])


def test_the_example_of_the_articles_in_the_shipped_model():
    """By the file's own numbers: a token fits itself best without parameters, and in no trained head."""
    checkpoint = load(SHIPPED / "zh-en")
    assert SENTENCE in checkpoint.card.examples
    trace = run(checkpoint, checkpoint.query(SENTENCE))
    table = load_file(SHIPPED / "zh-en" / "model.safetensors")["src_table"].astype(np.float64)
    rows = table[list(trace.src_ids)]
    allowed = np.ones((len(rows),) * 2, bool)
    plain, scaled = without_parameters(checkpoint.model, "encoder", trace.src_ids, trace.src_ids, allowed)
    np.testing.assert_allclose(plain, by_hand(rows.tolist(), rows.tolist(), allowed, 1.0), atol=1e-9)
    assert (plain.argmax(axis=1) == np.arange(len(rows))).all()
    assert round(float(np.trace(plain)) / len(rows), 2) == 0.29
    assert round(float(np.trace(scaled)) / len(rows), 2) == 1.0
    trained = np.trace(trace.maps("encoder"), axis1=2, axis2=3) / len(rows)  # [layer, head]
    assert 0.02 < trained.min() < trained.max() < 0.2
    person = trace.src_tokens.index("人")
    assert round(float(plain[person, person]), 2) == 0.22
    last = trace.maps("encoder")[-1].mean(axis=0)[person]
    assert trace.src_tokens[int(last.argmax())] == "很好"


def test_queries_and_keys_are_what_the_matrices_give(checkpoint):
    """W · x + b is what torch's own linear map gives of what it was called with."""
    trace = run(checkpoint, checkpoint.query("ba lo mi ta", max_new=4))
    for kind in trace.kinds:
        layer, attention = 1, checkpoint.model.attentions(kind)[1]
        head = attention.n_heads - 1
        needed = (*sites(kind, layer, config=checkpoint.config), *read_by(checkpoint.config, kind, layer))
        recorded = replay(checkpoint, trace, tuple(dict.fromkeys(needed)))
        found = walk(recorded, checkpoint.model, kind=kind, layer=layer, head=head, query=2)
        called = calls(checkpoint, trace, attention)
        group = head * attention.n_kv_heads // attention.n_heads
        for made, (x, linear), token, own in zip(
            projected(recorded, checkpoint.model, found), called, (found.query, found.key), (head, group), strict=True
        ):
            expected = linear(x)[0, token].view(-1, attention.d_head)[own].numpy(force=True)
            np.testing.assert_allclose(made.x, x[0, token].numpy(force=True), atol=1e-5)
            np.testing.assert_allclose(made.made, expected, atol=1e-5)
        config = checkpoint.config
        if not (config.qk_norm or config.rotary is not None):
            np.testing.assert_allclose(projected(recorded, checkpoint.model, found)[0].made, found.q, atol=1e-5)


def calls(checkpoint, trace, attention):
    """What W_Q and W_K of an attention are called with in one pass."""
    seen = {}
    hook = attention.register_forward_pre_hook(lambda module, args: seen.update(x=args[0], context=args[1]))
    try:
        replay(checkpoint, trace, ("*.output",))
    finally:
        hook.remove()
    return (seen["x"], attention.q_proj), (seen["context"], attention.k_proj)
