"""Each of many lines on one model has the result of that line alone; they are listed by what they are, worst first."""

import csv
import io
import math
import random
from pathlib import Path

import numpy as np
import pytest

from glassformer.extensions.sentences.line_runs import (
    LineResult,
    as_csv,
    check_can_run,
    columns,
    repeated_share,
    run_lines,
    summary,
)
from glassformer.extensions.sentences.line_table import all_orders, choices_of, listed
from tests.extensions.tokenizers.filling import filling
from tests.transformer.one_stack import alone
from transformer import Beam, Greedy, Query, Sampling, load
from transformer.analysis.chrf import chrf_counts
from transformer.analysis.hidden_pieces import hide, mask_id
from transformer.errors import QueryError
from transformer.i18n import say
from transformer.runs.sentence_files import SentenceLine, read_text

REVERSE = Path(__file__).parents[3] / "checkpoints" / "reverse"
TEXT = "ba lo\tthe fox\nmi ta ba ke\nlo\tthe moon\n\nta ta ba mi su lo\tx\nba lo mi\na\tb\tc\nke\nlo su"


def how(checkpoint, decoding=Greedy()):  # noqa: B008
    return Query(checkpoint=checkpoint.content_hash, source="", decoding=decoding, max_new=10)


@pytest.fixture(scope="module", params=["encoder-decoder", "decoder"])
def checkpoint(request, tmp_path_factory):
    if request.param == "decoder":
        return alone("decoder", tmp_path_factory.mktemp("alone"))
    return load(request.getfixturevalue("checkpoint_folder"))


@pytest.mark.parametrize("decoding", [Greedy(), Sampling(seed=3, temperature=1.3), Beam(size=3)])
def test_a_line_is_what_its_run_alone_is(checkpoint, decoding):
    lines = read_text(TEXT, label="x")
    asked = random.Random(1).sample(lines, len(lines))
    found = {one.line.number: one for one in run_lines(checkpoint, asked, how(checkpoint, decoding), rows=3)}
    assert sorted(found) == [line.number for line in lines]
    for line in lines:
        one = found[line.number]
        if line.problem is not None:
            assert (one.problem, one.log_prob, one.output) == (line.problem, None, "")
            continue
        trace = checkpoint.run(checkpoint.query(line.source, decoding=decoding, max_new=10))
        assert (one.output, one.log_prob, one.n_counted) == (trace.output_text, trace.log_prob, trace.n_steps)
        assert one.entropy == pytest.approx(trace.entropies().mean())
        assert one.ended == (trace.stop_reason == "end of sentence")
        assert one.n_output == trace.n_steps - one.ended
        assert one.length_ratio == one.n_output / one.n_source
        assert one.score == (trace.hypotheses[0].score if trace.hypotheses else None)
        assert (one.chrf is None) == (line.reference is None)


def test_a_line_that_cannot_be_run_costs_the_others_nothing(checkpoint):
    lines = read_text("ba lo\n" + "ba lo " * 30 + "\nmi", label="x")
    good, long, also = sorted(run_lines(checkpoint, lines, how(checkpoint)), key=lambda one: one.line.number)
    assert "reads at most" in str(long.problem)
    assert good.problem is None
    assert also.problem is None
    whole = summary([good, long, also])
    assert (whole.n, whole.n_failed, whole.chrf) == (3, 1, None)
    assert whole.log_prob == (good.log_prob + also.log_prob) / (good.n_counted + also.n_counted)


def test_an_encoder_with_a_head_scores_each_text_piece_by_piece(tmp_path):
    masked = filling(tmp_path)
    mask = mask_id(masked.src_tokenizer)
    lines = read_text("the quick fox\nfox", label="x")
    for one in run_lines(masked, lines, how(masked)):
        ids = masked.run(masked.query(one.line.source)).src_ids
        places = range(len(masked.config.source_start), len(ids) - len(masked.config.source_end))
        expected = hide(masked.model, ids, places, mask, whole=True)
        assert one.log_prob == pytest.approx(-expected.losses.sum(), abs=1e-5)
        assert one.n_counted == one.n_source == len(places)
        bits = [-(np.exp(row) * row).sum() / math.log(2) for row in expected.log_probs]
        assert one.entropy == pytest.approx(np.mean(bits), abs=1e-5)
        assert (one.output, one.ended, one.length_ratio) == ("", None, None)
    with pytest.raises(QueryError, match=r"none of the mask tokens \[MASK\], <mask>"):
        check_can_run(alone("encoder", tmp_path / "head", mlm_head=True))


def test_what_repeats_itself_is_counted_by_pairs():
    found = [repeated_share(ids) for ids in ([1, 2, 3, 4], [1, 2, 1, 2, 1], [5, 5, 5, 5, 5], [1], [])]
    assert found == pytest.approx([0, 2 / 4, 3 / 4, 0, 0])


def test_the_table_has_no_formulas_and_no_empty_columns():
    checkpoint = load(REVERSE)
    results = list(run_lines(checkpoint, read_text("abc\tcba\n=ab\tba=", label="x"), how(checkpoint)))
    rows = list(csv.DictReader(io.StringIO(as_csv(results))))
    assert [row["line"] for row in rows] == ["1", "2"]
    assert (rows[0]["output"], float(rows[0]["chrf"]), rows[0]["ended"]) == ("cba", 100.0, "True")
    assert rows[1]["source"] == "'=ab"
    assert float(rows[0]["log_prob"]) == next(one.log_prob for one in results if one.line.number == 1)
    assert not {"problem", "score"} & (set(rows[0]) | set(columns(results)))
    assert summary(results).ended == 1.0


def result(number, source, output="", reference=None, **numbers):
    counts = None if reference is None else chrf_counts(output, reference)
    return LineResult(line=SentenceLine(number, source, reference), output=output, counts=counts, **numbers)


LINES = [
    result(1, "Ba lo", "the fox", "the fox", log_prob=-4.0, n_counted=2, n_source=2, n_output=2, ended=True),
    result(2, "mi", "a lake", "moon", log_prob=-9.0, n_counted=3, n_source=1, n_output=2, ended=False, n_unknown=1),
    result(3, "ta", "a a a", log_prob=-1.0, n_counted=3, n_source=1, n_output=3, repeated=0.5, ended=True),
    result(4, "ke", problem=say("Too long.")),
]


def numbers(which="all", order="file", holding=""):
    return [one.line.number for one in listed(LINES, which, order, holding)]


def test_the_worst_stand_first_and_lines_are_chosen_by_what_they_are_and_hold():
    orders = {"file": [1, 2, 3, 4], "ratio": [3, 2, 1, 4], "repeated": [3, 1, 2, 4]}
    orders |= {key: [2, 1, 3, 4] for key in ("chrf", "log_prob", "unknown")}
    assert {order: numbers(order=order) for order in orders} == orders
    assert [numbers(which) for which in ("unknown", "cut", "problem")] == [[2], [2], [4]]
    assert [numbers(holding=text) for text in ("LAKE", "moon", "ba")] == [[2], [2], [1]]
    assert numbers("problem", holding="fox") == []


def test_only_what_lists_something_is_offered():
    assert list(choices_of(LINES[:1], counted=False)) == ["all"]
    assert choices_of(LINES, counted=True)["unknown"] == "With unknown tokens · 1"
    assert "entropy" not in all_orders(LINES)
    assert list(all_orders(LINES[3:])) == ["file", "unknown"]
