"""Changes in company: with changes of the wiring, for a file of sentences, and for runs that keep no maps."""

import numpy as np
import pytest

from glassformer.extensions.sentences.line_runs import run_lines
from glassformer.extensions.what_if.interventions import (
    CopyMap,
    Insist,
    MeanHead,
    Mute,
    NoFeedForward,
    Pads,
    ScoreScale,
    Temper,
    Uniform,
)
from tests.extensions.what_if.interventions.reference import FORCED, SOURCE, Reference, assert_same
from transformer import run
from transformer.analysis.line_file import SentenceLine
from transformer.runs.dynamic_batching import run_together
from transformer.runs.replay import each_layer

TEXTS = [SOURCE, "mi", "ta lo", "lo mi ba ta"]


class Unscaled(Reference):
    def scores(self, q, k, name, head):
        return q @ k.T if "cross" in name else super().scores(q, k, name, head)


class Muted(Reference):
    def weights(self, scores, mask, name, head):
        weights = super().weights(scores, mask, name, head)
        if name == "decoder.1.cross_attn":
            weights[:, 0] = 0.0
            weights = weights / weights.sum(-1, keepdim=True)
        return weights


class Mean(Reference):
    def head(self, output, mask, name, head):
        output = super().head(output, mask, name, head)
        for n in range(len(output) - 1, 0, -1) if (name, head) == ("decoder.0.self_attn", 1) else ():
            output[n] = output[: n + 1].mean(0)
        return output


class Unfed(Reference):
    def sublayer(self, x, name, function):
        if name == "encoder.1.ffn":
            return super().sublayer(x, name, lambda y: 0 * y)
        return super().sublayer(x, name, function)


def test_heads_rows_and_wiring_act_together(both):
    mute, mean = Mute("cross", 1, key=0), MeanHead("decoder", 0, 1)
    assert_same(both, [ScoreScale("cross", "off"), mute, mean], Unscaled, Muted, Mean)
    assert_same(both, [mean, NoFeedForward("encoder", 1), mute], Mean, Unfed, Muted)


@pytest.mark.parametrize(
    "changes",
    [(Mute("cross", 1, key=0), Temper("decoder", 0, temperature=0)), (MeanHead("decoder", 0, 1), Uniform("cross", 1)),
     (CopyMap("decoder", 1, text=TEXTS[3]), Pads(2))],
    ids=lambda changes: "_".join(map(str, changes)),
)  # fmt: skip
def test_maps_that_were_let_go_are_made_again(both, changes):
    query = both.query(SOURCE, interventions=changes, forced=FORCED)
    kept = run(both, query)
    (bare,) = run_together(both, [query], most_map_bytes=0)
    assert not bare.keeps_maps
    assert np.array_equal(bare.log_probs, kept.log_probs)
    for kind in ("encoder", "decoder", "cross"):
        for layer, maps in enumerate(each_layer(both, bare, kind, lambda maps, _: maps.copy())):
            assert np.array_equal(maps, kept.maps(kind)[layer])


def test_a_file_of_sentences_is_changed_line_by_line(both):
    """Each line has what it has alone; one that has not the place that is named says so, at no cost to others."""
    changes = (Mute("cross", 0, key=3), Insist(1, 9))
    how = both.query("any", interventions=changes, max_new=5)
    lines = [SentenceLine(number, text) for number, text in enumerate(TEXTS, 1)]
    found = {one.line.number: one for one in run_lines(both, lines, how)}
    assert "names token 4 of the source, but this source has only tokens 1 to 2" in str(found[2].problem)
    assert "names token 4 of the source" in str(found[3].problem)
    for number in (1, 4):
        alone = run(both, both.query(TEXTS[number - 1], interventions=changes, max_new=5))
        assert (found[number].output, found[number].log_prob) == (alone.output_text, alone.log_prob)
        assert found[number].problem is None


def test_a_map_of_another_length_is_refused_line_by_line(both):
    how = both.query("any", interventions=(CopyMap("cross", 0, text=TEXTS[3]),), max_new=5)
    found = list(run_lines(both, [SentenceLine(number, text) for number, text in enumerate(TEXTS, 1)], how))
    problems = {one.line.number: str(one.problem or "") for one in found}
    assert (problems[1], problems[4]) == ("", "")
    assert "takes an attention map over 5 tokens, but this source has 2" in problems[2]
