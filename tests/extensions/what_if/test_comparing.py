"""What a link compares: both runs are said, there and back, and what strangers write is put right and said."""

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
    return bare, (
        view.kind, view.layer, view.head,
    )  # fmt: skip


# ---------------------------------------------------------------- there and back


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
        ({"model": "zh-en", "source": "noon"}, "checkpoints"),
    ],
)
def test_what_is_compared_follows_from_what_differs(changes, compared):
    second = replace(LINK, **changes)
    link = opened(comparing(LINK, with_=second))
    assert settled(link) == (compared, ())
    assert second_of(link) == (replace(second, view=replace(second.view, step=3)), ())


def test_a_reference_belongs_to_its_sentence():
    link = replace(LINK, reference="cba")
    for changes, reference in (({"model": "zh-en"}, "cba"), ({"source": "noon"}, None)):
        assert second_of(opened(comparing(link, with_=replace(link, **changes))))[0].reference == reference


def test_a_changed_run_is_compared_with_its_control_without_a_second_one():
    changed = replace(LINK, interventions=(HEAD,))
    for link in (comparing(LINK, with_=changed), comparing(changed, with_=LINK), comparing(changed)):
        assert write_link(link) == write_link(changed)
        assert settled(link) == ("changed", ())
        assert control_of(link) == LINK


def test_two_changes_are_two_runs():
    first, second = (replace(LINK, interventions=(ZeroHead("cross", 0, head),)) for head in (1, 2))
    link = comparing(first, with_=second)
    assert settled(link) == ("ways", ())
    assert second_of(opened(link)) == (second, ())


def test_nothing_is_written_where_nothing_differs():
    assert differences(LINK, LINK) == {}
    assert comparing(LINK, with_=LINK) == LINK
    assert settled(LINK) == ("changed", ())


# ---------------------------------------------------------------- what belongs to one model or one sentence


def test_another_model_takes_over_no_changes_no_branch_and_no_version():
    first = replace(LINK, revision="abc", forced=(5,), interventions=(HEAD,), answers=(("n_heads", 4),))
    second, _ = second_of(replace(first, beside=write_nested({"model": "zh-en"})))
    assert (second.revision, second.forced, second.interventions, second.answers) == ("", (), (), ())
    assert (second.source, second.view) == ("abc", first.view)


def test_another_sentence_takes_over_changes_and_no_branch():
    first = replace(LINK, forced=(5,), interventions=(HEAD,))
    second, _ = second_of(replace(first, beside=write_nested({"src": "noon"})))
    assert (second.forced, second.interventions, second.model) == ((), (HEAD,), "reverse")


def test_an_empty_value_is_the_default():
    second, notes = second_of(replace(LINK, beside="layer=&head="))
    assert (second.view.layer, second.view.head, notes) == (None, None, ())


# ---------------------------------------------------------------- what strangers write


@pytest.mark.parametrize(
    "text", ["b=x", "job=secret", "layer=1&layer=2", "layer", "&&&", "model=a&nonsense=b", "panel=head", "=", "%"]
)
def test_a_second_run_that_cannot_be_read_is_said_and_left_out(text):
    link, notes = read(b=text, src="abc")
    assert (link.beside, link.source) == ("", "abc")
    assert notes == ("The link's second run could not be read and was ignored.",)


def test_a_long_second_run_is_said_and_left_out():
    link, notes = read(b="src=" + "a" * LONGEST)
    assert not link.beside
    assert "characters) and was ignored" in notes[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("layer=-7", "“layer” in the link is -7"),
        ("do=nonsense", "The link's changes to the model were ignored"),
        ("forced=1.x", "forced pieces could not be read"),
        ("how=guessing", "unknown decoding method, “guessing”"),
        ("kind=sideways", "“kind” in the link is “sideways”, which is not a valid choice; cross is used instead."),
        ("src=" + "a" * 4_001, "The link's sentence was ignored."),
    ],
)
def test_what_is_wrong_with_a_second_run_is_said_of_it(text, said):
    link, notes = read(b=text, src="abc", layer="2")
    assert not notes
    second, notes = second_of(link)
    assert len(notes) == 1
    assert notes[0].startswith("In the second run: ")
    assert said in notes[0]
    assert isinstance(second, Link)


@pytest.mark.parametrize("compared", ["sentences", "changed", "branches"])
def test_a_link_that_contradicts_itself_compares_what_differs(compared):
    link, notes = read(b="head=1", compare=compared)
    assert not notes
    found, notes = settled(link)
    assert found == "heads"
    assert notes == (
        "The link names a comparison that does not match its second run, so the page compares what actually "
        "differs between the two runs.",
    )


@given(st.text(max_size=60))
def test_no_text_breaks_a_link(text):
    link, _ = read(b=text)
    second, _ = second_of(link)
    assert read_nested(link.beside) is not None
    assert settled(link)[0] != "auto"
    assert isinstance(second.decoding, Beam | Sampling | type(Link().decoding))


# ---------------------------------------------------------------- "Compare this"


AT_A_CELL = replace(LINK, view=replace(LINK.view, query=4, key=5))


def looked_at(**changes):
    return of_what_is_looked_at(replace(AT_A_CELL, **changes), "attention")


def test_a_changed_run_is_compared_with_its_control():
    link = looked_at(interventions=(HEAD,), forced=(5,))
    assert (link.interventions, link.forced, link.beside) == ((HEAD,), (5,), "")
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
    assert settled(of_what_is_looked_at(AT_A_CELL, "step")) == ("changed", ())


def test_what_was_compared_before_and_a_cell_of_a_map_stay_behind():
    link = of_what_is_looked_at(replace(AT_A_CELL, beside="src=noon", job="secret"), "step")
    assert (link.beside, link.job, link.view.query, link.view.key, link.view.step) == ("", "", None, None, 3)
