"""Examination: every test of the doctor, in the order of a good engineer's checklist, run on a checkpoint.

    report = examine(transformer.load("checkpoints/zh-en"))
    print(report)

A test is a function from a patient to what it measured. To do something between two tests, such as serving others,
run the `TESTS` one by one with `run_test`.

A model that is put together wrongly also writes badly. What it writes is looked at by many tests, and one mistake
below makes all of them speak. The one that names it comes first, and the others say that they follow from it.
"""

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from glassformer.extensions.doctor.library import (
    attention_tests,
    calibration,
    feed_forward_tests,
    foresight,
    outputs,
    parameter_tests,
    setting_tests,
    tokenizers,
    wiring,
)
from glassformer.extensions.doctor.library.findings import VERDICTS, Finding, not_applicable
from glassformer.extensions.doctor.library.patient import BELOW, LEAK, Patient, Test
from glassformer.extensions.doctor.library.whole import Report
from transformer.checkpoint.load import Checkpoint
from transformer.errors import GlassformerError, shown
from transformer.i18n import Sentence, say
from transformer.trying.losses import Samples

TESTS: tuple[Test, ...] = (
    *parameter_tests.TESTS,
    *wiring.TESTS,
    *outputs.ORDER_TESTS,
    *foresight.TESTS,  # before settings: those of a model that was trained on a leak cannot be compared
    *setting_tests.TESTS,
    *outputs.TESTS,
    *calibration.TESTS,
    *attention_tests.TESTS,
    *feed_forward_tests.TESTS,
    *feed_forward_tests.EMBEDDING_TESTS,
    *tokenizers.TESTS,
)
_BY_NAME = {test.name: test for test in TESTS}


def ordered(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Findings, some of which may be still to come, from the worst on; causes before what follows from them."""
    named = [(_BY_NAME[one.test].cause, one) for one in findings if one.verdict == "broken" and one.test in _BY_NAME]
    causes = [pair for pair in named if 0 < pair[0] <= BELOW or (pair[0] and pair[1].measured.headline)]
    rank, cause = min(causes, key=lambda pair: pair[0], default=(0, None))
    if cause is not None:
        findings = [one if one is cause else _following(one, cause, from_leak=rank == LEAK) for one in findings]
    worst = {name: i for i, name in enumerate(VERDICTS)}
    return tuple(sorted(findings, key=lambda one: (worst[one.verdict], bool(one.follows), one.test != "leak")))


def _following(one: Finding, cause: Finding, *, from_leak: bool) -> Finding:
    test = _BY_NAME.get(one.test)
    follows = test is not None and (test.of_outputs or (from_leak and test.of_a_leak))
    said = cause.measured.headline or cause.title
    return replace(one, follows=said) if follows and one.verdict in ("broken", "look") else one


Progress = Callable[[int, int, Sentence], None]
"""Told how many tests are done, how many there are, and what the next one tests."""


def run_test(test: Test, patient: Patient) -> Finding:
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
    if measured.verdict == "broken" and test.cause in (LEAK, BELOW):
        patient.broken_below.append(test.name)
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
    patient, findings = Patient(checkpoint, pairs, seed, pause, reported), []
    made = [test for test in TESTS if not tests or test.name in tests]
    for n, test in enumerate(made):
        progress(n, len(made), test.title)
        pause()
        findings.append(run_test(test, patient))
    return Report.of(patient, findings)
