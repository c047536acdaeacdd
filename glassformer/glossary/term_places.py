"""Where a term is seen: a page, and what is looked at there.

Knows nothing of Streamlit.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from transformer.i18n import say
from transformer.model.config import ModelConfig
from transformer.runs.query import Beam, Decoding, Sampling


@dataclass(frozen=True)
class Place:
    """A place in the app."""

    page: str  # name of a page in a folder of `pages/`, and in an address
    label: str  # what it is called
    fields: dict[str, Any] = field(default_factory=dict)  # what is looked at there, by the names of fields
    decoding: Decoding | None = None  # the way of decoding, where it is about one
    changes: str = ""  # what is changed in the model there, as in an address
    has: Callable[[ModelConfig], bool] = lambda _: True  # whether a model has it; if not, the one `shown_by` has
    shown_by: str = ""


PLACES = {
    "step": Place("step", say("Step through decoding")),
    "beam": Place("search", say("How pieces are chosen: the beam tree"), {"search_panel": "tree"}, decoding=Beam()),
    "sampling": Place("search", say("How pieces are chosen: before the draw"), {"search_panel": "sampling"},
                      decoding=Sampling()),
    "all_heads": Place("attention", say("Attention: all heads"), {"panel": "overview"}),
    "encoder": Place("attention", say("Attention: encoder"), {"panel": "overview", "kind": "encoder"}),
    "one_map": Place("attention", say("Attention: one map"), {"panel": "head"}),
    "rollout": Place("attention", say("Attention: rollout"), {"panel": "head", "layer": None, "head": None,
                                                              "aggregate": "rollout"}),
    "one_weight": Place("attention", say("Attention: one weight"), {"panel": "walk"}),
    "table": Place("positions", say("Positions: the table"), {"positions_panel": "table"}),
    "shift": Place("positions", say("Positions: shift"), {"positions_panel": "shift"}),
    "sentence": Place("positions", say("Positions: the sentence"), {"positions_panel": "sentence"}),
    "learned": Place("positions", say("Positions: a learned table"), {"positions_panel": "table"},
                     has=lambda config: config.positions == "learned", shown_by="reverse"),
    "rotations": Place("positions", say("Positions: rotations"), {"positions_panel": "rotations"},
                       has=lambda config: config.positions == "rotary", shown_by="addition"),
    "alibi": Place("attention", say("What if: ALiBi added"), {"panel": "overview"}, changes="alibi-all.1"),
    "far": Place("attention", say("What if: all positions 32 further on"), {"panel": "overview"},
                 changes="shift-all.32"),
    "masks": Place("masks", say("Masks"), {"masks_panel": "masks"}),
    "causal": Place("masks", say("Masks: causal"), {"masks_panel": "masks", "mask": "causal"}),
    "combined": Place("masks", say("Masks: padding and causal"), {"masks_panel": "masks", "mask": "decoder"}),
    "checks": Place("masks", say("Masks: checks"), {"masks_panel": "checks"}),
    "model": Place("inside", say("Inside: the model"), {"inside_panel": "model"}),
    "stream": Place("inside", say("Inside: residual stream"), {"inside_panel": "stream"}),
    "lens": Place("inside", say("Inside: logit lens"), {"inside_panel": "lens"}),
    "neurons": Place("inside", say("Inside: feed-forward"), {"inside_panel": "ffn"}),
    "embeddings": Place("inside", say("Inside: embeddings"), {"inside_panel": "pieces"}),
    "fast": Place("inside", say("Inside: speed-ups"), {"inside_panel": "fast"}),
    "parameters": Place("doctor", say("Doctor: parameters"), {"doctor_panel": "parameters"}),
    "compare": Place("compare", say("Compare")),
    "changed": Place("compare", say("What if: scores without scaling"), {"compared": "changed"},
                     changes="scale-all.off.1"),
    "few_bits": Place("compare", say("What if: weights of 4 bits"), {"compared": "changed"},
                      changes="bits-4"),
    "key_bias": Place("attention", say("What if: a random bias on all keys"), {"panel": "overview"},
                      changes="keybias-all.3.0"),
    "drafts": Place("search", say("How pieces are chosen: drafts"), {"search_panel": "drafts"}),
    "heads": Place("matters", say("What matters: heads"), {"matters_panel": "heads"}),
    "no_scale": Place("wrong", say("What goes wrong: scores without scaling"), {"mistake": "scale"}),
    "forcing": Place("forcing", say("Teacher forcing")),
    "credit": Place("matters", say("What matters: pieces"), {"matters_panel": "pieces"}),
    "contributions": Place("matters", say("What matters: logit"), {"matters_panel": "logit"}),
    "training": Place("training", say("Training")),
    "checkpoints": Place("checkpoints", say("Checkpoints")),
    "sentences": Place("sentences", say("A file of sentences")),
    "lessons": Place("lessons", say("Lessons")),
    "room": Place("room", say("A room")),
}  # fmt: skip
"""Every place that a term may name."""
