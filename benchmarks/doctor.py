"""Do the doctor's verdicts depend on the seed, and how long does an examination take?

    python -m benchmarks.doctor                          the healthy checkpoints, 20 seeds
    python -m benchmarks.doctor --only zh-en --seeds 3   some of them
    python -m benchmarks.doctor --faults --seeds 5       those with planted faults
    python -m benchmarks.doctor --models /tmp/models     those that benchmarks.doctor_models trained
    python -m benchmarks.doctor --threads 2              as on the app's machine

A seed draws 12 of a checkpoint's hundred texts, and decides every other random choice. For each checkpoint the script
prints the time of an examination, what was found, and with how many of the seeds. In healthy ones no seed should find
anything; every seed should find a fault. A shipped checkpoint should take at most 60 s on two cores.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from benchmarks.doctor_models import RECIPES
from glassformer.extensions.doctor.library.report import examine
from tests.extensions.doctor.library.planted import FAULTS
from tests.healthy import NAMES, OWN, healthy, texts
from transformer.analysis.losses import Samples
from transformer.checkpoint.load import Checkpoint
from transformer.checkpoint.opening import load

MOST_SECONDS = 60.0


@dataclass(frozen=True)
class Examined:
    """What the examinations of one checkpoint gave.

    Attributes:
        name: Of the checkpoint.
        seconds: Of each examination.
        found: How often each test found something, with its verdict.
    """

    name: str
    seconds: tuple[float, ...]
    found: Counter[tuple[str, str]]

    @property
    def unsteady(self) -> list[str]:
        """Tests whose verdicts were not the same with all seeds."""
        return sorted({test for (test, _), times in self.found.items() if times < len(self.seconds)})

    def line(self) -> str:
        """A row of the table."""
        found = ", ".join(f"{test} {verdict} {times}" for (test, verdict), times in sorted(self.found.items()))
        return (
            f"| {self.name} | {statistics.median(self.seconds):.1f} s | {max(self.seconds):.1f} s "
            f"| {found or 'nothing'} | {', '.join(self.unsteady) or 'none'} |"
        )


def main() -> int:
    """Examine, print; 1 if a healthy one is not found so, or a shipped one takes too long."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20, help="number of seeds")
    parser.add_argument("--only", nargs="*", default=[], help="names of checkpoints, or of faults")
    parser.add_argument("--faults", action="store_true", help="examine those with planted faults")
    parser.add_argument("--threads", type=int, default=1, help="threads of torch")
    parser.add_argument("--models", type=Path, help="folder of models that benchmarks.doctor_models trained")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print("| checkpoint | median | slowest | found, with how many seeds | changes with the seed |")
    print("|---|---|---|---|---|")
    failed = False
    chosen = _trained(options.models) if options.models else _chosen(options.only, faults=options.faults)
    for name, checkpoint, samples in chosen:
        if options.only and options.models and name not in options.only:
            continue
        done = examined(name, checkpoint, samples, options.seeds)
        print(done.line(), flush=True)
        failed |= (name in NAMES or (name in RECIPES and not RECIPES[name].wrong)) and bool(done.found)
        failed |= name in OWN and max(done.seconds) > MOST_SECONDS
    return int(failed)


def examined(name: str, checkpoint: Checkpoint, samples: Samples, seeds: int) -> Examined:
    """Examine a checkpoint once with each seed."""
    seconds, found = [], Counter[tuple[str, str]]()
    for seed in range(seeds):
        begun = time.perf_counter()
        report = examine(checkpoint, pairs=samples, seed=seed)
        seconds.append(time.perf_counter() - begun)
        found.update((one.test, one.verdict) for one in report.findings if one.verdict in ("broken", "look"))
    return Examined(name, tuple(seconds), found)


def _trained(folder: Path) -> Iterator[tuple[str, Checkpoint, Samples]]:
    """The models that were trained into a folder."""
    for name in RECIPES:
        if (folder / name / "pairs.tsv").exists():
            lines = (folder / name / "pairs.tsv").read_text(encoding="utf-8").splitlines()
            columns = [line.split("\t") for line in lines]
            targets = tuple(column[1] for column in columns) if len(columns[0]) > 1 else ()
            yield name, load(folder / name), Samples(tuple(column[0] for column in columns), targets)


def _chosen(only: list[str], *, faults: bool) -> list[tuple[str, Checkpoint, Samples]]:
    """Names, checkpoints and their texts."""
    if not faults:
        return [(name, healthy(name), texts(name)) for name in NAMES if not only or name in only]
    planted = [(fault, base) for fault in FAULTS for base in fault.bases if not only or fault.name in only]
    return [(f"{base}: {fault.name}", fault.planted(base), texts(base)) for fault, base in planted]


if __name__ == "__main__":
    sys.exit(main())
