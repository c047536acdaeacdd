"""A planted fault is found by the tests that name it, no other test says anything, and health is an empty row.

Whatever a fault is planted into, the tests in its `finds` must find it; those in its `sees` may, and where it wrecks
what the model writes, so may all that look at that.
"""

from functools import cache

import pytest

from glassformer.extensions.doctor.library.report import TESTS, examine
from tests.extensions.doctor.library.planted import FAULTS
from tests.healthy import TINY, healthy, texts
from tests.transformer.model.test_settings import asked_for, strange

WRECK = {test.name for test in TESTS if test.of_outputs}
BY_NAME = {fault.name: fault for fault in FAULTS}


@cache
def report_of(fault, base):
    """The report on a base with a fault, or on the healthy one."""
    report = examine(BY_NAME[fault].planted(base) if fault else healthy(base), pairs=texts(base))
    assert [one.test for one in report.findings] == [test.name for test in TESTS]
    assert fault or not [one.test for one in report.findings if "torch reported" in one.measured.said]
    return report


def said(fault, base):
    return {one.test for one in report_of(fault, base).findings if one.verdict in ("broken", "look")}


@pytest.mark.parametrize("base", TINY)
def test_a_healthy_checkpoint_is_an_empty_row(base):
    assert said("", base) == set()
    names = asked_for(healthy(base).model)  # settings of the table, and no others
    assert names
    assert not strange(names)


ALSO_ELSEWHERE = {  # those that other tests plant, too
    "NaN in one tensor", "infinite norm", "too few heads",
    "head without values", "head that is not read", "two equal heads", "no cross-attention", "swapped tokenizers",
    "scores scaled by width", "dead neurons", "collapsed embeddings", "one head", "untied sides",
    "layer as it was drawn", "scores not scaled", "untied output",
}  # fmt: skip


def planted(faults):
    """Each fault in the first base that can have it; in the second, or one of the others, where there is time."""
    return [
        pytest.param(name, base, marks=[pytest.mark.deep] * (second > 0 or name in ALSO_ELSEWHERE))
        for name in faults
        for second, base in enumerate(BY_NAME[name].bases[:2])
    ]


@pytest.mark.parametrize(("fault", "base"), planted(BY_NAME))
def test_a_fault_is_found_by_the_tests_of_its_row(fault, base, request):
    row = BY_NAME[fault]
    if "wiring" not in row.finds and request.node.get_closest_marker("deep") is None:
        request.getfixturevalue("few_wirings")
    found = said(fault, base)
    assert not {*row.finds} - found
    assert not found - {*row.finds, *row.sees} - (WRECK if row.wrecks else set())


WITHOUT_PAIRS = [
    ("trained on a leak", "leak"),
    *(pytest.param(fault, "s4", marks=pytest.mark.deep) for fault in (
        "scores not scaled", "one head", "keys drowned in noise", "layer as it was drawn")),
]  # fmt: skip


@pytest.mark.parametrize(("fault", "base"), WITHOUT_PAIRS)
def test_without_pairs_a_fault_is_found_or_the_task_is_said_not_to_be_tested(fault, base):
    report = examine(BY_NAME[fault].planted(base))
    assert report.health != "well"
    if report.health == "not_tested":
        assert "its task were not tested" in report.summary()
        assert "there are no pairs" in next(one for one in report.findings if one.test == "loss").measured.said


@pytest.mark.parametrize(("fault", "base"), [("positions shifted", "s4"), ("norms swapped", "s4")])
def test_what_the_model_writes_follows_from_the_setting_that_is_named_first(fault, base):
    report = report_of(fault, base)
    first, *others = (*report.only("broken"), *report.only("look"))
    assert first.measured.headline
    assert first.measured.headline in report.summary()
    loss = next(one for one in others if one.test == "loss")
    assert loss.follows == first.measured.headline


def test_a_leak_comes_first_and_the_rest_follows_from_it():
    report = report_of("trained on a leak", "leak")
    first = report.worst_first[0]
    assert first.test == "wiring"
    assert "trained without the causal mask" in report.summary()
    assert "tril()" in first.measured.code[0][1]
    assert all(one.follows == first.measured.headline for one in report.only("broken")[1:])
    assert f"“{first.measured.headline}”" in report.to_markdown()


def test_each_test_that_must_find_a_fault_is_there_once():
    names = [test.name for test in TESTS]
    assert len(set(names)) == len(names)
    assert {name for fault in FAULTS for name in (*fault.finds, *fault.sees)} <= set(names)
