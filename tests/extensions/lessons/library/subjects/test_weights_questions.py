"""What is asked about one weight has the answer of numpy on what the model's matrices give."""

import math

import numpy as np
import pytest
import torch

from glassformer.extensions.lessons.library.lesson_files import lessons
from glassformer.extensions.lessons.library.posing import pose
from glassformer.extensions.lessons.library.subjects.weights_questions import one_weight, own_row, row_of_shares
from tests.extensions.lessons.library.posed import case
from transformer.runs.running import replay

CASES = [("zh-en", "我们昨天看见那只猫。"), ("en-fr", "She never wants bread."), ("reverse", "lantern")]
WHERE = {"cross": ("decoder", "cross_attn"), "encoder": ("encoder", "self_attn")}


def projected(run, picked):
    """Queries, keys and values of a head as its matrices make them of what the sub-layer reads, in float64."""
    stack, name = WHERE[picked["kind"]]
    layer, head = picked["layer"] - 1, picked["head"] - 1
    found = replay(run.checkpoint, run.trace, (f"{stack}.{layer}.{name}.*", "encoder.output"))
    of = f"{stack}.{layer}.{name}"
    return tuple(found[f"{of}.{what}"][head].astype(np.float64) for what in ("queries", "keys", "values"))


def step_of(lesson, n):
    return lessons()[lesson].steps[n - 1]


def softmax(scores):
    return np.exp(scores) / np.exp(scores).sum()


@pytest.mark.parametrize(("name", "sentence"), CASES)
class TestOnAHead:
    def row(self, name, sentence):
        run = case(name, sentence)
        picked = one_weight(run)
        queries, keys, values = projected(run, picked)
        return run, picked, np.array([queries[picked["query"] - 1] @ key for key in keys]), values

    def test_the_weight_that_is_picked_is_of_the_hardest_step_and_near_the_middle(self, name, sentence):
        run, picked, *_ = self.row(name, sentence)
        trace = run.trace
        row = picked["query"] - 1
        entropies = [-(np.exp(row) * row).sum() for row in trace.log_probs.astype(np.float64)]
        assert row == int(np.argmax(entropies))
        tops = trace.cross[:, :, row].max(axis=-1)
        nearest = np.abs(tops - 0.6).min()
        assert abs(tops[picked["layer"] - 1, picked["head"] - 1] - 0.6) == nearest
        assert picked["read"] == trace.read_tokens[row]

    def test_the_best_key_has_the_largest_product(self, name, sentence):
        run, _, dots, _ = self.row(name, sentence)
        posed = pose(step_of("one-weight", 1), run)
        n = int(posed.label(posed.answer.right).split(" ·")[0])
        assert n == int(np.argmax(dots)) + 1
        assert posed.answer.values["dot"] == pytest.approx(dots.max(), rel=1e-4)
        assert posed.answer.values["next"] == pytest.approx(np.sort(dots)[-2], rel=1e-4, abs=1e-3)

    def test_a_share_of_the_row(self, name, sentence):
        run, picked, dots, _ = self.row(name, sentence)
        posed = pose(step_of("one-weight", 3), run)
        weights = softmax(dots / math.sqrt(picked["d_head"]))
        second = int(np.argsort(weights)[-2])
        assert row_of_shares(run)["second_key"] == second + 1
        assert posed.answer.right == pytest.approx(weights[second], abs=1e-4)
        assert posed.is_right(f"{weights[second]:.2f}")
        assert not posed.is_right(f"{weights[second] + 0.03:.3f}")
        told = posed.answer.values
        assert told["e"] / told["total"] == pytest.approx(told["w"])
        listed = [float(part.rsplit(" ", 1)[1]) for part in str(posed.picked["listed"]).split(" · ")]
        assert sum(listed) == pytest.approx(told["total"], abs=0.005 * len(listed))
        undivided = weights[second] / weights.max()
        assert posed.answer.usual == pytest.approx(undivided, abs=1e-3)

    def test_rows_that_fit_their_own_key(self, name, sentence):
        run = case(name, sentence)
        picked = own_row(run)
        queries, keys, _ = projected(run, picked)
        own = sum(int(np.argmax([q @ k for k in keys])) == n for n, q in enumerate(queries))
        assert pose(step_of("one-weight", 5), run).answer.right == own

    def test_without_the_division(self, name, sentence):
        run, picked, dots, _ = self.row(name, sentence)
        raw, scaled = softmax(dots), softmax(dots / math.sqrt(picked["d_head"]))
        answer = pose(step_of("scaling", 2), run).answer
        top = raw.max()
        assert answer.right == ("most" if top < 0.9 else "nearly" if top < 0.99 else "all")
        assert answer.values["raw"] == pytest.approx(top, abs=1e-4)
        told = pose(step_of("scaling", 3), run).answer.values
        undivided, divided = (by_autograd(dots, scale) for scale in (1.0, 1 / math.sqrt(picked["d_head"])))
        assert told["times"] == pytest.approx(undivided / divided, rel=1e-3, abs=1e-6)
        variant = pose(step_of("scaling", 3), run).answer.variant
        times = undivided / divided
        assert variant == ("hardly" if times < 0.1 else "less" if times < 1 else "more")
        assert told["bits"] == pytest.approx(-sum(w * math.log2(w) for w in scaled), abs=1e-3)


def by_autograd(dots, scale):
    """The norm of the derivative of a row of weights by its q · k, by autograd in float64."""
    found = torch.autograd.functional.jacobian(
        lambda x: (x * scale).softmax(-1), torch.tensor(dots, dtype=torch.float64)
    )
    return float(found.norm())
