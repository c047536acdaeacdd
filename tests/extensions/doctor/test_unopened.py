"""A file with open questions is examined as far as its tensors go, and is never called healthy for that."""

import json

import pytest
import torch

import transformer
from glassformer.extensions.doctor.library.context import ExaminationContext
from glassformer.extensions.doctor.library.report import TESTS, examine_unopened, run_test
from glassformer.extensions.importers.library.opening import preview
from tests.extensions.importers.library.tutorial_models import as_a_tutorial
from tests.extensions.weight_files.conftest import opened_here  # noqa: F401  (of every test)
from tests.source_code import ROOT
from transformer.__main__ import main

REVERSE = ROOT / "checkpoints" / "reverse"

REST = {"positions": "sinusoidal", "scale_embedding": False, "bos_id": 1, "eos_id": 2}


class OwnModel(torch.nn.Module):
    """What a newcomer writes around PyTorch's Transformer."""

    def __init__(self):
        super().__init__()
        self.src_embed, self.tgt_embed = torch.nn.Embedding(40, 32), torch.nn.Embedding(40, 32, padding_idx=3)
        self.transformer = torch.nn.Transformer(32, 8, 2, 2, 64, batch_first=True)
        self.generator = torch.nn.Linear(32, 40)


def save(path, **changed):
    torch.manual_seed(0)
    state = OwnModel().state_dict()
    for name, value in state.items():  # as if trained: no longer uniform
        state[name] = value + 0.1 * torch.randn_like(value) ** 3 if value.dim() == 2 else value
    torch.save(state | changed, path)
    return path


@pytest.fixture
def own(tmp_path):
    return save(tmp_path / "own.pt")


def test_what_can_be_said_comes_before_the_questions_and_is_no_health(own, capsys):
    assert main(["doctor", str(own)]) == 2
    printed = capsys.readouterr()
    before, _, questions = printed.out.partition("To be answered:")
    before = " ".join(before.split())
    n = sum(test.of_parameters for test in TESTS)
    assert f"from its tensors alone; the other {len(TESTS) - n} tests need 8 answers about the model" in before
    assert "no fault was found in its tensors so far; whether the model works is not known yet" in before
    assert "healthy" not in before
    assert "--set norm=...  post, pre  (usual: post)" in questions
    assert "--set bos_id=...  an id, or null for none\n" in questions
    assert printed.err.strip() == "error: 8 fields listed above need answers; give them with --set."


def test_json_has_the_questions_and_no_verdict(own, capsys):
    assert main(["doctor", str(own), "--json"]) == 2
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"] == "not_tested"
    assert found["questions"] == ["positions", "n_heads", "norm", "scale_embedding", "activation", "pad_id", "bos_id",
                                  "eos_id"]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "fault", "test"),
    [
        ("transformer.encoder.layers.0.linear1.weight", lambda one: one * torch.nan, "finite"),
        ("transformer.decoder.layers.1.linear2.weight", torch.zeros_like, "constant"),
        ("transformer.encoder.layers.1.linear2.weight", lambda one: torch.rand_like(one) - 0.5, "initial"),
        ("transformer.encoder.layers.0.norm1.weight", torch.zeros_like, "norm_gains"),
        ("src_embed.weight", lambda one: one * (torch.arange(40) > 3)[:, None], "zero_rows"),
        ("generator.weight", lambda one: one * 1e6, "precision"),
    ],
)
def test_a_fault_of_a_tensor_is_found(tmp_path, name, fault, test):
    before = torch.load(save(tmp_path / "own.pt"), weights_only=True)[name]
    imported = preview(save(tmp_path / "own.pt", **{name: fault(before)}))
    found = examine_unopened(imported.report, imported.tensors)
    assert {one.test for one in (*found.only("broken"), *found.only("look"))} == {test}
    assert all(one.measured.shown is None for one in found.findings)


def test_a_tensor_that_nobody_knows_is_tested_under_its_own_name(tmp_path):
    imported = preview(save(tmp_path / "own.pt", words=torch.full((40, 32), torch.nan)))
    (broken,) = examine_unopened(imported.report, imported.tensors).only("broken")
    assert broken.measured.places == ("words",)


def test_the_numbers_are_those_of_the_opened_model(own):
    imported = preview(own)
    found = examine_unopened(imported.report, imported.tensors)
    answers = imported.report.usual | REST
    checkpoint = transformer.load(own, answers=answers)
    for test, one in zip([test for test in TESTS if test.of_parameters], found.findings, strict=True):
        same = run_test(test, ExaminationContext(checkpoint)).measured
        assert (one.test, one.verdict, one.measured.number) == (test.name, same.verdict, pytest.approx(same.number))


def test_usual_values_are_taken_on_demand_alone_and_are_answers(own, few_tests, capsys):
    report = preview(own).report
    assert report.usual == {"n_heads": 8, "norm": "post", "activation": "relu", "pad_id": None}
    rest = [part for name, value in REST.items() for part in ("--set", f"{name}={json.dumps(value).strip(chr(34))}")]
    assert main(["doctor", str(own), *rest, "--usual", "--brief"]) == 3
    assert "usual values taken: n_heads=8, norm=post, activation=relu, pad_id=null" in capsys.readouterr().err
    fields = {one.name: one for one in preview(own, answers=report.usual).report.fields}
    assert fields["norm"].how == "answered"
    assert fields["norm"].evidence == "Your answer, which is the usual value."
    assert transformer.load(own).config.n_heads == 8  # kept beside it


def test_only_code_with_a_default_has_a_usual_value(tmp_path):
    layer = torch.nn.TransformerEncoderLayer(32, 4, 64)  # which has no default number of heads
    state = {f"encoder.layers.0.{name}": value for name, value in layer.state_dict().items()}
    torch.save(state | {"embed.weight": torch.randn(9, 32).index_fill(0, torch.tensor(5), 0.0)}, tmp_path / "a.pt")
    report = preview(tmp_path / "a.pt").report
    assert "n_heads" in {one.name for one in report.asked}
    assert report.usual == {"norm": "post", "activation": "relu", "pad_id": 5}


def test_pairs_that_decide_the_answers_open_the_model(tmp_path, capsys):
    """Questions remain only where the pairs do not decide them; the answers are kept."""
    torch.save(as_a_tutorial(transformer.load(REVERSE).model), tmp_path / "reverse.pt")
    words = ("planet", "window", "harbour", "silver", "quietly", "lamp", "transform", "monday")
    (tmp_path / "pairs.tsv").write_text("".join(f"{word}\t{word[::-1]}\n" for word in words))
    command = ["doctor", str(tmp_path / "reverse.pt"), "--pieces", str(REVERSE / "pieces.model"), "--brief"]
    rest = ["--set", "n_heads=4", "--set", "activation=relu", "--set", "prepend_source_bos=false"]
    assert main([*command, *rest]) == 2
    capsys.readouterr()
    assert main([*command, *rest, "--pairs", str(tmp_path / "pairs.tsv")]) == 0
    told = capsys.readouterr().err
    assert "norm = pre. Your pairs decide: pre fits best (loss 0.1" in told
    assert f"answers kept in {tmp_path / 'reverse.answers.json'}" in told
    assert (
        transformer.load(tmp_path / "reverse.pt", given=transformer.Given(pieces=REVERSE / "pieces.model")).config.norm
        == "pre"
    )
