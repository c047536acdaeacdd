"""A learner who computes from the numbers of a formula finds the result that is written."""

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import transformer
from glassformer.attention import one_weight_text
from glassformer.attention.one_weight_text import number, result, shown_keys, softmax_table, tex
from tests.transformer.featured import featured
from transformer.analysis.one_weight import sites, walk
from transformer.i18n.sentence import written as as_written
from transformer.runs.running import replay, run

NUMBER = r"-?\d[\d.]*(?:\\cdot 10\^\{-?\d+\})?"
FACTOR = rf"(\({NUMBER}\)|{NUMBER})"


@pytest.fixture(scope="module")
def every_walk(checkpoint_folder):
    """All weights of all kinds, layers and heads of a tiny run."""
    checkpoint = transformer.load(checkpoint_folder)
    trace = run(checkpoint, checkpoint.query("ba lo mi ta su mi ke ta lo ba", max_new=6))
    found = []
    for kind in ("encoder", "decoder", "cross"):
        n_layers, n_heads, n_queries, n_keys = trace.maps(kind).shape
        for layer in range(n_layers):
            recorded = replay(checkpoint, trace, sites(kind, layer))
            found += [
                walk(recorded, checkpoint.model, kind=kind, layer=layer, head=head, query=query, key=key)
                for head in range(n_heads)
                for query in range(head % 2, n_queries, 3)
                for key in range(layer, n_keys, 2)
            ]
    return found


def plain(text):
    """A number of a formula as Python writes it."""
    return text.strip("()").replace(r"\cdot 10^{", "e").replace("}", "")


def value(text):
    return float(plain(text))


def same(written, by_hand):
    """Whether a result rounds to what is written, with the digits that are written."""
    digits = len(re.sub(r"e.*|\D", "", written).lstrip("0")) or 1
    if float(written) == 0:
        decimals = len(written.partition(".")[2])
        return abs(by_hand) <= 0.5000001 * 10**-decimals
    step = 10 ** (math.floor(math.log10(abs(float(written)))) - digits + 1)
    return abs(by_hand - float(written)) <= 0.5000001 * step


def sum_of(formula):
    """Compute a formula of `products` from its text alone: what it says, and what it ends in."""
    body = formula.removeprefix(r"\begin{aligned}").removesuffix(r"\end{aligned}")
    lines = [line.split("&", 1)[1].lstrip("=+ ") for line in body.split(r"\\ ")]
    total = 0.0
    for line in lines[:-1]:
        line, _, remark = line.partition(r"\ \text")
        factors = None if remark else re.fullmatch(rf"{FACTOR}\\cdot {FACTOR}", line)
        total += value(factors[1]) * value(factors[2]) if factors else value(line)
    return total, plain(lines[-1])


@given(st.floats(-1e6, 1e6).filter(lambda x: x == 0 or abs(x) > 1e-12), st.floats(-1e-3, 1e-3))
def test_a_result_is_what_both_round_to(exact, error):
    by_hand = exact * (1 + error)
    written = result(exact, by_hand)
    assert same(written, exact)
    assert same(written, by_hand)
    assert not written.startswith("-0") or float(written) < 0


def test_digits_are_taken_away_until_both_agree():
    rounded = {(1.23456, 1.23456): "1.235", (1.23456, 1.23444): "1.23", (33.9954, 33.9951): "34.00", (1.0, 1.0): "1"}
    rounded |= {(100.4, 99.8): "1.0e+02", (3e-10, -2e-9): "0.00000000", (-math.inf, 0.0): "-inf"}
    assert {both: result(*both) for both in rounded} == rounded
    assert (number(-0.0), number(1 / 3), number(2.5)) == ("0", "0.333333", "2.5")
    assert (tex("1.5e-07"), tex("-inf"), tex("2")) == (r"1.5\cdot 10^{-7}", r"-\infty", "2")


def test_sums_scores_and_their_mask_can_be_done_again(every_walk):
    for one in every_walk:
        formulas = {
            one_weight_text.dot(one): one.q @ one.keys[one.key],
            one_weight_text.head_output(one)[1]: one.head_out[one_weight_text.head_output(one)[0]],
            one_weight_text.share(one)[1]: (one.w_o @ one.head_out)[one_weight_text.share(one)[0]],
        }
        for formula, exact in formulas.items():
            by_hand, written = sum_of(formula)
            assert same(written, by_hand), formula
            assert same(written, exact), formula
        found = re.fullmatch(rf".*\\frac\{{({NUMBER})\}}\{{({NUMBER})\}} = ({NUMBER})", one_weight_text.score(one))
        assert same(plain(found[3]), value(found[1]) / value(found[2]))
        assert same(plain(found[3]), one.scores[one.key])
        assert (r"-\infty" in one_weight_text.masked(one)) == (not one.allowed[one.key])


def test_the_table_of_the_softmax_can_be_done_again(every_walk):
    for one in every_walk:
        rows, total = softmax_table(one)
        assert same(total, sum(float(row.exp) for row in rows))
        assert sum(row.n_keys for row in rows) == len(one.weights)
        assert [row.key for row in rows if row.key is not None] == shown_keys(one)
        assert one.key in shown_keys(one)
        for row in rows:
            assert same(row.weight, float(row.exp) / float(total))
            if row.key is not None:
                assert same(row.exp, math.exp(float(row.score) - float(number(one.peak))))
                assert same(row.weight, one.weights[row.key])
                assert (row.score == "-inf") == (not one.allowed[row.key])
        chosen = next(row for row in rows if row.key == one.key)
        formula = one_weight_text.softmax(one)
        assert formula.removesuffix(r"\end{aligned}").endswith(f"= {tex(chosen.weight)}")
        if one.allowed[one.key]:
            high, low = re.search(rf"d &= ({NUMBER}) - {FACTOR}\\\\", formula).groups()
            assert same(chosen.exp, math.exp(value(high) - value(low)))
    one = max(every_walk, key=lambda w: len(w.weights))  # a long row is listed in short
    rows, _ = softmax_table(one)
    assert len(one.weights) > len(rows) - 1 == one_weight_text.MOST_KEYS
    listed = [row.key for row in rows[:-1]]
    others = np.delete(one.weights, listed)
    assert others.max() <= sorted(one.weights[[key for key in listed if key != one.key]])[0]
    assert same(rows[-1].exp, np.delete(one.exps, listed).sum())


def test_the_length_of_a_share_can_be_done_again_and_differences_are_said(every_walk):
    for one in every_walk[::7]:
        top, bottom, written = re.fullmatch(
            r".*\\frac\{([^{}]*)\}\{([^{}]*)\} = (.*)", one_weight_text.norm_share(one)
        ).groups()
        assert same(written, float(top) / sum(float(part) for part in bottom.split(" + ")))
        norms = [np.linalg.norm(share) for share in one.shares]
        assert same(written, norms[one.head] / sum(norms))
    said = one_weight_text.differences(every_walk[0])
    assert all(as_written(f"{amount:.1e}") in said for amount in vars(every_walk[0].differences).values())


def lines_of(formula):
    """Name and right-hand side of each line; a line without a name goes on with the one above."""
    body = formula.removeprefix(r"\begin{aligned}").removesuffix(r"\end{aligned}")
    return [line.split("&= ", 1)[1] for line in body.split(r"\\ ")]


@pytest.mark.parametrize(("name", "kind"), [("relative", "encoder"), ("relative", "cross"), ("windows", "decoder"),
                                            ("alibi", "decoder")])  # fmt: skip
def test_a_score_that_is_made_otherwise_is_written_so_that_it_can_be_done_again(tmp_path, name, kind):
    checkpoint = featured(name, tmp_path)
    trace = run(checkpoint, checkpoint.query("ba lo mi ta", max_new=6))
    for layer, maps in enumerate(trace.maps(kind)):
        recorded = replay(checkpoint, trace, sites(kind, layer, config=checkpoint.config))
        for query in range(maps.shape[1]):
            found = walk(recorded, checkpoint.model, kind=kind, layer=layer, head=1, query=query)
            biased = name in ("relative", "alibi") and kind != "cross"
            product, total, *capped = lines_of(one_weight_text.score_otherwise(found, with_bias=biased))
            dot, scale, *bias = re.findall(FACTOR, product)
            by_hand = value(dot) * value(scale) + sum(map(value, bias))
            assert len(bias) == biased
            assert same(plain(total), by_hand)
            assert bool(capped) == (name == "windows")
            if capped:
                cap, inside, again = re.fullmatch(
                    rf"({NUMBER})\\cdot\\tanh\\frac\{{({NUMBER})\}}\{{({NUMBER})\}}", capped[0]
                ).groups()
                assert cap == again
                assert same(plain(capped[1]), value(cap) * math.tanh(value(inside) / value(cap)))
                assert same(plain(capped[1]), found.scores[found.key])
