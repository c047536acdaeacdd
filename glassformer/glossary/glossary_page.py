"""The glossary: its terms on every page, and the page that lists them all."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from glassformer.components.glossary_view import chosen_term, glossary_list, glossary_marks
from glassformer.glossary import GlossaryLook
from glassformer.glossary.terms import APART, PLACES, TERMS, Place
from glassformer.runs import loading
from glassformer.runs.open_run import address, publish
from glassformer.shared import menu
from glassformer.state import session
from glassformer.state.link import Link
from glassformer.state.view import MAIN, View
from transformer.runs.interventions import kinds, parse
from transformer.runs.labelled_maps import LabelledMaps

if TYPE_CHECKING:
    from transformer.checkpoint.load import Checkpoint

MARKS = "glossary_marks"
LIST = "glossary_list"


def underline() -> None:
    """Have the browser underline the terms of whatever page is drawn."""
    glossary_marks([term.plain() for term in TERMS], key=MARKS, apart=APART)


def draw(checkpoint: Checkpoint | LabelledMaps) -> None:
    """Draw all terms, each with a link to where it is seen with the sentence at hand."""
    link = session.asked()
    seen = {
        name: {"place": place.label, "address": menu.href(place.page, leads_to(checkpoint, place, link))}
        for name, place in PLACES.items()
        if is_there(place)
    }
    listed = [term.plain() | seen.get(term.seen, {}) for term in TERMS]
    glossary_list(listed, key=LIST, chosen=link.view.of(GlossaryLook).term, on_choice=_choose)
    publish(checkpoint)


def is_there(place: Place) -> bool:
    """Whether what is seen at a place is there, which an extension may have that is gone."""
    return menu.has(place.page) and (not place.changes or place.changes.partition("-")[0] in kinds())


def leads_to(checkpoint: Checkpoint | LabelledMaps, place: Place, link: Link) -> Link:
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
    session.replace(MAIN, term=chosen_term(LIST))
