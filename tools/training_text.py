"""The text that `checkpoints/en-fr` and `zh-en` learned last: a corpus of sentences, and what people type first.

    python -m tools.training_text en-fr en-fr-train.tsv --out en-fr-train-first.tsv

In a corpus of sentences nearly every line begins with a capital and ends with a full stop, greetings are rare, and
the same few names come again and again; people type `hello`, `i like tea` and their own name. To the corpus are
added: copies of its short pairs with the source as people type it; what stands in `first_words/` (phrases, single
words, names in templates, each written for this project and under its licence), several times; and made names, so
that a name is copied (or spelled in pinyin) and not known by heart.

`first_words/*/first_hundred.txt` is what a reader who had seen none of this thought that people type first. It is
for scoring, so no source that is added is a line of it, as it stands there.
"""

import argparse
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path

FIRST_WORDS = Path(__file__).resolve().parent / "first_words"
SEED = 7
COPIES = {"phrases": 4, "greetings": 6, "words": 3, "names": 2, "short": 2}
TYPED, MADE = 0.055, 2_500  # share of the corpus as people type it, and pairs with a made name
SHORT, VERY_SHORT = {"en": 9, "zh": 14}, {"en": 2, "zh": 3}  # words of English, characters of Chinese
GREETING = re.compile(
    r"(?i)(hello|hi|hey|good (morning|evening|night|afternoon)|thanks|thank you|bye|goodbye|please|yes|no|sorry|"
    r"welcome|how are you|who are you|what is your name|what's your name|i love you|"
    r"[你您]好|嗨|喂|早上好|早安|晚上好|晚安|谢谢你?|再见|拜拜|对不起|没关系|请|不?是|欢迎|你好吗|你是谁|"
    r"你叫什么名字|我爱你)\W*"
)
END = re.compile(r"[.!?。！？]+$")
ONSETS = (*"bcdfghjklmnprstvwz", "br", "ch", "cl", "dr", "fr", "gr", "kr", "sh", "st", "th", "tr")
VOWELS = (*"aeiou", "ai", "ea", "ee", "ia")
CODAS = ("", *"nrlstm", "nd", "k", "x")

Pair = tuple[str, str]


def training_text(languages: str, corpus: list[Pair]) -> list[Pair]:
    """The corpus and what is added to it; the same for the same corpus, everywhere.

    `languages` is a folder of `first_words`: the codes of source and target, as in `en-fr`.
    """
    rng = random.Random(SEED)
    folder, source = FIRST_WORDS / languages, languages[:2]
    held_out = set((folder / "first_hundred.txt").read_text(encoding="utf-8").splitlines())
    length: Callable[[str], int] = len if source == "zh" else lambda text: len(text.split())
    short = [pair for pair in corpus if length(pair[0]) <= SHORT[source]]
    typed = rng.sample(short, min(round(TYPED * len(corpus)), len(short)))
    text = [(_typed(source, rng), target) for source, target in typed]
    very_short = [pair for pair in corpus if length(END.sub("", pair[0])) <= VERY_SHORT[source]]
    text += _repeated(very_short, COPIES["short"], 0.5, rng)
    text += _repeated(_pairs(folder / "phrases.tsv"), COPIES["phrases"], 0.6, rng)
    text += _repeated([pair for pair in corpus if GREETING.fullmatch(pair[0])], COPIES["greetings"], 0.5, rng)
    words = _pairs(folder / "words.tsv")
    text += [_cased(pair, rng) for _ in range(COPIES["words"]) for pair in words]
    text += _introduced(_pairs(folder / "names.tsv"), _pairs(folder / "templates.tsv"), rng)
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
        return END.sub("", source)
    if chance < 0.7:
        return END.sub("", source).lower()
    return source[:1].lower() + source[1:] if chance < 0.85 else source.lower()


def _cased(pair: Pair, rng: random.Random) -> Pair:
    """A word and its translation: as they are, with capitals, or as sentences."""
    source, target = (text[:1].upper() + text[1:] for text in pair)
    chance, stop = rng.random(), "." if source.isascii() else "。"
    return pair if chance < 0.4 else (source, target) if chance < 0.7 else (f"{source}{stop}", f"{target}.")


def _introduced(names: list[Pair], templates: list[Pair], rng: random.Random) -> Iterator[Pair]:
    """Names in templates: those of the list, then made ones."""
    for name in names * COPIES["names"]:
        for template in rng.sample(templates, 4):
            source, target = _filled(template, name, rng.choice(names))
            yield (source if rng.random() < 0.6 else _typed(source, rng)), target
    make = _maker(names)
    for _ in range(MADE):
        yield _filled(rng.choice(templates), make(rng), make(rng))


def _filled(template: Pair, name: Pair, other: Pair) -> Pair:
    source, target = (text.format(name=name[n], other=other[n]) for n, text in enumerate(template))
    return source, target


def _maker(names: list[Pair]) -> Callable[[random.Random], Pair]:
    """What makes a name: of syllables, or of the characters and the pinyin of Chinese names."""
    spelled = [(name, target.split()) for name, target in names if not name.isascii() and len(name) == 2]
    first, last = ([(name[n], parts[n]) for name, parts in spelled if len(parts) == 2] for n in (0, 1))

    def made(rng: random.Random) -> Pair:
        if not first:
            name = _made_name(rng)
            return name, name
        given = rng.sample(last, rng.choice((1, 1, 2)))
        family = rng.choice(first)
        return (
            family[0] + "".join(character for character, _ in given),
            f"{family[1]} {''.join(sound for _, sound in given).capitalize()}",
        )

    return made


def _made_name(rng: random.Random) -> str:
    syllables = "".join(rng.choice(ONSETS) + rng.choice(VOWELS) for _ in range(rng.choice((1, 2, 2, 3))))
    return syllables.capitalize() + rng.choice(CODAS)


def _pairs(path: Path) -> list[Pair]:
    rows = (line.split("\t") for line in path.read_text(encoding="utf-8").splitlines())
    return [(source, target) for source, target in rows]


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    languages = sorted(path.name for path in FIRST_WORDS.iterdir() if path.is_dir())
    parser.add_argument("languages", choices=languages)
    parser.add_argument("corpus", type=Path, help="source TAB target, one pair a line")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    text = training_text(options.languages, _pairs(options.corpus))
    lines = (f"{source}\t{target}\n" for source, target in text)
    options.out.write_text("".join(lines), encoding="utf-8", newline="\n")
    print(f"{len(text):,} pairs")


if __name__ == "__main__":
    main()
