"""Cleaning drops each bad line for a reason that is counted, loses nothing else, and is done after one pass."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.extensions.training.library.cleaning import CleaningRules, Reason, clean
from transformer.errors import DataError
from transformer.text.line_files import Line


def lines(*rows):
    return [Line(number, tuple(row.split("|"))) for number, row in enumerate(rows, start=1)]


def kept(cleaned):
    return [(pair.source, pair.target) for pair in cleaned.pairs]


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
    cleaned = clean(lines(GOOD, row, "Go home now.|Geh jetzt heim."), CleaningRules())
    assert kept(cleaned) == [tuple(GOOD.split("|")), ("Go home now.", "Geh jetzt heim.")]
    assert cleaned.tally.dropped == {reason: 1}
    assert [line for line, _ in cleaned.tally.examples[reason]] == [2]


@pytest.mark.parametrize("row", ["3 < 4 > 2|3 ist < 4", "AT&T|AT&T!", "I <3 you|Ich <3 dich", "R & D; x|R und D"])
def test_what_only_looks_like_markup_stays(row):
    assert len(clean(lines(row), CleaningRules()).pairs) == 1


def test_text_is_tidied_and_the_changes_counted():
    cleaned = clean(lines("Cafe\u0301\u00a0 now |\u202fSoft\u00adware\u200b!"), CleaningRules())
    assert kept(cleaned) == [("Café now", "Software!")]
    assert +cleaned.tally.changed == {
        "composed (NFC)": 1,
        "white space squeezed": 2,
        "characters that nobody sees removed": 1,
    }


def test_sides_are_swapped_and_simplified_apart():
    row = "Chinese is 漢語.|我說漢語。|by me"
    (pair,) = clean(lines(row), CleaningRules(swap=True, simplify_source=True)).pairs
    assert pair[1:] == ("我说汉语。", "Chinese is 漢語.", "by me")
    (pair,) = clean(lines(row), CleaningRules(simplify_target=True)).pairs
    assert pair[1:] == ("Chinese is 漢語.", "我说汉语。", "by me")


def test_one_source_may_have_several_targets_and_the_first_of_equal_pairs_names_its_author_on_one_line():
    cleaned = clean(lines("Go.|Geh.|one\r  (CM)", "Go.|Gehen Sie.", "Go.|Geh.|two"), CleaningRules())
    assert kept(cleaned) == [("Go.", "Geh."), ("Go.", "Gehen Sie.")]
    assert cleaned.pairs[0].attribution == "one (CM)"


def test_words_are_counted_where_there_are_spaces():
    rows = lines(
        "one two three four five|一 二 三 四 五 六", "one two three four five six|一二三四五六七八九十一二三四五"
    )
    cleaned = clean(rows, CleaningRules(max_words=5, max_ratio=50))
    assert cleaned.spaces == (True, False)
    assert kept(cleaned) == [("one two three four five", "一 二 三 四 五 六")]
    assert cleaned.tally.dropped == {Reason.WORDS: 1}
    assert len(clean(rows, CleaningRules(max_words=5, max_ratio=50, swap=True)).pairs) == 1


def test_lengths_are_judged_by_the_ratio_of_the_corpus():
    rows = [f"{'x' * 40}{i}|{'y' * 10}{i}" for i in range(9)]  # four to one is what is usual here
    odd = "x" * 40 + "|" + "y" * 60
    cleaned = clean(lines(*rows, odd), CleaningRules(max_ratio=3))
    assert 0.2 < cleaned.ratio < 0.3
    assert cleaned.tally.dropped == {Reason.RATIO: 1}
    assert len(cleaned.pairs) == 9


def test_a_limit_draws_from_the_whole_file():
    rows = lines(*(f"source {i}|target {i}" for i in range(100)))
    first = clean(rows, CleaningRules(limit=20))
    assert len(first.pairs) == 20
    assert first.tally.dropped == {Reason.LIMIT: 80}
    numbers = [pair.line for pair in first.pairs]
    assert numbers == sorted(numbers)
    assert numbers[-1] > 60
    assert clean(rows, CleaningRules(limit=20)).pairs == first.pairs
    assert clean(rows, CleaningRules(limit=20, seed=2)).pairs != first.pairs
    assert len(clean(rows, CleaningRules(limit=200)).pairs) == 100


def test_nothing_left_and_rules_that_make_no_sense_say_why():
    said = r"3 lines were read, but none can be kept \(2 not two or three columns, 1 blank line\)"
    for rows, rules, message in (
        (lines("a", "b", ""), {}, said),
        ([], {}, "the file is empty"),
        ([], {"max_chars": 0}, "--max-chars is 0; expected at least 1"),
        ([], {"max_ratio": float("nan")}, "--max-ratio is nan; expected more than 1"),
    ):
        with pytest.raises(DataError, match=message):
            clean(rows, CleaningRules(**rules))


# Text with what the steps look for: odd spaces, marks to compose, unseen characters, markup, Traditional characters.
TEXTS = st.text(st.sampled_from("aéE\u0301\u0323 \u00a0\u3000\u200b\u00ad<b>&;!漢語汉\ufeff\x00각각"), max_size=12)
COLUMNS = st.lists(TEXTS, min_size=1, max_size=4).map(tuple)


@given(st.lists(COLUMNS, max_size=30), st.booleans(), st.booleans(), st.integers(0, 5))
def test_nothing_is_lost_and_clean_text_stays(columns, swap, simplify, limit):
    rows = [Line(number, row) for number, row in enumerate(columns, start=1)]
    rules = CleaningRules(swap=swap, simplify_source=simplify, max_chars=8, max_ratio=1.5, limit=limit)
    try:
        cleaned = clean(rows, rules)
    except DataError:
        return
    assert cleaned.tally.read == len(columns) == len(cleaned.pairs) + cleaned.tally.dropped.total()
    assert len({pair[1:3] for pair in cleaned.pairs}) == len(cleaned.pairs)
    numbers = [pair.line for pair in cleaned.pairs]
    assert numbers == sorted(set(numbers))
    again = clean([Line(pair.line, pair[1:3]) for pair in cleaned.pairs], CleaningRules(max_ratio=1e9))
    assert kept(again) == kept(cleaned)
    assert not +again.tally.changed
