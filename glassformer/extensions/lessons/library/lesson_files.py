"""Reader and validation of lesson TOML files: those of the plan, and those that somebody wrote for a class.

A file is not trusted: what is missing, misspelt or of the wrong kind is an error with the file, the step and the
remedy. A template may name values and formats of numbers only: `{rank:,}`, not `{rank.real}`. A step without a page is
where the step before it is: what it does not say itself of the page, the link, the pick and the charts is the same.

Source: TOML 1.0 (https://toml.io/en/v1.0.0).
"""

import re
import string
import tomllib
from collections.abc import Iterator, Mapping, Sequence, Sized
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, get_args

from glassformer.extensions.lessons.library.lesson import (
    ALWAYS,
    PAGES,
    Ask,
    Form,
    Kind,
    Lesson,
    LessonError,
    LessonStep,
    Opening,
    Text,
)
from glassformer.extensions.lessons.library.subjects import oracles, picks
from transformer.errors import ClauseError, shown
from transformer.i18n import ENGLISH, Sentence, say

PLAN = Path(__file__).resolve().parent / "plan"
LANGUAGES = (ENGLISH, "zh")
MAX_STEPS = 20
MOST_WHOLE = 999
MOST_WITHIN = 1_000_000_000
MOST_PLAIN = 8  # choices of a question that no oracle answers; a room takes votes on as many
MAX_CHARACTERS = 600  # of one text
MAX_ENTRIES = 100  # of a list or a table
MAX_FILES = 100  # of a folder
_NAME = re.compile(r"[a-z][a-z0-9-]{0,30}", re.ASCII)
_FIELD = re.compile(r"[a-z_][a-z0-9_]*", re.ASCII)
_FORMAT = re.compile(r"[+]?,?(\.\d)?[fdg%]?", re.ASCII)
_LESSON = {"name", "number", "title", "teaches", "minutes", "after", "opening", "step"}
_SCENE = {"page", "link", "pick", "on", "look"}
_STEP = _SCENE | {"then", "cover", "ask", "reveal", "short", "paper", "from"}
_REVEAL, _OPENING = "reveal", "opening.says"
_ASK = {"oracle", "kind", "form", "question", "choices", "in_order", "within", "misled", "right"}


@cache
def lessons() -> Mapping[str, Lesson]:
    """The lessons of the plan by name, in their order."""
    found = (replace(read_lesson(file), number=int(file.name[:2])) for file in sorted(PLAN.glob("*.toml")))
    return {lesson.name: lesson for lesson in found}


def read_lesson(
    file: Path, *, languages: tuple[str, ...] = LANGUAGES, known: Mapping[str, Lesson] = MappingProxyType({})
) -> Lesson:
    """Read one lesson, every text of which must be given in all of `languages`.

    With empty `languages`, as for one class, a text needs one, which need not be English. `known` has the lessons by
    name that a step may be taken from.

    Raises:
        LessonError: It cannot be used; the message says where and why.
    """
    return _Reader(file.name, languages, known).lesson(parsed(file))


class _Reader:
    """Reads the record of one file; says where it is when something is wrong."""

    def __init__(self, file: str, languages: tuple[str, ...], known: Mapping[str, Lesson]) -> None:
        self._file, self._languages, self._lessons, self._step = file, languages, known, 0

    def lesson(self, record: Mapping[str, Any]) -> Lesson:
        """The whole file."""
        try:
            return self._lesson(record)
        except ClauseError as error:
            problem = error.sentence
        if self._step:
            raise LessonError(
                "The lesson {file} cannot be used. Step {n}: {problem}.", file=self._file, n=self._step, problem=problem
            )
        raise LessonError("The lesson {file} cannot be used: {problem}.", file=self._file, problem=problem)

    def _lesson(self, record: Mapping[str, Any]) -> Lesson:
        self._known(record, _LESSON)
        steps = self._of(record, "step", list)
        self._check_count("step", steps, 1, MAX_STEPS)
        return Lesson(
            name=self._name(record, "name"),
            number=self._whole(record, "number", 0, 0),
            title=self._text(record, "title"),
            teaches=self._text(record, "teaches"),
            minutes=self._whole(record, "minutes", 1),
            after=self._list(record, "after"),
            opening=self._opening(self._of(record, "opening", dict)) if "opening" in record else None,
            steps=tuple(self._steps(steps)),
        )

    def _opening(self, record: Mapping[str, Any]) -> Opening:
        self._known(record, _SCENE | {"says"})
        says = self._text(record, "says", where=_OPENING)
        if says.names:
            names = ", ".join(sorted(says.names))
            raise ClauseError("`{name}` cannot use values; remove {names}", name=_OPENING, names=names)
        return Opening(**self._scene(record), says=says)

    def _scene(self, record: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "page": self._among(record, "page", PAGES),
            "link": self._strings(record, "link"),
            "pick": self._among(record, "pick", ("", *picks()), ""),
            "on": self._of(record, "on", str, ""),
            "look": self._list(record, "look"),
        }

    def _steps(self, records: list[Any]) -> Iterator[LessonStep]:
        before: dict[str, Any] = {}  # where the step before is
        for self._step, record in enumerate(records, 1):
            if not isinstance(record, dict):
                raise self._mistyped("step", record, "dict")
            self._known(record, _STEP)
            if "from" in record:
                before = {}
                yield self._taken(record)
                continue
            record = record if "page" in record else before | record
            before = {name: record[name] for name in (*_SCENE, "cover") if name in record}
            ask, reveal = self._ask(self._of(record, "ask", dict)), self._texts(record, "reveal")
            if ask.right and ALWAYS not in reveal:
                raise ClauseError("`{name}` has no text for {language}", name=_REVEAL, language=ALWAYS)
            yield LessonStep(
                **self._scene(record),
                then=self._strings(record, "then"),
                cover=self._list(record, "cover"),
                ask=ask,
                reveal=reveal,
                short=self._of(record, "short", bool, False),
                paper=self._of(record, "paper", bool, True),
            )

    def _taken(self, record: Mapping[str, Any]) -> LessonStep:
        """A step of another lesson."""
        if len(record) > 1:
            raise ClauseError("a step that is taken from another lesson (`from`) cannot have any other keys")
        named: str = self._of(record, "from", str)
        lesson_name, _, number = named.partition(".")
        lesson = self._lessons.get(lesson_name)
        if lesson is None or number not in map(str, range(1, len(lesson.steps) + 1)):
            known = ", ".join(f"{one.name}.1 to {len(one.steps)}" for one in self._lessons.values())
            raise self._unknown("from", named, known)
        return replace(lesson.steps[int(number) - 1], short=False)  # the short path has it already

    def _ask(self, record: Mapping[str, Any]) -> Ask:
        self._known(record, _ASK)
        choices, misled = (self._texts(record, name, {}) for name in ("choices", "misled"))
        plain = "right" in record
        within = record.get("within", 0)
        if isinstance(within, bool) or not isinstance(within, int | float):
            raise self._mistyped("within", within, "float")
        self._check_range("within", within, 0, MOST_WITHIN)
        return Ask(
            right=self._right(record, choices, misled) if plain else "",
            oracle="" if plain else self._among(record, "oracle", tuple(oracles())),
            kind=self._among(record, "kind", get_args(Kind), "law" if plain else "finding"),
            form=self._among(record, "form", get_args(Form), "choice"),
            question=self._text(record, "question"),
            choices=choices,
            in_order=self._of(record, "in_order", bool, False),
            within=float(within),
            misled=misled,
        )

    def _right(self, record: Mapping[str, Any], choices: Mapping[str, Text], misled: Mapping[str, Text]) -> str:
        """The right choice of a question that asks no oracle."""
        others = [name for name in ("oracle", "form", "within") if name in record]
        if others:
            names = ", ".join(others)
            raise ClauseError(
                "a question with `right` is a multiple-choice question and uses no oracle; remove {names}", names=names
            )
        self._check_count("choices", choices, 2, MOST_PLAIN)
        for language in {language for text in choices.values() for language in text.languages}:
            if len({text.languages.get(language, word) for word, text in choices.items()}) < len(choices):
                raise ClauseError("two choices of a question have the same text")
        right: str = self._among(record, "right", tuple(choices))
        for word in misled:
            if word not in choices or word == right:
                raise ClauseError(
                    "`misled` may explain only wrong choices, because `reveal` explains the right one, but it "
                    "contains {found}",
                    found=shown(word),
                )
        return right

    def _known(self, record: Mapping[str, Any], names: set[str]) -> None:
        for name in record:
            if name not in names:
                known = ", ".join(sorted(names))
                raise ClauseError(
                    "the key {name} is unknown; the known keys are {known}", name=shown(name), known=known
                )

    def _of(self, record: Mapping[str, Any], name: str, kind: type, default: Any = None) -> Any:
        value = record.get(name, default)
        if value is None:
            raise ClauseError("the key `{name}` is missing", name=name)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise self._mistyped(name, value, kind.__name__)
        if name != "step" and isinstance(value, list | dict):
            self._check_count(name, value, 0, MAX_ENTRIES)
        return value

    def _mistyped(self, name: str, value: object, kind: str) -> ClauseError:
        return ClauseError("`{name}` is {found}; expected the type {kind}", name=name, found=shown(value), kind=kind)

    def _unknown(self, name: str, value: str, known: str) -> ClauseError:
        return ClauseError("`{name}` is {found}, expected one of {known}", name=name, found=shown(value), known=known)

    def _check_count(self, name: str, values: Sized, least: int, most: int) -> None:
        if not least <= len(values) <= most:
            raise ClauseError(
                "`{name}` has {n:,} entries; expected {least} to {most}",
                name=name,
                n=len(values),
                least=least,
                most=most,
            )

    def _check_range(self, name: str, value: float, least: int, most: int) -> None:
        if not least <= value <= most:
            raise ClauseError(
                "`{name}` is {found}, expected {least} to {most}", name=name, found=shown(value), least=least, most=most
            )

    def _whole(self, record: Mapping[str, Any], name: str, least: int, default: int | None = None) -> int:
        value: int = self._of(record, name, int, default)
        self._check_range(name, value, least, MOST_WHOLE)
        return value

    def _name(self, record: Mapping[str, Any], name: str) -> str:
        value: str = self._of(record, name, str)
        if not _NAME.fullmatch(value):
            raise ClauseError(
                "`{name}` is {found}; expected lower-case letters, digits and hyphens", name=name, found=shown(value)
            )
        return value

    def _among(self, record: Mapping[str, Any], name: str, known: tuple[str, ...], default: str | None = None) -> Any:
        value = self._of(record, name, str, default)
        if value not in known:
            listed = ", ".join(sorted(filter(None, known)))
            raise self._unknown(name, value, listed)
        return value

    def _list(self, record: Mapping[str, Any], name: str) -> tuple[str, ...]:
        values = self._of(record, name, list, [])
        if not all(isinstance(value, str) for value in values):
            raise self._mistyped(name, values, "list[str]")
        return tuple(values)

    def _strings(self, record: Mapping[str, Any], name: str) -> dict[str, str]:
        values = self._of(record, name, dict, {})
        for key, value in values.items():
            if not isinstance(value, str):
                raise self._mistyped(f"{name}.{key}", value, "str")
            self._check_template(f"{name}.{key}", value)
        return dict(values)

    def _texts(self, record: Mapping[str, Any], name: str, default: Any = None) -> dict[str, Text]:
        values = self._of(record, name, dict, default)
        return {word: self._text(values, word, where=f"{name}.{word}") for word in values}

    def _text(self, record: Mapping[str, Any], name: str, *, where: str = "") -> Text:
        where = where or name
        given = record.get(name)
        one = {ENGLISH: given} if isinstance(given, str) and not self._languages else None  # for a class, one will do
        value = one or self._of(record, name, dict)
        languages = {language: self._of(value, language, str) for language in value}
        wanted = self._languages or tuple(languages)
        missing = [language for language in wanted if not languages.get(language, "").strip()]
        if missing or not languages:
            raise ClauseError("`{name}` has no text for {language}", name=where, language=", ".join(missing) or ENGLISH)
        named = {language: self._check_template(where, text) for language, text in languages.items()}
        if len(set(named.values())) > 1:
            raise ClauseError("`{name}` must have the same placeholders in every language", name=where)
        return Text({ENGLISH: next(iter(languages.values())), **languages})

    def _check_template(self, where: str, text: str) -> frozenset[str]:
        """The names in a template."""
        try:
            fields = [field for field in string.Formatter().parse(text) if field[1] is not None]
        except ValueError as error:
            raise ClauseError("`{name}` is not a valid template: {problem}", name=where, problem=str(error)) from error
        if len(text) > MAX_CHARACTERS:
            raise ClauseError("`{name}` is longer than {most} characters", name=where, most=MAX_CHARACTERS)
        for _, name, form, conversion in fields:
            if conversion or not _FIELD.fullmatch(name or "") or not _FORMAT.fullmatch(form or ""):
                raise ClauseError(
                    "`{name}` contains the placeholder {found}; a placeholder must be a name with an optional "
                    "number format, for example {example}",
                    name=where,
                    found=shown((name or "") + (f"!{conversion}" if conversion else "") + (f":{form}" if form else "")),
                    example="{p:.2f}",
                )
        return frozenset(field[1] or "" for field in fields)


MAX_BYTES: Final = 200_000
MAX_DOTS: Final = 200  # of a line: all beginnings of a dotted key are kept, and 100,000 of them fill any memory


def parsed(file: Path) -> dict[str, Any]:
    """The content of a file; an error if it cannot be read, is too large or is not TOML."""
    try:
        with file.open("rb") as opened:
            content = opened.read(MAX_BYTES + 1)
    except OSError as error:
        raise LessonError("{file} cannot be read: {problem}.", file=file.name, problem=error.strerror or "?") from error
    if len(content) > MAX_BYTES:
        raise LessonError(
            "{file} has more than {most:,} bytes, the limit for a lesson file; split it.",
            file=file.name,
            most=MAX_BYTES,
        )
    dots = max(line.count(b".") for line in content.split(b"\n"))
    if dots > MAX_DOTS:
        raise LessonError(
            "{file} has a line with {n:,} dots; the limit is {most}. Split the line.",
            file=file.name,
            n=dots,
            most=MAX_DOTS,
        )
    try:
        return tomllib.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:  # no UTF-8, no TOML, or a number of thousands of digits
        raise LessonError("{file} is not valid TOML: {problem}", file=file.name, problem=str(error)[:200]) from error


def read_folder(folder: Path) -> tuple[Mapping[str, Lesson], tuple[Sentence, ...]]:
    """Lessons that somebody wrote for a class: every TOML file of a folder, in the order of their names.

    One with steps `from` others is a path through them. Their texts may be given in one language only.

    Returns:
        The lessons by name, and a sentence for each file that cannot be used.
    """
    files = sorted(folder.glob("*.toml"))[:MAX_FILES]
    if not files:
        return {}, (say("The lesson folder {folder} has no .toml file.", folder=shown(str(folder))),)
    left, found, problems = dict[Path, Any](), dict[Path, Lesson](), dict[Path, Sentence]()
    for file in files:
        try:
            left[file] = parsed(file)
        except LessonError as error:
            problems[file] = error.sentence
    while left:  # a path may take steps of a file that is read after it
        names = {str(record.get("name")) for record in left.values()}
        ready = [file for file, record in left.items() if not names & _taken_from(record)] or list(left)
        for file in ready:
            try:
                found[file] = _own(file, left.pop(file), [*lessons().values(), *found.values()])
            except LessonError as error:
                problems[file] = error.sentence
    own = {found[file].name: found[file] for file in files if file in found}
    return own, tuple(problems[file] for file in files if file in problems)


def _taken_from(record: Mapping[str, Any]) -> set[str]:
    """The lessons that a record takes steps from."""
    steps = record.get("step")
    named = [step.get("from") for step in steps if isinstance(step, dict)] if isinstance(steps, list) else []
    return {name.partition(".")[0] for name in named if isinstance(name, str)}


def _own(file: Path, record: Mapping[str, Any], known: Sequence[Lesson]) -> Lesson:
    """Read a lesson that somebody wrote, which may take steps from those that are known, and not have their names."""
    by_name = {one.name: one for one in known}
    lesson = _Reader(file.name, (), by_name).lesson(record)
    if lesson.name in by_name:
        raise LessonError(
            "The lesson {file} cannot be used: another lesson is already called {name}; choose a different name.",
            file=file.name,
            name=shown(lesson.name),
        )
    return lesson
