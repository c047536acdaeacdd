"""What a page shows of a trace is its own: labels, candidates, branches and guesses, and nothing to be guessed."""

from dataclasses import replace

import numpy as np
import pytest

from glassformer.runs.map_axes import sides
from glassformer.runs.open_run import stepper_run
from glassformer.runs.viewed_run import HIDDEN, N_CANDIDATES, VisibleTrace, branch_at, fit_view, is_yours, own_choice
from glassformer.state.view import View
from glassformer.step.step_panels import N_OFFERS, find_piece, first_piece, judge, pieces_like
from glassformer.step.step_pictures import candidate_list
from transformer.runs import decoding
from transformer.runs.query import Beam, Sampling
from transformer.text.tokenizer import SPACE_MARK


@pytest.fixture(scope="module")
def trace(reverse):
    return reverse.run("glass")


def visible(trace, *, revealed=True, **view):
    return VisibleTrace(trace, View(**view), revealed)


ROWS = ["<s> → s", "s → s", "s → a", "a → l", "l → g", "g → </s>"]
SOURCE = ["g", "l", "a", "s", "s", "</s>"]


def test_guess_mode_hides_what_comes_later_and_the_current_piece_until_it_is_revealed(trace):
    assert visible(trace).row_labels() == ROWS
    found = [sides(visible(trace, step=2), kind) for kind in ("encoder", "decoder", "cross")]
    read = ["<s>", "s", "s", "a", "l", "g"]
    assert [(one.queries, one.keys) for one in found] == [(SOURCE, SOURCE), (ROWS, read), (ROWS, SOURCE)]
    assert [one.current for one in found] == [None, 2, 2]
    seen = visible(trace, guess=True, step=2)
    assert (seen.n_rows, seen.row_labels()) == (3, ROWS[:3])
    covered = visible(trace, guess=True, step=2, revealed=False)
    assert covered.covered
    assert covered.row_labels() == [*ROWS[:2], f"s → {HIDDEN}"]
    assert sides(covered, "decoder").queries == [*ROWS[:2], f"s → {HIDDEN}"]
    assert (sides(covered, "decoder").keys, sides(covered, "cross").keys) == (["<s>", "s", "s"], SOURCE)
    open_ = visible(trace, step=2, revealed=False)
    assert (open_.covered, len(open_.row_labels())) == (False, trace.n_steps)


@pytest.mark.parametrize(
    ("asked", "shown", "note"),
    [
        (View(step=5, layer=1, head=3, guess=True), View(step=5, layer=1, head=3, guess=True), ""),
        (View(head=1), View(), ""),  # a head of no layer
        (View(step=9998), View(step=5), "Step 9999 was requested, but this output ends at step 6, which is shown"),
        (View(layer=2, head=1), View(), "Layer 3 was requested, but the last layer of this model is layer 2."),
        (View(layer=1, head=4), View(layer=1), "Head 5 was requested, but the last head of this model is head 4."),
    ],
)
def test_a_view_that_does_not_fit_is_moved_and_said(trace, asked, shown, note):
    view, notes = fit_view(asked, trace)
    assert view == shown
    assert len(notes) == bool(note)
    assert "".join(notes).startswith(note)


def test_the_stepper_gets_every_step_what_is_looked_at_and_marks_of_odd_pieces(trace, reverse, tiny):
    run = stepper_run(visible(trace, layer=1, head=1), reverse, "id")
    assert [(chip.piece, chip.special) for chip in run.source] == [(piece, piece == "</s>") for piece in SOURCE]
    written = zip(["s", "s", "a", "l", "g", "</s>"], trace.tgt_ids, strict=True)
    assert [(chip.piece, chip.id, chip.forced) for chip in run.target] == [(*one, False) for one in written]
    assert (run.texts, run.cut) == (("s", "ss", "ssa", "ssal", "ssalg", "ssalg"), False)
    assert all(0.5 < chip.probability <= 1 for chip in run.target)
    np.testing.assert_allclose(run.shading, trace.cross[1, 1])
    for view, mean in (({}, trace.cross.mean(axis=(0, 1))), ({"layer": 1}, trace.cross[1].mean(axis=0))):
        np.testing.assert_allclose(stepper_run(visible(trace, **view), reverse, "id").shading, mean, rtol=1e-6)
    run = stepper_run(visible(tiny.run("mi 😀 ba")), tiny, "id")
    marked = {chip.piece: (chip.unknown, chip.special) for chip in run.source}
    assert (marked["😀"], marked["</s>"]) == ((True, False), (False, True))
    a = reverse.tgt_tokenizer.id_of("a")
    run = stepper_run(visible(reverse.run(reverse.query("glass", forced=(a, a), max_new=3))), reverse, "id")
    assert [chip.forced for chip in run.target] == [True, True, False]
    assert (run.stop_reason, run.cut) == ("The output was cut off at the limit of 3 tokens.", True)


def test_what_the_model_wrote_before_a_forced_piece_is_not_the_readers_and_it_has_its_true_rank(reverse, trace):
    own = reverse.run("glass").tgt_ids
    other = next(i for i in range(4, 20) if i not in own)
    again = reverse.run(reverse.query("glass", forced=(*own[:2], other, other)))
    assert [is_yours(again, t) for t in range(5)] == [False, False, True, True, False]
    chosen = reverse.run(reverse.query("glass", forced=own[:3]))  # as the model would have it
    assert [is_yours(chosen, t) for t in range(4)] == [False, False, True, False]
    last = int(np.argsort(-trace.log_probs[0], kind="stable")[-1])
    listed = candidate_list(visible(reverse.run(reverse.query("glass", forced=(last,)))))
    assert len(listed.pieces) == N_CANDIDATES + 1
    assert (listed.chosen, listed.ids[-1], listed.ranks[-1]) == (N_CANDIDATES, last, len(trace.vocabulary))
    assert listed.how_chosen == "forced by you"


@pytest.mark.parametrize(
    "how", [{"temperature": 3.0}, {"temperature": 0.5, "top_k": 4}, {"temperature": 5.0, "top_p": 0.8}]
)
def test_what_is_shown_is_the_very_distribution_that_was_drawn_from(reverse, monkeypatch, how):
    drawn_from, draw = [], decoding.race

    def race(row, generator):
        drawn_from.append(row.clone().numpy())
        return draw(row, generator)

    monkeypatch.setattr(decoding, "race", race)
    run = reverse.run(reverse.query("glass", decoding=Sampling(**how, seed=1)))
    assert len(drawn_from) >= run.n_steps
    for step, row in enumerate(drawn_from[: run.n_steps]):
        listed = candidate_list(visible(run, step=step))
        np.testing.assert_allclose(listed.drawn_from, row[listed.ids], rtol=1e-4, atol=1e-7)
        assert listed.ids[listed.chosen] == run.tgt_ids[step]
        assert listed.drawn_from[listed.chosen] > 0
        assert listed.how_chosen == "drawn at random"
        unlisted = np.delete(row, listed.ids)
        assert listed.others.count == len(unlisted)
        assert listed.others.drawn_from == pytest.approx(unlisted.sum(), abs=2e-6)


def test_a_branch_keeps_what_came_before_and_the_own_choice_is_the_same_request_with_nothing_forced(trace, reverse):
    assert [branch_at(trace.tgt_ids, step, 99) for step in (0, 2)] == [(99,), (*trace.tgt_ids[:2], 99)]
    query = reverse.query("glass", decoding=Beam(size=3), max_new=7, forced=(4, 5), hypothesis=2)
    assert own_choice(query) == replace(query, forced=(), hypothesis=0)


def test_a_piece_is_found_as_typed_or_as_the_beginning_of_a_word_whichever_is_likelier(reverse, tiny):
    even = np.zeros(max(reverse.tgt_tokenizer.size, tiny.tgt_tokenizer.size))
    assert find_piece(" a ", reverse.tgt_tokenizer, even) == reverse.tgt_tokenizer.id_of("a")
    assert find_piece("</s>", reverse.tgt_tokenizer, even) == reverse.config.eos_id
    pieces = tiny.tgt_tokenizer.pieces
    word = next(piece for piece in pieces if piece.startswith(SPACE_MARK) and piece[1:] not in ("", *pieces))
    assert find_piece(word[1:], tiny.tgt_tokenizer, even) == tiny.tgt_tokenizer.id_of(word)
    inside = next(piece for piece in pieces if SPACE_MARK + piece in pieces)
    for meant in (inside, SPACE_MARK + inside):
        likely = np.full(tiny.tgt_tokenizer.size, -9.0)
        likely[pieces.index(meant)] = -0.1
        assert find_piece(inside, tiny.tgt_tokenizer, likely) == pieces.index(meant)
    for text in ("", "   ", "no such token", "😀", "a\0", "\ud800"):
        assert find_piece(text, reverse.tgt_tokenizer, even) is None, text
    assert first_piece("   ", tiny.tgt_tokenizer) is first_piece("😀", tiny.tgt_tokenizer) is None


@pytest.mark.parametrize(
    ("text", "right", "said"),
    [
        ("a", True, "Right. The model gave “a”"),
        ("z", False, "The output has a different token at this step. The model gave “z”"),
        (" <img> ", None, "“<img>” does not begin with any token of this model's vocabulary."),
        ("ab", True, "“ab” splits into several tokens, so only the first one, “a”, counts."),
        ("ba", False, "“ba” splits into several tokens, so only the first one, “b”, counts."),
    ],
)
def test_a_guess_is_judged_by_its_first_piece(trace, reverse, text, right, said):
    found = judge(text, visible(trace, step=2), reverse.tgt_tokenizer)
    assert found.right is right
    assert found.text.startswith(said)


def test_a_text_offers_its_first_piece_and_the_likeliest_that_begin_with_it(tiny):
    tokenizer = tiny.tgt_tokenizer
    words = [piece.strip(SPACE_MARK) for i, piece in enumerate(tokenizer.pieces) if not tokenizer.is_special(i)]
    text = max(words, key=len)[:-1]
    log_probs = np.linspace(-1, -9, tokenizer.size)
    found = pieces_like(text, tokenizer, log_probs)
    assert found[0] == first_piece(text, tokenizer)
    assert all(tokenizer.piece(i).strip(SPACE_MARK).casefold().startswith(text.casefold()) for i in found[1:])
    assert [*found[1:]] == sorted(found[1:], key=lambda i: -log_probs[i])
    assert len(found) <= N_OFFERS
    assert pieces_like(SPACE_MARK, tokenizer, log_probs) == []
