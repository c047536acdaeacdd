"""What is asked about one weight has the answer of numpy on what the model's matrices give."""

import math

import numpy as np
import torch

from glassformer.extensions.lessons.library.lesson_files import lessons
from glassformer.extensions.lessons.library.posing import pose
from glassformer.extensions.lessons.library.subjects.weights_questions import one_weight, own_row, row_of_shares
from tests.extensions.lessons.library.posed import approx, told
from transformer.runs.running import replay

WHERE = {"cross": "decoder.{}.cross_attn", "encoder": "encoder.{}.self_attn"}
WEIGHT, SCALING = lessons()["one-weight"].steps, lessons()["scaling"].steps


def products(run, picked):
    """q · k of a head [query, key], as its matrices make them of what the sub-layer reads, in float64."""
    of = WHERE[picked["kind"]].format(picked["layer"] - 1)
    found = replay(run.checkpoint, run.trace, (f"{of}.queries", f"{of}.keys"))
    queries, keys = (found[f"{of}.{what}"][picked["head"] - 1].astype(np.float64) for what in ("queries", "keys"))
    return queries @ keys.T


def row_of(run):
    """The products of the weight's row, and the root that divides them."""
    picked = one_weight(run)
    return products(run, picked)[picked["query"] - 1], math.sqrt(picked["d_head"])


def softmax(scores):
    return np.exp(scores) / np.exp(scores).sum()


def test_the_weight_that_is_picked_is_of_the_hardest_step_and_near_the_middle(run):
    picked, trace = one_weight(run), run.trace
    row, log_probs = picked["query"] - 1, trace.log_probs.astype(np.float64)
    assert row == int((-np.exp(log_probs) * log_probs).sum(axis=-1).argmax())
    away = np.abs(trace.cross[:, :, row].max(axis=-1) - 0.6)
    assert away[picked["layer"] - 1, picked["head"] - 1] == away.min()
    assert picked["read"] == trace.read_tokens[row]


def test_the_best_key_has_the_largest_product(run):
    dots, _ = row_of(run)
    posed = pose(WEIGHT[0], run)
    assert int(posed.label(posed.answer.right).split(" ·")[0]) == int(np.argmax(dots)) + 1
    second = approx(np.sort(dots)[-2], rel=1e-4, abs=1e-3)
    told(posed.answer, posed.answer.right, dot=approx(dots.max(), rel=1e-4), next=second)


def test_a_share_of_the_row(run):
    dots, root = row_of(run)
    posed, weights = pose(WEIGHT[2], run), softmax(dots / root)
    second = int(np.argsort(weights)[-2])
    assert row_of_shares(run)["second_key"] == second + 1
    assert posed.answer.right == approx(weights[second], abs=1e-4)
    assert posed.is_right(f"{weights[second]:.2f}")
    assert not posed.is_right(f"{weights[second] + 0.03:.3f}")
    values = posed.answer.values
    assert values["e"] / values["total"] == approx(values["w"])
    listed = [float(part.rsplit(" ", 1)[1]) for part in str(posed.picked["listed"]).split(" · ")]
    assert sum(listed) == approx(values["total"], abs=0.005 * len(listed))
    assert posed.answer.usual == approx(weights[second] / weights.max(), abs=1e-3)  # without the division


def test_rows_that_fit_their_own_key(run):
    best = products(run, own_row(run)).argmax(axis=-1)
    assert pose(WEIGHT[4], run).answer.right == int((best == np.arange(len(best))).sum())


def test_without_the_division(run):
    dots, root = row_of(run)
    top, scaled = softmax(dots).max(), softmax(dots / root)
    right = "most" if top < 0.9 else "nearly" if top < 0.99 else "all"
    told(pose(SCALING[1], run).answer, right, raw=approx(top, abs=1e-4))
    answer, times = pose(SCALING[2], run).answer, slope(dots, 1.0) / slope(dots, 1 / root)
    bits = approx(-sum(w * math.log2(w) for w in scaled), abs=1e-3)
    told(answer, answer.right, times=approx(times, rel=1e-3, abs=1e-6), bits=bits)
    assert answer.right == ("hardly" if times < 0.1 else "less" if times < 1 else "more")


def slope(dots, scale):
    """The norm of the derivative of a row of weights by its q · k, by autograd in float64."""
    found = torch.autograd.functional.jacobian(lambda x: (x * scale).softmax(-1), torch.tensor(dots))
    return float(found.norm())
