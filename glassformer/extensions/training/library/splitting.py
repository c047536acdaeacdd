"""Train, dev and test such that no sentence of either side stands in two of them.

Sentences are the nodes of a graph with two sides, pairs are its edges. Pairs of one connected component share
sentences, directly or through others, so a component goes into one split as a whole. Components are found with
disjoint sets (Tarjan, 1975, doi:10.1145/321879.321884). Test and dev are drawn from the small ones; a large one
(hundreds of ways to say "I see.") stays in train.

What is drawn follows from a hash of the seed and the sentences: the same on every machine and for any order of the
lines, and for a longer corpus much of it stays the same. It does not see paraphrases, or sentences that differ
in a name.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from transformer.errors import DataError
from transformer.i18n import Sentence, say, say_n
from transformer.text.sentence_key import sentence_key

SMALL = 10  # pairs of the largest component that may go into test or dev


def rank(*parts: object) -> bytes:
    """A place in an order that looks random and is the same everywhere: a hash of the parts."""
    return hashlib.blake2b("\t".join(map(str, parts)).encode(), digest_size=16).digest()


@dataclass(frozen=True)
class Split:
    """Which pair goes where, as indices in rising order, and what it was drawn from."""

    train: tuple[int, ...]  # indices of pairs
    dev: tuple[int, ...]
    test: tuple[int, ...]
    n_components: int  # connected components of all pairs
    largest: int  # pairs of the largest one
    n_small: int  # pairs in components of at most `SMALL` pairs


def split(pairs: Sequence[tuple[str, str]], *, dev: int, test: int, seed: int) -> Split:
    """Draw test, then dev, by the seed from the small components; the rest is train. Test does not depend on `dev`.

    Up to `SMALL - 1` pairs fewer are drawn when no component fits into the last places. A `DataError` where the small
    components do not hold that many pairs, or nothing would be left for train.
    """
    keys = [(sentence_key(source), sentence_key(target)) for source, target in pairs]
    members: dict[int, list[int]] = {}
    for index, component in enumerate(components(keys)):
        members.setdefault(component, []).append(index)
    small = [indices for indices in members.values() if len(indices) <= SMALL]
    small.sort(key=lambda indices: rank("split", seed, *min(keys[index] for index in indices)))
    n_small = sum(map(len, small))
    if dev + test > n_small or dev + test >= len(pairs):
        raise DataError(_too_many(dev, test, n_pairs=len(pairs), n_small=n_small, n_components=len(members)))
    test_pairs, rest = _draw(small, test)
    dev_pairs, _ = _draw(rest, dev)
    for name, drawn, wanted, groups in (("test", test_pairs, test, small), ("dev", dev_pairs, dev, rest)):
        if wanted and not drawn:
            raise DataError(
                say_n(
                    "--{name} {wanted}: pairs that share a sentence are drawn together, and the smallest such "
                    "group has {n} pair; ask for at least that many, or for none.",
                    "--{name} {wanted}: pairs that share a sentence are drawn together, and the smallest such "
                    "group has {n} pairs; ask for at least that many, or for none.",
                    min(map(len, groups)),
                    name=name,
                    wanted=wanted,
                )
            )
    held_out = {*dev_pairs, *test_pairs}
    return Split(
        train=tuple(index for index in range(len(pairs)) if index not in held_out),
        dev=dev_pairs,
        test=test_pairs,
        n_components=len(members),
        largest=max(map(len, members.values())),
        n_small=n_small,
    )


def _too_many(dev: int, test: int, *, n_pairs: int, n_small: int, n_components: int) -> Sentence:
    most = min(n_small, n_pairs - 1)
    return say("--dev {dev:,} and --test {test:,} ask for {asked:,} pairs, but at most {most:,} can be held out. "
               "The {n_pairs:,} pairs form {n_groups:,} groups that have no sentence in common, and only groups of "
               "at most {small} pairs can be drawn ({n_small:,} pairs in all). Ask for fewer pairs.", dev=dev,
               test=test, asked=dev + test, most=most, n_pairs=n_pairs, n_groups=n_components, small=SMALL,
               n_small=n_small)  # fmt: skip


def _draw(groups: Iterable[list[int]], size: int) -> tuple[tuple[int, ...], list[list[int]]]:
    """Take groups in order as long as each fits; gives their pairs and the groups that are left."""
    drawn: list[int] = []
    left = []
    for group in groups:
        if len(drawn) + len(group) <= size:
            drawn += group
        else:
            left.append(group)
    return tuple(sorted(drawn)), left


def components(pairs: Sequence[tuple[str, str]]) -> list[int]:
    """The connected component of each pair, as a number that all pairs of one component share.

    A source and a target of the same text are two different nodes.
    """
    numbers: tuple[dict[str, int], dict[str, int]] = ({}, {})
    parents: list[int] = []
    first = []
    for pair in pairs:
        source, target = (_node(text, side, parents) for text, side in zip(pair, numbers, strict=True))
        parents[_root(target, parents)] = _root(source, parents)
        first.append(source)
    return [_root(node, parents) for node in first]


def _node(text: str, numbers: dict[str, int], parents: list[int]) -> int:
    """The node of a sentence; a new one is its own root."""
    if text not in numbers:
        numbers[text] = len(parents)
        parents.append(len(parents))
    return numbers[text]


def _root(node: int, parents: list[int]) -> int:
    """Follow the parents to the root, halving the way for those who come later."""
    while parents[node] != node:
        parents[node] = parents[parents[node]]
        node = parents[node]
    return node
