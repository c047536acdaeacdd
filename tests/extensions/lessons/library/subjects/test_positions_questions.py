"""What is asked about positions has the answer of rotations in numpy, and of a source permuted by hand."""

import numpy as np
import pytest
import torch

from glassformer.extensions.lessons.library.case import Case
from glassformer.extensions.lessons.library.subjects import positions_questions
from glassformer.extensions.lessons.library.survey import case_of
from tests.extensions.lessons.library.posed import RUNS, case_at, picked
from tests.healthy import healthy
from transformer.checkpoint.load import Checkpoint
from transformer.errors import QueryError
from transformer.model.taps import NO_TAP, Recorder, Replacer, Tap, tap_of
from transformer.runs.interventions import parse

both = pytest.mark.parametrize(("name", "sentence"), RUNS)
UNPLACED = tap_of(Replacer({"encoder.embedding.positions": torch.zeros_like}, causal=True))


@torch.inference_mode()
def encoded(checkpoint: Checkpoint, ids: list[int], tap: Tap = NO_TAP) -> np.ndarray:
    """The encoder's last vectors, [token, d_model]."""
    return checkpoint.model.encode(torch.tensor([ids]), tap=tap)[0].double().numpy()


def typical(vectors: np.ndarray) -> float:
    """Mean over tokens of the root mean square."""
    return float(np.mean([np.sqrt(np.mean(vector**2)) for vector in vectors]))


@both
def test_sizes_are_those_of_the_tables(name: str, sentence: str) -> None:
    case = case_at(name, sentence, positions_questions.added_positions)
    ids = list(case.trace.src_ids)
    d_model = case.checkpoint.config.d_model
    raw = case.checkpoint.model.get_parameter("src_table").detach().double().numpy()[ids]
    recorder = Recorder(["encoder.embedding.positions"])
    encoded(case.checkpoint, ids, tap_of(recorder))
    (positions,) = recorder.values.values()
    position = typical(positions.double().numpy().reshape(-1, d_model)[: len(ids)])
    answer = positions_questions.embedding_and_position(case)
    assert answer.values["token"] == pytest.approx(typical(raw) * d_model**0.5, rel=1e-5)
    assert answer.values["raw"] == pytest.approx(typical(raw), rel=1e-5)
    assert answer.values["position"] == pytest.approx(position, rel=1e-5)
    times = typical(raw) * d_model**0.5 / position
    assert answer.right == ("token_much" if times >= 2 else "token" if times > 1.25 else "equal")
    assert answer.variant == "scaled"


@both
def test_without_positions_a_shuffle_permutes_the_encoder_and_leaves_the_logits(name: str, sentence: str) -> None:
    case = case_at(name, sentence, positions_questions.shuffled)
    ids = list(case.trace.src_ids)
    (shuffle,) = parse(case.picked["shuffle"])
    moved = list(shuffle.edited(tuple(ids), case.checkpoint.config))
    assert moved != ids
    assert sorted(moved) == sorted(ids)
    rows = [encoded(case.checkpoint, some, UNPLACED) for some in (ids, moved)]
    by_piece = [dict(zip(some, vectors, strict=True)) for some, vectors in zip((ids, moved), rows, strict=True)]
    for piece, row in by_piece[0].items():
        assert by_piece[1][piece] == pytest.approx(row, abs=1e-4)
    answer = positions_questions.bag_of_words(case)
    assert answer.right == "rounding"
    assert answer.values["moved"] < 1e-3


@pytest.mark.parametrize("word", ["lantern", "quiz", "house"])
def test_a_shuffled_word_is_that_word_typed(word: str) -> None:
    case = case_at("reverse", word, positions_questions.shuffled)
    (shuffle,) = parse(case.picked["shuffle"])
    ids, tokenizer = shuffle.edited(case.trace.src_ids, case.checkpoint.config), case.checkpoint.src_tokenizer
    typed = tokenizer.decode([i for i in ids if not tokenizer.is_special(i)])
    other = case.checkpoint.run(typed)
    assert other.src_ids == ids
    answer = positions_questions.shuffled_source(case)
    assert answer.values["after"] == other.output_text == typed[::-1]
    assert answer.right == answer.variant == "order"


@both
def test_one_piece_at_two_places_is_one_vector_without_positions(name: str, sentence: str) -> None:
    case = case_at(name, sentence, positions_questions.twice)
    a, b, ids = case.picked["a"] - 1, case.picked["b"] - 1, list(case.trace.src_ids)
    assert ids[a] != ids[b]
    ids[b] = ids[a]
    without, placed = encoded(case.checkpoint, ids, UNPLACED), encoded(case.checkpoint, ids)
    assert without[a] == pytest.approx(without[b], abs=1e-4)
    cosine = float(placed[a] @ placed[b] / np.linalg.norm(placed[a]) / np.linalg.norm(placed[b]))
    answer = positions_questions.same_piece_twice(case)
    assert answer.right == "equal"
    assert answer.values["apart"] < 1e-4
    assert answer.values["cosine"] == pytest.approx(cosine, abs=1e-5)
    assert cosine < 0.999  # positions tell them apart


def test_a_network_that_mixes_tokens_would_be_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    case = case_at("reverse", "lantern", positions_questions.two_tokens)
    ffn = case.checkpoint.model.encoder.layers[0].ffn
    plain = type(ffn).forward
    monkeypatch.setattr(
        type(ffn), "forward", lambda self, x, *rest, **more: plain(self, x + x.cumsum(1), *rest, **more)
    )
    assert positions_questions.swapped_before_ffn(case).right == "all"


SENTENCES = {"zh-en": "他昨天看见那只猫。", "en-fr": "The old man wants bread.", "reverse": "house"}
SINUSOIDAL = ("zh-en", "en-fr")


def run_of(name: str) -> Case:
    return case_of(healthy(name), SENTENCES[name])


def angle_by_hand(dim: int, d_model: int) -> float:
    return 10_000.0 ** -((dim - dim % 2) / d_model)


def table_by_hand(case: Case) -> np.ndarray:
    table = case.checkpoint.model.encoder.embedding.positions.table
    return table.detach().numpy().astype(np.float64)


@pytest.mark.parametrize("name", SINUSOIDAL)
def test_the_pair_with_the_larger_angle_turns_faster(name):
    posed = picked(positions_questions.two_clocks, run_of(name))
    fast, slow = posed.picked["fast"], posed.picked["slow"]
    d = posed.checkpoint.config.d_model
    assert angle_by_hand(2 * fast, d) > angle_by_hand(2 * slow, d)
    answer = positions_questions.faster_dimension(posed)
    assert answer.right == "fast"
    for word, pair in (("turn_fast", fast), ("turn_slow", slow)):
        assert answer.values[word] == pytest.approx(2 * np.pi / angle_by_hand(2 * pair, d), rel=1e-4)
    assert posed.picked["dims"] == f"{2 * fast + 1}.{2 * slow + 1}", "an address counts from 1"
    for pair, option in zip((fast, slow), answer.options[:2], strict=True):
        assert f"dimensions {2 * pair} and {2 * pair + 1}" in option.label


@pytest.mark.parametrize("name", SINUSOIDAL)
def test_a_turn_is_over_where_the_pair_comes_back(name):
    posed = picked(positions_questions.one_clock, run_of(name))
    sine, table = posed.picked["sine"], table_by_hand(posed)
    answer = positions_questions.turn_length(posed)
    turn = answer.values["turn"]
    assert turn == pytest.approx(2 * np.pi / angle_by_hand(sine, table.shape[1]), rel=1e-4)
    assert answer.right == "turn"
    assert next(option.label for option in answer.options if option.word == "turn") == str(round(turn))
    away = np.linalg.norm(table[1:60, sine : sine + 2] - table[0, sine : sine + 2], axis=1)
    assert abs(1 + away.argmin() - turn) % turn < 1 or abs(1 + away.argmin() - 2 * turn) < 1
    assert posed.picked["radians"] == pytest.approx(angle_by_hand(sine, table.shape[1]), rel=1e-4)


@pytest.mark.parametrize("name", SENTENCES)
def test_equal_distances_are_alike_in_a_formula_only(name):
    posed = picked(positions_questions.two_pairs, run_of(name))
    table = table_by_hand(posed)
    p, q, p2, q2 = (posed.picked[key] for key in ("p", "q", "p2", "q2"))
    first, second = table[p] @ table[q], table[p2] @ table[q2]
    answer = positions_questions.same_distance(posed)
    assert q - p == q2 - p2
    assert (answer.values["first"], answer.values["second"]) == pytest.approx((first, second))
    if name in SINUSOIDAL:
        assert answer.right == "same"
        assert first == pytest.approx(second)
    else:
        assert answer.right == ("first" if first > second else "second")
        assert answer.variant == "places"


@pytest.mark.parametrize("name", SENTENCES)
def test_a_shift_is_one_rotation_of_a_formula_only(name):
    posed = picked(positions_questions.shift, run_of(name))
    k, table = posed.picked["k"], table_by_hand(posed)
    d = table.shape[1]
    turned = np.zeros((d, d))
    for dim in range(0, d, 2):
        angle = k * angle_by_hand(dim, d)
        turned[dim : dim + 2, dim : dim + 2] = [[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]
    missed = np.abs(table[:-k] @ turned.T - table[k:]).max()
    answer = positions_questions.shift_map(posed)
    assert answer.right == ("one" if missed < 1e-3 else "none")
    assert (answer.right == "one") == (name in SINUSOIDAL)
    first = int(posed.picked["dims"].partition(".")[0]) - 1  # what is looked at goes round about once in 64 positions
    assert 48 < 2 * np.pi / angle_by_hand(first, d) < 84


def test_the_longest_word_is_read_and_no_longer_one():
    answer = positions_questions.longest_word(picked(positions_questions.lengths, run_of("reverse")))
    k = answer.values["k"]
    reverse = healthy("reverse")
    assert len(reverse.run("a" * k).src_ids) == reverse.config.max_len
    with pytest.raises(QueryError):
        reverse.run("a" * (k + 1))
