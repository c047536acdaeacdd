"""chrF2 of outputs against one reference each: character n-grams, n = 1 to 6; sacrebleu's word split for BLEU.

Precision and recall are averaged over each n for which both texts are long enough, and combined into an F-score in
which recall counts twice as much as precision (β = 2). White space is ignored. The score of several lines is computed
from their counts together; it is not the mean of their scores.

Source: Popović, "chrF: character n-gram F-score for automatic MT evaluation" (2015), section 2; and sacrebleu, whose
`chrF2|nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no` this equals. Written again here, because only training needs
sacrebleu. Not known here: chrF++ (words), several references.
"""

from collections import Counter
from collections.abc import Iterable

ORDER = 6
BETA = 2

Counts = tuple[tuple[int, int, int], ...]
"""For each n from 1: n-grams of the output, of the reference, and those that both have."""

# How sacrebleu finds words where a language has no spaces; its signature names it.
_WORDS = {"zh": "zh", **dict.fromkeys(("ja", "th", "lo", "km", "my", "yue"), "char")}
NOTHING: Counts = ((0, 0, 0),) * ORDER


def chrf_counts(output: str, reference: str) -> Counts:
    """The n-grams of two texts, counted."""
    written, expected = "".join(output.split()), "".join(reference.split())
    return tuple(_counted(_n_grams(written, n), _n_grams(expected, n)) for n in range(1, ORDER + 1))


def together(counts: Iterable[Counts]) -> Counts:
    """The counts of several lines, added up."""
    total = [list(part) for part in NOTHING]
    for one in counts:
        for parts, more in zip(total, one, strict=True):
            for place, count in enumerate(more):
                parts[place] += count
    return tuple((a, b, both) for a, b, both in total)


def chrf(counts: Counts) -> float:
    """The score of counts, 0 to 100; 0 if nothing can be compared."""
    there = [(both / a, both / b) for a, b, both in counts if a and b]
    if not there:
        return 0.0
    precision = sum(p for p, _ in there) / len(there)
    recall = sum(r for _, r in there) / len(there)
    if not precision + recall:
        return 0.0
    return 100 * (1 + BETA**2) * precision * recall / (BETA**2 * precision + recall)


def _n_grams(text: str, n: int) -> Counter[str]:
    return Counter(text[i : i + n] for i in range(len(text) - n + 1))


def _counted(written: Counter[str], expected: Counter[str]) -> tuple[int, int, int]:
    # An output's n-grams count only where the reference has some: else a short reference would cost precision.
    return (written.total() if expected else 0, expected.total(), (written & expected).total())


def usual_words(language: str) -> str:
    """How sacrebleu finds words for BLEU in a language, by its code."""
    return _WORDS.get(language.lower().split("-")[0], "13a")
