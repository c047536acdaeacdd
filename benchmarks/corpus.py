"""Sentences a second that are measured: a corpus run against a loop of `run` and against Hugging Face Marian.

    python -m benchmarks.corpus --pairs FILE --turns 3

The reference of each pair is forced. Ours is `extensions.corpus.library.measuring.measure` on shards of the file, in
two processes with a thread each; the others have one process and as many threads. Against the loop the model is
`checkpoints/zh-en`; against Hugging Face it is one small random model with equal parameters in both programs
(`benchmarks.same_model`), which reads made-up sentences as long, in pieces, as those of the file. Their attentions
come with `output_attentions=True`, one sentence at a time or in batches of 32 in the order of the file.

With measures, the others take those of `head_statistics` from each sentence's maps; ours are those and, in addition,
the share of the output, equal text, punctuation and the largest weight with its place. The script first checks that
losses and entropies are the same. One program works while the others wait. On a busy machine, where threads that wait
for each other are the first to suffer, give the others one (`--threads 1`) and read the processor's time.

Needs: pip install transformers (tried with 5.23.0).
"""

import argparse
import json
import random
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks import same_model
from glassformer.extensions.corpus.library.measuring import measure
from glassformer.extensions.corpus.library.tables import CorpusLine, CorpusOptions
from transformer import load
from transformer.analysis.head_statistics import measure as measure_run
from transformer.analysis.head_statistics import measure_maps
from transformer.checkpoint.free_memory import keep_freed_memory
from transformer.checkpoint.load import Checkpoint
from transformer.model.anatomy import Kind
from transformer.runs.inputs import read_given

ZH_EN = Path(__file__).resolve().parents[1] / "checkpoints" / "zh-en"
SEED, AT_ONCE, PROCESSES = 0, 32, 2
KINDS: tuple[Kind, ...] = ("encoder", "decoder", "cross")
NAMES = {
    "loop": "loop of `run`, maps only",
    "loop+": "loop of `run` with measures",
    "ours-zh-en": "corpus run, zh-en",
    "hf": "Hugging Face, one at a time, maps only",
    "hf+": "Hugging Face, one at a time, with measures",
    "hf32": "Hugging Face, batches of 32, maps only",
    "hf32+": "Hugging Face, batches of 32, with measures",
    "ours-random": "corpus run, the same random model",
}
Found = list[tuple[float, float]]  # loss and mean entropy of all heads of the first sentences
Work = Callable[[Sequence[CorpusLine]], Found]


def main() -> None:
    """Parse the command line, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=Path, required=True, help="source TAB target, one pair a line")
    parser.add_argument("--sentences", type=int, default=4000, help="for a corpus run; the others get a tenth")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--threads", type=int, default=PROCESSES, help="of the others")
    parser.add_argument("--worker", choices=NAMES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        torch.set_num_threads(1 if options.worker.startswith("ours") else options.threads)
        _work(options.worker, _lines(options.pairs, options.sentences))
    else:
        _report(*_measure(options))


def _lines(path: Path, count: int) -> list[CorpusLine]:
    pairs = [row.split("\t")[:2] for row in path.read_text(encoding="utf-8").splitlines()]
    random.Random(SEED).shuffle(pairs)
    return [CorpusLine(n, *pair) for n, pair in enumerate(pairs[:count], start=1)]


Rates = dict[str, list[tuple[float, float]]]  # of each turn: sentences a second, and a second of the processor


def _measure(options: argparse.Namespace) -> tuple[Rates, dict[str, list[int]]]:
    """The rates, and megabytes: after loading, and the most."""
    workers = {name: [_start(name, options) for _ in range(_processes(name))] for name in NAMES}
    found = {name: json.loads(_ask(some[0], "check")) for name, some in workers.items()}
    for names in (("loop", "loop+", "ours-zh-en"), ("hf", "hf+", "hf32", "hf32+", "ours-random")):
        for name in names:
            width = 2 if "+" in name else 1  # maps only: losses
            mine, ours = (np.array(found[one])[:, :width] for one in (name, names[-1]))
            np.testing.assert_allclose(mine, ours, rtol=0, atol=2e-4, err_msg=name)
    print("Losses and entropies of all programs are the same.", flush=True)
    rates: Rates = {name: [] for name in NAMES}
    for turn in range(options.turns):
        for name in random.Random(turn).sample(list(NAMES), len(NAMES)):
            count = options.sentences // (1 if name.startswith("ours") else 10)
            started, share = time.perf_counter(), count // len(workers[name])
            for place, worker in enumerate(workers[name]):
                _tell(worker, f"{place * share} {(place + 1) * share}")
            processor = sum(float(_answer(worker)) for worker in workers[name])
            rates[name].append((count / (time.perf_counter() - started), count / processor))
    memory = {name: json.loads(_ask(some[0], "memory")) for name, some in workers.items()}
    for worker in (worker for some in workers.values() for worker in some):
        worker.terminate()
    return rates, memory


def _processes(name: str) -> int:
    return PROCESSES if name.startswith("ours") else 1


def _start(name: str, options: argparse.Namespace) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "benchmarks.corpus", "--worker", name, "--pairs", str(options.pairs)]
    command += ["--sentences", str(options.sentences), "--threads", str(options.threads)]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )


def _ask(worker: "subprocess.Popen[str]", what: str) -> str:
    _tell(worker, what)
    return _answer(worker)


def _tell(worker: "subprocess.Popen[str]", what: str) -> None:
    assert worker.stdin is not None
    worker.stdin.write(what + "\n")
    worker.stdin.flush()


def _answer(worker: "subprocess.Popen[str]") -> str:
    assert worker.stdout is not None
    if not (answer := worker.stdout.readline()):
        sys.exit(f"a worker has failed: {' '.join(map(str, worker.args))}")  # type: ignore[arg-type]
    return answer


# ---------------------------------------------------------------- in a worker


def _work(name: str, lines: list[CorpusLine]) -> None:
    """Answer the questions that come on standard input."""
    keep_freed_memory()  # as the processes of a corpus run do; for the others it is not slower either
    work, lines = _program(name, lines)
    loaded = _megabytes("VmRSS")
    for question in sys.stdin:
        match question.split():
            case ["check"]:
                print(json.dumps(work(lines[:40])[:20]), flush=True)
            case ["memory"]:
                print(json.dumps([loaded, _megabytes("VmHWM")]), flush=True)
            case [first, last]:
                began = time.process_time()
                work(lines[int(first) : int(last)])
                print(time.process_time() - began, flush=True)


def _megabytes(field: str) -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return next(int(row.split()[1]) for row in status.splitlines() if row.startswith(field)) // 1024


def _program(name: str, lines: list[CorpusLine]) -> tuple[Work, list[CorpusLine]]:
    checkpoint = load(ZH_EN)
    if name.startswith("loop"):
        return _loop(checkpoint, measures=name.endswith("+")), lines
    if name == "ours-zh-en":
        return _ours(checkpoint), lines
    peer = same_model.marian()
    random_one = same_model.ours(peer)
    lines = _made_up(lines, checkpoint, random_one)
    if name == "ours-random":
        return _ours(random_one), lines
    return _hugging_face(peer, random_one, 32 if "32" in name else 1, measures=name.endswith("+")), lines


def _made_up(lines: list[CorpusLine], checkpoint: Checkpoint, other: Checkpoint) -> list[CorpusLine]:
    """Sentences for another model with as many pieces: words that are pieces."""
    words = other.src_tokenizer.pieces[100:]
    draw = random.Random(SEED)
    texts = []
    for line in lines:
        given = read_given(checkpoint, checkpoint.query(line.source), line.target)
        n_pieces = len(given.source.ids), len(given.ids) - 1
        texts.append(CorpusLine(line.number, *(" ".join(draw.choices(words, k=n)) for n in n_pieces)))
    return texts


def _ours(checkpoint: Checkpoint) -> Work:
    def work(lines: Sequence[CorpusLine]) -> Found:
        found: Found = []
        for start in range(0, len(lines), CorpusOptions.shard):
            shard = lines[start : start + CorpusOptions.shard]
            measured = measure(checkpoint, shard, CorpusOptions(vectors=0))
            by_line = measured.heads.group_by("line").aggregate([("entropy", "mean")])
            means = dict(zip(*(column.to_pylist() for column in by_line.columns), strict=True))
            rows = zip(shard, measured.sentences["loss"].to_pylist(), strict=True)
            found += [(loss, means[line.number]) for line, loss in rows]
        return found

    return work


def _loop(checkpoint: Checkpoint, *, measures: bool) -> Work:
    eos = checkpoint.config.eos_id

    def one(line: CorpusLine) -> tuple[float, float]:
        ids = (*checkpoint.tgt_tokenizer.encode(line.target or "").ids, eos)
        trace = checkpoint.run(checkpoint.query(line.source, forced=ids, max_new=len(ids)))
        if not measures:
            return -trace.log_prob / len(ids), 0.0
        found = [measure_run(trace, kind, eos_id=eos) for kind in KINDS]
        means = [{name: one.means() for name, one in of_kind.items()} for of_kind in found]
        return -trace.log_prob / len(ids), float(np.mean([of_kind["entropy"] for of_kind in means]))

    return lambda lines: [one(line) for line in lines]


def _hugging_face(peer: Any, checkpoint: Checkpoint, at_once: int, *, measures: bool) -> Work:
    """Batches in the order of the file, as tokenised by the other model; tokenising is part of the work here too."""
    peer.set_attn_implementation("eager")  # the only one that returns attention weights
    tokenizer, eos = checkpoint.src_tokenizer, checkpoint.config.eos_id

    def batch(lines: Sequence[CorpusLine]) -> Found:
        src = [list(tokenizer.encode(line.source).ids) for line in lines]
        tgt = [[*tokenizer.encode(line.target or "").ids, eos] for line in lines]
        ids, labels = _padded(src, 0), _padded(tgt, -100)
        read = _padded([[0, *row[:-1]] for row in tgt], 0)
        mask = (torch.arange(ids.size(1)) < torch.tensor([len(row) for row in src])[:, None]).long()
        with torch.inference_mode():
            seen = peer(input_ids=ids, attention_mask=mask, decoder_input_ids=read, output_attentions=True)
            logits = seen.logits.transpose(1, 2)  # [B, V, T]
            losses = torch.nn.functional.cross_entropy(logits, labels, reduction="none").sum(dim=1)
        layers = seen.encoder_attentions, seen.decoder_attentions, seen.cross_attentions
        means = [0.0] * len(lines)
        if measures:
            maps = dict(zip(KINDS, (torch.stack(some, dim=1).numpy() for some in layers), strict=True))
            means = [_measured(maps, row, len(src[row]), len(tgt[row])) for row in range(len(lines))]
        return [(float(loss) / len(row), mean) for loss, row, mean in zip(losses, tgt, means, strict=True)]

    def work(lines: Sequence[CorpusLine]) -> Found:
        starts = range(0, len(lines), at_once)
        return [one for start in starts for one in batch(lines[start : start + at_once])]

    return work


def _padded(rows: list[list[int]], fill: int) -> torch.Tensor:
    width = max(map(len, rows))
    return torch.tensor([[*row, *([fill] * (width - len(row)))] for row in rows])


def _measured(maps: dict[Kind, np.ndarray], row: int, n_source: int, n_target: int) -> float:
    """All measures of a sentence; the mean entropy."""
    means = []
    for kind, of_kind in maps.items():
        n_queries, n_keys = n_source if kind == "encoder" else n_target, n_target if kind == "decoder" else n_source
        allowed = np.ones((n_queries, n_keys), bool)
        allowed = np.tril(allowed) if kind == "decoder" else allowed
        end = None if kind == "decoder" else n_keys - 1
        found = measure_maps(of_kind[row][:, :, :n_queries, :n_keys], allowed, kind, end=end)
        means.append({name: one.means() for name, one in found.items()})
    return float(np.mean([of_kind["entropy"] for of_kind in means]))


def _report(rates: Rates, memory: dict[str, list[int]]) -> None:
    print("\n| | sentences a second | range of turns | a second of the processor | MB loaded | MB at most |")
    print("|---|---|---|---|---|---|")
    middle = {name: np.median(found, axis=0) for name, found in rates.items()}
    for name, label in NAMES.items():
        walls, (loaded, most) = [wall for wall, _ in rates[name]], memory[name]
        wall, processor = middle[name]
        print(f"| {label} | {wall:.0f} | {min(walls):.0f}-{max(walls):.0f} | {processor:.0f} | {loaded} | {most} |")
    for name, label in NAMES.items():
        if not name.startswith("ours"):
            wall, processor = middle["ours-zh-en" if name.startswith("loop") else "ours-random"] / middle[name]
            print(f"corpus run / {label}: {wall:.1f}; by the processor's time {processor:.1f}")


if __name__ == "__main__":
    main()
