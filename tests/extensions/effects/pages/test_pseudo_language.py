"""What matters and What goes wrong speak whole sentences, each visitor's language, and can be drawn twice."""

import pytest

from glassformer.extensions.effects.ablation_pictures import climb
from glassformer.extensions.effects.mistake_panels import output
from glassformer.extensions.effects.mistake_runs import look, opening, shown
from glassformer.runs import loading
from tests.extensions.parts_of_pages import MISTAKES, PARTS, parts_of
from tests.extensions.scripts import WRONG
from tests.pages.test_pseudo_language import MODEL, SOURCE, spoken_whole
from tests.pages.test_shared_caches import read_in_each_language
from tests.pages.test_two_slots import draws_twice
from tests.pseudo_language import words_of


def outputs_of(mistake):
    """What both sides of a card write, the first difference marked, and a site that it may name."""
    checkpoint = loading.open_checkpoint(loading.usable()[MODEL])
    query = checkpoint.query(SOURCE)
    one = opening(checkpoint, query) if mistake == "auto" else shown(checkpoint.config)[mistake][0]
    found = look(checkpoint, one, query)
    return [output(trace, found.first) for trace in (found.right, found.wrong) if trace is not None]


def outputs_of_steps():
    """What the model writes while its parts are switched on."""
    checkpoint = loading.open_checkpoint(loading.usable()[MODEL])
    trace = loading.run(checkpoint, checkpoint.query(SOURCE))
    return [output for _, output in climb(checkpoint, trace, trace.tgt_ids)]  # it is right


@pytest.mark.parametrize("name", parts_of("matters"))
def test_what_matters_is_spoken_whole(open_page, name):
    spoken_whole(open_page, PARTS[name], words_of(*outputs_of_steps()) if name == "matters ladder" else frozenset())


@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_goes_wrong_is_spoken_whole(open_page, mistake):
    spoken_whole(open_page, PARTS[f"wrong {mistake}"], words_of(*outputs_of(mistake)))


def test_each_visitor_reads_a_mistake_in_their_language(open_page):
    asked = {"model": "reverse", "src": "zxcvb", "mistake": "scores-not-scaled"}
    read_in_each_language(open_page, WRONG, asked, "权重")


@pytest.mark.parametrize("part", ["pieces", "logit", "ladder"])
def test_every_part_can_be_drawn_twice(part):
    draws_twice("matters", {"matters_panel": part}, "glassformer.extensions.effects.matters_panels")
