"""Outputs that are wrong in a way of their own are told with their cause, and a leak in training with its line."""

from dataclasses import replace

import pytest
import torch

from glassformer.extensions.doctor.library import loss_tests, output_tests
from glassformer.extensions.doctor.library.context import ExaminationContext, random_texts
from glassformer.extensions.doctor.library.output_tests import loops
from glassformer.extensions.doctor.library.report import examine
from tests.extensions.doctor.library.changed import changed, verdicts
from tests.extensions.doctor.library.changed import look as look_at
from tests.healthy import healthy, texts
from tests.transformer.one_stack import alone
from transformer.analysis.losses import Samples, loss_of
from transformer.model.taps import NO_TAP
from transformer.model.transformer import Transformer

TESTS = (*output_tests.TESTS, *loss_tests.TESTS)
WORDS = ("glass", "abcdef", "transform", "window", "streets", "qwertz")
PAIRS = Samples(WORDS, tuple(word[::-1] for word in WORDS))


def look(name, checkpoint, given=PAIRS):
    return look_at(name, checkpoint, given)


def test_without_pairs_what_needs_them_says_so(reverse):
    found = verdicts(TESTS, ExaminationContext(reverse, Samples(WORDS)))
    lacking = {name for name, verdict in found.items() if verdict == "not_applicable"}
    assert lacking == {"loss", "right", "reported"}
    without = ExaminationContext(healthy("bert"), Samples(()), reported=1.0)
    assert loss_tests.reported.measure(without).verdict == "not_applicable"


@pytest.mark.parametrize("stack", ["encoder", "decoder"])
def test_a_model_of_one_stack_is_not_judged_by_what_it_does_not_do(tmp_path, stack):
    patient = ExaminationContext(alone(stack, tmp_path), Samples(("the cat", "a dog", "cats")))
    assert set(verdicts(TESTS, patient).values()) == {"not_applicable"}


@pytest.mark.parametrize(
    ("ids", "expected"),
    [("", False), ("aaa", False), ("aaaa", True), ("xxabababab", True), ("abababa", False), ("xaaabaaabaaa", False)],
)
def test_loops(ids, expected):
    assert loops([ord(c) for c in ids]) is expected


class Endless(Transformer):
    """The end mark is never likely."""

    def project(self, hidden, *, tap=NO_TAP):
        return super().project(hidden, tap=tap).index_fill(-1, torch.tensor(sorted(self.config.end_ids)), -50.0)


def endless(checkpoint):
    return changed(checkpoint, lambda model: setattr(model, "__class__", Endless))


@pytest.mark.parametrize("name", ["reverse", "gpt2"])
def test_a_model_whose_outputs_never_end_is_broken(name, few_wirings):
    """Whether or not an encoder reads: the outputs begin with what is right."""
    given = texts(name)
    report = examine(endless(healthy(name)), pairs=Samples(given.sources[:20], given.targets[:20]))
    assert report.health == "broken"
    first = report.worst_first[0]
    assert first.test == "wiring"
    assert report.search.best.names == ("end-never-learnt",)
    assert next(one for one in report.findings if one.test == "ending").measured.number == 1
    assert "never learned to stop" in report.summary()
    assert all(one.follows for one in (*report.only("broken")[1:], *report.only("look")) if one.area == "behaviour")


def test_nothing_is_said_of_the_end_where_it_need_not_come(tmp_path, reverse):
    assert look("ending", alone("decoder", tmp_path)).verdict != "broken"  # it may be made to go on and on
    longer = Samples(WORDS, tuple(word * 30 for word in WORDS))
    assert look("ending", endless(reverse), longer).verdict == "well"  # cut before it is as long as it should be


def test_what_writes_nothing_right_never_works(reverse):
    def cut(model):
        for attention in model.attentions("cross"):
            attention.out_proj.weight.zero_()

    sick = changed(reverse, cut)
    found = look("right", sick)
    assert (found.verdict, found.number) == ("broken", 0)
    assert found.headline == "None of its 6 outputs is right."
    variety = look("variety", sick)
    assert (variety.verdict, variety.number) == ("look", 1)
    other = look("right", reverse, Samples(WORDS, tuple(f"{word[::-1]}q" for word in WORDS)))
    assert (other.verdict, other.number) == ("not_applicable", 0)  # nothing else is wrong with these outputs


def test_pairs_of_another_task_give_a_loss_far_above_that_of_guessing(reverse):
    shuffled = Samples(WORDS, PAIRS.targets[1:] + PAIRS.targets[:1])
    found = look("loss", reverse, shuffled)
    assert found.number > loss_tests.SURE
    assert "sure of its predictions, and they are wrong" in found.meaning
    assert "hardly trained" not in found.meaning
    assert "mask" not in found.causes  # measured, and there was no leak


def test_outputs_that_are_too_short_or_too_long_are_told_with_causes_that_were_not_ruled_out(reverse):
    for given, says in (
        (tuple(word[:2] for word in WORDS), "no end mark"),
        (tuple(word * 3 for word in WORDS), "start"),
    ):
        found = look("lengths", reverse, Samples(WORDS, given))
        assert found.verdict == "look"
        assert says in found.causes


def test_copies_are_told_where_something_else_is_wanted(reverse):
    palindromes = ("abcba", "xyzyx", "qwewq")
    wrong = Samples(palindromes, ("a", "b", "c"))
    assert look("copying", reverse, wrong).verdict == "look"
    assert look("copying", reverse, Samples(palindromes, palindromes)).verdict == "not_applicable"  # copies are wanted
    card = replace(reverse.card, target_language="letters")
    assert look("copying", replace(reverse, card=card), Samples(palindromes)).verdict == "not_applicable"


def test_guesses_are_those_that_the_loss_is_taken_of(reverse, tmp_path):
    longer = Samples((*WORDS, "a" * 40), (*PAIRS.targets, "a" * 40))  # the last one does not fit, and is left out
    sentences = Samples(("the cat", "a dog", "cats"), ("sat", "ran", "sleep"))
    for checkpoint, given in ((reverse, longer), (alone("decoder", tmp_path), sentences)):
        losses, hits = loss_tests.guesses(ExaminationContext(checkpoint, given))
        loss = loss_of(checkpoint, PAIRS if given is longer else given)
        assert len(losses) == sum(loss.pieces)
        assert losses.mean() == pytest.approx(loss.mean, abs=1e-4)
        assert given is sentences or hits.mean() == 1


def test_random_texts_hold_no_special_piece_but_those_around_them(reverse):
    config = reverse.config
    first, again, other = (random_texts(ExaminationContext(reverse, seed=seed), most=256) for seed in (0, 0, 1))
    for drawn in first:
        assert (drawn.source[:, -1] == config.eos_id).all()
        assert (drawn.target[:, 0] == config.decoder_start_id).all()
        assert (drawn.source[:, :-1] >= 4).all()
        assert max(drawn.source.size(1), drawn.target.size(1)) <= config.max_len
    assert torch.equal(again[0].source, first[0].source)
    assert not torch.equal(again[0].source, other[0].source)
