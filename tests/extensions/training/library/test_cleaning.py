"""Cleaning and splitting lose no line without a reason that is counted, and put no sentence into two parts."""

import random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from glassformer.extensions.training.library.cleaning import CleaningRules, Reason, clean
from glassformer.extensions.training.library.preparation import SMALL, split
from transformer.errors import DataError
from transformer.text.line_files import Line, sentence_key


def lines(*rows):
    return [Line(number, tuple(row.split("|"))) for number, row in enumerate(rows, start=1)]


def cleaned(*rows, **rules):
    return clean(lines(*rows), CleaningRules(**rules))


def kept(found):
    return [(pair.source, pair.target) for pair in found.pairs]


GOOD = "The small fox sees a lake.|Der kleine Fuchs sieht einen See."


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("", Reason.BLANK),
        ("alone", Reason.COLUMNS),
        ("a|b|c|d", Reason.COLUMNS),
        ("a\tb|c", Reason.CONTROL),
        ("a|lost \ufffd", Reason.CONTROL),
        ("a|\ue001", Reason.CONTROL),
        ("\u200b|b", Reason.EMPTY),
        ("a|…!", Reason.NO_LETTER),
        ("<b>a</b>|c", Reason.MARKUP),
        ("a|R&amp;D", Reason.MARKUP),
        ("Taxi!| Taxi!", Reason.COPY),
        (GOOD.replace(" ", "  "), Reason.DUPLICATE),
        ("a" * 301 + "|" + "b " * 140, Reason.CHARS),
        ("Go.|A sentence that says far more than what stands beside it, and then some.", Reason.RATIO),
    ],
)
def test_a_bad_line_is_dropped_for_its_reason(row, reason):
    found = cleaned(GOOD, row, "Go home now.|Geh jetzt heim.")
    assert kept(found) == [tuple(GOOD.split("|")), ("Go home now.", "Geh jetzt heim.")]
    assert found.tally.dropped == {reason: 1}
    assert [line for line, _ in found.tally.examples[reason]] == [2]


def test_what_only_looks_like_markup_stays():
    rows = ["3 < 4 > 2|3 ist < 4", "AT&T|AT&T!", "I <3 you|Ich <3 dich", "R & D; x|R und D"]
    assert [len(cleaned(row).pairs) for row in rows] == [1] * 4


def test_text_is_tidied_and_the_changes_counted_and_sides_are_swapped_and_simplified_apart():
    found = cleaned("Cafe\u0301\u00a0 now |\u202fSoft\u00adware\u200b!")
    assert kept(found) == [("Café now", "Software!")]
    counts = {"composed (NFC)": 1, "white space squeezed": 2, "characters that nobody sees removed": 1}
    assert +found.tally.changed == counts
    row = "Chinese is 漢語.|我說漢語。|by me"
    (pair,) = cleaned(row, swap=True, simplify_source=True).pairs
    assert pair[1:] == ("我说汉语。", "Chinese is 漢語.", "by me")
    (pair,) = cleaned(row, simplify_target=True).pairs
    assert pair[1:] == ("Chinese is 漢語.", "我说汉语。", "by me")


def test_one_source_may_have_several_targets_and_the_first_of_equal_pairs_names_its_author_on_one_line():
    found = cleaned("Go.|Geh.|one\r  (CM)", "Go.|Gehen Sie.", "Go.|Geh.|two")
    assert kept(found) == [("Go.", "Geh."), ("Go.", "Gehen Sie.")]
    assert found.pairs[0].attribution == "one (CM)"


def test_words_are_counted_where_there_are_spaces_and_lengths_judged_by_the_ratio_of_the_corpus():
    chinese, few, many = "一二三四五六七八九十一二三四五", "one two three four five", "one two three four five six"
    rows = f"{few}|一 二 三 四 五 六", f"{many}|{chinese}"
    found = cleaned(*rows, max_words=5, max_ratio=50)
    assert found.spaces == (True, False)
    assert kept(found) == [(few, "一 二 三 四 五 六")]
    assert found.tally.dropped == {Reason.WORDS: 1}
    assert len(cleaned(*rows, max_words=5, max_ratio=50, swap=True).pairs) == 1
    usual = [f"{'x' * 40}{i}|{'y' * 10}{i}" for i in range(9)]  # four to one
    found = cleaned(*usual, "x" * 40 + "|" + "y" * 60, max_ratio=3)
    assert 0.2 < found.ratio < 0.3
    assert found.tally.dropped == {Reason.RATIO: 1}
    assert len(found.pairs) == 9


def test_a_limit_draws_from_the_whole_file():
    rows = [f"source {i}|target {i}" for i in range(100)]
    first = cleaned(*rows, limit=20)
    assert first.tally.dropped == {Reason.LIMIT: 80}
    numbers = [pair.line for pair in first.pairs]
    assert (len(numbers), numbers) == (20, sorted(numbers))
    assert numbers[-1] > 60
    assert cleaned(*rows, limit=20).pairs == first.pairs != cleaned(*rows, limit=20, seed=2).pairs
    assert len(cleaned(*rows, limit=200).pairs) == 100


@pytest.mark.parametrize(
    ("rows", "rules", "message"),
    [
        (["a", "b", ""], {}, r"3 lines were read, but none can be kept \(2 not two or three columns, 1 blank line\)"),
        ([], {}, "the file is empty"),
        ([], {"max_chars": 0}, "--max-chars is 0; expected at least 1"),
        ([], {"max_ratio": float("nan")}, "--max-ratio is nan; expected more than 1"),
    ],
)
def test_nothing_left_and_rules_that_make_no_sense_say_why(rows, rules, message):
    with pytest.raises(DataError, match=message):
        cleaned(*rows, **rules)


# Text with what the steps look for: odd spaces, marks to compose, unseen characters, markup, Traditional characters.
TEXTS = st.text(st.sampled_from("aéE\u0301\u0323 \u00a0\u3000\u200b\u00ad<b>&;!漢語汉\ufeff\x00각각"), max_size=12)
COLUMNS = st.lists(TEXTS, min_size=1, max_size=4).map(tuple)


@given(st.lists(COLUMNS, max_size=30), st.booleans(), st.booleans(), st.integers(0, 5))
def test_nothing_is_lost_and_clean_text_stays(columns, swap, simplify, limit):
    rows = [Line(number, row) for number, row in enumerate(columns, start=1)]
    try:
        found = clean(rows, CleaningRules(swap=swap, simplify_source=simplify, max_chars=8, max_ratio=1.5, limit=limit))
    except DataError:
        return
    assert found.tally.read == len(columns) == len(found.pairs) + found.tally.dropped.total()
    assert len({pair[1:3] for pair in found.pairs}) == len(found.pairs)
    numbers = [pair.line for pair in found.pairs]
    assert numbers == sorted(set(numbers))
    again = clean([Line(pair.line, pair[1:3]) for pair in found.pairs], CleaningRules(max_ratio=1e9))
    assert kept(again) == kept(found)
    assert not +again.tally.changed


# Few words, so that sentences meet again: with other case, other punctuation, other spaces.
SENTENCES = st.builds(
    lambda words, space, end: space.join(words) + end,
    st.lists(st.sampled_from(["go", "Go", "home", "now", "不", "去"]), min_size=1, max_size=3),
    st.sampled_from([" ", "  ", ", ", "-"]),
    st.sampled_from(["", ".", " !", "。"]),
)
PAIRS = st.lists(st.tuples(SENTENCES, SENTENCES), min_size=1, max_size=60)


@given(PAIRS, st.integers(0, 8), st.integers(0, 8), st.integers(0, 5))
def test_no_sentence_stands_in_two_splits_and_nothing_is_lost(pairs, dev, test, seed):
    try:
        found = split(pairs, dev=dev, test=test, seed=seed)
    except DataError:
        assume(False)
    assert sorted([*found.train, *found.dev, *found.test]) == list(range(len(pairs)))
    assert found.train
    for part, wanted in ((found.dev, dev), (found.test, test)):
        assert list(part) == sorted(part)
        assert len(part) <= wanted < len(part) + SMALL
        assert bool(part) == bool(wanted)
    for side in (0, 1):
        train, *others = [{sentence_key(pairs[i][side]) for i in part} for part in (found.train, found.dev, found.test)]
        assert not train & set.union(*others)
        assert not set.intersection(*others)


def alone(n, start=0):
    """Pairs of which no two share a sentence."""
    return [(f"source {i}", f"target {i}") for i in range(start, start + n)]


def test_the_draw_follows_from_seed_and_sentences_alone():
    pairs = alone(200)
    first = split(pairs, dev=20, test=30, seed=1)
    assert (len(first.train), len(first.dev), len(first.test)) == (150, 20, 30)
    assert (first.n_components, first.largest, first.n_small) == (200, 1, 200)
    assert first.test[:6] == (2, 4, 8, 17, 19, 24)  # the same on every machine
    assert split(pairs, dev=20, test=30, seed=2).test != first.test == split(pairs, dev=50, test=30, seed=1).test
    longer = split([*pairs, *alone(20, 900)], dev=20, test=30, seed=1)
    assert len({*longer.test} & {*first.test}) >= 20
    pairs = [*alone(100), *((f"source {i // 3}", f"translation {i}") for i in range(100, 200))]
    order = random.Random(3).sample(range(200), 200)
    first, other = (split(some, dev=20, test=30, seed=1) for some in (pairs, [pairs[i] for i in order]))
    for drawn, expected in ((other.test, first.test), (other.dev, first.dev)):
        assert sorted(order[i] for i in drawn) == list(expected)


def test_a_large_component_stays_in_train_and_one_of_the_allowed_size_can_be_drawn():
    see = [(f"way {i}", "I see.") for i in range(SMALL + 1)]
    found = split([*see, *alone(40)], dev=10, test=10, seed=1)
    assert set(range(SMALL + 1)) <= set(found.train)
    assert (found.largest, found.n_small) == (SMALL + 1, 40)
    drawn = {split([*see[:SMALL], *alone(40)], dev=0, test=30, seed=seed).test[:SMALL] for seed in range(20)}
    assert tuple(range(SMALL)) in drawn


def test_splits_that_cannot_be_made_say_so_with_the_numbers():
    see, twins = ([(f"source {i // n}", f"target {i}") for i in range(size)] for size, n in ((50, 50), (20, 2)))
    for pairs, dev, test, message in (
        ([*see, *alone(10, 90)], 5, 6, "--dev 5 and --test 6 ask for 11 pairs, but at most 10 .* 60 pairs form 11"),
        (alone(10), 5, 5, "at most 9 can be held out"),
        (twins, 1, 0, "--dev 1: .* drawn together, and the smallest such group has 2 pairs"),
    ):
        with pytest.raises(DataError, match=message):
            split(pairs, dev=dev, test=test, seed=1)
    assert len(split(twins, dev=3, test=0, seed=1).dev) == 2  # one place stays empty


def test_sentences_that_count_as_the_same_and_others():
    same = {"Go home!": "go  home", "Isn’t it?": "isn't it", "ＴＯＭ１": "tom1", "cafe\u0301": "Café."}
    for text, other in (same | {"STRASSE": "straße", "你好。": "你 好"}).items():
        assert sentence_key(text) == sentence_key(other)
    for text, other in {"ou": "où", "कि": "की", "1": "2"}.items():
        assert sentence_key(text) != sentence_key(other)


@given(st.text())
def test_a_key_is_its_own_key_up_to_case_and_spaces(text):
    key = sentence_key(text)
    assert sentence_key(f" {text}! ") == key
    assert " " not in key
