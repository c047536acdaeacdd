"""Models with one stack learn from prompts or hidden pieces alone, and are scored as the app runs them."""

import dataclasses
from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from glassformer.extensions.training.library.data import Batches, Example, each_alone, hiding, make_batch
from glassformer.extensions.training.library.held_out_scores import read_held_out, score_gaps
from glassformer.extensions.training.library.preparation import write_task
from glassformer.extensions.training.library.run import learn_vocabulary, train
from glassformer.extensions.training.library.scoring import guesses, held_out_loss, target_loss
from tests.conftest import SOURCES
from tests.extensions.training.library.one_stack_texts import (
    DECODER,
    ENCODER,
    PAIRS,
    PIECES,
    TEXTS,
    TOKENIZER,
    examples_of,
    hidden,
)
from tests.extensions.training.library.training_jobs import make_job, with_settings
from tests.transformer.tiny import tiny_config, tiny_model
from transformer.__main__ import main
from transformer.analysis.losses import Samples, loss_of
from transformer.checkpoint.load import load
from transformer.checkpoint.save import CheckpointContents, save
from transformer.errors import DataError
from transformer.text.tokenizer import Tokenizer

MASK = TOKENIZER.id_of("[MASK]")


def saved(features, folder):
    model = tiny_model(**features)
    save(CheckpointContents(model.config, model.state_dict(), (PIECES,), {}), folder)
    return load(folder)


def test_a_prompt_is_read_as_the_app_reads_it_and_weighs_nothing(tmp_path):
    checkpoint = saved(DECODER, tmp_path / "decoder")
    for example, (source, target) in zip(examples_of(DECODER), PAIRS, strict=True):
        trace = checkpoint.run(checkpoint.query(source, forced=example.tgt))
        assert trace.src_ids == example.src
        batch = make_batch([example], checkpoint.config)
        n = len(trace.read_ids)
        assert tuple(batch.tgt_in[0, :n].tolist()) == trace.read_ids
        assert batch.tgt_out[0].count_nonzero() == batch.n_tokens == len(example.tgt)
        assert TOKENIZER.decode(example.tgt[:-1]) == target
        # The loss is that of the target's pieces and its end, whatever the prompt's pieces would have cost.
        own = target_loss(checkpoint.model, batch, smoothing=0.0).item()
        assert own * len(example.tgt) == pytest.approx(-trace.log_prob, rel=1e-4)


def test_held_out_losses_are_those_of_the_examination_and_what_is_guessed_right_is_counted(tmp_path):
    short = [(source[:12], target[:12]) for source, target in PAIRS]
    samples = Samples(*(tuple(side) for side in zip(*short, strict=True)))
    for name, features in {"decoder": DECODER, "encoder": ENCODER}.items():
        checkpoint = saved(features, tmp_path / name)
        examples, expected = examples_of(features, short), loss_of(checkpoint, samples, with_end=True)
        if features is ENCODER:
            examples = each_alone(examples, TOKENIZER, checkpoint.config)
            assert sum(len(one.tgt) for one in examples) == sum(expected.pieces)
        assert held_out_loss(checkpoint.model, examples) == pytest.approx(expected.mean, rel=1e-5)
    model, none = checkpoint.model, torch.zeros(1, 0, dtype=torch.long)
    right = [int(model(torch.tensor([gap.src]), none)[0, gap.places[0]].argmax()) == gap.tgt[0] for gap in examples]
    assert guesses(model, examples) == pytest.approx((expected.mean, sum(right) / len(right)), rel=1e-5)


@given(st.integers(0, 2**32 - 1), st.integers(0, 50))
def test_masks_follow_from_seed_epoch_and_row(seed, epoch):
    assert [one.places for one in hidden(epoch=3)][:3] == [(6, 7), (5,), (7, 14)]  # in every process
    found = hidden(seed=seed, epoch=epoch)
    assert hidden(TEXTS[:3], seed=seed, epoch=epoch) == found[:3]
    assert hidden(seed=seed, epoch=epoch + 1) != found != hidden(seed=seed + 1, epoch=epoch)


def test_most_of_what_is_asked_for_is_hidden_and_nothing_around_the_text():
    texts = examples_of(ENCODER, TEXTS)
    kinds, asked, there = Counter(), 0, 0
    for epoch in range(60):
        for example, text in zip(hidden(epoch=epoch), texts, strict=True):
            n, places = len(text.src) - 2, example.places
            assert len(places) == max(1, round(0.15 * n))
            assert list(places) == sorted({*places} & {*range(1, n + 1)})
            assert [text.src[place] for place in places] == list(example.tgt)
            read = [example.src[place] for place in places]
            assert not {0, 1, 2, 3} & {*read}
            both = zip(read, example.tgt, strict=True)
            kinds.update("mask" if one == MASK else "same" if one == piece else "other" for one, piece in both)
            kept = [i for i in range(len(text.src)) if i not in places]
            assert [example.src[i] for i in kept] == [text.src[i] for i in kept]
            asked, there = asked + len(places), there + n
    assert asked / there == pytest.approx(0.15, abs=0.03)
    assert kinds["mask"] / asked == pytest.approx(0.8, abs=0.05)
    assert kinds["other"] / asked == pytest.approx(0.1, abs=0.04)
    plain = Tokenizer(learn_vocabulary(SOURCES, size=30, kind="char"))
    for tokenizer, config in ((plain, ENCODER), (TOKENIZER, ENCODER | {"mlm_head": False})):
        with pytest.raises(DataError, match="MLM head"):
            hiding(lambda _: [], tokenizer, tiny_config(**config), seed=1)


def test_rows_of_one_stack_are_cut_by_all_that_is_read_and_what_does_not_fit_is_left_out():
    examples = [Example((4,) * (1 + i % 9), (5,) * (1 + i % 5), range(i % 9, i % 9 + 1 + i % 5)) for i in range(90)]
    config = tiny_config(**DECODER)
    for group in Batches(lambda _: examples, batch_tokens=60, seed=1).epoch(0):
        batch = make_batch(group, config)
        assert batch.tgt_in.numel() <= 60
        assert batch.src.size(1) == 0
        assert batch.n_tokens == sum(len(e.tgt) for e in group) == int(batch.tgt_out.count_nonzero())
        for row, e in zip(batch.tgt_in.tolist(), group, strict=True):
            assert row[: e.width] == [*e.src, *e.tgt[:-1]]
    short, long = Example((4, 5), (6, 3), range(1, 3)), Example((4, 5), (6, 7, 8, 3), range(1, 5))
    assert make_batch([short, long], config).tgt_in.tolist()[0] == [4, 5, 6, 3, 0, 0]  # it keeps its end
    assert [len(e.src) for e in examples_of(ENCODER | {"max_len": 6}, [("abba", ""), ("abbbba", "")])] == [6]
    assert len(examples_of(DECODER | {"max_len": 7}, [("ab", "cde"), ("abc", "cdef")])) == 1  # 1 + 2 + 3 are read


def test_gaps_are_scored_by_the_command(tmp_path, capsys):
    checkpoint, path = saved(ENCODER, tmp_path / "encoder"), tmp_path / "texts.tsv"
    path.write_text("".join(f"{text}\n" for text, _ in TEXTS) + "x" * 99, encoding="utf-8")
    held_out = read_held_out(path, checkpoint.config)
    record = score_gaps(checkpoint, held_out)
    assert (record["texts"], record["measure"]) == (len(TEXTS), "each piece hidden alone")
    assert main(["evaluate", str(tmp_path / "encoder"), "--pairs", str(path), "--record"]) == 0
    assert f"{record['exact']:.2%} guessed right" in capsys.readouterr().out
    assert load(tmp_path / "encoder").card.scores == (record,)
    with pytest.raises(DataError, match="no text that encoder can read"):
        score_gaps(checkpoint, dataclasses.replace(held_out, pairs=held_out.pairs[-1:]))


@pytest.mark.parametrize("task", ["addition", "palindrome"])
def test_a_short_training_learns_and_its_folder_opens(task, tmp_path):
    features = {"addition": DECODER | {"positions": "rotary"}, "palindrome": ENCODER | {"n_encoder_layers": 1}}[task]
    write_task(task, tmp_path, train=1_000, dev=20, test=2)
    small = {"d_model": 32, "n_heads": 2, "d_ff": 64, "src_vocab_size": 40, "tgt_vocab_size": 40, "max_len": 14}
    config = tiny_config(**{"positions": "learned"} | features | small | {"dropout": 0.1})
    job = dataclasses.replace(make_job(tmp_path), config=config)
    job = with_settings(job, epochs=4, batch_tokens=600, smoothing=0.0)
    rows = train(job)
    assert rows[-1].dev_loss < rows[0].dev_loss - 0.1
    assert rows[-1].loss < rows[0].loss - 0.2
    checkpoint = load(job.out)
    assert checkpoint.warnings == ()
    (score,) = checkpoint.card.scores
    assert ("measure" in score) != checkpoint.model.anatomy.writes
    assert checkpoint.run("12+7=" if checkpoint.model.anatomy.writes else "no[MASK]n").src_ids[0] == 2
