"""Two runs line by line: the same numbers as plain pandas."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from transformer.corpus import paired
from transformer.corpus.tables import HEADS, SENTENCES
from transformer.errors import DataError

HEAD = ["kind", "layer", "head"]


def written(folder: Path, seed: int, *, lines: range, heads: int = 3, longer: int = 0) -> pd.DataFrame:
    """A run of two shards with two layers; some lines have no distance."""
    draw, folder = np.random.default_rng(seed), folder / str(seed)
    folder.mkdir()
    table = pd.DataFrame(
        [(line, kind, layer, head) for kind in ("cross", "encoder") for layer in (1, 2)
         for head in range(1, heads + 1) for line in lines],
        columns=["line", *HEAD],
    )  # fmt: skip
    table["distance"] = np.where(table.line % 5 == seed % 5, np.nan, draw.random(len(table), np.float32))
    shards = [table[table.line <= 10], table[table.line > 10]]
    for n, shard in enumerate(shards):
        _write(folder / f"heads-{n:06}.parquet", shard, HEADS)
        texts = pd.DataFrame({"line": sorted(set(shard.line))}).assign(target=None)
        texts["source"], texts["n_target"] = [f"line {line}" for line in texts.line], 7 + longer
        texts["log_prob"] = -draw.random(len(texts)).astype(np.float32)
        _write(folder / f"sentences-{n:06}.parquet", texts, SENTENCES)
    return table


def _write(path: Path, table: pd.DataFrame, schema: pa.Schema) -> None:
    rows = [
        {name: None if pd.isna(value) else value for name, value in row.items()} for row in table.to_dict("records")
    ]
    parquet.write_table(pa.Table.from_pylist(rows, schema=schema), path)


@pytest.fixture
def both(tmp_path: Path) -> pd.DataFrame:
    """Two runs of which one has other lines and one head more, joined by pandas."""
    first = written(tmp_path, 1, lines=range(1, 21))
    second = written(tmp_path, 2, lines=range(4, 24), heads=4)
    found = first.merge(second, on=["line", *HEAD], suffixes=("_1", "_2")).dropna()
    return found.assign(gap=found.distance_2.astype(float) - found.distance_1.astype(float))


def test_the_difference_of_each_head_is_that_of_pandas(tmp_path: Path, both: pd.DataFrame) -> None:
    found = paired.by_head(tmp_path / "1", tmp_path / "2", "distance")
    expected = both.groupby(HEAD)
    assert list(found) == list(expected.groups)
    for one, (_, rows) in zip(found.values(), expected, strict=True):
        reach = 1.959964 * rows.gap.std() / len(rows) ** 0.5
        assert one.n == len(rows) == 11
        assert one.mean == pytest.approx(rows.gap.mean())
        assert (one.low, one.high) == pytest.approx((rows.gap.mean() - reach, rows.gap.mean() + reach))
        assert one.excludes_0 == (abs(rows.gap.mean()) > reach)
    back = paired.by_head(tmp_path / "2", tmp_path / "1", "distance")
    assert all(back[head].mean == pytest.approx(-found[head].mean) for head in found)


def test_the_lines_that_differ_most_are_those_of_pandas(tmp_path: Path, both: pd.DataFrame) -> None:
    found = paired.most_different(tmp_path / "1", tmp_path / "2", "distance", ("cross", 2, 3), 4)
    mine = both[(both.kind == "cross") & (both.layer == 2) & (both["head"] == 3)]
    expected = mine.iloc[np.argsort(-mine.gap.abs())][:4]
    assert [one.line for one in found] == expected.line.tolist()
    assert [one.first for one in found] == pytest.approx(expected.distance_1.tolist())
    assert [one.source for one in found] == [f"line {line}" for line in expected.line]


def test_an_interval_holds_the_difference_as_often_as_it_says() -> None:
    draw = np.random.default_rng(0)
    gaps = draw.normal(size=(2000, 60))
    found = [
        paired.difference(60, 0.0, m, m, s) for m, s in zip(gaps.mean(axis=1), gaps.std(axis=1, ddof=1), strict=True)
    ]
    assert 0.93 < 1 - sum(one.excludes_0 for one in found) / 2000 < 0.97


def test_a_single_line_has_no_interval(tmp_path: Path) -> None:
    for seed in (1, 2):
        written(tmp_path, seed, lines=range(13, 14))
    found = paired.by_head(tmp_path / "1", tmp_path / "2", "distance")
    assert all((one.n, one.low, one.excludes_0) == (1, None, False) for one in found.values())
    assert len(found) == 12


@pytest.mark.parametrize(("longer", "alike"), [(0, True), (1, False)])
def test_whether_outputs_have_as_many_pieces_is_said(tmp_path: Path, longer: int, alike: bool) -> None:
    for seed in (1, 2):
        written(tmp_path, seed, lines=range(1, 21), longer=longer * (seed == 2))
    found, same = paired.of_loss(tmp_path / "1", tmp_path / "2")
    assert found is not None
    assert (found.n, same) == (20, alike)
    assert None not in (found.low, found.high)
    assert found.excludes_0 == (abs(found.mean) > found.high - found.mean)


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no table of heads"):
        paired.by_head(tmp_path, tmp_path, "distance")
    with pytest.raises(DataError, match="no measure of a corpus run"):
        paired.by_head(tmp_path, tmp_path, 'x" FROM y')  # type: ignore[arg-type]
