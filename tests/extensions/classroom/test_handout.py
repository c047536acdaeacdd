"""A handout opens offline and asks before it answers, and no text of a run becomes markup."""

import html
import json
import re
from functools import cache

import pytest

import transformer
from glassformer.extensions.classroom.handout import Sheet, _Half, figures_of, handout
from glassformer.extensions.lessons.library import Case, Posed, QuestionNotApplicable, lessons, pose
from glassformer.extensions.lessons.library.survey import case_of
from transformer.i18n import said, say


@cache
def reverse():
    return transformer.load("checkpoints/reverse")


@cache
def sheets_of(name, source):
    """All on the paper of a lesson; made once for all tests, as its questions run the model."""
    lesson, checkpoint = lessons()[name], reverse()
    case, found = case_of(checkpoint, source), []
    for step in lesson.steps:
        if not step.paper:
            continue
        try:
            posed = pose(step, case)
        except QuestionNotApplicable as why:
            found.append(Sheet(posed=why.sentence))
            continue
        drawn = figures_of(step, posed.link(), checkpoint, case.trace)
        covered = bool(step.cover)
        found.append(Sheet(posed=posed, charts=drawn, covered=covered))
    return found


def written(lesson, sheets, language, **changes):
    return handout(lesson, sheets, checkpoint="reverse", sentence="glass", output="ssalg", language=language, **changes)


def charts_in(text):
    found = re.findall(r'<script type="application/json">(.*?)</script>', text, flags=re.DOTALL)
    return [json.loads(figure) for figure in found]


def test_it_fetches_nothing():
    text = written(lessons()["one-piece"], sheets_of("one-piece", "glass"), "en")
    before_the_script, _, rest = text.partition("<script>")
    after_the_script = re.sub(r'<a href="[^"]*">', "", rest.partition("</script>")[2])  # fetched by a click alone
    assert not re.search(r"""(?:src|href)=|https?://|@import""", before_the_script + after_the_script)


@pytest.mark.parametrize("answers", [True, False])
def test_no_text_of_a_run_is_markup(answers):
    lesson = lessons()["masks"]
    evil = "</script><img src=x onerror=alert(1)>"
    sheets = sheets_of(lesson.name, "glass")
    run = {"checkpoint": evil, "sentence": evil, "output": evil}
    text = handout(lesson, sheets, **run, language="en", answers=answers)
    assert "<img" not in text
    assert html.escape(evil) in text


def test_what_is_not_on_paper_has_a_link_behind_its_answer():
    lesson = lessons()["stream"]
    address = "https://glass.example/inside?src=a&lesson=stream.1"
    sheets = [
        Sheet(posed=one.posed, covered=one.covered, shown_on=("Inside the model", address))
        for one in sheets_of(lesson.name, "glass")
    ]
    questions, answers = written(lesson, sheets, "en").split('<div class="answers">')
    for part, covered in ((questions, False), (answers, True)):  # beside the question where nothing is covered
        here = [sheet for sheet in sheets if isinstance(sheet.posed, Posed) and sheet.covered is covered]
        assert here
        assert part.count(html.escape(address)) == len(here)
    assert "To see this in the app, open the “Inside the model” page." in answers


@pytest.mark.parametrize(("name", "language"), [*((name, "en") for name in lessons()), ("masks", "zh")])
def test_questions_come_before_answers_and_what_students_get_holds_none_anywhere(name, language):
    lesson = lessons()[name]
    sheets = sheets_of(lesson.name, "transformer")
    whole = written(lesson, sheets, language)
    students = written(lesson, sheets, language, answers=False)
    assert students.count("<section>") == whole.count("<section>")
    assert '<div class="answers">' not in students
    questions, answers = whole.split('<div class="answers">')
    assert "ssalg" in answers  # the output
    shown, closed = ([json.dumps(figure) for figure in charts_in(text)] for text in (students, answers))
    assert not {*shown} & {*closed}
    assert bool(closed) or name not in ("one-piece", "masks")
    for sheet in sheets:
        if not isinstance(sheet.posed, Posed):
            continue
        assert html.escape(said(sheet.posed.question, language)) in questions
        if sheet.posed.step.ask.form == "choice":
            assert html.escape(said(sheet.posed.reveal, language)) in answers
        for part in (students, questions):
            assert "ssalg" not in part
            for text in (sheet.posed.reveal, *(sheet.posed.misled(option.word) for option in sheet.posed.options)):
                if text is not None:
                    assert html.escape(said(text, language)) not in part
                    assert json.dumps(said(text, language)) not in part
        if isinstance(sheet.posed.answer.right, float) and sheet.posed.answer.right not in (0.0, 1.0):
            assert not any(found == pytest.approx(sheet.posed.answer.right, abs=1e-6) for found in numbers(shown))


def numbers(figures):
    """All numbers with a fraction in charts; whole ones are places, too."""
    return [float(one) for figure in figures for one in re.findall(r"-?\d+\.\d+(?:e-?\d+)?", figure)]


@pytest.fixture(scope="module")
def of_order():
    """A function that draws a step about order, with other parameters of its link."""
    trace, step = reverse().run("noon"), lessons()["order"].steps[1]
    link = pose(step, Case(checkpoint=reverse(), trace=trace)).link()
    return lambda **other: figures_of(step, link | other, reverse(), trace).closed


def test_what_is_said_of_a_chart_is_on_paper_with_it_as_text(of_order):
    _, drawn = of_order()
    spec = {**drawn, "said": {**drawn["said"], "above": say("“{piece}”", piece="<img src=x>")}}
    half = _Half("en", closed=[], made={})
    paper = half._once(spec)
    assert "<p>“&lt;img src=x&gt;”</p><div" in paper
    assert all(f"<td>{html.escape(cell)}</td>" in paper for row in drawn["said"]["table"]["rows"] for cell in row)
    assert half._once(spec) == ""


def test_what_is_on_paper_is_the_run_that_the_step_changes(of_order):
    left, right, plain = (one["data"][0]["x"] for one in (*of_order(), of_order(do="", b="")[0]))
    assert left == pytest.approx(right, abs=1e-4)  # of a bag of pieces
    assert left != pytest.approx(plain, abs=1e-4)
