"""A question about a run finds what plain pandas finds, and reaches nothing but the files of the run."""

import unicodedata

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from glassformer.extensions.corpus.library import folder, queries
from glassformer.extensions.corpus.library.queries import LINE_NAMES, Asked, Contains, Disagrees, LooksAt, OfSentence
from glassformer.extensions.corpus.library.tables import NAMES, CorpusOptions
from tests.extensions.corpus.library.made_runs import LACKING, write_run
from tests.extensions.corpus.library.test_folder import spoil_middle
from transformer.errors import DataError, QueryError

LINES = 620
HEAD = ("encoder", 1, 2)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return folder.open_run(write_run(tmp_path_factory.mktemp("[a]*?") / "o'ut", lines=LINES, layers=2, per_layer=2))


@pytest.fixture(scope="module")
def sentences(run):
    return read(run, "sentences").set_index("line")


@pytest.fixture(scope="module")
def heads(run):
    return read(run, "heads")


def read(run, table):
    return pd.concat([pq.read_table(path).to_pandas() for path in folder.check(run, table)], ignore_index=True)


def of_head(heads, kind, layer, head):
    return heads[(heads["kind"] == kind) & (heads["layer"] == layer) & (heads["head"] == head)].set_index("line")


def lines_of(found):
    return [hit.line for hit in found]


def same(found, frame, values=()):
    """Whether the page that was found are the lines of a frame, in its order, with its numbers."""
    assert found.total == len(frame)
    assert lines_of(found.hits) == frame.index[: len(found.hits)].tolist()
    for place, value in enumerate(values):
        numbers = [hit.values[place] for hit in found.hits]
        assert numbers == pytest.approx(value.loc[lines_of(found.hits)].tolist(), rel=1e-6)


def sort(frame, by, *, ascending):
    return frame.sort_index().sort_values(by, ascending=ascending, kind="stable")


# ---------------------------------------------------------------- a head


def test_extremes_have_their_texts_and_their_place(run, heads, sentences):
    for kind, name in (("encoder", "entropy"), ("decoder", "previous"), ("cross", "diagonal"), ("cross", "self")):
        rows = of_head(heads, kind, 2, 1).dropna(subset=[name])
        for most in (True, False):
            found = queries.extremes(run, kind, 2, 1, name, most=most, n=7)
            assert lines_of(found) == sort(rows, name, ascending=not most).index[:7].tolist()
            assert [hit.values for hit in found] == [(rows[name][hit.line],) for hit in found]
            assert bool(found) == (name not in LACKING[kind])
    rows = of_head(heads, "cross", 1, 1)
    for hit in queries.extremes(run, "cross", 1, 1, "peak", n=3):
        row, text = rows.loc[hit.line], sentences.loc[hit.line]
        numbers = row[["peak_query", "peak_key", "peak_step", "peak_query_piece", "peak_key_piece", "peak"]]
        assert hit.place == queries.PeakPosition("cross", 1, 1, *numbers)
        assert (hit.source, hit.output) == (text["source"], None)
        assert hit.target == (None if hit.line % 7 == 0 else text["target"])
        assert (hit.loss, hit.worst_rank, hit.exact) == (text["loss"], text["worst_rank"], text["exact"])
    assert queries.extremes(run, "encoder", 1, 1, "peak", n=1)[0].place.step is None


def test_a_line(run, heads, sentences):
    for number in (1, 101, LINES):
        whole = queries.line(run, number)
        assert whole.sentence["source"] == whole.hit.source == sentences["source"][number]
        rows = heads[heads["line"] == number].set_index(["kind", "layer", "head"])
        assert len(whole.heads) == len(rows) == 12
        for name in NAMES:
            found = {(one.place.kind, one.place.layer, one.place.head): one.values[name] for one in whole.heads}
            assert {key: value for key, value in found.items() if value is not None} == rows[name].dropna().to_dict()
    whole = queries.line(run, 50)  # was not measured
    assert (whole.sentence["problem"], whole.heads, whole.hit.loss) == ("too long", (), None)
    assert [queries.line(run, other) for other in (0, -5, LINES + 1, 10**12)] == [None] * 4


# ---------------------------------------------------------------- searching


@pytest.mark.parametrize(("least", "most"), [(0.7, None), (None, 0.3), (0.3, 0.7), (None, None), (2.0, None)])
def test_a_measure_between_limits(run, heads, least, most):
    rows = of_head(heads, *HEAD)
    lowest, highest = (np.float32(limit) for limit in (-9 if least is None else least, 9 if most is None else most))
    rows = rows[(rows["largest"] >= lowest) & (rows["largest"] <= highest)]  # tenths, so limits are met exactly
    wanted = sort(rows, "largest", ascending=least is None and most is not None)
    same(queries.search(run, [Asked(*HEAD, "largest", least, most)]), wanted, [rows["largest"]])


def is_punctuation(piece):
    text = piece.replace("▁", "")
    return bool(text) and all(unicodedata.category(sign)[0] in "PS" for sign in text)


@pytest.mark.parametrize("piece", [",", "▁the", "▁", "了", "nowhere", None])
def test_a_head_looks_at_a_piece_or_at_punctuation(run, heads, piece):
    rows = of_head(heads, *HEAD)
    pieces = rows["peak_key_piece"].astype(str)
    at_it = pieces.map(is_punctuation) if piece is None else pieces.str.replace("▁", "") == piece.replace("▁", "")
    rows = rows[(rows["peak"] >= np.float32(0.1)) & at_it]
    asked = LooksAt(*HEAD, 0.1) if piece is None else LooksAt(*HEAD, 0.1, piece)
    same(queries.search(run, [asked]), sort(rows, "peak", ascending=False), [rows["peak"]])


def test_numbers_and_texts_of_lines(run, sentences):
    for name in LINE_NAMES:
        rows = sentences.dropna(subset=[name])
        least = float(rows[name].median())
        found = queries.search(run, [OfSentence(name, at_least=least)])
        same(found, sort(rows[rows[name] >= least], name, ascending=False), [rows[name]])
        found = queries.search(run, [OfSentence(name, at_most=least)])
        same(found, sort(rows[rows[name] <= least], name, ascending=True), [rows[name]])
    for side in ("source", "target"):
        for text in ("DOG", "了", "%", ""):
            holds = sentences[side].str.lower().str.contains(text.lower(), regex=False, na=False)
            same(queries.search(run, [Contains(side, text)]), sentences[holds])


@pytest.mark.parametrize(
    ("name", "sign", "attends_more"), [("norm_share", 1, True), ("largest", 1, False), ("entropy", -1, True)]
)
def test_attention_and_effect_disagree(run, heads, name, sign, attends_more):
    rows = of_head(heads, *HEAD).dropna(subset=[name, "effect"])
    ranks = [(column.rank(method="min") - 1) / (len(rows) - 1) for column in (sign * rows[name], rows["effect"])]
    rows = rows.assign(apart=(ranks[0] - ranks[1]) * (1 if attends_more else -1))
    found = queries.search(run, [Disagrees(*HEAD, name, attends_more=attends_more, at_least=0.4)], n=30)
    assert found.total == (rows["apart"] >= 0.4).sum() > 10
    assert [hit.values[0] for hit in found.hits] == pytest.approx(sorted(rows["apart"], reverse=True)[:30])
    assert [rows["apart"][hit.line] for hit in found.hits] == pytest.approx([hit.values[0] for hit in found.hits])


def test_conditions_meet(run, heads, sentences):
    rows = sentences[sentences["source"].str.contains("dog") & (sentences["worst_rank"] > 5)]
    rows = rows.join(of_head(heads, *HEAD)["entropy"]).join(of_head(heads, "cross", 2, 2)["peak"])
    rows = rows[(rows["entropy"] <= 1.5) & (rows["peak"] >= 0.05)]
    assert len(rows) > 10
    asked = [OfSentence("worst_rank", at_least=6), Asked("cross", 2, 2, "peak", at_least=0.05)]
    found = queries.search(run, [*asked, Asked(*HEAD, "entropy", at_most=1.5), Contains("source", "dog")])
    same(found, sort(rows, "worst_rank", ascending=False), [rows["worst_rank"], rows["peak"], rows["entropy"]])
    assert {hit.values[3] for hit in found.hits} == {None}
    assert {(hit.place.kind, hit.place.layer, hit.place.head) for hit in found.hits} == {("cross", 2, 2)}
    assert [hit.place.weight for hit in found.hits] == [hit.values[1] for hit in found.hits]


def test_pages_follow_each_other(run, sentences):
    asked = [OfSentence("loss", at_least=0.5)]
    whole = queries.search(run, asked, n=10_000)
    pages = [queries.search(run, asked, n=100, offset=offset) for offset in range(0, whole.total, 100)]
    assert [hit for page in pages for hit in page.hits] == list(whole.hits)
    assert {page.total for page in pages} == {whole.total}
    assert queries.search(run, asked, offset=whole.total) == queries.SearchResult(whole.total, ())
    same(queries.search(run, [], n=3), sentences)  # all lines


# ---------------------------------------------------------------- what is refused

INJECTIONS = ("' OR 1=1 --", '" OR ""="', "$n", "$heads", "{0}", "dog\x00", "'; COPY (SELECT 1) TO '/tmp/x'; --")


def test_a_text_is_never_a_query_nor_the_name_of_a_measure(run):
    for text in (*INJECTIONS, "line"):
        for asked in (Contains("target", text), LooksAt(*HEAD, 0.0, text), Asked(text, 1, 1, "peak")):
            assert queries.search(run, [asked]) == queries.SearchResult(0, ()) or text == "line"
        for asked in (Asked(*HEAD, text), OfSentence(text), Contains(text, "a"), Disagrees(*HEAD, text)):
            with pytest.raises(QueryError, match=" is not a measure of a corpus run; there are "):
                queries.search(run, [asked])
        with pytest.raises(QueryError, match="not a measure"):
            queries.extremes(run, *HEAD, text)
    assert queries.search(run, []).total == LINES


def test_effects_that_were_not_measured_are_refused_and_without_duckdb_the_extra_is_named(tmp_path, monkeypatch):
    bare = folder.open_run(write_run(tmp_path, lines=20, options=CorpusOptions(), layers=1, per_layer=1))
    for asked in (Disagrees(*HEAD), Asked(*HEAD, "effect")):
        with pytest.raises(QueryError, match=r"did not measure effects\. Run the corpus command again with --effect\."):
            queries.search(bare, [asked])
    monkeypatch.setattr(queries, "find_spec", lambda name: None)
    with pytest.raises(QueryError, match=r"Install it with pip install 'glassformer\[corpus\]'"):
        queries.line(bare, 1)
    assert not queries.is_installed()
    assert folder.summaries(bare)


def test_tables_that_are_damaged_gone_since_or_do_not_fit_each_other_are_refused(tmp_path):
    def searched(made):
        return queries.search(folder.open_run(made), [Asked(*HEAD, "peak"), Contains("source", "dog")], n=300)

    for table in ("sentences", "heads"):
        made = write_run(tmp_path / table, lines=250, layers=1, per_layer=2)
        spoil_middle(made / f"{table}-000001.parquet")
        with pytest.raises(DataError, match=rf"^{made.name}.*\.$") as caught:
            searched(made)
        assert str(tmp_path) not in str(caught.value)
    made = write_run(tmp_path / "gone", lines=100, layers=1, per_layer=2)
    run = folder.open_run(made)
    queries.extremes(run, *HEAD, "peak")
    (made / "heads-000000.parquet").unlink()
    with pytest.raises(DataError, match=f"^{run.key}: a file is damaged or was replaced"):
        queries.extremes(run, *HEAD, "peak")
    made = write_run(tmp_path, lines=100, layers=1, per_layer=2)
    file = made / "sentences-000000.parquet"
    pq.write_table(pq.read_table(file).slice(1), file)
    with pytest.raises(DataError, match=r"damaged or was replaced \(line 1\)"):
        queries.search(folder.open_run(made), [Asked("cross", 1, 1, "peak")], n=100)


OUTSIDE = (
    "SELECT * FROM read_text('/etc/hostname')", "SELECT * FROM read_csv('/etc/passwd')", "INSTALL httpfs",
    "LOAD httpfs", "ATTACH '/tmp/other.db'", "COPY (SELECT 1) TO '/tmp/written.csv'", "SET threads = 8",
    "SET enable_external_access = true", "SELECT * FROM read_parquet('/tmp/*.parquet')",
    "SELECT * FROM read_parquet('https://example.com/a.parquet')", "SET memory_limit = '9GB'",
)  # fmt: skip


def test_nothing_but_the_files_of_the_run_can_be_reached(run):
    for query in OUTSIDE:
        with pytest.raises(DataError), queries.connected(run) as cursor:
            cursor.execute(query)


def test_the_files_of_another_run_cannot_be_read(run, tmp_path):
    other = folder.open_run(write_run(tmp_path, lines=20, layers=1, per_layer=1))
    count = "SELECT count(*) FROM read_parquet($files)"
    with pytest.raises(DataError, match="PermissionException"):
        queries.fetch(run, count, {"files": queries.paths(other, "heads")})
    with queries.connected(run, other) as cursor:  # unless the question is about both
        files = queries.paths(other, "sentences") + queries.paths(run, "sentences")
        assert cursor.execute(count, {"files": files}).fetchone() == (20 + LINES,)


ENDLESS = "SELECT sum(hash(range)) FROM range(1000000000000)"  # in little memory
LARGE = "SELECT list(range || repeat('x', 1000)) FROM range(3000000)"


def test_a_query_that_takes_too_long_or_needs_too_much_memory_is_stopped(run, monkeypatch):
    with pytest.raises(QueryError, match="too much memory"):
        queries.fetch(run, LARGE, {})
    monkeypatch.setattr(queries, "SECONDS", 0.3)
    with pytest.raises(QueryError, match="took longer than"):
        queries.fetch(run, ENDLESS, {})
    monkeypatch.undo()
    assert queries.search(run, []).total == LINES
