"""The page A file of sentences runs what is typed or uploaded, draws its numbers, and leads to each line's run."""

from functools import partial
from threading import Event

import pandas as pd
import pytest

from glassformer.extensions.sentences import sentence_panels
from glassformer.extensions.sentences.line_table import POINTS, SPREAD, leads_to
from glassformer.extensions.sentences.sentences_look import SentencesLook
from glassformer.server import server_options
from glassformer.state import session
from tests.extensions.parts_of_pages import PARTS, parts_of
from tests.extensions.scripts import SENTENCES
from tests.pages.conftest import STEP, check
from tests.pages.reading import address, figure, numbers, sentences, told, view
from tests.pages.test_pseudo_language import complaints, data_of_models, spoken_whole, told_by_models
from tests.pages.test_step_links import says_what_is_wrong_in_a_link
from tests.pseudo_language import words_of

said = partial(told, kinds=("markdown", "caption", "info", "error"))

TEXT = "abc => cba\nglass => ssalg\n\n=xy\nabcdefghijkl\nab => b\nnm\n" + "z" * 30


@pytest.fixture
def open_model(open_page):
    return partial(open_page, SENTENCES, model="reverse")


def job_of(test):
    """What the session looks at; None for nothing."""
    return sentence_panels.jobs().find(test.session_state[session.JOB]) if session.JOB in test.session_state else None


def run(test, text=TEXT):
    """Give sentences and wait until they were run."""
    test.text_area(key=sentence_panels.TEXT).set_value(text)
    test.button(key=sentence_panels.START).click()
    check(test.run())
    job = job_of(test)
    if job is not None:
        pause = Event()
        while job.seen.is_under_way:
            pause.wait(0.01)
        check(test.run())
    return test


def rows(test):
    return test.dataframe[0].value


def test_each_line_is_a_row_that_is_chosen_and_ordered_and_charts_show_its_numbers(open_model):
    """That they are those of its run is in `test_line_runs`."""
    test = run(open_model())
    found = rows(test)
    assert list(found["open"]) == ["1", "2", "4", "5", "6", "7", "8"]
    assert list(found["output"][:3]) == ["cba", "ssalg", "yx"]
    assert list(found["reference"][:2]) == ["cba", "ssalg"]
    assert "reads at most 13" in found["problem"][6]
    assert "reverse, greedy. 7 lines were run." in said(test)
    assert {one.label: one.value for one in test.metric}["Not run"] == "1"
    drawn, with_reference = figure(test, POINTS)["data"][0], found[found["chrf"].notna()]
    assert numbers(drawn["x"]) == pytest.approx(with_reference["log_prob_per_piece"].to_numpy(), abs=1e-4)
    assert numbers(drawn["y"]) == pytest.approx(with_reference["chrf"].to_numpy(), abs=1e-3)
    assert drawn["customdata"] == [1, 2, 6]
    assert numbers(figure(test, SPREAD)["data"][0]["y"]).sum() == 3
    test.selectbox(key="line_order").set_value("chrf")
    assert list(rows(check(test.run()))["open"][:3]) == ["6", "1", "2"]
    test.text_input(key="holding").set_value("GLASS")
    assert list(rows(check(test.run()))["source"]) == ["glass"]
    assert (address(test)["order"], address(test)["holding"]) == ("chrf", "GLASS")
    test.text_input(key="holding").set_value("nowhere")
    assert "No line matches" in sentences(check(test.run()))


def test_a_line_that_is_opened_leads_to_its_run(open_model):
    test = run(open_model(how="sampling", seed=3))
    test = open_model(how="sampling", seed=3, job=job_of(test).about.id, line=2)
    assert view(test).of(SentencesLook).line == 1
    assert "**Line 2**" in said(test)
    assert "**Output:** ssalg" in said(test)
    assert rows(test)["open"][1] == "● 2"
    job = job_of(test)
    file, results = job.about, job.about.results(job)
    link = leads_to(file, results[1])
    assert (link.source, link.model, link.decoding.seed, link.job) == ("glass", "reverse", 3, "")
    assert link.revision == file.how.checkpoint[: len(link.revision)] != ""
    assert [leads_to(file, one).reference for one in results] == [one.line.reference for one in results]
    assert any(one.line.reference for one in results)


def test_another_session_sees_them_by_their_address_alone(open_model, open_page):
    test = run(open_model())
    assert "job" not in address(open_model())
    for other in (test, open_page(STEP, model="reverse", src="abc", job=address(test)["job"])):
        assert "job" not in other.session_state[session.URL_LINKED]  # other pages do not say which file it was
    other = open_model(job=address(test)["job"])
    pd.testing.assert_frame_equal(rows(other), rows(test))
    assert other.text_area(key=sentence_panels.TEXT).value.splitlines()[0] == "abc\tcba"
    gone = "The file of sentences that this address refers to is no longer on the server"
    assert gone in said(open_model(job="nonsense"))


def test_results_are_spoken_whole(open_model):
    job = job_of(run(open_model()))
    test = open_model(job=job.about.id, line=7, lang="qps")
    data = words_of("reverse", "sentences", TEXT, [one.output for one in job.about.results(job)])
    assert complaints(test, data | data_of_models(), set(told_by_models())) == []


def test_what_cannot_be_taken_is_one_sentence_and_a_file_goes_before_what_is_typed(open_model, monkeypatch):
    test = run(open_model(), " \n\t\n")
    assert "What was typed: has no sentences. Write one per line." in sentences(test)
    assert job_of(test) is None
    test = open_model()
    test.file_uploader(key=sentence_panels.FILE).upload("my.txt", b"\xef\xbb\xbfnm\tmn\r\n", "text/plain")
    assert list(rows(run(test))["source"]) == ["nm"]
    test = open_model()
    test.file_uploader(key=sentence_panels.FILE).upload("my.txt", b"ab\xff", "text/plain")
    assert "The file my.txt: is not UTF-8 (byte 2: 0xff)" in sentences(run(test))
    monkeypatch.setenv(server_options.ENVIRONMENT, "off")  # nothing can be handed in: sentences are pasted
    test = open_model()
    assert not test.file_uploader
    assert list(rows(run(test, "nm"))["output"]) == ["mn"]


def test_the_page_says_what_is_wrong_in_a_link(open_page):
    says_what_is_wrong_in_a_link(open_page, "sentences")


@pytest.mark.parametrize("name", parts_of("sentences"))
def test_what_is_spoken_is_spoken_whole(open_page, name):
    spoken_whole(open_page, PARTS[name])
