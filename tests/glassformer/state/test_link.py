"""An address that is written is read again, with branches and answers; what strangers write is put right and said."""

import unicodedata
from dataclasses import replace
from types import UnionType
from typing import Literal, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.positions import MAX_DIMS
from glassformer.state import fields
from glassformer.state.fields import MOST_COMPANIONS
from glassformer.state.link import (
    DEFAULT_NEW,
    MOST_ANSWERS,
    Link,
    read_answers,
    read_link,
    with_answer,
    without_answer,
    write_answers,
    write_link,
)
from glassformer.state.view import View, all_fields, parameters
from tests.transformer.made_up_changes import SilentHead
from tests.transformer.made_up_changes import made_up_changes as made_up_changes
from transformer.errors import QueryError
from transformer.runs.query import MAX_BEAM, MAX_NEW, MAX_SEED, MAX_SOURCE_CHARACTERS, Beam, Greedy, Sampling

OF_A_RUN = "model rev answers src ref how beam lp temp k p seed max forced result do with b tried"
KEYS = (*OF_A_RUN.split(), *parameters())
pytestmark = pytest.mark.usefixtures("made_up_changes")
PLAIN = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
MOST = {"sentence": MOST_COMPANIONS, "draft_bits": 8}  # of numbers with less room than others
BEAMS = st.builds(Beam, size=st.integers(1, MAX_BEAM), length_penalty=st.floats(0, 2))
SAMPLED = st.floats(0.05, 5), st.integers(0, 1_000_000), st.floats(0.01, 1), st.integers(0, MAX_SEED)
SAMPLINGS = st.builds(Sampling, **dict(zip(("temperature", "top_k", "top_p", "seed"), SAMPLED, strict=True)))


def values_of(name, hint, default):
    """Values that a field of the view may have, by its type."""
    kinds = {
        bool: st.booleans(),
        int: st.integers(1, MOST.get(name, 200)),
        float: st.floats(0.05, 1).map(lambda number: round(number, 6)),
        str: st.sampled_from([default, "source.0", "target.4711", "a b&c"]),
        type(None): st.none(),
        tuple[int, ...]: st.lists(st.integers(0, 600), unique=True, max_size=MAX_DIMS).map(tuple),
    }
    if get_origin(hint) is Literal:
        return st.sampled_from(get_args(hint))
    return st.one_of(*(kinds[one] for one in (get_args(hint) if get_origin(hint) is UnionType else (hint,))))


FIELDS = {name: values_of(name, get_type_hints(one.record)[name], one.default) for name, one in all_fields().items()}
VIEWS = st.builds(View().but, **FIELDS)
CHANGES = st.builds(
    SilentHead, kind=st.sampled_from(["encoder", "decoder", "cross"]), layer=st.integers(0, 20), head=st.integers(0, 20)
)
ANSWERS = st.none() | st.booleans() | st.integers(-9, 9_999) | st.floats(0, 2) | PLAIN.filter(bool)
LINES = PLAIN.filter(lambda text: text.splitlines() == [text]).map(lambda text: unicodedata.normalize("NFC", text))


@st.composite
def links(draw):
    decoding = draw(st.just(Greedy()) | BEAMS | SAMPLINGS)
    max_new = draw(st.integers(1, MAX_NEW))
    source = draw(st.none() | PLAIN)
    return Link(
        model=draw(PLAIN),
        revision=draw(PLAIN),
        answers=tuple(draw(st.dictionaries(st.sampled_from(["n_heads", "norm"]), ANSWERS)).items()),
        source=None if source is None else unicodedata.normalize("NFC", source),
        reference=unicodedata.normalize("NFC", draw(PLAIN)) or None,
        decoding=decoding,
        max_new=max_new,
        forced=tuple(draw(st.lists(st.integers(0, 9_999_999), max_size=min(20, max_new)))),
        hypothesis=draw(st.integers(0, decoding.size - 1)) if isinstance(decoding, Beam) else 0,
        interventions=tuple(draw(st.lists(CHANGES, max_size=4, unique=True))),
        companions=draw(st.none() | st.lists(LINES, min_size=1, max_size=3).map(tuple)),
        view=draw(VIEWS),
    )


def read(**parameters):
    """Read an address in which each name has one value, or the values of a list."""
    return read_link({name: v if isinstance(v, list) else [v] for name, v in parameters.items()})


@given(links())
def test_what_is_written_is_read_again(link):
    written = {name: [value] for name, value in write_link(link).items()}
    assert read_link(written) == (link, ())


def test_the_plain_address_is_the_default_view_people_count_from_one_and_a_link_becomes_a_query():
    assert write_link(Link(max_new=DEFAULT_NEW)) == {}
    assert read_link({}) == (Link(), ())
    written = write_link(Link(view=View(step=2, layer=0, head=3), decoding=Beam(), hypothesis=1))
    assert [written[name] for name in ("step", "layer", "head", "result")] == ["3", "1", "4", "2"]
    assert write_link(Link(source="")) == {"src": ""}
    assert (read(src="")[0].source, read_link({})[0].source) == ("", None)
    query = Link(source="glass", decoding=Beam(size=3), max_new=9, forced=(4, 5), hypothesis=2).query("hash")
    assert (query.checkpoint, query.source, query.forced, query.hypothesis) == ("hash", "glass", (4, 5), 2)
    with pytest.raises(QueryError, match="4,001 characters"):
        Link(source="x" * 4001).query("hash")


@given(
    st.dictionaries(
        st.sampled_from(KEYS) | st.text(max_size=5),
        st.lists(
            st.text(max_size=60) | st.integers().map(str) | st.floats().map(str), max_size=3  # NaN and inf as well
        ),
        max_size=8,
    )
)  # fmt: skip
def test_nothing_that_strangers_write_raises(parameters):
    link, notes = read_link(parameters)
    assert all(note.endswith(".") for note in notes)
    written = {name: [value] for name, value in write_link(link).items()}
    assert read_link(written) == (link, ())  # what was put right once stays so
    link.query("hash")


@pytest.mark.parametrize(
    ("parameters", "read_as", "note"),
    [
        ({"beam": "1000000", "how": "beam"}, {"decoding": Beam(size=MAX_BEAM)}, "outside the allowed range of 1 to 16"),
        ({"temp": "nan", "how": "sampling"}, {"decoding": Sampling(temperature=0.05)}, "temp"),
        ({"seed": "9" * 5000, "how": "sampling"}, {"decoding": Sampling()}, "too long (5,000 characters)"),
        ({"step": "0"}, {"view": View()}, "step"),
        ({"dims": "1.0"}, {"view": View()}, "could not be read"),
        ({"step": "two"}, {"view": View()}, "not a number"),
        ({"how": "guided"}, {"decoding": Greedy()}, "unknown decoding method, “guided”"),
        ({"src": ["one", "two"]}, {"source": "one"}, "“src” appears 2 times"),
        ({"src": "s" * 600_000}, {"source": None}, "600,000 characters; the limit is 4,000"),
        ({"ref": "r" * 4_001}, {"reference": None}, "“ref” in the link was ignored. The reference has 4,001"),
        ({"forced": "1.2.x"}, {"forced": ()}, "could not be read"),
        ({"forced": "１.２"}, {"forced": ()}, "could not be read"),
        ({"forced": "4.5.6", "max": "2"}, {"forced": (), "max_new": 2}, "more tokens than the maximum output length"),
        ({"result": "9", "how": "beam"}, {"decoding": Beam(), "hypothesis": 3}, "result"),
    ],
)
def test_what_is_wrong_is_put_right_and_said(parameters, read_as, note):
    link, notes = read(**parameters)
    assert link == replace(Link(), **read_as)
    assert len(notes) == 1
    assert note in notes[0]


def test_what_can_be_read_is_left_as_it_is_and_notes_stay_short():
    assert read(step="9999") == (Link(view=View(step=9998)), ())  # a step beyond the output is left to the run
    for text, there in (("a\ud800b", "a?b"), (long := "字" * MAX_SOURCE_CHARACTERS, long)):  # half a surrogate pair
        assert read(src=text) == (Link(source=there), ())
    assert all(len(note) < 160 for note in read(how="x" * 90, step="y" * 40, lp="z" * 90)[1])


@given(st.lists(st.lists(st.integers(0, 99_999), min_size=1, max_size=12).map(tuple), max_size=12, unique=True))
def test_what_was_written_is_read(tried):
    assert fields.read_branches(fields.write_branches(tried), longest=12) == tuple(tried)


def test_what_is_no_branch_is_left_out_and_said():
    for text in ("x", "1..2", "1_", "-1", "1~", "12345678", "_".join("123456789abcd"), "1.²"):
        link, notes = read(tried=text, src="abc")
        assert (link, len(notes)) == (Link(source="abc"), 1), text


def test_branches_of_one_output_take_little_more_room_than_the_longest_and_the_oldest_have_none():
    own = tuple(range(1000, 1100))
    tried = [(*own[:n], 7) for n in range(40, 100, 5)]
    text = fields.write_branches(tried)
    assert len(text) < len(".".join(map(str, tried[-1]))) + 150
    assert fields.read_branches(text, longest=512) == tuple(tried)
    tried = [tuple(range(1000 * n, 1000 * n + 200)) for n in range(1, 13)]
    text = fields.write_branches(tried)
    assert len(text) <= fields.LONGEST_BRANCHES
    kept = fields.read_branches(text, longest=512)
    assert kept == tuple(tried[-len(kept) :]) != ()
    link = Link(source="abc", forced=(5, 9), tried=((5, 9), (5, 7)))
    assert write_link(link)["tried"] == "5.9_1~7"
    assert read_link({name: (value,) for name, value in write_link(link).items()}) == (link, ())


def test_answers_are_said_as_a_person_would_keep_their_types_and_what_is_none_is_refused_as_a_whole():
    answers = (("n_heads", 4), ("norm", "pre"), ("scale_embedding", True), ("bos_id", None), ("norm_eps", 1e-06))
    assert write_answers(answers) == "n_heads=4,norm=pre,scale_embedding=true,bos_id=null,norm_eps=1e-06"
    texts = ("a,b=c", "4", "true", "null", '"quoted"', "größer/als 1%.model", "1e400", "NaN", "[1]")
    for said in (answers, *((("pieces", value),) for value in (*texts, 0, False, -1.5))):
        assert repr(read_answers(write_answers(said))) == repr(said)
    many = ",".join(f"a{i}=1" for i in range(MOST_ANSWERS + 1))
    wrong = (
        "n_heads",
        "n_heads=",
        "=4",
        "N=4",
        "a=1,a=2",
        "a=1,,b=2",
        "__class__=1",
        f"a={'x' * 301}",
        "a" * 41 + "=1",
    )
    assert [text for text in (*wrong, many) if read_answers(text) is not None] == []
    changed = with_answer((("a", 1), ("b", 2)), "a", 3)
    assert changed == (("a", 3), ("b", 2))
    assert without_answer(changed, "b") == (("a", 3),)
    assert read_answers("") == ()
