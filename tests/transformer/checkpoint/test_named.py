"""A name that is not here means the checkpoint that comes along."""

import pytest

from transformer.checkpoint import named as by_name
from transformer.checkpoint.named import check_name, named
from transformer.errors import CheckpointError


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    """A folder of two checkpoints that come along; Python runs in another one."""
    for name in ("one", "two"):
        (tmp_path / "checkpoints" / name).mkdir(parents=True)
        (tmp_path / "checkpoints" / name / "config.json").touch()
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(by_name, "shipped", lambda: tmp_path / "checkpoints")
    return tmp_path / "checkpoints"


@pytest.mark.parametrize("source", ["one", "one@12", "checkpoints/one"])
def test_a_name_that_is_not_here_means_the_checkpoint_that_comes_along(shipped, source):
    assert named(source) == shipped / source.removeprefix("checkpoints/")


@pytest.mark.parametrize("source", ["three", "other/one", "/one", "../one", "", ".", "..", "..@1", "o\0ne"])
def test_all_else_is_left_as_it_was_and_what_is_here_comes_first(shipped, tmp_path, source):
    assert named(source) == by_name.Path(source)
    (tmp_path / "here" / "one").mkdir()
    assert [str(named(one)) for one in ("one", "one@12")] == ["one", "one@12"]


def test_a_wrong_name_is_refused_with_those_that_there_are(shipped, tmp_path):
    with pytest.raises(CheckpointError, match=r"^three: there is no such file or folder.* there are one, two\.$"):
        check_name(named("three"))
    for right in ("one", "one@12", "other/three"):
        check_name(named(right))  # a path says itself what is not there
