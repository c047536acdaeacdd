"""Queries and keys, and two runs, over a corpus: what is drawn was measured, and a click leads to its row."""

import shutil
from dataclasses import replace

import numpy as np
import pytest

from glassformer.charts.theme import figure_in
from glassformer.extensions.corpus import beside, corpora, queries_keys
from glassformer.extensions.corpus.beside import Beside
from glassformer.extensions.corpus.corpus_look import CorpusLook
from glassformer.extensions.corpus.corpus_pictures import CorpusScene
from glassformer.extensions.corpus.library import queries, scores
from glassformer.extensions.corpus.library.folder import summaries
from glassformer.extensions.corpus.library.tables import CorpusOptions
from glassformer.extensions.corpus.open_corpus_run import OpenCorpus, link_to
from glassformer.extensions.corpus.queries_keys import Layer, _place, bare, clicked_on, group_of, spot_of
from glassformer.extensions.sentences.sentences_look import SentencesLook
from glassformer.state.view import Click, View
from tests.measured_corpus import measure
from tests.pages.conftest import PAGES
from tests.pages.conftest import open_page as open_page
from tests.pages.conftest import shipped_checkpoints_alone as shipped_checkpoints_alone
from tests.pages.reading import charts_of, sentences, told, view
from tests.pages.test_pseudo_language import complaints, data_of_models, told_by_models, words_of
from transformer.checkpoint.load import load
from transformer.errors import DataError, GlassformerError
from transformer.runs.running import run as run_query

CORPUS = PAGES["corpus"]
WORDS = ["abc", "glass", "letters", "banana", "queue", "zz", "strength", "abba", "oxygen", "it"]
HEAD = {"kind": "cross", "layer": 2, "head": 3}
OPTIONS = CorpusOptions(vectors=6, shard=5)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """One file on the reversing model, on a snapshot of its training, and on a model that is an encoder alone."""
    texts = "".join(f"{word}\t{word[::-1]}\n" for word in WORDS)
    out = tmp_path_factory.mktemp("corpora")
    return [measure(texts, out, OPTIONS, model=name) for name in ("reverse", "reverse@1022", "palindrome")]


@pytest.fixture
def page(runs, open_page, monkeypatch):
    def open_one(**parameters):
        monkeypatch.setenv(corpora.ENVIRONMENT, str(runs[0].folder.parent))
        return open_page(CORPUS, **{"model": "reverse", "run": runs[0].key} | HEAD | parameters)

    return open_one


def layer(runs, **view):
    heads = corpora.joined_heads(runs[0], "cross", 2, 4)
    return Layer("cross", 1, 2, heads, frozenset({"<s>", "</s>"}), CorpusLook(**view))


# ------------------------------------------------------------------------------------------------ queries and keys


def test_vectors_of_a_run_give_the_scores_that_its_model_computes(runs):
    """Within a line, scaled vectors differ from the model's scores by one number for each query and key alone."""
    scene = layer(runs)
    tokens, joined = scene.tokens, scene.own
    assert len(set(tokens.line.tolist())) == OPTIONS.vectors
    checkpoint = load("checkpoints/reverse")
    whole = queries.line(runs[0], 2)
    link = link_to("reverse", checkpoint, whole.hit, None, decoded=False)
    weights = run_query(checkpoint, link.query(checkpoint.content_hash)).maps("cross")[1, 2]
    mine = tokens.line == 2
    q, k = (joined.tokens.vectors[mine & side] for side in (tokens.is_query, ~tokens.is_query))
    gap = q @ k.T / np.sqrt(q.shape[1]) - np.log(weights[: len(q), : len(k)])
    gap = gap - gap.mean(axis=0) - gap.mean(axis=1, keepdims=True) + gap.mean()
    assert np.abs(gap).max() < 0.02
    assert tokens.pieces[mine & ~tokens.is_query].tolist() == [*"glass", "</s>"]


LIT = [
    ({}, None), ({"spot": "2.key.4", "lit": "piece"}, {"s"}), ({"spot": "2.key.4", "lit": "token"}, {"s"}),
    ({"spot": "2.key.4", "lit": "line"}, {*"glass", "<s>", "</s>"}), ({"lit_piece": " S "}, {"s"}),
    ({"spot": "999.key.4"}, None),
]  # fmt: skip


def test_what_is_selected_is_the_same_in_all_heads(runs):
    for asked, lit in LIT:
        scene = layer(runs, **asked)
        found = scene.selected
        assert {scene.tokens.pieces[token] for token in found} == (lit or set())
        assert (scene.lit is None) == (lit is None)
        if scene.spot is not None:
            spot = scene.spot, scene.tokens.place[scene.spot], scene.tokens.is_query[scene.spot]
            assert (found[0], 3, False) == spot
            assert asked["lit"] != "token" or len(found) == 1
        for cloud in map(scene.cloud, scene.heads):
            assert cloud.lit is None if lit is None else cloud.lit.sum() == len(found)
            assert list(cloud.pieces) == scene.tokens.pieces.tolist()


def test_pictures_are_figures_and_a_click_selects_a_token(runs):
    for points in ("side", "group"):
        scene = layer(runs, spot="1.query.2", points_by=points)
        one, all_heads = (picture.plot(scene) for picture in (queries_keys.points, queries_keys.heads))
        for plot in (one, all_heads):
            figure_in(plot.spec, "en")  # Plotly checks every attribute
    token = 5
    name, line = queries_keys.spot_text(scene.tokens, token), int(scene.tokens.line[token])
    meant = one.clicked(Click(0, (0,), token))
    assert meant == clicked_on(name) == {"spot": name, "lit_piece": "", "line": line - 1}
    assert spot_of(name)[0] == line
    assert all_heads.clicked(Click(0, (0,), [1, token])) == {"head": 1, **meant}
    for plot, wrong in ((all_heads, [7, token]), (all_heads, None), (one, 10**6)):
        assert plot.clicked(Click(0, (0,), wrong)) is None


def test_a_token_of_a_decoder_alone_leads_to_the_step_whose_row_it_is(tmp_path):
    """Whether a line has a reference, or is read as a prompt and no more."""
    run = measure("47+385=\t432\n12+3=\n", tmp_path, OPTIONS, model="addition")
    checkpoint = load("checkpoints/addition")
    heads = corpora.joined_heads(run, "decoder", 1, 1)
    for line in (1, 2):
        view = View().but(kind="decoder", layer=0, head=0, line=line - 1)
        scene = Layer("decoder", 0, 0, heads, frozenset(), view)
        corpus = OpenCorpus(run, CorpusScene(summaries(run), None, view), checkpoint)
        hit = corpus.line.hit
        rows = np.flatnonzero((scene.tokens.line == line) & scene.tokens.is_query)
        links = [link_to("addition", checkpoint, hit, _place(corpus, scene, n), decoded=False) for n in rows]
        first = run_query(checkpoint, links[0].query(checkpoint.content_hash)).first_row
        assert [link.view.step for link in links] == [max(link.view.query - first, 0) for link in links]
        assert {link.view.step for link in links} == ({0, 1, 2} if line == 1 else {0})
        worst = link_to("addition", checkpoint, hit, None, decoded=False).view.step
        assert worst == (hit.worst_step if line == 1 else 0)


def test_r_is_said_with_what_it_means_and_pieces_are_told_apart_by_what_they_are(runs):
    own = layer(runs).own
    for r, means in ((-0.9, "a large score goes with"), (-0.6, "often goes with"), (-0.5, "says little")):
        said = queries_keys.scaling(replace(own, correlation=r))
        assert f"r = −{-r:.2f}, so distance accounts for r² = {r**2:.0%}" in said
        assert means in said
        assert "In this head" in said
    assert "In this head" not in queries_keys.scaling(replace(own, correlation=None))
    groups = {"</s>": "special", "▁“": "punctuation", "▁": "other", "▁the": "other", "。": "punctuation", "a.": "other"}
    assert {one: group_of(one, frozenset({"</s>"})) for one in groups} == groups
    assert bare("▁The") == "the"
    for text in ("3.query.x", "3.side.1", "", "-3.key.1", ".query.5", "5.query."):
        assert spot_of(text) is None


def test_a_token_that_was_clicked_leads_to_its_row(page):
    test = page(corpus="joined", spot="2.query.3", line=2)
    assert charts_of(test) == {queries_keys.points.key, queries_keys.heads.key}
    assert "**Line 2**" in told(test)
    assert "Open this line on Attention" in told(test)
    rows = test.dataframe[0].value
    assert set(rows["piece"]) == {rows["piece"][0]}
    assert rows["open"][0] == "● 2"
    assert f"[{rows['piece'][0]}]" in rows["around"][0]
    test.button(key="corpus_tokens_clear").click()
    test = test.run()
    assert (view(test).of(CorpusLook).spot, view(test).of(SentencesLook).line) == ("", None)
    assert not test.dataframe


def test_what_is_not_there_is_said(page, runs, monkeypatch):
    assert "is not among those drawn" in told(page(corpus="joined", spot="999.key.1"))
    assert "No token here is" in told(page(corpus="joined", lit_piece="nowhere"))
    without = replace(runs[0], with_vectors=())
    monkeypatch.setattr(corpora, "listed", lambda: ((without,), ()))
    assert "kept no queries and keys" in sentences(page(corpus="joined"))
    said = sentences(page(corpus="beside")).replace("\u2060", "")
    assert "no other corpus run over the same file" in said


# ------------------------------------------------------------------------------------------------ two runs


def test_the_differences_of_two_runs_are_drawn_and_listed(page, runs):
    test = page(corpus="beside", run2=runs[1].key, over="entropy", line=3)
    found = scores.by_head(runs[0], runs[1], "entropy")
    rows = test.dataframe[0].value
    order = [(kind, n, head) for kind in ("encoder", "decoder", "cross") for n in (1, 2) for head in (1, 2, 3, 4)]
    assert rows["mean"].to_numpy() == pytest.approx([found[head].mean for head in order])
    assert charts_of(test) == {beside.differences.key}
    most = scores.most_different(runs[0], runs[1], "entropy", ("cross", 2, 3), 20)
    lines = test.dataframe[1].value
    assert [str(line).removeprefix("● ") for line in lines["open"]] == [str(one.line) for one in most]
    assert told(test).count("**Line 3**") == 2
    assert "Compare both runs of this line" in told(test)
    assert {"Loss per token", "Exact", "Log-probability per line"} <= {one.label for one in test.metric}
    assert "Heads are paired by their number" not in sentences(test)
    other = page(corpus="beside", run2=runs[2].key)  # of another model
    assert "Heads are paired by their number" in sentences(other)
    assert "The first run has 24 heads and the second 8" in sentences(other)
    assert len(other.dataframe[0].value) == 8
    assert "Only one of the two runs has this head." in sentences(other)


def test_outputs_of_two_runs_are_compared_by_what_does_not_hang_on_their_lengths(tmp_path, monkeypatch, open_page):
    texts = "".join(f"{word}\t{word[::-1]}\n" for word in WORDS)
    runs = [measure(texts, tmp_path, replace(OPTIONS, decode=True), model=one) for one in ("reverse", "reverse@1022")]
    monkeypatch.setenv(corpora.ENVIRONMENT, str(tmp_path))
    test = open_page(CORPUS, model="reverse", run=runs[0].key, corpus="beside", run2=runs[1].key)
    assert [one.label for one in test.metric] == ["Exact", "BLEU", "chrF"]
    assert "different tokens" not in told(test)
    assert "reverse (own output): letters.tsv · 10 lines" in test.selectbox(key="corpus_run").options


def test_what_is_gone_or_damaged_since_is_said(tmp_path):
    run = measure("abc\tcba\nzz\tzz\n", tmp_path, OPTIONS)
    for table, ask in (
        ("vectors", lambda: corpora.joined_heads(run, "cross", 1, 4)),
        ("sentences", lambda: corpora.scores_of(run)),
        ("sentences", lambda: corpora.score_differences(run, run)),
    ):
        for file in run.folder.glob(f"{table}-*"):
            file.write_bytes(b"PAR1 no more")
        with pytest.raises(DataError):
            ask()
    shutil.rmtree(run.folder)
    for ask in (corpora.scores_of, lambda run: corpora.score_differences(run, run)):
        with pytest.raises(GlassformerError):
            ask(run)


def test_the_picture_of_differences_is_a_figure_and_a_click_looks_at_a_head(runs):
    scene = CorpusScene(summaries(runs[0]), None, View().but(kind="cross", layer=1, head=2, corpus_measure="entropy"))
    of = Beside(scene, scores.by_head(runs[0], runs[1], "entropy"), ("reverse", "reverse@1022"))
    plot = beside.differences.plot(of)
    drawn = figure_in(plot.spec, "en").data[0]
    for row in plot.spec["layout"]["meta"]["table"]["rows"][:8]:
        one = of.found["encoder", *row[1:3]]
        cell = row[1] - 1, row[2] - 1
        assert row[3:] == [one.n, one.mean, one.low, one.high]
        assert drawn.z[cell] == pytest.approx(one.mean, rel=1e-6)
        assert drawn.text[cell[0]][cell[1]] == f"95 % interval {one.low:.3g} to {one.high:.3g}".replace("-", "−")
    stars = [one for one in plot.spec["layout"]["annotations"] if one["text"] == "*"]
    assert len(stars) == sum(one.excludes_0 for one in of.shown.values())
    meant = plot.clicked(Click(0, (1, 3), None))
    assert meant["corpus_panel"] == "beside"
    assert (meant["kind"], meant["layer"], meant["head"]) == ("encoder", 1, 3)


@pytest.mark.parametrize(
    "part", [{"corpus": "joined", "spot": "2.query.3", "line": 2}, {"corpus": "beside", "line": 3}]
)
def test_the_parts_are_spoken_whole(page, part):
    test = page(lang="qps", **part)
    data = words_of("reverse", "letters tsv", "palindrome", *WORDS, *(word[::-1] for word in WORDS))
    assert complaints(test, data | data_of_models(), set(told_by_models())) == []
