"""Over a corpus: numbers are those of the tables, and a line leads to the map that was measured."""

import json
import shutil
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from glassformer.charts.theme import figure_in
from glassformer.extensions.corpus import corpora, corpus_pictures, open_corpus_run
from glassformer.extensions.corpus.corpus_look import CorpusLook
from glassformer.extensions.corpus.heads import share_below
from glassformer.extensions.corpus.library import folder, queries
from glassformer.extensions.corpus.library.tables import CorpusOptions, Key
from glassformer.extensions.corpus.search import A_PAGE, OfSentence, _saved
from glassformer.runs import loading
from glassformer.state.view import View
from tests.measured_corpus import measure
from tests.pages.conftest import ATTENTION, PAGES, check
from tests.pages.conftest import open_page as open_page
from tests.pages.conftest import shipped_checkpoints_alone as shipped_checkpoints_alone
from tests.pages.reading import address, charts_of, sentences, told, view
from tests.pages.test_pseudo_language import complaints, data_of_models, told_by_models, words_of
from transformer.model.anatomy import anatomy
from transformer.runs.running import run as run_query

CORPUS = PAGES["corpus"]
HEAD = {"kind": "cross", "layer": 2, "head": 1}
LETTERS = "abcdefghij"
N = 60


@pytest.fixture(scope="session")
def measured(tmp_path_factory):
    """Two runs on the model that reverses letters: with the reference forced and with its own output, by that."""
    draws = np.random.default_rng(3)
    words = ["".join(draws.choice(list(LETTERS), draws.integers(2, 12))) for _ in range(N)]
    texts = "".join(f"{word}\t{word[::-1] if i % 3 else word}\n" for i, word in enumerate(words))
    out = tmp_path_factory.mktemp("corpora")
    shards = {"shard": 25, "vectors": 4}
    forced = measure(texts, out / "forced", CorpusOptions(effect=True, **shards))
    return {"forced": forced, "decoded": measure(texts, out / "decoded", CorpusOptions(decode=True, **shards))}


@pytest.fixture
def page(measured, open_page, monkeypatch):
    """A function that opens the page on one of them: `page(corpus="head", layer=2)`."""

    def open_one(which="forced", **parameters):
        monkeypatch.setenv(corpora.ENVIRONMENT, str(measured[which].folder.parent))
        return open_page(CORPUS, **{"model": "reverse"} | parameters)

    return open_one


def table(run, name):
    """A table of a run, read without DuckDB."""
    return pd.concat([pq.read_table(path).to_pandas() for path in folder.check(run, name)], ignore_index=True)


def of_head(run):
    """The rows of the head that is looked at, in the order of lines."""
    rows = table(run, "heads")
    chosen = (rows["kind"] == "cross") & (rows["layer"] == HEAD["layer"]) & (rows["head"] == HEAD["head"])
    return rows[chosen].set_index("line")


def opens(test):
    return [int(str(number).removeprefix("● ")) for number in test["open"]]


# ------------------------------------------------------------------------------------------------ which run


def test_folders_that_hold_no_run_or_a_bad_one_are_named_and_one_that_is_not_complete_says_how_far_it_is(
    measured, tmp_path, monkeypatch, open_page
):
    (tmp_path / "none").mkdir()
    with monkeypatch.context() as patch:
        patch.setattr("sys.argv", ["app.py", corpora.OPTION, str(tmp_path / "none")])
        said = told(open_page(CORPUS, model="reverse")).replace("\\", "").replace("\u2060", "")
    assert str(tmp_path / "none") in said
    good, bad = measured["forced"], tmp_path / "0123456789abcdef"
    bad.mkdir()
    (bad / "about.json").write_text("{}", encoding="utf-8")
    there = shutil.copytree(good.folder, tmp_path / good.key)
    for file in there.glob("*-000002.parquet"):
        file.unlink()
    about = json.loads((there / "about.json").read_text("utf-8")) | {"complete": False}
    (there / "about.json").write_text(json.dumps(about), encoding="utf-8")
    monkeypatch.setenv(corpora.ENVIRONMENT, str(tmp_path))
    test = open_page(CORPUS, model="reverse", run="nonsense")
    assert "format" in test.warning[0].value
    assert "There is no corpus run “nonsense”" in sentences(test)
    assert test.selectbox(key="corpus_run").options == [f"reverse: letters.tsv · 50 of {N} lines so far"]
    assert set(test.dataframe[0].value["n"]) == {50}


# ------------------------------------------------------------------------------------------------ numbers


def test_the_table_of_heads_has_what_pandas_finds(page, measured):
    for which in ("forced", "decoded"):
        test = page(which, over="entropy")
        found, rows = test.dataframe[0].value, table(measured[which], "heads")
        rows["kind"] = pd.Categorical(rows["kind"], ["encoder", "decoder", "cross"])
        groups = rows.groupby(["kind", "layer", "head"], observed=True, sort=True)
        for name in ("entropy", "largest"):
            np.testing.assert_allclose(found[name], groups[name].mean(), rtol=1e-6)
        half = 1.96 * groups["entropy"].std() / np.sqrt(groups["entropy"].count())
        np.testing.assert_allclose(found["half"], half, rtol=1e-3)
        assert charts_of(test) == {corpus_pictures.all_heads.key}
        labels = {one.label: one.value for one in test.metric}
        assert labels["Exact"] == f"{table(measured[which], 'sentences')['exact'].mean():.1%}"
        assert ("BLEU" in labels) == (which == "decoded")


@pytest.mark.parametrize("name", ["entropy", "distance"])
def test_pictures_are_figures_of_the_measure(measured, name):
    run = measured["forced"]
    looked = View().but(kind="cross", layer=1, head=0, corpus_measure=name)
    scene = corpus_pictures.CorpusScene(folder.summaries(run), anatomy(reverse().config), looked, here=0.3)
    heads, spread = (picture.plot(scene) for picture in (corpus_pictures.all_heads, corpus_pictures.spread))
    for plot in (heads, spread):
        assert figure_in(plot.spec, "en").data  # Plotly checks every attribute
    values = of_head(run)[name]
    assert np.sum(spread.spec["data"][0]["y"]) == values.notna().sum()
    assert scene.summaries[Key("cross", 2, 1, name)].mean == pytest.approx(values.mean(), rel=1e-6)
    blocks = 1 if name == "distance" else 3  # in tokens there, here a share of the length
    assert len(heads.spec["layout"]["annotations"]) >= blocks
    meant = heads.clicked(SimpleNamespace(index=(0, 1), customdata=None))
    assert (meant["kind"], meant["layer"], meant["head"]) == ("encoder" if blocks == 3 else "cross", 0, 1)


def reverse():
    return loading.open_checkpoint(loading.usable()["reverse"])


# ------------------------------------------------------------------------------------------------ one line


@pytest.mark.parametrize("which", ["forced", "decoded"])
def test_a_line_leads_to_the_weight_that_was_measured(measured, which):
    """The link's run has, in the cell that it looks at, the largest weight that the tables say."""
    run, checkpoint, met = measured[which], reverse(), set()
    for number in (1, 2, 30, N):
        found = queries.line(run, number)
        for one in found.heads[::5]:
            kind = one.place.kind
            met.add(kind)
            link = open_corpus_run.link_to("reverse", checkpoint, found.hit, one.place, decoded=which == "decoded")
            trace = run_query(checkpoint, link.query(checkpoint.content_hash))
            at = link.view
            assert trace.maps(kind)[at.layer, at.head, at.query, at.key] == pytest.approx(one.place.weight, abs=1e-5)
            assert kind == "encoder" or trace.first_row + at.step == at.query
            assert which == "decoded" or trace.output_text == found.hit.target
    assert met == {"encoder", "decoder", "cross"}


def test_a_line_that_is_opened_says_what_it_is_and_leads_on(page, measured):
    test = page(corpus="head", over="peak", line=7, **HEAD)
    row = of_head(measured["forced"]).loc[7]
    assert f"largest weight of the map (weight) {row['peak']:.3f}" in told(test)
    links = [one.proto.label for one in test.get("page_link")] or told(test)
    assert "Open this line on Attention" in str(links)
    asked = {"model": "reverse", "corpus": "head", "over": "peak", "line": 7, **HEAD}
    assert address(test) == {name: str(value) for name, value in asked.items()}
    test.number_input(key="corpus_line_number").set_value(9)
    test = check(test.run())
    assert "**Line 9**" in told(test)
    assert address(test)["line"] == "9"
    assert f"no line {N + 1}" in sentences(page(corpus="head", line=N + 1))


def test_a_run_of_another_checkpoint_says_so_and_leads_to_its_own(page, measured, tmp_path, monkeypatch, open_page):
    test = page(corpus="head", line=7, model="zh-en")
    assert "This run is of the checkpoint reverse" in told(test).replace("\\", "")
    assert "Open this line" in told(test)
    gone = shutil.copytree(measured["forced"].folder, tmp_path / "out" / measured["forced"].key)
    about = json.loads((gone / "about.json").read_text("utf-8")) | {"content_hash": "0" * 64}
    (gone / "about.json").write_text(json.dumps(about), encoding="utf-8")
    monkeypatch.setenv(corpora.ENVIRONMENT, str(gone.parent))
    test = open_page(CORPUS, corpus="head", line=7, model="reverse")
    assert "is not among the checkpoints of this app" in sentences(test)
    assert "Open this" not in told(test)


# ------------------------------------------------------------------------------------------------ search


def found_in(test):
    return int(told(test).split("**")[1].split()[0].replace(",", ""))


def test_what_is_chosen_is_what_is_searched_for(page, measured):
    """That a search finds what pandas finds is in `test_queries`."""
    run = measured["forced"]
    texts, head = table(run, "sentences").set_index("line"), of_head(run)
    fits = (texts["worst_rank"] >= 3) & (texts["loss"] >= 0.5)
    at_it = (head["peak_key_piece"] == "a") & (head["peak"] >= 0.2)
    for asked, expected in (
        ({"rank": 3, "loss": 0.5}, fits.sum()),
        ({"sought": "measure", "over": "entropy", "below": 1, "bound": 0.8, **HEAD}, (head["entropy"] <= 0.8).sum()),
        ({"sought": "piece", "looked_at": "a", "bound": 0.2, **HEAD}, at_it.sum()),
    ):
        assert found_in(page(corpus="search", **asked)) == expected > 0
    assert found_in(page(corpus="search", sought="owes", bound=0.1, **HEAD)) > 0


def test_what_is_found_comes_by_pages_and_the_address_says_which(page, measured):
    test = page(corpus="search", sought="measure", over="entropy", bound=0)
    assert found_in(test) == N
    first = opens(test.dataframe[0].value)
    test.number_input(key="leaf").set_value(3)
    test = check(test.run())
    rest = opens(test.dataframe[0].value)
    assert (len(first), len(rest)) == (A_PAGE, N - 2 * A_PAGE)
    assert not set(first) & set(rest)
    assert address(test)["leaf"] == "3"
    saved = _saved(measured["forced"], (OfSentence("worst_rank", at_least=1.0),))
    assert len(saved["line"]) == N  # in the file are all
    assert set(open_corpus_run.columns((), 1)) == set(saved)
    test.number_input(key="corpus_least_rank").set_value(1)
    assert view(check(test.run())).of(CorpusLook).leaf == 0


def test_a_search_without_conditions_or_without_lines_says_so(page):
    test = page(corpus="search")
    assert "Choose at least one condition" in sentences(test)
    assert {one.proto.max for one in test.number_input if "bound" in one.key or "least" in one.key} == {1e6}
    assert "No line fits" in sentences(page(corpus="search", holding="nowhere"))
    assert not len(page(corpus="search", sought="measure", bound=0, leaf=40).dataframe[0].value)
    assert "owes" not in page("decoded", corpus="search").selectbox(key="sought").options


def test_without_duckdb_the_means_are_there_and_a_sentence_says_what_is_missing(page, monkeypatch):
    monkeypatch.setattr(queries, "is_installed", lambda: False)
    assert page().dataframe
    for part in ("head", "search"):
        test = page(corpus=part, line=3)
        assert "needs DuckDB" in sentences(test)
        assert not test.dataframe
    assert charts_of(page(corpus="head")) == {corpus_pictures.spread.key}


# ------------------------------------------------------------------------------------------------ Attention


def test_attention_says_what_the_head_does_over_the_corpus_and_where_a_value_is_among_its_lines(
    page, measured, open_page
):
    page()
    test = open_page(ATTENTION, model="reverse", src="abcdef", panel="table", measure="entropy", **HEAD)
    values = of_head(measured["forced"])["entropy"].to_numpy()
    said = told(test).replace("\\", "")
    assert f"Layer 2, head 1 over a corpus (letters.tsv, {N} lines)" in said
    assert f"{values.mean():.3f}, 95 % interval" in said
    assert "over a corpus" not in told(open_page(ATTENTION, model="zh-en", panel="table"))
    summary = folder.summaries(measured["forced"])[Key("cross", 2, 1, "entropy")]
    for value in np.quantile(values, [0.1, 0.5, 0.9]):
        nearby = (np.abs(values - value) < summary.bins.width).mean()
        assert share_below(summary, value) == pytest.approx((values < value).mean(), abs=nearby)
    assert (share_below(summary, -1.0), share_below(summary, 1e9)) == (0, 1)


@pytest.mark.parametrize(
    "part", [{}, {"corpus": "head", "line": 7}, {"corpus": "search", "sought": "attends", "rank": 1, "line": 2}]
)
def test_the_page_is_spoken_whole(page, measured, part):
    test = page(lang="qps", **part)
    data = words_of("reverse", "letters tsv", *table(measured["forced"], "sentences")["source"])
    data |= words_of(*table(measured["forced"], "sentences")["target"])
    assert complaints(test, data | data_of_models(), set(told_by_models())) == []
