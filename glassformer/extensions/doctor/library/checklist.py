"""Every test, in the order of a good engineer's checklist, and which findings follow from which.

A model that is put together wrongly also writes badly. What it writes is looked at by many tests, and one mistake
below makes all of them speak. The one that names it comes first, and the others say that they follow from it.
"""

from collections.abc import Sequence
from dataclasses import replace

from glassformer.extensions.doctor.library import (
    attention_tests,
    calibration,
    embeddings,
    feed_forward_tests,
    foresight,
    order_used,
    outputs,
    parameter_tests,
    setting_tests,
    tokenizers,
    wiring,
)
from glassformer.extensions.doctor.library.findings import VERDICTS, Finding
from glassformer.extensions.doctor.library.patient import BELOW, LEAK, Test

TESTS: tuple[Test, ...] = (
    *parameter_tests.TESTS,
    *wiring.TESTS,
    *order_used.TESTS,
    *foresight.TESTS,  # before settings: those of a model that was trained on a leak cannot be compared
    *setting_tests.TESTS,
    *outputs.TESTS,
    *calibration.TESTS,
    *attention_tests.TESTS,
    *feed_forward_tests.TESTS,
    *embeddings.TESTS,
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
