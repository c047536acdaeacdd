"""What is asked about the recipe of a training has the answer of torch and of the checkpoint's files."""

import csv
from dataclasses import replace

import pytest
import torch

from glassformer.extensions.lessons.library.lesson_files import lessons
from glassformer.extensions.lessons.library.posing import pose
from glassformer.extensions.lessons.library.survey import SHIPPED
from tests.extensions.lessons.library.posed import NAMES, case, sentences

STEPS = lessons()["recipe"].steps
each = pytest.mark.parametrize("name", NAMES)


def run_of(name):
    return case(name, sentences(name)[0])


def column(name, wanted):
    with (SHIPPED / name / "training.csv").open() as file:
        return [float(row[wanted]) for row in csv.DictReader(file)]


@each
def test_no_distribution_has_less_smoothed_loss_than_the_one_that_is_wanted(name):
    posed = pose(STEPS[1], run_of(name))
    n, smoothing = posed.picked["n"], posed.picked["smoothing"]
    wanted = torch.full((n,), smoothing / n, dtype=torch.float64)
    wanted[0] += 1 - smoothing

    def loss(distribution):
        return torch.nn.functional.cross_entropy(
            distribution.log()[None], torch.tensor([0]), label_smoothing=smoothing
        ).item()

    assert posed.answer.values["floor"] == pytest.approx(loss(wanted), rel=1e-9)
    assert posed.answer.values["p"] == pytest.approx(wanted[0].item())
    for share in (0.5, 0.99):
        assert loss(share * wanted + (1 - share) / n) > loss(wanted)


@each
def test_training_is_above_dev_and_the_recipe_says_why(name):
    answer = pose(STEPS[2], run_of(name)).answer
    kept = run_of(name).checkpoint.card.training["epochs"] - 1
    loss, dev = (column(name, wanted)[kept] for wanted in ("loss", "dev_loss"))
    assert (answer.values["loss"], answer.values["dev"]) == pytest.approx((loss, dev))
    assert loss > dev
    assert answer.variant == ("smoothing" if name == "reverse" else "both")


def test_a_model_that_goes_on_dropping_is_found():
    run = run_of("en-fr")
    trace = replace(run.trace, log_probs=run.trace.log_probs + 1e-3)
    assert pose(STEPS[3], replace(run, trace=trace)).answer.right == "differ"


@each
def test_most_is_learned_in_the_first_half(name):
    answer, dev = pose(STEPS[4], run_of(name)).answer, column(name, "dev_loss")
    middle = answer.values["at"] - 1
    assert answer.right == ("first" if dev[0] - dev[middle] > dev[middle] - dev[-1] else "second") == "first"
