"""Of other programs' models only those inside the folders of checkpoints are found, each opened once, or kept anew.

With its answers a model becomes a folder of a new name inside the folder of checkpoints; nothing there is replaced.
"""

from types import SimpleNamespace

import pytest
import streamlit as st
import torch
from safetensors.torch import save_file

from glassformer.extensions.importers import imported_model, third_party_models
from glassformer.extensions.importers.library.opening import QuestionsError
from glassformer.runs import loading
from tests.extensions.importers.library.tutorial_models import STYLES, Article, at_random
from tests.extensions.refusing import refusal
from transformer.checkpoint.load import load

ANSWERS = (
    ("n_heads", 4), ("norm", "post"), ("scale_embedding", False), ("activation", "relu"), ("pad_id", 0),
    ("bos_id", 2), ("eos_id", 3),
)  # fmt: skip


def state(**sizes):
    """The parameters of a tutorial's model, the same whatever was drawn before."""
    torch.manual_seed(0)
    return {name: value.contiguous() for name, value in at_random(Article(STYLES["S4"], **sizes)).state_dict().items()}


@pytest.fixture(scope="module")
def lesson(tmp_path_factory):
    """A file of a tutorial's model, in a folder of checkpoints and one folder deeper, and one outside."""
    root = tmp_path_factory.mktemp("lessons")
    (root / "own" / "deep").mkdir(parents=True)
    for place in ("own/lesson.safetensors", "own/deep/lesson.safetensors", "outside.safetensors"):
        save_file(state(), root / place)
    (root / "own" / "words.model").touch()
    (root / "own" / "link").symlink_to(root)
    return root


@pytest.fixture(autouse=True)
def own(lesson, monkeypatch):
    monkeypatch.setenv(loading.ENVIRONMENT, str(lesson / "own"))
    st.cache_resource.clear()
    yield lesson / "own"
    st.cache_resource.clear()


def test_a_path_inside_is_found_however_it_is_typed(own):
    listed = third_party_models.listed()
    assert list(listed) == ["deep", "lesson.safetensors"]
    assert not listed.keys() & loading.usable().keys()
    typed = "deep/lesson.safetensors"
    for path in (typed, str(own / typed), "deep/../deep/./lesson.safetensors"):
        assert third_party_models.SOURCE.at(path).name == typed
    assert third_party_models.SOURCE.at("lesson.safetensors") == listed["lesson.safetensors"]


def test_nothing_outside_is_found_and_nothing_is_said_of_it(lesson):
    outside = ("../outside.safetensors", "{root}/outside.safetensors", "link/outside.safetensors", "deep/missing.pt")
    for path in (*outside, "", ".", "a\0b", "x" * 5000, "/etc"):
        assert third_party_models.SOURCE.at(path.format(root=lesson)) is None
    entry = third_party_models.SOURCE.at("lesson.safetensors")
    for path in ("../outside.safetensors", "link/outside.safetensors", "missing.model"):
        given = (("pieces", path),)
        refusal(lambda given=given: third_party_models.preview(entry, given), "is missing|points outside the folder")


def test_questions_are_raised_and_answers_open_it_once(lesson):
    entry = third_party_models.SOURCE.at("deep/lesson.safetensors")
    with pytest.raises(QuestionsError) as caught:
        third_party_models.open_foreign(entry)
    assert {one.name for one in caught.value.report.asked} == {name for name, _ in ANSWERS}
    checkpoint = third_party_models.open_foreign(entry, ANSWERS)
    assert third_party_models.open_foreign(entry, ANSWERS) is checkpoint
    other = tuple({**dict(ANSWERS), "n_heads": 2}.items())
    assert third_party_models.open_foreign(entry, other).content_hash != checkpoint.content_hash
    query = checkpoint.query("5 6 7", max_new=4)
    assert loading.trace_again(checkpoint.name, query).checkpoint == checkpoint.name
    assert loading.trace_again(checkpoint.name, query) == checkpoint.run(query)


def test_a_file_that_is_replaced_is_looked_at_again(own):
    entry = third_party_models.SOURCE.at("deep/lesson.safetensors")
    before = third_party_models.preview(entry)
    assert third_party_models.preview(entry) is before
    save_file(state(layers=(1, 1)), own / "deep" / "lesson.safetensors")
    assert len(third_party_models.preview(entry).report.file_tensors) < len(before.report.file_tensors)


def test_files_that_may_be_tokenizers_are_offered(own):
    (own / "lesson.pt.safetensors.outline.json").write_text("{}")  # written by this program beside an upload
    assert third_party_models.beside(third_party_models.listed()["lesson.safetensors"]) == ["words.model"]


ODD_NAMES = [
    "",
    " ",
    ".",
    "..",
    "../up",
    "a/b",
    "/etc/x",
    "a\\b",
    ".hidden",
    "a\0b",
    "a\nb",
    "x" * 81,
    "m.training",
    "m.npz",
]


def test_a_name_that_is_a_path_or_means_something_else_is_refused():
    for name in ODD_NAMES:
        refusal(lambda name=name: imported_model.checked(name), r"cannot be used\. Use 1 to 80 letters")


def test_the_folder_is_the_same_model_and_no_second_one_takes_its_place(own):
    entry = third_party_models.SOURCE.at("lesson.safetensors")
    folder = imported_model.keep(entry, ANSWERS, " Übung 2 (neu)_模型.v1 ", own)
    assert folder.name == "Übung 2 (neu)_模型.v1"  # names of any script are taken
    theirs, ours = third_party_models.open_foreign(entry, ANSWERS), load(folder)
    assert ours.config == theirs.config
    assert ours.run("5 6 7").output_text == theirs.run("5 6 7").output_text
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    refusal(lambda: imported_model.keep(entry, ANSWERS, folder.name, own), "already exists; choose another name")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_save_that_fails_leaves_no_folder(own, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    entry = third_party_models.SOURCE.at("lesson.safetensors")
    monkeypatch.setattr(imported_model, "save", full)
    refusal(lambda: imported_model.keep(entry, ANSWERS, "half", own), "No space left on device")
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=1_000))
    refusal(lambda: imported_model.keep(entry, ANSWERS, "half", own), "only 1,000 are free")  # before it is written
    assert not (own / "half").exists()
