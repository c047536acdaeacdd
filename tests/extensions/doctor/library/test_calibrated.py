"""Numbers in sentences about the shipped checkpoints are those that an examination of today measures."""

import math
import re
from dataclasses import replace
from functools import cache

import pytest

import transformer
from glassformer.extensions.doctor.library import findings
from glassformer.extensions.doctor.library.findings import at_least, at_most, record
from glassformer.extensions.doctor.library.report import TESTS, examine
from tests.extensions.doctor.library.planted import FAULTS
from tests.healthy import FOREIGN, NAMES
from tools.calibrate import QUOTED, SHIPPED, numbers_of, shipped

RUN = "run `python -m tools.calibrate`"
LEAK = "reverse-leak"  # trained on a leak on purpose


@cache
def report_of(name):
    return examine(transformer.load(SHIPPED / name))


LARGE = ("en-fr", "zh-en")  # whose examinations take five times as long as those of all others
EACH = [pytest.param(name, marks=[pytest.mark.deep] * (name in LARGE)) for name in shipped()]
HEALTHY = [one for one in EACH if one.values != (LEAK,)]


@pytest.mark.parametrize("name", EACH)
def test_the_file_has_the_numbers_of_this_very_checkpoint(name):
    kept = {test: numbers[name] for test, numbers in record()["numbers"].items() if name in numbers}
    # By less than what sentences leave to rounding; of small numbers more, as a single row of a share may flip.
    found = pytest.approx(numbers_of(report_of(name).findings), rel=findings.ROOM, abs=2e-3)
    assert kept == found, RUN


@pytest.mark.parametrize("name", HEALTHY)
def test_a_shipped_checkpoint_is_healthy(name):
    found = report_of(name)
    assert not [(one.test, one.measured.said) for one in (*found.only("broken"), *found.only("look"))]
    assert (
        "100% of all values have 16 bits"
        in next(one for one in found.findings if one.test == "precision").measured.said
    )


@pytest.mark.parametrize("name", EACH)
def test_rounding_stays_far_below_what_is_allowed(name):
    for one in (one.measured for one in report_of(name).findings if one.test in ("batch", "cache")):
        assert one.number is None or one.number < one.threshold / 10


def test_the_file_names_every_shipped_checkpoint_and_test():
    hashes = {name: transformer.load(SHIPPED / name).content_hash for name in shipped()}
    assert record()["checkpoints"] == hashes, RUN
    assert {test.partition(".")[0] for test in record()["numbers"]} == set(QUOTED) <= {test.name for test in TESTS}
    texts = [str(getattr(test, text)) for test in TESTS for text in ("why", "meaning", "causes")]
    assert not [text for text in texts if re.search(r"\bnan\b", text)]


def test_the_report_in_the_documentation_is_printed_today():
    fault = next(one for one in FAULTS if one.name == "norms swapped")
    report = str(examine(replace(fault.planted("reverse"), name="reverse"))).splitlines()
    page = (SHIPPED.parent / "docs" / "opening.md").read_text(encoding="utf-8")
    lines = re.search(r"```\n(reverse is broken.*?)\n```", page, flags=re.DOTALL).group(1).splitlines()
    assert report[: len(lines)] == lines
    assert "nine healthy models, six of them from other programs" in page
    assert (len(NAMES), len(FOREIGN)) == (9, 6)


@pytest.mark.parametrize(
    "number", [0.0, 0.21, 0.0798, 1.0716, 57.456, 2016.3, 5.2e-3, -0.015, -3.5, 0.2, 0.09995, 1e-9]
)
def test_a_bound_is_rounded_outwards_with_room_for_another_processor(number, monkeypatch):
    monkeypatch.setattr(findings, "record", lambda: {"numbers": {"one": {"a": number}}})
    low, high, room = at_least("one"), at_most("one"), findings.ROOM * abs(number)
    assert low <= number - room <= number + room <= high
    assert high - low <= 0.25 * abs(number)
    assert all(float(f"{bound:.2g}") == bound for bound in (low, high))
    assert math.isnan(at_most("none"))
