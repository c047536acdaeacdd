"""What a lesson's step covers is drawn by its page, and hidden until the answer."""

import pytest

from glassformer.extensions.classroom import predictions, step_links
from glassformer.extensions.lessons.library import lessons
from tests.extensions.classroom.pages.test_lessons import covers, kept
from tests.extensions.scripts import COMPARE
from tests.pages.conftest import PAGES, STEP
from tests.pages.reading import keys_of, opened, sentences, told
from transformer.errors import TokenizerError

SENTENCES = {"zh-en": "我喜欢喝绿茶。", "reverse": "lesson", "reverse-leak": "lesson"}
STEPS = [
    (name, number, step) for name, one in lessons().items() for number, step in enumerate(one.steps, 1) if step.cover
]
FIRST = {(step.page, step.cover): (name, number) for name, number, step in reversed(STEPS)}.values()
EACH = [pytest.param(*one, id=f"{one[0]}.{one[1]}", marks=[pytest.mark.deep] * (one[:2] not in FIRST)) for one in STEPS]
OF_A_LIST = {"results", "trained_for"}  # drawn only where there is something to choose, and on another page


@pytest.mark.parametrize(("name", "number", "step"), EACH)
def test_what_is_covered_is_there_and_is_not_sent(open_page, name, number, step):
    model = step.on or "zh-en"
    test = open_page(PAGES[step.page], model=model, src=SENTENCES[model], lesson=f"{name}.{number}")
    assert "link" not in sentences(test), "the step's link reads back without a note"
    before = keys_of(test)
    charts = set(step.cover) - {"*", "part"} - OF_A_LIST
    assert not before & charts
    assert covers(test) == len(set(step.cover) - OF_A_LIST)
    here = (f"{name}.{number}", predictions.digest(model, SENTENCES[model]))
    if step_links.ARRIVED in test.session_state:  # on pages with a sentence
        assert test.session_state[step_links.ARRIVED] == here
    kept(test, (*here, "", False, step.fingerprint))
    assert not covers(test)
    after = keys_of(test)
    assert charts <= after, "a word of `cover` names no chart of the page"
    assert (after > before) or step.page == "doctor" or not charts | ({"*", "part"} & set(step.cover))


def test_a_sentence_that_cannot_be_cut_is_said_to_be_so_where_all_is_covered(open_page, monkeypatch):
    tokenizer = opened("reverse").src_tokenizer

    def refuse(text):
        raise TokenizerError("tokenizers cannot use it.")

    monkeypatch.setattr(tokenizer, "encode", refuse)
    test = open_page(STEP, model="reverse", src="abc", cover="*")
    assert [one.value for one in test.error] == [r"Tokenizers cannot use it\."]


def test_what_the_chart_of_both_outputs_would_tell_is_covered_with_it(open_page):
    whole, test = (
        open_page(COMPARE, model="reverse", src="abcdef", do="zero-cross.2.1", cover=cover)
        for cover in ("", "compared_outputs")
    )
    assert "log-probability of the whole left output" in told(whole)
    assert "log-probability of the whole left output" not in told(test)
    assert "Left output" not in told(test)
    assert len(test.dataframe) == len(whole.dataframe) - 1
