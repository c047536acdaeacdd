"""Garbage is looked for when nothing is drawn; what holds itself in a circle goes, also what was alive at a look."""

import gc
import subprocess
import sys
import weakref

import pytest

from ui.server import garbage
from ui.server.garbage import LONGEST_SECONDS, REST_SECONDS, SHARE, is_time


class Circle:
    def __init__(self):
        self.own = self


@pytest.fixture(autouse=True)
def as_before():
    thresholds = gc.get_threshold()
    yield
    gc.freeze()  # as after the collection of the tests
    gc.set_threshold(*thresholds)


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


def test_what_was_alive_at_a_look_is_garbage_at_a_later_one():
    circle = Circle()
    gone = weakref.ref(circle)
    gc.freeze()
    garbage.collect()
    assert gc.get_freeze_count() > 0
    del circle
    gc.collect()
    assert gone() is not None  # Python's own looks leave it out
    garbage.collect()
    assert gone() is None


PROGRAM = """
import gc, time, weakref
from ui.server import garbage
from ui.server.turns import DRAWING
garbage.begin()
garbage.begin()
class Circle: pass
with DRAWING.one():
    circle = Circle(); circle.own = circle
    gone = weakref.ref(circle)
    garbage.collect()
    del circle
end = time.monotonic() + 60
while gone() is not None and time.monotonic() < end:
    time.sleep(0.05)
assert gone() is None
"""


def test_a_process_that_has_not_begun_stays_as_it_is():
    gc.unfreeze()
    kept = gc.get_freeze_count()
    garbage.collect()
    assert gc.get_freeze_count() == kept


def test_the_app_looks_by_itself():
    """In a process of its own, as the thread never ends."""
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, timeout=120)
