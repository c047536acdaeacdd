"""A file of a popular repository opens with its card: the numbers of its code, and few questions."""

import json
import re

import pytest
import torch
from safetensors.torch import save_file

from glassformer.extensions.importers.library.cards import packaged
from glassformer.extensions.importers.library.import_inputs import ImportInputs
from glassformer.extensions.importers.library.kept_answers import as_said
from glassformer.extensions.importers.library.opening import preview
from glassformer.extensions.weight_files.weights import in_memory
from tests.extensions.importers.library.repository_codes import CODES, END, drawn, sentences
from tests.extensions.importers.library.tutorial_models import PADDED, POST, STYLES, Article, at_random, saved
from tests.extensions.refusing import refusal
from tests.source_code import ROOT
from transformer.__main__ import main
from transformer.checkpoint.opening import load
from transformer.errors import CheckpointError


@pytest.mark.parametrize("name", CODES)
def test_a_file_of_a_repository_computes_what_its_code_does(tmp_path, name):
    code = CODES[name]
    state = drawn(code)
    src, tgt = sentences(code)
    path = saved(tmp_path / "model.pt", code.beside(state))
    assert [one.name for one in preview(path).report.asked] == list(code.asked)
    weights = in_memory(state, label="x")
    places = [(one, place) for one in packaged() for place in one.claimed([*weights.tensors])]
    assert [one.file for one, place in places if one.holds(place, weights)] == [code.card]  # one claims the file
    checkpoint = load(path, answers=code.asked)
    expected = code.run(state, src, tgt)
    found = checkpoint.model(tgt if src is None else src, tgt)
    real = torch.ones_like(tgt, dtype=torch.bool) if code.alone else tgt != code.run.pad
    assert expected.abs().max() > 0.5
    assert (found - expected)[real].abs().max() < 1e-5


def told(path, **given):
    return refusal(lambda: preview(path, **given), most=2_000)


def test_every_card_is_proved_or_refuses_with_a_reason(tmp_path):
    proved = {code.card for code in CODES.values()}
    for card in packaged():
        refused = card.record.get("refused")
        assert (card.file in proved) == (refused is None)
        if refused:
            names = [one.replace("{n}", "0").replace("{h}", "0") for one in card.needs]
            path = tmp_path / f"{card.file}.safetensors"
            save_file({name: torch.ones(4, 4) for name in names}, path)
            assert card.record["title"] in told(path)
            assert told(path).endswith(f"cannot be opened: {refused}; if your code differs, answer card=none.")


def test_the_documents_list_every_card_and_what_is_asked():
    asked = {}
    for code in CODES.values():
        asked[code.card] = asked.get(code.card, {}) | code.asked
    rows = []
    for card in packaged():
        left = ", ".join(f"`{name}`" for name in asked.get(card.file, ())) or "nothing"
        told = f"refused: {card.record['refused']}" if "refused" in card.record else left
        rows.append(f"| `{card.file}` | {card.record['title']} | {told} |")
    lines = (ROOT / "docs" / "opening.md").read_text("utf-8").splitlines()
    start = lines.index("| card | repository | what is asked |") + 2
    assert lines[start : start + len(rows) + 1] == [*rows, ""]


def test_the_report_says_where_a_value_is_from_and_an_answer_counts_most(tmp_path):
    code = CODES["nanoGPT"]
    path = saved(tmp_path / "ckpt.pt", code.beside(drawn(code)))
    report = preview(path).report
    fields = {one.name: (one.how, one.value, str(one.evidence)) for one in report.fields}
    assert str(report.recognised) == "The names are those of karpathy/nanoGPT (https://github.com/karpathy/nanoGPT)."
    assert fields["norm"] == ("read", "pre", "It is the same in all models of karpathy/nanoGPT.")
    assert fields["n_heads"] == ("read", 4, "This value is saved with the weights as 'model_args.n_head'.")
    assert fields["activation"][:2] == ("inferred", "gelu")
    assert "build-nanogpt" in str(report)
    answers = {"n_heads": 2, "activation": "gelu_tanh", "norm": "post"}
    answered = {one.name: one.value for one in preview(path, answers=answers).report.fields if one.how == "answered"}
    assert answered == answers
    assert "decoder_layers" in {one.name for one in preview(path, answers={"card": "none"}).report.asked}
    assert "card: found 'x', expected one of ajhalthor, " in told(path, answers={"card": "x"})


def test_what_a_tokenizer_and_the_file_say_counts_more_than_a_card(tmp_path):
    code = CODES["hyunwoongko"]
    path = saved(tmp_path / "m.pt", dict(drawn(code)))
    for side, n in zip(("source", "target"), (17, 19), strict=True):
        words = ["<pad>", "<unk>", *(f"w{i}" for i in range(n - 2))]
        (tmp_path / f"{side}.json").write_text(json.dumps({word: i for i, word in enumerate(words)}))
    fields = {one.name: one.value for one in preview(path).report.fields}
    assert [fields[name] for name in ("pad_id", "unk_id", "bos_id", "eos_id")] == [0, 1, 2, 3]
    assert (fields["prepend_source_bos"], fields["append_source_eos"], fields["decoder_start_id"]) == (True, True, 2)
    assert load(path, answers=code.asked).run("w1 w2").src_ids == (2, 3, 4, 3)
    beside = {"activation": "gelu", "pad_idx": 0, "nhead": 2}
    path = saved(tmp_path / "other" / "m.pt", {"state_dict": dict(drawn(code)), "args": beside})
    fields = {one.name: one.value for one in preview(path).report.fields}
    assert [fields[name] for name in ("activation", "pad_id", "n_heads", "norm")] == ["gelu", 0, 2, "post"]


WRONG = {
    "names = 3": "names: found 3, expected a table",
    'title = "x"': "a card needs the keys title, names",
    'title = "x"\nname = 3': "name: found 'name', expected one of cases, ",
    'title = "x"\n[names]\na = "b"': "a: 'b' is not a tensor of this program's models",
    'title = "x"\n[names]\na = "encoder.layers.{n}.ffn.up_proj.weight"': "is not a tensor of this program's models",
    'title = "x"\n[names]\na = { turned = "src_table" }': "names.a: found 'turned', expected one of flattened, ",
    'title = "x"\n[names]\na = "src_table"\n[fields]\nheads = 4': "fields: found 'heads', expected one of ",
    'title = "x"\n[names]\na = "src_table"\n[ignored]\nb = "why"': "ignored.b: found 'why', expected one of copy, ",
    'title = "x"\n[names]\na = "src_table"': "the names are not those of the card 'x'; missing are a.",
    "title = ": "is not a card in TOML",
    f"title = {'[' * 9999}": "is not a card in TOML",
    'title = "x"\n[names]\n"a.{n}.{n}" = "src_table"': "a.{n}.{n}: has {n} twice",
    'title = "x"\nneeds = [3]\n[names]\na = "src_table"': "needs: found [3], expected a list of texts",
    'title = "x"\n[names]\n"a.{b,c,d}" = "{src,tgt}_table"': "'{src,tgt}_table' has other alternatives in braces",
    'title = "x"\nequal = ["q"]\n[names]\na = "src_table"': "equal: found ['q'], expected 2 texts",
    'title = "x"\ncases = [3]\n[names]\na = "src_table"': "cases: found [3], expected a list of tables",
    'title = "x"\n[names]\na = "src_table"\n[settings]\nb = ["c"]': "settings: found ['c'], expected one of ",
    'title = "x"\nequal = ["b", "c"]\n[names]\n"toprobs.weight" = "output_table"': "the names are not those of",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_card_that_cannot_be_is_refused_by_its_key(tmp_path, text):
    path, card = saved(tmp_path / "m.pt", dict(drawn(CODES["pbloem"]))), tmp_path / "mine.toml"
    card.write_text(text)
    assert WRONG[text] in told(path, given=ImportInputs(card=card))


SWAPPED = {
    "encoder_layers.": "net.reader.", "decoder_layers.": "net.writer.", ".W_q.": ".to_q.", ".W_o.": ".mix.",
    ".norm1.": ".before.", ".norm2.": ".between.", ".norm3.": ".behind.", "encoder_embedding.": "words_in.",
    "decoder_embedding.": "words_out.", "fc.": "to_words.", ".positional_encoding": ".places",
}  # fmt: skip
SAID = {
    "encoder_layers": "net.reader", "decoder_layers": "net.writer", "q_proj": "to_q", "out_proj": "mix",
    "norms": "before,between,behind", "src_table": "words_in.weight", "tgt_table": "words_out.weight",
    "output_table": "to_words.weight", "ignored": "counter.*", **POST,
}  # fmt: skip


def strangely_named(model):
    state = model.state_dict()
    for old, new in SWAPPED.items():
        state = {re.sub(rf"(^|(?<=\.)|(?=\.)){re.escape(old)}", new, name): one for name, one in state.items()}
    return state | {"counter.steps": torch.zeros(3)}


def test_answers_are_saved_as_a_card_with_which_another_file_of_the_code_opens_without_a_question(tmp_path, capsys):
    first, second, card = tmp_path / "a.pt", tmp_path / "b.pt", tmp_path / "mine.toml"
    theirs = at_random(Article(STYLES["S4"], layers=(1, 3)))
    saved(first, strangely_named(at_random(Article(STYLES["S4"], layers=(2, 1)))))
    said = [f"--set={name}={as_said(value)}" for name, value in SAID.items()]
    assert main(["import", str(first), "--out", str(tmp_path / "ours"), *said, "--save-card", str(card)]) == 0
    saved(second, strangely_named(theirs))
    assert preview(second).report.asked
    report = preview(second, given=ImportInputs(card=card)).report
    assert not report.asked
    assert str(report.recognised).startswith("The names are those of a (mine).")
    ours = load(second, given=ImportInputs(card=card)).model
    assert (ours(*PADDED) - theirs(*PADDED)).abs().max() < 1e-5
    assert main(["import", str(second), "--out", str(tmp_path / "b"), "--card", str(card)]) == 0
    for source, given, told in ((first, [], "already exists"), (second, ["--card", str(card)], "need no card")):
        assert main(["import", str(source), "--out", str(tmp_path / "c"), *given, "--save-card", str(card)]) == 2
        assert told in capsys.readouterr().err


@pytest.mark.parametrize("name", CODES)
def test_without_its_card_only_tensors_that_fit_are_offered(tmp_path, name):
    state = drawn(CODES[name])
    try:
        report = preview(saved(tmp_path / "m.pt", dict(state)), answers={"card": "none"}).report
    except CheckpointError:
        return  # no name is one of a tutorial
    asked = {one.name: [str(choice.value) for choice in one.choices] for one in report.asked}
    for table in ("src_table", "tgt_table", "output_table"):
        offered = [one for one in asked.get(table, ()) if one in state]
        assert all(state[one].shape[1] == 16 and not re.search(r"\d", one) for one in offered)
        biased = [one for one in offered if f"{one.removesuffix('weight')}bias" in state]
        assert table == "output_table" or not {*offered[:1]} & {*biased}  # an output may serve as an embedding
    for part, axis in (("up_proj", 1), ("down_proj", 0)):
        ends = tuple(f".{one}.weight" for one in asked.get(part, ()))
        shapes = {one.shape for name, one in state.items() if name.endswith(ends)} if ends else set()
        assert all(shape[axis] == 16 != shape[1 - axis] for shape in shapes)
    for norm in {one for order in asked.get("norms", ()) for one in order.split(",")}:
        assert all(one.dim() == 1 for name, one in state.items() if name.rpartition(".")[0].endswith(f".{norm}"))
    assert "prefix" not in asked  # layers are no models


def test_answers_of_before_there_was_a_card_open_a_file_as_they_did(tmp_path):
    """A user who says what is what needs no card; what a card ignores may be called ignored."""
    code = CODES["hyunwoongko"]
    path = saved(tmp_path / "m.pt", dict(drawn(code)))
    names = {
        "out_proj": "w_concat", "src_table": "encoder.emb.tok_emb.weight", "tgt_table": "decoder.emb.tok_emb.weight",
        "output_table": "decoder.linear.weight",
    }  # fmt: skip
    report = preview(path, answers=names).report
    assert str(report.recognised) == "An encoder and a decoder whose tensors have names of PyTorch or of tutorials."
    assert [one.name for one in report.asked][:1] == ["positions"]
    code = CODES["ng-video-lecture"]
    path = saved(tmp_path / "n.pt", dict(drawn(code)))
    assert load(path, answers=code.asked | {"ignored": "*.tril"}).config.n_heads == 4


def test_a_setting_that_cannot_be_is_one_sentence(tmp_path):
    path = saved(tmp_path / "m.pt", {"model": dict(drawn(CODES["nanoGPT"])), "model_args": {"n_head": "four"}})
    assert told(path, answers=END).startswith(f"{path}: n_heads: found 'four', expected")


def test_a_classifier_with_the_names_of_a_generator_is_refused_by_its_output(tmp_path):
    state = dict(drawn(CODES["pbloem"])) | {"toprobs.weight": torch.ones(2, 16), "toprobs.bias": torch.ones(2)}
    assert "'toprobs.weight' (found [2, 16], expected [19, 16])" in told(
        saved(tmp_path / "m.pt", state), answers=CODES["pbloem"].asked
    )
