"""Both ends of the short path: its words on the learner's sentence, and what was met."""

from glassformer.extensions.classroom import predictions
from glassformer.extensions.classroom.lessons import short
from glassformer.extensions.lessons.library import lessons
from tests.extensions.classroom.pages.test_lessons import SENTENCE, covers, drawn, step_page, ways
from tests.extensions.scripts import LESSONS
from tests.pages.conftest import check

__all__ = ["step_page"]  # a fixture


def test_the_path_begins_with_its_words_on_the_learners_sentence_and_then_asks(step_page):
    test = step_page(str(LESSONS), src=SENTENCE, model="zh-en")
    _, parameters = ways(test)["Begin the 25-minute path"]
    test = step_page("pages/explore/attention.py", **parameters)
    text = " ".join(one.value for one in test.markdown).replace("\\", "")
    assert "Terms for this path" in text
    assert SENTENCE in text
    for term in ("Query, key, value", "Score", "Softmax, weight", "Row, map", "Head, layer", "Logit, probability"):
        assert f"**{term}**" in text
    assert not [one for one in test.radio if str(one.key).startswith("lesson_answer")]
    assert "walk_weights" in drawn(test)  # the row that they speak of
    page, onward = ways(test)["Go to the first question"]
    assert page == "step"
    test = step_page(**onward)
    assert [one for one in test.radio if str(one.key).startswith("lesson_answer")]
    assert covers(test) == 1
    assert ways(test)["Terms for this path"][0] == "attention"


def test_the_path_ends_with_what_was_met_and_how_many_were_right(step_page):
    path = short.places(lessons(), "", short=True)
    given = {
        (place.name, "0" * 8): predictions.Prediction("x", n % 2 == 0, "0" * 8) for n, place in enumerate(path[:5])
    }
    test = step_page(str(LESSONS), src=SENTENCE, lesson=path[-1].name, path="short")
    test.session_state[predictions.KEPT] = given
    text = " ".join(one.value for one in check(test.run()).markdown)
    assert "What you have learnt" in text
    assert f"You predicted 5 of {len(path)} steps, 3 of them correctly." in text
    there = ways(test)
    assert {"How heads are built", "Pieces", "The training recipe"} <= set(there)
    assert "Where it looks, step 1" in there
    assert "Who may see whom, step 1" not in there
    assert not [one for one in test.radio if str(one.key).startswith("lesson_answer")]
    elsewhere = step_page(str(LESSONS), src=SENTENCE, lesson=path[-1].name)
    assert not [one for one in elsewhere.markdown if "What you have learnt" in one.value]
