"""The text that `checkpoints/en-fr` learned last: a corpus of whole sentences, and what people type first.

    python -m tools.training_text en-fr-train.tsv --out en-fr-train-first.tsv

In a corpus of sentences nearly every line begins with a capital and ends with a full stop, greetings are rare, and
the same few names come again and again; people type `hello`, `i like tea` and their own name. To the corpus are
added: copies of its short pairs with the source as people type it; what stands in `first_words/` (phrases, single
words, names in templates, each written for this project and under its licence), several times; and names made of
syllables, so that a name is copied and not known by heart.

`first_words/first_hundred.txt` is what a reader who had seen none of this thought that people type first. It is
for scoring, so no source that is added is a line of it, as it stands there.
"""

import argparse
import random
import re
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "first_words"
SEED = 7
COPIES = {"phrases": 6, "greetings": 8, "words": 3, "names": 2, "two words": 2}
TYPED, MADE = 9_000, 2_500  # pairs of the corpus as people type them, and pairs with a made name
GREETING = re.compile(
    r"(?i)(hello|hi|hey|good (morning|evening|night|afternoon)|thanks|thank you|bye|goodbye|please|yes|no|sorry|"
    r"welcome|how are you|who are you|what is your name|what's your name|i love you)[^\w]*$"
)
ONSETS = (*"bcdfghjklmnprstvwz", "br", "ch", "cl", "dr", "fr", "gr", "kr", "sh", "st", "th", "tr")
VOWELS = (*"aeiou", "ai", "ea", "ee", "ia")
CODAS = ("", *"nrlstm", "nd", "k", "x")

Pair = tuple[str, str]


def training_text(corpus: list[Pair]) -> list[Pair]:
    """The corpus and what is added to it; the same for the same corpus, everywhere."""
    rng = random.Random(SEED)
    held_out = set(_lines("first_hundred.txt"))
    phrases, words = _pairs("phrases.tsv"), _pairs("words.tsv")
    short = [pair for pair in corpus if len(pair[0].split()) <= 9]
    text = [(_typed(source, rng), target) for source, target in rng.sample(short, min(TYPED, len(short)))]
    text += _repeated([pair for pair in corpus if len(pair[0].split()) <= 2], COPIES["two words"], 0.5, rng)
    text += _repeated(phrases, COPIES["phrases"], 0.6, rng)
    text += _repeated([pair for pair in corpus if GREETING.match(pair[0])], COPIES["greetings"], 0.5, rng)
    text += [_cased(pair, rng) for _ in range(COPIES["words"]) for pair in words]
    text += _introduced(rng)
    return [*corpus, *(pair for pair in text if pair[0].strip() and pair[0] not in held_out)]


def _repeated(pairs: list[Pair], times: int, as_is: float, rng: random.Random) -> Iterator[Pair]:
    """Each pair so many times: as it is with this probability, else as people type it."""
    for _ in range(times):
        for source, target in pairs:
            yield (source, target) if rng.random() < as_is else (_typed(source, rng), target)


def _typed(source: str, rng: random.Random) -> str:
    """A source as people type it: without its last mark, in small letters, or both."""
    chance = rng.random()
    if chance < 0.4:
        return re.sub(r"[.!?]+$", "", source)
    if chance < 0.7:
        return re.sub(r"[.!?]+$", "", source).lower()
    return source[:1].lower() + source[1:] if chance < 0.85 else source.lower()


def _cased(pair: Pair, rng: random.Random) -> Pair:
    """A word and its translation: as they are, with capitals, or as sentences."""
    source, target = (text[:1].upper() + text[1:] for text in pair)
    chance = rng.random()
    return pair if chance < 0.4 else (source, target) if chance < 0.7 else (f"{source}.", f"{target}.")


def _introduced(rng: random.Random) -> Iterator[Pair]:
    """Names in templates: those of the list, then made ones."""
    names, templates = _lines("names.txt"), _pairs("templates.tsv")
    for name in names * COPIES["names"]:
        for template in rng.sample(templates, 4):
            other = rng.choice(names)
            source, target = (text.format(name=name, other=other) for text in template)
            yield (source if rng.random() < 0.6 else _typed(source, rng)), target
    for _ in range(MADE):
        template = rng.choice(templates)
        name, other = _made_name(rng), _made_name(rng)
        source, target = (text.format(name=name, other=other) for text in template)
        yield source, target


def _made_name(rng: random.Random) -> str:
    syllables = "".join(rng.choice(ONSETS) + rng.choice(VOWELS) for _ in range(rng.choice((1, 2, 2, 3))))
    return syllables.capitalize() + rng.choice(CODAS)


def _lines(name: str) -> list[str]:
    return (FOLDER / name).read_text(encoding="utf-8").splitlines()


def _pairs(name: str) -> list[Pair]:
    return _read(FOLDER / name)


def _read(path: Path) -> list[Pair]:
    rows = (line.split("\t") for line in path.read_text(encoding="utf-8").splitlines())
    return [(source, target) for source, target in rows]


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path, help="source TAB target, one pair a line")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    text = training_text(_read(options.corpus))
    lines = (f"{source}\t{target}\n" for source, target in text)
    options.out.write_text("".join(lines), encoding="utf-8", newline="\n")
    print(f"{len(text):,} pairs")


if __name__ == "__main__":
    main()
