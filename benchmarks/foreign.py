"""Benchmark: third-party models here, against transformers.

    python -m benchmarks.foreign --turns 5

Both programs open the same folder with random weights (`benchmarks.real_size` makes it), read the same ids and write
60 more greedily, keeping every attention map of every step: transformers with `generate` and `output_attentions`,
eager, because nothing else returns maps; ours with a trace, which also has each step's candidates. The script first
checks that they write the same ids. Loading is from the folder to the first answer of one token, with the tokenizer,
without importing the libraries. Memory is the peak of a process (VmHWM), and the part of it after the libraries were
imported.

Each program has its own process, with one thread, and they take turns; medians are printed. Needs Linux.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from benchmarks import real_size

MODELS = ("opus-mt", "gpt2")
PROGRAMS = {"theirs": "transformers, eager, with attentions", "ours": "ours, a full trace"}
SENTENCE = "The encoder reads the whole source and turns it into the memory, one vector a source token."
NEW, RUNS = 60, 3
Run = Callable[[int], tuple[list[int], int]]  # how many tokens to write -> their ids, and how many maps were kept


def main() -> None:
    """Parse the command line, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--folder", type=Path, help="where the models are or are made (default: temporary)")
    parser.add_argument("--worker", choices=PROGRAMS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        _work(options.worker, options.models[0], options.folder / options.models[0])
        return
    with tempfile.TemporaryDirectory() as temporary:
        where = options.folder or Path(temporary)
        for name in options.models:
            real_size.make(name, where / name)
            _report(name, _measure(name, where, options.turns))


def _measure(name: str, where: Path, turns: int) -> dict[str, list[dict[str, Any]]]:
    """What each turn of each program gave."""
    found: dict[str, list[dict[str, Any]]] = {program: [] for program in PROGRAMS}
    for _ in range(turns):
        for program in PROGRAMS:
            command = [sys.executable, "-m", "benchmarks.foreign", "--worker", program]
            command += ["--models", name, "--folder", str(where)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            found[program].append(json.loads(done.stdout.splitlines()[-1]))
    written = {str(turn["ids"]) for each in found.values() for turn in each}
    if len(written) > 1:
        raise SystemExit(f"{name}: the programs did not write the same ids: {written}")
    return found


def _report(name: str, found: dict[str, list[dict[str, Any]]]) -> None:
    print(f"\n{name}: {NEW} tokens after {found['ours'][0]['n_read']}, {found['ours'][0]['parameters']:,} parameters\n")
    print("| | load | CPU of it | peak memory | of it the model | ms a token with every map | CPU of it |")
    print("|---|---|---|---|---|---|---|")
    middle = {
        program: {key: statistics.median(turn[key] for turn in turns) for key in _FIGURES}
        for program, turns in found.items()
    }
    for program, label in PROGRAMS.items():
        cells = [form.format(middle[program][key]) for key, form in _FIGURES.items()]
        print(f"| {label} | {' | '.join(cells)} |")
    ratios = [f"{middle['ours'][key] / middle['theirs'][key]:.2f}" for key in _FIGURES]
    print(f"| ours / theirs | {' | '.join(ratios)} |")


_FIGURES = {
    "load": "{:.2f} s",
    "load_cpu": "{:.2f} s",
    "peak": "{:,.0f} MB",
    "beyond": "{:,.0f} MB",
    "token": "{:.1f} ms",
    "token_cpu": "{:.1f} ms",
}


def _work(program: str, name: str, folder: Path) -> None:
    """One turn: open, run, say what it took."""
    torch.set_num_threads(1)
    make = {"ours": _ours, "theirs": _theirs}[program]
    opened = make(name, folder)  # imports
    before = _memory("VmRSS")
    started = time.perf_counter(), time.process_time()
    run, n_read, parameters = opened()
    run(1)
    load = time.perf_counter() - started[0], time.process_time() - started[1]
    ids, _ = run(NEW)
    times = []
    for _ in range(RUNS):
        started = time.perf_counter(), time.process_time()
        ids, n_maps = run(NEW)
        assert n_maps > 0, "maps are what is compared"
        times.append((time.perf_counter() - started[0], time.process_time() - started[1]))
    token = [1000 * statistics.median(each) / NEW for each in zip(*times, strict=True)]
    peak = _memory("VmHWM")
    record = {
        "ids": ids,
        "n_read": n_read,
        "parameters": parameters,
        "load": load[0],
        "load_cpu": load[1],
        "peak": peak,
        "beyond": peak - before,
        "token": token[0],
        "token_cpu": token[1],
    }
    print(json.dumps(record))


Opened = Callable[[], tuple[Run, int, int]]  # -> what runs it, how many tokens it reads, how many parameters it has


def _ours(name: str, folder: Path) -> Opened:
    import transformer

    def opened() -> tuple[Run, int, int]:
        checkpoint = transformer.load(folder)

        def run(n: int) -> tuple[list[int], int]:
            trace = checkpoint.run(checkpoint.query(SENTENCE, max_new=n))
            return list(trace.tgt_ids), sum(trace.maps(kind).size for kind in trace.kinds)

        n_read = len(checkpoint.run(checkpoint.query(SENTENCE, max_new=1)).src_ids)
        return run, n_read, checkpoint.config.count_parameters()

    return opened


def _theirs(name: str, folder: Path) -> Opened:
    from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer

    kind: Any = AutoModelForSeq2SeqLM if name == "opus-mt" else AutoModelForCausalLM

    def opened() -> tuple[Run, int, int]:
        tokenizer: Any = AutoTokenizer.from_pretrained(folder)
        model: Any = kind.from_pretrained(folder, attn_implementation="eager").eval()
        ids = tokenizer(SENTENCE, return_tensors="pt").input_ids

        def run(n: int) -> tuple[list[int], int]:
            with torch.inference_mode():
                found = model.generate(
                    ids,
                    attention_mask=torch.ones_like(ids),
                    max_new_tokens=n,
                    do_sample=False,
                    num_beams=1,
                    output_attentions=True,
                    output_scores=True,
                    return_dict_in_generate=True,
                    pad_token_id=model.config.pad_token_id or model.config.eos_token_id,
                )
            kinds = ("attentions", "encoder_attentions", "decoder_attentions", "cross_attentions")
            n_maps = sum(len(getattr(found, one, None) or ()) for one in kinds)
            written = found.sequences[0].tolist()
            return written[len(written) - len(found.scores) :], n_maps

        return run, ids.size(1), model.num_parameters()

    return opened


def _memory(kind: str) -> float:
    """Megabytes that this process takes (VmRSS) or has taken at most (VmHWM)."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(kind))


if __name__ == "__main__":
    main()
