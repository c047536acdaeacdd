"""A name that is not here means the checkpoint that comes along."""

import pytest

from transformer.checkpoint import named as by_name
from transformer.checkpoint.named import check_name, named
from transformer.errors import CheckpointError


def test_a_name_that_is_not_here_means_the_checkpoint_that_comes_along(tmp_path, monkeypatch):
    shipped = tmp_path / "checkpoints"
    for name in ("one", "two"):
        (shipped / name).mkdir(parents=True)
        (shipped / name / "config.json").touch()
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(by_name, "shipped", lambda: shipped)
    for source in ("one", "one@12", "checkpoints/one"):
        assert named(source) == shipped / source.removeprefix("checkpoints/")
    for source in ("three", "other/one", "/one", "../one", "", ".", "..", "..@1", "o\0ne"):  # left as it was
        assert named(source) == by_name.Path(source)
    with pytest.raises(CheckpointError, match=r"^three: there is no such file or folder.* there are one, two\.$"):
        check_name(named("three"))
    for right in ("one", "one@12", "other/three"):
        check_name(named(right))  # a path says itself what is not there
    (tmp_path / "here" / "one").mkdir()  # what is here comes first
    assert [str(named(one)) for one in ("one", "one@12")] == ["one", "one@12"]
