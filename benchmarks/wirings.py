"""Is a planted mistake in code named by the doctor, and is a healthy model left alone? With the time of a search.

    python -m benchmarks.wirings --models /tmp/models    those that benchmarks.wiring_models trained
    python -m benchmarks.wirings --models /tmp/models --only heads-split healthy

A mistake shows in its pairs if the right code reads them worse than the code that trained: only such one can be named.
Printed are, of those that show, how often the mistake is named first, or is listed as one that the pairs cannot tell
from it; of the others, of healthy models and of mistakes that no catalogue has, how often any mistake is named.
"""

import argparse
import json
import statistics
from collections import Counter
from pathlib import Path

import torch

from glassformer.extensions.doctor.library.context import ExaminationContext
from glassformer.extensions.doctor.library.wiring_tests import searched
from transformer.analysis.losses import read_samples
from transformer.checkpoint.load import load

SHOWS = 0.1  # nats a token by which the right code has to read the pairs worse


def judged(folder: Path) -> tuple[str, str, float]:
    """What kind of model it is, what the search said, and how long it took in seconds."""
    planted = json.loads((folder / "planted.json").read_text(encoding="utf-8"))
    found = searched(ExaminationContext(load(folder), read_samples(folder / "pairs.tsv")))
    mistake, named = planted["mistake"], found.verdict == "another" and found.best is not None
    alike = {one.names for one in found.equal}
    if not mistake or mistake.startswith("invented"):
        kind = "healthy" if not mistake else "not in the catalogue"
        return kind, "named a mistake" if named else "named none", found.seconds
    if planted["loss_as_said"] - planted["loss"] < SHOWS:
        return "a mistake that does not show", "named a mistake" if named else "named none", found.seconds
    first = named and found.best is not None and found.best.names == (mistake,)
    said = "named first" if first else "listed" if (mistake,) in alike else "another" if named else "named none"
    return "a mistake that shows", said, found.seconds


def main() -> None:
    """Examine each model, print those that surprise, and count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=Path, required=True, help="folder of checkpoints")
    parser.add_argument("--only", nargs="*", default=[""], help="beginnings of their names")
    options = parser.parse_args()
    torch.set_num_threads(1)
    counts, seconds = Counter[tuple[str, str]](), []
    for file in sorted(options.models.glob("*/planted.json")):
        if not file.parent.name.startswith(tuple(options.only)):
            continue
        kind, said, took = judged(file.parent)
        counts[kind, said] += 1
        seconds.append(took)
        if said in ("another", "named a mistake") or (kind, said) == ("a mistake that shows", "named none"):
            print(f"{file.parent.name}: {said}", flush=True)
    for (kind, said), n in sorted(counts.items()):
        print(f"{kind:<30}{said:<20}{n}")
    print(f"seconds: median {statistics.median(seconds):.1f}, most {max(seconds):.1f}")


if __name__ == "__main__":
    main()
