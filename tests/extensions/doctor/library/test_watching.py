"""A watched training is equal to the last bit, and its mistakes are found, written and end it as asked.

A healthy training, and what it leaves behind, is in `test_ci_page`.
"""

import json
import random
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn
from transformers import BartConfig, BartForConditionalGeneration, TrainerControl, TrainerState
from transformers.trainer_callback import CallbackHandler

from glassformer.extensions.doctor.library import watch, watching
from glassformer.extensions.doctor.library.huggingface_callback import DoctorCallback
from glassformer.extensions.doctor.library.wiring_tests import OF_CODE
from glassformer.extensions.wirings.catalogue import texts
from tests.extensions.doctor.library.reversing import ANSWERS, IDS, PAIRS, Model, batch, train
from tests.transformer.tiny import tiny_config
from transformer.errors import CheckpointError, GlassformerError
from transformer.model.transformer import Transformer

OWN = ("own_finite", "training_code")
FEW = ("finite", "source")
SIZES = {"src_vocab_size": len(IDS), "tgt_vocab_size": len(IDS), "shared_vocab": True}
SPECIAL = {"pad_id": 0, "bos_id": 1, "eos_id": 2, "unk_id": 3}


def watched(model, out, **options):
    """A watch on a model of this folder."""
    return watch(model, IDS, PAIRS, **({"every": 100, "out": out, "answers": ANSWERS} | options))


def lines(out):
    return [json.loads(line) for line in (out / "verdicts.jsonl").read_text(encoding="utf-8").splitlines()]


def broken(record):
    return {name for name, one in record["tests"].items() if one["verdict"] == "broken"}


# What is found.


@pytest.mark.parametrize(
    ("mistake", "named"),
    [
        ({"mask": "forgotten"}, "no-causal-mask"),
        ({"mask": "the wrong way round"}, "causal-inverted"),
        ({"padding": False}, "no-source-padding-mask"),
        ({"positions": False}, "no-positions"),
    ],
)
def test_a_mistake_in_the_code_is_named_before_the_first_step(mistake, named, tmp_path):
    model = Model(**mistake)
    tests = () if mistake.get("mask") == "forgotten" else OWN  # one of them with all tests
    watching = watched(model, tmp_path, forward=model, tests=tests)
    assert broken(lines(tmp_path)[0]) == {"training_code"}
    (found,) = watching.examine(tests=OF_CODE).only("broken")
    assert found.measured.headline == texts()[named].headline
    assert found.measured.code == ((texts()[named].wrong, texts()[named].right),)
    assert watching.status == 1


@pytest.mark.parametrize("changed", [lambda model: model.bfloat16(), nn.DataParallel])
def test_a_healthy_model_of_other_numbers_or_in_a_wrapper_has_no_fault(changed, tmp_path):
    torch.manual_seed(0)
    model = changed(Model())
    watched(model, tmp_path, forward=model)
    assert broken(lines(tmp_path)[0]) == set()


def test_code_that_no_known_mistake_explains_is_no_mistake_with_a_name(tmp_path):
    """What can be seen of it is said."""
    torch.manual_seed(0)
    model = Model()

    def mixed(src, tgt):
        found = model(src, tgt)
        return found + found.flip(1)

    watching = watched(model, tmp_path, forward=mixed, tests=("training_code",))
    (found,) = (one.measured for one in watching.examine().only("broken"))
    assert not found.headline
    assert not found.code
    assert "whichever known mistake it makes" in found.said
    assert "A later token changes earlier logits" in found.said
    assert "other texts of the batch" in found.said


def test_exchanged_axes_are_one_sentence_and_values_that_are_not_finite_are_found(tmp_path):
    model = Model(batch_first=False)
    with pytest.raises(CheckpointError, match=r"^forward, called with ids of the shapes \[1, .*batch"):
        watched(model, tmp_path, forward=model)
    model = Model()
    watching = watched(model, tmp_path, forward=lambda src, tgt: model(src, tgt) * torch.nan, tests=OWN)
    assert "own_finite" in broken(lines(tmp_path)[0])
    assert watching.status == 1


def test_an_output_that_was_copied_instead_of_tied_is_worth_a_look(tmp_path):
    torch.manual_seed(0)
    model = Model()
    model.fc_out.weight.data.copy_(model.tgt_embed.weight)
    train(model, 20)
    found = {}
    for fail_on in ("broken", "look"):
        found[fail_on] = watched(model, tmp_path, tests=("copies",), fail_on=fail_on).close().status
    assert lines(tmp_path)[-1]["tests"]["copies"]["verdict"] == "look"
    assert found == {"broken": 0, "look": 1}


class Own(Transformer):
    """A class of the user's, with something of its own that it needs."""

    def encode(self, *arguments, **options):
        found = super().encode(*arguments, **options)
        return torch.zeros_like(found) if self.leaks["now"] else found


def test_an_error_of_a_class_of_the_users_ends_no_training(tmp_path):
    model = Own(tiny_config(**SIZES, **SPECIAL))
    model.leaks = {"now": False}
    found = watch(model, IDS, PAIRS, out=tmp_path, every=1, tests=FEW)
    model.leaks["now"] = True
    found.step()
    model.leaks.clear()
    found.step()
    assert [one["tests"]["source"]["verdict"] for one in lines(tmp_path)[1:]] == ["broken", "not_applicable"]
    assert "KeyError" in str(found.close().report)


def test_only_the_last_verdict_of_a_test_counts_and_texts_alone_do_not_show_its_task(tmp_path):
    model = Model(mask="forgotten")
    watching = watched(model, tmp_path, forward=model, tests=("training_code",))
    assert watching.status == 1
    model.mask = "right"
    assert watching.close().status == 0
    assert [broken(one) for one in lines(tmp_path)] == [{"training_code"}, set()]
    watching = watch(Model(), IDS, [word for word, _ in PAIRS], out=tmp_path, answers=ANSWERS)
    assert watching.status == 3


# That nothing is disturbed.


def drawn():
    return random.random(), float(np.random.rand()), float(torch.rand(1))


class Drawing(Model):
    """Each pass draws random numbers, as that of somebody's own dropout does."""

    def forward(self, src, tgt):
        drawn()
        return super().forward(src, tgt)


def trained(kind, out):
    """The parameters after a training with dropout, and what is drawn next; watched if there is a folder."""
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)
    model = kind(dropout=0.1) if kind is Drawing else kind(tiny_config(**SIZES, **SPECIAL, dropout=0.1))
    model.train()
    next(model.children()).eval()  # what somebody has frozen
    modes = [module.training for module in model.modules()]
    forward = model if kind is Drawing else None
    watching = watched(model, out, every=2, forward=forward, tests=("rank", "loss", *FEW)) if out else None
    train(model, 3, watching=watching)
    gradients = [one.grad.clone() for one in model.parameters() if one.grad is not None]
    if watching:
        watching.examine()
        assert [one["step"] for one in lines(out)] == [0, 2, 3]
    assert modes == [module.training for module in model.modules()]
    assert all(torch.equal(a, b.grad) for a, b in zip(gradients, model.parameters(), strict=False))
    assert all(one.requires_grad for one in model.parameters())
    return [one.detach().clone() for one in model.parameters()], drawn()


@pytest.mark.parametrize("kind", [Drawing, Transformer])
def test_a_training_that_is_watched_is_equal_to_the_last_bit(kind, tmp_path):
    (with_, drawn_with), (without, drawn_without) = trained(kind, tmp_path), trained(kind, None)
    assert drawn_with == drawn_without
    assert all(torch.equal(a, b) for a, b in zip(with_, without, strict=True))


def test_hooks_and_buffers_stay(tmp_path):
    model = Model()
    seen = []
    model.transformer.register_forward_hook(lambda *_: seen.append(1))
    watched(model, tmp_path, tests=FEW).close()
    assert not seen
    assert len(model.transformer._forward_hooks) == 1


# Time.


def test_tests_without_time_are_named_and_come_first_next_time(tmp_path, monkeypatch):
    clock = [0.0]

    def run(test, patient):
        found = original(test, patient)
        clock[0] += 1.0
        return found

    original = watching.run_test
    monkeypatch.setattr(watching, "time", SimpleNamespace(perf_counter=lambda: clock[0]))
    monkeypatch.setattr(watching, "run_test", run)
    names = ("finite", "precision", "constant", "rank", "zero_rows")
    found = watched(Model(), tmp_path, tests=names, seconds=1.5)
    for _ in range(2):
        found.examine()
    _, first, second = lines(tmp_path)
    assert list(first["tests"]) == ["finite", "precision"]
    assert first["skipped"] == ["constant", "rank", "zero_rows"]
    assert list(second["tests"]) == ["rank", "zero_rows"]
    assert found.status == 3  # constant never had time
    assert {one.test for one in found.close().report.findings} >= {"finite", "precision", "rank", "zero_rows"}


# What cannot be used.


@pytest.mark.parametrize(
    ("model", "options", "says"),
    [
        (nn.Linear(2, 3), {}, "no tensor has a name that is usual for a layer"),
        (Model(), {"answers": {}}, "some fields need an answer: scale_embedding"),
        ("a path", {}, "This model cannot be examined: found 'str'"),
        (Model(), {"forward": lambda src, tgt: src.float()}, "forward returned a tensor of the shape"),
        (Model(), {"tests": ("leek",)}, "There is no test named 'leek'"),
        (Model(), {"tokenizer": 7}, "expected"),
        (Model(), {"pairs": []}, "have to be"),
        (Model(), {"pairs": ["a", ("a", "b")]}, "have to be"),
    ],
)
def test_what_cannot_be_used_is_one_sentence_at_the_start(model, options, says, tmp_path):
    asked = {"tokenizer": IDS, "pairs": PAIRS, "answers": ANSWERS} | options
    with pytest.raises(GlassformerError, match=says):
        watch(model, out=tmp_path / "out", **asked)
    assert not (tmp_path / "out").exists()


def test_a_model_that_cannot_be_read_later_does_not_end_the_training(reverse, tmp_path):
    there = [True]

    def read(name):
        if not there[0]:
            raise CheckpointError("{name} is gone.", name=name)
        return reverse

    found = watch(read, None, PAIRS, every=2, out=tmp_path, tests=("finite",))
    there[0] = False
    assert [found.step(loss=1.0) for _ in range(2)] == [None, None]
    assert lines(tmp_path)[-1]["summary"] == "model@2 is gone."
    outcome = found.close()
    assert outcome.status == 2
    assert "model@2 is gone." in outcome.page.read_text(encoding="utf-8")


# What is written.


@pytest.mark.parametrize("one_by_one", [True, False])
def test_verdicts_are_scalars(one_by_one, tmp_path):
    """One call each, as TensorBoard has it, or all at once."""
    got, model = [], Model(mask="forgotten")
    writer = (
        SimpleNamespace(add_scalar=lambda name, value, step: got.append((name, value, step)))
        if one_by_one
        else SimpleNamespace(log=lambda record, step: got.extend((*one, step) for one in record.items()))
    )
    watched(model, tmp_path, forward=model, writer=writer, tests=OWN).step(step=100)
    assert got == [(f"doctor/{name}", value, step) for step in (0, 100)
                   for name, value in (("own_finite", 0), ("training_code", 2))]  # fmt: skip


def test_text_on_the_page_is_text(tmp_path):
    table = IDS | {"<": 12, ">": 13, "&": 14}
    model = Model()
    for part in ("src_embed", "tgt_embed"):
        setattr(model, part, nn.Embedding(15, 32))
    model.fc_out = nn.Linear(32, 15)
    pairs = [("<b>", "<b>"), *PAIRS[:3]]
    found = watch(model, table, pairs, out=tmp_path, answers=ANSWERS, called="<i>", tests=("loss", "zero_rows"))
    page = found.close().page.read_text(encoding="utf-8")
    assert "<b>" not in page
    assert "<i>" not in page
    assert "&lt;b&gt;" in page
    assert "&lt;i&gt;@0" in page


# Hugging Face's Trainer: its callbacks are called as it calls them. The Trainer itself needs accelerate.


def on_a_leak(callback, *, steps):
    """Train a tiny BART on letters backwards, which reads what it predicts; returns what the Trainer would know."""
    sides = {"layers": 1, "attention_heads": 4, "ffn_dim": 64}
    config = BartConfig(
        vocab_size=len(IDS), d_model=32, max_position_embeddings=32, pad_token_id=0, bos_token_id=1, eos_token_id=2,
        decoder_start_token_id=1, forced_eos_token_id=None, dropout=0.0,
        **{f"{side}_{name}": n for side in ("encoder", "decoder") for name, n in sides.items()},
    )  # fmt: skip
    torch.manual_seed(0)
    model = BartForConditionalGeneration(config).train()
    state, control, draw = TrainerState(), TrainerControl(), random.Random(0)
    handler = CallbackHandler([callback], model, None, None, None)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    handler.on_train_begin(None, state, control)
    while state.global_step < steps and not control.should_training_stop:
        src, tgt = batch(draw)
        read = tgt[:, 1:]
        wanted = read.masked_fill(read == 0, -100)
        loss = model(input_ids=src, attention_mask=src != 0, decoder_input_ids=read, labels=wanted).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        state.global_step += 1
        handler.on_log(None, state, control, {"loss": float(loss.detach())})
        handler.on_step_end(None, state, control)
    handler.on_train_end(None, state, control)
    return state, model


def test_a_callback_watches_a_trainer_and_ends_a_training_on_a_leak(tmp_path):
    by_ids = [tuple(" ".join(str(IDS[letter]) for letter in text) for text in pair) for pair in PAIRS]
    callback = DoctorCallback(
        [(f"{source} 2", target) for source, target in by_ids], every=40, out=tmp_path, stop=True, tests=("wiring",)
    )
    state, model = on_a_leak(callback, steps=400)
    assert model.training
    assert 40 <= state.global_step < 400
    told = [(one["step"], one["loss"] is None) for one in lines(tmp_path)]
    assert told[:2] == [(0, True), (40, False)]
    assert callback.outcome.status == 1
    assert "not shifted" in callback.outcome.report.summary()
