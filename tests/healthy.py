"""Healthy checkpoints: three of those that are shipped, and six of other programs, each with texts of its task.

The six are what `tests/data/healthy/make.py` trained; they are read by the importers, as a visitor's would be.
"""

from functools import cache

from glassformer.extensions.importers.library.import_inputs import ImportInputs
from tests.data.healthy import tasks
from tests.source_code import ROOT
from transformer.analysis.losses import Samples
from transformer.checkpoint.opening import load

DATA, SHIPPED = ROOT / "tests" / "data" / "healthy", ROOT / "checkpoints"
TEXTS = 100

ENDS = {"prepend_source_bos": False, "append_source_eos": True}
IDS = {"pad_id": 0, "unk_id": None, "bos_id": 1, "eos_id": 2}
ANSWERS = {
    "s4": IDS | ENDS | {"n_heads": 4, "activation": "relu", "norm": "post", "scale_embedding": False},
    "torch": ENDS | {"n_heads": 4, "activation": "relu", "norm": "pre", "scale_embedding": True},
}
ANSWERS["leak"] = ANSWERS["s4"]

FOREIGN = ("s4", "torch", "marian", "gpt2", "llama", "bert")
OWN = ("reverse", "zh-en", "en-fr")
TINY = ("reverse", *FOREIGN)
NAMES = (*OWN, *FOREIGN)


@cache
def healthy(name):
    """A checkpoint; every test of a run shares it. `leak` is not healthy, but made as the others are."""
    if name in OWN:
        return load(SHIPPED / name)
    pieces = DATA / name / "pieces.model"
    given = ImportInputs(pieces=pieces) if pieces.exists() else ImportInputs()
    return load(DATA / name, answers=ANSWERS.get(name, {}), given=given)


@cache
def texts(name):
    """A hundred texts of its task, with what should become of them if it writes."""
    if name in ("zh-en", "en-fr"):
        lines = (ROOT / "tests" / "data" / f"{name}.tsv").read_text(encoding="utf-8").splitlines()
        pairs = [line.split("\t")[:2] for line in lines]
    elif name == "reverse":
        pairs = [(word, word[::-1]) for word in tasks.words(TEXTS, longest=12)]
    else:
        pairs = tasks.some(name, TEXTS)
    sources, targets = zip(*pairs, strict=True)
    return Samples(sources, targets if any(targets) else ())
