"""Run all tests of the doctor on a checkpoint, in the order of a good engineer's checklist.

    report = examine(transformer.load("checkpoints/zh-en"))
    print(report)

A test is a function from a patient to what it measured. To do something between two tests, such as serving others,
run the `TESTS` one by one with `run_test`.
"""

import time
from collections.abc import Callable, Collection

from glassformer.extensions.doctor.library.checklist import TESTS
from glassformer.extensions.doctor.library.findings import Finding, not_applicable
from glassformer.extensions.doctor.library.patient import BELOW, LEAK, Patient, Test
from glassformer.extensions.doctor.library.whole import Report
from transformer.checkpoint.load import Checkpoint
from transformer.errors import GlassformerError, shown
from transformer.i18n import Sentence, say
from transformer.trying.samples import Samples

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
