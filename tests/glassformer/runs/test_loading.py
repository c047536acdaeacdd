"""Checkpoints are found in all named folders, a broken one is never fatal, and each is opened once for all who ask."""

import os
import shutil
import threading
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
import streamlit as st

from glassformer.runs import loading
from glassformer.runs.loading import CheckpointCache
from glassformer.server import render_lock, server_options
from tests.glassformer.waiting import until
from tests.transformer.stand_in import DEVICE
from transformer.checkpoint import free_memory
from transformer.checkpoint.save import CheckpointContents, save
from transformer.errors import CheckpointError


@pytest.fixture(autouse=True)
def forget():
    """Each test looks anew, and leaves nothing behind for tests of pages."""
    st.cache_data.clear()
    yield
    st.cache_data.clear()


@pytest.fixture
def own(tmp_path, checkpoint_folder, monkeypatch):
    """A folder of checkpoints of one's own, named by the environment: one that works and one that is empty."""
    folder = tmp_path / "own"
    shutil.copytree(checkpoint_folder, folder / "works")
    (folder / "empty").mkdir()
    monkeypatch.setenv(loading.ENVIRONMENT, str(folder))
    return folder


def test_the_project_comes_first_then_the_environment_then_the_command_line_each_folder_once(monkeypatch):
    monkeypatch.delenv(loading.ENVIRONMENT, raising=False)
    assert loading.folders([]) == loading.folders(["--checkpoints"]) == [loading.SHIPPED]
    monkeypatch.setenv(loading.ENVIRONMENT, os.pathsep.join(["/one", "", "/two", "/one", str(loading.SHIPPED)]))
    monkeypatch.setenv("HOME", "/home/somebody")
    found = loading.folders(["--checkpoints", "/three", "--checkpoints=~/four", "other", "--checkpoints", "/one"])
    assert found == [loading.SHIPPED, *map(Path, ("/one", "/two", "/three", "/home/somebody/four"))]
    monkeypatch.setattr("sys.argv", ["app.py", "--checkpoints", "/elsewhere"])
    assert Path("/elsewhere") in loading.folders()


def test_broken_folders_are_listed_with_their_error_and_what_can_be_opened_is_offered_the_default_first(own):
    errors = {entry.name: entry.error for entry in loading.entries() if entry.folder.parent == own}
    assert errors["works"] is None
    assert "config.json" in errors["empty"]
    shutil.copytree(own / "works", own / loading.DEFAULT_NAME)
    st.cache_data.clear()
    usable = loading.usable()
    assert next(iter(usable)) == loading.DEFAULT_NAME
    assert {"works", "reverse"} <= usable.keys()
    assert "empty" not in usable


def test_nobody_waits_for_a_list_that_takes_long(own, monkeypatch):
    go_on, real, waited_for = threading.Event(), loading.listing, []

    def slow(*arguments, **options):
        waited_for.append(go_on.wait(30))
        return real(*arguments, **options)

    listed = loading._Listed([own])
    before = listed.entries()
    monkeypatch.setattr(loading, "LOOK_AGAIN_SECONDS", 0)
    monkeypatch.setattr(loading, "listing", slow)
    (own / "new").mkdir()
    assert listed.entries() == before
    assert waited_for == []
    go_on.set()
    until(lambda: "new" in {entry.name for entry in listed.entries()})


def test_a_checkpoint_is_loaded_once_again_when_replaced_and_not_when_it_broke_or_leads_elsewhere(
    own, checkpoint_folder
):
    entry = loading.usable()["works"]
    before = loading.open_checkpoint(entry)
    assert loading.open_checkpoint(entry) is before
    state = {name: tensor * 2 for name, tensor in before.model.state_dict().items()}
    models = tuple((checkpoint_folder / name).read_bytes() for name in ("source.model", "target.model"))
    save(CheckpointContents(before.config, state, models, {}), own / "works")
    assert loading.open_checkpoint(entry).content_hash != before.content_hash
    (own / "works" / "config.json").write_text("{}")
    with pytest.raises(CheckpointError, match=r"works/config\.json"):
        loading.open_checkpoint(entry)
    shutil.rmtree(own / "works")
    (own / "works").symlink_to(checkpoint_folder)
    with pytest.raises(CheckpointError, match="'works': now points to a place outside the folder of checkpoints"):
        loading.open_checkpoint(entry)


def test_what_the_app_opens_is_on_its_device(own, monkeypatch):
    """A checkpoint, one beside it that another is let go for, which both run there."""
    here = loading.open_checkpoint(loading.usable()["reverse"])
    loading.let_go(lambda which: True)
    monkeypatch.setattr(server_options, "device", lambda: DEVICE)
    there = loading.open_checkpoint(loading.usable()["reverse"])
    assert there is not here
    assert there.device == DEVICE
    found, expected = (loading.run(one, one.query("1 2 3")) for one in (there, here))
    assert found.output_text == expected.output_text
    assert loading.open_checkpoint(loading.usable()["works"]).device == DEVICE
    loading.let_go(lambda which: True)


def test_warming_up_runs_the_default_once_and_survives_an_empty_house(own, monkeypatch):
    loading.warm_up()
    ran = loading.runner().n_runs
    loading.warm_up()
    assert loading.runner().n_runs == ran
    monkeypatch.setattr(loading, "usable", dict)
    loading.warm_up()


def opened(shelf, which, n_bytes=0):
    checkpoint = shelf.open(which, lambda progress: SimpleNamespace(name=which), lambda: n_bytes).result()
    until(lambda: which in shelf._open)  # it is put there right after whoever waits has it
    return checkpoint


def test_two_who_ask_at_once_see_one_opening_on_its_way():
    shelf, half, go_on, calls = CheckpointCache(), threading.Event(), threading.Event(), []

    def work(progress):
        calls.append(1)
        progress(30, 60)
        half.set()
        go_on.wait(10)
        return SimpleNamespace()

    first = shelf.open("a", work, lambda: 0)
    assert half.wait(10)
    second = shelf.open("a", work, lambda: 0)
    assert second is first
    assert (first.n_there, first.n_whole, first.wait(0.01), len(shelf._open)) == (30, 60, False, 0)
    go_on.set()
    assert first.result() is second.result()
    assert calls == [1]


def test_what_fails_is_said_to_whoever_waits_and_is_tried_again():
    shelf = CheckpointCache()
    for _ in range(2):
        opening = shelf.open("a", Mock(side_effect=CheckpointError("{label}: is missing.", label="x")), lambda: 0)
        assert opening.wait(10)
        with pytest.raises(CheckpointError, match="x: is missing"):
            opening.result()
        until(lambda: not shelf._under_way)
    assert opened(shelf, "a").name == "a"


def there(shelf):
    return sorted(shelf._open)


def test_the_one_that_was_used_longest_ago_is_let_go_and_others_as_far_as_room_is_needed(monkeypatch):
    shelf = CheckpointCache(most=2)
    for which in "abac":
        opened(shelf, which)
    assert there(shelf) == ["a", "c"]
    shelf = CheckpointCache(most_bytes=100)  # of more than one
    for which in "abc":
        opened(shelf, which, n_bytes=40)
    assert there(shelf) == ["b", "c"]
    opened(shelf, "d", n_bytes=1000)
    assert there(shelf) == ["d"]
    shelf = CheckpointCache()
    for which in "abc":
        opened(shelf, which)
    monkeypatch.setattr(free_memory, "available", lambda: 100 - 30 * len(shelf._open))
    monkeypatch.setattr(render_lock, "collect", lambda: 0.0)  # of all that these tests hold
    opened(shelf, "d", n_bytes=60)
    assert there(shelf) == ["c", "d"]
    opened(shelf, "e", n_bytes=1000)  # whether it fits by itself is for loading to say
    assert there(shelf) == ["e"]
