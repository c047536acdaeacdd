"""What is asked about positions has the answer of rotations in numpy, and of a source permuted by hand."""

import numpy as np
import pytest
import torch

from glassformer.extensions.lessons.library.subjects import positions_questions
from tests.extensions.lessons.library.posed import approx, case, picked, told
from transformer.errors import QueryError
from transformer.model.taps import NO_TAP, Recorder, Replacer, tap_of
from transformer.runs.interventions import parse

UNPLACED = tap_of(Replacer({"encoder.embedding.positions": torch.zeros_like}, causal=True))


@torch.inference_mode()
def encoded(run, ids, tap=NO_TAP):
    """The encoder's last vectors, [token, d_model]."""
    return run.checkpoint.model.encode(torch.tensor([ids]), tap=tap)[0].double().numpy()


def typical(vectors):
    """Mean over tokens of the root mean square."""
    return float(np.sqrt(np.mean(np.asarray(vectors, dtype=np.float64) ** 2, axis=-1)).mean())


def test_sizes_are_those_of_the_tables(run):
    run, ids = picked(positions_questions.added_positions, run), list(run.trace.src_ids)
    recorder, root = Recorder(["encoder.embedding.positions"]), run.checkpoint.config.d_model**0.5
    encoded(run, ids, tap_of(recorder))
    [positions] = recorder.values.values()
    position = typical(positions.reshape(-1, run.checkpoint.config.d_model)[: len(ids)])
    raw = typical(run.checkpoint.model.get_parameter("src_table").detach()[ids])
    times, near = raw * root / position, {"token": raw * root, "raw": raw, "position": position}
    answer, values = positions_questions.embedding_and_position(run), {key: approx(near[key], rel=1e-5) for key in near}
    told(answer, "token_much" if times >= 2 else "token" if times > 1.25 else "equal", **values)
    assert answer.variant == "scaled"


def test_without_positions_a_shuffle_permutes_the_encoder_and_leaves_the_logits(run):
    run, ids = picked(positions_questions.shuffled, run), list(run.trace.src_ids)
    (shuffle,) = parse(run.picked["shuffle"])
    moved = list(shuffle.edited(tuple(ids), run.checkpoint.config))
    assert moved != ids
    assert sorted(moved) == sorted(ids)
    before, after = (dict(zip(some, encoded(run, some, UNPLACED), strict=True)) for some in (ids, moved))
    assert all(after[piece] == approx(row, abs=1e-4) for piece, row in before.items())
    answer = positions_questions.bag_of_words(run)
    assert (answer.right, answer.values["moved"] < 1e-3) == ("rounding", True)


@pytest.mark.parametrize("word", ["lantern", "quiz", "house"])
def test_a_shuffled_word_is_that_word_typed(word):
    run = picked(positions_questions.shuffled, case("reverse", word))
    (shuffle,) = parse(run.picked["shuffle"])
    ids, tokenizer = shuffle.edited(run.trace.src_ids, run.checkpoint.config), run.checkpoint.src_tokenizer
    typed = tokenizer.decode([i for i in ids if not tokenizer.is_special(i)])
    other = run.checkpoint.run(typed)
    assert (other.src_ids, other.output_text) == (ids, typed[::-1])
    answer = positions_questions.shuffled_source(run)
    told(answer, "order", after=other.output_text)


def test_one_piece_at_two_places_is_one_vector_without_positions(run):
    run, ids = picked(positions_questions.twice, run), list(run.trace.src_ids)
    a, b = (run.picked[which] - 1 for which in "ab")
    assert ids[a] != ids[b]
    ids[b] = ids[a]
    without, placed = encoded(run, ids, UNPLACED), encoded(run, ids)
    assert without[a] == approx(without[b], abs=1e-4)
    cosine = float(placed[a] @ placed[b] / np.linalg.norm(placed[a]) / np.linalg.norm(placed[b]))
    answer = positions_questions.same_piece_twice(run)
    told(answer, "equal", cosine=approx(cosine, abs=1e-5))
    assert answer.values["apart"] < 1e-4
    assert cosine < 0.999  # positions tell them apart


def test_a_network_that_mixes_tokens_would_be_found_out(monkeypatch):
    run = picked(positions_questions.two_tokens, case("reverse", "lantern"))
    ffn = type(run.checkpoint.model.encoder.layers[0].ffn)
    plain = ffn.forward
    monkeypatch.setattr(ffn, "forward", lambda self, x, *rest, **more: plain(self, x + x.cumsum(1), *rest, **more))
    assert positions_questions.swapped_before_ffn(run).right == "all"


def angle(dim, d_model):
    return 10_000.0 ** -((dim - dim % 2) / d_model)


def table_of(run):
    table = run.checkpoint.model.encoder.embedding.positions.table.detach().numpy().astype(np.float64)
    return table, run.checkpoint.config.positions == "sinusoidal"


@pytest.mark.parametrize("run", ["zh-en", "en-fr"], indirect=True)
def test_a_pair_turns_by_its_angle_and_the_larger_one_faster(run):
    table, sinusoidal = table_of(run)
    d = table.shape[1]
    assert sinusoidal
    posed = picked(positions_questions.two_clocks, run)
    pairs = fast, slow = posed.picked["fast"], posed.picked["slow"]
    assert angle(2 * fast, d) > angle(2 * slow, d)
    answer = positions_questions.faster_dimension(posed)
    turns = [approx(2 * np.pi / angle(2 * pair, d), rel=1e-4) for pair in pairs]
    told(answer, "fast", turn_fast=turns[0], turn_slow=turns[1])
    assert posed.picked["dims"] == f"{2 * fast + 1}.{2 * slow + 1}", "an address counts from 1"
    for pair, option in zip(pairs, answer.options[:2], strict=True):
        assert f"dimensions {2 * pair} and {2 * pair + 1}" in option.label
    posed = picked(positions_questions.one_clock, run)
    sine = posed.picked["sine"]
    answer, turn = positions_questions.turn_length(posed), 2 * np.pi / angle(sine, d)
    told(answer, "turn", turn=approx(turn, rel=1e-4))
    assert [option.label for option in answer.options if option.word == "turn"] == [str(round(turn))]
    away = np.linalg.norm(table[1:60, sine : sine + 2] - table[0, sine : sine + 2], axis=1)
    assert abs(1 + away.argmin() - turn) % turn < 1 or abs(1 + away.argmin() - 2 * turn) < 1
    assert posed.picked["radians"] == approx(angle(sine, d), rel=1e-4)


def test_equal_distances_are_alike_in_a_formula_only(run):
    run = picked(positions_questions.two_pairs, run)
    table, sinusoidal = table_of(run)
    p, q, p2, q2 = (run.picked[key] for key in ("p", "q", "p2", "q2"))
    assert q - p == q2 - p2
    first, second = table[p] @ table[q], table[p2] @ table[q2]
    right = "same" if sinusoidal else "first" if first > second else "second"
    told(positions_questions.same_distance(run), right, first=approx(first), second=approx(second))
    assert (first == approx(second)) == sinusoidal


def test_a_shift_is_one_rotation_of_a_formula_only(run):
    run = picked(positions_questions.shift, run)
    table, sinusoidal = table_of(run)
    k, d = run.picked["k"], table.shape[1]
    turned = np.zeros((d, d))
    for dim in range(0, d, 2):
        sine, cosine = np.sin(k * angle(dim, d)), np.cos(k * angle(dim, d))
        turned[dim : dim + 2, dim : dim + 2] = [[cosine, sine], [-sine, cosine]]
    missed = np.abs(table[:-k] @ turned.T - table[k:]).max()
    right = positions_questions.shift_map(run).right
    assert (right == "one") == (missed < 1e-3) == sinusoidal
    assert right in ("one", "none")
    first = int(run.picked["dims"].partition(".")[0]) - 1  # what is looked at goes round about once in 64 positions
    assert 48 < 2 * np.pi / angle(first, d) < 84


def test_the_longest_word_is_read_and_no_longer_one():
    run = picked(positions_questions.lengths, case("reverse", "lantern"))
    k, reverse = positions_questions.longest_word(run).values["k"], run.checkpoint
    assert len(reverse.run("a" * k).src_ids) == reverse.config.max_len
    with pytest.raises(QueryError):
        reverse.run("a" * (k + 1))
