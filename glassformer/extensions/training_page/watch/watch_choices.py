"""Settings of a small training (task or own pairs, presets, limits), its commands, and its result as a zip.

The model has two stacks of width 64, which train in a few minutes on one CPU. Its data are a made-up task, written by a
command of this program, or the user's own pairs, of which some are held out for scores.
"""

import io
import json
import random
import shlex
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Final

from glassformer.extensions.training.library.preparation import TASKS as FILES
from glassformer.extensions.training_page.trainings import MOST_MINUTES, Plan, Training
from transformer.checkpoint.snapshots import folder_of
from transformer.errors import DataError, QueryError
from transformer.i18n import ENGLISH, Sentence, languages, said, say
from transformer.model.config import ModelConfig
from transformer.model.config_fields import NormPlace
from transformer.model.position_kinds import PositionKind
from transformer.runs.sentence_files import FileLimits, SentenceLine, read_bytes, read_text

WIDTH, FEED_FORWARD = 64, 256
MOST_PARAMETERS: Final = 500_000
MOST_LAYERS: Final = 6
HEADS: Final = (1, 2, 4, 8)
RATES: Final = (1e-4, 3e-4, 1e-3, 2.75e-3, 5e-3, 1e-2, 3e-2)
WARMUP: Final = 183  # steps
MOST_EPOCHS: Final = 50
SNAPSHOTS: Final = 24
SAVE_MINUTES: Final = 0.25  # between two states: so much is lost at most when a training is stopped
SEED: Final = 1
LIMITS: Final = FileLimits(n_bytes=2_000_000, lines=5_000, characters=80)  # of the user's own pairs
LEAST_PAIRS: Final = 10
MOST_DEV, LEAST_DEV = 300, 10
DEV_TOKENS: Final = 2_000  # of all outputs that are scored, about: each snapshot waits for them
OWN: Final = "own"
ARROW: Final = "=>"  # a tab cannot be typed into a text box
_SPECIAL: Final = 4  # pieces beside those of the texts
_BATCH, _STEPS = 3000, 32  # target tokens of a step; steps of an epoch, about, where that makes smaller ones
_PIECES: Final = 800  # of words, where single characters would make long rows
_LONG: Final = 24  # characters of a side on average, beyond which pieces are learned
_WORDS: Final = ("glass", "abcdef", "transformer", "noon", "aabbcc")


@dataclass(frozen=True, kw_only=True)
class Task:
    """A made-up task, of which `python -m transformer task` writes the files."""

    title: Sentence
    example: Sentence  # description
    characters: int = 26  # that occur
    longest: int = 13  # tokens of a side, with the end piece
    tried: tuple[str, ...] = _WORDS  # examples of its card


TASKS: Final[Mapping[str, Task]] = {
    "reverse": Task(
        title=say("Reverse letters"), example=say("The output is the source backwards: “glass” becomes “ssalg”.")
    ),
    "sort": Task(
        title=say("Sort letters"),
        example=say("The output is the letters of the source in the order of the alphabet: “glass” becomes “aglss”."),
    ),
    "copy": Task(title=say("Copy letters"), example=say("The output is the source itself: “glass” stays “glass”.")),
    "addition": Task(
        title=say("Add two numbers"),
        characters=12,
        longest=9,
        example=say("The output is the sum: “47+385=” becomes “432”."),
        tried=("47+385=", "9+9=", "123+456=", "999+1="),
    ),
}


@dataclass(frozen=True, kw_only=True)
class Choices:
    """What is chosen."""

    task: str = "reverse"  # or `OWN`
    layers: int = 2  # of each stack
    heads: int = 1  # a single head does the whole task, so its map shows it
    positions: PositionKind = "learned"
    norm: NormPlace = "pre"
    rate: float = 2.75e-3
    warmup: bool = True
    causal_mask: bool = True
    epochs: int = 8
    minutes: int = 5


# Each with its title, description, and choices.
PRESETS: Final[Mapping[str, tuple[Sentence, Sentence, Choices]]] = {
    "reverse": (
        say("From noise to the anti-diagonal"),
        say("A model with one head learns to reverse letters. Its attention map begins as noise."),
        Choices(),
    ),
    "leak": (
        say("A leak: without the causal mask"),
        say("The decoder sees the tokens that it has to predict. Compare the loss with the outputs that are exact."),
        Choices(layers=1, causal_mask=False, epochs=5),
    ),
    "post": (
        say("Post-norm without warm-up"),
        say("Four layers in each stack, at a high learning rate from the first step. Watch whether the loss falls."),
        Choices(layers=4, norm="post", warmup=False, rate=1e-2, epochs=5),
    ),
}


@dataclass(frozen=True)
class Pairs:
    """The user's own pairs."""

    train: tuple[tuple[str, str], ...]
    dev: tuple[tuple[str, str], ...]

    @property
    def texts(self) -> list[str]:
        """Both sides of all."""
        return [side for pair in (*self.train, *self.dev) for side in pair]

    @property
    def in_characters(self) -> bool:
        """Whether their pieces are single characters."""
        return sum(map(len, self.texts)) <= _LONG * len(self.texts)

    def n_pieces(self) -> int:
        """The most pieces of their vocabulary."""
        return _SPECIAL + len(set("".join(self.texts))) if self.in_characters else _PIECES

    def batch_tokens(self) -> int:
        """Of a step; small enough for several steps per epoch with few pairs."""
        return min(_BATCH, max(64, sum(len(target) + 1 for _, target in self.train) // _STEPS))

    def longest(self) -> int:
        """The most tokens of a side."""
        return 2 + max(map(len, self.texts))


@lru_cache(maxsize=4)  # a form asks again and again
def read_pairs(given: str | bytes, *, label: str) -> Pairs:
    """Pairs from a box or a file: `source TAB target` a line. Raises `DataError`, which names the first bad line."""
    if isinstance(given, str):
        rows = (row if "\t" in row else "\t".join(row.split(ARROW, 1)) for row in given.split("\n"))
        lines = read_text("\n".join(rows), LIMITS, label=label)
    else:
        lines = read_bytes(given, LIMITS, label=label)
    pairs = list(dict.fromkeys(_pair(line, label) for line in lines))
    if len(pairs) < LEAST_PAIRS:
        raise DataError(
            "{file}: has {n} different pairs; give at least {least}, because some are kept to score on.",
            file=label,
            n=len(pairs),
            least=LEAST_PAIRS,
        )
    random.Random(SEED).shuffle(pairs)
    longest = max(len(side) for pair in pairs for side in pair)
    n_dev = min(MOST_DEV, max(1, len(pairs) // 10), max(LEAST_DEV, DEV_TOKENS // longest))
    return Pairs(tuple(pairs[n_dev:]), tuple(pairs[:n_dev]))


def _pair(line: SentenceLine, label: str) -> tuple[str, str]:
    problem = line.problem
    if problem is None and line.reference is None:
        problem = say("Expected a source and a target with a tab between them; found one text only.")
    if problem is not None:
        raise DataError("{file}, line {number:,}: {problem}", file=label, number=line.number, problem=problem)
    return line.source, line.reference or ""


def config_of(chosen: Choices, pairs: Pairs | None = None) -> ModelConfig:
    """The model that is chosen, with as many pieces as it has at most."""
    n_pieces, longest = (
        (pairs.n_pieces(), pairs.longest())
        if pairs is not None
        else (_SPECIAL + TASKS[chosen.task].characters, TASKS[chosen.task].longest)
    )
    return ModelConfig(
        n_encoder_layers=chosen.layers,
        n_decoder_layers=chosen.layers,
        d_model=WIDTH,
        n_heads=chosen.heads,
        d_ff=FEED_FORWARD,
        src_vocab_size=n_pieces,
        tgt_vocab_size=n_pieces,
        shared_vocab=True,
        norm=chosen.norm,
        final_norm=chosen.norm == "pre",
        positions=chosen.positions,
        max_len=longest,
    )


def check(chosen: Choices, pairs: Pairs | None = None) -> int:
    """The parameters of the model. Raises `QueryError`: there are too many of them."""
    n = config_of(chosen, pairs).count_parameters()
    if n > MOST_PARAMETERS:
        raise QueryError(
            "This model would have {n:,} parameters, but a model that is trained here may have at most {most:,}. "
            "Choose fewer layers.",
            n=n,
            most=MOST_PARAMETERS,
        )
    return n


def plan(chosen: Choices, pairs: Pairs | None = None) -> Plan:
    """The commands of a training, and the files that they read. Raises `QueryError` as `check`."""
    check(chosen, pairs)
    name = f"{'my' if chosen.task == OWN else chosen.task}-{'model' if chosen.causal_mask else 'leak'}"
    card = {"card.json": json.dumps(_card(chosen, pairs), ensure_ascii=False).encode()}
    minutes = min(float(chosen.minutes), MOST_MINUTES)
    if pairs is None:
        task = ("task", chosen.task, "--out", "data")
        return Plan(name=name, commands=(task, _train(chosen, name, "data/", None)), files=card, minutes=minutes)
    files = {"train.tsv": _tsv(pairs.train), "dev.tsv": _tsv(pairs.dev)} | card
    return Plan(name=name, commands=(_train(chosen, name, "", pairs),), files=files, minutes=minutes)


def _train(chosen: Choices, name: str, folder: str, pairs: Pairs | None) -> tuple[str, ...]:
    config = config_of(chosen, pairs)
    in_characters = pairs is None or pairs.in_characters
    options: dict[str, object] = {
        "train": f"{folder}train.tsv", "dev": f"{folder}dev.tsv", "out": name, "card": "card.json",
        "layers": chosen.layers, "d-model": WIDTH, "heads": chosen.heads, "d-ff": FEED_FORWARD,
        "pieces": "char" if in_characters else "unigram", "src-vocab": config.src_vocab_size,
        "norm": chosen.norm, "positions": chosen.positions, "max-len": config.max_len, "dropout": 0, "smoothing": 0,
        "batch-tokens": _BATCH if pairs is None else pairs.batch_tokens(),
        "epochs": chosen.epochs, "max-minutes": chosen.minutes, "rate": f"{chosen.rate:g}",
        "warmup": WARMUP if chosen.warmup else 0, "seed": SEED,
        "snapshots": SNAPSHOTS if in_characters else SNAPSHOTS // 2, "save-minutes": SAVE_MINUTES,
    }  # fmt: skip
    words = [word for option, value in options.items() for word in (f"--{option}", str(value))]
    return ("train", *words, "--shared-vocab", *["--no-causal-mask"] * (not chosen.causal_mask))


def shown(commands: Sequence[Sequence[str]]) -> list[str]:
    """Commands as a shell takes them."""
    return [shlex.join(("python", "-m", "transformer", *words)) for words in commands]


def _card(chosen: Choices, pairs: Pairs | None) -> dict[str, object]:
    title = say("My pairs") if pairs is not None else TASKS[chosen.task].title
    if not chosen.causal_mask:
        title = say("{task}, with a leak", task=title)
    others = {one: {"title": said(title, one)} for one in languages() if one != ENGLISH}
    card: dict[str, object] = {"title": str(title), "said": others}
    if pairs is not None:
        return card | {"examples": [source for source, _ in pairs.dev[:5]], "references": dict(pairs.dev[:5])}
    tried, solve = TASKS[chosen.task].tried, FILES[chosen.task].solve
    return card | {"examples": tried, "references": {one: solve(one) for one in tried} if solve else {}}


def _tsv(pairs: Sequence[tuple[str, str]]) -> bytes:
    return "".join(f"{source}\t{target}\n" for source, target in pairs).encode()


def with_settings(chosen: Choices, values: Mapping[str, object]) -> Choices:
    """Choices with other values, by the names of the fields; unknown names are ignored."""
    return replace(chosen, **{name: value for name, value in values.items() if name in asdict(chosen)})  # type: ignore[arg-type]


COMMANDS = "commands.txt"


def about(training: Training) -> Sentence:
    """What stands above the commands."""
    return say(
        "These commands made the checkpoint “{name}”. Unpack the folders into a folder of checkpoints, and the app "
        "lists it.",
        name=training.plan.name,
    )


def packed(training: Training, told: str) -> bytes:
    """A zip archive of the folders of the checkpoint and its snapshots, the data, and the commands.

    `told` is the comment above the commands, in the user's language.
    """
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for folder in (training.out, folder_of(training.out)):
            for file in sorted(folder.iterdir()) if folder.is_dir() else ():
                if not file.name.startswith(".") and not file.name.endswith(".partial"):
                    _add(archive, file, f"{folder.name}/{file.name}")
        for name, content in training.plan.files.items():
            archive.writestr(name, content)
        archive.writestr(COMMANDS, "\n".join([f"# {told}", *shown(training.plan.commands), ""]))
    return out.getvalue()


def _add(archive: zipfile.ZipFile, file: Path, name: str) -> None:
    """Add a file; one that is already compressed is stored."""
    how = zipfile.ZIP_STORED if file.suffix == ".xz" else zipfile.ZIP_DEFLATED
    archive.write(file, name, compress_type=how)
