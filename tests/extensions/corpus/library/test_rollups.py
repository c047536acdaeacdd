"""Roll-ups of any shards in any order add up to pandas' numbers, and what does not add up is refused."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glassformer.extensions.corpus.library import tables
from glassformer.extensions.corpus.library.tables import Key, bins_of, merged, rolled_up, summary_of
from tests.extensions.corpus.library.made_runs import KINDS, LACKING, heads
from transformer.errors import ClauseError

LINES = np.arange(1, 241, dtype=np.int32)
HEADS = heads(LINES, np.random.default_rng(3), layers=2, per_layer=2)
FEW = heads(LINES, np.random.default_rng(4), layers=1, per_layer=1)
VALUES = st.lists(st.floats(-30, 130, width=32), min_size=1, max_size=60)


def rows_of(table, lines):
    return table.filter(pa.compute.is_in(table["line"], pa.array(lines, pa.int32())))


def alike(one, other):
    """Whether two roll-ups are the same: counts exactly, sums to the last bits."""
    assert one.keys() == other.keys()
    for key in one:
        assert one[key].n == other[key].n
        assert np.array_equal(one[key].counts, other[key].counts)
        assert one[key].sum == pytest.approx(other[key].sum, rel=1e-12, abs=1e-9)
        assert one[key].squares == pytest.approx(other[key].squares, rel=1e-12, abs=1e-9)


def test_numbers_are_those_of_pandas():
    found = merged([rolled_up(HEADS)])
    frame = HEADS.to_pandas().astype(dict.fromkeys(tables.NAMES, "float64"))
    groups = frame.groupby(["kind", "layer", "head"], observed=True)[list(tables.NAMES)]
    for name, statistic in (("n", "count"), ("mean", "mean"), ("deviation", "std")):
        by_pandas = getattr(groups, statistic)()
        for key, summary in found.items():
            assert getattr(summary, name) == pytest.approx(by_pandas.loc[key.kind, key.layer, key.head][key.measure])


def test_a_measure_that_no_line_has_has_no_row():
    found = {(key.kind, key.measure) for key in merged([rolled_up(HEADS)])}
    assert found == {(kind, name) for kind in KINDS for name in tables.NAMES if name not in LACKING[kind]}
    assert rolled_up(HEADS.slice(0, 0)).num_rows == 0
    assert merged([]) == {}


@settings(max_examples=20)
@given(st.permutations(range(4)), st.lists(st.integers(0, 3), min_size=240, max_size=240))
def test_any_shards_in_any_order_add_up_to_the_same(order, shard_of):
    shards = [rolled_up(rows_of(FEW, LINES[np.array(shard_of) == shard])) for shard in order]
    alike(merged(shards), merged([rolled_up(FEW)]))


def test_the_same_rows_in_another_order_are_the_same_bytes():
    order = np.random.default_rng(0).permutation(len(HEADS))
    assert rolled_up(HEADS.take(order)).equals(rolled_up(HEADS))


@given(VALUES, st.sampled_from(tables.NAMES), st.sampled_from(KINDS), st.floats(0, 1))
def test_a_quantile_is_off_by_less_than_a_bin(values, name, kind, share):
    bins, values = bins_of(kind, name), np.array(values)
    summary = summary_of(Key(kind, 1, 1, name), values)
    exact, found = np.quantile(values, share, method="lower"), summary.quantile(share)
    if bins.least <= exact <= bins.most:
        assert abs(found - exact) <= bins.width * (1 + 1e-9)
    else:
        assert found is None


@given(VALUES)
def test_each_value_is_in_its_bin(values):
    bins, values = tables.Bins(-20.0, 100.0, 7), np.array(values)
    places, edges = bins.places(values), bins.edges
    inside = (places > 0) & (places <= bins.n)
    assert (values[places == 0] < bins.least).all()
    assert (values[places == bins.n + 1] > bins.most).all()
    assert (edges[places[inside] - 1] <= values[inside]).all()
    assert (values[inside] <= edges[places[inside]]).all()


def test_what_is_not_finite_does_not_count():
    summary = summary_of(Key("encoder", 1, 1, "self"), np.array([0.5, np.nan, np.inf, 1.0]))
    assert (summary.n, summary.sum, summary.counts.sum()) == (2, 1.5, 2)
    assert summary_of(Key("encoder", 1, 1, "self"), np.array([np.nan])) is None
    summary = summary_of(Key("encoder", 1, 1, "self"), np.array([0.5]))  # one line has no interval
    assert (summary.mean, summary.deviation, summary.interval) == (0.5, None, None)


def test_the_interval_has_the_mean_in_95_of_100_samples():
    draws = np.random.default_rng(1).beta(1, 3, (1_000, 200))  # their mean is 1/4
    intervals = [summary_of(Key("encoder", 1, 1, "self"), sample).interval for sample in draws]
    assert 0.93 < np.mean([low < 0.25 < high for low, high in intervals]) < 0.97


@pytest.mark.parametrize(
    ("column", "value"), [("bins", [1, 2]), ("n", 7), ("n", None), ("sum", float("nan")), ("measure", "unknown")]
)
def test_a_rollup_that_does_not_add_up_is_refused(column, value):
    row = rolled_up(HEADS).slice(0, 1).to_pylist()[0]
    with pytest.raises(ClauseError, match="a roll-up"):
        merged([pa.Table.from_pylist([row | {column: value}], schema=tables.ROLLUP)])
    row["bins"][:2] = [row["bins"][0] - 1_000, row["bins"][1] + 1_000]
    with pytest.raises(ClauseError, match="does not add up"):
        merged([pa.Table.from_pylist([row], schema=tables.ROLLUP)])
