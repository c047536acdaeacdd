"""A snapshot of a training opens by slider and address in the place of its checkpoint, on every page."""

import pytest

from glassformer.extensions.snapshots import snapshot_run_jobs
from glassformer.extensions.snapshots.snapshot_slider import SLIDER
from glassformer.extensions.what_if.second_run import CHECKPOINT
from glassformer.runs import loading
from glassformer.state import session
from glassformer.state.view import SECOND
from tests.extensions.scripts import COMPARE
from tests.glassformer.waiting import until
from tests.pages.conftest import STEP, check
from tests.pages.reading import address, go_back, payload, sentences, told
from tests.transformer.grown import STEPS, write_grown, write_snapshot
from transformer.checkpoint import snapshots

NAMES = [f"grown@{step}" for step in STEPS]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_grown(tmp_path_factory.mktemp("own"))


@pytest.fixture
def grown(folder, open_page, monkeypatch):
    """Opens a page on the checkpoint, at "abcdef" unless another sentence is said."""
    monkeypatch.setenv(loading.ENVIRONMENT, str(folder))
    loading.look_again()
    return lambda page=STEP, model="grown", **more: open_page(page, **{"model": model, "src": "abcdef"} | more)


def said(text):
    """A text without escapes, and without what keeps a browser from taking a name for an address of mail."""
    return text.replace("\\", "").replace("\u2060", "")


def at(test, key=SLIDER):
    """The stop of a slider."""
    sent = payload(test, key)
    return sent["stops"][sent["at"]]["step"]


def the_rest(test):
    """What the address says but for the model and its hash."""
    return {name: value for name, value in address(test).items() if name not in ("model", "rev")}


def stops(test):
    """The steps of the slider."""
    return [stop["step"] for stop in payload(test, SLIDER)["stops"]]


def test_back_and_forth_the_slider_follows_the_address_and_nothing_else_changes(grown):
    test = grown(step=3, layer=2, head=1, do="zero-cross.1.2", forced="5.6")
    assert (stops(test), at(test)) == ([*STEPS, None], None)
    assert loading.found("en-fr@219") is None
    before, revisions = the_rest(test), [payload(test, SLIDER)["revision"]]
    for step in (2208, 219, 1200):
        go_back(test, before | {"model": f"grown@{step}"})
        check(test)
        assert at(test) == step
        assert address(test)["model"] == test.selectbox(key=session.MODEL).value == f"grown@{step}"
        assert the_rest(test) == before
        revisions.append(payload(test, SLIDER)["revision"])
    assert len(set(revisions)) == len(revisions)  # the browser's slider is told each time


def test_two_snapshots_are_compared(grown):
    test = grown(COMPARE, model="grown@1200", b="model=grown@219")
    assert {"**Left:** grown@1200", "**Right:** grown@219"} <= {said(one.value) for one in test.markdown}
    assert test.selectbox(key=CHECKPOINT).value == "grown"
    assert at(test, f"{SECOND}{SLIDER}") == 219
    assert test.session_state[f"{SECOND}{session.MODEL}"] == "grown@219"
    assert address(test)["b"] == "model=grown@219"
    check((test := grown(COMPARE, compare="checkpoints")).selectbox(key=CHECKPOINT).select("grown").run())
    assert address(test)["b"] == "model=grown@2208"  # of the same checkpoint the last snapshot first
    missing = grown(COMPARE, b="model=grown@5")
    assert "There is no other checkpoint named “grown@5”." in said(sentences(missing))


def test_a_training_that_runs_grows_the_slider_and_its_file_may_be_odd(grown, tmp_path, monkeypatch):
    own = write_grown(tmp_path / "growing")
    monkeypatch.setenv(loading.ENVIRONMENT, str(own))
    loading.look_again()
    test = grown(model="grown@219")
    write_snapshot(own / "grown", 4000, share=1.0)
    check(test.run())
    assert (stops(test), at(test)) == ([*STEPS, 4000, None], 219)
    (own / f"grown{snapshots.FOLDER}" / f"5000{snapshots.FILE}").write_bytes(b"odd")
    check(test.run())
    assert stops(test) == [*STEPS, 4000, None]
    assert "5000.safetensors.xz: is not a snapshot of step 5,000." in said(told(test))


def test_neighbours_are_opened_and_run_ahead(grown, monkeypatch):
    done = []
    until(lambda: not snapshot_run_jobs.JOBS.n_under_way())  # what tests before have begun
    with monkeypatch.context() as instead:
        instead.setattr(snapshot_run_jobs, "_run", lambda entry, link: done.append((entry.name, link.source)))
        grown(model="grown@219")
        until(lambda: not snapshot_run_jobs.JOBS.n_under_way())
    assert done == [("grown@1200", "abcdef"), ("grown@10", "abcdef")]
    assert [entry.name for entry in snapshot_run_jobs.neighbours("grown@2208")] == ["grown", "grown@1200"]
    assert [entry.name for entry in snapshot_run_jobs.neighbours("grown")] == ["grown@2208"]
    assert snapshot_run_jobs.neighbours("nothing@5") == []
    snapshot_run_jobs._run(loading.found("grown@1200"), session.Link(model="grown@219", source="badcab"))
    before = loading.runner().n_runs
    test = grown(model="grown@1200", src="badcab")
    assert payload(test, session.STEPPER)["run"]["target"]
    assert loading.runner().n_runs == before  # what was done ahead is what the page asks for
