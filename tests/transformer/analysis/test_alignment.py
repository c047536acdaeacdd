"""Words are aligned by attention as counted by hand from traces, and gold files are read or refused."""

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import SOURCES, TARGETS
from transformer.analysis.alignment import (
    ROWS,
    SPACINGS,
    Links,
    attached,
    attached_french,
    count_links,
    diagonal_sources,
    parse_links,
    piece_shares,
    read_gold,
    score_alignment,
    usual_spacing,
    with_means,
    without_spaces,
)
from transformer.errors import DataError

GOLD = ("0-0 1-1 1p2", "0-0 2-3", "1-1 3p4 2-2", "0-1 4-6", "", "1-0 2-2")
links_lists = st.lists(st.tuples(st.integers(0, 99), st.sampled_from("-p"), st.integers(0, 99)), max_size=8)


@pytest.fixture
def gold_files(tmp_path):
    """Writes three files and gives their paths."""

    def write(sources=SOURCES, targets=TARGETS, gold=GOLD):
        files = []
        for name, lines in (("words.src", sources), ("words.tgt", targets), ("gold.talp", gold)):
            (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
            files.append(tmp_path / name)
        return files

    return write


@given(links_lists)
def test_what_is_written_is_read(links):
    found = parse_links(" ".join(f"{i}{kind}{j}" for i, kind, j in links))
    assert found.possible == {(i, j) for i, _, j in links}
    assert found.sure == {(i, j) for i, kind, j in links if kind == "-"}


@given(st.text(alphabet="0123456789-p ٣²x\t", max_size=30) | st.text(max_size=20))
def test_any_text_gives_links_or_one_error(text):
    try:
        found = parse_links(text)
    except ValueError:
        found = Links(frozenset(), frozenset())
    assert found.sure <= found.possible
    numbers = {number.lstrip("0") or "0" for number in text.replace("p", "-").replace("-", " ").split()}
    assert {str(n) for link in found.possible for n in link} <= numbers


@pytest.mark.parametrize("line", ["1-", "1--2", "1-٣", "0-0 1_2", "100000-1"])
def test_what_is_no_link_is_refused(line):
    with pytest.raises(ValueError, match=r"is not a link|refers to a word beyond"):
        parse_links(line)


@given(st.lists(st.integers(0, 5), max_size=12), st.lists(st.integers(1, 50), max_size=6))
def test_shares_give_back_the_characters(pieces, cuts):
    n = sum(pieces)
    edges = [0, *sorted({cut for cut in cuts if cut < n}), n] if n else [0]
    words = [b - a for a, b in pairwise(edges)]
    shares = piece_shares(pieces, words)
    assert shares.shape == (len(pieces), len(words))
    np.testing.assert_allclose(shares.sum(axis=1), [float(length > 0) for length in pieces])
    np.testing.assert_allclose(np.array(pieces, dtype=float) @ shares, words, atol=1e-9)
    expected = [[0, 0, 0, 0], [1 / 3, 2 / 3, 0, 0], [0, 0, 1, 0], [0, 0, 0.5, 0.5]]
    np.testing.assert_allclose(piece_shares([0, 3, 1, 2], [1, 2, 2, 1]), expected)  # ▁ 我妹妹 每 天。


@pytest.mark.parametrize(("pieces", "words"), [([2], [3]), ([3], [1, 1]), ([2], [2, 0]), ([], [1])])
def test_pieces_that_do_not_make_up_the_words_are_refused(pieces, words):
    with pytest.raises(ValueError, match="character"):
        piece_shares(pieces, words)


def test_means_stand_behind_the_heads_and_the_layers():
    weights = np.random.default_rng(0).random((3, 2, 4, 5))
    found = with_means(weights)
    np.testing.assert_array_equal(found[:3, :2], weights)
    np.testing.assert_allclose(found[:3, 2], weights.mean(axis=1))
    np.testing.assert_allclose(found[3, 2], weights.mean(axis=(0, 1)))


def test_the_error_rate_by_hand():
    links = parse_links("0-0 1-1 2p1 2-3")  # S: 3 links, P: 4
    sources = np.array([[0, 2, 0, 2], [0, 1, 1, 2], [2, 0, 0, 0]])  # of four target words, three ways
    counts = count_links(sources, links, n_source=3)
    assert counts.sure_hits.tolist() == [2, 3, 0]
    assert counts.possible_hits.tolist() == [3, 3, 0]
    assert (counts.n_found, counts.n_sure) == (4, 3)
    np.testing.assert_allclose(counts.aer(), [1 - (2 + 3) / 7, 1 - 6 / 7, 1.0])
    np.testing.assert_allclose((counts + counts).aer(), counts.aer())


@pytest.mark.parametrize(
    ("n_target", "n_source", "expected"),
    [(3, 3, [0, 1, 2]), (4, 2, [0, 0, 1, 1]), (2, 6, [1, 4]), (1, 1, [0]), (3, 1, [0, 0, 0])],
)
def test_the_diagonal(n_target, n_source, expected):
    assert diagonal_sources(n_target, n_source).tolist() == expected


def test_words_are_written_as_their_language_does():
    for words, expected in {
        "eu 's pledge ( 50 % ) is n't here .": "eu's pledge (50%) isn't here.",
        'he said : " no , thanks ! " and left': 'he said: "no, thanks!" and left',
        "workers ' rights $ 5": "workers' rights $5",
        ". a": ". a",
    }.items():
        assert attached(words.split()) == expected
    assert without_spaces(["他", "买", "了", "Windows", "95", "和", "3", "个", "a。"]) == "他买了Windows 95和3个a。"
    assert attached_french(["l'", "homme", "dit", ":", "ça", "va", "?", "oui", "."]) == "l'homme dit : ça va ? oui."
    codes = {"zh": "joined", "zh-Hans": "joined", "EN": "attached", "fr": "attached-french", "": "spaced"}
    assert {code: usual_spacing(code) for code in codes} == codes


@given(st.lists(st.text(alphabet="ab'\".,(!s%", min_size=1, max_size=3), max_size=8))
def test_no_way_of_writing_loses_a_character(words):
    for spacing in SPACINGS.values():
        assert spacing(words).replace(" ", "") == "".join(words)


def _by_hand(checkpoint, source, target, links):
    """Hits and outside weights of one sentence, from the trace of the app with the target forced, in plain loops."""
    ids = checkpoint.tgt_tokenizer.encode(target).ids
    cross = checkpoint.run(checkpoint.query(source, forced=ids, max_new=len(ids) + 1)).cross
    src_words, tgt_words = (
        _word_of_pieces(t, text) for t, text in ((checkpoint.src_tokenizer, source), (checkpoint.tgt_tokenizer, target))
    )
    n_layers, n_heads = cross.shape[:2]
    hits = np.zeros((2, n_layers, n_heads))
    outside = np.zeros((2, n_layers, n_heads))
    for shift in (0, 1):
        for layer in range(n_layers):
            for head in range(n_heads):
                for j in range(len(target.split())):
                    rows = [t + shift for t, word in enumerate(tgt_words) if word == j]
                    merged = [
                        sum(cross[layer, head, t, s] for t in rows for s, word in enumerate(src_words) if word == i)
                        / len(rows)
                        for i in range(len(source.split()))
                    ]
                    link = (int(np.argmax(merged)), j)
                    hits[shift, layer, head] += (link in links.sure) + (link in links.possible)
                    outside[shift, layer, head] += 1 - sum(merged)
    return hits, outside, len(target.split())


def _word_of_pieces(tokenizer, text):
    """Pieces of a language with spaces: the word that each belongs to; None for a lone space."""
    words, word = [], -1
    for piece in tokenizer.encode(text).pieces:
        word += piece.startswith("▁")
        words.append(word if piece != "▁" else None)
    return words


def test_scores_are_those_of_the_traces_counted_by_hand(checkpoint, gold_files):
    gold = read_gold(*gold_files())
    done = []
    scores = score_alignment(checkpoint, gold, source_text="spaced", target_text="spaced", done=done.append)
    assert (scores.n_sentences, sum(done), scores.left_out) == (6, 6, {})
    found = [_by_hand(checkpoint, s, t, parse_links(g)) for s, t, g in zip(SOURCES, TARGETS, GOLD, strict=True)]
    hits, outside, n_words = (sum(parts) for parts in zip(*found, strict=True))
    n_sure = sum(line.count("-") for line in GOLD)
    np.testing.assert_allclose(scores.heads, 1 - hits / (n_words + n_sure))
    np.testing.assert_allclose(scores.outside, outside / n_words, atol=1e-6)
    assert scores.best.aer == scores.heads.min()
    row = ROWS.index(scores.best.row)
    assert scores.heads[row, scores.best.layer - 1, scores.best.head - 1] == scores.best.aer
    assert len(np.unique(scores.heads)) > 1
    record = json.loads(json.dumps(scores.record()))
    assert (record["file"], record["source"]["text"], record["aer"]) == (
        "gold.talp",
        "spaced",
        round(scores.best.aer, 4),
    )
    assert np.shape(record["heads"]["reads"]) == np.shape(record["outside_words"]["predicts"]) == (2, 4)


def test_sentences_that_cannot_be_used_are_counted(checkpoint, gold_files):
    sources = (*SOURCES, "ba " * 40, "", "ba \x01")  # the tokenizer drops the last, a control character
    gold = read_gold(*gold_files(sources, (*TARGETS, "a", "a", "a"), (*GOLD, "", "", "")))
    scores = score_alignment(checkpoint, gold, source_text="spaced", target_text="spaced")
    assert scores.n_sentences == 6
    assert sorted(scores.left_out.values()) == [1, 1, 1]
    too_long = read_gold(*gold_files(["ba " * 40], ["a"], ["0-0"]))
    with pytest.raises(DataError, match="no sentence can be scored"):
        score_alignment(checkpoint, too_long, source_text="spaced", target_text="spaced")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"gold": GOLD[:5]}, r"the same number of lines; found words.src 6, words.tgt 6, gold.talp 5"),
        (
            {"gold": ("4-0", *GOLD[1:])},
            r"line 1: a link refers to source word 4, counted from 0, but the source has only 4 words",
        ),
        (
            {"gold": (*GOLD[:1], "0p9", *GOLD[2:])},
            r"line 2: a link refers to target word 9, counted from 0, but the target has only 4 words",
        ),
        ({"gold": ("0;0", *GOLD[1:])}, r"line 1: '0;0' is not a link"),
        ({"gold": ("0p0",) * 6}, "has no sure link"),
        ({"sources": ()}, "words.src: is empty"),
    ],
)
def test_files_that_cannot_be_used_are_refused(gold_files, changes, message):
    with pytest.raises(DataError, match=message):
        read_gold(*gold_files(**changes))
