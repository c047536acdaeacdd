"""The words of the short path are said on any sentence, with its own numbers, and each lesson met is named."""

import numpy as np
import pytest

from glassformer.extensions.classroom import step_links
from glassformer.extensions.lessons.library.lesson_files import LANGUAGES, lessons
from glassformer.extensions.lessons.library.posing import short_path, words_on
from tests.extensions.lessons.library.posed import LONGEST, NAMES, ONE_PIECE, UNKNOWN, case, sentences


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
    path = step_links.places(lessons(), "", short=True)
    assert [place.name for place in path] == [
        "one-piece.1", "looking.1", "one-weight.1", "one-weight.3", "scaling.1", "scaling.2", "scaling.4",
        "order.2", "order.4", "clocks.3", "masks.1", "masks.2", "masks.3", "masks.5", "masks.6", "training.6",
    ]  # fmt: skip
    assert list(short_path().met) == list(dict.fromkeys(place.lesson for place in path))
