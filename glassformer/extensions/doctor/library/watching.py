"""The doctor during training, in any loop (`watch`): examinations, verdicts.jsonl, report.html, exit status.

    watching = watch(model, tokenizer, pairs, every=500, out="doctor")
    for batch in batches:
        ...
        optimizer.step()
        watching.step(loss=loss)
    sys.exit(watching.close().status)

The training is not disturbed: a copy is examined, and modes, random numbers and gradients are restored. Each
examination is one line of verdicts.jsonl; at the end there is a page, report.html. Of each test only the last verdict
counts, as a young model does badly.
"""

import json
import math
import random
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal

import numpy as np
import torch
from torch import Tensor, nn

from glassformer.extensions.doctor.library import output_tests, wiring_tests
from glassformer.extensions.doctor.library.context import DoctorTest, ExaminationContext, Forward, OwnCode
from glassformer.extensions.doctor.library.findings import VERDICTS, Finding
from glassformer.extensions.doctor.library.report import TESTS, Report, follows, run_test, untested
from glassformer.extensions.live.memory_reader import Read, bare, reader
from transformer.analysis.losses import Samples, read_samples
from transformer.errors import DataError, shown
from transformer.i18n import say

LINES, PAGE = "verdicts.jsonl", "report.html"
SCHEMA: Final = "glassformer.watch"
SCHEMA_VERSION: Final = 1
OK, BROKEN, NOT_EXAMINED, NOT_TESTED = 0, 1, 2, 3  # as the command `doctor` ends
RANK = {"well": 0, "look": 1, "broken": 2}  # as scalars
AT_START = (output_tests.positions,)  # which say something of a model that has learnt nothing
MOST_COLUMNS = 40  # examinations that have a column
SIGNS = {"broken": "✗", "look": "?", "well": "✓", "not_applicable": "·"}
_STYLE = """<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; font-size: 13px; display: block; overflow-x: auto }
th, td { padding: 2px 6px; text-align: center; border-bottom: 1px solid #8884 }
th:first-child { text-align: left; font-weight: normal; white-space: nowrap }
.broken { background: #b00020; color: white } .look { background: #f2c14e; color: black }
.well { background: #2e7d3226 } h1 { font-size: 1.5rem } h2 { font-size: 1.1rem } h2 span { padding: 0 .4em }
</style>"""
NO_ANSWERS: Mapping[str, Any] = MappingProxyType({})

Pairs = Samples | Path | str | Sequence[str] | Sequence[tuple[str, str]]


class _TimeIsUpError(Exception):
    """An examination has used its time."""


@dataclass(frozen=True)
class WatchOutcome:
    """What a watch found."""

    report: Report | None  # the last verdict of each test; None if nothing could be examined
    status: int  # 0: nothing is broken; 1: something is; 2: not examined; 3: not all was tested
    page: Path  # report.html
    lines: Path  # verdicts.jsonl, a line for each examination


@dataclass
class Watching:
    """A training that is watched; made by `watch`."""

    model: nn.Module | None  # what trains; None where a function gives the checkpoint
    read: Read  # gives it as a checkpoint, under a name
    samples: Samples  # texts that it is tried with
    forward: Forward | None  # the training's own pass
    every: int  # steps from one examination to the next
    out: Path  # the folder of what is written
    seconds: float  # of one examination
    tests: tuple[DoctorTest, ...]  # that are made
    partly: bool  # whether the user chose them
    fail_on: Literal["broken", "look"]  # from which verdict on the status is 1
    writer: Any  # of scalars; None for none
    called: str  # the model's name in reports
    steps: int = 0  # of the optimizer so far
    _loss: float | Tensor | None = None  # of the last step
    _done: int = -1  # the step of the last examination
    _records: list[dict[str, Any]] = field(default_factory=list)
    _last: dict[str, Finding] = field(default_factory=dict)
    _report: Report | None = None

    def begin(self, tests: Sequence[DoctorTest]) -> None:
        """Make some tests of a model that has learnt nothing; an error says why it cannot be read or called."""
        with undisturbed(self.model):
            patient = self._patient(time.perf_counter() + self.seconds)
            if patient.own is not None and patient.anatomy.writes:
                patient.own.logits(patient.checkpoint, patient.rows[:1])
        self.out.mkdir(parents=True, exist_ok=True)
        (self.out / LINES).unlink(missing_ok=True)
        self.examine(tests=tests)
        self._done = -1

    def step(self, *, loss: float | Tensor | None = None, step: int | None = None) -> Report | None:
        """Count a step of the optimizer; every so many steps examine the model.

        Args:
            loss: Of this step, to write it beside the verdicts.
            step: Its number from 1, for a training that is resumed; None for one more than the last.

        Returns:
            The report, if it was examined.
        """
        self.steps = self.steps + 1 if step is None else step
        self._loss = loss.detach() if isinstance(loss, Tensor) else loss
        return self.examine() if self.steps % self.every == 0 else None

    def examine(self, *, tests: Sequence[DoctorTest] | None = None) -> Report | None:
        """Examine the model now; None if it cannot be read, which the line says."""
        end, self._done = time.perf_counter() + self.seconds, self.steps
        record = {"schema": SCHEMA, "version": SCHEMA_VERSION, "step": self.steps, "loss": _number(self._loss)}
        with undisturbed(self.model):
            try:
                patient = self._patient(end)
            except Exception as error:  # whatever it is, it ends no training
                self._write({**record, "verdict": "not_examined", "summary": str(error), "tests": {}})
                return None
            findings, skipped = _made(patient, self.tests if tests is None else tests)
            report = _reported(patient, findings)
        if skipped:  # next time they come first, but that for which there was not enough time
            self.tests = tuple(sorted(self.tests, key=lambda one: (one is skipped[0]) - (one in skipped[1:])))
        self._last |= {one.test: one for one in findings}
        self._report = replace(report, findings=tuple(self._last.values()))
        names, seconds = [one.name for one in skipped], round(self.seconds + time.perf_counter() - end, 3)
        self._write({**record, **_verdicts(report), "skipped": names, "seconds": seconds})
        return report

    def _patient(self, end: float) -> ExaminationContext:
        parameter = torch.zeros(1) if self.model is None else next(self.model.parameters())
        own = None if self.forward is None else OwnCode(self.forward, parameter.device, parameter.dtype)
        return ExaminationContext(self.read(f"{self.called}@{self.steps}"), self.samples, pause=_until(end), own=own)

    def close(self) -> WatchOutcome:
        """Examine the model as it is at the end, write report.html, and say how it went."""
        if self._done != self.steps:
            self.examine()
        path = self.out / PAGE
        path.write_text(page(self.called, self._records, self._report), encoding="utf-8")
        return WatchOutcome(self._report, self.status, path, self.out / LINES)

    @property
    def status(self) -> int:
        """The exit status, of what is known so far."""
        if self._report is None or not self._records or self._records[-1]["verdict"] == "not_examined":
            return NOT_EXAMINED
        health = self._report.health
        if health == "broken" or (health == "look" and self.fail_on == "look"):
            return BROKEN
        untested = any(test.name not in self._last for test in self.tests)  # there never was time
        return NOT_TESTED if untested or (health == "not_tested" and not self.partly) else OK

    def _write(self, record: dict[str, Any]) -> None:
        self._records.append(record)
        with (self.out / LINES).open("a", encoding="utf-8") as file:
            file.write(json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n")
        scalars: dict[str, float] = {
            f"doctor/{name}": RANK[one["verdict"]] for name, one in record["tests"].items() if one["verdict"] in RANK
        }
        if self.writer is None or not scalars:
            return
        if hasattr(self.writer, "add_scalar"):
            for name, value in scalars.items():
                self.writer.add_scalar(name, value, self.steps)
        else:
            self.writer.log(scalars, step=self.steps)


def watch(
    model: object,
    tokenizer: object,
    pairs: Pairs,
    *,
    every: int = 500,
    out: Path | str = "doctor",
    forward: Forward | None = None,
    answers: Mapping[str, Any] = NO_ANSWERS,
    seconds: float = 60.0,
    tests: Collection[str] = (),
    fail_on: Literal["broken", "look"] = "broken",
    writer: Any = None,
    called: str = "model",
) -> Watching:
    """Watch a training: read the model once, and test what can be tested before the first step.

    Args:
        model: Our Transformer; a model of Hugging Face's transformers; a module with torch's own layers or with the
            names of tutorials; or a function that takes a name and returns a Checkpoint.
        tokenizer: Of transformers for a model of it. Else ours, a tokenizer's file, a table of pieces and ids, or a
            list of pieces; a tuple of two for source and target. None for texts of ids, such as "12 7 5".
        pairs: Texts that the training does not see: pairs of source and target, or texts alone; or their file.
        every: Steps of the optimizer from one examination to the next.
        out: The folder for verdicts.jsonl and report.html.
        forward: The pass that the training makes, called with source ids [B, S] and decoder ids [B, T], or with the
            ids alone where there is one stack; returns logits [B, T, V]. With it the training's own masks are tested.
        answers: What neither the model nor the tokenizer says, by fields of config.json.
        seconds: The most that one examination takes; tests that have no time are named in its line.
        tests: Names of the only tests to make; empty for all.
        fail_on: From which verdict on the status is 1.
        writer: Gets a scalar a test (0 well, 1 look, 2 broken), by its `add_scalar(name, value, step)` or its
            `log(dict, step=)`.
        called: The model's name in reports.

    Raises:
        GlassformerError: In one sentence, why the model, the tokenizer or the pairs cannot be used.
    """
    module, samples = bare(model), _samples(pairs)
    own = () if forward is None else wiring_tests.OF_CODE
    known = (*own, *TESTS)
    if unknown := set(tests) - {test.name for test in known}:
        names = ", ".join(test.name for test in known)
        raise DataError(
            "There is no test named {name}; expected some of {names}.", name=shown(min(unknown)), names=names
        )
    watching = Watching(
        model=module if isinstance(module, nn.Module) else None,
        read=reader(model, tokenizer, answers),
        samples=samples,
        forward=forward,
        every=max(1, every),
        out=Path(out),
        seconds=seconds,
        tests=tuple(test for test in known if not tests or test.name in tests),
        partly=bool(tests),
        fail_on=fail_on,
        writer=writer,
        called=called,
    )
    watching.begin([test for test in watching.tests if test in (*own, *AT_START)])
    return watching


@contextmanager
def undisturbed(model: nn.Module | None) -> Iterator[None]:
    """A model in evaluation mode; modes and all random numbers are afterwards as they were before."""
    modes = [] if model is None else [(module, module.training) for module in model.modules()]
    python, array = random.getstate(), np.random.get_state()
    devices = list(range(torch.cuda.device_count()))
    elsewhere = torch.get_default_device().type != "cpu"  # only then: it is asked about each call of torch
    here = torch.device("cpu") if elsewhere else nullcontext()
    with torch.random.fork_rng(devices), here, torch.autocast("cpu", enabled=False):
        try:
            for module, _ in modes:
                module.training = False
            yield
        finally:
            for module, training in modes:
                module.training = training
            random.setstate(python)
            np.random.set_state(array)


def _made(patient: ExaminationContext, tests: Sequence[DoctorTest]) -> tuple[list[Finding], list[DoctorTest]]:
    """The findings of the tests for which there is time, and the other tests."""
    findings: list[Finding] = []
    for i, test in enumerate(tests):
        try:
            patient.pause()
            findings.append(run_test(test, patient))
        except _TimeIsUpError:
            return findings, list(tests[i:])
        except Exception as error:  # of a class of the user's; it ends no training
            problem = say("This could not be tested: {problem}", problem=shown(f"{type(error).__name__}: {error}"))
            findings.append(untested(test, problem))
    return findings, []


def _reported(patient: ExaminationContext, findings: Sequence[Finding]) -> Report:
    """The report, with what was made of the pairs if that was computed anyway and there is time."""
    if any(one.test == "loss" for one in findings):
        try:
            return Report.of(patient, findings)
        except Exception:  # there was no time, or it is what tests have reported
            pass
    one = patient.checkpoint
    return Report(one.name, one.content_hash, patient.origin, len(patient.samples), tuple(findings))


def _until(end: float) -> Callable[[], None]:
    def pause() -> None:
        if time.perf_counter() > end:
            raise _TimeIsUpError

    return pause


def _verdicts(report: Report) -> dict[str, Any]:
    tests = {one.test: {"verdict": one.verdict, "number": _number(one.measured.number)} for one in report.findings}
    return {"verdict": report.health, "summary": str(report.summary()), "tests": tests}


def _number(value: float | Tensor | None) -> float | None:
    number = math.nan if value is None else float(value)
    return number if math.isfinite(number) else None


def _samples(pairs: Pairs) -> Samples:
    if isinstance(pairs, Samples):
        return pairs
    if isinstance(pairs, str | Path):
        return read_samples(Path(pairs))
    rows = [one if isinstance(one, tuple) else (one,) for one in pairs]
    if (
        not rows
        or len({len(row) for row in rows}) > 1
        or not all(isinstance(text, str) for row in rows for text in row)
    ):
        raise DataError("The texts to examine the model with have to be pairs of source and target, or texts alone.")
    return Samples(*(tuple(side) for side in zip(*rows, strict=True)))


# ------------------------------------------------------------------------------------------------ the page


def page(name: str, records: Sequence[Mapping[str, Any]], report: Report | None) -> str:
    """The page of a training: its examinations, as their lines have them, and the last verdict of each test.

    One English HTML file without scripts or external files; all text is escaped.
    """
    said = records[-1]["summary"] if report is None else str(report.summary())
    parts = ['<!doctype html><html lang="en"><meta charset="utf-8">', f"<title>{escape(name)}: doctor</title>"]
    parts += [_STYLE, f"<h1>{escape(said)}</h1>"]
    findings = () if report is None else report.worst_first
    parts += [f"<p>Step {one['step']}: {escape(one['summary'])}" for one in records if one["verdict"] == "not_examined"]
    for one in findings:
        if one.verdict in ("broken", "look"):
            parts += _in_full(one)
    parts += ["<h2>Steps</h2><table>", *_rows(records, findings), "</table>"]
    if report is not None and report.pairs:
        parts.append("<h2>Pairs</h2><table><tr><th>source<th>right<th>written")
        parts += [f"<tr><th>{escape(p.source)}<td>{escape(p.right)}<td>{escape(p.written)}" for p in report.pairs]
        parts.append("</table>")
    return "\n".join(parts) + "\n"


def _rows(records: Sequence[Mapping[str, Any]], findings: Sequence[Finding]) -> Iterator[str]:
    """A row for each test, a column for each examination; of many, some are left out."""
    apart = -(-len(records) // MOST_COLUMNS)
    columns = records[::-1][::apart][::-1] if apart else []
    yield "<tr><th>step" + "".join(f"<th>{one['step']}" for one in columns)
    yield "<tr><th>loss" + "".join(f"<td>{_short(one['loss'])}" for one in columns)
    for finding in findings:
        cells = [one["tests"].get(finding.test, {}) for one in columns]
        yield f"<tr><th>{escape(str(finding.title))}{''.join(map(_cell, cells))}"


def _cell(found: Mapping[str, Any]) -> str:
    verdict = found.get("verdict", "")
    return f'<td class="{verdict}" title="{_short(found.get("number"))}">{SIGNS.get(verdict, "")}'


def _short(number: float | None) -> str:
    return "" if number is None else f"{number:.3g}"


def _in_full(finding: Finding) -> Iterator[str]:
    measured = finding.measured
    verdict = f'<span class="{finding.verdict}">{escape(str(VERDICTS[finding.verdict]))}</span>'
    yield f"<h2>{verdict} {escape(str(finding.title))}</h2>"
    cause = follows(finding.follows) if finding.follows else ""
    places = ", ".join(measured.places)
    texts = (measured.headline, cause, measured.said, places, measured.meaning, measured.causes, measured.why)
    yield from (f"<p>{escape(str(text))}" for text in texts if text)
