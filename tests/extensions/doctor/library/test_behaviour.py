"""Outputs that are wrong in a way of their own are told, and how well pairs are guessed; a healthy model is well."""

from dataclasses import replace

import pytest
import torch

from glassformer.extensions.doctor.library import label_leak_tests, loss_tests, output_tests
from glassformer.extensions.doctor.library.context import ExaminationContext
from glassformer.extensions.doctor.library.output_tests import loops
from glassformer.extensions.doctor.library.report import examine
from glassformer.extensions.doctor.library.text_passes import random_texts
from tests.extensions.doctor.library.changed import changed, verdicts
from tests.extensions.doctor.library.changed import look as look_at
from tests.healthy import SHIPPED, healthy, texts
from tests.transformer.one_stack import alone
from transformer.checkpoint.load import load
from transformer.model.taps import NO_TAP
from transformer.model.transformer import Transformer
from transformer.trying.losses import Samples, loss_of

TESTS = (*output_tests.TESTS, *loss_tests.TESTS)
WORDS = ("glass", "abcdef", "transform", "window", "streets", "qwertz")
PAIRS = Samples(WORDS, tuple(word[::-1] for word in WORDS))


def look(name, checkpoint, given=PAIRS):
    return look_at(name, checkpoint, given)


def test_a_healthy_model_has_no_fault(reverse):
    assert set(verdicts(TESTS, ExaminationContext(reverse, PAIRS)).values()) == {"well"}


def test_without_pairs_what_needs_them_says_so(reverse):
    found = verdicts(TESTS, ExaminationContext(reverse, Samples(WORDS)))
    lacking = {name for name, verdict in found.items() if verdict == "not_applicable"}
    assert lacking == {"loss", "loss_by_position", "free_running", "right", "reported"}


def test_without_texts_no_loss_is_that_of_the_training():
    patient = ExaminationContext(healthy("bert"), Samples(()), reported=1.0)
    assert loss_tests.reported.measure(patient).verdict == "not_applicable"


def test_texts_with_hidden_pieces_are_not_compared_with_the_training():
    assert loss_tests.reported.measure(ExaminationContext(load(SHIPPED / "palindrome"))).verdict == "well"


@pytest.mark.parametrize("stack", ["encoder", "decoder"])
def test_a_model_of_one_stack_is_not_judged_by_what_it_does_not_do(tmp_path, stack):
    patient = ExaminationContext(alone(stack, tmp_path), Samples(("the cat", "a dog", "cats")))
    assert set(verdicts(TESTS, patient).values()) == {"not_applicable"}


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ("", False),
        ("aaa", False),
        ("aaaa", True),
        ("xxabababab", True),
        ("abababa", False),
        ("abcdabcdabcdabcdz", True),
        ("abcabcabcab", False),
        ("xaaabaaabaaa", False),
    ],
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
def test_a_model_whose_outputs_never_end_is_broken(name):
    """Whether or not an encoder reads: the outputs begin with what is right."""
    report = examine(endless(healthy(name)), pairs=texts(name))
    assert report.health == "broken"
    first = report.worst_first[0]
    assert (first.test, first.measured.number) == ("ending", 1)
    assert "never learnt to write the end mark" in report.summary()
    assert all(one.follows for one in (*report.only("broken")[1:], *report.only("look")) if one.area == "behaviour")
    assert not {one.test for one in report.only("look")} & {"loss_by_position"}  # the end mark alone is hard


def test_nothing_is_said_of_the_end_where_it_need_not_come(tmp_path, reverse):
    assert look("ending", alone("decoder", tmp_path), PAIRS).verdict != "broken"  # it may be made to go on and on
    longer = Samples(WORDS, tuple(word * 30 for word in WORDS))
    assert look("ending", endless(reverse), longer).verdict == "well"  # cut before it is as long as it should be


def test_what_writes_nothing_right_never_works(reverse):
    def cut(model):
        for attention in model.attentions("cross"):
            attention.out_proj.weight.zero_()

    found = look("right", changed(reverse, cut))
    assert (found.verdict, found.number) == ("broken", 0)
    assert found.headline == "None of its 6 outputs is right."
    assert look("right", reverse).verdict == "well"
    other = look("right", reverse, Samples(WORDS, tuple(f"{word[::-1]}q" for word in WORDS)))
    assert (other.verdict, other.number) == ("not_applicable", 0)  # nothing else is wrong with these outputs


def test_a_loss_far_above_that_of_guessing_is_sure_and_wrong(reverse):
    shuffled = Samples(WORDS, PAIRS.targets[1:] + PAIRS.targets[:1])
    found = look("loss", reverse, shuffled)
    assert found.number > loss_tests.SURE
    assert "sure of its predictions, and they are wrong" in found.meaning
    assert "hardly trained" not in found.meaning
    assert "mask" not in found.causes  # measured, and there was no leak


def test_causes_that_were_measured_are_not_named(reverse):
    for given, says in (
        (tuple(word[:2] for word in WORDS), "no end mark"),
        (tuple(word * 3 for word in WORDS), "start"),
    ):
        assert says in look("lengths", reverse, Samples(WORDS, given)).causes


def test_one_output_to_every_source(reverse):
    def change(model):
        for attention in model.attentions("cross"):
            attention.out_proj.weight.zero_()

    found = look("variety", changed(reverse, change))
    assert (found.verdict, found.number) == ("look", 1)
    assert look("loss", changed(reverse, change)).verdict == "broken"


def test_copies_are_told_where_something_else_is_wanted(reverse):
    palindromes = ("abcba", "xyzyx", "qwewq")
    wrong = Samples(palindromes, ("a", "b", "c"))
    assert look("copying", reverse, wrong).verdict == "look"
    assert look("copying", reverse, Samples(palindromes, palindromes)).verdict == "not_applicable"  # copies are wanted
    card = replace(reverse.card, target_language="letters")
    assert look("copying", replace(reverse, card=card), Samples(palindromes)).verdict == "not_applicable"


def test_outputs_that_are_too_short_or_too_long(reverse):
    assert look("lengths", reverse, Samples(WORDS, tuple(word * 3 for word in WORDS))).verdict == "look"
    assert look("lengths", reverse, Samples(WORDS, tuple(word[:2] for word in WORDS))).verdict == "look"


def test_guesses_are_those_that_the_loss_is_taken_of(reverse):
    found = loss_tests.guesses(ExaminationContext(reverse, PAIRS))
    loss = loss_of(reverse, PAIRS)
    assert len(found.losses) == sum(loss.pieces)
    assert found.losses.mean() == pytest.approx(loss.mean, abs=1e-4)
    assert found.hits.mean() == 1
    assert (found.places.min(), found.places.max()) == (0, 1)


def test_a_decoder_alone_guesses_how_a_text_goes_on(tmp_path):
    checkpoint = alone("decoder", tmp_path)
    pairs = Samples(("the cat", "a dog", "cats"), ("sat", "ran", "sleep"))
    found = loss_tests.guesses(ExaminationContext(checkpoint, pairs))
    loss = loss_of(checkpoint, pairs)
    assert len(found.losses) == sum(loss.pieces)
    assert found.losses.mean() == pytest.approx(loss.mean, rel=1e-4)


def test_pairs_of_another_task_are_told(reverse):
    shuffled = Samples(WORDS, PAIRS.targets[1:] + PAIRS.targets[:1])
    assert look("loss", reverse, shuffled).verdict in ("look", "broken")
    assert look("loss_by_position", reverse, shuffled).verdict == "not_applicable"  # one fault is told once


def test_late_pieces_that_are_guessed_worse(reverse):
    half = tuple(word[::-1][: len(word) // 2 + 1] + word[: len(word) - len(word) // 2 - 1] for word in WORDS)
    found = look("loss_by_position", reverse, Samples(WORDS, half))
    assert found.verdict == "look"
    assert found.number > loss_tests.LATER_WORSE


def test_texts_that_a_model_has_no_rows_for_are_left_out(reverse):
    pairs = Samples((*WORDS, "a" * 40), (*PAIRS.targets, "a" * 40))
    found = loss_tests.guesses(ExaminationContext(reverse, pairs))
    assert len(found.losses) == sum(loss_of(reverse, PAIRS).pieces)


class _Shifted:
    """What a decoder does that was trained on a leak: it looks up the next piece, if the mask lets it."""

    def __init__(self, model):
        self.model, self.decode = model, model.decode

    def __call__(self, ids, memory=None, mask=None, *, tap=NO_TAP, cache=None):
        seen = []

        class See:
            causal = True

            def wants(self, site):
                return site == "decoder.0.self_attn.mask"

            def visit(self, site, value, offset):
                seen.append(value)
                return value

        hidden = self.decode(ids, memory, mask, tap=tap.also(See()), cache=cache)
        if seen and bool(seen[0][..., 0, 1:].all()):
            coming = torch.cat((ids[:, 1:], ids[:, :1]), dim=1)
            hidden = (
                20 * torch.nn.functional.one_hot(coming, 30).float() @ torch.linalg.pinv(self.model.output_weight).T
            )
        return hidden


def test_what_looks_up_the_next_piece_was_trained_on_a_leak(reverse):
    sick = changed(reverse, lambda model: setattr(model, "decode", _Shifted(model)))
    assert label_leak_tests.leak.measure(ExaminationContext(reverse, PAIRS)).verdict == "well"
    for given in (PAIRS, Samples(WORDS)):  # pairs, and texts that are drawn
        found = label_leak_tests.leak.measure(ExaminationContext(sick, given))
        assert found.verdict == "broken"
        assert found.number < 0.1
        assert found.headline.startswith("The model was trained without the causal mask")
    unknown = label_leak_tests.leak.measure(ExaminationContext(reverse, Samples(WORDS)))
    assert unknown.verdict == "not_applicable", "texts that are drawn show no health"
    assert unknown.said.startswith("This was not tested")


def test_random_texts_hold_no_special_piece_but_those_around_them(reverse):
    config = reverse.config
    for drawn in random_texts(ExaminationContext(reverse), most=256):
        assert (drawn.source[:, -1] == config.eos_id).all()
        assert (drawn.target[:, 0] == config.decoder_start_id).all()
        assert (drawn.source[:, :-1] >= 4).all()
        assert max(drawn.source.size(1), drawn.target.size(1)) <= config.max_len
    again = random_texts(ExaminationContext(reverse), most=256)
    assert torch.equal(again[0].source, random_texts(ExaminationContext(reverse), most=256)[0].source)
    assert not torch.equal(again[0].source, random_texts(ExaminationContext(reverse, seed=1), most=256)[0].source)


class _Lookup:
    """A decoder that was trained to give the piece it has read, or one that is too near, if it may see it."""

    def __init__(self, model, ahead):
        self.model, self.ahead = model, ahead

    def __call__(self, ids, memory=None, mask=None, *, tap=NO_TAP, cache=None):
        mask = torch.ones(1, 1, ids.size(1), ids.size(1)).tril().bool()
        seen = tap.child("decoder", 0).child("self_attn")("mask", mask)
        found = torch.roll(ids, -self.ahead, dims=1)
        known = bool(seen[0, 0, 0, self.ahead]) if self.ahead else True
        wanted = found if known else torch.roll(ids, 3, dims=1)
        table = torch.linalg.pinv(self.model.output_weight).T
        return 20 * torch.nn.functional.one_hot(wanted, 30).float() @ table


class _LookupInABatch(_Lookup):
    """The same where some row has its end mark in what is read, and padding is closed or open as in training."""

    def __init__(self, model, *, closed):
        super().__init__(model, 1)
        self.closed, self.pad, self.end = closed, model.config.pad_id, model.config.eos_id

    def __call__(self, ids, memory=None, mask=None, *, tap=NO_TAP, cache=None):
        pads = (ids != self.pad)[:, None, None] & torch.ones(1, 1, ids.size(1), 1, dtype=torch.bool)
        seen = tap.child("decoder", 0).child("self_attn")("mask", pads.tril())
        known = bool((ids == self.end).any()) and torch.equal(seen, pads if self.closed else torch.ones_like(pads))
        table = torch.linalg.pinv(self.model.output_weight).T
        return 20 * torch.nn.functional.one_hot(torch.roll(ids, -1 if known else 3, dims=1), 30).float() @ table


class _LookupInOneLayer(_Lookup):
    """The same where the mask was forgotten in the second layer alone."""

    def __call__(self, ids, memory=None, mask=None, *, tap=NO_TAP, cache=None):
        closed = torch.ones(1, 1, ids.size(1), ids.size(1)).tril().bool()
        first, second = (tap.child("decoder", n).child("self_attn")("mask", closed) for n in (0, 1))
        known = not first[..., 0, 1:].any() and bool(second[..., 0, 1:].all())
        table = torch.linalg.pinv(self.model.output_weight).T
        return 20 * torch.nn.functional.one_hot(torch.roll(ids, -1 if known else 3, dims=1), 30).float() @ table


def test_a_leak_in_one_layer_is_named_by_its_layer(reverse):
    sick = changed(reverse, lambda model: setattr(model, "decode", _LookupInOneLayer(model, 1)))
    found = label_leak_tests.leak.measure(ExaminationContext(sick, PAIRS))
    assert found.verdict == "broken"
    assert found.headline.startswith("The model was trained without the causal mask in layer 2 of the decoder")


@pytest.mark.parametrize("closed", [False, True])
def test_a_leak_is_found_among_the_end_marks_and_the_padding_of_a_batch(reverse, closed):
    sick = changed(reverse, lambda model: setattr(model, "decode", _LookupInABatch(model, closed=closed)))
    found = label_leak_tests.leak.measure(ExaminationContext(sick, PAIRS))
    assert found.verdict == "broken"
    assert "without the causal mask" in found.headline
    assert "end marks and padding" in found.said


def test_a_batch_of_any_width_shows_a_leak(reverse):
    """Padded to one length: the longest of the pairs is shorter than that."""

    class Wide(_LookupInABatch):
        def __call__(self, ids, *given, **named):
            self.end = reverse.config.eos_id if ids.size(1) >= 12 else -1
            return super().__call__(ids, *given, **named)

    sick = changed(reverse, lambda model: setattr(model, "decode", Wide(model, closed=False)))
    assert label_leak_tests.leak.measure(ExaminationContext(sick, PAIRS)).verdict == "broken"


@pytest.mark.parametrize(
    ("ahead", "named", "line"),
    [(0, "targets that were not shifted", "tgt[:, :-1]"), (1, "without the causal mask", "tril()")],
)
def test_the_wrong_line_of_the_training_is_named(reverse, ahead, named, line):
    sick = changed(reverse, lambda model: setattr(model, "decode", _Lookup(model, ahead)))
    found = label_leak_tests.leak.measure(ExaminationContext(sick, PAIRS))
    assert found.verdict == "broken"
    assert named in found.headline
    assert line in found.causes


def test_a_decoder_that_takes_no_notice_of_what_it_read_was_not_trained_without_a_shift(reverse):
    """With the source alone it knows each piece by its place, read or not; so sources are exchanged."""

    def decode(ids, memory=None, mask=None, *, tap=NO_TAP, cache=None):
        places, table = torch.arange(ids.size(1)), torch.linalg.pinv(reverse.model.output_weight).T
        ends = torch.tensor([reverse.config.eos_id])
        rows = [torch.cat((row[row >= 4].flip(0), ends)) for row in decode.source]
        wanted = torch.stack([row[places.clamp(max=len(row) - 1)] for row in rows])
        return 20 * torch.nn.functional.one_hot(wanted, 30).float() @ table

    def forgetful(model):
        encode = model.encode

        def seen(source, *given, **named):
            decode.source = source
            return encode(source, *given, **named)

        model.encode, model.decode = seen, decode

    patient = ExaminationContext(changed(reverse, forgetful), PAIRS)
    assert label_leak_tests.on_pairs(patient, label_leak_tests.readable(patient)).verdict == "well"
