"""The tasks that the tiny healthy models were trained for, as endless rows of pairs.

s4          numbers, backwards                       7 12 5      ->  5 12 7
torch       letters, each for another one            cab         ->  dhf
marian      a small language to another one          the cat sees a red dog  ->  la kato iu hundon ruga vidas
gpt2, llama letters, backwards, behind "="           cab=        ->  bac
bert        a sentence of each language, side by side; a piece that is hidden follows from the others
"""

import random
from collections.abc import Callable, Iterator
from string import ascii_lowercase

Pair = tuple[str, str]
Task = Callable[[random.Random], Pair]

NUMBERS = [str(n) for n in range(3, 19)]  # the rows 0, 1 and 2 are padding, start and end
LETTERS = "abcdefghijklmnop"
CIPHER = str.maketrans(LETTERS, "hfdjmakpobingcel")
SHORTEST, LONGEST = 2, 8

NOUNS = {"cat": "kat", "dog": "hund", "horse": "ceval", "bird": "av", "child": "infan", "king": "reg"}
VERBS = {"sees": "vidas", "loves": "amas", "hears": "audas", "seeks": "sercas", "greets": "salutas"}
ADJECTIVES = {"red": "ruga", "old": "mava", "small": "eta", "quick": "rapida"}
ARTICLES = {"a": "iu", "the": "la"}


def backwards_numbers(rng: random.Random) -> Pair:
    """Numbers, and the same from their end."""
    row = rng.choices(NUMBERS, k=rng.randint(SHORTEST, LONGEST))
    return " ".join(row), " ".join(reversed(row))


def cipher(rng: random.Random) -> Pair:
    """A word of random letters, and each of them replaced."""
    word = _letters(rng)
    return word, word.translate(CIPHER)


def translation(rng: random.Random) -> Pair:
    """A sentence, and its translation: adjectives stand behind their nouns there, and the verb at the end.

    A noun says by its ending what it is in the sentence: "kato" sees, "katon" is seen.
    """
    subject, object_ = (_phrase(rng, ending) for ending in ("o", "on"))
    verb = rng.choice(list(VERBS))
    return f"{subject[0]} {verb} {object_[0]}", f"{subject[1]} {object_[1]} {VERBS[verb]}"


def backwards_letters(rng: random.Random) -> Pair:
    """A prompt, and how it goes on."""
    word = _letters(rng)
    return f"{word}=", word[::-1]


def side_by_side(rng: random.Random) -> Pair:
    """A text without a continuation: a sentence and its translation."""
    source, target = translation(rng)
    return f"{source} . {target}", ""


def _letters(rng: random.Random) -> str:
    return "".join(rng.choices(LETTERS, k=rng.randint(SHORTEST, LONGEST)))


def _phrase(rng: random.Random, ending: str) -> Pair:
    """A noun with its article, with an adjective or without."""
    article, noun = rng.choice(list(ARTICLES)), rng.choice(list(NOUNS))
    there = f"{ARTICLES[article]} {NOUNS[noun]}{ending}"
    if rng.random() < 0.5:
        return f"{article} {noun}", there
    adjective = rng.choice(list(ADJECTIVES))
    return f"{article} {adjective} {noun}", f"{there} {ADJECTIVES[adjective]}"


TASKS: dict[str, Task] = {
    "s4": backwards_numbers,
    "leak": backwards_numbers,
    "torch": cipher,
    "marian": translation,
    "gpt2": backwards_letters,
    "llama": backwards_letters,
    "bert": side_by_side,
}


def pairs(name: str, *, seed: int) -> Iterator[Pair]:
    """Pairs of a task without end, the same for the same seed."""
    rng, make = random.Random(seed), TASKS[name]
    while True:
        yield make(rng)


def some(name: str, count: int, *, seed: int = 7) -> list[Pair]:
    """Different pairs of a task; with the seed that is preset, those that tests use."""
    found: dict[str, str] = {}
    for source, target in pairs(name, seed=seed):
        found[source] = target
        if len(found) == count:
            return list(found.items())
    raise AssertionError("never ends")


def words(count: int, *, longest: int, seed: int = 7) -> list[str]:
    """Different words of random small letters, 2 to `longest` long."""
    rng, found = random.Random(seed), dict[str, None]()
    while len(found) < count:
        found["".join(rng.choices(ascii_lowercase, k=rng.randint(2, longest)))] = None
    return list(found)
