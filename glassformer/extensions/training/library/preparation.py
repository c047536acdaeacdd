"""Training files: cleaned text, split by shared sentences, report, card; made-up tasks (reverse, sort, addition).

    train.tsv  dev.tsv  test.tsv                  source TAB target, UTF-8, in the order of the input
    train.attribution.tsv  ...                    line of the input TAB whom to name; line n belongs to line n
    card.json                                     for `--card` of the command train, which puts it into the checkpoint
    report.json                                   what was read, changed, dropped and drawn

The same input and settings give the same bytes on every machine.

No sentence of either side is in two of train, dev and test. Sentences are the nodes of a bipartite graph, pairs are its
edges. Pairs of one connected component share sentences, directly or indirectly, so a whole component goes into one
split. Components are found with disjoint sets (Tarjan, 1975, doi:10.1145/321879.321884). Test and dev are drawn from
the small ones; a large one (hundreds of ways to say "I see.") stays in train.

The draw depends on a hash of the seed and the sentences: it is independent of the machine and the order of the lines,
and similar for a longer corpus. It does not detect paraphrases, or sentences that differ only in a name.

A tiny model learns the made-up tasks perfectly:

    reverse, sort, copy    glass -> ssalg, aglss, glass
    addition               47+385= -> 432; for a decoder-only model a prompt and its continuation
    palindrome             a text without a target, such as redder: each hidden letter follows from another one

Nothing can be learned of one, only memorised:

    noise                  each piece of a target is drawn from eight letters and the end, which only cannot be first
"""

import json
import os
import random
import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from glassformer.extensions.training.library.cleaning import Cleaned, CleaningRules, CleanPair, clean, rank
from transformer.checkpoint.card import TEXTS
from transformer.checkpoint.save import file_sha256
from transformer.errors import DataError
from transformer.files.atomic_saves import write_whole
from transformer.i18n import Sentence, say, say_n
from transformer.text.line_files import read_lines, sentence_key

SPLITS = ("train", "dev", "test")
CARD, REPORT = "card.json", "report.json"
WRITTEN = (*(f"{name}.tsv" for name in SPLITS), *(f"{name}.attribution.tsv" for name in SPLITS), CARD, REPORT)
LONGEST_EXAMPLE = 80
SMALL = 10  # pairs of the largest component that may go into test or dev

# What the third column of every line says in the export of manythings.org/anki.
_TATOEBA = ("CC-BY 2.0 (France)", "tatoeba.org")
_TATOEBA_DATA = "Trained on sentences from Tatoeba (tatoeba.org, manythings.org/anki), CC-BY 2.0 FR."
_TATOEBA_LICENCE = "CC-BY 2.0 FR (Tatoeba)"


@dataclass(frozen=True, kw_only=True)
class Preparation:
    """What to read, what to keep and where to put it."""

    files: Sequence[Path]  # one file of tab-separated lines (or a zip that holds one), or two line-aligned files
    out: Path  # the folder to write
    rules: CleaningRules = field(default_factory=CleaningRules)  # which pairs to keep
    dev: int = 1_000  # Pairs to hold out; 0 for none. The seed of `rules` decides which.
    test: int = 2_000
    force: bool = False  # replace an earlier call's files, listed in its report; other files stay
    # Title, languages, data and licence, if given.
    card: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, value in (("--dev", self.dev), ("--test", self.test)):
            if value < 0:
                raise DataError("{name} is {value}; expected at least {least}.", name=name, value=value, least=0)


@dataclass(frozen=True)
class Split:
    """Which pair goes where, as indices in rising order, and what it was drawn from."""

    train: tuple[int, ...]  # indices of pairs
    dev: tuple[int, ...]
    test: tuple[int, ...]
    n_components: int  # connected components of all pairs
    largest: int  # pairs of the largest one
    n_small: int  # pairs in components of at most `SMALL` pairs


def prepare(job: Preparation) -> dict[str, object]:
    """Read, clean, split and write; returns the report, as written to `report.json`.

    A `DataError` if a file cannot be read, the folder cannot be written, or the pairs do not suffice.
    """
    _check_folder(job)
    cleaned = clean(read_lines(job.files), job.rules)
    parts = split([pair[1:3] for pair in cleaned.pairs], dev=job.dev, test=job.test, seed=job.rules.seed)
    contents: dict[str, str] = {}
    for name in SPLITS:
        indices: Sequence[int] = getattr(parts, name)
        contents |= _files(name, [cleaned.pairs[index] for index in indices])
    report = _report(job, cleaned, parts)
    contents[CARD] = _json(_card(job, cleaned.pairs, report))
    _write(job.out, {REPORT: _json(report), **contents})  # the report first: by it a later call knows its own files
    return report


def _check_folder(job: Preparation) -> None:
    if job.out.exists() and not job.out.is_dir():
        raise DataError("{out}: is a file; --out must be the folder to write to.", out=str(job.out))
    if job.out.is_dir() and any(job.out.iterdir()) and not job.force:
        raise DataError(
            "{out}: already contains files; choose another folder, or use --force to replace them.", out=str(job.out)
        )
    for name in WRITTEN:
        if os.path.lexists(job.out / name) and name not in _written_before(job.out):
            raise DataError(
                "{file}: was not written by prepare, so it will not be replaced or removed; choose another folder.",
                file=str(job.out / name),
            )
    ours = {(job.out / name).resolve() for name in WRITTEN}
    for file in job.files:
        if file.resolve() in ours:
            raise DataError(
                "{file}: would be overwritten by the output made from it; choose a different folder for --out.",
                file=str(file),
            )


def _written_before(folder: Path) -> set[str]:
    """The files that an earlier call wrote into a folder, by its report; empty without such a report."""
    try:
        report = json.loads((folder / REPORT).read_bytes())
        splits = [name for name in SPLITS if report["settings"] and report["splits"][name]]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return set()
    return {CARD, REPORT, *(f"{name}{kind}.tsv" for name in splits for kind in ("", ".attribution"))}


def _files(name: str, pairs: Sequence[CleanPair]) -> dict[str, str]:
    """The files of one split, none if it is empty; attributions only if there are some."""
    files = {}
    if pairs:
        files[f"{name}.tsv"] = "".join(f"{pair.source}\t{pair.target}\n" for pair in pairs)
    if any(pair.attribution for pair in pairs):
        files[f"{name}.attribution.tsv"] = "".join(f"{pair.line}\t{pair.attribution}\n" for pair in pairs)
    return files


def _report(job: Preparation, cleaned: Cleaned, parts: Split) -> dict[str, object]:
    tally = cleaned.tally
    return {
        "files": [{"file": file.name, "sha256": file_sha256(file)} for file in job.files],
        "settings": {**asdict(job.rules), "dev": job.dev, "test": job.test},
        "read": tally.read,
        "changed": {name: count for name, count in tally.changed.items() if count},
        "dropped": {
            str(reason): {
                "lines": count,
                "examples": [{"line": line, "text": _cut("\t".join(texts))} for line, texts in tally.examples[reason]],
            }
            for reason, count in sorted(tally.dropped.items(), key=lambda item: -item[1])
        },
        "kept": len(cleaned.pairs),
        "with_attribution": sum(bool(pair.attribution) for pair in cleaned.pairs),
        "target_characters_a_source_character": round(cleaned.ratio, 3),
        "spaces_between_words": {"source": cleaned.spaces[0], "target": cleaned.spaces[1]},
        "splits": {name: len(getattr(parts, name)) for name in SPLITS},
        "groups": {
            "groups": parts.n_components,
            "pairs_of_the_largest": parts.largest,
            "most_pairs_of_a_drawn_one": SMALL,
            "pairs_that_could_be_drawn": parts.n_small,
        },
    }


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_EXAMPLE else text[: LONGEST_EXAMPLE - 1] + "…"


def _card(job: Preparation, pairs: Sequence[CleanPair], report: Mapping[str, object]) -> dict[str, object]:
    """The card before training; licence and source only if they are the same for every pair."""
    tatoeba = all(word in pair.attribution for pair in pairs for word in _TATOEBA)
    known = {"data": _TATOEBA_DATA, "licence": _TATOEBA_LICENCE} if tatoeba else {}
    return {
        **dict.fromkeys(TEXTS, ""),
        **known,
        **{name: value for name, value in job.card.items() if value},
        "examples": [],
        "prepared": {name: report[name] for name in ("files", "settings", "splits")},
    }


def _json(record: Mapping[str, object]) -> str:
    return json.dumps(record, indent=2, ensure_ascii=False) + "\n"


def _write(folder: Path, contents: Mapping[str, str]) -> None:
    """Write the files one by one, each atomically; files of an earlier call that are not written again are removed."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in WRITTEN:
            if name not in contents:
                (folder / name).unlink(missing_ok=True)
        for name, content in contents.items():
            write_whole(folder / name, content.encode(), folder / f".{name}.partial")
    except OSError as error:
        raise DataError("{file}: cannot be written ({reason}).", file=str(folder), reason=error.strerror) from None


# ------------------------------------------------------------------------------------------------ train, dev, test


def split(pairs: Sequence[tuple[str, str]], *, dev: int, test: int, seed: int) -> Split:
    """Draw test, then dev, by the seed from the small components; the rest is train. Test does not depend on `dev`.

    Up to `SMALL - 1` pairs fewer are drawn if no component fits into the last places. A `DataError` if the small
    components have too few pairs, or nothing would be left for train.
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
    """Take groups in order as long as each fits; returns their pairs and the groups that are left."""
    drawn: list[int] = []
    left = []
    for group in groups:
        if len(drawn) + len(group) <= size:
            drawn += group
        else:
            left.append(group)
    return tuple(sorted(drawn)), left


def components(pairs: Sequence[tuple[str, str]]) -> list[int]:
    """The connected component of each pair, as a number. A source and a target of the same text are different nodes."""
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
    """Follow the parents to the root, with path halving."""
    while parents[node] != node:
        parents[node] = parents[parents[node]]
        node = parents[node]
    return node


# ------------------------------------------------------------------------------------------------ made-up tasks

SHORTEST, LONGEST = 2, 12
DIGITS = 3  # of a summand at most
FEW = 4  # letters that a palindrome is made of
NOISE = "abcdefgh"


@dataclass(frozen=True)
class Task:
    """How its examples are made."""

    draw: Callable[[random.Random, int], str]  # what is given, by the largest length
    solve: Callable[[str], str] | None  # its target; None for a text alone
    train: int = 60_000  # lines to learn from
    longest: int = LONGEST  # letters, or digits of a summand
    shortest: int = SHORTEST  # that `longest` may be

    def line(self, given: str) -> str:
        """The line of a file."""
        return f"{given}\n" if self.solve is None else f"{given}\t{self.solve(given)}\n"


def _letters(rng: random.Random, longest: int) -> str:
    length = rng.randint(SHORTEST, longest)
    return "".join(rng.choices(string.ascii_lowercase, k=length))


def _sum(rng: random.Random, digits: int) -> str:
    """Two numbers; all numbers of digits are equally likely."""
    sizes = [10 ** rng.randint(1, digits) for _ in range(2)]
    first, second = (rng.randrange(0 if size == 10 else size // 10, size) for size in sizes)
    return f"{first}+{second}="


def _palindrome(rng: random.Random, longest: int) -> str:
    """Of even length: a single middle letter would follow from nothing.

    Its few letters often occur twice, so the hidden one follows only from its position, not as the odd one out.
    """
    letters = rng.sample(string.ascii_lowercase, FEW)
    half = "".join(rng.choices(letters, k=rng.randint(SHORTEST, longest // 2)))
    return half + half[::-1]


def _noise(row: str) -> str:
    """A letter, and more until the end is drawn, by a generator that the row seeds."""
    rng = random.Random(row)
    drawn = [rng.choice(NOISE)]
    while drawn[-1]:
        drawn.append(rng.choice([*NOISE, ""]))
    return "".join(drawn)


TASKS: Final[Mapping[str, Task]] = {
    "reverse": Task(_letters, lambda row: row[::-1]),
    "sort": Task(_letters, lambda row: "".join(sorted(row))),
    "copy": Task(_letters, lambda row: row),
    # Few enough that the hundred sums of two digits count for something.
    "addition": Task(
        _sum, lambda row: str(sum(map(int, row.rstrip("=").split("+")))), train=30_000, longest=DIGITS, shortest=1
    ),
    "palindrome": Task(_palindrome, None, shortest=2 * SHORTEST),
    "noise": Task(lambda rng, longest: "".join(rng.choices(NOISE, k=rng.randint(SHORTEST, longest))), _noise, 250),
}
_DRAWS = 100  # in a row that give nothing new, for each line there is: then too few are possible


def write_task(
    name: str,
    folder: Path,
    *,
    train: int | None = None,
    dev: int = 500,
    test: int = 1_000,
    seed: int = 1,
    longest: int | None = None,
) -> None:
    """Write train.tsv, dev.tsv and test.tsv of a task: `given TAB target` lines, or texts; nothing is given twice.

    `train` is the number of training lines, `longest` the most letters (or digits of a summand), None for the task's
    defaults. The folder is made if it is missing. A `DataError` if so many different lines cannot be drawn, the folder
    has other files of these names, or it cannot be written.
    """
    task, rng = TASKS[name], random.Random(seed)
    longest = task.longest if longest is None else longest
    n_lines = (task.train if train is None else train) + dev + test
    for option, value, least in (("--longest", longest, task.shortest), ("--train", n_lines - dev - test, 1)):
        if value < least:
            raise DataError("{name} is {value}; expected at least {least}.", name=option, value=value, least=least)
    seen, n_known = dict[str, None](), 0  # draws since the last one that was new
    while len(seen) < n_lines and n_known < _DRAWS * (len(seen) + 1):
        before = len(seen)
        seen[task.draw(rng, longest)] = None
        n_known = n_known + 1 if len(seen) == before else 0
    if len(seen) < n_lines:
        raise DataError(
            "--longest {longest}: only {found:,} different lines of {n:,} could be drawn; raise it, or lower --train.",
            longest=longest,
            found=len(seen),
            n=n_lines,
        )
    given = list(seen)
    # Dev and test are drawn from all lengths alike: the many that are only two letters long come early.
    rng.shuffle(given)
    parts = {"dev": given[:dev], "test": given[dev : dev + test], "train": given[dev + test :]}
    texts = {f"{part}.tsv": "".join(map(task.line, rows)) for part, rows in parts.items()}
    try:
        _add(folder, texts)
    except OSError as error:
        raise DataError(
            "{file}: cannot be written ({reason}).", file=str(folder), reason=error.strerror or say("unknown reason")
        ) from None


def _add(folder: Path, contents: Mapping[str, str]) -> None:
    """Write the missing files; refuse one with other content."""
    folder.mkdir(parents=True, exist_ok=True)
    missing = [name for name in contents if not os.path.lexists(folder / name)]
    for name in contents.keys() - missing:
        if (folder / name).read_bytes() != contents[name].encode():
            raise DataError(
                "{file}: already exists with different content; choose another folder.", file=str(folder / name)
            )
    for name in missing:
        write_whole(folder / name, contents[name].encode(), folder / f".{name}.partial")
