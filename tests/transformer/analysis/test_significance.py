"""Two choices are told apart only by losses that chance does not make, and a verdict says so."""

from hypothesis import given, settings
from hypothesis import strategies as st

from transformer.analysis.losses import Loss
from transformer.analysis.significance import same, surely_better, verdict


def a_loss(*means, pieces=5):
    return Loss(tuple(mean * pieces for mean in means), (pieces,) * len(means))


@settings(max_examples=25)
@given(st.lists(st.floats(0.0, 5.0), min_size=1, max_size=12))
def test_two_choices_are_told_apart_only_by_differences_that_chance_does_not_make(means):
    assert not surely_better(a_loss(*means), a_loss(*means))
    best, six = a_loss(0.1, 0.2, 0.1, 0.3), a_loss(*[0.1] * 6)
    assert surely_better(best, a_loss(1.1, 1.3, 1.0, 1.2))
    assert not surely_better(best, a_loss(0.2, 0.1, 0.2, 0.3))
    assert not surely_better(a_loss(0.1), a_loss(5.0))  # one text
    assert surely_better(six, a_loss(*[0.11] * 5, 4.0))  # by the signs: the mean is spread too far
    assert not surely_better(six, a_loss(*[0.11] * 4, 0.09, 4.0))
    assert same(six, a_loss(*[0.1 + 1e-6] * 6))
    assert not same(six, a_loss(*[0.1] * 6, pieces=4))


def test_a_verdict_says_what_fits_what_is_close_and_where_none_fits():
    best, other, close = a_loss(0.12, 0.12, 0.12), a_loss(2.31, 2.31, 2.31), a_loss(0.33, 0.11, 0.14)
    alike = [("relu", a_loss(0.001, 0.002, 0.003)), ("gelu", a_loss(0.002, 0.001, 0.004))]
    poor = [("4", a_loss(1.6, 1.8, 1.8)), ("8", a_loss(2.1, 2.3, 2.2))]
    for choices, written, said in (
        ([("4", best), ("8", other)], False, "4 fits best (loss 0.12 on 3 texts); the next best is 8 (loss 2.31)."),
        ([("4", best), ("8", other)], True, "have a mean probability of 88.69%; the next best is 8 (9.93%)."),
        ([("4", best), ("8", close)], False, "but not clearly better than 8 (next-best loss 0.193). With more texts"),
        ([("4", best), ("8", close)], True, "not clearly more than with 8 (next best 82.42%)."),
        ([("4", best), ("8", best)], False, "so this comparison cannot decide between them"),
        ([("4", best)], False, "4 fits (loss 0.12 on 3 texts)."),
        (alike, False, "relu fits best (loss 0.002 on 3 texts), but not clearly better than gelu"),
        (alike, False, "You can use any of them."),
        (poor, False, "None of the choices fits well. The best, 4, has a loss of 1.73 on 3 texts; random guessing "),
    ):
        assert said in verdict(choices, guessing=2.8, written=written)
    assert "With more texts" not in verdict(poor, guessing=2.8, written=False)
