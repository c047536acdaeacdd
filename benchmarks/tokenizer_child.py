"""What does a separate process for a tokenizer.json cost, against the library in this process?

    python -m benchmarks.tokenizer_child --turns 7

A WordPiece vocabulary of 8,000 rows, texts of three lengths, each encoded and decoded again; both ways in turns, in
random order. It prints the waiting time for a text, and the ratio. The results are compared.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable

import tokenizers
from tokenizers import decoders, models, pre_tokenizers

from glassformer.extensions.tokenizers.tokenizers_library import LibraryProcess

WORDS = {"a word": 1, "a sentence": 20, "a page": 500}
TEXTS = 50  # in a turn
PIECES = 8_000


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--turns", type=int, default=7)
    options = parser.parse_args()
    content = _content()
    library = tokenizers.Tokenizer.from_str(content)
    began = time.perf_counter()
    child = LibraryProcess(content.encode())
    child.open()
    print(f"The process is started and has the file after {time.perf_counter() - began:.2f} s.\n")

    def inside(text: str) -> str:
        return str(library.decode(library.encode(text, add_special_tokens=False).ids))

    def outside(text: str) -> str:
        return child.decode(child.encode(text, unknown=0)[0])

    print("| a text, encoded and decoded | in this process | in one of its own | ratio | range | n |")
    print("|---|---|---|---|---|---|")
    for name, n_words in WORDS.items():
        _row(name, _texts(n_words), inside, outside, options.turns)


def _content() -> str:
    letters = [f"{mark}{_word(i)}" for mark in ("", "##") for i in range(26)]
    names = dict.fromkeys(["[UNK]", *letters, *(f"{'##' if i % 2 else ''}{_word(i)}" for i in range(PIECES))])
    made = tokenizers.Tokenizer(models.WordPiece({name: i for i, name in enumerate(names)}, unk_token="[UNK]"))
    made.pre_tokenizer, made.decoder = pre_tokenizers.Whitespace(), decoders.WordPiece()
    return str(made.to_str())


def _word(i: int) -> str:
    rest, place = divmod(i, 26)
    return chr(ord("a") + place) + (_word(rest) if rest else "")


def _texts(n_words: int) -> list[str]:
    draw = random.Random(n_words)
    return [" ".join(_word(draw.randrange(1, PIECES**2)) for _ in range(n_words)) for _ in range(TEXTS)]


def _row(name: str, texts: list[str], inside: Callable[[str], str], outside: Callable[[str], str], turns: int) -> None:
    ways: dict[str, Callable[[str], str]] = {"inside": inside, "outside": outside}
    if [inside(text) for text in texts] != [outside(text) for text in texts]:
        raise SystemExit("The two ways give different texts.")
    times: dict[str, list[float]] = {way: [] for way in ways}
    for turn in range(turns):
        for way in random.Random(turn).sample(list(ways), len(ways)):
            began = time.perf_counter()
            for text in texts:
                ways[way](text)
            times[way].append(1000 * (time.perf_counter() - began) / len(texts))
    ratios = [b / a for a, b in zip(times["inside"], times["outside"], strict=True)]
    first, second = (statistics.median(times[way]) for way in ("inside", "outside"))
    print(
        f"| {name} | {first:.3f} ms | {second:.3f} ms | {statistics.median(ratios):.1f} "
        f"| {min(ratios):.1f}-{max(ratios):.1f} | {turns} × {TEXTS} |"
    )


if __name__ == "__main__":
    main()
