"""Glossary: its terms and where each is shown, the term tooltips of every page, and the page of all terms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from glassformer.components.custom_component import Element, told_text
from glassformer.glossary import GlossaryLook
from glassformer.runs import loading
from glassformer.runs.run_address import address, publish
from glassformer.shared import menu
from glassformer.state import session
from glassformer.state.link import Link
from glassformer.state.view import MAIN, View, all_fields
from transformer.i18n import Sentence, say
from transformer.i18n.sentence import read_table
from transformer.model.config import ModelConfig
from transformer.runs.interventions import kinds, parse
from transformer.runs.query import Beam, Decoding, Sampling
from transformer.runs.trace import LabelledMaps

if TYPE_CHECKING:
    from transformer.checkpoint.load import Checkpoint


@dataclass(frozen=True)
class TermLocation:
    """A place in the app."""

    page: str  # name of a page in a folder of `pages/`, and in an address
    label: str  # what it is called
    fields: dict[str, Any] = field(default_factory=dict)  # what is looked at there, by the names of fields
    decoding: Decoding | None = None  # the way of decoding, where it is about one
    changes: str = ""  # what is changed in the model there, as in an address
    has: Callable[[ModelConfig], bool] = lambda _: True  # whether a model has it; if not, the one `shown_by` has
    shown_by: str = ""


PLACES = {
    "step": TermLocation("step", say("Translate")),
    "beam": TermLocation("search", say("How tokens are chosen: the beam tree"), {"search_panel": "tree"},
                         decoding=Beam()),
    "sampling": TermLocation("search", say("How tokens are chosen: before the draw"), {"search_panel": "sampling"},
                      decoding=Sampling()),
    "all_heads": TermLocation("attention", say("Attention: all heads"), {"panel": "overview"}),
    "encoder": TermLocation("attention", say("Attention: encoder"), {"panel": "overview", "kind": "encoder"}),
    "one_map": TermLocation("attention", say("Attention: one map"), {"panel": "head"}),
    "rollout": TermLocation("attention", say("Attention: rollout"), {"panel": "head", "layer": None, "head": None,
                                                              "aggregate": "rollout"}),
    "one_weight": TermLocation("attention", say("Attention: one weight"), {"panel": "walk"}),
    "table": TermLocation("positions", say("Positions: the table"), {"positions_panel": "table"}),
    "shift": TermLocation("positions", say("Positions: shift"), {"positions_panel": "shift"}),
    "sentence": TermLocation("positions", say("Positions: the sentence"), {"positions_panel": "sentence"}),
    "learned": TermLocation("positions", say("Positions: a learned table"), {"positions_panel": "table"},
                     has=lambda config: config.positions == "learned", shown_by="reverse"),
    "rotations": TermLocation("positions", say("Positions: rotations"), {"positions_panel": "rotations"},
                       has=lambda config: config.positions == "rotary", shown_by="addition"),
    "alibi": TermLocation("attention", say("What if: ALiBi added"), {"panel": "overview"}, changes="alibi-all.1"),
    "far": TermLocation("attention", say("What if: all positions 32 further on"), {"panel": "overview"},
                 changes="shift-all.32"),
    "masks": TermLocation("masks", say("Masks"), {"masks_panel": "masks"}),
    "causal": TermLocation("masks", say("Masks: causal"), {"masks_panel": "masks", "mask": "causal"}),
    "combined": TermLocation("masks", say("Masks: padding and causal"), {"masks_panel": "masks", "mask": "decoder"}),
    "checks": TermLocation("masks", say("Masks: checks"), {"masks_panel": "checks"}),
    "model": TermLocation("inside", say("Inside: the model"), {"inside_panel": "model"}),
    "stream": TermLocation("inside", say("Inside: residual stream"), {"inside_panel": "stream"}),
    "lens": TermLocation("inside", say("Inside: logit lens"), {"inside_panel": "lens"}),
    "neurons": TermLocation("inside", say("Inside: feed-forward"), {"inside_panel": "ffn"}),
    "embeddings": TermLocation("inside", say("Inside: embeddings"), {"inside_panel": "pieces"}),
    "fast": TermLocation("inside", say("Inside: speed-ups"), {"inside_panel": "fast"}),
    "parameters": TermLocation("doctor", say("Doctor: parameters"), {"doctor_panel": "parameters"}),
    "compare": TermLocation("compare", say("Compare")),
    "changed": TermLocation("compare", say("What if: scores without scaling"), {"compared": "changed"},
                     changes="scale-all.off.1"),
    "few_bits": TermLocation("compare", say("What if: weights of 4 bits"), {"compared": "changed"},
                      changes="bits-4"),
    "key_bias": TermLocation("attention", say("What if: a random bias on all keys"), {"panel": "overview"},
                      changes="keybias-all.3.0"),
    "drafts": TermLocation("search", say("How tokens are chosen: drafts"), {"search_panel": "drafts"}),
    "heads": TermLocation("attention", say("What heads do"), {"panel": "table", "measure": "log_prob"}),
    "plain": TermLocation("attention", say("Attention: without parameters"), {"panel": "plain"}),
    "shared_heads": TermLocation("attention", say("Attention: shared key-value heads"), {"panel": "walk"},
                          has=lambda config: config.n_kv_heads < config.n_heads, shown_by="addition"),
    "families": TermLocation("inside", say("Inside: what known models are made of"),
                      {"inside_panel": "model", "families": True}),
    "window": TermLocation("attention", say("What if: a window of one token on each side"), {"panel": "overview"},
                    changes="window-all.1"),
    "random_features": TermLocation("compare", say("What if: random features instead of the softmax"),
                             {"compared": "changed"}, changes="features-all.64.0"),
    "no_scale": TermLocation("wrong", say("What goes wrong: scores without scaling"), {"mistake": "scores-not-scaled"}),
    "forcing": TermLocation("forcing", say("Teacher forcing")),
    "credit": TermLocation("matters", say("What matters: tokens"), {"matters_panel": "pieces"}),
    "paths": TermLocation("matters", say("What matters: why this token"), {"matters_panel": "paths"}),
    "contributions": TermLocation("matters", say("What matters: logit"), {"matters_panel": "logit"}),
    "training": TermLocation("training", say("Training")),
    "checkpoints": TermLocation("checkpoints", say("Checkpoints")),
    "sentences": TermLocation("sentences", say("A file of sentences")),
    "lessons": TermLocation("lessons", say("Lessons")),
    "room": TermLocation("room", say("A room")),
}  # fmt: skip
"""Every place that a term may name."""


@dataclass(frozen=True)
class Term:
    """A term, in sentences."""

    # Another name is in brackets: "rotary position embedding (RoPE)". The browser matches English names in singular
    # and plural, upper and lower case.
    name: Sentence
    text: Sentence  # what it means
    seen: str  # where it is seen, a name in `PLACES`
    also: str = ""  # other words for it, irregular plurals among them, with "|" between
    # For a name of one word that also has an everyday meaning: words, with "|" between, of which one has to be in the
    # same paragraph for this one to be the term.
    among: str = ""

    @property
    def id(self) -> str:
        """Its English name, by which an address asks for it."""
        return str(self.name)

    def plain(self) -> dict[str, str]:
        """What the browser is told of it."""
        return {"id": self.id} | {name: text for name, text in vars(self).items() if text and name != "seen"}


TERMS: Final = tuple(
    Term(**row) for group in read_table(Path(__file__).with_name("terms.toml"))["terms"].values() for row in group
)

# For translators: phrases in which a word of the glossary means something else and is not underlined.
APART = say(
    "arrow keys|last bit|output layer|output head|MLM head|shapes of the lines|output branches|in the "
    "branch|Shift+Enter|linear map|transformers|weights file|weights files|address parameter|unknown keys|the keys "
    "dtype|scale and shift|scales and shifts|residual branch",
    about="glossary",
)


# Underlines lie over the whole document, and definitions above it.
_MARKS = Element("glossary_marks", isolated=False)
_LIST = Element("glossary_list")


MARKS = "glossary_marks"
LIST = "glossary_list"


def underline() -> None:
    """Have the browser underline the terms of whatever page is drawn."""
    _MARKS.draw({"terms": [term.plain() for term in TERMS], "apart": APART}, key=MARKS)


def draw(checkpoint: Checkpoint | LabelledMaps) -> None:
    """Draw all terms, each with a link to where it is seen with the sentence at hand."""
    link = session.asked()
    seen = {
        name: {"place": place.label, "address": menu.href(place.page, leads_to(checkpoint, place, link))}
        for name, place in PLACES.items()
        if is_there(place)
    }
    listed = [term.plain() | seen.get(term.seen, {}) for term in TERMS]
    payload = {"terms": listed, "chosen": link.view.of(GlossaryLook).term}
    _LIST.draw(payload, key=LIST, hears={"term": _choose})
    publish(checkpoint)


def is_there(place: TermLocation) -> bool:
    """Whether what is seen at a place is there, which an extension may have that is gone."""
    for name, value in place.fields.items():
        if name not in all_fields():
            return False
        words = [word for word in all_fields()[name].words if isinstance(word, str)]
        if words and isinstance(value, str) and value not in words:
            return False
    return menu.has(place.page) and (not place.changes or place.changes.partition("-")[0] in kinds())


def leads_to(checkpoint: Checkpoint | LabelledMaps, place: TermLocation, link: Link) -> Link:
    """What the page of a place shows, with what is asked for now, or with a model that has what is seen there."""
    own = None if isinstance(checkpoint, LabelledMaps) else checkpoint.config
    if place.shown_by in loading.usable() and (own is None or not place.has(own)):
        return Link(model=place.shown_by, view=View().but(**place.fields))
    if place.decoding is not None and type(place.decoding) is not type(link.decoding):
        link = replace(link, decoding=place.decoding, forced=(), tried=(), hypothesis=0)
    changes = parse(place.changes)
    if own is not None and changes and all(one.unfit(own) is None for one in changes):
        link = replace(link, interventions=changes)
    return address(checkpoint, link, **({"term": "", "query": None, "key": None} | place.fields))


def _choose() -> None:
    session.replace(MAIN, term=told_text(LIST, "term"))
