"""What is asked about training has the answer of its files, of losses in torch, and of runs by hand."""

import csv
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from glassformer.extensions.lessons.library.lesson import QuestionNotApplicable
from glassformer.extensions.lessons.library.lesson_files import lessons
from glassformer.extensions.lessons.library.posing import pose
from glassformer.extensions.lessons.library.subjects import training_questions
from glassformer.extensions.lessons.library.survey import case_of
from tests.extensions.lessons.library.posed import approx, case, picked, told
from tests.healthy import SHIPPED, healthy
from transformer.checkpoint.load import load

RECIPE = lessons()["recipe"].steps
OWN = {"zh-en": "老师昨天没有看见那只猫。", "en-fr": "She often wants a book.", "reverse": "houses"}
SCORES = {"en-fr": "BLEU 45.40", "zh-en": "BLEU 34.27", "reverse": "dev loss 0.1010"}


@pytest.fixture(params=OWN)
def run(request):
    return case(request.param, OWN[request.param])


@pytest.fixture(scope="module")
def leak():
    return case_of(load(SHIPPED / "reverse-leak"), "glass")


def epochs(name):
    """The rows of a checkpoint's training.csv, with numbers."""
    with (SHIPPED / name / "training.csv").open(encoding="utf-8") as file:
        return [{key: float(cell or "nan") for key, cell in row.items()} for row in csv.DictReader(file)]


def losses_by_hand(run, text):
    """-ln p of each right piece: the decoder reads the beginning of the text, one longer each time."""
    model, config = run.checkpoint.model, run.checkpoint.config
    ids = [*run.checkpoint.tgt_tokenizer.encode(text).ids, config.eos_id]
    read = [[config.decoder_start_id, *ids[:place]] for place in range(len(ids))]
    with torch.inference_mode():
        rows = [model(torch.tensor([run.trace.src_ids]), torch.tensor([one]))[0, -1].double() for one in read]
    losses = cross_entropy(torch.stack(rows), torch.tensor(ids), reduction="none")
    return ids, losses.numpy(), [int(row.argmax()) for row in rows]


def test_the_epoch_that_was_kept_did_best_on_the_dev_file(run):
    rows = epochs(run.checkpoint.name)
    best = max(rows, key=lambda row: (row["dev_bleu"], row["dev_chrf"], -row["dev_loss"]))
    answer, last, kept = training_questions.kept_epoch(run), best is rows[-1], int(best["epoch"])
    told(answer, "last" if last else f"epoch-{kept}", kept=kept, score=SCORES[run.checkpoint.name])
    assert answer.variant == ("last" if last else "earlier")
    assert "last" in [option.word for option in answer.options]


def test_the_costliest_piece_is_that_of_the_largest_loss(run):
    run = picked(training_questions.reference, run)
    ids, losses, _ = losses_by_hand(run, run.picked["reference"])
    place, near = int(losses.argmax()), [approx(one, abs=1e-3) for one in (losses.max(), losses.min())]
    share, piece = approx(losses.max() / losses.sum(), abs=1e-3), run.checkpoint.tgt_tokenizer.piece(ids[place])
    answer = training_questions.costliest_piece(run)
    told(answer, f"piece-{place + 1}", piece=piece, loss=near[0], easy_loss=near[1], share=share)


def test_the_right_piece_is_read_and_what_follows_is_counted(run):
    run = picked(training_questions.reference, run)
    ids, _, best = losses_by_hand(run, run.picked["reference"])
    missed = next(place for place, wanted in enumerate(ids) if best[place] != wanted)
    piece = run.checkpoint.tgt_tokenizer.piece
    found = {"at": missed + 1, "right": piece(ids[missed]), "own": piece(best[missed])}
    assert run.picked | found == run.picked
    assert training_questions.what_is_read_next(run).right == "right"
    hits = [best[place] == ids[place] for place in range(missed + 1, len(ids))]
    right = "all" if all(hits) else "some" if any(hits) else "none"
    told(training_questions.after_the_miss(run), right, k=sum(hits), rest=len(hits))


def test_a_model_trained_on_a_leak_writes_nothing_right_and_one_that_was_not_does(leak):
    assert training_questions.words_of_leak(leak).right == "0"
    healthy_one = training_questions.words_of_leak(case_of(healthy("reverse"), "glass"))
    assert (healthy_one.right, healthy_one.variant) == ("10", "some")
    assert training_questions.last_loss(leak)["loss"] == approx(epochs("reverse-leak")[-1]["loss"])


def test_it_knows_new_words_only_while_the_future_is_open(leak):
    answer, words = training_questions.why_the_leak(leak), training_questions._words()
    closed = np.concatenate([losses_by_hand(case_of(leak.checkpoint, word), word[::-1])[1] for word in words])
    told(answer, answer.right, unseen=approx(closed.mean(), rel=1e-3), guess=approx(math.log(30)))
    assert answer.values["unseen"] > answer.values["guess"]
    assert answer.values["seen"].endswith(("10⁻⁵", "10⁻⁶", "10⁻⁷"))
    with pytest.raises(QuestionNotApplicable, match="not trained with a leak"):
        training_questions.why_the_leak(case_of(healthy("reverse"), "glass"))


def test_on_noise_no_distribution_has_a_lower_loss_than_the_uniform_one(run):
    answer, n = training_questions.dev_loss_on_noise(run), run.checkpoint.config.tgt_vocab_size
    numbers = {option.word: float(option.label) for option in answer.options}
    assert list(numbers.values()) == sorted(numbers.values())
    logits = torch.zeros(n, dtype=torch.float64, requires_grad=True)
    loss = logits.logsumexp(0) - logits.mean()  # the mean of -ln p over all pieces that may be right
    loss.backward()
    assert float(logits.grad.abs().max()) < 1e-12  # the least: the loss is convex
    assert numbers[answer.right] == approx(float(loss), abs=0.005)


def test_no_distribution_has_less_smoothed_loss_than_the_one_that_is_wanted(run):
    posed = pose(RECIPE[1], run)
    n, smoothing = posed.picked["n"], posed.picked["smoothing"]
    wanted = torch.full((n,), smoothing / n, dtype=torch.float64)
    wanted[0] += 1 - smoothing

    def loss(distribution):
        return float(cross_entropy(distribution.log()[None], torch.tensor([0]), label_smoothing=smoothing))

    told(posed.answer, posed.answer.right, floor=approx(loss(wanted), rel=1e-9), p=approx(float(wanted[0])))
    assert min(loss(share * wanted + (1 - share) / n) for share in (0.5, 0.99)) > loss(wanted)


def test_training_is_above_dev_and_most_is_learned_in_the_first_half(run):
    name, answer = run.checkpoint.name, pose(RECIPE[2], run).answer
    rows = epochs(name)
    kept = rows[run.checkpoint.card.training["epochs"] - 1]
    told(answer, answer.right, loss=approx(kept["loss"]), dev=approx(kept["dev_loss"]))
    assert kept["loss"] > kept["dev_loss"]
    assert answer.variant == ("smoothing" if name == "reverse" else "both")
    halves = pose(RECIPE[4], run).answer
    first, middle, last = (row["dev_loss"] for row in (rows[0], rows[halves.values["at"] - 1], rows[-1]))
    assert (halves.right, first - middle > middle - last) == ("first", True)


def test_a_model_that_goes_on_dropping_is_found():
    run = case("en-fr", OWN["en-fr"])
    trace = replace(run.trace, log_probs=run.trace.log_probs + 1e-3)
    assert pose(RECIPE[3], replace(run, trace=trace)).answer.right == "differ"
