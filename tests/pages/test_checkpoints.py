"""The Checkpoints page: the chosen one, and every folder that was found."""

import json
import re
import shutil

import pytest

from charts.training import HOW_TO_READ_LOSSES
from tests.pages.conftest import CHECKPOINTS, MAIN
from tests.pages.reading import figure, numbers, opened, payload
from transformer.importers.huggingface.families import FAMILIES
from ui.checkpoints import checkpoint_pictures
from ui.runs import loading
from ui.state import session


@pytest.fixture
def broken(tmp_path, checkpoint_folder, monkeypatch):
    """A folder with a checkpoint whose config is garbage, beside the shipped ones."""
    shutil.copytree(checkpoint_folder, tmp_path / "own" / "broken")
    (tmp_path / "own" / "broken" / "config.json").write_text("<script>alert(1)</script>")
    monkeypatch.setenv(loading.ENVIRONMENT, str(tmp_path / "own"))
    return tmp_path / "own"


def unescaped(markdown):
    return re.sub(r"\\(.)", r"\1", markdown).replace("\u2060", "")


def charts_of(test):
    """The keys of the charts, in their order."""
    return [element.key for element in test.get("bidi_component")]


def text(test):
    return "\n".join(element.value for kind in (test.markdown, test.error, test.subheader) for element in kind)


def test_the_chosen_checkpoint_is_described(open_page):
    test = open_page(CHECKPOINTS, model="reverse")
    assert test.subheader[0].value == "Reverse letters"
    rows = test.table[0].value.iloc[:, 0]
    assert rows["Parameters"] == r"237\,312"
    assert rows["Licence"] == "MIT"
    assert rows["Languages"] == r"letters → letters\, backwards"
    assert "one vocabulary of 30 pieces for both sides" in unescaped(rows["Model"])
    assert rows["Examples"] == "glass · abcdef · transformer · noon · aabbcc"
    assert re.fullmatch(r"\d+ epochs, [\d,]+ target pieces, \d+ min", unescaped(rows["Trained for"]))
    features = next(one for one in test.table if "n_heads" in one.value.index).value.iloc[:, 0]
    assert features["n_heads"] == "4"
    assert features["bias"] == "yes"


def test_data_and_licence_of_a_shipped_translator_are_said(open_page):
    rows = open_page(CHECKPOINTS, model="zh-en").table[0].value.iloc[:, 0].map(unescaped)
    assert rows["Languages"] == "Chinese → English"
    assert "Tatoeba" in rows["Data and attribution"]
    assert "CC-BY 2.0 FR" in rows["Licence"]


def test_the_scores_are_a_table(open_page):
    test = open_page(CHECKPOINTS, model="reverse")
    shown = test.table[1].value.map(unescaped)
    first = opened("reverse").card.scores[0]
    assert list(shown.iloc[0])[:2] == [first["file"], "greedy"]
    assert shown["Exact"][0] == "100.0%"
    assert shown["BLEU"][0] == "–"  # of outputs of one word
    assert any("so BLEU cannot be computed" in caption.value for caption in test.caption)
    assert first["sha256"] in list(test.table[2].value.map(unescaped)["Value"])


CURVE = """epoch,step,loss,dev_loss,dev_bleu,dev_chrf,learning_rate,tokens,seconds
1,1240,6.4,4.5,0.1,8.1,0.0004,638613,169.5
2,2480,5.0,3.4,9.9,25.3,0.001,1277226,399.7
3,3720,4.3,3.5,9.8,25.4,0.0005,1915839,9599.6
"""


@pytest.mark.parametrize(("training", "marked"), [({"epochs": 3}, "kept: epoch 3"), ({}, "best on dev: epoch 2")])
def test_the_training_is_drawn_with_the_kept_epoch(open_page, spoil, monkeypatch, training, marked):
    folder = spoil("training.csv", CURVE.encode())
    spoil("card.json", json.dumps({"training": {**training, "command": "python -m transformer train"}}).encode())
    monkeypatch.setenv(loading.ENVIRONMENT, str(folder.parent))
    test = open_page(CHECKPOINTS, model=folder.name)
    assert charts_of(test) == [
        checkpoint_pictures.losses.key,
        checkpoint_pictures.scores.key,
        checkpoint_pictures.rates.key,
    ]
    name, kept = marked.split(": epoch ")
    for key in charts_of(test):
        assert figure(test, key)["layout"]["annotations"][0]["text"] == marked
        assert f"The marked epoch is {kept} ({name})." in payload(test, key)["alt"]
    assert payload(test, checkpoint_pictures.losses.key)["caption"] == HOW_TO_READ_LOSSES
    assert "dev loss goes from 4.5 to 3.5" in payload(test, checkpoint_pictures.losses.key)["alt"]
    dev, training_loss = figure(test, checkpoint_pictures.losses.key)["data"]
    assert (dev["name"], training_loss["name"]) == ("Dev loss", "Training loss")
    assert numbers(dev["y"]).tolist() == [4.5, 3.4, 3.5]
    assert dev["hovertext"][0] == "Epoch 1, step 1,240, 638,613 target pieces, 3 min"
    assert dev["hovertext"][2].endswith("2 h 40 min")
    assert test.code[0].value == "python -m transformer train"


@pytest.mark.parametrize("name", list(loading.usable()))
def test_every_shipped_checkpoint_says_all_that_a_reader_asks(open_page, name):
    test = open_page(CHECKPOINTS, model=name)
    rows = test.table[0].value.iloc[:, 0]
    for asked in ("Languages", "Model", "Parameters", "Trained for", "Data and attribution", "Licence", "Examples"):
        assert rows[asked]
    assert len(charts_of(test)) == 3
    assert not test.warning
    assert {"Scores", "Training"} <= {element.value for element in test.subheader}


def test_bleu_that_is_0_throughout_is_left_out_and_said(open_page):
    test = open_page(CHECKPOINTS, model="reverse")
    assert [line["name"] for line in figure(test, checkpoint_pictures.scores.key)["data"]] == [
        "chrF",
        "Exact (&#37;)",
    ]
    assert checkpoint_pictures.BLEU_LEFT_OUT in payload(test, checkpoint_pictures.scores.key)["caption"]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "no training.csv"),
        (b"garbage\n1\n", "has no column that can be plotted; found 'garbage'"),
        (
            b"epoch,loss\n" + b"1,1\n" * 300_000,
            "1,200,011 bytes; the limit is 1,000,000. No learning curve is shown.",
        ),
        (b"epoch,loss\n1,nan\n2,3\n", "1 number in training.csv is missing, NaN or infinite"),
    ],
)
def test_an_odd_curve_is_said_and_the_page_goes_on(open_page, spoil, monkeypatch, content, says):
    folder = spoil("training.csv", content)
    monkeypatch.setenv(loading.ENVIRONMENT, str(folder.parent))
    test = open_page(CHECKPOINTS, model=folder.name)
    said = [element.value for kind in (test.warning, test.caption, test.info) for element in kind]
    assert any(says in unescaped(sentence) for sentence in said)
    assert "Folders and files" in [element.value for element in test.subheader]


def test_an_older_card_without_scores_and_training_is_shown(open_page, spoil, monkeypatch):
    folder = spoil("card.json", b'{"scores": [{"decoding": 3}], "training": {"epochs": "many"}}')
    monkeypatch.setenv(loading.ENVIRONMENT, str(folder.parent))
    test = open_page(CHECKPOINTS, model=folder.name)
    assert test.subheader[0].value == folder.name
    assert "Trained for" not in test.table[0].value.index


def test_choosing_another_describes_that_one(open_page, checkpoint_folder, monkeypatch):
    monkeypatch.setenv(loading.ENVIRONMENT, str(checkpoint_folder.parent))
    test = open_page(CHECKPOINTS, model="reverse")
    test.selectbox(key=session.MODEL).set_value("tiny").run()
    assert test.subheader[0].value == "Tiny"


def test_a_broken_folder_is_listed_with_its_error_and_never_offered(open_page, broken):
    test = open_page(CHECKPOINTS, model="reverse")
    assert len(test.error) == 1
    assert test.error[0].value.startswith(r"**broken** broken\/config\.json")
    assert "<script" not in text(test)
    assert not any("broken" in option for option in test.selectbox(key=session.MODEL).options)
    assert "1 folder or file cannot be opened: see the Checkpoints page." in [
        caption.value for caption in test.caption
    ]


def test_the_name_of_a_folder_is_text(open_page, broken):
    (broken / "broken").rename(broken / "<img src=x onerror=alert(1)> **b**")
    said = open_page(CHECKPOINTS, model="reverse").error[0].value
    assert r"\<img src\=x onerror\=alert\(1\)\> \*\*b\*\*" in said


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


def test_the_ways_to_the_doctor_and_to_the_tensors(open_page):
    test = open_page(MAIN, model="zh-en")
    test.switch_page(str(CHECKPOINTS.relative_to(MAIN.parent))).run()
    doctor, tensors = [one.proto for one in test.get("page_link") if one.proto.page == "doctor"]
    assert doctor.label == "Is this model healthy? Ask the doctor"
    assert "doctor=" not in doctor.query_string
    assert "doctor=parameters" in tensors.query_string


def test_what_is_wrong_with_a_folder_stands_above_all_else(open_page, broken):
    test = open_page(CHECKPOINTS)
    elements = [element.type for element in test.main if element.type in ("error", "subheader")]
    assert elements[0] == "error"
    assert any("cannot be opened: see the top" in unescaped(element.value) for element in test.markdown)


def test_the_families_that_open_are_those_of_the_code(open_page, tmp_path, monkeypatch):
    (tmp_path / "lesson.pt").touch()
    monkeypatch.setenv(loading.ENVIRONMENT, str(tmp_path))
    test = open_page(CHECKPOINTS, model="reverse")
    (families,) = [one.value.iloc[:, 0] for one in test.table if "GPT-2" in one.value.index]
    said = ", ".join(unescaped(kinds) for kinds in families)
    assert sorted(said.split(", ")) == sorted(FAMILIES)
    assert "lesson.pt** from another program: see the “Open a checkpoint” page" in unescaped(text(test))
