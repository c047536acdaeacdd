"""What distance adds to scores is what the model adds, and how much of a score it is."""

import numpy as np
import pytest
import torch

from tests.transformer.tiny import DECODER, random_ids, tiny_model
from transformer.analysis.rotations import distance_bias, spreads
from transformer.errors import QueryError
from transformer.model.taps import Recorder, tap_of

RELATIVE = {"positions": "relative", "relative_buckets": 8, "relative_distance": 12}


@pytest.mark.parametrize(
    ("stack", "features"),
    [
        ("decoder", {**DECODER, "positions": "alibi"}),
        ("encoder", {"positions": "alibi"}),
        ("decoder", RELATIVE),
        ("encoder", RELATIVE),
    ],
)
def test_the_curve_is_what_the_model_adds_to_its_scores(stack, features):
    model, n = tiny_model(**features), 15
    ids = random_ids(1, n)
    recorder = Recorder(["*.self_attn.bias", "*.self_attn.scores", "*.self_attn.queries", "*.self_attn.keys"])
    if stack == "encoder":
        model.encode(ids, tap=tap_of(recorder))
    else:
        memory = None if not model.anatomy.reads else model.encode(ids)
        model.decode(ids, memory, None if memory is None else model.source_mask(ids), tap=tap_of(recorder))
    found = distance_bias(model, stack, most=n - 1)
    place = {int(distance): column for column, distance in enumerate(found.distances)}
    for layer in range(2):
        site = f"{stack}.{layer}.self_attn"
        added = recorder.values[f"{site}.bias"][0].numpy()  # [head, query, key]
        q, k = (recorder.values[f"{site}.{name}"][0] for name in ("queries", "keys"))
        alone = (q @ k.transpose(-1, -2) / q.size(-1) ** 0.5).numpy()
        for query in range(n):
            for key in range(query + 1 if stack == "decoder" else n):
                np.testing.assert_allclose(found.bias[:, place[key - query]], added[:, query, key], atol=1e-6)
        np.testing.assert_allclose(recorder.values[f"{site}.scores"][0].numpy() - alone, added, atol=1e-6)


def test_alibi_falls_in_straight_lines_and_buckets_in_steps():
    alibi = distance_bias(tiny_model(**DECODER, positions="alibi"), "decoder", most=9)
    np.testing.assert_allclose(alibi.bias, alibi.slopes[:, None] * alibi.distances, atol=1e-6)
    assert alibi.edges() == ()
    steps = distance_bias(tiny_model(**RELATIVE), "encoder", most=9)
    assert steps.distances.tolist() == list(range(-9, 10))
    changes = steps.distances[:-1][np.abs(np.diff(steps.bias, axis=1)).max(axis=0) > 1e-9] + 0.5
    assert tuple(changes) == steps.edges()


def test_what_adds_nothing_is_refused():
    with pytest.raises(ValueError, match="add nothing to scores"):
        distance_bias(tiny_model(), "decoder", most=3)
    with pytest.raises(QueryError, match="no encoder"):
        distance_bias(tiny_model(**DECODER, positions="alibi"), "encoder", most=3)


def test_spreads_tell_content_from_distance():
    n, bias = 6, -np.abs(np.arange(6)[None, :] - np.arange(6)[:, None]).astype(np.float64)[None, None]
    causal = np.tri(n, dtype=bool)
    only_bias = spreads(np.broadcast_to(bias, (2, 3, n, n)).copy(), bias, causal)
    np.testing.assert_allclose(only_bias.content, 0, atol=1e-12)
    by_hand = np.mean([np.std(bias[0, 0, row, : row + 1]) for row in range(1, n)])
    np.testing.assert_allclose(only_bias.bias, by_hand)
    content = np.random.default_rng(0).normal(size=(2, 3, n, n))
    both = spreads(content + bias, bias, np.stack([causal, np.ones((n, n), bool)]))
    np.testing.assert_allclose(both.content[1, 2], np.mean([np.std(content[1, 2, row]) for row in range(n)]))
    assert spreads(content[..., :1, :1], bias[..., :1, :1], causal[:1, :1]).content.max() == 0


def test_the_spread_is_of_the_scores_of_the_model():
    model = tiny_model(**DECODER, positions="alibi", dtype=torch.float32)
    recorder = Recorder(["*.scores", "*.bias"])
    model.decode(random_ids(1, 5), tap=tap_of(recorder))
    scores, bias = (
        np.stack([recorder.values[f"decoder.{layer}.self_attn.{name}"][0].numpy() for layer in range(3)])
        for name in ("scores", "bias")
    )
    found = spreads(scores, bias, np.tri(5, dtype=bool))
    assert found.content.shape == found.bias.shape == (3, 3)
    slopes = distance_bias(model, "decoder", most=4).slopes
    np.testing.assert_allclose(found.bias / found.bias[:, :1], np.tile(slopes / slopes[0], (3, 1)), rtol=1e-5)
