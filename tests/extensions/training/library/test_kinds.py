"""Training of models with one stack: what they learn from, their loss and scores; a short training of each learns."""

import dataclasses
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from glassformer.extensions.training.library.data import Batches, Example, each_alone, encode_pairs, hiding, make_batch
from glassformer.extensions.training.library.evaluation import evaluate, read_held_out, score_gaps
from glassformer.extensions.training.library.run import learn_vocabulary, train
from glassformer.extensions.training.library.scoring import guesses, held_out_loss, target_loss, translate
from glassformer.extensions.training.library.tasks import write_task
from tests.conftest import SOURCES, TARGETS
from tests.extensions.training.library.training_jobs import make_job, train_and_stop, with_settings
from tests.transformer.one_stack import alone
from tests.transformer.tiny import tiny_config, tiny_model
from transformer.__main__ import main
from transformer.checkpoint.load import load
from transformer.checkpoint.save import CheckpointContents, file_sha256, save
from transformer.errors import DataError
from transformer.runs.pairs import read_pairs
from transformer.runs.query import Beam, Greedy
from transformer.text.tokenizer import Tokenizer
from transformer.trying.losses import Samples, loss_of

PIECES = learn_vocabulary(SOURCES + TARGETS, size=40, kind="char", with_mask=True)
TOKENIZER = Tokenizer(PIECES)
MASK = TOKENIZER.id_of("[MASK]")
ONE = {"shared_vocab": True, "src_vocab_size": TOKENIZER.size, "tgt_vocab_size": TOKENIZER.size, "max_len": 90}
DECODER = ONE | {"n_encoder_layers": 0, "prepend_source_bos": True, "append_source_eos": False, "n_kv_heads": 1}
ENCODER = ONE | {"n_decoder_layers": 0, "prepend_source_bos": True, "mlm_head": True}
PAIRS = list(zip(SOURCES, TARGETS, strict=True))
TEXTS = [(text, "") for text in SOURCES + TARGETS]


def examples_of(features, pairs=PAIRS):
    return encode_pairs(pairs, TOKENIZER, TOKENIZER, tiny_config(**features))


def hidden(texts=TEXTS, *, seed=1, epoch=0):
    config = tiny_config(**ENCODER)
    return hiding(lambda _: examples_of(ENCODER, texts), TOKENIZER, config, seed=seed)(epoch)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("features", [DECODER, DECODER | {"positions": "rotary", "d_head": 4}, ENCODER])
def test_the_loss_and_its_gradients_are_torchs(features, smoothing):
    batch = make_batch(hidden() if features is ENCODER else examples_of(features), tiny_config(**features))
    ours, plain = (tiny_model(**features).requires_grad_() for _ in range(2))
    loss = target_loss(ours, batch, smoothing=smoothing)
    logits = plain(batch.src, batch.tgt_in).flatten(0, 1)
    expected = F.cross_entropy(logits, batch.tgt_out.flatten(), ignore_index=0, label_smoothing=smoothing)
    assert loss.dtype == torch.float64
    assert loss.item() == pytest.approx(expected.item(), abs=1e-10)
    loss.backward()
    expected.backward()
    wanted = dict(plain.named_parameters())
    for name, parameter in ours.named_parameters():
        assert torch.allclose(parameter.grad, wanted[name].grad, rtol=0, atol=1e-10), name


def test_a_prompt_is_read_as_the_app_reads_it_and_weighs_nothing(tmp_path):
    model = tiny_model(**DECODER)
    save(CheckpointContents(model.config, model.state_dict(), (PIECES,), {}), tmp_path / "decoder")
    checkpoint = load(tmp_path / "decoder")
    for example, (source, target) in zip(examples_of(DECODER), PAIRS, strict=True):
        trace = checkpoint.run(checkpoint.query(source, forced=example.tgt))
        assert trace.src_ids == example.src
        batch = make_batch([example], model.config)
        n = len(trace.read_ids)
        assert tuple(batch.tgt_in[0, :n].tolist()) == trace.read_ids
        assert batch.tgt_out[0].count_nonzero() == batch.n_tokens == len(example.tgt)
        assert Tokenizer(PIECES).decode(example.tgt[:-1]) == target
        # The loss is that of the target's pieces and its end, whatever the prompt's pieces would have cost.
        own = target_loss(checkpoint.model, batch, smoothing=0.0).item()
        assert own * len(example.tgt) == pytest.approx(-trace.log_prob, rel=1e-4)


@pytest.mark.parametrize("features", [DECODER, ENCODER])
def test_the_held_out_loss_is_the_one_that_the_examination_computes(features, tmp_path):
    model = tiny_model(**features)
    save(CheckpointContents(model.config, model.state_dict(), (PIECES,), {}), tmp_path / "one")
    checkpoint = load(tmp_path / "one")
    short = [(source[:12], target[:12]) for source, target in PAIRS]
    examples = examples_of(features, short)
    samples = Samples(*(tuple(side) for side in zip(*short, strict=True)))
    expected = loss_of(checkpoint, samples, with_end=True)
    if features is ENCODER:
        examples = each_alone(examples, TOKENIZER, model.config)
        assert sum(len(one.tgt) for one in examples) == sum(expected.pieces)
    assert held_out_loss(checkpoint.model, examples) == pytest.approx(expected.mean, rel=1e-5)


def test_what_is_guessed_right_is_counted():
    model = tiny_model(**ENCODER)
    gaps = each_alone(examples_of(ENCODER, TEXTS), TOKENIZER, model.config)
    logits = [model(torch.tensor([gap.src]), torch.zeros(1, 0, dtype=torch.long))[0, gap.places[0]] for gap in gaps]
    right = [int(row.argmax()) == gap.tgt[0] for row, gap in zip(logits, gaps, strict=True)]
    loss, share = guesses(model, gaps)
    assert share == pytest.approx(sum(right) / len(right))
    assert loss == pytest.approx(held_out_loss(model, gaps), rel=1e-6)


def test_masks_are_drawn_alike_in_another_process():
    program = "from tests.extensions.training.library import test_kinds; print(test_kinds.hidden(epoch=3))"
    command, root = [sys.executable, "-c", program], Path(__file__).parents[4]
    environment = os.environ | {"PYTHONHASHSEED": "5"}
    found = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=True).stdout
    assert found.strip() == str(hidden(epoch=3))


@given(st.integers(0, 2**32 - 1), st.integers(0, 50))
def test_masks_follow_from_seed_epoch_and_row(seed, epoch):
    found = hidden(seed=seed, epoch=epoch)
    assert found == hidden(seed=seed, epoch=epoch)
    assert hidden(TEXTS[:3], seed=seed, epoch=epoch) == found[:3]
    assert found != hidden(seed=seed, epoch=epoch + 1)
    assert found != hidden(seed=seed + 1, epoch=epoch)


def test_most_of_what_is_asked_for_is_hidden_and_nothing_around_the_text():
    texts = examples_of(ENCODER, TEXTS)
    kinds, asked, there = Counter(), 0, 0
    for epoch in range(60):
        for example, text in zip(hidden(epoch=epoch), texts, strict=True):
            n = len(text.src) - 2
            assert len(example.tgt) == len(example.places) == max(1, round(0.15 * n))
            assert list(example.places) == sorted({*example.places})
            assert 1 <= min(example.places) <= max(example.places) <= n
            for place, piece in zip(example.places, example.tgt, strict=True):
                assert text.src[place] == piece
                read = example.src[place]
                kinds["mask" if read == MASK else "same" if read == piece else "other"] += 1
                assert read not in (0, 1, 2, 3)
            kept = [i for i in range(len(text.src)) if i not in example.places]
            assert [example.src[i] for i in kept] == [text.src[i] for i in kept]
            asked, there = asked + len(example.tgt), there + n
    assert asked / there == pytest.approx(0.15, abs=0.03)
    assert kinds["mask"] / asked == pytest.approx(0.8, abs=0.05)
    assert kinds["other"] / asked == pytest.approx(0.1, abs=0.04)


def test_without_a_mask_piece_or_a_head_nothing_can_be_hidden():
    plain = Tokenizer(learn_vocabulary(SOURCES, size=30, kind="char"))
    for tokenizer, config in ((plain, ENCODER), (TOKENIZER, ENCODER | {"mlm_head": False})):
        with pytest.raises(DataError, match="MLM head"):
            hiding(lambda _: [], tokenizer, tiny_config(**config), seed=1)


def test_rows_of_one_stack_are_cut_by_all_that_is_read():
    examples = [Example((4,) * (1 + i % 9), (5,) * (1 + i % 5), range(i % 9, i % 9 + 1 + i % 5)) for i in range(90)]
    config = tiny_config(**DECODER)
    for group in Batches(lambda _: examples, batch_tokens=60, seed=1).epoch(0):
        batch = make_batch(group, config)
        assert batch.tgt_in.numel() <= 60
        assert batch.src.size(1) == 0
        assert batch.n_tokens == sum(len(e.tgt) for e in group) == int(batch.tgt_out.count_nonzero())
        for row, e in zip(batch.tgt_in.tolist(), group, strict=True):
            assert row[: e.width] == [*e.src, *e.tgt[:-1]]


def test_a_text_a_line_is_read_and_what_does_not_fit_is_left_out(tmp_path):
    path = tmp_path / "texts.tsv"
    path.write_text("noon\n\n abba \n", encoding="utf-8")
    config = tiny_config(**ENCODER | {"max_len": 6})
    assert read_pairs(path, config) == [("noon", ""), ("abba", "")]
    assert [len(e.src) for e in examples_of(ENCODER | {"max_len": 6}, [("abba", ""), ("abbbba", "")])] == [6]
    assert len(examples_of(DECODER | {"max_len": 7}, [("ab", "cde"), ("abc", "cdef")])) == 1  # 1 + 2 + 3 are read
    path.write_text("noon\tnoon\n", encoding="utf-8")
    with pytest.raises(DataError, match="line 1: expected one text without a tab, found 2 columns"):
        read_pairs(path, config)


@pytest.mark.parametrize("decoding", [Greedy(), Beam(size=3)])
def test_prompts_are_continued_as_in_the_app(decoding, tmp_path):
    checkpoint = alone("decoder", tmp_path)
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{source}\t{target}\n" for source, target in PAIRS), encoding="utf-8")
    scoring = evaluate(checkpoint, read_held_out(path, checkpoint.config), decoding)
    shown = [checkpoint.run(checkpoint.query(source, decoding=decoding)).output_text for source in SOURCES]
    assert scoring.outputs == tuple(shown)
    assert len(set(shown)) > 1
    tokenizers = checkpoint.src_tokenizer, checkpoint.tgt_tokenizer
    fitting = [pair for pair in PAIRS if encode_pairs([pair], *tokenizers, checkpoint.config)]
    examples = encode_pairs(fitting, *tokenizers, checkpoint.config)
    most = max(len(example.tgt) for example in examples) + 10
    limited = [checkpoint.run(checkpoint.query(source, max_new=most)).output_text for source, _ in fitting]
    assert translate(checkpoint.model, checkpoint.tgt_tokenizer, examples) == limited


def test_gaps_are_scored_by_the_command(tmp_path, capsys):
    model = tiny_model(**ENCODER)
    save(CheckpointContents(model.config, model.state_dict(), (PIECES,), {}), tmp_path / "encoder")
    checkpoint, path = load(tmp_path / "encoder"), tmp_path / "texts.tsv"
    path.write_text("".join(f"{text}\n" for text, _ in TEXTS) + "x" * 99, encoding="utf-8")
    held_out = read_held_out(path, checkpoint.config)
    record = score_gaps(checkpoint, held_out)
    assert (record["texts"], record["measure"]) == (len(TEXTS), "each piece hidden alone")
    assert main(["evaluate", str(tmp_path / "encoder"), "--pairs", str(path), "--record"]) == 0
    assert f"{record['exact']:.2%} guessed right" in capsys.readouterr().out
    assert load(tmp_path / "encoder").card.scores == (record,)
    with pytest.raises(DataError, match="no text that encoder can read"):
        score_gaps(checkpoint, dataclasses.replace(held_out, pairs=held_out.pairs[-1:]))


KINDS = {"addition": DECODER, "palindrome": ENCODER}


@pytest.fixture(params=list(KINDS))
def one_stack_job(request, tmp_path):
    write_task(request.param, tmp_path, train=1_000, dev=20, test=2)
    small = {"d_model": 32, "n_heads": 2, "d_ff": 64, "src_vocab_size": 40, "tgt_vocab_size": 40, "max_len": 14}
    features = KINDS[request.param] | small | {"positions": "rotary" if request.param == "addition" else "learned"}
    job = dataclasses.replace(make_job(tmp_path), config=tiny_config(**features | {"dropout": 0.1}))
    return with_settings(job, epochs=3, batch_tokens=600, smoothing=0.0)


def test_a_short_training_learns_and_its_folder_opens(one_stack_job):
    rows = train(with_settings(one_stack_job, epochs=8))
    assert rows[-1].dev_loss < rows[0].dev_loss - 0.2
    assert rows[-1].loss < rows[0].loss - 0.3
    checkpoint = load(one_stack_job.out)
    assert checkpoint.warnings == ()
    (score,) = checkpoint.card.scores
    assert ("measure" in score) != checkpoint.model.anatomy.writes
    assert checkpoint.run("12+7=" if checkpoint.model.anatomy.writes else "no[MASK]n").src_ids[0] == 2


def test_a_training_that_was_stopped_goes_on_as_if_nothing_had_happened(one_stack_job, monkeypatch, tmp_path):
    train(one_stack_job)
    whole = file_sha256(one_stack_job.out / "model.safetensors")
    again = dataclasses.replace(one_stack_job, out=tmp_path / "again")
    train_and_stop(again, monkeypatch)
    train(dataclasses.replace(again, resume=True))
    assert file_sha256(again.out / "model.safetensors") == whole


def test_a_shorter_row_of_one_stack_keeps_its_end_in_what_is_read_as_that_of_two_does():
    config = tiny_config(**DECODER)
    short, long = Example((4, 5), (6, 3), range(1, 3)), Example((4, 5), (6, 7, 8, 3), range(1, 5))
    assert make_batch([short, long], config).tgt_in.tolist()[0] == [4, 5, 6, 3, 0, 0]
