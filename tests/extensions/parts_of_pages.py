"""Parts of the extensions' pages, each with its script and what its address asks for; those that are there."""

from pathlib import Path
from typing import Any

from glassformer.state.view import all_fields
from tests.extensions.scripts import COMPARE, DOCTOR, LESSONS, MATTERS, OPEN, SENTENCES, TRAINING, WRONG
from tests.pages.conftest import ATTENTION

# One card stands for all: as the page opens, of two ways, of other heads, with NaN, with padding.
_CARDS = ("auto", "no-causal-mask", "heads-number", "no-guard", "padding-on-rows")
MISTAKES = _CARDS if "mistake" in all_fields() else ()
_PARTS: dict[str, tuple[Path, dict[str, Any]]] = {
    "training curves": (TRAINING, {}),
    "training sentence": (TRAINING, {"training": "sentence"}),
    "attention training": (ATTENTION, {"panel": "training"}),
    "doctor": (DOCTOR, {}),
    "doctor parameters": (DOCTOR, {"doctor": "parameters", "against": "zh-en"}),
    "open": (OPEN, {}),
    "sentences": (SENTENCES, {}),
    "compare": (COMPARE, {}),
    "compare branches": (COMPARE, {"b": "forced=7"}),
    "compare changed": (COMPARE, {"do": "zero-cross.2.1", "layer": 2, "head": 1}),
    "compare checkpoints": (COMPARE, {"b": "model=zh-en"}),
    "compare heads": (COMPARE, {"b": "layer=1&head=2"}),
    "compare sentences": (COMPARE, {"b": "src=noon"}),
    "attention heads": (ATTENTION, {"panel": "table", "measure": "log_prob"}),
    "matters logit": (MATTERS, {"matters": "logit", "kind": "cross", "layer": 2, "head": 1, "rival": 9}),
    "matters ladder": (MATTERS, {"matters": "ladder"}),
    "matters tokens": (MATTERS, {"matters": "pieces"}),
    "lessons": (LESSONS, {}),
    **{f"wrong {name}": (WRONG, {"mistake": name}) for name in MISTAKES},
}
PARTS = {name: part for name, part in _PARTS.items() if part[0].exists()}


def parts_of(*words: str) -> list[str]:
    """The names of the parts that begin with these words."""
    return sorted(name for name in PARTS if name.startswith(words))
