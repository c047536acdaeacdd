"""A lesson beside the pages covers what answers it until the answer, and its address brings it back."""

import html
import re
from dataclasses import replace
from urllib.parse import parse_qsl

import pytest
from streamlit.runtime.scriptrunner import StopException

from glassformer.extensions.classroom import lesson, predictions, step_links
from glassformer.extensions.lessons.library import lessons
from glassformer.extensions.rooms.registry import ROOMS
from glassformer.extensions.rooms.room import Room
from glassformer.state import session
from tests.extensions.scripts import COMPARE, LESSONS
from tests.pages.conftest import CHECKPOINTS, MAIN, PAGES, STEP, check
from tests.pages.reading import address, keys_of, payload, sentences, told, type_source, view
from tests.pages.reading import opened as checkpoint_of
from tests.pages.test_first_visit import browser_asks as browser_asks
from tests.pages.test_first_visit import standing
from transformer.errors import TokenizerError

SENTENCE = "我喜欢喝绿茶。"


def said(test, name):
    """A parameter of the address."""
    value = address(test).get(name)
    return value[0] if isinstance(value, list) else value


def asked(test):
    return [one for one in (*test.radio, *test.text_input) if str(one.key).startswith("lesson_answer")]


def covers(test):
    return sum(caption.value == "Covered until you have answered" for caption in test.caption)


def ways(test):
    """The links of the panel and of the list: what each says, and its page with its parameters."""
    bodies = [element.proto.body for element in test.get("html") if "gf-ways" in element.proto.body]
    found = [re.findall(r'<a href="([^"]*)">([^<]*)</a>', body) for body in bodies]
    links = [(label, *html.unescape(href).partition("?")[::2]) for row in found for href, label in row]
    return {label: (path, dict(parse_qsl(query))) for label, path, query in links}


def answer(test, choice=None, typed=None):
    """Commit to a choice, or to what is typed."""
    for given in (choice, typed):
        if given is not None:
            (field,) = asked(test)
            field.set_value(given)
    (commit,) = [one for one in test.button if str(one.key).endswith("_commit")]
    return check(commit.click().run())


def kept(test, *answers):
    """Have the session know of answers, each with the name of a step and the digest of a run."""
    test.session_state[predictions.KEPT] = {one[:2]: predictions.Prediction(*one[2:]) for one in answers}
    return check(test.run())


@pytest.fixture
def step_page(open_page):
    """A function that opens the Step page inside the whole app: `step_page(lesson="one-piece.3")`."""

    def open_one(page="pages/explore/step.py", **parameters):
        test = open_page(MAIN)
        test.switch_page(page)
        for name, value in parameters.items():
            test.query_params[name] = str(value)
        return check(test.run())

    return open_one


def test_covered_charts_are_not_sent_before_the_answer_and_are_after_it(step_page):
    test = answer(step_page(lesson="one-piece.3", src=SENTENCE))
    assert "Choose a prediction first" in sentences(test)
    run = payload(test, session.STEPPER)["run"]
    assert ({chip["probability"] for chip in run["target"]}, run["shading"]) == ({None}, None)
    assert (covers(test), {"entropy", "candidates"} & keys_of(test)) == (2, set())
    test = answer(test, "equal")
    assert (covers(test), {"entropy", "candidates"} - keys_of(test)) == (0, set())
    assert all(chip["probability"] > 0 for chip in payload(test, session.STEPPER)["run"]["target"])
    assert "You predicted “all about equal”; the answer is “" in sentences(test)


def test_another_sentence_or_checkpoint_is_another_question_and_its_step_is_opened(step_page):
    test = answer(step_page(lesson="one-piece.3", src=SENTENCE), "equal")
    test = type_source(test, "我每天早上都和我的朋友一起去学校。")
    assert not {"entropy", "candidates"} & keys_of(test)
    assert view(test).step == len(payload(test, session.STEPPER)["run"]["target"]) - 1
    test = type_source(test, SENTENCE)
    assert "entropy" in keys_of(test)  # that one was answered
    test.sidebar.selectbox(key=session.MODEL).set_value("en-fr")
    check(test.run())
    assert not {"entropy", "candidates"} & keys_of(type_source(test, SENTENCE)), "to another checkpoint it is another"


def test_a_browser_that_interrupts_the_arrival_is_led_to_the_step_by_the_next_run(open_page, monkeypatch):
    """It does so when it says what it remembers while the model still runs."""
    parameters, interrupted = step_links.parameters, []

    def once(*arguments, **options):
        if not interrupted:
            interrupted.append(arguments)
            raise StopException
        return parameters(*arguments, **options)

    monkeypatch.setattr(step_links, "parameters", once)
    test = open_page(STEP, lesson="one-piece.3", src=SENTENCE)
    assert interrupted
    n_steps = len(payload(check(test.run()), session.STEPPER)["run"]["target"])
    assert view(test).step == n_steps - 1


def test_what_a_card_says_of_the_training_waits_for_the_answer(open_page):
    def is_said():
        return ["10 epochs" in " ".join(table.value.to_string() for table in test.table),
                any("Translates short" in one.value for one in test.sidebar.caption)]  # fmt: skip

    test = open_page(CHECKPOINTS, lesson="training.1", model="zh-en", src=SENTENCE)
    assert is_said() == [False, False]
    text = lessons()["training"].steps[0].fingerprint
    kept(test, ("training.1", predictions.digest("zh-en", SENTENCE), "last", True, text))
    assert is_said() == [True, True]


def test_where_there_is_no_answer_a_reason_and_examples_are_there_and_nothing_is_covered(step_page):
    test = step_page(lesson="one-piece.3", src="好。", model="zh-en")
    (why,) = [one.value for one in test.info if "longer sentence" in one.value]
    assert "this step needs 4" in why
    assert "candidates" in keys_of(test)
    assert ways(test)["Skip"][1]["lesson"] == "one-piece.4"
    (example, *_) = [one for one in test.button if str(one.key).startswith("lesson_example")]
    test = check(example.click().run())
    assert "candidates" not in keys_of(test)
    assert asked(test)


def test_a_lesson_stays_over_pages_and_ends_when_it_is_left(step_page):
    test = step_page(lesson="one-piece.3", src=SENTENCE)
    test.switch_page("pages/explore/attention.py")
    check(test.run())
    assert lesson.PLACE in test.session_state
    assert said(test, "lesson") == "one-piece.3"
    assert ways(test)["Back to the step"][0] == "step"
    (leave,) = [one for one in test.button if one.key == "lesson_leave"]
    check(leave.click().run())
    assert "lesson" not in address(test)
    assert not ways(test)


def test_an_address_says_the_same_to_everybody_and_nobody_is_switched_in_a_lesson(open_page, browser_asks):
    browser_asks("en")
    test = open_page(PAGES["step"], lesson="one-piece.1")
    assert standing(test)[0] == "zh-en"
    type_source(test, "I like tea.")
    assert standing(test) == ("zh-en", "I like tea.")


def test_a_browser_that_remembers_an_answer_shows_it_as_answered(step_page):
    test = answer(step_page(lesson="one-piece.3", src=SENTENCE), "equal")
    (row,) = payload(test, "lesson_memory")["rows"]
    assert row[0] == "one-piece.3"
    again = step_page(lesson="one-piece.3", src=SENTENCE)
    assert "entropy" not in keys_of(again)
    assert "entropy" in keys_of(kept(again, tuple(row)))
    assert "entropy" not in keys_of(kept(again, (*row[:4], "00000000")))  # of another text


@pytest.fixture
def on_reverse(monkeypatch):
    """A lesson whose first step runs on a checkpoint of its own, and its second on the learner's."""
    one = lessons()["one-piece"]
    first, second = replace(one.steps[4], on="reverse"), one.steps[4]
    made = {**lessons(), "made": replace(one, name="made", steps=(first, second))}
    monkeypatch.setattr(lesson, "known", lambda: made)


def follow(test, label):
    """Go where a link of the panel leads."""
    _, parameters = ways(test)[label]
    test.query_params.clear()
    for name, value in parameters.items():
        test.query_params[name] = value
    return check(test.run())


def test_a_step_on_a_checkpoint_of_its_own_gives_the_learners_back(step_page, on_reverse):
    test = step_page(lesson="made.1", src="I like green tea.", model="en-fr")
    assert test.session_state[session.MODEL] == "reverse"
    assert "src" not in address(test)
    assert said(test, "mine") == "model=en-fr&src=I+like+green+tea."
    again = step_page(**{name: said(test, name) for name in address(test)})  # as a reload opens it
    for one in (test, again):
        one = follow(answer(one, "0"), "Next")
        assert one.session_state[session.MODEL] == "en-fr"
        assert one.session_state[session.SOURCE] == "I like green tea."
        assert "mine" not in address(one)
        assert said(one, "lesson") == "made.2"


def test_another_checkpoint_in_such_a_step_is_led_back(step_page, on_reverse):
    test = step_page(lesson="made.1", src="glass", model="reverse")
    test.sidebar.selectbox(key=session.MODEL).set_value("zh-en")
    check(test.run())
    assert test.session_state[session.MODEL] == "zh-en"
    assert "uses the checkpoint reverse" in sentences(test)
    assert ways(test)["Back to the step"][1]["model"] == "reverse"


# ---------------------------------------------------------------- the opening


def opened(test, name):
    """Whether the panel says what to press and to watch, with nothing asked and nothing covered."""
    says = lessons()[name].opening.says.languages["en"]
    return says in [one.value.replace("\\", "") for one in test.markdown] and not asked(test) and not covers(test)


# One for each page whenever tests run; that the link of each reads back without a note is in `test_links`.
OPENINGS = {one.opening.page: name for name, one in lessons().items()}.values()


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.deep] * (name not in OPENINGS)) for name in lessons()]
)
def test_a_lesson_begins_with_its_opening_and_a_link_to_it_is_enough(step_page, name):
    one = lessons()[name]
    test = step_page(str(PAGES[one.opening.page]), lesson=f"{name}.0")
    assert opened(test, name)
    assert not [note.value for note in (*test.error, *test.warning) if "link" in note.value]
    led = view(test)
    for parameter, value in one.opening.link.items():
        if parameter in ("layer", "head", "step") and value.isdigit():
            assert getattr(led, parameter) == int(value) - 1
    page, onward = ways(test)["Go to the first question"]
    assert (page, onward["lesson"]) == (one.steps[0].page, f"{name}.1")


def test_a_room_that_is_led_to_an_opening_is_shown_it_and_asked_nothing(step_page):
    taught = ROOMS.open()
    try:
        ROOMS.do(taught, Room.move, "step", {"model": "zh-en", "src": SENTENCE, "lesson": "one-piece.0"})
        student = step_page(room=taught.code, lesson="one-piece.0")
        assert opened(student, "one-piece")
        assert [one for one in student.get("html") if "gf-asked" in one.proto.body], "folded to a line on a phone"
    finally:
        ROOMS.end(taught)


# ---------------------------------------------------------------- the short path


TERMS = ("Query, key, value", "Score", "Softmax, weight", "Row, map", "Head, layer", "Logit, probability")


def test_the_path_opens_with_something_that_moves_beside_its_folded_words_and_then_asks(step_page):
    test = step_page(str(LESSONS), src=SENTENCE, model="zh-en")
    page, parameters = ways(test)["Begin the 25-minute path"]
    assert (page, parameters["lesson"]) == ("step", "one-piece.0")
    test = step_page(**parameters)
    assert {"stepper", "candidates"} <= keys_of(test)
    assert not covers(test)
    (folded,) = [one for one in test.expander if one.label == "Terms for this path"]
    assert not folded.proto.expanded
    text = " ".join(one.value for one in folded.markdown).replace("\\", "")
    assert not [said for said in (SENTENCE, *(f"**{term}**" for term in TERMS)) if said not in text]
    assert opened(test, "one-piece")
    test = follow(test, "Go to the first question")
    assert (len(asked(test)), covers(test)) == (1, 1)
    assert opened(follow(test, "Back"), "one-piece")


def test_the_path_ends_with_what_was_met_and_how_many_were_right(step_page):
    path = step_links.places(lessons())
    test = step_page(str(LESSONS), src=SENTENCE, lesson=path[-1].name, path="short")
    kept(test, *((place.name, "0" * 8, "x", n % 2 == 0, "0" * 8) for n, place in enumerate(path[:5])))
    text = " ".join(one.value for one in test.markdown)
    assert "What you have learnt" in text
    assert f"You predicted 5 of {len(path)} steps, 3 of them correctly." in text
    there = ways(test)
    assert {"How heads are built", "Tokens", "The training recipe"} <= set(there)
    assert "Where it looks, step 1" in there
    assert "Who may see whom, step 1" not in there
    assert not asked(test)
    elsewhere = step_page(str(LESSONS), src=SENTENCE, lesson=path[-1].name)
    assert not [one for one in elsewhere.markdown if "What you have learnt" in one.value]


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
    tokenizer = checkpoint_of("reverse").src_tokenizer

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
