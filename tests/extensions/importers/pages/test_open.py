"""On Open a checkpoint answers change the report and the address, a sentence is tried, and a folder is kept."""

import shutil
from functools import partial

import pytest
import torch
from safetensors.torch import save_file

from glassformer.extensions.huggingface.folder import FAMILIES
from glassformer.extensions.importers.imported_model import TEXT
from glassformer.extensions.importers.library import answer_ranking
from glassformer.extensions.importers.library.readers import SUFFIXES
from glassformer.runs import loading
from glassformer.state.link import write_answers
from tests.extensions.importers.library.tutorial_models import as_a_tutorial
from tests.extensions.importers.test_third_party_models import ANSWERS, state
from tests.extensions.parts_of_pages import PARTS
from tests.extensions.scripts import OPEN
from tests.extensions.weight_files.conftest import opened_here  # noqa: F401  (of every test)
from tests.pages.conftest import CHECKPOINTS, STEP, check
from tests.pages.reading import told
from tests.pages.speaking import texts_of_page
from tests.pages.test_checkpoints import text, unescaped
from tests.pages.test_pseudo_language import PARTS as KERNELS
from tests.pages.test_pseudo_language import explained_by, spoken_whole
from tests.pseudo_language import words_of, wrong
from tests.source_code import ROOT
from transformer.checkpoint.load import load

LESSON = "lesson.safetensors"
REVERSE = ROOT / "checkpoints" / "reverse"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("lessons") / "own"
    (root / "deep").mkdir(parents=True)
    save_file(state(), root / LESSON)
    save_file({"weight": next(iter(state().values()))}, root / "deep" / "odd.safetensors")
    (root.parent / "outside.pt").touch()
    return root


@pytest.fixture
def open_lesson(open_page, folder, monkeypatch):
    """A function that opens a page with the file, and with some of the answers."""
    monkeypatch.setenv(loading.ENVIRONMENT, str(folder))
    monkeypatch.setattr(answer_ranking, "SECONDS", 0.0)  # no time for a mistake that explains pairs which none fits

    def open_one(page=OPEN, answers=(), model=LESSON, **parameters):
        more = {"answers": write_answers(answers)} if answers else {}
        return open_page(page, model=model, **more, **parameters)

    return open_one


said = partial(told, kinds=("caption", "markdown", "error", "info"))


def box(test, field):
    return next(one for one in (*test.selectbox, *test.text_input) if one.key == f"answer_{field}")


def choose(test, field, beginning):
    box(test, field).set_value(next(one for one in box(test, field).options if one.startswith(beginning)))


def rank(test, texts=None):
    """Type texts, unless they are there, and have the answers ranked by them."""
    if texts is not None:
        test.text_area(key="score_texts").set_value(texts)
        check(test.run())
    test.button(key="score_choices").click()
    check(test.run(timeout=120))


def test_without_a_choice_the_page_says_what_opens_and_from_where(open_lesson, monkeypatch):
    test = open_lesson(model="reverse")
    assert test.selectbox(key="open_source").options == ["deep", LESSON]
    test.selectbox(key="open_source").set_value(LESSON)
    assert "7 questions still need an answer." in said(check(test.run()))
    assert test.query_params["model"] == LESSON
    assert next(one.label for one in test.expander) == "Upload another model"
    assert "✓ 1 Files → ○ 2 Tokens: only ids so far → ○ 3 Questions" in said(test)
    monkeypatch.setenv("GLASSFORMER_UPLOADS", "off")
    assert "This server accepts no uploads. Its operator can allow them" in said(open_lesson(model="reverse"))


@pytest.mark.parametrize("path", ["../outside.pt", "deep/odd.safetensors"])
def test_a_path_in_an_address_opens_only_inside(open_lesson, folder, path):
    test = open_lesson(model=path)
    assert test.selectbox(key="open_source").value == (None if ".." in path else path)
    assert ("no tensor has a name that is usual for a layer" in said(test)) != (".." in path)
    assert str(folder) not in said(test)


def test_answers_change_the_report_and_the_address(open_lesson):
    test = open_lesson(answers=ANSWERS[:1])
    assert "6 questions still need an answer." in said(test)
    assert not [one for one in test.text_input if one.key == TEXT]
    choose(test, "norm", "pre")
    box(test, "pad_id").set_value("0")
    assert "4 questions still need an answer." in said(check(test.run()))
    assert test.query_params["answers"] == "n_heads=4,norm=pre,pad_id=0"
    assert test.button(key="first_of_each").disabled  # nothing is ranked yet
    rank(test, "\n".join(f"{n} {n + 1} => {n + 1} {n}" for n in range(5, 9)))
    assert "The answers were ranked by trying" in said(test)
    (warning,) = test.warning  # the model was never trained
    assert "open the Doctor with the same pairs" in warning.value
    assert test.button(key="first_of_each").disabled  # as none of them fits
    assert "Your answer." not in said(test)
    test.button(key="forget_answers").click()
    assert "7 questions still need an answer." in said(check(test.run()))
    assert "answers" not in test.query_params


def test_what_pairs_decide_is_answered_and_the_reader_may_answer_otherwise(open_lesson, folder):
    (folder / "deep" / "trained").mkdir()
    shutil.copy(REVERSE / "pieces.model", folder / "deep" / "trained")
    torch.save(as_a_tutorial(load(REVERSE).model), folder / "deep" / "trained" / "reverse.pt")
    known = (("activation", "relu"), ("scale_embedding", True), ("prepend_source_bos", False))
    test = open_lesson(model="deep/trained/reverse.pt", answers=known)
    words = ("planet", "window", "harbour", "silver", "quietly", "lamp", "transform", "monday")
    rank(test, "\n".join(f"{word} => {word[::-1]}" for word in words))
    assert "norm=pre" in test.query_params["answers"].split(",")
    assert "Your pairs decide: pre fits best (loss 0.1" in said(test)
    assert "n_heads" not in test.query_params["answers"]  # half as many are hardly worse
    assert not test.button(key="first_of_each").disabled
    choose(test, "norm", "post")
    assert "norm=post" in check(test.run()).query_params["answers"].split(",")
    rank(test)  # what the reader said stays
    assert "norm=post" in test.query_params["answers"].split(",")


def test_usual_answers_are_taken_with_one_button_and_stay_marked(open_lesson, folder):
    layers = torch.nn.Transformer(32, 4, 1, 1, 64).state_dict()
    tables = {f"{side}_embed.weight": torch.randn(9, 32) for side in ("src", "tgt")}
    named = {f"transformer.{name}": value for name, value in layers.items()}
    save_file({**named, **tables, "out.weight": torch.randn(9, 32)}, folder / "own.safetensors")
    test = open_lesson(model="own.safetensors")
    assert test.subheader[1].anchor == "questions", "where the links lead"
    assert box(test, "norm").options[:2] == ["choose …", "post: after each sub-layer (usual)"]
    assert box(test, "bos_id").options == ["none", "0", "1", "2", "3"]
    test.button(key="usual_answers").click()
    assert "4 questions still need an answer." in said(check(test.run()))
    assert test.query_params["answers"] == "n_heads=8,norm=post,activation=relu,pad_id=null"
    assert said(test).count("Your answer, which is the usual value.") == 4
    assert all(one.key != "usual_answers" for one in test.button)
    box(test, "bos_id").set_value("null")
    assert box(check(test.run()), "decoder_start_id").options == ["0", "1", "2", "3"]


def test_with_every_answer_a_sentence_is_tried_and_a_folder_kept(open_lesson, folder):
    test = open_lesson(answers=ANSWERS)
    assert "→ ✓ 3 Questions" in said(test)
    test.text_input(key=TEXT).set_value("5 6 7")
    check(test.run())
    assert "Read as: 5 6 7" in said(test)
    assert "The model gave the tokens of its output a mean probability of" in said(test)
    for name, expected in (("../up", "cannot be used"), ("kept", "Saved as"), ("kept", "already exists")):
        test.text_input(key="keep_name").set_value(name)
        next(one for one in test.button if one.label == "Write it").click()
        check(test.run())
        assert expected in "\n".join(str(one.value) for one in (*test.error, *test.success))
    assert load(folder / "kept").config.n_heads == 4
    assert not (folder.parent / "up").exists()


def test_other_pages_ask_the_way_until_it_is_answered(open_lesson):
    assert "cannot be opened until you answer 7 questions about the model" in said(open_lesson(STEP))
    test = open_lesson(STEP, ANSWERS, src="5 6 7", max=3)
    assert not test.error
    assert test.query_params["answers"] == write_answers(ANSWERS)
    assert len(test.get("bidi_component")) > 1


def test_a_lesson_is_spoken_whole(open_lesson):
    test = open_lesson(answers=ANSWERS, lang="qps")
    names = ("deep", "own", *(entry.title for entry in loading.usable().values()), *loading.usable())
    data = words_of(LESSON, ANSWERS, names, list(state()), "gelu silu")
    data |= {"1/√d_head", "1/√16", "positions", "sinusoidal", "true", "false", "null"}
    found = [line for text in texts_of_page(test) for line in wrong(text, data)]
    assert not found, "\n".join(found)


def test_it_and_what_leads_to_it_is_spoken_whole(open_page, tmp_path, monkeypatch):
    spoken_whole(open_page, PARTS["open"], words_of(*SUFFIXES))
    explained_by(monkeypatch, "importers")
    data = words_of(*SUFFIXES, *FAMILIES, *(one.name for one in FAMILIES.values()))
    spoken_whole(open_page, KERNELS["checkpoints"], {"dev", "tsv"} | data)
    (tmp_path / "lesson.pt").touch()
    monkeypatch.setenv(loading.ENVIRONMENT, str(tmp_path))
    told_there = unescaped(text(open_page(CHECKPOINTS, model="reverse")))
    assert "lesson.pt** from another program: see the “Open a checkpoint” page" in told_there


def test_what_is_assumed_is_said_in_words_ranked_and_kept_in_the_address(open_lesson):
    test = open_lesson(answers=ANSWERS)
    assert box(test, "append_source_eos").options == ["no (assumed)", "no", "yes"]
    scale = box(test, "score_scale")
    assert scale.label == "Scale of the scores (score_scale)"
    assert scale.options == ["1/√d_head (assumed)", "1/√d_head", "none: q·k is not scaled (factor 1)", "1/√16"]
    sentence = "Some code does not divide q·k at all (factor 1), and some divides it by √d_model, with d_model = 16."
    assert sentence in said(test)
    assert "Every question is answered." in said(test)
    box(test, "append_source_eos").set_value("yes")
    ended = (*ANSWERS, ("append_source_eos", True))
    assert check(test.run()).query_params["answers"] == write_answers(ended)
    rank(test, "5 6 7\n8 9")  # though every question is answered
    scores = [one for one in box(test, "score_scale").options if "loss" in one]
    assert len(scores) == 3
    box(test, "score_scale").set_value(next(one for one in scores if one.startswith("none")))
    assert check(test.run()).query_params["answers"] == write_answers((*ended, ("score_scale", 1.0)))


def test_an_address_may_say_any_scale_and_an_impossible_answer_is_one_sentence(open_lesson, folder):
    test = open_lesson(answers=(*ANSWERS, ("score_scale", 0.3)))
    assert box(test, "score_scale").options[box(test, "score_scale").value + 1] == "0.3"
    for heads, found in ((5, r"n\_heads\: found 5"), ("*5*", r"\*5\*")):  # what an address says is text
        test = open_lesson(answers=(*ANSWERS[1:], ("n_heads", heads)))
        (error,) = test.error
        assert found in error.value
        assert "7 questions still need an answer." in said(test)
    torch.save(torch.nn.Linear(2, 2), folder / "pickled.pt")
    (error,) = open_lesson(model="pickled.pt").error
    assert '`torch.save(state, "weights.pt")`' in error.value  # code is code
    assert "\\`" not in error.value


def test_half_a_choice_of_tokenizers_is_an_offer_and_no_error(open_lesson, folder):
    (folder / "letters.txt").write_text("\n".join(["<pad>", "<s>", "</s>", *"abcdefgh"]))
    test = open_lesson(answers=(("source_pieces", "letters.txt"),))
    assert not test.error
    assert "The output has no tokenizer yet" in said(test)
    test.button(key="same_pieces").click()
    check(test.run())
    assert test.query_params["answers"] == "source_pieces=letters.txt,target_pieces=letters.txt"


def test_parts_under_other_names_are_answered_on_the_page(open_lesson, folder):
    """The matrix that combines the heads, and tensors that nobody knows."""
    made = {name.replace("W_o", "glue"): tensor.clone() for name, tensor in state().items()}
    vector = next(tensor for tensor in made.values() if tensor.dim() == 1)
    save_file(made | {"a.x": vector[:3].clone(), "b.x": vector[:3].clone()}, folder / "own.safetensors")

    def several():
        (found,) = [one for one in test.multiselect if one.key == "answer_ignored"]
        return found

    try:
        test = open_lesson(model="own.safetensors", answers=ANSWERS)
        assert "missing, so the model cannot be opened" not in said(test)  # an answer mends it
        choose(test, "out_proj", "glue")
        assert "out_proj=glue" in check(test.run()).query_params["answers"]
        assert several().options == ["a.x", "b.x"]
        several().set_value(["a.x"])
        check(test.run())
        assert (several().value, several().options) == (["a.x"], ["a.x", "b.x"])
        several().set_value(["a.x", "b.x"])
        assert "Every question is answered." in said(check(test.run()))
    finally:
        (folder / "own.safetensors").unlink()
