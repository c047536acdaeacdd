"""Garbage is looked for while nobody's page is drawn: with a class of sessions each look takes half a second.

What a run of a page leaves behind is nearly all gone at once; only what holds itself in a circle is garbage that has
to be looked for. Python would look by itself, in the middle of what a class waits for. Here what was found to be
alive is not looked at again until the next time that nothing is drawn, so Python's own looks stay short.

Knows nothing of Streamlit.
"""

import gc
import threading
import time
from typing import Final

from glassformer.server.turns import DRAWING

# New objects more than gone ones, then younger collections. A run of a page makes many objects of which few are
# garbage in circles: with Python's own thresholds a tenth of a class's time is spent looking for those.
THRESHOLDS: Final = (1_000, 20, 20)
SHARE: Final = 0.05  # of the time that may go into looking
REST_SECONDS: Final = 0.25  # for which nothing was drawn
LOOK_SECONDS: Final = 0.1
LONGEST_SECONDS: Final = 120.0  # between two looks where something is always drawn

_ONCE = threading.Lock()


def collect() -> float:
    """Look for all garbage, also in what `begin` leaves out of Python's own looks; tell the seconds that it took."""
    began, is_left_out = time.monotonic(), gc.get_freeze_count() > 0
    gc.unfreeze()
    gc.collect()
    if is_left_out:
        gc.freeze()
    return time.monotonic() - began


def begin() -> None:
    """Look whenever nobody's page is drawn, from now on, and leave what is then alive out of Python's own looks."""
    cost = collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    if _ONCE.acquire(blocking=False):
        threading.Thread(target=_keep_looking, args=(cost,), daemon=True).start()


def is_time(*, since: float, rested: float, cost: float) -> bool:
    """Whether there may be something to find and nobody waits for a page, or somebody always has.

    In seconds: since the last look, for which nothing was drawn, and what the last look took.
    """
    if rested >= since or since * SHARE < cost:  # nothing was drawn since, or it is too soon
        return False
    return rested >= REST_SECONDS or since >= LONGEST_SECONDS


def _keep_looking(cost: float) -> None:
    last = time.monotonic()
    while True:
        time.sleep(LOOK_SECONDS)
        if is_time(since=time.monotonic() - last, rested=DRAWING.rest_seconds(), cost=cost):
            cost = collect()
            last = time.monotonic()
