"""The Checkpoints page: the chosen one, and every folder that was found."""

import shutil

import pytest

from tests.pages.conftest import CHECKPOINTS
from ui import keys, loading


@pytest.fixture
def broken(tmp_path, checkpoint_folder, monkeypatch):
    """A folder with a checkpoint whose config is garbage, beside the shipped ones."""
    shutil.copytree(checkpoint_folder, tmp_path / "own" / "broken")
    (tmp_path / "own" / "broken" / "config.json").write_text("<script>alert(1)</script>")
    monkeypatch.setenv(loading.ENVIRONMENT, str(tmp_path / "own"))
    return tmp_path / "own"


def text(test):
    return "\n".join(element.value for kind in (test.markdown, test.error, test.subheader) for element in kind)


def test_the_chosen_checkpoint_is_described(open_page):
    test = open_page(CHECKPOINTS, model="reverse")
    assert test.subheader[0].value == "Reverse letters"
    rows = test.table[0].value.iloc[:, 0]
    assert rows["Parameters"] == r"237\,312"
    assert rows["Licence"] == "MIT"
    features = test.table[1].value.iloc[:, 0]
    assert features["n_heads"] == "4"
    assert features["bias"] == "yes"


def test_choosing_another_describes_that_one(open_page, checkpoint_folder, monkeypatch):
    monkeypatch.setenv(loading.ENVIRONMENT, str(checkpoint_folder.parent))
    test = open_page(CHECKPOINTS, model="reverse")
    test.selectbox(key=keys.MODEL).set_value("tiny").run()
    assert test.subheader[0].value == "Tiny"


def test_a_broken_folder_is_listed_with_its_error_and_never_offered(open_page, broken):
    test = open_page(CHECKPOINTS, model="reverse")
    assert len(test.error) == 1
    assert test.error[0].value.startswith(r"**broken** broken\/config\.json")
    assert "<script" not in text(test)
    assert not any("broken" in option for option in test.selectbox(key=keys.MODEL).options)
    assert "1 folder cannot be opened: see the page Checkpoints." in [caption.value for caption in test.caption]


def test_the_name_of_a_folder_is_text(open_page, broken):
    (broken / "broken").rename(broken / "<img src=x onerror=alert(1)> **b**")
    said = open_page(CHECKPOINTS, model="reverse").error[0].value
    assert r"\<img src\=x onerror\=alert\(1\)\> \*\*b\*\*" in said


def test_the_list_is_there_when_nothing_can_be_opened(open_page, broken, monkeypatch):
    monkeypatch.setattr(loading, "SHIPPED", broken)
    test = open_page(CHECKPOINTS)
    said = [element.value for element in test.error]
    assert "No checkpoint can be opened. The page Checkpoints says why." in said
    assert any(sentence.startswith("**broken**") for sentence in said)


def test_a_checkpoint_that_breaks_on_opening_says_why(open_page, tmp_path, checkpoint_folder, monkeypatch):
    folder = tmp_path / "own" / "half"
    shutil.copytree(checkpoint_folder, folder)
    (folder / "source.model").write_bytes(b"not a model")  # the list does not look into it
    monkeypatch.setenv(loading.ENVIRONMENT, str(folder.parent))
    test = open_page(CHECKPOINTS, model="half")
    assert test.error[0].value.startswith(r"half cannot be opened\. half\/source\.model")
    assert test.selectbox(key=keys.MODEL).options
    assert "**reverse**" in text(test)
