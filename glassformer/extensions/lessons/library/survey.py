r"""Survey command: every lesson question on many sentences, answers counted, laws and findings checked, TSV table.

    python -m transformer.lessons.survey                                          the examples of the shipped cards
    python -m transformer.lessons.survey --sentences tests/data/zh-en.tsv …       a file is named like its checkpoint
    python -m transformer.lessons.survey --lesson masks --sentences tests/data/{zh-en,en-fr,reverse}.tsv \
        --write tests/data/lessons.tsv

A question that nearly always has one answer needs no looking, unless it is a law and says so. So answers are counted
over sentences and checkpoints together (`constant`), and by checkpoint for authors of lessons. The time of a step's
slowest question is printed, too: the app has one thread for models.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Final

import torch

from glassformer import SHIPPED
from glassformer.extensions.lessons.library.lesson import Case, Kind, Lesson, LessonStep, QuestionNotApplicable
from glassformer.extensions.lessons.library.lesson_files import lessons
from glassformer.extensions.lessons.library.posing import Posed, pose
from transformer.checkpoint.load import Checkpoint, load
from transformer.errors import QueryError

NAMES: Final = ("zh-en", "en-fr", "reverse")
MOST_ALIKE: Final = 0.95  # of the answers to a finding, the largest share that one of them may have
LEARNED: Final = ("looking.2",)  # laws that a model learned: a few sentences may be exceptions
FIRST: Final = 5  # sentences whose answers a row repeats
COLUMNS: Final = ("lesson", "step", "asks", "kind", "checkpoint", "posed", "answers", "variants", "not here",
                  "first answers")  # fmt: skip
RUNS_KEPT: Final = 32
_BETWEEN: Final = " | "  # sentences in a cell


@dataclass(kw_only=True)
class SurveyRow:
    """The answers to one step on one checkpoint."""

    lesson: str  # its name
    n: int  # the step's number, from 1
    step: LessonStep  # the step
    checkpoint: str  # the name of the checkpoint
    # The right answer of each sentence; None where the step was not posed.
    answers: list[str | None] = field(default_factory=list)
    variants: Counter[str] = field(default_factory=Counter)  # which outcome was told, how often
    reasons: Counter[str] = field(default_factory=Counter)  # why it was not posed, how often
    slowest: float = 0.0  # seconds of the slowest one

    @property
    def counts(self) -> Counter[str]:
        """How often each answer was right."""
        return Counter(answer for answer in self.answers if answer is not None)

    def add(self, case: Case) -> None:
        """Pose the step to one more run."""
        begun = time.perf_counter()
        try:
            posed = pose(self.step, case)
        except (QuestionNotApplicable, QueryError) as why:
            self.answers.append(None)
            self.reasons[str(why.sentence)] += 1
        else:
            self.answers.append(right_answer(posed))
            self.variants[posed.variant] += 1
        self.slowest = max(self.slowest, time.perf_counter() - begun)

    def cells(self) -> tuple[str, ...]:
        """The row of a table; see `COLUMNS`."""
        first = _BETWEEN.join("–" if one is None else one for one in self.answers[:FIRST])
        variants, reasons = listed(self.variants, most=9), listed(self.reasons, most=2, between=_BETWEEN)
        asked = self.lesson, str(self.n), self.step.fingerprint, self.step.ask.kind, self.checkpoint
        return (*asked, str(self.counts.total()), listed(self.counts), variants, reasons, first)


def right_answer(posed: Posed) -> str:
    """The right answer as a table has it."""
    right = posed.answer.right
    return right if isinstance(right, str) else f"{right:.3g}"


def survey(
    plan: Sequence[Lesson], checkpoints: Mapping[str, Checkpoint], sentences: Mapping[str, Sequence[str]]
) -> list[SurveyRow]:
    """Pose every step to every sentence of every checkpoint, by the checkpoints' names."""
    rows = [
        SurveyRow(lesson=lesson.name, n=n, step=step, checkpoint=name)
        for lesson in plan
        for n, step in enumerate(lesson.steps, 1)
        for name in checkpoints
        if step.on in ("", name)
    ]
    for name, checkpoint in checkpoints.items():
        for sentence in sentences[name]:
            case = case_of(checkpoint, sentence)
            for row in rows:
                if row.checkpoint == name:
                    row.add(case)
    return rows


def case_of(checkpoint: Checkpoint, sentence: str, *, given: str = "") -> Case:
    """The case of a learner's sentence and what was typed; runs that several steps ask for are made once."""
    run = lru_cache(maxsize=RUNS_KEPT)(checkpoint.run)
    return Case(checkpoint=checkpoint, trace=run(checkpoint.query(sentence)), given=given, run=run)


def constant(rows: Sequence[SurveyRow]) -> list[str]:
    """What is wrong with the kinds of questions: findings that are none, laws that do not hold; in words."""
    steps: dict[tuple[str, Kind], Counter[str]] = {}
    for row in rows:
        steps.setdefault((f"{row.lesson}.{row.n}", row.step.ask.kind), Counter()).update(row.counts)
    return [problem for of, counts in steps.items() if (problem := _problem(*of, counts))]


def _problem(where: str, kind: Kind, counts: Counter[str]) -> str:
    if not counts:
        return f"{where} was never posed."
    answer, most = counts.most_common(1)[0]
    share = most / counts.total()
    if kind == "law" and share < (MOST_ALIKE if where in LEARNED else 1):
        return f"{where} is a law, but has other answers: {listed(counts)}."
    if kind == "finding" and share > MOST_ALIKE:
        return f"{where} is a finding, but {answer} is right in {share:.0%} of {counts.total()}."
    return ""


def listed(counts: Counter[str], *, most: int = 6, between: str = ", ") -> str:
    """Counts as text, the largest first, equal ones by name; at most so many are named."""
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    rest = sum(n for _, n in ordered[most:])
    others = [f"{len(ordered) - most} others {rest}"] if rest else []
    return between.join([f"{name} {n}" for name, n in ordered[:most]] + others)


def sentences_of(file: Path) -> list[str]:
    """The sentences of a file: a line each, or the first column of a table."""
    lines = file.read_text(encoding="utf-8").splitlines()
    return [line.split("\t")[0] for line in lines if line.strip()]


def table(rows: Sequence[SurveyRow], *, before: str = "") -> str:
    """A table with tabs: the rows, and those of the table before that are of other steps of the plan."""
    old = [tuple(line.split("\t")) for line in before.splitlines()[1:]]
    cells = {(line[0], line[1], line[4]): line for line in (*old, *(row.cells() for row in rows))}
    plan = [(lesson, str(n)) for lesson, found in lessons().items() for n in range(1, len(found.steps) + 1)]
    ordered = [cells[*step, name] for step in plan for name in NAMES if (*step, name) in cells]
    return "".join("\t".join(line) + "\n" for line in (COLUMNS, *ordered))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m transformer.lessons.survey", description=__doc__.splitlines()[0])
    parser.add_argument("--sentences", nargs="+", type=Path, default=[], metavar="FILE",
                        help="a sentence a line, or a table with them first; named like its checkpoint")  # fmt: skip
    parser.add_argument("--lesson", nargs="+", default=[], metavar="NAME", help="these only")
    parser.add_argument("--most", type=int, default=None, metavar="N", help="only the first N sentences of a file")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the rows into a table with tabs")
    return parser.parse_args()


def main() -> int:
    """The command."""
    asked = _arguments()
    torch.set_num_threads(1)  # on sentences threads wait for each other longer than they compute
    plan = [lesson for name, lesson in lessons().items() if name in asked.lesson or not asked.lesson]
    given = {file.stem: sentences_of(file) for file in asked.sentences}
    checkpoints = {name: load(SHIPPED / name) for name in (given or NAMES)}
    sentences = {name: (given.get(name) or one.card.examples)[: asked.most] for name, one in checkpoints.items()}
    rows = survey(plan, checkpoints, sentences)
    for row in rows:
        lesson, n, _, kind, name, posed, answers, variants, reasons, _ = row.cells()
        print(f"{lesson}.{n} {kind} {name}: {posed} posed, at most {row.slowest:.2f} s")
        print(f"    answers: {answers}\n    variants: {variants}" + (f"\n    not here: {reasons}" if reasons else ""))
    if asked.write:
        before = asked.write.read_text(encoding="utf-8") if asked.write.exists() else ""
        asked.write.write_text(table(rows, before=before), encoding="utf-8")
    problems = constant(rows)
    print("\n".join(problems) or "Laws hold, and findings differ.")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
