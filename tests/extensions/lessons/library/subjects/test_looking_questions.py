"""What is asked about where the decoder looks has the answer of loops over the maps."""

from dataclasses import replace

import pytest

from glassformer.extensions.lessons.library.lesson import QuestionNotApplicable
from glassformer.extensions.lessons.library.subjects import looking_questions
from tests.extensions.lessons.library.posed import approx, picked, told
from transformer.model.taps import Replacer, tap_of


def rows_at(run, step):
    """The rows of all heads at a step, and last their mean by hand."""
    rows = [head[step].tolist() for layer in run.trace.cross for head in layer]
    return [*rows, [sum(column) / len(rows) for column in zip(*rows, strict=True)]]


def test_the_strongest_key_of_the_mean_is_that_of_a_loop(run):
    asked = 0
    for step in range(run.trace.n_steps):
        row = rows_at(run, step)[-1]
        best, second = sorted(range(len(row)), key=lambda key: -row[key])[:2]
        posed = replace(run, picked={"step": step + 1})
        if row[best] - row[second] < looking_questions.CLEAR - 1e-6:
            with pytest.raises(QuestionNotApplicable):
                looking_questions.strongest_in_mean(posed)
            continue
        answer = looking_questions.strongest_in_mean(posed)
        asked += 1
        told(answer, answer.right, w=approx(row[best], abs=1e-6), w2=approx(row[second], abs=1e-6))
        labels = {option.word: option.label for option in answer.options}
        assert labels[answer.right] == f"{best + 1} · {run.trace.src_tokens[best]}"
        assert len(labels) == len(answer.options) <= looking_questions.MOST_CHOICES
        assert (answer.variant == "special") == (best == len(row) - 1)
    assert asked


def test_heads_agree_where_their_strongest_piece_is_that_of_the_mean(run):
    run = picked(looking_questions.looked_at, run)
    texts = len(run.trace.src_tokens) - 1  # the end mark stands last
    *rows, mean = (row[:texts] for row in rows_at(run, run.picked["step"] - 1))
    assert run.picked["key"] - 1 == mean.index(max(mean))
    count = sum(row.index(max(row)) == run.picked["key"] - 1 for row in rows)
    right = "all" if count == len(rows) else "most" if count > len(rows) / 2 else "few"
    told(looking_questions.heads_that_agree(run), right, count=count)


def test_muting_a_piece_is_setting_its_weights_to_0_by_hand(run):
    run = picked(looking_questions.looked_at, run)

    def muted(weights):
        left = weights.clone()
        left[..., run.picked["key"] - 1] = 0
        return left / left.sum(-1, keepdim=True)

    tap = tap_of(Replacer({"decoder.*.cross_attn.weights": muted}, causal=True))
    before, by_hand = run.trace.tgt_ids, run.checkpoint.run(run.trace.query.source, tap=tap)
    answer = looking_questions.without_looking(run)
    assert answer.values["after"] == by_hand.output_text
    assert (answer.right == "same") == (by_hand.tgt_ids == before)
    if answer.right != "same":
        at = answer.values["at"] - 1
        assert by_hand.tgt_ids[:at] == before[:at]
        assert by_hand.tgt_ids[at : at + 1] != before[at : at + 1]
        assert (answer.right == "here") == (at == run.picked["step"] - 1)
