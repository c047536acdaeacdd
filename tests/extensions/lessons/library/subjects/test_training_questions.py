"""What is asked about training has the answer of its files, of losses in numpy, and of runs by hand."""

import csv
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from glassformer.extensions.lessons.library.case import QuestionNotApplicable
from glassformer.extensions.lessons.library.subjects import training_questions
from glassformer.extensions.lessons.library.survey import case_of
from tests.healthy import SHIPPED, healthy
from transformer.checkpoint.load import load

SENTENCES = {"zh-en": "老师昨天没有看见那只猫。", "en-fr": "She often wants a book.", "reverse": "houses"}


@pytest.fixture(params=SENTENCES)
def case(request):
    return case_of(healthy(request.param), SENTENCES[request.param])


@pytest.fixture
def read(case):
    return replace(case, picked=training_questions.reference(case))


@pytest.fixture(scope="module")
def leak():
    return case_of(load(SHIPPED / "reverse-leak"), "glass")


def losses_by_hand(case, text):
    """-ln p of each right piece: the decoder reads the beginning of the text, one longer each time."""
    model, config = case.checkpoint.model, case.checkpoint.config
    ids = [*case.checkpoint.tgt_tokenizer.encode(text).ids, config.eos_id]
    losses, best = [], []
    for place, wanted in enumerate(ids):
        read = torch.tensor([[config.decoder_start_id, *ids[:place]]])
        with torch.inference_mode():
            row = model(torch.tensor([case.trace.src_ids]), read)[0, -1].double().numpy()
        losses.append(float(np.log(np.exp(row - row.max()).sum()) + row.max() - row[wanted]))
        best.append(int(row.argmax()))
    return ids, np.array(losses), best


def test_the_epoch_that_was_kept_did_best_on_the_dev_file(case):
    rows = list(csv.DictReader((SHIPPED / case.checkpoint.name / "training.csv").open(encoding="utf-8")))
    best = max(rows, key=lambda row: (float(row["dev_bleu"]), float(row["dev_chrf"]), -float(row["dev_loss"])))
    answer = training_questions.kept_epoch(case)
    assert answer.values["kept"] == int(best["epoch"])
    assert answer.right == ("last" if best is rows[-1] else f"epoch-{best['epoch']}")
    assert answer.variant == ("last" if best is rows[-1] else "earlier")
    assert "last" in [option.word for option in answer.options]
    shown = {"en-fr": "BLEU 45.40", "zh-en": "BLEU 34.27", "reverse": "dev loss 0.1010"}
    assert answer.values["score"] == shown[case.checkpoint.name]


def test_the_costliest_piece_is_that_of_the_largest_loss(read):
    ids, losses, _ = losses_by_hand(read, read.picked["reference"])
    answer = training_questions.costliest_piece(read)
    place = int(losses.argmax())
    assert answer.right == f"piece-{place + 1}"
    assert answer.values["piece"] == read.checkpoint.tgt_tokenizer.piece(ids[place])
    assert answer.values["loss"] == pytest.approx(losses[place], abs=1e-3)
    assert answer.values["share"] == pytest.approx(losses[place] / losses.sum(), abs=1e-3)
    assert answer.values["easy_loss"] == pytest.approx(losses.min(), abs=1e-3)


def test_the_right_piece_is_read_and_what_follows_is_counted(read):
    ids, _, best = losses_by_hand(read, read.picked["reference"])
    missed = next(place for place, wanted in enumerate(ids) if best[place] != wanted)
    piece = read.checkpoint.tgt_tokenizer.piece
    assert read.picked["at"] == missed + 1
    assert (read.picked["right"], read.picked["own"]) == (piece(ids[missed]), piece(best[missed]))
    assert training_questions.what_is_read_next(read).right == "right"
    answer = training_questions.after_the_miss(read)
    hits = [best[place] == ids[place] for place in range(missed + 1, len(ids))]
    assert (answer.values["k"], answer.values["rest"]) == (sum(hits), len(hits))
    assert answer.right == ("all" if all(hits) else "some" if any(hits) else "none")


def test_a_model_trained_on_a_leak_writes_nothing_right_and_one_that_was_not_does(leak):
    assert training_questions.words_of_leak(leak).right == "0"
    healthy_one = training_questions.words_of_leak(case_of(healthy("reverse"), "glass"))
    assert healthy_one.right == "10"
    assert healthy_one.variant == "some"
    with (SHIPPED / "reverse-leak" / "training.csv").open(encoding="utf-8") as file:
        last = list(csv.DictReader(file))[-1]
    assert training_questions.last_loss(leak)["loss"] == pytest.approx(float(last["loss"]))


def test_it_knows_new_words_only_while_the_future_is_open(leak):
    answer = training_questions.why_the_leak(leak)
    closed = np.concatenate(
        [losses_by_hand(case_of(leak.checkpoint, word), word[::-1])[1] for word in training_questions._words()]
    )
    assert answer.values["unseen"] == pytest.approx(closed.mean(), rel=1e-3)
    assert answer.values["unseen"] > answer.values["guess"] == pytest.approx(math.log(30))
    assert answer.values["seen"].endswith(("10⁻⁵", "10⁻⁶", "10⁻⁷"))
    with pytest.raises(QuestionNotApplicable, match="not trained with a leak"):
        training_questions.why_the_leak(case_of(healthy("reverse"), "glass"))


def test_on_noise_no_distribution_has_a_lower_loss_than_the_uniform_one(case):
    answer = training_questions.dev_loss_on_noise(case)
    n = case.checkpoint.config.tgt_vocab_size
    numbers = {option.word: float(option.label) for option in answer.options}
    assert list(numbers.values()) == sorted(numbers.values())
    logits = torch.zeros(n, dtype=torch.float64, requires_grad=True)
    loss = torch.nn.functional.cross_entropy(logits.expand(n, n), torch.arange(n))
    loss.backward()
    assert float(logits.grad.abs().max()) < 1e-12  # the least: the loss is convex
    assert numbers[answer.right] == pytest.approx(float(loss), abs=0.005)
    others = torch.nn.functional.cross_entropy(torch.randn(9, 1, n).expand(9, n, n).mT, torch.arange(n).expand(9, n))
    assert float(others) > float(loss)
