"""Words are aligned by attention as counted by hand from traces, and gold files are read or refused."""

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import SOURCES, TARGETS
from transformer.analysis import alignment
from transformer.analysis.alignment import Links, parse_links, piece_shares, read_gold
from transformer.errors import DataError

GOLD = ("0-0 1-1 1p2", "0-0 2-3", "1-1 3p4 2-2", "0-1 4-6", "", "1-0 2-2")


@pytest.fixture
def gold_files(tmp_path):
    """Writes three files and gives their paths."""

    def write(sources=SOURCES, targets=TARGETS, gold=GOLD):
        files = {"words.src": sources, "words.tgt": targets, "gold.talp": gold}
        for name, lines in files.items():
            (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return [tmp_path / name for name in files]

    return write


@given(st.lists(st.tuples(st.integers(0, 99), st.sampled_from("-p"), st.integers(0, 99)), max_size=8))
def test_what_is_written_is_read(links):
    found = parse_links(" ".join(f"{i}{kind}{j}" for i, kind, j in links))
    assert found.possible == {(i, j) for i, _, j in links}
    assert found.sure == {(i, j) for i, kind, j in links if kind == "-"}
    for line in ("1-", "1--2", "1-٣", "0-0 1_2", "100000-1"):
        with pytest.raises(ValueError, match=r"is not a link|refers to a word beyond"):
            parse_links(line)


@given(st.text(alphabet="0123456789-p ٣²x\t", max_size=30) | st.text(max_size=20))
def test_any_text_gives_links_or_one_error(text):
    try:
        found = parse_links(text)
    except ValueError:
        found = Links(frozenset(), frozenset())
    assert found.sure <= found.possible
    numbers = {number.lstrip("0") or "0" for number in text.replace("p", "-").replace("-", " ").split()}
    assert {str(n) for link in found.possible for n in link} <= numbers


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
    for lengths in (([2], [3]), ([3], [1, 1]), ([2], [2, 0]), ([], [1])):
        with pytest.raises(ValueError, match="character"):
            piece_shares(*lengths)


def test_the_diagonal():
    for sizes, expected in {(3, 3): [0, 1, 2], (4, 2): [0, 0, 1, 1], (2, 6): [1, 4], (3, 1): [0, 0, 0]}.items():
        assert alignment.diagonal_sources(*sizes).tolist() == expected


def test_words_are_written_as_their_language_does():
    for words, expected in {
        "eu 's pledge ( 50 % ) is n't here .": "eu's pledge (50%) isn't here.",
        'he said : " no , thanks ! " and left': 'he said: "no, thanks!" and left',
        "workers ' rights $ 5": "workers' rights $5",
        ". a": ". a",
    }.items():
        assert alignment.SPACINGS["attached"](words.split()) == expected
    for way, words, expected in (
        (alignment.without_spaces, "他 买 了 Windows 95 和 3 个 a。", "他买了Windows 95和3个a。"),
        (alignment.SPACINGS["attached-french"], "l' homme dit : ça va ? oui .", "l'homme dit : ça va ? oui."),
    ):
        assert way(words.split()) == expected
    codes = {"zh": "joined", "zh-Hans": "joined", "EN": "attached", "fr": "attached-french", "": "spaced"}
    assert {code: alignment.usual_spacing(code) for code in codes} == codes


@given(st.lists(st.text(alphabet="ab'\".,(!s%", min_size=1, max_size=3), max_size=8))
def test_no_way_of_writing_loses_a_character(words):
    for spacing in alignment.SPACINGS.values():
        assert spacing(words).replace(" ", "") == "".join(words)


def membership(tokenizer, text):
    """Which piece of a language with spaces is in which word [piece, word]; a lone space is in none."""
    pieces = tokenizer.encode(text).pieces
    word = np.cumsum([piece.startswith("▁") for piece in pieces]) - 1
    return (word[:, None] == np.arange(len(text.split()))) & (np.array(pieces) != "▁")[:, None]


def by_hand(checkpoint, source, target, gold):
    """Hits of heads, of means and of the diagonal, and outside weights, from the trace with the target forced."""
    ids, links = checkpoint.tgt_tokenizer.encode(target).ids, parse_links(gold)
    cross = checkpoint.run(checkpoint.query(source, forced=ids, max_new=len(ids) + 1)).cross
    src, tgt = membership(checkpoint.src_tokenizer, source), membership(checkpoint.tgt_tokenizer, target)
    n_source, n_target = src.shape[1], tgt.shape[1]

    counted = np.array(
        [[((i, j) in links.sure) + ((i, j) in links.possible) for i in range(n_source)] for j in range(n_target)]
    )
    merged = np.stack(
        [(tgt / tgt.sum(axis=0)).T @ cross[:, :, shift : shift + len(tgt), : len(src)] @ src for shift in (0, 1)]
    )  # [2, L, H, J, I]
    diagonal = np.eye(n_source)[[int((j + 0.5) / n_target * n_source) for j in range(n_target)]]
    ways = (merged, merged.mean(axis=2), merged.mean(axis=(1, 2)), diagonal)
    hits = [counted[range(n_target), way.argmax(axis=-1)].sum(axis=-1) for way in ways]
    return *hits, (1 - merged.sum(axis=-1)).sum(axis=-1), n_target


def test_scores_are_those_of_the_traces_counted_by_hand(checkpoint, gold_files):
    done = []
    spaced = {"source_text": "spaced", "target_text": "spaced"}
    scores = alignment.score_alignment(checkpoint, read_gold(*gold_files()), **spaced, done=done.append)
    assert (scores.n_sentences, sum(done), scores.left_out) == (6, 6, {})
    found = [by_hand(checkpoint, *row) for row in zip(SOURCES, TARGETS, GOLD, strict=True)]
    *hits, outside, n_words = (sum(parts) for parts in zip(*found, strict=True))
    n_links = n_words + sum(line.count("-") for line in GOLD)
    for rates, expected in zip((scores.heads, scores.layers, scores.mean, scores.diagonal), hits, strict=True):
        np.testing.assert_allclose(rates, 1 - expected / n_links)
    np.testing.assert_allclose(scores.outside, outside / n_words, atol=1e-6)
    best, record = scores.best, json.loads(json.dumps(scores.record()))
    assert scores.heads[alignment.ROWS.index(best.row), best.layer - 1, best.head - 1] == best.aer == scores.heads.min()
    assert len(np.unique(scores.heads)) > 1
    assert (record["file"], record["source"]["text"], record["aer"]) == ("gold.talp", "spaced", round(best.aer, 4))
    assert np.shape(record["heads"]["reads"]) == np.shape(record["outside_words"]["predicts"]) == (2, 4)

    sources = (*SOURCES, "ba " * 40, "", "ba \x01")  # the tokenizer drops the last, a control character
    gold = read_gold(*gold_files(sources, (*TARGETS, "a", "a", "a"), (*GOLD, "", "", "")))
    scores = alignment.score_alignment(checkpoint, gold, **spaced)
    assert (scores.n_sentences, sorted(scores.left_out.values())) == (6, [1, 1, 1])
    too_long = read_gold(*gold_files(["ba " * 40], ["a"], ["0-0"]))
    with pytest.raises(DataError, match="no sentence can be scored"):
        alignment.score_alignment(checkpoint, too_long, **spaced)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"gold": GOLD[:5]}, r"the same number of lines; found words.src 6, words.tgt 6, gold.talp 5"),
        ({"gold": ("4-0", *GOLD[1:])}, r"line 1: .* source word 4, counted from 0, but the source has only 4 words"),
        ({"gold": ("", "0p9", *GOLD[2:])}, r"line 2: .* target word 9, counted from 0, but the target has only 4 w"),
        ({"gold": ("0;0", *GOLD[1:])}, r"line 1: '0;0' is not a link"),
        ({"gold": ("0p0",) * 6}, "has no sure link"),
        ({"sources": ()}, "words.src: is empty"),
    ],
)
def test_files_that_cannot_be_used_are_refused(gold_files, changes, message):
    with pytest.raises(DataError, match=message):
        read_gold(*gold_files(**changes))
