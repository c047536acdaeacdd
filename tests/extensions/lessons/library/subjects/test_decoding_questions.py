"""What is asked about writing piece by piece, temperature, top-p and draws has the answer of numpy on the logits."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from glassformer.extensions.lessons.library.lesson import QuestionNotApplicable
from glassformer.extensions.lessons.library.lesson_files import lessons
from glassformer.extensions.lessons.library.posing import pose
from glassformer.extensions.lessons.library.subjects import decoding_questions, oracles
from tests.extensions.lessons.library.posed import approx, case, picked, told


def next_logits(run, tgt_ids, *, ruled=True):
    """Of the piece that comes next, from the plain model; by the rules padding and the start are never written."""
    read = [run.checkpoint.config.decoder_start_id, *tgt_ids]
    with torch.no_grad():
        logits = run.checkpoint.model(torch.tensor([run.trace.src_ids]), torch.tensor([read]))[0, -1].double().numpy()
    if ruled:
        logits[list(run.trace.never_written)] = -np.inf
    return logits


def probabilities(logits):
    powers = np.exp(logits - logits.max())
    return powers / powers.sum()


def bits(probs):
    return float(-sum(p * np.log2(p) for p in probs if p > 0))


def rows(run, **how):
    """The distribution of each step."""
    return [probabilities(next_logits(run, run.trace.tgt_ids[:step], **how)) for step in range(run.trace.n_steps)]


def test_the_rank_of_a_guess(run):
    logits, tokenizer = next_logits(run, (), ruled=False), run.checkpoint.tgt_tokenizer
    for guess in ("the", "a", "Il", "She"):
        ids = [i for i in tokenizer.encode(guess).ids if not tokenizer.is_special(i)]
        found = oracles()["rank_of_guess"](replace(run, given=guess))
        if not ids:
            assert found.variant == "unknown"
            continue
        assert found.values["rank"] == 1 + int((logits > logits[ids[0]]).sum())
        assert found.values["p"] == approx(probabilities(logits).max(), abs=1e-3)
        assert (found.variant == "first") == (ids[0] == run.trace.tgt_ids[0])


def test_the_hardest_step_has_the_highest_entropy(run):
    probs = rows(run, ruled=False)
    entropies = np.array([bits(row) for row in probs])
    try:
        answer = oracles()["hardest_step"](run)
    except QuestionNotApplicable:
        ahead = np.sort(entropies)[-1] - np.sort(entropies)[-2]
        assert len(entropies) < 4 or (ahead < 0.201 and np.ptp(entropies) > 0.199)
        return
    hardest, surest = int(entropies.argmax()), probs[int(entropies.argmin())].max()
    told(answer, "equal" if np.ptp(entropies) < 0.201 else f"step-{hardest + 1}", h=approx(entropies.max(), abs=1e-3))
    assert answer.right == "equal" or answer.variant == ("clear_sure" if surest >= 0.995 else "clear")


def test_what_becomes_of_the_rest(run):
    posed = pose(lessons()["one-piece"].steps[3], run)
    at, other = posed.picked["step"] - 1, posed.picked["alt_id"]
    assert np.argsort(-next_logits(run, run.trace.tgt_ids[:at]))[1] == other
    written = [*run.trace.tgt_ids[:at], other]
    while len(written) < 128 and written[-1] != run.checkpoint.config.eos_id:
        written.append(int(next_logits(run, written).argmax()))
    before, after = list(run.trace.tgt_ids[at + 1 :]), written[at + 1 :]
    same = sum(a == b for a, b in zip(before, after, strict=False))
    assert posed.answer.values["n"] == max(len(before), len(after)) - same
    assert (posed.answer.right == "same") == (before == after)


def test_temperature_and_top_p_are_what_numpy_makes_of_the_logits(run):
    run = picked(decoding_questions.open_choice, run)
    before = rows(run)[run.picked["step"] - 1]
    squared, roots = before**2 / (before**2).sum(), np.sqrt(before) / np.sqrt(before).sum()
    p, p2, piece = approx(before.max(), abs=1e-5), approx(squared.max(), abs=1e-5), int(squared.argmax())
    told(decoding_questions.sharpened(run), "surer", p=p, p2=p2, piece=run.trace.vocabulary[piece])
    share = bits(roots) / np.log2(len(roots))
    right = "half" if share <= 0.5 else "between" if share <= 0.9 else "above"
    told(decoding_questions.flattened(run), right, h2=approx(bits(roots), abs=1e-3))
    kept = int((np.cumsum(np.sort(before)[::-1]) < 0.9).sum()) + 1
    answer = decoding_questions.kept_by_top_p(run)
    assert answer.values["n"] == kept
    label = next(option.label for option in answer.options if option.word == answer.right)
    least, _, most = label.replace(",", "").partition(" – ")
    assert int(least) <= kept <= int(most or least)


def test_a_flat_distribution_keeps_nine_tenths_and_has_no_favourite():
    run = picked(decoding_questions.open_choice, case("reverse", "lantern"))
    n_pieces = len(run.trace.vocabulary)
    flat = np.full_like(run.trace.log_probs, -np.log(n_pieces))
    run = replace(run, trace=replace(run.trace, log_probs=flat))
    assert decoding_questions.kept_by_top_p(run).values["n"] >= 0.9 * (n_pieces - 3)
    for oracle in (decoding_questions.sharpened, decoding_questions.flattened):
        with pytest.raises(QuestionNotApplicable):
            oracle(run)


def test_an_output_is_drawn_as_often_as_the_product_of_its_steps_says(run):
    run = picked(decoding_questions.open_choice, run)
    chances = [row[piece] for row, piece in zip(rows(run), run.trace.tgt_ids, strict=True)]
    answer = decoding_questions.draws_like_greedy(run)
    assert answer.values["n"] == round(1000 * np.prod(chances))
    assert answer.values["least"] == approx(min(chances), abs=1e-5)
