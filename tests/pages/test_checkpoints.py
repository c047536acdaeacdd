"""The Checkpoints page lists every folder that was found, and says what is wrong with one."""

import re
import shutil

import pytest

from glassformer.runs import loading
from glassformer.state import session
from tests.pages.conftest import CHECKPOINTS


@pytest.fixture
def broken(tmp_path, checkpoint_folder, monkeypatch):
    """A folder with a checkpoint whose config is garbage, beside the shipped ones."""
    shutil.copytree(checkpoint_folder, tmp_path / "own" / "broken")
    (tmp_path / "own" / "broken" / "config.json").write_text("<script>alert(1)</script>")
    monkeypatch.setenv(loading.ENVIRONMENT, str(tmp_path / "own"))
    return tmp_path / "own"


def unescaped(markdown):
    return re.sub(r"\\(.)", r"\1", markdown).replace("\u2060", "")


def text(test):
    return "\n".join(element.value for kind in (test.markdown, test.error, test.subheader) for element in kind)


def test_an_older_card_without_scores_and_training_is_shown(open_page, spoil, monkeypatch):
    folder = spoil("card.json", b'{"scores": [{"decoding": 3}], "training": {"epochs": "many"}}')
    monkeypatch.setenv(loading.ENVIRONMENT, str(folder.parent))
    test = open_page(CHECKPOINTS, model=folder.name)
    assert test.subheader[0].value == folder.name
    assert "Trained for" not in test.table[0].value.index


def test_a_broken_folder_is_listed_with_its_error_above_all_else_and_never_offered(open_page, broken):
    test = open_page(CHECKPOINTS, model="reverse")
    assert next(one.type for one in test.main if one.type in ("error", "subheader")) == "error"
    (error,) = test.error
    assert error.value.startswith(r"**broken** broken\/config\.json")
    assert "<script" not in text(test)
    assert not any("broken" in option for option in test.selectbox(key=session.MODEL).options)
    assert "1 folder or file cannot be opened: see the Checkpoints page." in [caption.value for caption in test.caption]
    assert "cannot be opened: see the top" in unescaped(text(test))


def test_the_list_is_there_when_nothing_can_be_opened(open_page, broken, monkeypatch):
    monkeypatch.setattr(loading, "SHIPPED", broken)
    test = open_page(CHECKPOINTS)
    said = [element.value for element in test.error]
    assert "No checkpoint can be opened. The reasons are on the Checkpoints page." in said
    assert any(sentence.startswith("**broken**") for sentence in said)


def test_a_checkpoint_that_breaks_on_opening_says_why(open_page, tmp_path, checkpoint_folder, monkeypatch):
    folder = tmp_path / "own" / "half"
    shutil.copytree(checkpoint_folder, folder)
    (folder / "source.model").write_bytes(b"not a model")  # the list does not look into it
    monkeypatch.setenv(loading.ENVIRONMENT, str(folder.parent))
    test = open_page(CHECKPOINTS, model="half")
    assert test.error[0].value.startswith(r"half cannot be opened\. half\/source\.model")
    assert test.selectbox(key=session.MODEL).options
    assert "**reverse**" in text(test)
