"""A posed step has one order of choices everywhere, a number counts as typed, and the short path has its words."""

from dataclasses import replace

import numpy as np
import pytest

from glassformer.extensions.classroom import step_links
from glassformer.extensions.lessons.library.lesson import Answer, Option, QuestionNotApplicable, Text
from glassformer.extensions.lessons.library.lesson_files import LANGUAGES, lessons
from glassformer.extensions.lessons.library.posing import number_in, pose, short_path, words_on
from tests.extensions.lessons.library.posed import LONGEST, NAMES, ONE_PIECE, UNKNOWN, case, sentences
from transformer.i18n import in_languages

PLACES = [1, 0, 0, 2, 0, 2, 1, 2, 2, 0]


def one_piece(n):
    return lessons()["one-piece"].steps[n - 1]


@pytest.fixture
def answering(monkeypatch):
    """A step whose oracle gives a certain answer."""

    def made(answer, *, n=4, **changes):
        step = one_piece(n)
        monkeypatch.setattr(
            "glassformer.extensions.lessons.library.posing.oracles", lambda: {"branch": lambda case: answer}
        )
        return replace(step, pick="", link={}, then={}, ask=replace(step.ask, **changes), reveal=step.reveal)

    return made


def test_choices_stand_in_one_order_in_every_process_and_the_right_one_has_no_place_of_its_own():
    """A class sees one order, whichever worker serves it: each process of a test hashes texts in its own way."""
    places = []
    for word in ("lantern", "abc", "garden", "qrst", "moon", "stream", "ink", "paper", "wind", "zoo"):
        posed = pose(one_piece(6), case("reverse", word))
        places.append([option.word for option in posed.options].index(str(posed.answer.right)))
    assert places == PLACES


ALIKE, ONE = {"en": "Again", "zh": "再来"}, Text({"en": "One.", "zh": "一。"})


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        (("a", "a"), "look the same: a · a"),
        (("a", " a "), "look the same"),
        (("Again", in_languages(ALIKE)), "look the same"),
        (("再来", in_languages(ALIKE)), "look the same"),
        (("a",), "only one choice"),
    ],
)
def test_choices_that_look_alike_are_not_posed(answering, labels, reason):
    options = tuple(Option(f"word-{n}", label) for n, label in enumerate(labels))
    step = answering(Answer(right="word-0", options=options, variant="ended"))
    run = replace(case("reverse", "lantern"), picked={})
    with pytest.raises(QuestionNotApplicable, match=reason):
        pose(replace(step, reveal={"ended": ONE}), run)


def test_whoever_is_misled_hears_why_and_nobody_else_does(answering):
    misled = {"usual": Text({"en": "Usual.", "zh": "常见。"}), "same": Text({"en": "Same.", "zh": "不变。"})}
    run = replace(case("reverse", "lantern"), picked={})

    def posed(answer, **changes):
        step = answering(answer, question=ONE, misled=misled, **changes)
        return pose(replace(step, reveal={"always": ONE}), run)

    number = posed(Answer(right=0.25, usual=0.5), form="number", within=0.02)
    assert [str(number.misled(given)) for given in ("0.5", "3")] == ["Usual.", "Usual."]
    assert number.misled("0.26") is None
    for usual in (0.26, None):  # which would be right, or is not known
        assert posed(Answer(right=0.25, usual=usual), form="number", within=0.02).misled("3") is None
    words = ("same", "changed", "ended")
    choice = posed(Answer(right="ended", options=tuple(map(Option, words))))
    assert list(map(choice.misled, words)) == ["Same.", None, None]


@pytest.mark.parametrize(
    ("text", "number"),
    [("0.25", 0.25), ("0,25", 0.25), ("25 %", 0.25), ("25％", 0.25), ("1,234", 1234), ("1,234.5", 1234.5),
     ("−3", -3), ("-3", -3), ("+3", 3), ("０．５", 0.5), (" 7 ", 7), (".5", 0.5), ("5.", 5), ("1e3", 1000),
     ("1 000", 1000), ("12，5", 12.5), ("0,123", 0.123), ("100%", 1.0),
     *((text, None) for text in ("", " ", "%", "a", "1_000", "0x10", "nan", "inf", "1e999", "1.2.3", "--1", "1e", "½%1",
                                 "٣x"))],
)  # fmt: skip
def test_numbers_as_people_type_them_and_what_is_none(text, number):
    assert number_in(text) == (number if number is None else pytest.approx(number))


@pytest.mark.parametrize("name", NAMES)
def test_every_word_is_said_on_any_sentence(name):
    for sentence in (sentences(name)[0], ONE_PIECE[name], UNKNOWN[name], LONGEST[name]):
        values = words_on(case(name, sentence))
        for term, says in short_path().words:
            for language in LANGUAGES:
                assert term.said({}).in_language(language).strip()
                assert "{" not in says.said(values).in_language(language)


def test_the_numbers_are_those_of_the_first_row():
    run = case("en-fr", "The dog bit the man.")
    values, weights = words_on(run), run.trace.encoder_self[0, 0, 0]
    assert values["weight"] == pytest.approx(weights.max(), abs=1e-6)
    assert values["weight_other"] == pytest.approx(weights.min(), abs=1e-6)
    assert values["best"] == run.trace.src_tokens[int(weights.argmax())]
    assert values["score"] - values["score_other"] == pytest.approx(np.log(weights.max() / weights.min()), abs=1e-4)
    assert values["root"] == pytest.approx(8)


def test_the_path_goes_through_lessons_in_their_order_and_its_summary_names_each():
    path = step_links.places(lessons())
    assert [place.name for place in path] == [
        "one-piece.1", "looking.1", "one-weight.1", "one-weight.3", "scaling.1", "scaling.2", "scaling.4",
        "order.2", "order.4", "clocks.3", "masks.1", "masks.2", "masks.3", "masks.5", "masks.6", "training.6",
    ]  # fmt: skip
    assert list(short_path().met) == list(dict.fromkeys(place.lesson for place in path))
