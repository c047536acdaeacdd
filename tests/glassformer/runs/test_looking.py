"""What the Step page shows of a trace: labels, hiding, candidates, branches, guesses."""

from dataclasses import replace

import numpy as np
import pytest

from glassformer.runs.open_run import stepper_run
from glassformer.runs.visible_trace import HIDDEN, N_CANDIDATES, VisibleTrace, branch_at, fit_view, is_yours, own_choice
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


# ---------------------------------------------------------------- labels


def test_labels_say_what_a_row_reads_and_what_it_predicts(trace):
    assert visible(trace).row_labels() == ["<s> → s", "s → s", "s → a", "a → l", "l → g", "g → </s>"]


def test_guess_mode_hides_what_comes_later(trace):
    seen = visible(trace, guess=True, step=2)
    assert seen.n_rows == 3
    assert seen.row_labels() == ["<s> → s", "s → s", "s → a"]


def test_guess_mode_hides_the_current_piece_until_it_is_revealed(trace):
    covered = visible(trace, guess=True, step=2, revealed=False)
    assert covered.covered
    assert covered.row_labels() == ["<s> → s", "s → s", f"s → {HIDDEN}"]


def test_nothing_is_hidden_out_of_guess_mode(trace):
    seen = visible(trace, step=2, revealed=False)
    assert not seen.covered
    assert len(seen.row_labels()) == trace.n_steps


def test_a_mean_says_that_it_is_one(trace):
    assert visible(trace).whose() == "mean of all 2 layers × 4 heads"
    assert visible(trace, layer=1).whose() == "layer 2, mean of its 4 heads"
    assert visible(trace, layer=1, head=2).whose() == "layer 2, head 3"


def test_what_is_called_a_mean_is_one(trace):
    maps = trace.cross
    np.testing.assert_allclose(visible(trace).weights(), maps.mean(axis=(0, 1)), rtol=1e-6)
    np.testing.assert_allclose(visible(trace, layer=1).weights(), maps[1].mean(axis=0), rtol=1e-6)
    np.testing.assert_array_equal(visible(trace, layer=1, head=2).weights(), maps[1, 2])
    np.testing.assert_allclose(visible(trace).weights().sum(axis=1), 1.0, rtol=1e-5)


# ---------------------------------------------------------------- a view that does not fit


def test_a_view_that_fits_is_left_alone(trace):
    view = View(step=5, layer=1, head=3, guess=True)
    assert fit_view(view, trace) == (view, ())


@pytest.mark.parametrize(
    ("asked", "shown", "note"),
    [
        (
            View(step=9998),
            View(step=5),
            "Step 9999 was requested, but this output ends at step 6, which is shown instead.",
        ),
        (View(layer=2, head=1), View(), "Layer 3 was requested, but the last layer of this model is layer 2."),
        (View(layer=1, head=4), View(layer=1), "Head 5 was requested, but the last head of this model is head 4."),
    ],
)
def test_a_view_that_does_not_fit_is_moved_and_said(trace, asked, shown, note):
    view, notes = fit_view(asked, trace)
    assert view == shown
    assert len(notes) == 1
    assert notes[0].startswith(note)


def test_a_head_of_no_layer_is_dropped(trace):
    assert fit_view(View(head=1), trace) == (View(), ())


# ---------------------------------------------------------------- the run for the stepper


def test_the_stepper_gets_every_step(trace, reverse):
    run = stepper_run(visible(trace), reverse, "id")
    assert [chip.piece for chip in run.source] == ["g", "l", "a", "s", "s", "</s>"]
    assert [chip.piece for chip in run.target] == ["s", "s", "a", "l", "g", "</s>"]
    assert [chip.id for chip in run.target] == list(trace.tgt_ids)
    assert run.texts == ("s", "ss", "ssa", "ssal", "ssalg", "ssalg")
    assert run.start_piece == "<s>"
    assert [chip.special for chip in run.source] == [False] * 5 + [True]
    assert not any(chip.forced for chip in run.target)
    assert all(0.5 < chip.probability <= 1 for chip in run.target)
    assert run.stop_reason == "The model ended the sentence."
    assert not run.cut


def test_the_shading_is_what_is_looked_at(trace, reverse):
    run = stepper_run(visible(trace, layer=1, head=1), reverse, "id")
    np.testing.assert_allclose(run.shading, trace.cross[1, 1])
    assert run.shading_label == "Source shaded by cross-attention, layer 2, head 2"


def test_unknown_and_special_pieces_are_told_apart(tiny):
    run = stepper_run(visible(tiny.run("mi 😀 ba")), tiny, "id")
    marked = {chip.piece: (chip.unknown, chip.special) for chip in run.source}
    assert marked["😀"] == (True, False)
    assert marked["</s>"] == (False, True)


def test_forced_pieces_are_marked(trace, reverse):
    a = reverse.tgt_tokenizer.id_of("a")
    run = stepper_run(visible(reverse.run(reverse.query("glass", forced=(a, a)))), reverse, "id")
    assert [chip.forced for chip in run.target][:4] == [True, True, False, False]


def test_a_cut_output_says_so(reverse):
    cut = reverse.run(reverse.query("glass", max_new=3))
    shown = stepper_run(visible(cut), reverse, "id")
    assert shown.stop_reason == "The output was cut off at the limit of 3 pieces."
    assert shown.cut


# ---------------------------------------------------------------- candidates


def test_the_candidates_come_best_first_with_their_ranks(trace):
    listed = candidate_list(visible(trace, step=2))
    assert listed.pieces[0] == "a"
    assert listed.chosen == 0
    assert listed.ranks == list(range(1, N_CANDIDATES + 1))
    assert listed.probabilities == sorted(listed.probabilities, reverse=True)
    assert (listed.drawn_from, listed.others, listed.how_chosen) == (None, None, "chosen")


def test_what_the_model_wrote_before_a_forced_piece_is_not_the_readers(reverse):
    own = reverse.run("glass").tgt_ids
    other = next(i for i in range(4, 20) if i not in own)
    branch = reverse.run(reverse.query("glass", forced=(*own[:2], other)))
    assert [is_yours(branch, t) for t in range(4)] == [False, False, True, False]
    again = reverse.run(reverse.query("glass", forced=(*own[:2], other, other)))
    assert [is_yours(again, t) for t in range(5)] == [False, False, True, True, False]


def test_a_forced_piece_is_listed_with_its_true_rank(reverse, trace):
    order = np.argsort(-trace.log_probs[0], kind="stable")
    last = int(order[-1])
    listed = candidate_list(visible(reverse.run(reverse.query("glass", forced=(last,)))))
    assert len(listed.pieces) == N_CANDIDATES + 1
    assert (listed.chosen, listed.ids[-1], listed.ranks[-1]) == (N_CANDIDATES, last, len(trace.vocabulary))
    assert listed.how_chosen == "forced by you"


def test_sampling_says_what_could_be_drawn(reverse):
    query = reverse.query("glass", decoding=Sampling(top_k=3, seed=1))
    listed = candidate_list(visible(reverse.run(query)))
    assert listed.drawn_from is not None
    assert min(listed.drawn_from[:3]) > 0
    assert listed.drawn_from[3:] == [0.0] * (N_CANDIDATES - 3)
    assert listed.how_chosen == "drawn at random"


@pytest.mark.parametrize(
    "how", [{"temperature": 3.0}, {"temperature": 0.5, "top_k": 4}, {"temperature": 5.0, "top_p": 0.8}, {}]
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
        unlisted = np.delete(row, listed.ids)
        assert listed.others.count == len(unlisted)
        assert listed.others.drawn_from == pytest.approx(unlisted.sum(), abs=2e-6)


# ---------------------------------------------------------------- branches


def test_a_branch_keeps_what_came_before(trace):
    assert branch_at(trace.tgt_ids, 2, 99) == (*trace.tgt_ids[:2], 99)
    assert branch_at(trace.tgt_ids, 0, 99) == (99,)


def test_a_branch_of_a_branch_keeps_the_first_one(reverse):
    z = reverse.tgt_tokenizer.id_of("z")
    first = reverse.run(reverse.query("glass", forced=(z,)))
    assert branch_at(first.tgt_ids, 2, 5)[0] == z


def test_the_own_choice_is_the_same_request_with_nothing_forced(reverse):
    query = reverse.query("glass", decoding=Beam(size=3), max_new=7, forced=(4, 5), hypothesis=2)
    assert own_choice(query) == replace(query, forced=(), hypothesis=0)


# ---------------------------------------------------------------- guesses


def test_a_piece_is_found_as_typed_or_as_the_beginning_of_a_word(reverse, tiny):
    even = np.zeros(max(reverse.tgt_tokenizer.size, tiny.tgt_tokenizer.size))
    assert find_piece(" a ", reverse.tgt_tokenizer, even) == reverse.tgt_tokenizer.id_of("a")
    pieces = tiny.tgt_tokenizer.pieces
    word = next(piece for piece in pieces if piece.startswith(SPACE_MARK) and piece[1:] not in ("", *pieces))
    assert find_piece(word[1:], tiny.tgt_tokenizer, even) == tiny.tgt_tokenizer.id_of(word)
    assert find_piece(word, tiny.tgt_tokenizer, even) == tiny.tgt_tokenizer.id_of(word)
    assert find_piece("</s>", reverse.tgt_tokenizer, even) == reverse.config.eos_id


def test_a_text_that_begins_and_goes_on_words_is_the_likelier_of_the_two(tiny):
    pieces = tiny.tgt_tokenizer.pieces
    inside = next(piece for piece in pieces if SPACE_MARK + piece in pieces)
    for meant in (inside, SPACE_MARK + inside):
        likely = np.full(tiny.tgt_tokenizer.size, -9.0)
        likely[pieces.index(meant)] = -0.1
        assert find_piece(inside, tiny.tgt_tokenizer, likely) == pieces.index(meant)


@pytest.mark.parametrize("text", ["", "   ", "no such piece", "😀", "a\0", "\ud800"])
def test_what_is_no_piece_is_not_found(text, reverse):
    assert find_piece(text, reverse.tgt_tokenizer, np.zeros(reverse.tgt_tokenizer.size)) is None


def test_a_guess_is_judged(trace, reverse):
    right, wrong, nowhere = (
        judge(text, visible(trace, step=2), reverse.tgt_tokenizer) for text in ("a", "z", " <img> ")
    )
    assert (right.right, wrong.right, nowhere.right) == (True, False, None)
    assert right.text.startswith("Right. The model gave “a”")
    assert wrong.text.startswith("The output has a different piece at this step. The model gave “z”")
    assert "rank " in wrong.text
    assert nowhere.text.startswith("“<img>” does not begin with any piece of this model's vocabulary.")


def test_several_pieces_are_judged_by_the_first(trace, reverse):
    for text, right in (("ab", True), ("ba", False)):
        found = judge(text, visible(trace, step=2), reverse.tgt_tokenizer)
        assert found.right is right
        assert found.text.startswith(
            f"“{text}” splits into several pieces, so only the first one, “{text[0]}”, counts."
        )


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


def test_the_first_piece_is_none_where_the_vocabulary_does_not_know_it(tiny, reverse):
    for tokenizer in (tiny.tgt_tokenizer, reverse.tgt_tokenizer):
        assert first_piece("😀", tokenizer) is None
        assert first_piece("  ", tokenizer) is None
