"""Findings x faults: which tests of the doctor say so when a fault is planted, and which do not.

A row is a fault; on every base, the tests before the bar must find it, those behind it may: they see what it does
elsewhere. No other test may say anything. A healthy checkpoint is a row without any.
"""

from functools import cache

import pytest

from tests.transformer.doctor.healthy import TINY, healthy, texts
from tests.transformer.doctor.planted import FAULTS
from transformer.doctor.examination import TESTS, examine

TABLE = """
no causal mask                  causality cache loss | lengths variety loss-by-position
mask shows one too many         causality cache loss | loss-by-position
mask shows one too few          own_token cache loss | lengths variety
source padding leaks            padding_source batch |
target padding leaks            padding_target |
NaN in one tensor               finite |
infinite norm                   finite |
head without values             dead-heads |
head that is not read           dead-heads |
two equal heads                 equal-heads |
source is lost                  source dead-heads variety loss | uniform-heads lengths
no cross-attention              source constant dead-heads variety loss |
swapped tokenizers              exchanged-tokenizers unknown-pieces loss |
positions shifted in the cache  cache |
positions shifted               position_shift | loss
positions missing               positions loss | ending lengths
too few heads                   n_heads | loss
too many heads                  n_heads |
norms swapped                   norm loss | repetition lengths variety
untied output                   copies |
untied sides                    copies |
collapsed embeddings            collapsed-embeddings loss | dead-neurons repetition ending lengths source
dead neurons                    dead-neurons | loss position_shift
trained on a leak               leak loss |
leaks as it was trained         causality cache leak free-running |
"""

ROWS = {
    row[:32].strip(): tuple(set(names.split()) for names in row[32:].split("|")) for row in TABLE.strip().splitlines()
}
BY_NAME = {fault.name: fault for fault in FAULTS}


@cache
def findings(fault, base):
    """What is found in a base with a fault, or in the healthy one: the verdicts, by the tests."""
    checkpoint = BY_NAME[fault].planted(base) if fault else healthy(base)
    found = examine(checkpoint, pairs=texts(base)).findings
    assert [one.test for one in found] == [test.name for test in TESTS]
    return {one.test: one.verdict for one in found}


def said(fault, base):
    return {test for test, verdict in findings(fault, base).items() if verdict in ("broken", "look")}


@pytest.mark.parametrize("base", TINY)
def test_a_healthy_checkpoint_is_an_empty_row(base):
    assert said("", base) == set()


@pytest.mark.parametrize(("fault", "base"), [(name, base) for name in ROWS for base in BY_NAME[name].bases])
def test_a_fault_is_found_by_the_tests_of_its_row(fault, base):
    must, may = ROWS[fault]
    found = said(fault, base)
    assert must <= found, f"missed by {must - found}"
    assert found <= must | may, f"not the business of {found - must - may}"


def test_the_table_names_tests_that_there_are():
    assert set().union(*(must | may for must, may in ROWS.values())) <= {test.name for test in TESTS}
