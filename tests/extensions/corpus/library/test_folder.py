"""A run's folder is read strictly: what is complete is used, and a file that is not as it was is one sentence."""

import json
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from glassformer.extensions.corpus.library import folder, tables
from tests.extensions.corpus.library.made_runs import write, write_run
from transformer.errors import DataError


@pytest.fixture
def made(tmp_path):
    return write_run(tmp_path / "out", lines=250, layers=1, per_layer=2)


def change(made, **fields):
    path = made / "about.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def test_a_run_that_is_not_complete_can_be_used(tmp_path):
    made = write_run(tmp_path, lines=250, done=2, layers=1, per_layer=2)
    (made / "sentences-000002.parquet").write_bytes(b"half")  # its roll-up is not there yet
    run = folder.open_run(made)
    assert (run.done, run.lines_done, run.about.lines, run.about.complete) == ((0, 1), 200, 250, False)
    assert max(summary.n for summary in folder.summaries(run).values()) == 196  # 4 have a problem
    assert [run.shard_of(line) for line in (1, 100, 101, 200, 301)] == [0, 0, 1, 1, None]


def test_folders_are_looked_through_and_a_bad_run_leaves_the_others(tmp_path, made):
    other = write_run(tmp_path / "b", lines=50, seed=7, layers=1, per_layer=1)
    again = write_run(tmp_path / "b", lines=30, layers=1, per_layer=1)
    assert again.name == made.name  # as of the first folder's
    for name in ("notes", "c" * 16):  # no about.json yet
        (tmp_path / "b" / name).mkdir()
    bad = write_run(tmp_path / "b", lines=50, seed=9, layers=1, per_layer=1)
    (bad / "about.json").write_text("{")
    found, (problem,) = folder.runs([made.parent, tmp_path / "b", tmp_path / "nowhere"])
    assert [run.folder for run in found] == [made, other]
    assert problem.startswith(f"{bad.name}/about.json: it is not JSON")


def test_about_is_read_strictly(made):
    whole = (made / "about.json").read_text()
    no_shard = {"decode": False, "effect": True, "vectors": 0, "shard": 0}  # no division by zero
    wrong = [("format", 2), ("format", True), ("checkpoint", 3), ("files", [1]), ("lines", -1), ("lines", 1.5)]
    wrong += [("lines", 10**12), ("shards", None), ("complete", "yes"), ("sha256", None)]
    wrong += [("options", {"decode": 1}), ("options", no_shard)]
    contents = [json.dumps(json.loads(whole) | {field: value}).encode() for field, value in wrong]
    for content in (*contents, b"[]", b'{"format": 1, "format": 1}', b"\xff", b" " * 200_000):
        (made / "about.json").write_bytes(content)
        with pytest.raises(DataError, match=r"about\.json: "):
            folder.open_run(made)


def test_a_missing_file_of_a_complete_run_is_refused_and_so_are_more_shards_than_it_says(made):
    change(made, shards=2)
    with pytest.raises(DataError, match="shards"):
        folder.open_run(made)
    change(made, shards=3)
    for name in ("heads-000001", "sentences-000000", "rollup-000002"):
        path = made / f"{name}.parquet"
        content = path.read_bytes()
        path.unlink()
        with pytest.raises(DataError, match=r"files are missing; 2 of 3 shards are complete\. Run the same command"):
            folder.open_run(made)
        path.write_bytes(content)


# ---------------------------------------------------------------- files


def spoil_middle(path):
    """Right at both ends, so the footer is right; between them pages are missing, and others are not theirs."""
    content = path.read_bytes()
    middle = bytes(byte ^ 0x5A for byte in content[100 : len(content) // 2])
    path.write_bytes(content[:100] + middle + content[len(content) // 2 :])


def spoil_column(path):
    rows = pq.read_table(path)
    pq.write_table(rows.drop_columns(rows.column_names[:1]), path)


def spoil_type(path):
    rows = pq.read_table(path)
    pq.write_table(rows.set_column(0, rows.column_names[0], pa.array(["a"] * len(rows), pa.large_string())), path)


def spoil_link(path):
    path.symlink_to(path.rename(path.parent.parent / path.name))


def spoil_pipe(path):
    path.unlink()
    os.mkfifo(path)


SPOILS = {
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-20]),
    "another file": lambda path: path.write_bytes(b"PAR1" + os.urandom(200) + b"PAR1"),
    **{spoil.__name__: spoil for spoil in (spoil_middle, spoil_column, spoil_type, spoil_link, spoil_pipe)},
}


@pytest.mark.parametrize("spoil", SPOILS)
def test_a_file_that_cannot_be_used_is_refused_in_one_sentence(made, spoil):
    read = {"rollup": folder.summaries, "heads": lambda run: folder.check(run, "heads")}
    for table in read if spoil != "spoil_middle" else ("rollup",):  # of others the footer alone is looked at
        SPOILS[spoil](made / f"{table}-000001.parquet")
        with pytest.raises(DataError, match=rf"^{made.name}/{table}-000001\.parquet: .*\.$") as caught:
            read[table](folder.open_run(made))
        assert str(made.parent) not in str(caught.value)
        assert len(str(caught.value)) < 250


def test_rollups_that_do_not_add_up_and_more_rows_than_lines_are_refused(made):
    rows = pq.read_table(made / "rollup-000001.parquet", schema=None).cast(tables.ROLLUP)
    write(made, "rollup", 1, rows.set_column(4, tables.ROLLUP.field("n"), pa.array([5] * len(rows), pa.int64())))
    with pytest.raises(DataError, match="add up"):
        folder.summaries(folder.open_run(made))
    path = made / "sentences-000001.parquet"
    row = pq.read_table(path).slice(0, 1)
    rows = pa.table([pa.repeat(row[field.name][0], 200_000) for field in row.schema], schema=row.schema)
    pq.write_table(rows, path, compression="zstd")
    assert path.stat().st_size < 30_000  # equal rows are few bytes
    with pytest.raises(DataError, match="claims 200,000 rows"):
        folder.check(folder.open_run(made), "sentences")
