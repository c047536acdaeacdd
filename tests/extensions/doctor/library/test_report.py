"""Each form in which a report is saved says all, the worst first and causes once, and data in it stay data."""

import json
import math
from dataclasses import replace

import pytest

from glassformer.extensions.doctor.library.findings import DoctorTestResult, Finding, PageTarget
from glassformer.extensions.doctor.library.report import SCHEMA_VERSION, Report, told_once
from transformer.i18n import PSEUDO, said, say

WRONG = Finding(
    test="causality",
    area="wiring",
    title=say("No token sees a later one"),
    seconds=0.123456,
    measured=DoctorTestResult(
        verdict="broken",
        number=math.inf,
        threshold=0.0,
        said=say("{text} moves by {far}.", text="<b>*all*</b> a|b", far=2),
        why=say("Nothing may move."),
        meaning=say("It reads what it should predict."),
        causes=say("The mask is missing: `mask=None`."),
        places=("a `piece`", "x\n# no heading"),
        shown=PageTarget(page="masks", panel="checks", source="noon", layer=1),
    ),
)
RIGHT = Finding(
    test="batch", area="wiring", title=say("Together as alone"),
    measured=DoctorTestResult(verdict="well", number=1e-6, threshold=1e-3, said=say("All is equal.")),
)  # fmt: skip
OPEN = Finding(
    test="source", area="wiring", title=say("The source counts"),
    measured=DoctorTestResult(verdict="not_applicable", said=say("There is no sentence.")),
)  # fmt: skip


@pytest.fixture
def report():
    return Report("mine", "0123456789abcdef", "given", 2, (RIGHT, OPEN, WRONG))


def of(test, verdict, *, area="behaviour", number=1.0):
    return Finding(
        test=test, area=area, title=say("x"), measured=DoctorTestResult(verdict=verdict, number=number, said=say("x"))
    )


@pytest.mark.parametrize(
    ("findings", "says"),
    [
        ([of("loss", "well")], "is healthy"),
        ([of("loss", "well"), of("balance", "look", area="weights")], "works, as far as"),
        ([of("loss", "well"), of("ending", "look")], "may not do its task"),
        ([of("loss", "well"), of("right", "not_applicable", number=0.0)], "no output equals"),
        ([of("loss", "well"), of("right", "not_applicable", number=0.0), of("balance", "look", area="weights")],
         "may not do its task"),
    ],
)  # fmt: skip
def test_it_works_only_where_what_it_does_was_found_good(findings, says):
    assert says in Report("mine", "0" * 64, "given", 3, tuple(findings)).summary()


def test_json_is_strict_and_holds_everything_with_the_worst_first(report):
    found = json.loads(report.to_json(), parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert (found["schema"], found["version"]) == ("glassformer.doctor", SCHEMA_VERSION)
    assert (found["checkpoint"], found["verdict"]) == ("mine", "broken")
    assert found["sentences"] == {"origin": "given", "n": 2}
    assert [one["test"] for one in found["findings"]] == ["causality", "batch", "source"]
    first = found["findings"][0]
    assert first["number"] is None  # infinite
    assert first["threshold"] == 0.0
    assert first["said"] == "<b>*all*</b> a|b moves by 2."
    assert first["causes"] == "The mask is missing: `mask=None`."
    assert first["places"] == ["a `piece`", "x\n# no heading"]
    assert first["shown"]["source"] == "noon"
    assert first["seconds"] == 0.123
    assert found["findings"][1]["number"] == 1e-6


def test_markdown_begins_with_the_sum_and_what_is_wrong_and_data_in_it_are_text(report):
    text = report.to_markdown()
    parts = text.split("\n\n")
    assert parts[0] == "## Doctor: mine is broken: 1 test failed."
    assert "`0123456789ab`" in parts[1]
    assert "2 sentences that you provided" in parts[1]
    assert parts[2] == "### broken: No token sees a later one (Wiring)"
    assert text.index("No token sees") < text.index("### well (1)") < text.index("### not applicable (1)")
    assert "- Together as alone: All is equal." in text
    assert r"\<b>\*all\*\</b> a\|b moves by 2." in text
    assert "`mask=None`" in text  # code of ours stays code
    assert "`` a `piece` ``" in text
    assert "\n# no heading" not in text
    assert "It reads what it should predict" not in said(text, PSEUDO)


def test_the_terminal_s_text_fits_and_says_all_of_what_is_wrong(report):
    lines = str(report).splitlines()
    assert lines[0] == "mine is broken: 1 test failed."
    assert max(map(len, lines)) <= 100
    whole = " ".join(" ".join(lines).split())
    for text in (WRONG.measured.said, WRONG.measured.meaning, WRONG.measured.causes, WRONG.measured.why):
        assert str(text) in whole
    assert "BROKEN No token sees a later one [causality]" in whole


TWIN = replace(WRONG, test="cache", title=say("The cache changes nothing"), follows=WRONG.title)


def test_a_brief_report_has_one_line_for_each_finding(report):
    lines = replace(report, findings=(RIGHT, TWIN, OPEN, WRONG)).brief().splitlines()
    assert lines[:2] == ["mine is broken: 2 tests failed.", "(with 2 sentences that you provided)"]
    assert [line.split("[")[1].split("]")[0] for line in lines[2:4]] == ["causality", "cache"]
    assert all(line.startswith("BROKEN ") and "moves by 2." in line for line in lines[2:4])
    assert lines[4:] == ["(well: 1, not applicable: 1)"]


@pytest.mark.parametrize("form", [str, Report.to_markdown])
def test_equal_causes_are_printed_once(report, form):
    text = form(replace(report, findings=(WRONG, TWIN, replace(TWIN, test="batch"))))
    for once in ("The mask is missing: `mask=None`.", "It reads what it should predict.", "Nothing may move."):
        assert text.count(once) == 1
    assert text.count("As for “No token sees a later one”.") == 2
    assert "As for" not in form(report)
    assert json.loads(report.to_json())["findings"][0]["causes"]  # programs get them all


def test_a_report_without_findings_or_causes_can_be_saved():
    empty = Report("mine", "0" * 64, "none", 0, ())
    assert json.loads(empty.to_json())["verdict"] == "not_applicable"
    assert "without sentences" in empty.to_markdown()
    _, again = told_once((WRONG, TWIN))
    assert (again.measured.causes, again.measured.why) == ("As for “No token sees a later one”.", "")
    bare = [replace(one, measured=replace(one.measured, causes="", why="", meaning="")) for one in (WRONG, TWIN)]
    assert list(told_once(bare)) == bare
