"""A link that compares two runs says both, there and back, and what strangers write is put right and said."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glassformer.extensions.what_if.comparison import (
    comparing,
    control_of,
    differences,
    of_what_is_looked_at,
    second_of,
    settled,
)
from glassformer.extensions.what_if.interventions import ZeroHead
from glassformer.state.link import LONGEST, NAMES, Link, read_link, read_nested, write_link, write_nested
from glassformer.state.view import View
from tests.glassformer.state.test_link import links, read
from tests.transformer.made_up_changes import made_up_changes as made_up_changes
from transformer.runs.query import Beam, Sampling

pytestmark = pytest.mark.usefixtures("made_up_changes")
HEAD = ZeroHead("cross", 2, 0)
LINK = Link(model="reverse", source="abc", view=View(step=3, layer=1, head=2))


def opened(link):
    """A link as somebody finds it who opened its address."""
    found, notes = read_link({name: [value] for name, value in write_link(link).items()})
    assert not notes
    return found


def run_of(link):
    """What decides a result, and which map is looked at."""
    view = link.view
    bare = replace(link, beside="", tried=(), companions=None, revision="", view=View(), job="", reference=None)
    return bare, (view.kind, view.layer, view.head)


@given(st.dictionaries(st.sampled_from(NAMES), st.text(st.characters(exclude_categories=["Cs"]), max_size=20)))
def test_what_is_nested_is_read_again(said):
    assert read_nested(write_nested(said)) == said


@settings(max_examples=20)
@given(links(), links())
def test_an_address_says_both_runs(first, second):
    second = replace(second, model="another", source=second.source or "x")
    link = opened(comparing(first, with_=second))
    assert run_of(link) == run_of(first)
    found, notes = second_of(link)
    assert not notes
    assert run_of(found) == run_of(second)


@pytest.mark.parametrize(
    ("changes", "compared"),
    [
        ({"source": "noon"}, "sentences"),
        ({"model": "zh-en"}, "checkpoints"),
        ({"forced": (5, 17)}, "branches"),
        ({"view": replace(LINK.view, head=0)}, "heads"),
        ({"decoding": Beam(size=2)}, "ways"),
        ({"interventions": (ZeroHead("cross", 0, 1),)}, "ways"),
        ({"model": "zh-en", "source": "noon"}, "checkpoints"),
    ],
)
def test_what_is_compared_follows_from_what_differs(changes, compared):
    first = replace(LINK, interventions=(ZeroHead("cross", 0, 2),)) if "interventions" in changes else LINK
    second = replace(first, **changes)
    link = opened(comparing(first, with_=second))
    assert settled(link) == (compared, ())
    assert second_of(link) == (replace(second, view=replace(second.view, step=3)), ())


def test_a_changed_run_is_compared_with_its_control_without_a_second_one():
    changed = replace(LINK, interventions=(HEAD,))
    for link in (comparing(LINK, with_=changed), comparing(changed, with_=LINK), comparing(changed)):
        assert write_link(link) == write_link(changed)
        assert settled(link) == ("changed", ())
        assert control_of(link) == LINK
    assert differences(LINK, LINK) == {}
    assert comparing(LINK, with_=LINK) == LINK
    assert settled(LINK) == ("changed", ())


def test_what_belongs_to_one_model_or_one_sentence_is_not_taken_over_by_another():
    first = replace(LINK, revision="abc", forced=(5,), interventions=(HEAD,), answers=(("n_heads", 4),))
    second, _ = second_of(replace(first, beside=write_nested({"model": "zh-en"})))
    assert (second.revision, second.forced, second.interventions, second.answers) == ("", (), (), ())
    assert (second.source, second.view) == ("abc", first.view)
    second, _ = second_of(replace(first, revision="", beside=write_nested({"src": "noon"})))
    assert (second.forced, second.interventions, second.model) == ((), (HEAD,), "reverse")
    told = replace(LINK, reference="cba")
    for changes, reference in (({"model": "zh-en"}, "cba"), ({"source": "noon"}, None)):
        assert second_of(opened(comparing(told, with_=replace(told, **changes))))[0].reference == reference


@pytest.mark.parametrize(
    ("text", "said"),
    [
        *((text, "The link's second run could not be read and was ignored.") for text in (
            "b=x", "job=secret", "layer=1&layer=2", "&&&", "model=a&nonsense=b", "panel=head")),
        ("src=" + "a" * LONGEST, "characters) and was ignored"),
    ],
)  # fmt: skip
def test_a_second_run_that_cannot_be_read_is_said_and_left_out(text, said):
    link, (note,) = read(b=text, src="abc")
    assert (link.beside, link.source) == ("", "abc")
    assert said in note


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("layer=-7", "“layer” in the link is -7"),
        ("do=nonsense", "The link's changes to the model were ignored"),
        ("forced=1.x", "“forced” in the link could not be read"),
        ("how=guessing", "unknown decoding method, “guessing”"),
        ("kind=sideways", "“kind” in the link is “sideways”, which is not a valid choice; cross is used instead."),
        ("src=" + "a" * 4_001, "“src” in the link was ignored."),
    ],
)
def test_what_is_wrong_with_a_second_run_is_said_of_it(text, said):
    link, notes = read(b=text, src="abc", layer="2")
    assert not notes
    _, (note,) = second_of(link)
    assert note.startswith("In the second run: ")
    assert said in note


def test_a_link_that_contradicts_itself_compares_what_differs():
    for compared in ("sentences", "changed", "branches"):
        link, _ = read(b="head=1", compare=compared)
        found, (note,) = settled(link)
        assert found == "heads"
        assert "names a comparison that does not match its second run" in note


@given(st.text(max_size=60))
def test_no_text_breaks_a_link(text):
    link, _ = read(b=text)
    second, _ = second_of(link)
    assert read_nested(link.beside) is not None
    assert settled(link)[0] != "auto"
    assert isinstance(second.decoding, Beam | Sampling | type(Link().decoding))


AT_A_CELL = replace(LINK, view=replace(LINK.view, query=4, key=5))


def test_compare_this_takes_the_change_then_the_branch_then_the_head_that_is_looked_at():
    link = of_what_is_looked_at(replace(AT_A_CELL, interventions=(HEAD,), forced=(5,)), "attention")
    assert (link.interventions, link.forced, link.beside) == ((HEAD,), (5,), "")
    assert settled(link) == ("changed", ())
    branch = replace(AT_A_CELL, forced=(5, 6), tried=((5, 6), (7,)), decoding=Beam(), hypothesis=1)
    link = of_what_is_looked_at(branch, "attention")
    assert (link.forced, link.hypothesis, link.tried) == ((), 0, ((5, 6), (7,)))
    assert settled(link) == ("branches", ())
    second, notes = second_of(link)
    assert (second.forced, second.hypothesis, notes) == ((5, 6), 1, ())
    link = of_what_is_looked_at(AT_A_CELL, "attention")
    assert settled(link) == ("heads", ())
    view = second_of(link)[0].view
    assert (view.kind, view.layer, view.head) == ("cross", 1, 2)
    link = of_what_is_looked_at(replace(AT_A_CELL, beside="src=noon", job="secret"), "step")  # not about heads
    assert settled(link) == ("changed", ())
    assert (link.beside, link.job, link.view.query, link.view.key, link.view.step) == ("", "", None, None, 3)
