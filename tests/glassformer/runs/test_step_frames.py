"""A browser that fetches frames gets what the server draws at each step; what is hidden or too large has none."""

import gzip
import json
from dataclasses import replace
from random import Random
from types import MappingProxyType
from unittest.mock import Mock

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.testclient import TestClient

from glassformer.runs import step_frames as module
from glassformer.runs.picture import PICTURES, declare_all
from glassformer.runs.step_frames import Frames, change, routes
from glassformer.shared.csv_export import Origin
from glassformer.shared.drawing import at_a_moment
from glassformer.state.view import MAIN, SECOND, all_fields
from tests.glassformer.conftest import look
from tests.transformer.made_up_changes import SilentHead
from transformer.errors import QueryError
from transformer.runs.query import Beam, Sampling

declare_all()

OF = Origin(checkpoint="reverse")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


def changed(before, found):
    """What `common/frames.js` does."""
    if found is None:
        return before
    if isinstance(found, list):
        return found[0]
    before = list(before) if isinstance(before, list) else dict(before)
    for key, one in found.items():
        place = int(key) if isinstance(before, list) else key
        if one == []:
            del before[place]
        else:
            old = before[place] if isinstance(before, list) else before.get(place)
            before[place] = changed(old, one)
    return before


def drawn(picture, run, *, slot=MAIN):
    """What a page draws, as `drawing.chart`; None where there is nothing."""
    plot = picture.of(run)
    key = f"{slot}{picture.key}"
    return None if plot is None else at_a_moment(plot.spec, OF, key=key, language="en", **plot.words)[1]


def fetched(frames, name):
    return json.loads(gzip.decompress(frames.get(name)))


@pytest.fixture
def offered(opened):
    """A function that offers frames of the candidates, and returns them and their name."""

    def offer(frames=None, *, of=OF, drawn_too=MappingProxyType({}), **fields):
        frames, picture = frames or Frames(), PICTURES["candidates"]
        run = look(picture, opened("reverse"), "reverse", **fields)
        return frames, frames.offer(picture, run, of, drawn(picture, run) | drawn_too)

    return offer


def get(frames, name):
    return TestClient(Starlette(routes=routes("app", frames))).get(f"/app/frames/{name}")


def test_a_name_is_the_same_at_each_step_another_for_whatever_else_is_looked_at_and_none_in_guess_mode(offered):
    names = [offered(**fields)[1] for fields in ({}, {"step": 2}, {"layer": 1}, {"slot": SECOND})]
    assert names[0] == names[1]
    assert len(set(names)) == 3
    assert offered(guess=True)[1] == "server"


def test_an_answer_is_json_that_a_browser_may_keep(offered):
    answer = get(*offered())
    assert (answer.headers["content-type"], answer.headers["content-encoding"]) == ("application/json", "gzip")
    assert "private" in answer.headers["cache-control"]
    assert set(answer.json()) == {"first", "changes"}


def test_what_was_not_offered_is_too_large_or_is_not_what_the_page_drew_is_none(offered, monkeypatch):
    frames, name = offered()
    assert get(frames, "0" * len(name)).status_code == 404
    assert get(*offered(frames, drawn_too={"alt": "something else"})).status_code == 204
    monkeypatch.setattr(module, "MOST_BYTES", 1000)
    assert get(*offered()).status_code == 204
    monkeypatch.setattr(module, "MOST_OFFERS", 2)
    frames = module.Frames()
    names = [offered(frames, of=replace(OF, sentence=text))[1] for text in "abc"]
    assert [get(frames, name).status_code for name in names] == [404, 204, 204]  # the oldest are let go


def test_what_a_busy_server_refuses_may_be_asked_for_again(offered, monkeypatch):
    frames, name = offered()
    with monkeypatch.context() as patched:
        patched.setattr(module.loading, "run", Mock(side_effect=QueryError("no.")))
        assert get(frames, name).status_code == 503
    assert get(frames, name).status_code == 200


@given(JSON, JSON)
@example([True, {"a": 0}], [1, {"a": False}])  # equal to Python, and not the same
def test_changes_make_one_of_the_other(before, after):
    made = changed(before, json.loads(json.dumps(change(before, after))))
    assert json.dumps(made, sort_keys=True) == json.dumps(after, sort_keys=True)
    assert change(after, json.loads(json.dumps(after))) is None


# Four kinds with an encoder and a decoder, of which one is trained, and four with a decoder alone.
RUNS = (
    ("reverse", {}),
    ("relative", {"decoding": Beam(size=3)}),
    ("halves", {"decoding": Sampling(seed=1)}),
    ("decoder", {}),
    ("rotary", {"decoding": Beam(size=3), "hypothesis": 1}),
    ("windows", {"decoding": Sampling(temperature=2.0, seed=2)}),
    ("alibi", {"forced": (9, 12, 9)}),
    ("own decoder", {"companions": ("ta ta",)}),
    ("reverse", {"decoding": Beam(size=4, length_penalty=0.0), "hypothesis": 3}),
    ("relative", {"forced": (8, 5), "reference": "a red fox"}),
    ("halves", {"interventions": (SilentHead("cross", 0, 0),)}),
    ("alibi", {"decoding": Sampling(top_p=0.8, seed=4), "reference": "the moon is small"}),
    ("own decoder", {"interventions": (SilentHead("encoder", 0, 0),), "decoding": Beam(size=2), "hypothesis": 1}),
    ("reverse", {"forced": (6, 6, 6), "interventions": (SilentHead("cross", 1, 1),)}),
)
CHOICES = "kind side aggregate unsure depths lens_colour nearness mask effect_at rounds begin"
SWITCHES = "words hide_special own_scale log_scale cosine apart fold with_beam ends"
PLACES = "layer head query key neuron at changed hidden rival"


def there(names):
    """Those fields that there are: some are of extensions."""
    return [name for name in names.split() if name in all_fields()]


def asked(number):
    """The kind of a run, what its link asks for, and what is looked at of it, drawn by its number."""
    kind, more = RUNS[number]
    draw = Random(number)
    words = "abcdefghij" if kind == "reverse" else ("ba ", "lo ", "mi ", "ta ", "ke ", "su ")
    source = "".join(draw.choices(words, k=draw.randint(1, 5)))
    looked_at = {name: draw.choice([word for word in all_fields()[name].words if word]) for name in there(CHOICES)}
    looked_at["measure"] = draw.choice(("entropy_share", "log_prob", "kl", "pieces"))  # some are an extension's
    looked_at |= {name: draw.random() < 0.3 for name in there(SWITCHES)}
    looked_at |= {name: draw.choice((None, 0, 1, 2)) for name in there(PLACES)}
    return kind, {"source": source, "max_new": 4} | more, looked_at


def looks(opened, key, number):
    """A function that looks at a picture at a step of a run."""
    kind, link, looked_at = asked(number)
    return lambda step: look(PICTURES[key], opened(kind), kind, asked=link, **looked_at | {"step": step})


def follows_the_step(opened, key, number, *, every=True):
    """Whether frames are what the server draws at each step; where it stands still, the same at each or at three."""
    picture, at = PICTURES[key], looks(opened, key, number)
    moment, last = drawn(picture, run := at(1)), run.trace.n_steps - 1
    if picture.follows == "still":
        steps = range(last + 1) if every else {0, last // 2, last}
        assert all(drawn(picture, at(step)) == drawn(picture, at(0)) for step in steps)
    if picture.follows == "still" or moment is None:
        return
    frames = Frames()
    found = fetched(frames, frames.offer(picture, run, OF, moment))
    assert len(found["changes"]) == last + 1 > 1
    for step, made in enumerate(found["changes"]):
        there = drawn(picture, at(step))
        assert changed(found["first"], made) == there | {"figure": json.loads(there["figure"])}


FOLLOWING = [key for key, picture in PICTURES.items() if picture.follows in ("frames", "still")]


@pytest.mark.parametrize("key", FOLLOWING)
def test_frames_are_what_the_server_draws_at_each_step_and_a_picture_that_stands_still_is_the_same(opened, key):
    turn = [(number + list(PICTURES).index(key)) % len(RUNS) for number in range(len(RUNS))]  # another run for each
    number = next(number for number in turn if PICTURES[key].of(looks(opened, key, number)(1)) is not None)
    follows_the_step(opened, key, number, every=False)


@pytest.mark.deep
@pytest.mark.parametrize("number", range(len(RUNS)))
@pytest.mark.parametrize("key", FOLLOWING)
def test_pictures_of_every_run_are_what_the_server_draws_at_each_step(opened, key, number):
    follows_the_step(opened, key, number)
