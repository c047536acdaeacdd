"""A handout: opens offline, asks before it answers, and no text of a run becomes markup."""

import html
import json
import re

import pytest

import transformer
from charts.theme import figure_in
from transformer.lessons import Case, NotHere, lessons, pose
from ui.teaching.example import EXAMPLE
from ui.teaching.figures import figure_of
from ui.teaching.handout import Sheet, handout
from words import said


@pytest.fixture(scope="module")
def reverse():
    return transformer.load("checkpoints/reverse")


def sheets_of(lesson, checkpoint, source):
    trace, found = checkpoint.run(source), []
    for step in lesson.steps:
        if not step.paper:
            continue
        try:
            posed = pose(step, Case(checkpoint=checkpoint, trace=trace))
        except NotHere as why:
            found.append(Sheet(posed=None, why=why.sentence, chart=None, covered=False))
            continue
        chart = figure_of(step, posed.link(), checkpoint, trace)
        found.append(Sheet(posed=posed, why=None, chart=chart, covered=bool(step.cover)))
    return found


def written(lesson, sheets, language, **changes):
    return handout(
        lesson, sheets, checkpoint="reverse", sentence="glass", output="ssalg", language=language, **changes
    )


@pytest.mark.parametrize("language", ["en", "zh"])
def test_questions_come_before_answers_and_charts_with_answers_among_them(reverse, language):
    lesson = lessons()["one-piece"]
    sheets = sheets_of(lesson, reverse, "glass")
    text = written(lesson, sheets, language)
    questions, answers = text.split('<div class="answers">')
    for sheet in sheets:
        assert html.escape(said(sheet.posed.question, language)) in questions
        if sheet.posed.step.ask.form == "choice":
            assert html.escape(said(sheet.posed.reveal, language)) in answers
            assert html.escape(said(sheet.posed.reveal, language)) not in questions
    closed = {json.dumps(figure) for figure in charts_in(answers)}
    assert closed
    assert not closed & {json.dumps(figure) for figure in charts_in(questions)}
    assert "ssalg" in answers
    assert "ssalg" not in questions


def charts_in(text):
    found = re.findall(r'<script type="application/json">(.*?)</script>', text, flags=re.DOTALL)
    return [json.loads(figure) for figure in found]


def test_it_fetches_nothing(reverse):
    text = written(lessons()["one-piece"], sheets_of(lessons()["one-piece"], reverse, "glass"), "en")
    before_the_script, _, rest = text.partition("<script>")
    after_the_script = re.sub(r'<a href="[^"]*">', "", rest.partition("</script>")[2])  # fetched by a click alone
    assert not re.search(r"""(?:src|href)=|https?://|@import""", before_the_script + after_the_script)


def test_no_text_of_a_run_is_markup(reverse):
    lesson = lessons()["one-piece"]
    evil = "</script><img src=x onerror=alert(1)>"
    text = handout(
        lesson, sheets_of(lesson, reverse, "glass"), checkpoint=evil, sentence=evil, output=evil, language="en"
    )
    assert "<img" not in text
    assert html.escape(evil) in text


def test_every_lesson_has_a_chart_on_paper_where_its_page_has_one(reverse):
    for lesson in lessons().values():
        for sheet in sheets_of(lesson, reverse, "transformer"):
            if sheet.posed is not None and sheet.posed.step.page in ("step", "attention", "masks"):
                assert sheet.chart is not None, (lesson.name, sheet.posed.step.page)


def test_charts_of_the_page_inside_are_of_what_the_step_looks_at(reverse):
    drawn = {}
    for name in ("stream", "neurons", "cost", "training"):
        lesson = lessons()[name]
        for sheet in sheets_of(lesson, reverse, "transformer"):
            if sheet.posed is not None and sheet.chart is not None:
                title = said(sheet.chart["layout"]["title"]["text"], "en")
                drawn.update((key, title) for key in sheet.posed.step.look[:1])
    expected = {
        "stream_size": "How large the stream is",
        "stream_kept": "of the embedding is left",
        "lens_table": "each depth would write",
        "ffn_map": "most active anywhere",
        "ffn_shares": "Silent neurons",
        "ffn_tokens": "What drives neuron",
        "cost_curves": "by length",
        "training_losses": "Loss by epoch",
    }
    assert dict.fromkeys(expected, True) == {key: expected[key] in drawn.get(key, "") for key in expected}


def test_what_is_not_on_paper_has_a_link_behind_its_answer(reverse):
    lesson = lessons()["stream"]
    address = "https://glass.example/inside?src=a&lesson=stream.1"
    sheets = [
        Sheet(posed=one.posed, why=one.why, chart=None, covered=one.covered, shown_on=("Inside the model", address))
        for one in sheets_of(lesson, reverse, "glass")
    ]
    questions, answers = written(lesson, sheets, "en").split('<div class="answers">')
    for part, covered in ((questions, False), (answers, True)):  # beside the question where nothing is covered
        here = [sheet for sheet in sheets if sheet.posed is not None and sheet.covered is covered]
        assert here
        assert part.count(html.escape(address)) == len(here)
    assert "The app shows it on the page “Inside the model”." in answers


def test_the_example_of_a_lesson_can_be_read(tmp_path, reverse):
    (tmp_path / "mine.toml").write_text(EXAMPLE, encoding="utf-8")
    found, problems = transformer.lessons.read_folder(tmp_path)
    assert not problems
    assert all(sheet.posed is not None for sheet in sheets_of(found["our-first"], reverse, "glass"))


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", list(lessons()))
def test_what_students_get_holds_no_answer_anywhere(reverse, name, language):
    lesson = lessons()[name]
    sheets = sheets_of(lesson, reverse, "transformer")
    whole = written(lesson, sheets, language)
    students = written(lesson, sheets, language, answers=False)
    assert students.count("<section>") == whole.count("<section>")
    assert "ssalg" not in students  # the output
    assert '<div class="answers">' not in students
    shown = [json.dumps(figure) for figure in charts_in(students)]
    for sheet in sheets:
        if sheet.posed is None:
            continue
        for text in (sheet.posed.reveal, *(sheet.posed.misled(option.word) for option in sheet.posed.options)):
            if text is not None:
                assert html.escape(said(text, language)) not in students
                assert json.dumps(said(text, language)) not in students
        if sheet.covered and sheet.chart is not None:
            covered = json.dumps(json.loads(figure_in(sheet.chart, language).to_json()))
            assert covered not in shown
        if isinstance(sheet.posed.answer.right, float) and sheet.posed.answer.right not in (0.0, 1.0):
            assert not any(found == pytest.approx(sheet.posed.answer.right, abs=1e-6) for found in numbers(shown))


def numbers(figures):
    """All numbers with a fraction in charts; whole ones are places, too."""
    return [float(one) for figure in figures for one in re.findall(r"-?\d+\.\d+(?:e-?\d+)?", figure)]


def test_paper_has_a_name_a_line_for_why_and_nothing_that_has_to_be_typed_or_tried(reverse):
    lesson = lessons()["one-piece"]
    text = written(lesson, sheets_of(lesson, reverse, "glass"), "en", answers=False)
    assert text.count('<p class="name">') == 1
    assert text.count("Why?") == text.count("<section>") == sum(step.paper for step in lesson.steps) == 4
    assert "Type it" not in text
    assert "back and forth" not in text
    assert [int(n) for n in re.findall(r"<h2>(\d+)\.", text)] == [1, 2, 3, 4]
    typed = [step for one in lessons().values() for step in one.steps if step.ask.form == "piece"]
    assert typed
    assert not any(step.paper for step in typed)


def test_no_text_of_a_run_is_markup_for_students_either(reverse):
    evil = "</script><img src=x onerror=alert(1)>"
    lesson = lessons()["masks"]
    text = handout(
        lesson, sheets_of(lesson, reverse, "glass"), checkpoint=evil, sentence=evil, output=evil, language="en",
        answers=False,
    )  # fmt: skip
    assert "<img" not in text
    assert html.escape(evil) in text
