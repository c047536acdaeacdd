"""Cleaning of sentence pairs: Unicode, spaces; reasons to drop (markup, copies, length ratio), sampling, tallies.

Text is changed in four ways only: invisible characters are removed, it is composed (Unicode NFC), Traditional
characters become simplified ones if requested, and white space becomes single spaces. A pair with any other problem is
dropped: no step repairs what it could only guess, such as the encoding of `Ã©`.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import median
from typing import NamedTuple

from transformer.errors import DataError
from transformer.i18n import say, say_n
from transformer.text.line_files import Line
from transformer.text.tokenizer import normalise

EXAMPLES = 3
SLACK = 10  # characters; see `unlike`
WORD_SAMPLE = 12  # characters; see `has_spaces`

# C0, DEL and C1, which no sentence holds; the mark of lost bytes; private use, which only its author can read.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ufffd\ue000-\uf8ff]")
# Soft hyphen, zero-width space, word joiner, byte order mark, and marks of writing direction.
_INVISIBLE = re.compile("[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]")
_MARKUP = re.compile(r"</?[A-Za-z][^<>]*>|&(?:[A-Za-z]{2,8}|#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6});")


class Reason(StrEnum):
    """The reasons to drop a line, in the order of the steps."""

    BLANK = "blank line"
    COLUMNS = "not two or three columns"
    CONTROL = "control, private or lost character"
    EMPTY = "empty side"
    NO_LETTER = "side without a letter or digit"
    MARKUP = "markup such as <b> or &amp;"
    COPY = "both sides the same"
    DUPLICATE = "the same pair again"
    CHARS = "longer than --max-chars"
    WORDS = "more words than --max-words"
    RATIO = "lengths too different for --max-ratio"
    LIMIT = "not drawn for --limit"


class CleanPair(NamedTuple):
    """A kept pair: its line number, its sides, and whom to attribute (empty if the file does not say)."""

    line: int
    source: str
    target: str
    attribution: str


@dataclass(frozen=True, kw_only=True)
class CleaningRules:
    """What is kept."""

    swap: bool = False  # the second column is the source
    simplify_source: bool = False  # traditional characters of that side become simplified ones
    simplify_target: bool = False
    max_chars: int = 300  # most characters of a side
    max_words: int = 0  # most words of a side, 0 for any number; a side that is written without spaces is not judged
    max_ratio: float = 3.0  # how many times longer than expected a target may be, or shorter; see `unlike`
    limit: int = 0  # Most pairs, 0 for all. They are drawn, as public files are often sorted by length.
    seed: int = 1  # decides which are drawn

    def __post_init__(self) -> None:
        for name, value, least in (
            ("--max-chars", self.max_chars, 1),
            ("--max-words", self.max_words, 0),
            ("--limit", self.limit, 0),
        ):
            if value < least:
                raise DataError("{name} is {value}; expected at least {least}.", name=name, value=value, least=least)
        if not self.max_ratio > 1:
            raise DataError("--max-ratio is {found}; expected more than 1.", found=self.max_ratio)


@dataclass
class Tally:
    """What the steps did: counts only grow while a corpus goes through."""

    read: int = 0  # lines
    dropped: Counter[Reason] = field(default_factory=Counter)  # lines by reason
    # The first few lines of each reason: number and columns.
    examples: dict[Reason, list[tuple[int, tuple[str, ...]]]] = field(default_factory=dict)
    changed: Counter[str] = field(default_factory=Counter)  # sides by what was changed about them

    def drop(self, reason: Reason, line: int, columns: Sequence[str]) -> None:
        """Count a dropped line."""
        self.dropped[reason] += 1
        shown = self.examples.setdefault(reason, [])
        if len(shown) < EXAMPLES:
            shown.append((line, tuple(columns)))


@dataclass(frozen=True)
class Cleaned:
    """The pairs that were kept, in the order of the file, and how it came to them."""

    pairs: list[CleanPair]  # what was kept
    tally: Tally  # What was not. `tally.read` is kept plus dropped.
    ratio: float  # median of target characters a source character
    spaces: tuple[bool, bool]  # whether source and target are written with spaces between words


def clean(lines: Iterable[Line], rules: CleaningRules) -> Cleaned:
    """Put lines through every step; a `DataError` where no pair is left."""
    tally = Tally()
    tidied = _distinct(_tidy_pairs(lines, rules, tally), tally)
    pairs = list(_without(Reason.CHARS, tidied, tally, lambda pair: max(map(len, pair[1:3])) > rules.max_chars))
    spaces = (has_spaces(pair.source for pair in pairs), has_spaces(pair.target for pair in pairs))

    def has_many_words(pair: CleanPair) -> bool:
        words = [len(text.split()) for text, has in zip(pair[1:3], spaces, strict=True) if has]
        return bool(rules.max_words) and max(words, default=0) > rules.max_words

    pairs = list(_without(Reason.WORDS, pairs, tally, has_many_words))
    ratio = median(len(pair.target) / len(pair.source) for pair in pairs) if pairs else 0.0

    def is_unlike(pair: CleanPair) -> bool:
        return unlike(len(pair.source), len(pair.target), ratio=ratio) > rules.max_ratio

    pairs = list(_without(Reason.RATIO, pairs, tally, is_unlike))
    pairs = list(_without(Reason.LIMIT, pairs, tally, _not_drawn(pairs, rules)))
    if not pairs:
        # Reasons as the report names them, which programs read.
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in tally.dropped.most_common(3))
        raise DataError(
            say_n(
                "{n:,} line was read, but it cannot be kept ({reasons}).",
                "{n:,} lines were read, but none can be kept ({reasons}).",
                tally.read,
                reasons=reasons or say("the file is empty"),
            )
        )
    return Cleaned(pairs, tally, ratio, spaces)


def tidy(text: str, *, simplify: bool, changed: Counter[str]) -> str:
    """The cleaned text; `changed` counts the changes. Clean text is returned unchanged."""
    steps = (
        ("characters that nobody sees removed", lambda old: _INVISIBLE.sub("", old)),
        ("composed (NFC)", lambda old: normalise(old, ("nfc",))),
        ("made simplified Chinese", lambda old: normalise(old, ("simplified-chinese",)) if simplify else old),
        ("white space squeezed", lambda old: " ".join(old.split())),
    )
    for name, step in steps:
        new = step(text)
        changed[name] += new != text
        text = new
    return text


def _tidy_pairs(lines: Iterable[Line], rules: CleaningRules, tally: Tally) -> Iterator[CleanPair]:
    for line in lines:
        tally.read += 1
        reason = _unreadable(line.columns)
        if reason is None:
            pair = _tidy_pair(line, rules, tally)
            reason = _useless(pair)
        if reason is None:
            yield pair
        else:
            tally.drop(reason, line.number, line.columns)


def _unreadable(columns: Sequence[str]) -> Reason | None:
    if not any(map(str.strip, columns)):
        return Reason.BLANK
    if len(columns) not in (2, 3):
        return Reason.COLUMNS
    return Reason.CONTROL if any(map(_CONTROL.search, columns[:2])) else None


def _tidy_pair(line: Line, rules: CleaningRules, tally: Tally) -> CleanPair:
    source, target, *attribution = line.columns
    if rules.swap:
        source, target = target, source
    return CleanPair(
        line.number,
        tidy(source, simplify=rules.simplify_source, changed=tally.changed),
        tidy(target, simplify=rules.simplify_target, changed=tally.changed),
        " ".join(_CONTROL.sub(" ", "".join(attribution)).split()),
    )


def _useless(pair: CleanPair) -> Reason | None:
    source, target = pair.source, pair.target
    if not source or not target:
        return Reason.EMPTY
    if not any(map(str.isalnum, source)) or not any(map(str.isalnum, target)):
        return Reason.NO_LETTER
    if _MARKUP.search(source) or _MARKUP.search(target):
        return Reason.MARKUP
    return Reason.COPY if source == target else None


def _distinct(pairs: Iterable[CleanPair], tally: Tally) -> Iterator[CleanPair]:
    """Drop duplicates of a pair; a source may have several targets."""
    seen: set[tuple[str, ...]] = set()

    def again(pair: CleanPair) -> bool:
        known = pair[1:3] in seen
        seen.add(pair[1:3])
        return known

    return _without(Reason.DUPLICATE, pairs, tally, again)


def _without(
    reason: Reason, pairs: Iterable[CleanPair], tally: Tally, is_bad: Callable[[CleanPair], bool]
) -> Iterator[CleanPair]:
    """The kept pairs; the others are dropped for a reason."""
    for pair in pairs:
        if is_bad(pair):
            tally.drop(reason, pair.line, pair[1:3])
        else:
            yield pair


def has_spaces(texts: Iterable[str]) -> bool:
    """Whether a language has spaces between words, unlike Chinese, Japanese or Thai.

    True if most texts of `WORD_SAMPLE` characters or more have a space, or if no text is that long.
    """
    long, spaced = 0, 0
    for text in texts:
        if len(text) >= WORD_SAMPLE:
            long += 1
            spaced += " " in text
    return 2 * spaced >= long


def unlike(source: int, target: int, *, ratio: float) -> float:
    """How many times longer or shorter than expected a target is (1 or more): lengths in characters.

    `ratio` is target characters per source character in this corpus. `SLACK` characters are added to both the expected
    and the actual length, because in short sentences (`Hi.`, `Bonjour !`) one word more is normal.
    """
    expected, found = source * ratio + SLACK, target + SLACK
    return max(expected / found, found / expected)


def _not_drawn(pairs: Sequence[CleanPair], rules: CleaningRules) -> Callable[[CleanPair], bool]:
    """A predicate: whether a pair is outside a random sample of `limit` pairs."""
    if not 0 < rules.limit < len(pairs):
        return lambda pair: False
    by_rank = sorted(pairs, key=lambda pair: rank("limit", rules.seed, *pair[1:3]))
    drawn = {pair.line for pair in by_rank[: rules.limit]}
    return lambda pair: pair.line not in drawn


def rank(*parts: object) -> bytes:
    """A place in an order that looks random and is the same everywhere: a hash of the parts."""
    return hashlib.blake2b("\t".join(map(str, parts)).encode(), digest_size=16).digest()
