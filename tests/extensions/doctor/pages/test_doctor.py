"""The Doctor page says what is wrong first, of examinations that are done, under way, stopped or refused."""

import re
from urllib.parse import parse_qs

import pytest
from streamlit.testing.v1 import AppTest

from glassformer.extensions.doctor import doctor_panels
from glassformer.extensions.doctor.examinations import ExaminationRequest, Examinations
from glassformer.extensions.doctor.library.context import DoctorTest
from glassformer.extensions.doctor.library.findings import DoctorTestResult, PageTarget, not_applicable
from glassformer.extensions.doctor.library.report import TESTS
from glassformer.runs import loading, measurement_jobs
from tests.extensions.doctor.test_examinations import gate as gate
from tests.extensions.doctor.test_unopened import save
from tests.extensions.scripts import DOCTOR
from tests.extensions.weight_files.conftest import opened_here  # noqa: F401  (of every test)
from tests.glassformer.waiting import WAIT, until
from tests.pages.conftest import CHECKPOINTS, MAIN, check
from tests.pages.test_pseudo_language import complaints, data_of_models, told_by_models
from tests.pages.test_shared_caches import read_in_each_language
from tests.pages.test_step_links import says_what_is_wrong_in_a_link
from tests.pseudo_language import words_of
from transformer.i18n import say

BROKEN = DoctorTestResult(
    verdict="broken",
    number=0.25,
    threshold=0.0,
    said=say("Earlier logits moved by 0.25."),
    why=say("Nothing but 0 is right."),
    meaning=say("The model sees the future."),
    causes=say("No causal mask."),
    places=("decoder.0", "*decoder*", *(f"w{n}" for n in range(31))),
    shown=PageTarget(page="masks", panel="checks", source="ab", layer=1, head=2),
)


def named(name, result, area="wiring"):
    return DoctorTest(area, say("A test called {name}", name=name), name=name, look=lambda patient: result)


FINE = DoctorTestResult(verdict="well", said=say("As it should be."), why=say("A reason."))
WELL = DoctorTest("wiring", say("A test called {name}", name="well"), name="loss", look=lambda patient: FINE)
SOUND = named("sound", FINE)
LOOK = named("look", DoctorTestResult(verdict="look", said=say("Odd.")), area="attention")
NOT = named("not", not_applicable(say("There is no decoder.")))


@pytest.fixture
def examine_with(monkeypatch):
    """A function that has the page examine with these tests alone."""

    def use(*tests, **options):
        found = Examinations(is_busy=lambda: False, tests=tests, **options)
        monkeypatch.setattr(doctor_panels, "examinations", lambda: found)
        return found

    return use


@pytest.fixture(autouse=True)
def examined(examine_with):
    """No test leaves a whole examination behind, for which the next would wait."""
    examine_with(WELL)


REVERSE = {"model": "reverse"}


def report_of(examinations):
    """What the page's examination came to."""
    return examinations.look(ExaminationRequest.of(loading.open_checkpoint(loading.usable()["reverse"]))).result


def until_done(test):
    """Run the page until its examination is over."""

    def is_over():
        if any(button.key == "stop_examination" for button in test.button):
            check(test.run())
        return all(button.key != "stop_examination" for button in test.button)

    until(is_over)
    return test


def plain(texts):
    return [re.sub(r"\\(.)", r"\1", one.value).replace("\u2060", "") for one in texts]


def test_it_begins_with_the_sentence_that_sums_up_and_says_what_is_wrong_first(open_page, examine_with):
    examinations = examine_with(WELL, LOOK, named("broken", BROKEN), NOT)
    test = until_done(open_page(DOCTOR, **REVERSE))
    assert plain(test.error) == ["reverse is broken: 1 test failed."]
    assert test.code[0].value == str(report_of(examinations).to_markdown()), "to be pasted"
    assert [one.value for one in test.subheader] == [
        ":material/error: Broken: 1 test",
        ":material/visibility: Look at this: 1 test",
        "Pair by pair",
        "Wiring",
        "Wiring",
    ], "then areas, folded"
    shown = plain(test.markdown)
    assert ":material/error: **A test called broken**: broken" in shown
    assert "**What it means.** The model sees the future." in shown
    assert "**Usual causes:** No causal mask." in shown
    (where,) = [one for one in shown if "**Where.**" in one]
    assert where.startswith("**Where.** “decoder.0”, “*decoder*”, “w0”")
    assert where.endswith("“w9”, and 21 more")
    assert "Measured: 0.25. Threshold: 0. Nothing but 0 is right." in plain(test.caption)
    assert [one.label for one in test.expander][:2] == ["Well: 1 test", "Not applicable: 1 test"]


@pytest.mark.parametrize(
    ("tests", "kind", "said"),
    [
        (
            (SOUND, NOT),
            "info",
            "reverse: no fault was found in its numbers; its wiring and its task were not tested: that needs pairs.",
        ),
        ((WELL, LOOK), "warning", "reverse works, as far as these tests can tell; 1 finding is worth a look."),
    ],
    ids=["not tested", "a look"],
)
def test_what_is_not_healthy_is_not_called_so_nor_an_error_and_without_pairs_their_box_is_open(
    open_page, examine_with, tests, kind, said
):
    examine_with(*tests)
    test = until_done(open_page(DOCTOR, **REVERSE))
    assert plain(test.get(kind)) == [said]
    assert not [*test.success, *test.error]
    box = next(one for one in test.expander if one.label == "Examine with your own sentences")
    assert box.proto.expanded == (kind == "info")


def test_findings_come_as_they_are_made_and_who_stops_it_may_begin_again(open_page, examine_with, gate):
    examinations = examine_with(named("broken", BROKEN), DoctorTest("wiring", say("The gate"), name="gate", look=gate))
    test = open_page(DOCTOR, **REVERSE)
    assert gate.reached.wait(WAIT)
    test.run()
    assert not test.error, "nothing is summed up before the end"
    assert ":material/error: **A test called broken**: broken" in plain(test.markdown)
    bar = test.get("progress")[0].proto
    assert (bar.value, bar.text) == (50, r"Test 2 of 2\: The gate")
    test.button("stop_examination").click().run()
    assert plain(test.info) == ["The examination was stopped."]
    gate.opened.set()
    assert plain(test.run().info) == ["The examination was stopped."], "nor does it begin by itself"
    test.button("examine").click().run()
    assert plain(until_done(test).error) == ["reverse is broken: 1 test failed."]
    assert report_of(examinations) is not None


def test_another_visitor_sees_the_same_examination_and_examine_again_draws_anew(open_page, examine_with):
    made = []

    def measure(patient):
        made.append(patient.seed)
        return WELL.measure(patient)

    examine_with(DoctorTest("wiring", say("Counted"), name="loss", look=measure))
    until_done(open_page(DOCTOR, **REVERSE))
    test = open_page(DOCTOR, **REVERSE)
    assert plain(test.success), "done, without waiting"
    assert made == [0]
    until_done(test.button("examine_again").click().run())
    until_done(test.button("examine_again").click().run())
    assert made == [0, 1, 2]


def test_sentences_of_the_reader_and_the_loss_that_the_training_reported_are_used(open_page, examine_with):
    used = []

    def measure(patient):
        used.append((patient.origin, patient.samples.sources, patient.samples.targets, patient.reported))
        return WELL.measure(patient)

    examine_with(DoctorTest("wiring", say("Used"), name="used", look=measure))
    test = until_done(open_page(DOCTOR, **REVERSE))
    test.text_area("examination_texts").input("abc => cba\n\nno\ton")
    test.number_input(key="examination_reported").set_value(0.006)
    until_done(test.button("examine_these").click().run())
    assert used[-1] == ("given", ("abc", "no"), ("cba", "on"), 0.006)
    assert any("with 2 sentences that you provided" in one for one in plain(test.caption))
    until_done(test.button("examine_examples").click().run())
    assert any("examples from its card" in one for one in plain(test.caption)), "and back"


def test_pairs_that_ranked_the_answers_stand_in_the_box_of_their_model_alone(open_page, examine_with):
    examine_with(SOUND)
    test = open_page(DOCTOR, **REVERSE)
    test.session_state["carried_pairs"] = ("other", "1 => 2")
    assert not until_done(test.run()).text_area("examination_texts").value
    test.session_state["carried_pairs"] = ("reverse", "abc => cba")
    assert until_done(test.run()).text_area("examination_texts").value == "abc => cba"
    test.text_area("examination_texts").set_value("")
    assert not test.button("examine_these").click().run().text_area("examination_texts").value


def test_sentences_that_cannot_be_read_are_said_to_be(open_page):
    test = until_done(open_page(DOCTOR, **REVERSE))
    test.text_area("examination_texts").input("a => b\nc")
    test.button("examine_these").click().run()
    assert "line 2: some lines are" in plain(test.error)[0]
    assert plain(test.success), "what was examined stays"


def test_a_large_model_is_examined_when_somebody_asks(open_page, monkeypatch):
    monkeypatch.setattr(measurement_jobs, "SMALL", 1_000)
    test = open_page(DOCTOR, **REVERSE)
    assert "This model has 237,312 parameters, so an examination may take a few minutes" in plain(test.info)[0]
    assert plain(until_done(test.button("examine").click().run()).success)


def test_a_link_leads_to_the_view_and_keeps_the_model(open_page, examine_with):
    examine_with(named("broken", BROKEN))
    test = AppTest.from_file(str(MAIN), default_timeout=60)
    test.query_params["model"] = "reverse"
    test.run().switch_page(str(DOCTOR))  # after a run, by which Streamlit knows the page's address
    until_done(check(test.run()))
    link = next(one.proto for one in test.get("page_link") if one.proto.label == "See it in Masks")
    assert link.page == "masks"
    asked = parse_qs(link.query_string)
    del asked["rev"]
    assert asked == {"model": ["reverse"], "src": ["ab"], "masks": ["checks"], "layer": ["2"], "head": ["3"]}


def test_every_sentence_of_the_page_is_spoken_whole(open_page, examine_with):
    examine_with(WELL, LOOK, named("broken", BROKEN), NOT)
    until_done(open_page(DOCTOR, **REVERSE))
    test = open_page(DOCTOR, **REVERSE, lang="qps")
    names = words_of("reverse", *BROKEN.places, "broken", "gray-badge", "well", *(one.name for one in (LOOK, NOT)))
    references = {word[::-1] for word in loading.open_checkpoint(loading.usable()["reverse"]).card.examples}
    assert not complaints(test, names | data_of_models(), set(told_by_models()) | references)


def test_the_page_says_what_is_wrong_in_a_link(open_page):
    says_what_is_wrong_in_a_link(open_page, "doctor")


def test_each_visitor_reads_a_report_in_their_language(open_page):
    until_done(open_page(DOCTOR, **REVERSE))
    read_in_each_language(open_page, DOCTOR, REVERSE, "检查")


def test_the_ways_from_the_checkpoints_to_the_doctor_and_to_the_tensors(open_page):
    test = open_page(MAIN, model="zh-en")
    test.switch_page(str(CHECKPOINTS.relative_to(MAIN.parent))).run()
    doctor, tensors = [one.proto for one in test.get("page_link") if one.proto.page == "doctor"]
    assert doctor.label == "Is this model healthy? Ask the doctor"
    assert "doctor=" not in doctor.query_string
    assert "doctor=parameters" in tensors.query_string


def test_before_the_questions_it_says_what_can_be_said_and_leads_to_them(
    open_page, examine_with, tmp_path, monkeypatch
):
    examine_with(*TESTS)
    save(tmp_path / "own.pt")
    monkeypatch.setenv(loading.ENVIRONMENT, str(tmp_path))
    test = open_page(MAIN, model="own.pt")
    test.switch_page(str(DOCTOR.relative_to(MAIN.parent))).run()
    said = until_done(test)
    assert [one.value for one in said.subheader] == ["What can be said already", *["Weights"] * 2]
    first, second = plain(said.info)
    assert first == "“own.pt” cannot be opened until you answer 8 questions about the model."
    assert second == "own.pt: no fault was found in its tensors so far; whether the model works is not known yet."
    assert not said.success
    assert any("the other 21 tests need 8 answers about the model" in one for one in plain(said.caption))
    (link,) = [one.proto.body for one in said.main.get("html") if "gf-ways" in one.proto.body]
    assert 'href="open?model=own.pt#questions"' in link
