"""A model is scored on what the app itself would show, by sacrebleu and by length, and nothing is overwritten."""

import csv
import io
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import sacrebleu
import torch

from glassformer.extensions.training.library.data import encode_pairs
from glassformer.extensions.training.library.held_out_scores import (
    evaluate,
    read_held_out,
    read_lengths,
    score_record,
    scores_by_length,
    worst_csv,
    write_lengths,
)
from glassformer.extensions.training.library.preparation import write_task
from glassformer.extensions.training.library.run import train
from glassformer.extensions.training.library.scoring import decode, score, translate
from tests.conftest import SOURCES, TARGETS
from tests.extensions.training.library.training_jobs import make_job, with_settings
from tests.transformer.checkpoint.test_snapshots import grown as grown
from tests.transformer.one_stack import alone
from tests.transformer.runs.test_finite import SOURCE
from tests.transformer.runs.test_finite import checkpoint as checkpoint
from tests.transformer.runs.test_finite import hidden as hidden
from tests.transformer.tiny import random_ids, tiny_model
from transformer import Beam, Greedy, load
from transformer.__main__ import main
from transformer.errors import DataError, QueryError
from transformer.model.cache import KVCache
from transformer.runs.beam import beam_search
from transformer.runs.decoding import Prefix, collect, greedy
from transformer.runs.teacher_forcing import judge

PAIRS = list(zip(SOURCES, TARGETS, strict=True))


@pytest.fixture
def pairs_file(tmp_path):
    def write(pairs=PAIRS):
        path = tmp_path / "dev.tsv"
        path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
        return path

    return write


@pytest.mark.parametrize(
    ("decoding", "seed"), [(Greedy(), 1), (Beam(size=1), 1), (Beam(size=3), 2), (Beam(size=5, length_penalty=2.0), 3)]
)
def test_batches_write_what_each_sentence_alone_gets(decoding, seed, monkeypatch):
    monkeypatch.setattr("glassformer.extensions.training.library.scoring.BATCH_ROWS", 20)
    model, done = tiny_model(seed=seed, tie_output=False), []
    lengths = torch.randint(1, 9, (23,), generator=torch.Generator().manual_seed(seed)).tolist()
    sources = [tuple(random_ids(1, length, seed=seed * 100 + i)[0].tolist()) for i, length in enumerate(lengths)]
    found = decode(model, sources, decoding, limit=lambda n: 9, done=done.append)
    for source, ids in zip(sources, found, strict=True):
        prefix = Prefix(model, torch.tensor([source]), cache=KVCache(model.config.n_decoder_layers))
        if isinstance(decoding, Greedy):
            (expected,) = collect(greedy(prefix, max_new=9))
        else:
            *_, last = beam_search(prefix, size=decoding.size, alpha=decoding.length_penalty, max_new=9)
            expected = last[0][0].ids
        assert tuple(ids) == tuple(expected)
    assert sum(done) == 23
    assert max(done) <= 20 // (decoding.size if isinstance(decoding, Beam) else 1)
    assert len({tuple(ids) for ids in found}) > 3


@pytest.mark.parametrize(
    ("model", "decoding"), [("tiny", Greedy()), ("shared", Beam(size=4)), ("prompts", Beam(size=3))]
)
def test_outputs_are_what_the_app_shows_and_training_limits_what_cannot_stop(
    checkpoint_folder, shared_checkpoint_folder, pairs_file, tmp_path, model, decoding
):
    if model == "prompts":  # which are continued
        checkpoint = alone("decoder", tmp_path)
    else:
        checkpoint = load(checkpoint_folder if model == "tiny" else shared_checkpoint_folder)
    scoring = evaluate(checkpoint, read_held_out(pairs_file(), checkpoint.config), decoding)
    shown = [checkpoint.run(checkpoint.query(source, decoding=decoding)) for source in SOURCES]
    assert scoring.outputs == tuple(trace.output_text for trace in shown)
    assert scoring.n_cut == sum(trace.stop_reason == "length limit" for trace in shown)
    assert len({*scoring.outputs}) > 1
    how = checkpoint.src_tokenizer, checkpoint.tgt_tokenizer, checkpoint.config
    fitting = [pair for pair in PAIRS if encode_pairs([pair], *how)]
    examples = encode_pairs(fitting, *how)
    longest = max(len(one.tgt) if model == "prompts" else 2 * len(one.src) for one in examples)
    limit = min(longest + 10, checkpoint.config.max_len)
    limited = [checkpoint.run(checkpoint.query(source, max_new=limit)).output_text for source, _ in fitting]
    assert translate(checkpoint.model, checkpoint.tgt_tokenizer, examples) == limited


def test_scores_are_sacrebleus(checkpoint_folder, spoil, pairs_file):
    held_out = read_held_out(pairs_file())
    scoring = evaluate(load(checkpoint_folder), held_out, Greedy())
    outputs, references = list(scoring.outputs), [list(TARGETS)]
    assert scoring.scores.chrf == pytest.approx(sacrebleu.corpus_chrf(outputs, references).score)
    assert scoring.scores.bleu == pytest.approx(sacrebleu.corpus_bleu(outputs, references).score)
    assert scoring.sentences[2].chrf == pytest.approx(sacrebleu.sentence_chrf(outputs[2], [TARGETS[2]]).score)
    same = score(TARGETS, TARGETS)
    assert (same.bleu, same.chrf, same.exact) == (pytest.approx(100), pytest.approx(100), 1.0)
    assert "tok:13a" in same.signature
    assert "nc:6" in same.chrf_signature
    assert score([TARGETS[0], "no"], TARGETS[:2]).exact == 0.5
    chinese = evaluate(load(spoil("card.json", b'{"target_code": "zh-Hans"}')), held_out, Greedy())
    assert "tok:zh" in chinese.scores.signature
    assert score(["我喜欢猫。"], ["我喜欢猫。"], words="zh").bleu == pytest.approx(100)


def test_what_the_model_cannot_read_counts_as_empty(checkpoint_folder, pairs_file):
    sources, done = (SOURCES[0], "ba lo " * 30, "\u3000x" * 2000, SOURCES[1]), []
    held_out = read_held_out(pairs_file(zip(sources, "abcd", strict=True)))
    scoring = evaluate(load(checkpoint_folder), held_out, Greedy(), done=done.append)
    assert (scoring.n_unread, sum(done)) == (2, 4)
    assert scoring.outputs[1:3] == ("", "")
    assert all((scoring.outputs[0], scoring.outputs[3]))
    assert scoring.sentences[1].chrf == 0


def test_the_worst_sentences_come_first_and_no_cell_is_a_formula(checkpoint_folder, tmp_path):
    path = tmp_path / "dev.tsv"
    path.write_text('\n=1+1\t-lake\n\nba lo\t@a, "b"\nmi ta\tthe moon\n', encoding="utf-8")
    held_out = read_held_out(path)
    assert held_out.lines == (2, 4, 5)
    scoring = evaluate(load(checkpoint_folder), held_out, Greedy())
    (rows, everything) = (
        list(csv.DictReader(io.StringIO(worst_csv(held_out, [scoring] * times, count=count))))
        for times, count in ((1, 2), (2, 9))
    )
    ranked = sorted(zip(scoring.sentences, held_out.lines, strict=True), key=lambda row: (row[0].chrf, row[0].bleu))
    assert [int(row["line"]) for row in rows] == [line for _, line in ranked[:2]]
    assert len(everything) == 6
    by_line = {row["line"]: row for row in everything}
    assert (by_line["2"]["source"], by_line["2"]["reference"]) == ("'=1+1", "'-lake")
    assert (by_line["4"]["source"], by_line["4"]["reference"]) == ("ba lo", '\'@a, "b"')
    assert by_line["5"]["decoding"] == "greedy"
    assert float(by_line["5"]["chrf"]) == pytest.approx(scoring.sentences[2].chrf, abs=0.005)


def test_a_record_says_all_that_decides_it(checkpoint_folder, pairs_file):
    held_out = read_held_out(pairs_file(), max_pairs=4)
    record = score_record(held_out, evaluate(load(checkpoint_folder), held_out, Beam(size=2)))
    expected = {"file": "dev.tsv", "pairs": 4, "max_pairs": 4, "decoding": "beam", "beam_size": 2}
    assert record.items() >= (expected | {"length_penalty": 0.6, "max_new": 32}).items()
    assert json.loads(json.dumps(record)) == record
    whole = read_held_out(pairs_file())
    assert "max_pairs" not in score_record(whole, evaluate(load(checkpoint_folder), whole, Greedy()))


def test_the_command_scores_and_records_and_replaces_nothing_that_it_did_not_write(
    checkpoint_folder, grown, pairs_file, tmp_path, capsys
):
    folder, worst = tmp_path / "tiny", tmp_path / "worst.csv"
    shutil.copytree(checkpoint_folder, folder)
    card, pairs = (folder / "card.json").read_bytes(), pairs_file()
    content = pairs.read_bytes()
    assert main(["evaluate", str(folder), "--pairs", str(pairs), "--greedy"]) == 0
    assert "beam" not in capsys.readouterr().out
    assert (folder / "card.json").read_bytes() == card
    assert main(["evaluate", str(folder), "--pairs", str(pairs), "--greedy", "--worst", str(pairs)]) == 2
    assert "was not written by --worst, so it will not be overwritten; choose another file." in capsys.readouterr().err
    assert pairs.read_bytes() == content
    gold = [tmp_path / "a", tmp_path / "b", tmp_path / "links"]
    for path, text in zip(gold, ("ba lo\n", "the red fox\n", "0-0 1p1 1-2\n"), strict=True):
        path.write_text(text)
    arguments = ["evaluate", str(folder), "--pairs", str(pairs), "--worst", str(worst), "--worst-count", "2"]
    assert main([*arguments, "--alignments", *map(str, gold), "--record"]) == 0
    printed = capsys.readouterr().out
    for text in ("greedy: BLEU", "beam 5, length penalty 0.6: BLEU", "nrefs:1|", "decoder layer", "6 of 6 pairs"):
        assert text in printed
    assert worst.read_bytes().startswith(b"\xef\xbb\xbfdecoding,line,")
    assert len(worst.read_text().splitlines()) == 5
    assert main(arguments) == 0  # replaces its own
    found = [score.get("decoding") or score["measure"] for score in load(folder).card.scores]
    assert found == ["greedy", "beam", "alignment error rate"]
    card = (grown / "card.json").read_bytes()
    assert main(["evaluate", f"{grown}@219", "--pairs", str(pairs_file(PAIRS[:1])), "--record"]) != 0
    assert "leave out --record" in capsys.readouterr().err
    assert (grown / "card.json").read_bytes() == card  # a snapshot has none of its own


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "nothing to score"),
        (["--pairs", "missing.tsv"], "missing.tsv: cannot be read"),
        (["--pairs", "{pairs}", "--beam", "17"], "beam size: found 17, expected a whole number from 1 to 16"),
        (["--pairs", "{pairs}", "--beam", "2", "--length-penalty", "nan"], "length_penalty: found nan"),
        (["--pairs", "{pairs}", "--max-pairs", "0"], "--max-pairs is 0"),
        (["--pairs", "{pairs}", "--worst", "nowhere/worst.csv"], "its folder does not exist"),
        (["--pairs", "{pairs}", "--worst", "w.csv", "--worst-count", "0"], "--worst-count is 0"),
        (["--worst", "w.csv", "--alignments", "{pairs}", "{pairs}", "{pairs}"], "--worst needs --pairs"),
        (["--by-length", "x.csv", "--alignments", "a", "b", "c"], "--by-length needs --pairs FILE"),
        (["--alignments", "{pairs}", "{pairs}", "{pairs}"], "is not a link"),
        (["--pairs", "{pairs}", "--device", "cuda"], "torch finds no CUDA device here"),
    ],
)
def test_bad_input_is_one_sentence(arguments, message, checkpoint_folder, pairs_file, monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    pairs = str(pairs_file())
    status = main(["evaluate", str(checkpoint_folder), *(word.format(pairs=pairs) for word in arguments)])
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert status == 2
    assert error.startswith("error: ")
    assert message in error


@pytest.mark.parametrize("decoding", [Greedy(), Beam(size=2)])
def test_decoding_for_a_score_names_the_first_site_of_what_is_not_finite(hidden, decoding):
    sources = [hidden.src_tokenizer.encode(text).ids for text in (SOURCE, "mi")]
    with pytest.raises(QueryError, match=r"decoder\.0\.cross_attn\.queries"):
        decode(hidden.model, sources, decoding, limit=lambda n: 5)


SHIPPED = Path(__file__).parents[4] / "checkpoints"
WORDS = ("abc", "xyz", "bb", "glass", "abcdefghijkl", "lkjihgfedcba", "abcdefghijklm" * 4)


def test_each_is_what_runs_of_its_sentences_give_alone():
    checkpoint = load(SHIPPED / "reverse@219", inside=SHIPPED)  # which is right sometimes
    found = {one.length: one for one in scores_by_length(checkpoint, [(word, word[::-1]) for word in WORDS])}
    assert list(found) == [2, 3, 5, 12]  # the last one is too long for this model
    for length, one in found.items():
        words = [word for word in WORDS if len(word) == length]
        runs = [checkpoint.run(checkpoint.query(word)) for word in words]
        losses = [judge(checkpoint, run.query, word[::-1]).losses for run, word in zip(runs, words, strict=True)]
        assert one.pairs == len(words)
        assert one.exact == np.mean([run.output_text == word[::-1] for run, word in zip(runs, words, strict=True)])
        assert one.loss == pytest.approx(np.concatenate(losses).mean(), rel=1e-4)
        assert one.seen == -1  # its card is older
    assert len({one.exact for one in found.values()}) > 1


def test_a_training_says_its_longest_source_and_the_command_what_is_longer(tmp_path, capsys):
    write_task("reverse", tmp_path, train=300, dev=12, test=2, longest=4)
    job = with_settings(make_job(tmp_path), epochs=1)
    train(job)
    assert load(job.out).card.training["longest"] == 4
    (tmp_path / "far.tsv").write_text("ab\tba\nabababab\tbabababa\n")
    words = ["evaluate", str(job.out), "--pairs", str(tmp_path / "far.tsv"), "--by-length", str(tmp_path / "l.csv")]
    assert main(words) == 0
    said = capsys.readouterr().out.splitlines()[-2:]
    assert [line.endswith("longer than in training") for line in said] == [False, True]
    found = read_lengths(tmp_path / "l.csv")
    assert [(one.length, one.pairs, one.seen) for one in found] == [(2, 1, 1), (8, 1, 0)]
    write_lengths(tmp_path / "again.csv", found)
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "l.csv").read_bytes()
    assert read_lengths(tmp_path / "none.csv") == []


def test_a_model_that_writes_nothing_and_pairs_that_it_cannot_read_are_refused():
    for model, said in (("palindrome", "an encoder-only model writes nothing"), ("reverse", "cannot read any of the")):
        with pytest.raises(DataError, match=f"{model}: {said}"):
            scores_by_length(load(SHIPPED / model), [("a" * 40, "a" * 40)])
