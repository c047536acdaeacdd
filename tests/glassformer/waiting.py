"""What tests of threads and of time share."""

import time

WAIT = 120.0  # seconds; only what is broken ever takes that long


def until(holds):
    """Return once something holds, or what becomes true after a while."""
    end = time.monotonic() + WAIT
    while not (found := holds()):
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.002)
    return found


class Clock:
    """A clock that is set by hand."""

    def __init__(self, now=1000.0):
        self.now = now

    def __call__(self):
        return self.now
