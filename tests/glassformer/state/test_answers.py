"""Answers about a model of another program stand in an address, and are read again with their types."""

import pytest

from glassformer.state.link import MOST_ANSWERS, read_answers, with_answer, without_answer, write_answers


def test_an_address_says_them_as_a_person_would():
    answers = (("n_heads", 4), ("norm", "pre"), ("scale_embedding", True), ("bos_id", None), ("norm_eps", 1e-06))
    assert write_answers(answers) == "n_heads=4,norm=pre,scale_embedding=true,bos_id=null,norm_eps=1e-06"
    found = read_answers(write_answers(answers))
    assert found == answers
    assert [type(value) for _, value in found] == [int, str, bool, type(None), float]


@pytest.mark.parametrize(
    "value", ["a,b=c", "4", "true", "null", '"quoted"', "größer/als 1%.model", "1e400", "NaN", "[1]", 0, False, -1.5]
)
def test_a_value_keeps_its_type_whatever_it_looks_like(value):
    ((_, found),) = read_answers(write_answers((("pieces", value),)))
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    "text",
    [
        *("n_heads", "n_heads=", "=4", "N=4", "a=1,a=2", "a=1,,b=2", "__class__=1"),
        *(f"a={'x' * 301}", "a" * 41 + "=1", ",".join(f"a{i}=1" for i in range(MOST_ANSWERS + 1))),
    ],
)
def test_what_is_no_answers_is_refused_as_a_whole(text):
    assert read_answers(text) is None


def test_one_answer_is_changed_and_taken_back():
    answers = with_answer((("a", 1), ("b", 2)), "a", 3)
    assert answers == (("a", 3), ("b", 2))
    assert without_answer(answers, "b") == (("a", 3),)
    assert read_answers("") == ()
