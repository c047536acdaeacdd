"""What the losses of two choices say, in figures and in words."""

from hypothesis import given, settings
from hypothesis import strategies as st

from transformer.trying.losses import Loss
from transformer.trying.significance import same, surely_better, verdict


def a_loss(*means, pieces=5):
    return Loss(tuple(mean * pieces for mean in means), (pieces,) * len(means))


def test_two_choices_are_told_apart_only_by_differences_that_chance_does_not_make():
    best = a_loss(0.1, 0.2, 0.1, 0.3)
    assert surely_better(best, a_loss(1.1, 1.3, 1.0, 1.2))
    assert not surely_better(best, a_loss(0.2, 0.1, 0.2, 0.3))
    assert not surely_better(a_loss(0.1), a_loss(5.0))  # one text
    six = a_loss(*[0.1] * 6)
    assert surely_better(six, a_loss(*[0.11] * 5, 4.0))  # by the signs: the mean is spread too far
    assert not surely_better(six, a_loss(*[0.11] * 4, 0.09, 4.0))
    assert same(six, a_loss(*[0.1 + 1e-6] * 6))
    assert not same(six, a_loss(*[0.1] * 6, pieces=4))


@settings(max_examples=25)
@given(st.lists(st.floats(0.0, 5.0), min_size=1, max_size=12))
def test_no_choice_is_better_than_itself(means):
    assert not surely_better(a_loss(*means), a_loss(*means))


def test_a_verdict_says_loss_or_probability_and_what_is_close():
    best, other = a_loss(0.12, 0.12, 0.12), a_loss(2.31, 2.31, 2.31)
    choices = [("4", best), ("8", other)]
    assert (
        verdict(choices, guessing=5.0, written=False)
        == "4 fits best (loss 0.12 on 3 texts); the next best is 8 (loss 2.31)."
    )
    assert verdict(choices, guessing=5.0, written=True) == (
        "With 4, the pieces that the model writes for 3 texts have a mean probability of 88.69%; the next best is "
        "8 (9.93%). A model with a wrong setting may be just as certain of what it writes: only pairs of source "
        "and target can decide."
    )
    close = [("4", best), ("8", a_loss(0.33, 0.11, 0.14))]
    assert (
        "but not clearly better than 8 (next-best loss 0.193). With more texts, the difference may become clear."
        in verdict(close, guessing=5.0, written=False)
    )
    assert (
        "not clearly more than with 8 (next best 82.42%). A comparison on pairs of source and target is more "
        "reliable." in verdict(close, guessing=5.0, written=True)
    )
    assert "so this comparison cannot decide between them" in verdict(
        [("4", best), ("8", best)], guessing=5.0, written=False
    )
    assert verdict([("4", best)], guessing=5.0, written=False) == "4 fits (loss 0.12 on 3 texts)."


def test_a_verdict_says_where_either_will_do_and_where_none_fits():
    sure = [("4", a_loss(*[0.00006] * 3)), ("8", a_loss(*[0.375] * 3))]
    assert (
        verdict(sure, guessing=2.8, written=False)
        == "4 fits best (loss 0.00006 on 3 texts); the next best is 8 (loss 0.375)."
    )
    alike = [("relu", a_loss(0.001, 0.002, 0.003)), ("gelu", a_loss(0.002, 0.001, 0.004))]
    said = verdict(alike, guessing=2.8, written=False)
    assert (
        said == "relu fits best (loss 0.002 on 3 texts), but not clearly better than gelu (next-best loss 0.00233). "
        "You can use any of them."
    )
    poor = [("4", a_loss(1.6, 1.8, 1.8)), ("8", a_loss(2.1, 2.3, 2.2))]
    said = verdict(poor, guessing=2.8, written=False)
    assert said.startswith(
        "None of the choices fits well. The best, 4, has a loss of 1.73 on 3 texts; random guessing "
        "would have a loss of 2.8."
    )
    assert "marks around the source" in said
    assert "With more texts" not in said
