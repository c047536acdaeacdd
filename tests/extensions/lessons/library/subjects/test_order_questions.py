"""What is asked about order has the answer of the model's tables and of a source permuted by hand."""

import numpy as np
import pytest
import torch

from glassformer.extensions.lessons.library.subjects import positions_questions
from tests.extensions.lessons.library.posed import RUNS, case_at
from transformer.checkpoint.load import Checkpoint
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
