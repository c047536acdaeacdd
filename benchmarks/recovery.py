"""Known fields of shipped checkpoints that are hidden and ranked by trying their values: how many come out right.

Nine fields are hidden: heads, place of the norms, scale of the embeddings, non-linearity, four ids, and whether an end
follows a source. They are ranked by the importers on sentence pairs, where references are known, and on texts alone.
"""

import random
import string
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

from benchmarks.harness import CHECKPOINTS, Comparison, Settings, turns
from glassformer.extensions.importers.library.answer_ranking import best_answers, scored
from glassformer.extensions.importers.library.report import Choice, Field, ImportReport
from transformer.analysis.losses import Samples, Variants
from transformer.checkpoint.load import Checkpoint, load
from transformer.i18n import say

SHIPPED = ("reverse", "zh-en", "en-fr")
FIELDS = (
    "n_heads", "norm", "scale_embedding", "activation", "pad_id", "unk_id", "bos_id", "eos_id", "append_source_eos",
)  # fmt: skip
LINES = 24


def measure(settings: Settings) -> Iterator[Comparison]:
    """The table."""
    for name in settings.chosen(SHIPPED, SHIPPED[:1] if settings.quick else SHIPPED):
        checkpoint = load(CHECKPOINTS / name)
        known = _samples(checkpoint)
        ways = {"texts alone": Samples(known.sources)} | ({"pairs": known} if known.targets else {})
        for way, samples in ways.items():
            found = turns({"ours": partial(_recovered, checkpoint, samples)}, settings.n_turns(1))["ours"]
            right, seconds = zip(*found, strict=True)
            hidden = [float(len(FIELDS))] * len(right)
            yield Comparison(what=f"{name}, {way}: fields right", ours=right, peer=hidden, peer_name="hidden", unit="")
            yield Comparison(what=f"{name}, {way}: time", ours=seconds)


def _recovered(checkpoint: Checkpoint, samples: Samples) -> tuple[float, float]:
    """How many fields are right, and seconds."""
    config = checkpoint.config
    choices: dict[str, list[Any]] = {
        "n_heads": [n for n in range(1, config.d_model + 1) if config.d_model % n == 0],
        "norm": ["post", "pre"],
        "scale_embedding": [False, True],
        "activation": ["silu", "gelu_tanh", "gelu", "relu"],
        "append_source_eos": [False, True],
    }
    hidden = say("It is hidden.")
    fields = tuple(Field(name, "asked", None, hidden, tuple(map(Choice, choices.get(name, [])))) for name in FIELDS)
    report = ImportReport(checkpoint.name, say("A checkpoint."), (), (), {}, fields)
    began = time.perf_counter()
    report = scored(report, Variants(checkpoint).get, samples)
    best = best_answers(report) | report.decided
    return float(sum(best.get(name) == getattr(config, name) for name in FIELDS)), time.perf_counter() - began


def _samples(checkpoint: Checkpoint) -> Samples:
    """Sentences of a checkpoint's task, with their references if they are known."""
    if checkpoint.name == "reverse":
        rng = random.Random(1)
        words = ["".join(rng.choices(string.ascii_lowercase, k=rng.randint(2, 11))) for _ in range(LINES)]
        return Samples(tuple(words), tuple(word[::-1] for word in words))
    glosses = checkpoint.card.glosses
    return Samples(tuple(glosses), tuple(glosses.values())) if glosses else Samples(tuple(checkpoint.card.examples))
