"""`corpus` writes the same files however often it is killed, sums them up, and says what is wrong in a sentence."""

import hashlib
import multiprocessing
import os
import random
import re
import signal
import sys
import time
from pathlib import Path

import pytest
import torch

from glassformer.extensions.corpus.library import pool
from glassformer.extensions.corpus.library.folder import open_run
from transformer.__main__ import main

ROOT = Path(__file__).parents[3]
REVERSE, PALINDROME = (str(ROOT / "checkpoints" / name) for name in ("reverse", "palindrome"))


@pytest.fixture(autouse=True)
def forked(monkeypatch):
    """As a command is, which has no threads; pytest has some."""
    if sys.platform == "linux":
        monkeypatch.setattr(pool, "_context", lambda job: multiprocessing.get_context("fork"))


@pytest.fixture
def file(tmp_path):
    """60 words and what they are backwards; two that cannot be measured."""
    rng = random.Random(0)
    words = ["".join(rng.choices("abcdefghij", k=rng.randint(2, 9))) for _ in range(60)]
    rows = [f"{word}\t{word[::-1]}" for word in words]
    rows[7:7] = ["glass", "", "abc" * 20 + "\tcba"]
    found = tmp_path / "words.tsv"
    found.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return found


def command(file, out, *more, checkpoint=REVERSE):
    return ["corpus", checkpoint, "--pairs", str(file), "--out", str(out), "--processes", "1", *more]


def contents(out):
    return {str(path.relative_to(out)): hashlib.sha256(path.read_bytes()).digest() for path in out.rglob("*.*")}


def test_the_end_says_what_was_found_and_where_it_is(file, tmp_path, capsys):
    out = tmp_path / "runs"
    assert main(command(file, out, "--shard", "40")) == 0
    said = capsys.readouterr().out
    assert re.search(r"^reverse over words.tsv: 60 lines, 95 % intervals$", said, re.MULTILINE)
    assert re.search(r"^  loss, nats per token  0\.\d{4}  \(0\.\d{4} to 0\.\d{4}\)$", said, re.MULTILINE)
    assert re.search(r"^  exact +\d+\.\d\d%  \(.*%\)$", said, re.MULTILINE)
    assert "  1 left out: This line has no second column" in said
    assert "  1 left out: The source has 61 tokens; reverse reads at most 13. Shorten it." in said
    assert re.search(r"^62 lines in [\d.]+ s: [\d,]+ sentences a second\.$", said, re.MULTILINE)
    (folder,) = out.iterdir()
    assert f"The tables are in {folder}." in said
    assert f"GLASSFORMER_CORPORA={out}" in said
    assert open_run(folder).about.complete
    before = contents(out)
    assert main(command(file, out, "--shard", "40")) == 0
    assert "62 of 62 lines are there already." in capsys.readouterr().out
    assert contents(out) == before


def test_a_decoded_run_has_bleu_and_chrf_and_a_model_that_only_reads_no_loss(file, tmp_path, capsys):
    assert main(command(file, tmp_path / "runs", "--decode", "--max-pairs", "5")) == 0
    said = capsys.readouterr().out
    assert re.search(r"^  BLEU +\d+\.\d\d  \(\d+\.\d\d to \d+\.\d\d\)$", said, re.MULTILINE)
    assert re.search(r"^  chrF +\d+\.\d\d  \(\d+\.\d\d to \d+\.\d\d\)$", said, re.MULTILINE)
    file.write_text("abcba\nabcab\n", encoding="utf-8")
    assert main(command(file, tmp_path / "runs", checkpoint=PALINDROME)) == 0
    said = capsys.readouterr().out
    assert "palindrome over words.tsv: 2 lines" in said
    assert "loss" not in said


GOLD = ["--alignments", "a", "b", "c"]


@pytest.mark.parametrize(
    ("content", "more", "said"),
    [
        (None, [], "words.tsv: cannot be read (No such file or directory)."),
        (b"a\tb\tc\n", [], "words.tsv, line 1: expected a text, or `source TAB reference`, found 3 columns."),
        (b"abc\n", ["--address", "auto"], "--address is of a Ray cluster; add --engine ray, or leave it out."),
        (b"abc\n", ["--shard", "0"], "--shard: found 0, expected 1 to 100,000."),
        (b"abc\n", ["--processes", "257"], "--processes: found 257, expected 1 to 256."),
        (b"abc\n", ["--vectors", "-1"], "--vectors: found -1, expected 0 to 5,000."),
        (b"abc\n", ["--device", "cuda"], "torch finds no CUDA device here"),
        (b"abc\n", GOLD, "give either --pairs FILE or --alignments SRC TGT GOLD."),
        (b"palindrome", ["--decode"], "--decode: palindrome is encoder-only, so it writes nothing; leave it out."),
        (b"palindrome", GOLD, "cross-attention"),
        (b"reverse", [*GOLD, "--decode"], "--alignments link the references"),
        (b"abc\n", ["--out", "{file}"], "cannot be written (Not a directory)"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_measured(file, tmp_path, capsys, monkeypatch, content, more, said):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    if content is None:
        file.unlink()
    else:
        file.write_bytes(content)
    more = [word.format(file=file) for word in more]
    arguments = command(file, tmp_path / "runs", *more, checkpoint=PALINDROME if content == b"palindrome" else REVERSE)
    if "--alignments" in more and content != b"abc\n":
        arguments = [word for word in arguments if word not in ("--pairs", str(file))]
    assert main(arguments) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_the_code_of_the_documentation_runs(file, tmp_path, capsys, monkeypatch):
    assert main(command(file, tmp_path / "runs" / "corpora")) == 0
    (tmp_path / "checkpoints").symlink_to(ROOT / "checkpoints")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```py\n(.*?)```", (ROOT / "docs" / "corpus.md").read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 3
    capsys.readouterr()
    for block in blocks:
        exec(block, {})
    said = capsys.readouterr().out
    assert "│ layer │ head  │" in said
    assert "Figure(value=" in said


@pytest.mark.deep
def test_ray_writes_the_same_files(file, tmp_path):
    """In a process of its own: Ray leaves threads, and the other tests fork."""
    process = started(file, tmp_path / "ray", "--shard", "20", "--engine", "ray")
    process.join(300)
    assert process.exitcode == 0, said_by(tmp_path / "ray").read_text()
    assert main(command(file, tmp_path / "pool", "--shard", "20")) == 0
    assert contents(tmp_path / "ray") == contents(tmp_path / "pool")


def started(file, out, *more):
    """A fork of this process that runs the command; what it says goes into a file beside `out`."""
    shards = ["--shard", "2", "--processes", "2", *more]
    process = multiprocessing.get_context("fork").Process(target=run, args=(command(file, out, *shards), said_by(out)))
    process.start()
    return process


def run(arguments, log):
    """As in a shell; background processes, such as those of `make test`, ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with log.open("w", buffering=1, encoding="utf-8") as sys.stderr:
        sys.exit(main(arguments))


def said_by(out):
    return out.with_suffix(".said")


def repeated(file, times):
    """More of the same lines, so that a run is still under way when it is meant to be stopped."""
    file.write_bytes(file.read_bytes() * times)
    return file


def n_shards(out):
    return len(list(out.rglob("rollup-*.parquet")))


def after(process, out, n):
    """Wait until so many shards are there; the pids of the workers."""
    while n_shards(out) < n and process.is_alive():
        time.sleep(0.01)
    return list(map(int, Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()))


@pytest.mark.skipif(sys.platform != "linux", reason="the workers are found in /proc")
def test_killed_with_a_worker_and_resumed_it_writes_the_same_files(file, tmp_path, capsys):
    rng, out = random.Random(2), tmp_path / "killed"
    process = started(file, out)
    workers = after(process, out, 2)
    os.kill(rng.choice(workers), signal.SIGKILL)
    after(process, out, n_shards(out) + 2)
    process.kill()
    process.join()
    assert 0 < n_shards(out) < 31
    there = {path: path.stat().st_mtime_ns for path in out.rglob("rollup-*.parquet")}
    assert main(command(file, out, "--shard", "2")) == 0
    assert main(command(file, tmp_path / "whole", "--shard", "2")) == 0
    assert contents(out) == contents(tmp_path / "whole")
    assert {path: path.stat().st_mtime_ns for path in there} == there


@pytest.mark.skipif(sys.platform != "linux", reason="the workers are found in /proc")
def test_interrupted_it_says_what_is_there_and_leaves_no_process(file, tmp_path):
    before = signal.signal(signal.SIGTERM, lambda *_: 1 / 0)  # as of a launcher in whose processes it runs
    process = started(repeated(file, 40), tmp_path / "runs")
    signal.signal(signal.SIGTERM, before)
    workers = after(process, tmp_path / "runs", 2)
    os.kill(process.pid, signal.SIGINT)
    process.join(60)
    assert process.exitcode == 130
    said = said_by(tmp_path / "runs").read_text(encoding="utf-8")
    assert re.search(
        r"^interrupted\. [\d,]+ of [\d,]+ lines are there; the same command continues\.$", said, re.MULTILINE
    )
    assert "Traceback" not in said
    assert not any(Path(f"/proc/{pid}").exists() for pid in workers)
