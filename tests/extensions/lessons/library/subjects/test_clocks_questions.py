"""What is asked about tables of positions has the answer of sines, cosines and a rotation in numpy."""

import numpy as np
import pytest

from glassformer.extensions.lessons.library.case import Case
from glassformer.extensions.lessons.library.subjects import positions_questions
from glassformer.extensions.lessons.library.survey import case_of
from tests.extensions.lessons.library.posed import picked
from tests.healthy import healthy
from transformer.errors import QueryError

SENTENCES = {"zh-en": "他昨天看见那只猫。", "en-fr": "The old man wants bread.", "reverse": "house"}
SINUSOIDAL = ("zh-en", "en-fr")


def case(name: str) -> Case:
    return case_of(healthy(name), SENTENCES[name])


def angle_by_hand(dim: int, d_model: int) -> float:
    return 10_000.0 ** -((dim - dim % 2) / d_model)


def table_by_hand(case: Case) -> np.ndarray:
    table = case.checkpoint.model.encoder.embedding.positions.table
    return table.detach().numpy().astype(np.float64)


@pytest.mark.parametrize("name", SINUSOIDAL)
def test_the_pair_with_the_larger_angle_turns_faster(name):
    posed = picked(positions_questions.two_clocks, case(name))
    fast, slow = posed.picked["fast"], posed.picked["slow"]
    d = posed.checkpoint.config.d_model
    assert angle_by_hand(2 * fast, d) > angle_by_hand(2 * slow, d)
    answer = positions_questions.faster_dimension(posed)
    assert answer.right == "fast"
    for word, pair in (("turn_fast", fast), ("turn_slow", slow)):
        assert answer.values[word] == pytest.approx(2 * np.pi / angle_by_hand(2 * pair, d), rel=1e-4)
    assert posed.picked["dims"] == f"{2 * fast + 1}.{2 * slow + 1}", "an address counts from 1"
    for pair, option in zip((fast, slow), answer.options[:2], strict=True):
        assert f"dimensions {2 * pair} and {2 * pair + 1}" in option.label


@pytest.mark.parametrize("name", SINUSOIDAL)
def test_a_turn_is_over_where_the_pair_comes_back(name):
    posed = picked(positions_questions.one_clock, case(name))
    sine, table = posed.picked["sine"], table_by_hand(posed)
    answer = positions_questions.turn_length(posed)
    turn = answer.values["turn"]
    assert turn == pytest.approx(2 * np.pi / angle_by_hand(sine, table.shape[1]), rel=1e-4)
    assert answer.right == "turn"
    assert next(option.label for option in answer.options if option.word == "turn") == str(round(turn))
    away = np.linalg.norm(table[1:60, sine : sine + 2] - table[0, sine : sine + 2], axis=1)
    assert abs(1 + away.argmin() - turn) % turn < 1 or abs(1 + away.argmin() - 2 * turn) < 1
    assert posed.picked["radians"] == pytest.approx(angle_by_hand(sine, table.shape[1]), rel=1e-4)


@pytest.mark.parametrize("name", SENTENCES)
def test_equal_distances_are_alike_in_a_formula_only(name):
    posed = picked(positions_questions.two_pairs, case(name))
    table = table_by_hand(posed)
    p, q, p2, q2 = (posed.picked[key] for key in ("p", "q", "p2", "q2"))
    first, second = table[p] @ table[q], table[p2] @ table[q2]
    answer = positions_questions.same_distance(posed)
    assert q - p == q2 - p2
    assert (answer.values["first"], answer.values["second"]) == pytest.approx((first, second))
    if name in SINUSOIDAL:
        assert answer.right == "same"
        assert first == pytest.approx(second)
    else:
        assert answer.right == ("first" if first > second else "second")
        assert answer.variant == "places"


@pytest.mark.parametrize("name", SENTENCES)
def test_a_shift_is_one_rotation_of_a_formula_only(name):
    posed = picked(positions_questions.shift, case(name))
    k, table = posed.picked["k"], table_by_hand(posed)
    d = table.shape[1]
    turned = np.zeros((d, d))
    for dim in range(0, d, 2):
        angle = k * angle_by_hand(dim, d)
        turned[dim : dim + 2, dim : dim + 2] = [[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]
    missed = np.abs(table[:-k] @ turned.T - table[k:]).max()
    answer = positions_questions.shift_map(posed)
    assert answer.right == ("one" if missed < 1e-3 else "none")
    assert (answer.right == "one") == (name in SINUSOIDAL)
    first = int(posed.picked["dims"].partition(".")[0]) - 1  # what is looked at goes round about once in 64 positions
    assert 48 < 2 * np.pi / angle_by_hand(first, d) < 84


def test_the_longest_word_is_read_and_no_longer_one():
    answer = positions_questions.longest_word(picked(positions_questions.lengths, case("reverse")))
    k = answer.values["k"]
    reverse = healthy("reverse")
    assert len(reverse.run("a" * k).src_ids) == reverse.config.max_len
    with pytest.raises(QueryError):
        reverse.run("a" * (k + 1))
