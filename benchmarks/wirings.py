"""Planted mistakes in code: how many of them the doctor names, and whether it leaves healthy models alone.

Tiny models are trained with code that is written by hand and has a mistake, or none (`benchmarks.wiring_models`: some
800, an hour or two), then each is searched for its mistake. A mistake shows in its pairs if the right code reads them
worse than the code that trained: only such one can be named. `--only` takes beginnings of their names, such as
heads-split or healthy, and `--folder DIR` keeps the models for another time.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import torch

from benchmarks.harness import Comparison, Settings
from benchmarks.wiring_models import make_all
from glassformer.extensions.doctor.library.context import ExaminationContext
from glassformer.extensions.doctor.library.wiring_tests import searched
from transformer.analysis.losses import read_samples
from transformer.checkpoint.load import load

SHOWS = 0.1  # nats a token by which the right code has to read the pairs worse
KINDS = {  # and what they are to be called
    "a mistake that shows": ("named first", "listed"), "a mistake that does not show": ("named none",),
    "healthy": ("named none",), "a mistake that the catalogue lacks": ("named none",),
}  # fmt: skip


def measure(settings: Settings) -> Iterator[Comparison]:
    """The table."""
    torch.set_num_threads(1)
    found, seconds = {kind: list[str]() for kind in KINDS}, list[float]()
    with settings.work() as folder:
        make_all(folder, settings.only or (("heads-split", "healthy 3") if settings.quick else ()), settings.n(5, 1))
        for file in sorted(folder.glob("*/planted.json")):
            if file.parent.name.startswith(tuple(name.replace(" ", "_") for name in settings.only or ("",))):
                kind, said, took = _judged(file.parent)
                found[kind].append(said)
                seconds.append(took)
                if said not in KINDS[kind]:
                    print(f"{file.parent.name}, {kind}: {said}", flush=True)
    for kind, told in found.items():
        for right in KINDS[kind] if told else ():
            yield Comparison(
                what=f"{kind}: {right}", ours=[told.count(right)], peer=[len(told)], peer_name="models", unit="",
            )  # fmt: skip
    yield Comparison(what="time of a search", ours=seconds)


def _judged(folder: Path) -> tuple[str, str, float]:
    """What kind of model it is, what the search said, and how long it took in seconds."""
    planted = json.loads((folder / "planted.json").read_text(encoding="utf-8"))
    found = searched(ExaminationContext(load(folder), read_samples(folder / "pairs.tsv")))
    mistake, named = planted["mistake"], found.verdict == "another" and found.best is not None
    said = "named a mistake" if named else "named none"
    if not mistake or mistake.startswith("invented"):
        return "a mistake that the catalogue lacks" if mistake else "healthy", said, found.seconds
    if planted["loss_as_said"] - planted["loss"] < SHOWS:
        return "a mistake that does not show", said, found.seconds
    if named and found.best is not None and found.best.names == (mistake,):
        said = "named first"
    elif (mistake,) in {one.names for one in found.equal}:
        said = "listed"
    return "a mistake that shows", said, found.seconds
