"""softmax(A·Aᵀ) of embeddings is what plain sums give, and needs W_Q and W_K to be what a trained head is."""

import math

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

from tests.test_checkpoints import FOLDER
from tests.transformer.featured import FEATURED, featured
from tests.transformer.one_stack import ALONE
from transformer.analysis.one_weight import plain_weights, projected, read_by, sites, walk, without_parameters
from transformer.checkpoint.load import load
from transformer.runs.running import replay, run

SENTENCE = "小美长得很漂亮而且人还很好"


@pytest.fixture(scope="module", params=("pair", *ALONE, *FEATURED))
def checkpoint(request, tmp_path_factory):
    if request.param in FEATURED:
        return featured(request.param, tmp_path_factory.mktemp("plain"))
    return request.getfixturevalue(request.param)


def by_hand(queries, keys, allowed, factor=1.0):
    scores = torch.tensor(np.asarray(queries, float) @ np.asarray(keys, float).T * factor**2)
    return scores.masked_fill(torch.tensor(~allowed), -math.inf).softmax(-1).numpy()


def test_every_attention_of_every_kind_of_model_is_what_sums_by_hand_give(checkpoint):
    trace, model = run(checkpoint, checkpoint.query("ba lo mi ta", max_new=4)), checkpoint.model
    rows = {
        "encoder": (lambda: model.src_table, trace.src_ids),
        "decoder": (lambda: model.target_table, trace.read_ids),
    }
    for kind in trace.kinds:
        of = model.anatomy.attention(kind)
        q_ids, k_ids, allowed = rows[of.stack][1], rows[of.keys_from][1], trace.mask(kind)
        a, b = (rows[stack][0]()[list(rows[stack][1])] for stack in (of.stack, of.keys_from))
        found = without_parameters(model, kind, q_ids, k_ids, allowed)
        for weights, factor in zip(found, (1.0, math.sqrt(checkpoint.config.d_model)), strict=True):
            np.testing.assert_allclose(weights, by_hand(a, b, allowed, factor), atol=1e-9)
    weights = plain_weights(np.eye(2), np.eye(2), np.array([[True, True], [False, False]]))
    np.testing.assert_allclose(weights, [[math.e / (math.e + 1), 1 / (math.e + 1)], [0, 0]])


def test_the_example_of_the_articles_in_the_shipped_model():
    """By the file's own numbers: a token fits itself best without parameters, and in no trained head."""
    checkpoint = load(FOLDER / "zh-en")
    assert SENTENCE in checkpoint.card.examples
    trace = run(checkpoint, checkpoint.query(SENTENCE))
    rows = load_file(FOLDER / "zh-en" / "model.safetensors")["src_table"][list(trace.src_ids)]
    n, person = len(rows), trace.src_tokens.index("人")
    allowed = np.ones((n, n), bool)
    plain, scaled = without_parameters(checkpoint.model, "encoder", trace.src_ids, trace.src_ids, allowed)
    np.testing.assert_allclose(plain, by_hand(rows, rows, allowed), atol=1e-9)
    assert (plain.argmax(axis=1) == np.arange(n)).all()
    assert [round(float(x), 2) for x in (np.trace(plain) / n, np.trace(scaled) / n, plain[person, person])] == [
        *(0.29, 1.0, 0.22)
    ]
    trained = np.trace(trace.maps("encoder"), axis1=2, axis2=3) / n  # [layer, head]
    assert 0.02 < trained.min() < trained.max() < 0.2
    last = trace.maps("encoder")[-1].mean(axis=0)[person]
    assert trace.src_tokens[int(last.argmax())] == "很好"


def test_queries_and_keys_are_what_the_matrices_give(checkpoint):
    """W · x + b is what torch's own linear map gives of what it was called with."""
    trace, config = run(checkpoint, checkpoint.query("ba lo mi ta", max_new=4)), checkpoint.config
    for kind in trace.kinds:
        attention, called = checkpoint.model.attentions(kind)[1], {}
        needed = (*sites(kind, 1, config=config), *read_by(config, kind, 1))
        recorded = replay(checkpoint, trace, tuple(dict.fromkeys(needed)))
        head = attention.n_heads - 1
        found = walk(recorded, checkpoint.model, kind=kind, layer=1, head=head, query=2)
        with attention.register_forward_pre_hook(lambda module, args, seen=called: seen.update(q=args[0], k=args[1])):
            replay(checkpoint, trace, ("*.output",))
        queries, keys = projected(recorded, checkpoint.model, found)
        group = head * attention.n_kv_heads // attention.n_heads
        for made, x, linear, own in (
            (queries, called["q"][0, found.query], attention.q_proj, head),
            (keys, called["k"][0, found.key], attention.k_proj, group),
        ):
            np.testing.assert_allclose(made.x, x, atol=1e-5)
            np.testing.assert_allclose(made.made, linear(x).view(-1, attention.d_head)[own], atol=1e-5)
        if not (config.qk_norm or config.rotary is not None):
            np.testing.assert_allclose(queries.made, found.q, atol=1e-5)
