"""Order, against the model's tables, a permuted source given to it by hand, and a network of two matrices."""

from urllib.parse import parse_qs

import numpy as np
import pytest
import torch

from glassformer.extensions.lessons.library.case import QuestionNotApplicable
from glassformer.extensions.lessons.library.lesson_files import lessons
from glassformer.extensions.lessons.library.subjects import order_questions
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
    case = case_at(name, sentence, order_questions.added_positions)
    ids = list(case.trace.src_ids)
    d_model = case.checkpoint.config.d_model
    raw = case.checkpoint.model.get_parameter("src_table").detach().double().numpy()[ids]
    recorder = Recorder(["encoder.embedding.positions"])
    encoded(case.checkpoint, ids, tap_of(recorder))
    (positions,) = recorder.values.values()
    position = typical(positions.double().numpy().reshape(-1, d_model)[: len(ids)])
    answer = order_questions.embedding_and_position(case)
    assert answer.values["token"] == pytest.approx(typical(raw) * d_model**0.5, rel=1e-5)
    assert answer.values["raw"] == pytest.approx(typical(raw), rel=1e-5)
    assert answer.values["position"] == pytest.approx(position, rel=1e-5)
    times = typical(raw) * d_model**0.5 / position
    assert answer.right == ("token_much" if times >= 2 else "token" if times > 1.25 else "equal")
    assert answer.variant == "scaled"


@both
def test_without_positions_a_shuffle_permutes_the_encoder_and_leaves_the_logits(name: str, sentence: str) -> None:
    case = case_at(name, sentence, order_questions.shuffled)
    ids = list(case.trace.src_ids)
    (shuffle,) = parse(case.picked["shuffle"])
    moved = list(shuffle.edited(tuple(ids), case.checkpoint.config))
    assert moved != ids
    assert sorted(moved) == sorted(ids)
    rows = [encoded(case.checkpoint, some, UNPLACED) for some in (ids, moved)]
    by_piece = [dict(zip(some, vectors, strict=True)) for some, vectors in zip((ids, moved), rows, strict=True)]
    for piece, row in by_piece[0].items():
        assert by_piece[1][piece] == pytest.approx(row, abs=1e-4)
    answer = order_questions.bag_of_words(case)
    assert answer.right == "rounding"
    assert answer.values["moved"] < 1e-3


@pytest.mark.parametrize("word", ["lantern", "quiz", "house"])
def test_a_shuffled_word_is_that_word_typed(word: str) -> None:
    case = case_at("reverse", word, order_questions.shuffled)
    (shuffle,) = parse(case.picked["shuffle"])
    ids, tokenizer = shuffle.edited(case.trace.src_ids, case.checkpoint.config), case.checkpoint.src_tokenizer
    typed = tokenizer.decode([i for i in ids if not tokenizer.is_special(i)])
    other = case.checkpoint.run(typed)
    assert other.src_ids == ids
    answer = order_questions.shuffled_source(case)
    assert answer.values["after"] == other.output_text == typed[::-1]
    assert answer.right == answer.variant == "order"


@both
def test_an_output_without_positions_is_that_of_a_tap(name: str, sentence: str) -> None:
    case = case_at(name, sentence, order_questions.unplaced)
    by_hand = case.checkpoint.run(sentence, tap=UNPLACED)
    answer = order_questions.unplaced_output(case)
    assert answer.values["after"] == by_hand.output_text
    before, after = case.trace.tgt_ids, by_hand.tgt_ids
    words = [run.output_text.lower().replace("'", " ").strip(".").split() for run in (case.trace, by_hand)]
    if len(words[0]) == 1:
        words = [list(run.tgt_pieces) for run in (case.trace, by_hand)]
    expected = "same" if before == after else "order" if sorted(words[0]) == sorted(words[1]) else "other"
    assert answer.right == expected


def test_words_in_another_order_are_so_in_small_and_capital_letters() -> None:
    answer = order_questions.unplaced_output(case_at("en-fr", "The girl hit the boy.", order_questions.unplaced))
    assert answer.values["before"] == "La fille a frappé le garçon."
    assert answer.values["after"] == "Le garçon a frappé la fille."
    assert answer.right == answer.variant == "order"


def test_both_runs_stand_side_by_side() -> None:
    case = case_at("en-fr", "The dog bit the man.", order_questions.shuffled)
    step = lessons()["order"].steps[1]
    assert step.page == "compare"
    (other,) = parse_qs(case.picked["beside"])["do"]
    assert parse(other) == (*parse(case.picked["unplaced"]), *parse(case.picked["shuffle"]))


@both
def test_one_piece_at_two_places_is_one_vector_without_positions(name: str, sentence: str) -> None:
    case = case_at(name, sentence, order_questions.twice)
    a, b, ids = case.picked["a"] - 1, case.picked["b"] - 1, list(case.trace.src_ids)
    assert ids[a] != ids[b]
    ids[b] = ids[a]
    without, placed = encoded(case.checkpoint, ids, UNPLACED), encoded(case.checkpoint, ids)
    assert without[a] == pytest.approx(without[b], abs=1e-4)
    cosine = float(placed[a] @ placed[b] / np.linalg.norm(placed[a]) / np.linalg.norm(placed[b]))
    answer = order_questions.same_piece_twice(case)
    assert answer.right == "equal"
    assert answer.values["apart"] < 1e-4
    assert answer.values["cosine"] == pytest.approx(cosine, abs=1e-5)
    assert cosine < 0.999  # positions tell them apart


@both
def test_a_feed_forward_network_is_two_matrices_at_each_token(name: str, sentence: str) -> None:
    case = case_at(name, sentence, order_questions.two_tokens)
    recorder = Recorder(["encoder.0.ffn.norm", "encoder.0.ffn.output"])
    encoded(case.checkpoint, list(case.trace.src_ids), tap_of(recorder))
    reads, writes = (recorder.values[f"encoder.0.ffn.{name}"][0].double().numpy() for name in ("norm", "output"))
    ffn = case.checkpoint.model.encoder.layers[0].ffn
    up, down = (
        (one.weight.detach().double().numpy(), one.bias.detach().double().numpy())
        for one in (ffn.up_proj, ffn.down_proj)
    )

    def network(x: np.ndarray) -> np.ndarray:
        return np.maximum(x @ up[0].T + up[1], 0) @ down[0].T + down[1]

    assert np.stack([network(row) for row in reads]) == pytest.approx(writes, abs=1e-4)
    a, b = case.picked["a"] - 1, case.picked["b"] - 1
    assert (a, b) == (0, len(writes) - 1)
    answer = order_questions.swapped_before_ffn(case)
    assert answer.right == "swap"
    assert answer.values["apart"] < 1e-4


def test_a_network_that_mixes_tokens_would_be_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    case = case_at("reverse", "lantern", order_questions.two_tokens)
    ffn = case.checkpoint.model.encoder.layers[0].ffn
    plain = type(ffn).forward
    monkeypatch.setattr(
        type(ffn), "forward", lambda self, x, *rest, **more: plain(self, x + x.cumsum(1), *rest, **more)
    )
    assert order_questions.swapped_before_ffn(case).right == "all"


@pytest.mark.parametrize(("name", "text"), [("gpt2", "abcd="), ("llama", "abcd=")])
def test_a_decoder_alone_has_order_without_positions(name: str, text: str) -> None:
    for pick in (order_questions.unplaced, order_questions.shuffled, order_questions.twice):
        with pytest.raises(QuestionNotApplicable, match="causal mask"):
            case_at(name, text, pick)
    assert order_questions.swapped_before_ffn(case_at(name, text, order_questions.two_tokens)).right == "swap"


def test_positions_inside_attention_are_not_added() -> None:
    with pytest.raises(QuestionNotApplicable, match="does not add position vectors"):
        case_at("llama", "abcd=", order_questions.added_positions)


def test_one_piece_cannot_be_shuffled() -> None:
    with pytest.raises(QuestionNotApplicable, match="two different pieces"):
        case_at("reverse", "aaa", order_questions.shuffled)
