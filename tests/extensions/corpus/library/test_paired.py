"""Two runs are compared line by line with plain pandas' numbers, or one sentence says why they cannot be."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from glassformer.extensions.corpus.library import queries, scores, tables
from glassformer.extensions.corpus.library.folder import ABOUT, open_run
from tests.extensions.corpus.library.made_runs import write_run
from transformer.errors import DataError, QueryError

HEAD = ["kind", "layer", "head"]


@pytest.fixture
def runs(tmp_path):
    """Two runs, of which the second has a head more in each layer and lacks the last 100 lines."""
    first = write_run(tmp_path, seed=1, per_layer=2, layers=2)
    return open_run(first), open_run(write_run(tmp_path, seed=2, per_layer=3, layers=2, done=2))


def table(run, name="heads"):
    parts = [pq.read_table(run.folder / file).to_pandas() for file in run.names(name)]
    return pd.concat(parts).astype({"kind": str} if name == "heads" else {})


def joined(runs, measure):
    """Both tables of heads by pandas, with the difference of a measure."""
    first, second = (table(run)[["line", *HEAD, measure]].dropna() for run in runs)
    found = first.merge(second, on=["line", *HEAD], suffixes=("_1", "_2"))
    return found.assign(gap=found[f"{measure}_2"].astype(float) - found[f"{measure}_1"].astype(float))


def test_the_difference_of_each_head_is_that_of_pandas(runs):
    found, expected = scores.by_head(*runs, "previous"), joined(runs, "previous").groupby(HEAD)
    assert list(found) == list(expected.groups)
    assert {head for _, _, head in found} == {1, 2}
    for one, (_, rows) in zip(found.values(), expected, strict=True):
        reach = 1.959964 * rows.gap.std() / len(rows) ** 0.5
        assert 140 < one.n == len(rows) < 180
        assert one.mean == pytest.approx(rows.gap.mean())
        assert (one.low, one.high) == pytest.approx((rows.gap.mean() - reach, rows.gap.mean() + reach))
        assert one.excludes_0 == (abs(rows.gap.mean()) > reach)
    back = scores.by_head(*runs[::-1], "previous")
    assert all(back[head].mean == pytest.approx(-found[head].mean) for head in found)


def test_the_lines_that_differ_most_are_those_of_pandas(runs):
    found = scores.most_different(*runs, "distance", ("cross", 2, 1), 4)
    rows = joined(runs, "distance")
    mine = rows[(rows.kind == "cross") & (rows.layer == 2) & (rows["head"] == 1)]
    expected = mine.iloc[np.argsort(-mine.gap.abs())][:4]
    assert [one.line for one in found] == expected.line.tolist()
    assert [one.second for one in found] == pytest.approx(expected.distance_2.tolist())
    assert all(one.source.startswith(f"Line {one.line}: ") for one in found)


def test_an_interval_holds_the_difference_as_often_as_it_says():
    gaps = np.random.default_rng(0).normal(size=(2000, 60))
    both = zip(gaps.mean(axis=1), gaps.std(axis=1, ddof=1), strict=True)
    outside = sum(scores.difference(60, 0.0, m, m, s).excludes_0 for m, s in both)
    assert 0.03 < outside / 2000 < 0.07
    assert not scores.difference(1, 0.0, 1.0, 1.0, None).excludes_0


def test_numbers_that_are_not_finite_do_not_count(runs):
    run, file = runs[0], runs[0].folder / runs[0].names("heads")[0]
    expected = scores.by_head(run, run, "effect")[("cross", 1, 1)]
    rows = pq.read_table(file).to_pandas()
    of_it = rows.index[(rows.kind == "cross") & (rows.layer == 1) & (rows["head"] == 1)]
    rows.loc[of_it[0], "effect"] = np.inf
    pq.write_table(pa.Table.from_pandas(rows, schema=tables.HEADS, preserve_index=False), file)
    again = open_run(run.folder)
    queries._database.cache_clear()
    found = scores.by_head(again, again, "effect")[("cross", 1, 1)]
    assert (found.n, found.mean) == (expected.n - 1, 0)


def test_whether_losses_can_be_compared_is_said(runs):
    found, alike = scores.of_log_prob(*runs)
    first, second = (table(run, "sentences").set_index("line").log_prob.dropna().astype(float) for run in runs)
    gap = (second - first).dropna()
    assert (found.n, alike) == (len(gap), False) == (196, False)
    assert found.mean == pytest.approx(gap.mean())
    assert scores.of_log_prob(runs[0], runs[0])[1]


def test_what_cannot_be_compared_is_said(runs):
    with pytest.raises(QueryError, match="not a measure of a corpus run"):
        scores.by_head(*runs, 'x" FROM y')
    file = runs[1].folder / ABOUT
    about = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps(about | {"options": about["options"] | {"decode": True}}), encoding="utf-8")
    with pytest.raises(DataError, match=r"cannot be compared: .*--decode.* Measure both in the same way"):
        scores.paired(*(run.folder for run in runs), n_draws=2)
    file.write_text(json.dumps(about | {"sha256": "1" * 64}), encoding="utf-8")
    with pytest.raises(DataError, match="do not have the same lines"):
        scores.by_head(runs[0], open_run(runs[1].folder), "distance")


def test_scores_are_of_the_lines_that_both_have_and_of_the_same_draws(runs):
    found = scores.paired(*(run.folder for run in runs), n_draws=300)
    first, second = (table(run, "sentences").set_index("line") for run in runs)
    both = first.join(second, suffixes=("_1", "_2"), how="inner").dropna(subset=["log_prob_1"])
    losses = [-both[f"log_prob_{n}"].sum() / both[f"n_target_{n}"].sum() for n in (1, 2)]
    assert [found["loss"].first, found["loss"].second] == pytest.approx(losses)
    assert found["loss"].difference.value == pytest.approx(losses[1] - losses[0], rel=1e-4)
    assert found["loss"].difference.low < losses[1] - losses[0] < found["loss"].difference.high
    same = scores.paired(runs[0].folder, runs[0].folder, n_draws=50)["exact"].difference
    assert same.low < same.value == 0 < same.high  # of the same lines, but they are a choice
    assert same.high - same.low < 0.02
