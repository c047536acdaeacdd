"""Scores of a corpus run: exactly those of the whole corpus at once, and intervals that cover what they should."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sacrebleu

from glassformer.extensions.corpus.library import lines, scores, shards
from glassformer.extensions.corpus.library.tables import SENTENCES, CorpusOptions
from glassformer.extensions.training.library.scoring import decoding_name, evaluate, read_held_out
from tests.conftest import SOURCES, TARGETS
from transformer.analysis.alignment import read_gold, score_alignment
from transformer.analysis.chrf import usual_words
from transformer.analysis.sampled_outputs import interval
from transformer.runs.query import Greedy

WORDS = ["the", "red", "fox", "sees", "a", "small", "lake", ",", "and", "swims", "in", "it", "."]


@pytest.fixture
def outputs():
    """Sixty references, and outputs that have some of their words."""
    rng = np.random.default_rng(1)
    references = [" ".join(rng.choice(WORDS, rng.integers(3, 15))) for _ in range(60)]
    found = [" ".join(word for word in one.split() if rng.random() < 0.8) or "the" for one in references]
    return found, references


def write(folder, rows, *, size):
    for number, start in enumerate(range(0, len(rows), size)):
        part = [{"line": start + i + 1, **row} for i, row in enumerate(rows[start : start + size])]
        pq.write_table(pa.Table.from_pylist(part, schema=SENTENCES), folder / f"sentences-{number:06}.parquet")
        (folder / f"rollup-{number:06}.parquet").touch()


def row(output, reference):
    bleu, chrf = sacrebleu.BLEU(), sacrebleu.CHRF()
    (words,), (letters,) = (metric._extract_corpus_statistics([output], [[reference]]) for metric in (bleu, chrf))
    n = len(reference)
    return {"bleu": words, "chrf": letters, "log_prob": -0.5 * n, "n_target": n, "exact": output == reference}


def test_bleu_and_chrf_are_sacrebleus_for_the_whole_corpus(outputs, tmp_path):
    write(tmp_path, [row(*pair) for pair in zip(*outputs, strict=True)], size=7)
    found, (written, references) = scores.scores(tmp_path), outputs
    assert found.bleu.value == sacrebleu.BLEU().corpus_score(written, [references]).score
    assert found.chrf.value == sacrebleu.CHRF().corpus_score(written, [references]).score
    assert found.loss.value == 0.5
    assert found.exact.value == np.mean([a == b for a, b in zip(written, references, strict=True)])
    assert found.bleu.low < found.bleu.value < found.bleu.high


def test_an_interval_is_that_of_the_plain_bootstrap_and_repeats(outputs, tmp_path):
    write(tmp_path, [row(*pair) for pair in zip(*outputs, strict=True)], size=7)
    found, (written, references) = scores.scores(tmp_path, n_draws=4000), outputs
    assert found == scores.scores(tmp_path, n_draws=4000)
    assert found.chrf != scores.scores(tmp_path, n_draws=4000, seed=1).chrf
    exact = np.array([a == b for a, b in zip(written, references, strict=True)])
    assert (found.exact.low, found.exact.high) == interval(int(exact.sum()), 60)
    plain = exact[np.random.default_rng(5).integers(60, size=(20_000, 60))].mean(axis=1)
    assert [found.exact.low, found.exact.high] == pytest.approx(np.percentile(plain, [2.5, 97.5]), abs=0.04)


@pytest.mark.parametrize("cells", [(54, 0, 0, 0), (1, 97, 1, 1), (20, 5, 9, 6), (0, 30, 0, 0)])
def test_a_difference_of_shares_is_symmetric_and_never_without_width(cells):
    _, first, second, _ = cells
    one = np.repeat([True, True, False, False], cells)
    other = np.repeat([True, False, True, False], cells)
    gap, back = scores._difference_of_shares(one, other), scores._difference_of_shares(other, one)
    assert gap.value == pytest.approx((second - first) / sum(cells))
    assert (back.low, back.high) == pytest.approx((-gap.high, -gap.low))
    assert -1 <= gap.low < gap.value + 1e-12
    assert gap.value - 1e-12 < gap.high <= 1
    assert gap.high - gap.low > 0.01


def test_newcombes_own_example():
    """Table II of the paper, the first row: 36, 12, 2, 0 gives 0.0569 to 0.3404."""
    one, other = (np.repeat(pattern, (36, 12, 2, 0)) for pattern in ([1, 1, 0, 0], [1, 0, 1, 0]))
    gap = scores._difference_of_shares(other > 0, one > 0)
    assert (gap.low, gap.high) == pytest.approx((0.0569, 0.3404), abs=2e-4)


def test_the_draws_of_shards_together_are_draws_from_all_lines():
    values = np.arange(30.0)[:, None] ** 2
    shards_of = [values[:3], values[3:20], values[20:]]
    sums, drawn = scores._resampled(lambda: shards_of, n_draws=20_000, seed=0)
    assert sums == values.sum()
    assert drawn.mean() == pytest.approx(values.sum(), rel=0.01)
    assert drawn.std() == pytest.approx(np.sqrt(30) * values.std(), rel=0.03)


def test_lines_that_were_not_measured_count_by_their_reason_and_a_shard_that_is_being_written_does_not(
    outputs, tmp_path
):
    rows = [row(*pair) for pair in zip(*outputs, strict=True)]
    write(tmp_path, [*rows, {"problem": "too long"}, {"problem": "empty"}, {"problem": "too long"}], size=10)
    found = scores.scores(tmp_path)
    assert found.n_lines == 60
    assert list(found.left_out.items()) == [("too long", 2), ("empty", 1)]
    assert found.heads == ()
    (tmp_path / "rollup-000005.parquet").unlink()
    assert scores.scores(tmp_path).n_lines == 50


def test_what_no_line_has_is_no_score(outputs, tmp_path):
    (tmp_path / "one").mkdir()
    write(tmp_path / "one", [row(outputs[0][0], outputs[1][0]), {"n_source": 3}], size=2)
    found = scores.scores(tmp_path / "one").chrf
    assert found.low == found.value == found.high > 0  # a draw of lines without references does not count
    write(tmp_path, [{"n_source": 3}, {"problem": "empty"}], size=1)
    found = scores.scores(tmp_path)
    assert (found.n_lines, found.loss, found.exact, found.bleu, found.chrf) == (1, None, None, None, None)
    (tmp_path / "begun").mkdir()
    found = scores.scores(tmp_path / "begun")
    assert (found.n_lines, found.loss, found.heads, found.left_out) == (0, None, (), {})


def measured(checkpoint, folder, corpus, options, tmp_path):
    run = shards.plan(checkpoint, folder, corpus, options, out=tmp_path)
    with shards.claimed(run):
        for shard in run.missing():
            run.write(shard.number, run.job.files(shard))
    return scores.scores(run.folder)


def test_a_decoded_run_scores_as_evaluate_does(checkpoint, checkpoint_folder, tmp_path):
    file = tmp_path / "pairs.tsv"
    file.write_text("".join(f"{a}\t{b}\n" for a, b in zip(SOURCES, TARGETS, strict=True)), encoding="utf-8")
    found = measured(checkpoint, checkpoint_folder, lines.pairs(file), CorpusOptions(decode=True, shard=4), tmp_path)
    expected = evaluate(checkpoint, read_held_out(file), Greedy()).scores
    assert (found.bleu.value, found.chrf.value, found.exact.value) == (expected.bleu, expected.chrf, expected.exact)
    assert decoding_name(Greedy()) == "greedy"
    assert usual_words(checkpoint.card.target_code) == "13a"


def test_error_rates_are_those_of_evaluate(checkpoint, checkpoint_folder, tmp_path):
    files = [tmp_path / name for name in ("src", "tgt", "gold")]
    links = ["".join(f"{i}-{i} " for i in range(2)) + "2p0" for _ in SOURCES]
    words = [["ba mi lo" for _ in SOURCES], [" ".join(one.split()[:2]) for one in TARGETS], links]
    words[0][1] = "ta lo mi ba"
    for path, rows in zip(files, words, strict=True):
        path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    corpus = lines.aligned(files, source_text="spaced", target_text="spaced")
    found = measured(checkpoint, checkpoint_folder, corpus, CorpusOptions(shard=4), tmp_path)
    whole = score_alignment(checkpoint, read_gold(*files), source_text="spaced", target_text="spaced")
    (run,) = (path for path in tmp_path.iterdir() if path.is_dir())
    assert scores.diagonal(run, corpus.gold) == whole.diagonal
    expected = whole.heads
    assert len(found.heads) == expected[0].size
    rows = pq.read_table(run / "heads-000000.parquet").to_pandas()
    assert (rows.links.isna() == (rows.kind != "cross")).all()
    for one in found.heads:
        predicts, reads = expected[:, one.layer - 1, one.head - 1]
        assert (one.predicts.value, one.reads.value) == (predicts, reads)
        assert one.predicts.low <= predicts <= one.predicts.high
