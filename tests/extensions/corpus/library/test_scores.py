"""Scores of a corpus run, and of two side by side, are those of the whole at once, with intervals that cover them."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sacrebleu

from glassformer.extensions.corpus.library import lines, queries, scores, shards, tables
from glassformer.extensions.corpus.library.folder import ABOUT, open_run
from glassformer.extensions.corpus.library.tables import SENTENCES, CorpusOptions
from glassformer.extensions.training.library.held_out_scores import decoding_name, evaluate, read_held_out
from tests.conftest import SOURCES, TARGETS
from tests.extensions.corpus.library.made_runs import write_run
from transformer.analysis.alignment import read_gold, score_alignment
from transformer.analysis.chrf import usual_words
from transformer.analysis.sampled_outputs import interval
from transformer.errors import DataError, QueryError
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


def test_bleu_and_chrf_are_sacrebleus_for_the_whole_corpus_with_intervals_of_the_plain_bootstrap(outputs, tmp_path):
    write(tmp_path, [row(*pair) for pair in zip(*outputs, strict=True)], size=7)
    found, (written, references) = scores.scores(tmp_path, n_draws=2000), outputs
    assert found.bleu.value == sacrebleu.BLEU().corpus_score(written, [references]).score
    assert found.chrf.value == sacrebleu.CHRF().corpus_score(written, [references]).score
    assert found.loss.value == 0.5
    assert found.bleu.low < found.bleu.value < found.bleu.high
    assert found == scores.scores(tmp_path, n_draws=2000)
    assert found.chrf != scores.scores(tmp_path, n_draws=2000, seed=1).chrf
    exact = np.array([a == b for a, b in zip(written, references, strict=True)])
    assert found.exact.value == exact.mean()
    assert (found.exact.low, found.exact.high) == interval(int(exact.sum()), 60)
    plain = exact[np.random.default_rng(5).integers(60, size=(20_000, 60))].mean(axis=1)
    assert [found.exact.low, found.exact.high] == pytest.approx(np.percentile(plain, [2.5, 97.5]), abs=0.04)


def test_a_difference_of_shares_is_symmetric_never_without_width_and_that_of_newcombes_example():
    """Table II of his paper, the first row: 36, 12, 2, 0 gives 0.0569 to 0.3404."""
    for cells in ((54, 0, 0, 0), (1, 97, 1, 1), (20, 5, 9, 6), (0, 30, 0, 0), (36, 12, 2, 0)):
        one, other = (np.repeat(pattern, cells) > 0 for pattern in ([1, 1, 0, 0], [1, 0, 1, 0]))
        gap, back = scores._difference_of_shares(one, other), scores._difference_of_shares(other, one)
        assert gap.value == pytest.approx((cells[2] - cells[1]) / sum(cells))
        assert (back.low, back.high) == pytest.approx((-gap.high, -gap.low))
        assert -1 <= gap.low < gap.value + 1e-12
        assert gap.value - 1e-12 < gap.high <= 1
        assert gap.high - gap.low > 0.01
    assert (back.low, back.high) == pytest.approx((0.0569, 0.3404), abs=2e-4)


def test_the_draws_of_shards_together_are_draws_from_all_lines():
    values = np.arange(30.0)[:, None] ** 2
    shards_of = [values[:3], values[3:20], values[20:]]
    sums, drawn = scores._resampled(lambda: shards_of, n_draws=20_000, seed=0)
    assert sums == values.sum()
    assert drawn.mean() == pytest.approx(values.sum(), rel=0.01)
    assert drawn.std() == pytest.approx(np.sqrt(30) * values.std(), rel=0.03)


def test_lines_that_were_not_measured_count_by_their_reason_and_what_no_line_has_is_no_score(outputs, tmp_path):
    def of(*rows, size):
        made = tmp_path / str(len(list(tmp_path.iterdir())))
        made.mkdir()
        write(made, rows, size=size)
        return made, scores.scores(made)

    rows = [row(*pair) for pair in zip(*outputs, strict=True)]
    made, found = of(*rows, {"problem": "too long"}, {"problem": "empty"}, {"problem": "too long"}, size=10)
    assert (found.n_lines, found.heads) == (60, ())
    assert list(found.left_out.items()) == [("too long", 2), ("empty", 1)]
    (made / "rollup-000005.parquet").unlink()  # a shard that is being written does not count
    assert scores.scores(made).n_lines == 50
    chrf = of(rows[0], {"n_source": 3}, size=2)[1].chrf
    assert chrf.low == chrf.value == chrf.high > 0  # a draw of lines without references does not count
    found = of({"n_source": 3}, {"problem": "empty"}, size=1)[1]
    assert (found.n_lines, found.loss, found.exact, found.bleu, found.chrf) == (1, None, None, None, None)
    found = of(size=1)[1]
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


HEAD = ["kind", "layer", "head"]


@pytest.fixture
def runs(tmp_path):
    """Two runs, of which the second has a head more in each layer and lacks the last 100 lines."""
    first = write_run(tmp_path, seed=1, per_layer=2, layers=2)
    return open_run(first), open_run(write_run(tmp_path, seed=2, per_layer=3, layers=2, done=2))


def table(run, name="heads"):
    parts = [pq.read_table(run.folder / file).to_pandas() for file in run.names(name)]
    return pd.concat(parts).astype({"kind": str} if name == "heads" else {})


def joined(runs, measure):
    """Both tables of heads by pandas, with the difference of a measure."""
    first, second = (table(run)[["line", *HEAD, measure]].dropna() for run in runs)
    found = first.merge(second, on=["line", *HEAD], suffixes=("_1", "_2"))
    return found.assign(gap=found[f"{measure}_2"].astype(float) - found[f"{measure}_1"].astype(float))


def test_differences_and_the_lines_that_differ_most_are_those_of_pandas(runs):
    found, expected = scores.by_head(*runs, "previous"), joined(runs, "previous").groupby(HEAD)
    assert list(found) == list(expected.groups)
    assert {head for _, _, head in found} == {1, 2}
    for one, (_, rows) in zip(found.values(), expected, strict=True):
        mean, reach = rows.gap.mean(), 1.959964 * rows.gap.std() / len(rows) ** 0.5
        assert 140 < one.n == len(rows) < 180
        assert (one.mean, one.low, one.high) == pytest.approx((mean, mean - reach, mean + reach))
        assert one.excludes_0 == (abs(mean) > reach)
    back = scores.by_head(*runs[::-1], "previous")
    assert all(back[head].mean == pytest.approx(-found[head].mean) for head in found)
    most = scores.most_different(*runs, "distance", ("cross", 2, 1), 4)
    rows = joined(runs, "distance").query("kind == 'cross' and layer == 2 and head == 1")
    rows = rows.iloc[np.argsort(-rows.gap.abs())][:4]
    assert [one.line for one in most] == rows.line.tolist()
    assert [one.values[2] for one in most] == pytest.approx(rows.distance_2.tolist())
    assert all(one.source.startswith(f"Line {one.line}: ") for one in most)


def test_an_interval_holds_the_difference_as_often_as_it_says():
    gaps = np.random.default_rng(0).normal(size=(2000, 60))
    both = zip(gaps.mean(axis=1), gaps.std(axis=1, ddof=1), strict=True)
    outside = sum(scores.difference(60, 0.0, m, m, s).excludes_0 for m, s in both)
    assert 0.03 < outside / 2000 < 0.07
    assert not scores.difference(1, 0.0, 1.0, 1.0, None).excludes_0


def test_numbers_that_are_not_finite_do_not_count(runs):
    run, file = runs[0], runs[0].folder / runs[0].names("heads")[0]
    expected = scores.by_head(run, run, "effect")[("cross", 1, 1)]
    rows = pq.read_table(file).to_pandas()
    rows.loc[rows.query("kind == 'cross' and layer == 1 and head == 1").index[0], "effect"] = np.inf
    pq.write_table(pa.Table.from_pandas(rows, schema=tables.HEADS, preserve_index=False), file)
    again = open_run(run.folder)
    queries._database.cache_clear()
    found = scores.by_head(again, again, "effect")[("cross", 1, 1)]
    assert (found.n, found.mean) == (expected.n - 1, 0)


def test_scores_are_of_the_lines_that_both_have_and_of_the_same_draws(runs):
    both = pd.merge(*(table(run, "sentences") for run in runs), on="line", suffixes=("_1", "_2"))
    both = both.dropna(subset=["log_prob_1"]).astype({"log_prob_1": float, "log_prob_2": float})
    found, alike = scores.of_log_prob(*runs)  # and whether losses can be compared
    assert (found.n, alike) == (len(both), False) == (196, False)
    assert found.mean == pytest.approx((both.log_prob_2 - both.log_prob_1).mean())
    assert scores.of_log_prob(runs[0], runs[0])[1]
    loss = scores.paired(*(run.folder for run in runs), n_draws=300)["loss"]
    losses = [-both[f"log_prob_{n}"].sum() / both[f"n_target_{n}"].sum() for n in (1, 2)]
    assert [loss.first, loss.second] == pytest.approx(losses)
    assert loss.difference.value == pytest.approx(losses[1] - losses[0], rel=1e-4)
    assert loss.difference.low < losses[1] - losses[0] < loss.difference.high
    same = scores.paired(runs[0].folder, runs[0].folder, n_draws=50)["exact"].difference
    assert same.low < same.value == 0 < same.high  # of the same lines, but they are a choice
    assert same.high - same.low < 0.02


def test_what_cannot_be_compared_is_said(runs):
    with pytest.raises(QueryError, match="not a measure of a corpus run"):
        scores.by_head(*runs, 'x" FROM y')
    file = runs[1].folder / ABOUT
    about = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps(about | {"options": about["options"] | {"decode": True}}), encoding="utf-8")
    with pytest.raises(DataError, match=r"cannot be compared: .*--decode.* Measure both in the same way"):
        scores.paired(*(run.folder for run in runs), n_draws=2)
    file.write_text(json.dumps(about | {"sha256": "1" * 64}), encoding="utf-8")
    with pytest.raises(DataError, match="do not have the same lines"):
        scores.by_head(runs[0], open_run(runs[1].folder), "distance")
