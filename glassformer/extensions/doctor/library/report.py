"""Examination: every test of the doctor in an engineer's order, and the report as JSON, Markdown and text.

Reports are saved as JSON, for programs, and as Markdown, for a thread. Markdown is a sentence, which a page may draw in
another language; JSON and the terminal are in English.

    report = examine(transformer.load("checkpoints/zh-en"))
    print(report)

A test is a function from a context to its result. To do something between tests, such as serving others, run the
`TESTS` one by one with `run_test`.

A wiring fault also makes the model write badly, so many tests find it. The one that names it comes first; the others
say that they follow from it.
"""

from __future__ import annotations

import json
import math
import textwrap
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from glassformer.extensions.doctor.library import (
    attention_tests,
    feed_forward_tests,
    loss_tests,
    output_tests,
    parameter_tests,
    tokenizer_tests,
    wiring_tests,
)
from glassformer.extensions.doctor.library.context import (
    BELOW,
    WIRING,
    DoctorTest,
    ExaminationContext,
    Origin,
    ParameterContext,
)
from glassformer.extensions.doctor.library.findings import AREAS, VERDICTS, Finding, Health, Verdict, not_applicable
from glassformer.extensions.doctor.library.loss_tests import COLUMNS as COLUMNS_OF_PAIRS
from glassformer.extensions.doctor.library.loss_tests import Pair, pairs_of
from glassformer.extensions.doctor.library.wiring_tests import compared, example, searched
from glassformer.extensions.importers.library.report import ImportReport, UnopenedTensors
from glassformer.extensions.wirings.search import SearchResult
from transformer.analysis.losses import Samples
from transformer.checkpoint.load import Checkpoint
from transformer.errors import GlassformerError, shown
from transformer.i18n import Sentence, joined, say, say_n, through

TESTS: tuple[DoctorTest, ...] = (
    *parameter_tests.TESTS,
    feed_forward_tests.zero_rows,
    *wiring_tests.TESTS,
    *output_tests.ORDER_TESTS,
    *output_tests.TESTS,
    *loss_tests.TESTS,
    *attention_tests.TESTS,
    *feed_forward_tests.TESTS,
    *tokenizer_tests.TESTS,
)
_BY_NAME = {test.name: test for test in TESTS}
OF_PARAMETERS = tuple(test for test in TESTS if test.of_parameters)


def ordered(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Findings, some of which may be still to come, from the worst on; causes before what follows from them."""
    named = [(_BY_NAME[one.test].cause, one) for one in findings if one.verdict == "broken" and one.test in _BY_NAME]
    causes = [pair for pair in named if 0 < pair[0] <= BELOW or (pair[0] and pair[1].measured.headline)]
    rank, cause = min(causes, key=lambda pair: pair[0], default=(0, None))
    if cause is not None:
        findings = [one if one is cause else _following(one, cause, from_wiring=rank == WIRING) for one in findings]
    worst = {name: i for i, name in enumerate(VERDICTS)}
    return tuple(sorted(findings, key=lambda one: (worst[one.verdict], bool(one.follows), one.test != "wiring")))


def _following(one: Finding, cause: Finding, *, from_wiring: bool) -> Finding:
    test = _BY_NAME.get(one.test)
    follows = test is not None and (test.of_outputs or (from_wiring and test.of_wiring))
    said = cause.measured.headline or cause.title
    return replace(one, follows=said) if follows and one.verdict in ("broken", "look") else one


Progress = Callable[[int, int, Sentence], None]
"""Told how many tests are done, how many there are, and what the next one tests."""


def untested(test: DoctorTest, why: Sentence) -> Finding:
    """The finding of a test that could not be made."""
    return Finding(test=test.name, area=test.area, title=test.title, measured=not_applicable(why))


def run_test(test: DoctorTest, patient: ExaminationContext | ParameterContext) -> Finding:
    """The finding of one test; a test that cannot run says why."""
    begun = time.perf_counter()
    try:
        measured = test.measure(patient)
    except GlassformerError as error:
        measured = not_applicable(say("This could not be tested: {problem}", problem=error.sentence))
    except (IndexError, RuntimeError) as error:  # torch's own, of a model so damaged that it cannot be computed
        problem = shown(f"{error}".strip().split("\n")[0])
        measured = not_applicable(say("This could not be tested: torch reported {problem}.", problem=problem))
    seconds = time.perf_counter() - begun
    if not isinstance(patient, ExaminationContext):  # no page can show it yet
        measured = replace(measured, shown=None)
    return Finding(test=test.name, area=test.area, title=test.title, measured=measured, seconds=seconds)


def examine(
    checkpoint: Checkpoint,
    *,
    pairs: Samples | None = None,
    seed: int = 0,
    reported: float | None = None,
    tests: Collection[str] = (),
    pause: Callable[[], None] = lambda: None,
    progress: Progress = lambda *_: None,
) -> Report:
    """Examine a checkpoint of any kind.

    Args:
        pairs: Pairs of source and reference, or texts alone; None for the card's examples.
        seed: Decides which of many sentences are used, and every other random choice.
        reported: The loss that training reported on unseen texts, in nats per piece; None for the loss in the
            checkpoint's training.csv, if it has one.
        tests: Names of the only tests to make; empty for all.
        pause: Called now and then.
    """
    patient, findings = ExaminationContext(checkpoint, pairs, seed, pause, reported), []
    made = [test for test in TESTS if not tests or test.name in tests]
    for n, test in enumerate(made):
        progress(n, len(made), test.title)
        pause()
        findings.append(run_test(test, patient))
    return Report.of(patient, findings)


def examine_unopened(
    report: ImportReport,
    tensors: UnopenedTensors,
    *,
    run: Callable[[DoctorTest, ParameterContext], Finding] = run_test,
    pause: Callable[[], None] = lambda: None,
) -> Report:
    """What can be said of a file whose model has open questions, which `report` asks: tests of its tensors alone."""
    known = {one.name: one.value for one in report.fields if one.how != "asked"}
    padding = [i for i in (known["pad_id"],) if i is not None] if "pad_id" in known else None
    with tensors.open_again() as weights:
        patient = ParameterContext(lambda: tensors.each(weights), known.get("d_model"), padding, pause)
        findings = tuple(run(test, patient) for test in OF_PARAMETERS)
    return Report(report.source, "", "none", 0, findings, asked=tuple(one.name for one in report.asked))


SCHEMA: Final = "glassformer.doctor"
SCHEMA_VERSION: Final = 1
"""One more where a field is renamed, left out or means something else; new fields may come without."""
COLUMNS = 100  # of a terminal


@dataclass(frozen=True)
class Report:
    """What an examination found."""

    checkpoint: str  # name of the checkpoint
    content_hash: str  # of the checkpoint
    origin: Origin  # where the sentences came from
    n_sentences: int  # how many were used
    findings: tuple[Finding, ...]  # one a test, in the order of the examination
    pairs: tuple[Pair, ...] = ()  # what was made of the first pairs; none without pairs
    asked: tuple[str, ...] = ()  # fields with open questions: then only tensors were tested
    search: SearchResult | None = None  # what the search for a wiring found; None if there was none
    # A pair under two wirings, if another one explains the pairs, as `wiring_tests.example` has it.
    example: tuple[str, str, str, str] | None = None

    @staticmethod
    def of(patient: ExaminationContext, findings: Sequence[Finding]) -> Report:
        """The report of a patient."""
        checkpoint = patient.checkpoint
        has_searched = any(one.test == "wiring" for one in findings)
        return Report(
            checkpoint.name, checkpoint.content_hash, patient.origin, len(patient.samples), tuple(findings),
            pairs_of(patient), search=searched(patient) if has_searched else None,
            example=example(patient) if has_searched else None,
        )  # fmt: skip

    def only(self, verdict: Verdict) -> tuple[Finding, ...]:
        """The findings with a verdict, causes before what follows from them."""
        return tuple(one for one in self.worst_first if one.verdict == verdict)

    @property
    def worst_first(self) -> tuple[Finding, ...]:
        """All findings: what is broken, what to look at, what is well, what says nothing."""
        return ordered(self.findings)

    @property
    def does_its_task(self) -> bool:
        """Whether it was tested that the model does what it was trained for: that needs pairs."""
        return any(one.test == "loss" and one.verdict != "not_applicable" for one in self.findings)

    @property
    def health(self) -> Health:
        """What all of it means."""
        if self.only("broken"):
            return "broken"
        return "look" if self.only("look") else "well" if self.does_its_task else "not_tested"

    def summary(self) -> Sentence:
        """One sentence that sums up."""
        broken, look, well = (self.only(verdict) for verdict in ("broken", "look", "well"))
        named = next((one.measured.headline for one in broken if one.measured.headline and not one.follows), "")
        if named:
            return say("{name} is broken. {cause}", name=self.checkpoint, cause=named)
        if broken:
            return say_n(
                "{name} is broken: {n} test failed.", "{name} is broken: {n} tests failed.", len(broken),
                name=self.checkpoint,
            )  # fmt: skip
        if look and self.asked:
            return say_n(
                "{name}: {n} finding in its tensors is worth a look; whether the model works is not known yet.",
                "{name}: {n} findings in its tensors are worth a look; whether the model works is not known yet.",
                len(look),
                name=self.checkpoint,
            )
        if self.asked:
            return say(
                "{name}: no fault was found in its tensors so far; whether the model works is not known yet.",
                name=self.checkpoint,
            )
        if look and not self.does_its_task:
            return say_n(
                "{name}: {n} finding is worth a look; whether the model can do its task was not tested.",
                "{name}: {n} findings are worth a look; whether the model can do its task was not tested.",
                len(look),
                name=self.checkpoint,
            )
        nothing_right = any(one.test == "right" and one.measured.number == 0 for one in self.findings)
        if look and (nothing_right or any(one.area == "behaviour" for one in look)):
            return say_n(
                "{name} may not do its task: {n} finding is worth a look.",
                "{name} may not do its task: {n} findings are worth a look.",
                len(look),
                name=self.checkpoint,
            )
        if look:
            return say_n(
                "{name} works, as far as these tests can tell; {n} finding is worth a look.",
                "{name} works, as far as these tests can tell; {n} findings are worth a look.",
                len(look),
                name=self.checkpoint,
            )
        if not self.does_its_task:
            return say(
                "{name}: no fault was found in its numbers; its wiring and its task were not tested: that needs pairs.",
                name=self.checkpoint,
            )
        if nothing_right:
            return say("{name}: no fault was found, but no output equals its reference.", name=self.checkpoint)
        return say_n(
            "{name} is healthy: {n} test found nothing wrong.",
            "{name} is healthy: {n} tests found nothing wrong.",
            len(well),
            name=self.checkpoint,
        )

    def record(self) -> dict[str, Any]:
        """The report as plain data for JSON: texts in English, and null for what is not finite."""
        return {
            "schema": SCHEMA,
            "version": SCHEMA_VERSION,
            "checkpoint": self.checkpoint,
            "content_hash": self.content_hash,
            "sentences": {"origin": self.origin, "n": self.n_sentences},
            "verdict": self.health if self.findings else "not_applicable",
            "summary": str(self.summary()),
            "findings": [_record(one) for one in self.worst_first],
            "pairs": [asdict(one) for one in self.pairs],
            "wirings": [{"wiring": str(name), "loss": _finite(loss)} for name, loss in compared(self.search)],
            "questions": list(self.asked),
        }

    def to_json(self) -> str:
        """The report as JSON, findings from the worst on."""
        return json.dumps(self.record(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    def to_markdown(self) -> str:
        """The report as Markdown: what is wrong in full, the rest as lists."""
        return joined("\n\n", list(self._parts()))

    def _parts(self) -> Iterator[str]:
        yield say("## Doctor: {summary}", summary=_quoted(self.summary()))
        if self.asked:
            yield say("Tested {origin}.", origin=self.sentences_said())
        else:
            yield say("Checkpoint `{hash}`, {origin}.", hash=self.content_hash[:12], origin=self.sentences_said())
        for finding in filter(_is_wrong, told_once(self.worst_first)):
            yield from _in_full(finding)
        if len(wirings := compared(self.search)) > 1:
            yield say("### Wirings, by their loss on the pairs")
            yield joined("\n", [say("- {name}: {loss:.3g}", name=_quoted(name), loss=loss) for name, loss in wirings])
        if self.pairs:
            yield say("### Pairs ({n})", n=len(self.pairs))
            yield joined("\n", list(_table(self.pairs)))
        for verdict in ("well", "not_applicable"):
            rows = [
                say("- {title}: {said}", title=_quoted(one.title), said=_quoted(one.measured.said))
                for one in self.findings
                if one.verdict == verdict
            ]
            if rows:
                yield say("### {verdict} ({n})", verdict=VERDICTS[verdict], n=len(rows))
                yield joined("\n", rows)

    def sentences_said(self) -> Sentence:
        """Where the sentences came from, or that tensors alone were tested, as a clause."""
        if self.asked:
            return say_n(
                "from its tensors alone; the other {rest} tests need {n} answer about the model",
                "from its tensors alone; the other {rest} tests need {n} answers about the model",
                len(self.asked),
                rest=len(TESTS) - len(self.findings),
            )
        if self.origin == "none":
            return say("without sentences")
        if self.origin == "given":
            return say_n(
                "with {n} sentence that you provided", "with {n} sentences that you provided", self.n_sentences
            )
        return say_n("with {n} example from its card", "with {n} examples from its card", self.n_sentences)

    def __str__(self) -> str:
        """The report for a terminal, in English."""
        lines = [_wrapped(str(self.summary()), 0), f"({self.sentences_said()})"]
        for finding in told_once(self.worst_first):
            lines += _lines(finding)
        if self.pairs:
            lines += ["", *(_pair(one) for one in self.pairs)]
        return "\n".join(lines)

    def brief(self) -> str:
        """The same in a few lines: the headline, a line for each finding, and how many others there are."""
        wrong = [
            f"{VERDICTS[one.verdict].upper():<15}{one.title} [{one.test}]: {' '.join(one.measured.said.split())}"
            + (f" {follows(one.follows)}" if one.follows else "")
            for one in filter(_is_wrong, self.worst_first)
        ]
        well, silent = len(self.only("well")), len(self.only("not_applicable"))
        others = f"({VERDICTS['well']}: {well}, {VERDICTS['not_applicable']}: {silent})"
        return "\n".join([str(self.summary()), f"({self.sentences_said()})", *wrong, others])


def _is_wrong(one: Finding) -> bool:
    return one.verdict in ("broken", "look")


def told_once(findings: Sequence[Finding]) -> Iterator[Finding]:
    """Findings in which a text that an earlier one says is left out; for causes, the earlier one is named."""
    told: dict[str, Finding] = {}
    for one in findings:
        found, again = one.measured, dict[str, Any]()
        for name in ("meaning", "causes", "why") if _is_wrong(one) else ():
            first = told.setdefault(getattr(found, name), one)
            if first is not one:
                again[name] = say("As for “{title}”.", title=first.title) if name == "causes" and found.causes else ""
        yield replace(one, measured=replace(found, **again))


def follows(cause: str) -> Sentence:
    """That a finding follows from another one, by its title."""
    return say("This follows from the finding above: “{cause}”", cause=cause)


def _table(pairs: Sequence[Pair]) -> Iterator[str]:
    yield joined("", ["| ", joined(" | ", COLUMNS_OF_PAIRS), " |"])
    yield "|---|---|---|---|"
    for one in pairs:
        cells = (one.source, one.right, one.written, "" if one.loss is None else f"{one.loss:.3g}")
        yield f"| {' | '.join(_quoted(cell) for cell in cells)} |"


def _record(finding: Finding) -> dict[str, Any]:
    measured = asdict(finding.measured)
    return {
        "test": finding.test,
        "area": finding.area,
        "title": str(finding.title),
        "verdict": finding.verdict,
        **{name: _finite(measured[name]) for name in ("number", "threshold")},
        **{name: str(measured[name]) for name in ("said", "why", "headline", "meaning", "causes")},
        "follows": str(finding.follows),
        "places": list(finding.measured.places),
        "code": [[str(line).strip() for line in lines] for lines in finding.measured.code],
        "shown": measured["shown"],
        "seconds": round(finding.seconds, 3),
    }


def _finite(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None


def _in_full(finding: Finding) -> Iterator[str]:
    measured = finding.measured
    yield say(
        "### {verdict}: {title} ({area})", verdict=VERDICTS[finding.verdict], title=_quoted(finding.title),
        area=AREAS[finding.area],
    )  # fmt: skip
    if measured.headline:
        yield say("**{text}**", text=_quoted(measured.headline))
    if finding.follows:
        yield follows(_quoted(finding.follows))
    yield _quoted(measured.said)
    if measured.places:
        more = [say("and {n} more", n=measured.more)] if measured.more else []
        yield joined(", ", [*(_code(one) for one in measured.places), *more])
    for codes in measured.code:
        titles = say("In the code, probably:"), say("It should be:")
        parts = [(title, "```python", _bare(code), "```") for title, code in zip(titles, codes, strict=True)]
        yield joined("\n", [line for part in parts for line in part])
    if measured.meaning:
        yield _quoted(measured.meaning)
    if measured.causes:
        yield say("**Usual causes:** {causes}", causes=_quoted(measured.causes))
    if measured.why:
        yield say("**Threshold:** {why}", why=_quoted(measured.why))


@through
def _bare(text: str) -> str:
    return text.strip()


@through
def _quoted(text: str) -> str:
    """A text of ours with data in it, on one line; data is escaped for Markdown, code stays code."""
    parts = " ".join(text.split()).split("`")
    if len(parts) % 2 == 0:  # a mark of code that nothing ends is data
        parts = ["\\`".join(parts)]
    for i in range(0, len(parts), 2):
        for sign in "*_<[#|":
            parts[i] = parts[i].replace(sign, "\\" + sign)
    return "`".join(parts)


def _code(text: str) -> str:
    flat = " ".join(text.split())
    mark, space = "`" * (flat.count("`") + 1), " " * ("`" in flat)
    return f"{mark}{space}{flat}{space}{mark}"


def _lines(finding: Finding) -> list[str]:
    """A finding for a terminal: one that is wrong in full, the others in a line."""
    measured, verdict = finding.measured, str(VERDICTS[finding.verdict])
    if finding.verdict in ("well", "not_applicable"):
        return [_wrapped(f"{verdict:<15}{finding.title}: {measured.said}", 15)]
    causes = say("Usual causes: {causes}", causes=measured.causes) if measured.causes else ""
    cause = follows(finding.follows) if finding.follows else ""
    texts = [
        measured.headline, cause, measured.said, ", ".join(measured.places), measured.meaning, causes, measured.why
    ]  # fmt: skip
    head = ["", f"{verdict.upper():<15}{finding.title} [{finding.test}]"]
    titles = say("In the code, probably:"), say("It should be:")
    lines = [pair for each in measured.code for pair in zip(titles, each, strict=True)]
    code = [f"    {title}\n{textwrap.indent(str(line).strip(), ' ' * 8)}" for title, line in lines]
    return [
        *head,
        *(_wrapped(str(text), 4, first=4) for text in texts[:3] if text),
        *code,
        *(_wrapped(str(text), 4, first=4) for text in texts[3:] if text),
        "",
    ]


def _pair(one: Pair) -> str:
    mark = "=" if one.is_right else "x"
    loss = "" if one.loss is None else f"{one.loss:8.3g}  "
    return _wrapped(f"{mark} {loss}{one.source} -> {one.written} (right: {one.right})", 4)


def _wrapped(text: str, indent: int, *, first: int = 0) -> str:
    begin, rest = " " * first, " " * indent
    return textwrap.fill(text, COLUMNS, initial_indent=begin, subsequent_indent=rest, break_on_hyphens=False)
