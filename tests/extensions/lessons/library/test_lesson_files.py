"""A lesson's file is not trusted: whatever is wrong with it is one sentence that names the file."""

import copy
import json
import time
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.extensions.lessons.library.lesson import Lesson
from glassformer.extensions.lessons.library.lesson_files import (
    MAX_BYTES,
    MAX_CHARACTERS,
    MAX_STEPS,
    PLAN,
    LessonError,
    lessons,
    read_lesson,
)
from tests.conftest import AT_ONCE
from transformer.i18n import Sentence

BOTH = {"en": "One {piece}.", "zh": "一个 {piece}。"}
QUESTION = {"oracle": "branch", "kind": "finding", "question": BOTH, "choices": {"same": BOTH}}
REVEAL = {"same": BOTH, "changed": BOTH, "ended": BOTH}
STEPS = [{"page": "step", "link": {"step": "{step}"}, "pick": "hardest_step", "ask": QUESTION, "reveal": REVEAL}]
GOOD = {"name": "own", "title": BOTH, "teaches": BOTH, "minutes": 5, "step": STEPS}


def toml(value):
    """A value as TOML has it in one line; JSON's texts and lists are TOML's."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {toml(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")


def text_of(record):
    return "".join(f"{json.dumps(key)} = {toml(value)}\n" for key, value in record.items())


@pytest.fixture
def read(tmp_path):
    def read(content, **options):
        file = tmp_path / "own.toml"
        file.write_bytes(content if isinstance(content, bytes) else text_of(content).encode())
        return read_lesson(file, **options)

    return read


def changed(path, value):
    """The good record with something else at a path; `...` takes it out."""
    record = copy.deepcopy(GOOD)
    at = record
    for name in path[:-1]:
        at = at[name]
    if value is ...:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return record


STEP = ("step", 0)
ASK = (*STEP, "ask")
FAULTS = [
    (("name",), ..., "`name` is missing"),
    (("name",), [16**40], "`name` is .*; expected the type str"),
    (("name",), "Own lesson", "lower-case letters, digits and hyphens"),
    (("titel",), BOTH, "'titel' is unknown; the known keys are .*title"),
    (("minutes",), 0, "expected 1 to 999"),
    (("minutes",), 10**40, "integer with more than 30 digits"),
    (("after",), [1], r"expected the type list\[str\]"),
    (("opening",), {"page": "step", "says": {"en": "{a}", "zh": "{a}"}}, "`opening.says` cannot use values; remove a"),
    (("opening",), {"page": "step", "says": BOTH, "cover": ["*"]}, "'cover' is unknown"),
    (("step",), GOOD["step"] * (MAX_STEPS + 1), "`step` has 21 entries; expected 1 to 20"),
    (("step",), [3], "Step 1: `step` is 3; expected the type dict"),
    ((*STEP, "colour"), "red", "Step 1: the key 'colour' is unknown"),
    ((*STEP, "page"), "../x", r"lower-case letters|expected one of"),
    ((*STEP, "link"), {"step": 1}, "`link.step` is 1; expected the type str"),
    ((*STEP, "link"), {"step": "{a.b}"}, "`link.step` contains the placeholder 'a.b'; a placeholder must be a name"),
    ((*STEP, "link"), {f"a{i}": "1" for i in range(101)}, "Step 1: `link` has 101 entries; expected 0 to 100"),
    ((*STEP, "cover"), ["x"] * 101, "Step 1: `cover` has 101 entries; expected 0 to 100"),
    ((*STEP, "pick"), "os", "expected one of .*hardest_step"),
    ((*STEP, "reveal"), {"same": {"en": "One."}}, "`reveal.same` has no text for zh"),
    ((*STEP, "reveal"), {"same": {"en": "{a}", "zh": "{b}"}}, "must have the same placeholders in every language"),
    ((*STEP, "reveal"), {"same": {"en": "{a", "zh": "{a"}}, "is not a valid template"),
    ((*STEP, "reveal"), {"same": {"en": "x" * (MAX_CHARACTERS + 1), "zh": "一"}}, "longer than 600"),
    ((*ASK, "oracle"), "eval", "expected one of .*branch"),
    ((*ASK, "form"), "essay", "expected one of choice, number, piece"),
    ((*ASK, "within"), -1, "`within` is -1, expected 0 to 1000000000"),
    ((*ASK, "within"), float("nan"), "`within` is nan, expected 0 to"),
    ((*ASK, "choices"), {"same": "the same"}, "expected the type dict"),
]


@pytest.mark.parametrize(("path", "value", "problem"), FAULTS, ids=[f"{'.'.join(map(str, p))}" for p, *_ in FAULTS])
def test_a_fault_is_named(read, path, value, problem):
    with pytest.raises(LessonError, match=problem) as raised:
        read(changed(path, value))
    said = str(raised.value)
    assert said.startswith("The lesson own.toml cannot be used")
    assert "\n" not in said
    assert len(said) < 3000
    assert isinstance(raised.value.sentence, Sentence)


def test_a_step_without_a_page_is_where_the_one_before_is(read):
    stays = {"link": {"step": "1"}, "ask": QUESTION, "reveal": REVEAL}
    first, second = read(changed(("step",), [STEPS[0] | {"cover": ["part"]}, stays])).steps
    assert (second.page, second.pick, second.cover, second.link) == ("step", "hardest_step", ("part",), {"step": "1"})
    assert (second.then, second.short, first.ask) == ({}, False, second.ask)
    with pytest.raises(LessonError, match="Step 1: the key `page` is missing"):
        read(changed(("step",), [stays]))


@pytest.mark.parametrize(
    "field",
    ["{}", "{0}", "{a.b}", "{a[0]}", "{a!r}", "{a!s}", "{a.__class__}", "{a:{b}}", "{a:>99999999}", "{a:999999d}",
     "{a:.999999999f}", "{_:x}", "{a:n}", "{a: }", "{A}", "{a b}", "{__import__('os')}"],
)  # fmt: skip
def test_a_template_names_values_and_formats_of_numbers_only(read, field):
    said = r"contains the placeholder .*; a placeholder must be a name|is not a valid template"
    with pytest.raises(LessonError, match=said):
        read(changed((*STEP, "reveal"), {"same": {"en": field, "zh": field}}))


@pytest.mark.parametrize(
    "content",
    [b"\xff\xfe", b"name = ", b"a = 1\na = 2", b"a = " + b"[" * 5000, b"a = " + b"9" * 5000, b"\x00",
     b"a." * 3000 + b"b = 1", b"[" + b"a." * 99_000 + b"a]", b"[[step]]\n" * 9 + b"x",
     b"name=[0x" + b"f" * 190_000 + b"]\n[[step]]"],
    ids=["no-utf8", "cut", "twice", "deep", "digits", "zero", "dotted", "dotted-table", "rest", "hexadecimal"],
)  # fmt: skip
def test_what_is_no_toml_or_would_fill_the_memory_is_said_at_once(read, content):
    begun = time.process_time()
    with pytest.raises(LessonError, match=r"own\.toml"):
        read(content)
    assert time.process_time() - begun < AT_ONCE


def test_a_file_may_be_too_large_or_not_there(read, tmp_path):
    with pytest.raises(LessonError, match="more than 200,000 bytes"):
        read(b"#" * (MAX_BYTES + 1))
    for path in (tmp_path / "no.toml", tmp_path):
        with pytest.raises(LessonError, match=f"{path.name} cannot be read"):
            read_lesson(path)


texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=20)
plain = st.booleans() | st.integers() | st.floats() | texts
anything = st.recursive(
    plain,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abe{}!:.", max_size=5), inner, max_size=3),
)
PATHS = sorted({path for path, *_ in FAULTS} | {(*ASK, "question"), (*ASK, "misled"), ("title", "en")})


@given(path=st.sampled_from(PATHS), value=anything)
def test_any_value_anywhere_is_a_lesson_or_an_error(tmp_path_factory, path, value):
    file = tmp_path_factory.getbasetemp() / "value.toml"
    file.write_text(text_of(changed(path, value)), encoding="utf-8")
    tomllib.loads(file.read_text(encoding="utf-8"))  # it is TOML
    try:
        lesson = read_lesson(file)
    except LessonError:
        return
    assert isinstance(lesson, Lesson)


def test_the_lessons_of_the_plan_stand_in_their_order():
    files = sorted(PLAN.glob("*.toml"))
    found = lessons()
    assert [f"{lesson.number:02d}-{name}.toml" for name, lesson in found.items()] == [file.name for file in files]
    assert found["one-piece"].number == 1
