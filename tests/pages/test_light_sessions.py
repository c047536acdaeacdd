"""What a session keeps when its page is done does not hold its run, which may be 150 MB."""

import gc
import time
from string import ascii_lowercase
from weakref import WeakSet

import pytest
import streamlit as st

from glassformer.server.jobs import Job
from tests.pages.conftest import STEP
from tests.pages.test_pseudo_language import PARTS
from transformer.runs.trace import Trace

VIEWS = [*PARTS.values(), (STEP, {}), (STEP, {"guess": 1, "step": 2})]


@pytest.fixture
def jobs(monkeypatch):
    """The draws that pages begin; whoever looks for them among all objects breaks what is being made."""
    begun, begin = WeakSet(), Job.__init__

    def begin_and_tell(job, *of):
        begin(job, *of)
        begun.add(job)

    monkeypatch.setattr(Job, "__init__", begin_and_tell)
    return begun


def wait_for(jobs):
    """A job that works needs the runner, with all that it has finished."""
    until = time.monotonic() + 60
    while any(one.seen.is_under_way for one in list(jobs)):
        assert time.monotonic() < until
        time.sleep(0.1)


def held_but(before):
    gc.collect()
    return [thing for thing in gc.get_objects() if type(thing) is Trace and id(thing) not in before]


def test_no_session_holds_its_run(open_page, jobs):
    st.cache_resource.clear()  # the runner of other tests, which their threads may still need
    before = {id(thing) for thing in held_but(())}  # fixtures of other tests
    sessions = {}
    for letter, (page, view) in zip(ascii_lowercase, VIEWS, strict=False):
        source = f"glasses{letter}"  # tells whose run it is
        sessions[source] = open_page(page, model="reverse", src=source, **{"layer": 2, "head": 2} | view)
    wait_for(jobs)
    st.cache_resource.clear()  # the runner with all finished results, and what holds it
    until = time.monotonic() + 30  # a thread that has just finished holds the runner for a moment, a session for good
    while (held := held_but(before)) and time.monotonic() < until:
        del held
        time.sleep(0.1)
    assert len(sessions) == len(VIEWS)
    assert all(test.title for test in sessions.values())  # the sessions are still there
    assert not [VIEWS[ascii_lowercase.index(trace.query.source[-1])] for trace in held]
