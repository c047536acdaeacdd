"""What a browser shows of each picture at each step of a changed run is what the server draws."""

import pytest

from tests.glassformer.runs.test_frames_of_runs import follows_the_step, pictures, stands_still
from tests.glassformer.test_pictures import opened  # noqa: F401 (a fixture)
from transformer.errors import QueryError
from transformer.runs.interventions import parse
from transformer.runs.query import Beam, Sampling

RUNS = (
    ("halves", {"interventions": parse("zero-cross.1.1")}),
    ("rotary", {"interventions": parse("causal-off")}),
    ("windows", {"forced": (7,), "interventions": parse("zero-decoder.2.1_noresidual-all.1.all")}),
    ("own decoder", {"interventions": parse("zero-encoder.1.1"), "decoding": Beam(size=2), "hypothesis": 1}),
    ("reverse", {"forced": (6, 6, 6), "interventions": parse("fill-all.m1")}),
    ("relative", {"interventions": parse("causal-inverted"), "decoding": Sampling(seed=5)}),
)

DRAFTS, SEES_LATER = (
    ("search_drafts", "search_bits"),
    (1, 4, 5),
)  # pictures, and runs whose change lets a piece see later


def holds(check, opened, key, number):  # noqa: F811
    """Whether it is so; a draft is refused where one pass over it would show more than a step saw."""
    if key in DRAFTS and number in SEES_LATER:
        with pytest.raises(QueryError, match="lets a piece see later ones"):
            check(opened, key, number, RUNS)
    else:
        check(opened, key, number, RUNS)


@pytest.mark.parametrize("key", pictures("frames")[::4])  # tests of the kernel have a run with every one
def test_frames_are_what_the_server_draws_at_each_step(opened, key):  # noqa: F811
    holds(follows_the_step, opened, key, len(key) % len(RUNS))


@pytest.mark.deep
@pytest.mark.parametrize("number", range(len(RUNS)))
@pytest.mark.parametrize("follows", ["frames", "still"])
def test_so_it_is_in_every_run(opened, follows, number):  # noqa: F811
    for key in pictures(follows):
        holds(follows_the_step if follows == "frames" else stands_still, opened, key, number)
