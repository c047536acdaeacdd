"""The flow view gets open weights alone, and its heads can be told apart by anybody and on either ground."""

import base64
import json
from dataclasses import replace

import numpy as np
import pytest

from glassformer.charts.theme import HEAD_COLOURS
from glassformer.components.flow_component import last_choice
from glassformer.components.flow_data import Flow, Pin, encoded
from glassformer.components.packing import COARSE_LEVELS, FINE_LEVELS
from tests.glassformer.unpacking import flow_weights

PAPER, NIGHT = "#FBFAF7", "#141B23"
# Linear RGB as people without red, green and blue cones see it (Machado, Oliveira and Fernandes 2009, severity 1).
VISIONS = {
    "full": np.eye(3),
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
# Ottosson's Oklab: distances in it are about as large as they look.
TO_LMS = [[0.41222, 0.53633, 0.05145], [0.21190, 0.68070, 0.10740], [0.08830, 0.28172, 0.62998]]
TO_LAB = [[0.21045, 0.79362, -0.00407], [1.97800, -2.42859, 0.45059], [0.02590, 0.78277, -0.80868]]


def flow(**changes):
    random = np.random.default_rng(0)
    scores = np.exp(random.standard_normal((3, 4, 4)))
    allowed = np.tri(4, dtype=bool)
    weights = scores * allowed / (scores * allowed).sum(axis=-1, keepdims=True)
    names, sides = (tuple("abcd"),) * 2, ("Q", "K", "target", "target")
    return replace(Flow("s", "Kind", "layer 1", *names, *sides, weights, allowed, (0, 1, 2, 3)), **changes)


def test_weights_arrive_and_closed_cells_do_not():
    made = flow()
    sent = encoded(np.where(made.allowed, made.weights, 0.7), made.allowed)
    assert sent["weights"]["levels"] == FINE_LEVELS
    assert len(base64.b64decode(sent["weights"]["steps"])) == 3 * 10 * 2  # heads, open cells, bytes
    received = flow_weights(sent, 4, 4)
    assert np.isnan(received[:, ~made.allowed]).all()
    np.testing.assert_allclose(received[:, made.allowed], made.weights[:, made.allowed], atol=0.5 / FINE_LEVELS)


def test_many_cells_are_sent_coarsely_without_a_mask_and_those_that_round_to_nothing_take_a_bit():
    every = np.ones((512, 512), dtype=bool)
    few = np.full((2, 512, 512), 0.001, dtype=np.float32)
    few[:, ::2, 7] = 0.5
    for weights in (np.random.default_rng(1).random((2, 512, 512)).astype(np.float32), few):
        sent = encoded(weights, every)
        assert (sent["weights"]["levels"], sent["open"]) == (COARSE_LEVELS, None)
        np.testing.assert_allclose(flow_weights(sent, 512, 512), weights, atol=0.5 / COARSE_LEVELS + 1e-6)
    assert len(json.dumps(sent)) < few.size / 8 * 1.4


@pytest.fixture
def read(monkeypatch):
    """What Python makes of a report of the browser; four heads, three queries, two keys."""

    def choice(report):
        monkeypatch.setattr("streamlit.session_state", {"f": {"pin": report}})
        return last_choice("f", n_heads=4, n_queries=3, n_keys=2)

    return choice


def test_pins_heads_and_following_are_read_and_what_is_none_is_none(read):
    assert read({"side": "query", "index": 2, "stamp": "x 1"}).pin == Pin(side="query", index=2)
    assert read({"side": "key", "index": 0}).pin == Pin(side="key", index=0)
    wrong = [("query", None), ("query", 3), ("key", 2), ("key", -1), ("key", True), ("key", 0.5), ("head", 0)]
    for none in (None, [], {"side": "query"}, *({"side": side, "index": index} for side, index in wrong)):
        assert read(none).pin is None
    reports = (
        ({"shown": [2, 0], "following": True}, ((0, 2), True)),
        ({"shown": [0, 1, 2, 3]}, ((), False)),
        ({"shown": [1, 9, -1, "2", None], "following": 1}, ((1,), False)),
        *((none, ((), False)) for none in ({"shown": [], "following": False}, {"shown": "0 1"}, None)),
    )
    for report, said in reports:
        assert ((choice := read(report)).heads, choice.following) == said


def linear(colour):
    channels = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def seen(colour, vision):
    return np.array(TO_LAB) @ np.cbrt(np.array(TO_LMS) @ np.clip(np.array(vision) @ linear(colour), 0, 1))


def luminance(colour):
    return linear(colour) @ [0.2126, 0.7152, 0.0722]


@pytest.mark.parametrize(("theme", "ground"), [(0, PAPER), (1, NIGHT)])
def test_heads_are_told_apart_by_colour_by_anybody_and_stand_out_from_the_ground(theme, ground):
    for vision in VISIONS.values():
        colours = [seen(pair[theme], vision) for pair in HEAD_COLOURS[:8]]
        gaps = [np.linalg.norm(a - b) for i, a in enumerate(colours) for b in colours[:i]]
        assert min(gaps) > 0.05  # 0.02 is about what can just be noticed
    for pair in HEAD_COLOURS:
        low, high = sorted((luminance(pair[theme]), luminance(ground)))
        assert (high + 0.05) / (low + 0.05) >= 3
