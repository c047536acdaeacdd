"""The tasks that the tiny healthy models were trained for, as endless rows of pairs.

s4          numbers, backwards                       7 12 5      ->  5 12 7
torch       letters, each for another one            cab         ->  dhf
marian      a small language to another one          the cat sees a red dog  ->  la kato iu hundon ruga vidas
gpt2, llama letters, backwards, behind "="           cab=        ->  bac
bert        a sentence of each language, side by side; a piece that is hidden follows from the others
"""

import random
from itertools import islice
from string import ascii_lowercase

NUMBERS = [str(n) for n in range(3, 19)]  # the rows 0, 1 and 2 are padding, start and end
LETTERS = "abcdefghijklmnop"
CIPHER = str.maketrans(LETTERS, "hfdjmakpobingcel")
SHORTEST, LONGEST = 2, 8

NOUNS = {"cat": "kat", "dog": "hund", "horse": "ceval", "bird": "av", "child": "infan", "king": "reg"}
VERBS = {"sees": "vidas", "loves": "amas", "hears": "audas", "seeks": "sercas", "greets": "salutas"}
ADJECTIVES = {"red": "ruga", "old": "mava", "small": "eta", "quick": "rapida"}
ARTICLES = {"a": "iu", "the": "la"}


def backwards_numbers(rng):
    row = rng.choices(NUMBERS, k=rng.randint(SHORTEST, LONGEST))
    return " ".join(row), " ".join(reversed(row))


def letters(rng):
    return "".join(rng.choices(LETTERS, k=rng.randint(SHORTEST, LONGEST)))


def cipher(rng):
    word = letters(rng)
    return word, word.translate(CIPHER)


def backwards_letters(rng):
    word = letters(rng)
    return f"{word}=", word[::-1]


def translation(rng):
    """A sentence, and its translation: adjectives stand behind their nouns there, and the verb at the end.

    A noun says by its ending what it is in the sentence: "kato" sees, "katon" is seen.
    """
    subject, object_ = (phrase(rng, ending) for ending in ("o", "on"))
    verb = rng.choice(list(VERBS))
    return f"{subject[0]} {verb} {object_[0]}", f"{subject[1]} {object_[1]} {VERBS[verb]}"


def phrase(rng, ending):
    """A noun with its article, with an adjective or without."""
    article, noun = rng.choice(list(ARTICLES)), rng.choice(list(NOUNS))
    there = f"{ARTICLES[article]} {NOUNS[noun]}{ending}"
    if rng.random() < 0.5:
        return f"{article} {noun}", there
    adjective = rng.choice(list(ADJECTIVES))
    return f"{article} {adjective} {noun}", f"{there} {ADJECTIVES[adjective]}"


def side_by_side(rng):
    return " . ".join(translation(rng)), ""


TASKS = {"marian": translation, "torch": cipher, "bert": side_by_side}
TASKS |= {"s4": backwards_numbers, "leak": backwards_numbers, "gpt2": backwards_letters, "llama": backwards_letters}


def pairs(name, *, seed):
    """Pairs of a task without end, the same for the same seed."""
    rng = random.Random(seed)
    while True:
        yield TASKS[name](rng)


def some(name, count, *, seed=7):
    """Different pairs of a task; with the seed that is preset, those that tests use."""
    found = {}
    for source, target in pairs(name, seed=seed):
        found[source] = target
        if len(found) == count:
            return list(found.items())
    raise AssertionError("never ends")


def words(count, *, longest, seed=7):
    """Different words of random small letters, 2 to `longest` long."""
    rng = random.Random(seed)
    endless = iter(lambda: "".join(rng.choices(ascii_lowercase, k=rng.randint(2, longest))), None)
    found = {}
    while len(found) < count:
        found |= dict.fromkeys(islice(endless, count - len(found)))
    return list(found)
