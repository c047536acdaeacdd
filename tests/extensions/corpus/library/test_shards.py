"""Shards of a run have the same bytes each time, are whole or not there, and only what is missing is measured."""

import errno
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from glassformer.extensions.corpus.library import lines, shards
from glassformer.extensions.corpus.library.folder import check, open_run
from glassformer.extensions.corpus.library.tables import SCHEMAS, CorpusLine, CorpusOptions
from tests.conftest import SOURCES, TARGETS
from transformer.analysis.alignment import SPACINGS
from transformer.errors import CheckpointError, DataError

OPTIONS = CorpusOptions(shard=4, vectors=2)


@pytest.fixture
def file(tmp_path):
    """Six pairs on eight lines: the second is empty, and so is the fifth."""
    rows = [f"{source}\t{target}" for source, target in zip(SOURCES, TARGETS, strict=True)]
    found = tmp_path / "pairs.tsv"
    found.write_text("\n".join([rows[0], "", *rows[1:3], " \t", *rows[3:]]) + "\n", encoding="utf-8")
    return found


@pytest.fixture
def plan(checkpoint, checkpoint_folder, file, tmp_path):
    def make(options=OPTIONS, *, path=file, most=None, given=checkpoint):
        return shards.plan(given, checkpoint_folder, lines.pairs(path, most=most), options, out=tmp_path, most=most)

    return make


def measure(run):
    with shards.claimed(run):
        for shard in run.missing():
            run.write(shard.number, run.job.files(shard))
        run.close()


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_shard_is_so_many_lines_of_the_file_and_lines_without_text_are_none(file):
    first, second = lines.shards(lines.pairs(file), 4)
    assert [one.number for one in first.lines] == [1, 3, 4]
    assert [one.number for one in second.lines] == [6, 7, 8]
    assert first.lines[0] == CorpusLine(1, SOURCES[0], TARGETS[0])
    assert [one.number for one in lines.pairs(file, most=2).lines()] == [1, 3]
    with pytest.raises(DataError, match="--max-pairs is 0; expected at least 1"):
        lines.pairs(file, most=0)
    file.write_text("a\n" + "\n" * 40 + "b \t\n", encoding="utf-8")
    found = [(one.number, one.lines) for one in lines.shards(lines.pairs(file), 4)]
    assert found == [(0, (CorpusLine(1, "a"),)), (10, (CorpusLine(42, "b"),))]


def test_sentences_with_gold_alignments_become_text(tmp_path):
    files = [tmp_path / name for name in ("src", "tgt", "gold")]
    for path, text in zip(files, ("我 爱\n\n书 。\n", "I love\n\na book .\n", "0-0 1-1\n\n0-1 1p2\n"), strict=True):
        path.write_text(text, encoding="utf-8")
    corpus = lines.aligned(files, source_text="joined", target_text="attached")
    assert list(corpus.lines()) == [CorpusLine(1, "我爱", "I love"), CorpusLine(3, "书。", "a book.")]
    (shard,) = lines.shards(corpus, 10)
    assert set(shard.gold) == {1, 3}
    assert shard.gold[3].links.sure == {(0, 1)}
    others = {lines.aligned(files, source_text="joined", target_text=name).sha256 for name in SPACINGS}
    assert len(others) == len(SPACINGS)


def test_a_run_is_read_back_and_the_rows_of_a_head_lie_together(plan, checkpoint):
    run = plan()
    measure(run)
    found = open_run(run.folder)
    assert found.about.complete
    assert (found.done, found.with_vectors, found.lines_done) == ((0, 1), (0,), 6)
    assert (found.about.checkpoint, found.about.content_hash) == (checkpoint.name, checkpoint.content_hash)
    for name in os.listdir(run.folder):
        if name.endswith(".parquet"):
            assert pq.read_schema(run.folder / name).equals(SCHEMAS[name.partition("-")[0]])
    parquet, config = pq.ParquetFile(run.folder / "heads-000001.parquet"), checkpoint.config
    groups = [parquet.read_row_group(i).to_pandas() for i in range(parquet.num_row_groups)]
    layers = {"encoder": config.n_encoder_layers, "decoder": config.n_decoder_layers, "cross": config.n_decoder_layers}
    places = [
        (kind, layer + 1, head + 1)
        for kind, n_layers in layers.items()
        for layer in range(n_layers)
        for head in range(config.n_heads)
    ]
    for place, group in zip(places, groups, strict=True):
        assert group[["kind", "layer", "head"]].drop_duplicates().to_numpy().tolist() == [list(place)]
        assert group["line"].tolist() == [6, 7, 8]


def test_another_question_has_another_folder(plan, file, checkpoint, monkeypatch):
    keys = {plan().folder, plan(replace(OPTIONS, shard=5)).folder, plan(replace(OPTIONS, decode=True)).folder}
    keys |= {plan(most=3).folder, plan(given=replace(checkpoint, content_hash="f" * 64)).folder}
    file.write_text(file.read_text() + "ba\tthe\n")
    keys.add(plan().folder)
    monkeypatch.setattr(shards, "code_version", lambda: "another")
    keys.add(plan().folder)
    assert len(keys) == 7
    assert plan().folder == plan().folder


def test_the_code_version_is_of_all_that_decides_the_numbers(tmp_path, monkeypatch):
    before = shards.code_version()
    here, root = Path(shards.__file__), Path(shards.__file__).parents[4]
    for folder in ("transformer", "glassformer/extensions/corpus", "glassformer/extensions/what_if"):
        shutil.copytree(root / folder, tmp_path / folder)
    monkeypatch.setattr(shards, "__file__", str(tmp_path / here.relative_to(root)))

    def changed(name):
        path = tmp_path / name
        path.write_text(path.read_text() + "\n")
        shards.code_version.cache_clear()
        return shards.code_version()

    ours = "glassformer/extensions/corpus/library"
    try:
        assert changed(f"{ours}/queries.py") == changed("transformer/i18n/sentence.py") == before
        names = f"{ours}/measures.py", "transformer/model/attention.py", "transformer/text/cells.py"
        assert len({before, *map(changed, names)}) == 4
    finally:
        shards.code_version.cache_clear()


def test_two_runs_do_not_write_one_folder(plan, tmp_path):
    run = plan()
    with shards.claimed(run):
        pid = os.fork()  # a process may take its own lock twice, so another one has to try
        if not pid:
            try:
                with shards.claimed(run):
                    os._exit(1)
            except DataError as error:
                os._exit(0 if "another run is writing there; wait for its end" in str(error) else 2)
            except BaseException:
                os._exit(3)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    with shards.claimed(run):
        pass


def test_a_full_disk_costs_nothing_that_is_there(plan, monkeypatch):
    run = plan()

    def write_both():
        first, second = run.missing()
        with shards.claimed(run):
            run.write(first.number, run.job.files(first))
            monkeypatch.setattr(os, "fsync", full)
            run.write(second.number, run.job.files(second))

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(DataError, match=r"cannot be written \(No space left on device\)\. 1 of 2 shards are complete"):
        write_both()
    tables = [f"{table}-000000.parquet" for table in ("heads", "rollup", "sentences", "vectors")]
    assert sorted(contents(run.folder)) == sorted([*tables, "about.json", "sums-000000.json"])
    assert not json.loads((run.folder / "about.json").read_text())["complete"]
    assert run.done() == {0}


def test_a_file_checkpoint_or_program_that_changes_meanwhile_is_noticed(plan, file):
    run = plan()
    (shard, *_) = run.missing()
    job = replace(run.job, content_hash="0" * 64)
    with pytest.raises(CheckpointError, match="was changed during the run"):
        job.files(shard)
    with pytest.raises(DataError, match="the program was changed during the run"):
        replace(job, code="another").files(shard)
    file.write_text(file.read_text().replace("fox", "hen"), encoding="utf-8")
    with pytest.raises(DataError, match="was changed during the run; run it again"):
        list(run.missing())


def flipped(content, place):
    changed = bytearray(content)
    changed[place % len(content)] ^= 1 << place % 8
    return bytes(changed)


def test_damage_or_the_table_of_another_shard_is_named_refused_and_measured_again(plan):
    run = plan()
    measure(run)
    before = contents(run.folder)
    for table in ("sentences", "heads", "rollup", "vectors"):
        path = run.folder / f"{table}-000000.parquet"
        content = before[path.name]
        for damaged in (content[:-1], b"", *(flipped(content, place) for place in (0, 97, 400, -9))):
            path.write_bytes(damaged)
            with pytest.raises(DataError, match=rf"{path.name}.* Run the same command again"):
                check(open_run(run.folder), table)
            assert run.damaged() == [path.name]
        assert [shard.number for shard in run.missing()] == [0]
        path.write_bytes(content)
        assert run.damaged() == []
    for path in run.folder.glob("*-000000.parquet"):
        path.write_bytes(flipped(before[path.name], 400))
    assert len(run.damaged()) == 4
    (run.folder / "rollup-000001.parquet").unlink()  # and one that was not finished
    (run.folder / ".heads-000001.parquet.part").write_bytes(b"half")
    assert [shard.number for shard in run.missing()] == [0, 1]
    measure(run)
    assert contents(run.folder) == before
    check(open_run(run.folder), "heads")
    shutil.copy(run.folder / "sentences-000001.parquet", run.folder / "sentences-000000.parquet")
    assert run.damaged() == ["sentences-000000.parquet"]


def test_without_its_checksums_a_shard_is_measured_again_and_can_be_read_if_there_are_none(plan):
    run = plan()
    measure(run)
    before, path = contents(run.folder), run.folder / "sums-000001.json"
    path.unlink()
    check(open_run(run.folder), "heads")  # as those of earlier versions
    assert run.damaged() == [path.name]
    for content in (b"", b"[]", b"{", b"{}"):
        path.write_bytes(content)
        with pytest.raises(DataError, match="Run the same command again"):
            check(open_run(run.folder), "heads")
        assert run.damaged()
    measure(run)
    assert contents(run.folder) == before
