"""Lessons in the pseudo-language: each text is whole sentences in ⟦…⟧, or data."""

from glassformer.runs import loading
from tests.extensions.parts_of_pages import PARTS
from tests.pages.conftest import MAIN, check
from tests.pages.speaking import texts_of_page
from tests.pages.test_pseudo_language import MODEL, SOURCE, complaints, data_of_models, spoken_whole, told_by_models
from tests.pseudo_language import words_of


def test_the_page_is_spoken_whole(open_page):
    spoken_whole(open_page, PARTS["lessons"])


def test_a_lesson_beside_a_page_is_spoken_whole(open_page):
    test = open_page(MAIN, lang="qps")
    test.switch_page("pages/explore/step.py")
    for name, value in {"model": MODEL, "src": SOURCE, "lang": "qps", "lesson": "one-piece.1"}.items():
        test.query_params[name] = value
    check(test.run())
    data = words_of(MODEL, SOURCE) | data_of_models() | {"Glassformer"}
    examples = loading.open_checkpoint(loading.usable()[MODEL]).card.examples
    told = set(told_by_models())
    assert not complaints(test, data | words_of(examples), told)
    assert any("⟦Cooveereed" in text for text in texts_of_page(test))
    (radio,) = test.radio
    radio.set_value("nothing")
    (commit,) = [button for button in test.button if button.key.endswith("_commit")]
    check(commit.click().run())
    assert any(text.startswith("⟦Yoouu preediicteed") for text in texts_of_page(test))
    assert not complaints(test, data | words_of(examples), told)
