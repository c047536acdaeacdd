"""What a browser shows of each picture at each step is what the server draws, for every kind of model and run."""

import json
from random import Random

import pytest

from glassformer.runs.picture import PICTURES, declare_all
from glassformer.runs.step_frames import Frames
from glassformer.state.view import all_fields
from tests.glassformer.runs.test_step_frames import OF, changed, drawn, fetched
from tests.glassformer.test_pictures import look, opened  # noqa: F401 (a fixture)
from tests.transformer.made_up_changes import SilentHead
from transformer.runs.query import Beam, Sampling

declare_all()

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
CHOICES = (
    "kind", "side", "aggregate", "unsure", "depths", "lens_colour", "nearness", "mask", "effect_at", "rounds",
    "begin",
)  # fmt: skip
SWITCHES = ("words", "hide_special", "own_scale", "log_scale", "cosine", "apart", "fold", "with_beam", "ends")
PLACES = ("layer", "head", "query", "key", "neuron", "at", "changed", "hidden", "rival")


def there(names):
    """Those fields that there are: some are of extensions."""
    return [name for name in names if name in all_fields()]


def asked(number, runs=RUNS):
    """The kind of a run, what its link asks for, and what is looked at of it, drawn by its number."""
    kind, more = runs[number]
    draw = Random(number)
    words = "abcdefghij" if kind == "reverse" else ("ba ", "lo ", "mi ", "ta ", "ke ", "su ")
    source = "".join(draw.choices(words, k=draw.randint(1, 5)))
    looked_at = {name: draw.choice([word for word in all_fields()[name].words if word]) for name in there(CHOICES)}
    looked_at["measure"] = draw.choice(("entropy_share", "log_prob", "kl", "pieces"))  # some are an extension's
    looked_at |= {name: draw.random() < 0.3 for name in there(SWITCHES)}
    looked_at |= {name: draw.choice((None, 0, 1, 2)) for name in there(PLACES)}
    return kind, {"source": source, "max_new": 4} | more, looked_at


def pictures(follows):
    return [key for key, picture in PICTURES.items() if picture.follows == follows]


def looks(opened, key, number, runs=RUNS):  # noqa: F811
    """A function that looks at a picture at a step of a run."""
    kind, link, looked_at = asked(number, runs)
    return lambda step: look(PICTURES[key], opened(kind), kind, asked=link, **looked_at | {"step": step})


def one_that_shows(opened, key):  # noqa: F811
    """The number of a run that shows a picture, another one for each picture."""
    turn = [(number + list(PICTURES).index(key)) % len(RUNS) for number in range(len(RUNS))]
    return next(number for number in turn if PICTURES[key].of(looks(opened, key, number)(1)) is not None)


def follows_the_step(opened, key, number, runs=RUNS):  # noqa: F811
    """Whether frames, fetched once, are what the server draws at each step; nothing where nothing is drawn."""
    picture, at = PICTURES[key], looks(opened, key, number, runs)
    run = at(1)
    moment = drawn(picture, run)
    if moment is None:
        return
    frames = Frames()
    found = fetched(frames, frames.offer(picture, run, OF, moment))
    assert len(found["changes"]) == run.trace.n_steps > 1
    for step, made in enumerate(found["changes"]):
        there = drawn(picture, at(step))
        assert changed(found["first"], made) == there | {"figure": json.loads(there["figure"])}


def stands_still(opened, key, number, runs=RUNS, *, every=True):  # noqa: F811
    """Whether the server draws the same at each step, or at the first, a middle and the last one."""
    picture, at = PICTURES[key], looks(opened, key, number, runs)
    run = at(0)
    first, last = drawn(picture, run), run.trace.n_steps - 1
    assert all(drawn(picture, at(step)) == first for step in (range(last + 1) if every else {last // 2, last}))


@pytest.mark.parametrize("key", pictures("frames"))
def test_frames_are_what_the_server_draws_at_each_step(opened, key):  # noqa: F811
    follows_the_step(opened, key, one_that_shows(opened, key))


@pytest.mark.parametrize("key", pictures("still"))
def test_a_picture_that_stands_still_is_the_same_at_each_step(opened, key):  # noqa: F811
    stands_still(opened, key, one_that_shows(opened, key), every=False)


@pytest.mark.deep
@pytest.mark.parametrize("number", range(len(RUNS)))
@pytest.mark.parametrize("key", [*pictures("frames"), *pictures("still")])
def test_pictures_of_every_run_are_what_the_server_draws_at_each_step(opened, key, number):  # noqa: F811
    (follows_the_step if PICTURES[key].follows == "frames" else stands_still)(opened, key, number)
