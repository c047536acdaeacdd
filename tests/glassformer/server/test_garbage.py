"""Garbage is looked for when nothing is drawn; what holds itself in a circle goes, also what was alive at a look."""

import subprocess
import sys

import pytest

from glassformer.server.render_lock import LONGEST_SECONDS, REST_SECONDS, SHARE, is_time


@pytest.mark.parametrize(
    ("since", "rested", "cost", "expected"),
    [
        (10.0, REST_SECONDS, 0.1, True),
        (10.0, 10.0, 0.1, False),
        (10.0, REST_SECONDS, 10 * SHARE + 0.1, False),
        (LONGEST_SECONDS - 1, 0.0, 0.1, False),
        (LONGEST_SECONDS, 0.0, 0.1, True),
    ],
    ids=["a rest", "nothing was drawn", "too soon", "somebody waits", "somebody always waits"],
)
def test_it_waits_for_a_rest_but_not_for_ever(since, rested, cost, expected):
    assert is_time(since=since, rested=rested, cost=cost) is expected


# Each in a process of its own, as a look goes through all of it, and the app's thread never ends.
BEGINNING = """
import gc, time, weakref
from glassformer.server import render_lock
from glassformer.server.render_lock import RENDER_LOCK
class Circle: pass
circle = Circle(); circle.own = circle
gone = weakref.ref(circle)
"""
LATER = """
gc.freeze()
render_lock.collect()
assert gc.get_freeze_count() > 0
del circle
gc.collect()
assert gone() is not None  # Python's own looks leave it out
render_lock.collect()
assert gone() is None
"""
NOT_BEGUN = """
kept = gc.get_freeze_count()
render_lock.collect()
assert gc.get_freeze_count() == kept
"""
BY_ITSELF = """
render_lock.begin()
render_lock.begin()
with RENDER_LOCK.one():
    render_lock.collect()
    del circle
end = time.monotonic() + 60
while gone() is not None and time.monotonic() < end:
    time.sleep(0.05)
assert gone() is None
"""


@pytest.mark.parametrize(
    "program",
    [LATER, NOT_BEGUN, BY_ITSELF],
    ids=["what was alive at a look is garbage at a later one", "not begun stays as it is", "the app by itself"],
)
def test_it_is_found(program):
    subprocess.run([sys.executable, "-c", BEGINNING + program], check=True, timeout=120)
