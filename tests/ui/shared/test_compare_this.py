"""What "Compare this" leads to: with a change the control, else a branch, else a head, else Compare's own lead-on."""

from dataclasses import replace

from transformer.runs.interventions import ZeroHead
from transformer.runs.query import Beam
from ui.shared.compare_this import of_what_is_looked_at
from ui.state.comparing import second_of, settled
from ui.state.link import Link
from ui.state.view import View

LINK = Link(model="reverse", source="abc", view=View(step=3, layer=1, head=2, query=4, key=5))
CHANGE = ZeroHead("cross", 0, 1)


def looked_at(**changes):
    return of_what_is_looked_at(replace(LINK, **changes), "attention")


def test_a_changed_run_is_compared_with_its_control():
    link = looked_at(interventions=(CHANGE,), forced=(5,))
    assert (link.interventions, link.forced, link.beside) == ((CHANGE,), (5,), "")
    assert settled(link) == ("changed", ())


def test_a_branch_is_compared_with_the_models_own_choice():
    link = looked_at(forced=(5, 6), tried=((5, 6), (7,)), decoding=Beam(), hypothesis=1)
    assert (link.forced, link.hypothesis, link.tried) == ((), 0, ((5, 6), (7,)))
    assert settled(link) == ("branches", ())
    second, notes = second_of(link)
    assert (second.forced, second.hypothesis, notes) == ((5, 6), 1, ())


def test_a_head_is_compared_with_another_on_the_page_about_heads_alone():
    link = looked_at()
    assert settled(link) == ("heads", ())
    view = second_of(link)[0].view
    assert (view.kind, view.layer, view.head) == ("cross", 1, 2)
    assert settled(of_what_is_looked_at(LINK, "step")) == ("changed", ())


def test_what_was_compared_before_and_a_cell_of_a_map_stay_behind():
    link = of_what_is_looked_at(replace(LINK, beside="src=noon", job="secret"), "step")
    assert (link.beside, link.job, link.view.query, link.view.key, link.view.step) == ("", "", None, None, 3)
