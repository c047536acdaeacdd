"""A teacher's own lesson opens, or is named in one sentence, and neither stops the others."""

import pytest

from glassformer.extensions.lessons.library import LessonError, lessons, pose, read_folder
from glassformer.extensions.lessons.library import lesson_files as folder
from tests.extensions.lessons.library.posed import case

HEAD = 'name = "{}"\ntitle = "A word of ours"\nteaches = "What the decoder reads first."\nminutes = 3\n'
STEP = """
[[step]]
page = "step"
link = { step = "1", guess = "1" }
cover = ["*"]
[step.ask]
oracle = "read_piece"
kind = "law"
question = "What does it read first?"
[step.ask.choices]
nothing = "nothing"
[step.reveal]
always = "It reads {start}."
"""
MINE = HEAD.format("mine") + STEP


def write(folder, name, text):
    (folder / name).write_text(text, encoding="utf-8")


@pytest.mark.parametrize("title", ["A word of ours", "我们的词"])
def test_a_lesson_in_one_language_opens_and_no_second_one_of_its_name(tmp_path, title):
    assert read_folder(tmp_path)[1][0].endswith("has no .toml file.")
    assert read_folder(tmp_path / "nowhere")[1]
    said = f'{{ zh = "{title}" }}' if title[0] > "z" else f'"{title}"'
    write(tmp_path, "a.toml", MINE.replace('"A word of ours"', said))
    assert read_folder(tmp_path)[1] == ()
    write(tmp_path, "b.toml", MINE)
    found, [problem] = read_folder(tmp_path)
    assert (list(found), found["mine"].title.said({})) == (["mine"], title)
    assert found["mine"].steps[0].reveal["always"].said({"start": "<s>"}).in_language("zh") == "It reads <s>."
    assert "b.toml" in problem


@pytest.mark.parametrize("change", [("{start}", "{stop}"), ('"1"', '"{place}"'), ("{start}", "{start:.2f}")])
def test_a_text_that_asks_for_what_is_not_there_is_said(tmp_path, change):
    write(tmp_path, "mine.toml", MINE.replace(*change, 1))
    step = read_folder(tmp_path)[0]["mine"].steps[0]
    with pytest.raises(LessonError, match="correct the lesson's file"):
        pose(step, case("reverse", "glass"))


PLAIN = (
    HEAD.format("plain")
    + """
[[step]]
page = "step"
[step.ask]
question = "Who wrote “Attention is all you need”?"
right = "vaswani"
[step.ask.choices]
vaswani = "Vaswani and others"
bengio = "Bengio and others"
[step.ask.misled]
bengio = "They wrote of attention in 2014."
[step.reveal]
always = "In 2017."
"""
)
TAKEN = '[[step]]\nfrom = "{}"\n'
PATH = HEAD.format("path") + TAKEN.format("masks.1") + TAKEN.format("plain.1") + STEP


def test_a_plain_question_needs_no_oracle(tmp_path):
    write(tmp_path, "plain.toml", PLAIN)
    found, problems = read_folder(tmp_path)
    assert not problems
    posed = pose(found["plain"].steps[0], case("reverse", "glass"))
    labels = {"vaswani": "Vaswani and others", "bengio": "Bengio and others"}
    assert {option.word: str(option.label) for option in posed.options} == labels
    assert [posed.is_right(word) for word in labels] == [True, False]
    assert str(posed.misled("bengio")) == "They wrote of attention in 2014."
    assert str(posed.reveal) == "In 2017."
    other = PLAIN.replace('right = "vaswani"', 'right = "bengio"').replace("misled]\nbengio", "misled]\nvaswani")
    write(tmp_path, "plain.toml", other)
    turned = read_folder(tmp_path)[0]["plain"].steps[0]
    assert turned.fingerprint != found["plain"].steps[0].fingerprint  # a remembered answer is not one to this


def test_a_path_takes_steps_of_the_plan_and_of_files_that_are_read_later(tmp_path):
    write(tmp_path, "a-path.toml", PATH)
    write(tmp_path, "b-plain.toml", PLAIN)
    found, problems = read_folder(tmp_path)
    assert not problems
    assert list(found) == ["path", "plain"]
    masks, own = lessons()["masks"].steps[0], found["plain"].steps[0]
    assert [step.ask for step in found["path"].steps[:2]] == [masks.ask, own.ask]
    assert found["path"].steps[2].ask.oracle == "read_piece"
    assert not any(step.short for step in found["path"].steps)


def test_a_chain_of_files_is_read_once(tmp_path, monkeypatch):
    """Each takes a step of the next, down to one that has it."""
    for i in range(30):
        step = TAKEN.format(f"l{i + 1}.1") if i < 29 else PLAIN.removeprefix(HEAD.format("plain"))
        write(tmp_path, f"{i:02}.toml", HEAD.format(f"l{i}") + step)
    read, lesson = [], folder._Reader.lesson
    monkeypatch.setattr(folder._Reader, "lesson", lambda *given: read.append(1) or lesson(*given))
    found, problems = read_folder(tmp_path)
    assert not problems
    assert list(found) == [f"l{i}" for i in range(30)]
    assert found["l0"].steps[0].ask == found["l29"].steps[0].ask
    assert len(read) == 30


OF_MINE = [
    (('oracle = "read_piece"', 'oracle = "read_minds"'), "`oracle` is 'read_minds', expected one of "),
    (('question = "What does it read first?"', 'question = ""'), "`question` has no text for"),
    (('name = "mine"', 'name = "one-piece"'), "another lesson is already called 'one-piece'; choose a different name"),
]
OF_PLAIN = [
    (('right = "vaswani"', 'right = "vaswan"'), "Step 1: `right` is 'vaswan', expected one of bengio, vaswani."),
    (('right = "vaswani"', 'right = "vaswani"\noracle = "read_piece"'), "uses no oracle; remove oracle."),
    (('bengio = "Bengio and others"\n', ""), "`choices` has 1 entries; expected 2 to 8."),
    (("Bengio and others", "Vaswani and others"), "two choices of a question have the same text."),
    (("misled]\nbengio", "misled]\nvaswani"), "`misled` may explain only wrong choices"),
    (("always", "sometimes"), "Step 1: `reveal` has no text for always."),
    (('right = "vaswani"\n', ""), "the key `oracle` is missing."),
]
OF_PATH = [
    (('"masks.1"', '"masks"'), "Step 1: `from` is 'masks', expected one of one-piece.1 to "),
    (('"masks.1"', '"masks.99"'), "`from` is 'masks.99', expected one of "),
    (('"masks.1"', '"path.2"'), "`from` is 'path.2', expected one of "),
    (('from = "masks.1"', 'from = "masks.1"\ncover = ["*"]'), "(`from`) cannot have any other keys."),
    (('from = "masks.1"', "from = 3"), "`from` is 3; expected the type str"),
]
WRONG = [(text, *row) for text, rows in ((MINE, OF_MINE), (PLAIN, OF_PLAIN), (PATH, OF_PATH)) for row in rows]


@pytest.mark.parametrize(("lesson", "change", "said"), WRONG)
def test_what_is_wrong_gets_one_sentence_and_the_others_open(tmp_path, lesson, change, said):
    assert change[0] in lesson
    write(tmp_path, "a.toml", lesson.replace(*change))
    write(tmp_path, "b.toml", MINE if lesson is PLAIN else PLAIN)
    found, [problem] = read_folder(tmp_path)
    assert list(found) == ["mine" if lesson is PLAIN else "plain"]
    assert "a.toml" in problem
    assert said in problem
