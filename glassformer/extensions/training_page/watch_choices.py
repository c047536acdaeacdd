"""Settings of a small training (task or own pairs, presets, limits), its commands, and its result as a zip.

The model has two stacks of width 64, which train in a few minutes on one CPU. Its data are a made-up task, written by a
command of this program, or the user's own pairs, of which some are held out for scores. A comparison trains several
models alike, one after the other: from a minimal one to the chosen one, or with each kind of positions.
"""

import argparse
import io
import json
import random
import shlex
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Final, Literal

from glassformer.extensions.training import train_command
from glassformer.extensions.training.library.preparation import NOISE
from glassformer.extensions.training.library.preparation import TASKS as FILES
from glassformer.extensions.training_page.trainings import MOST_MINUTES, Plan, Training
from transformer.checkpoint.snapshots import folder_of
from transformer.errors import DataError, QueryError
from transformer.i18n import ENGLISH, Sentence, languages, said, say
from transformer.model.config_fields import NormKind, NormPlace
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
LONGEST_NOISE: Final = 72  # tokens of a target, with the end piece
_SPECIAL: Final = 4  # pieces beside those of the texts
_BATCH, _STEPS = 3000, 32  # target tokens of a step; steps of an epoch, about, where that makes smaller ones
_FEWER, _FEWER_TOKENS = 20_000, 1000  # lines, and target tokens of a step, of each model of a comparison
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
    # For a comparison: `--longest` of its training, of what lies beyond it, and tokens of a side of that.
    lengths: tuple[int, int, int] | None = (8, 24, 25)
    batch: int = _BATCH  # target tokens of a step
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
        lengths=(3, 9, 21),
        example=say("The output is the sum: “47+385=” becomes “432”."),
        tried=("47+385=", "9+9=", "123+456=", "999+1="),
    ),
    "noise": Task(
        title=say("Noise"),
        characters=len(NOISE),
        longest=LONGEST_NOISE,
        lengths=None,
        batch=300,
        example=say("Each letter of the output was drawn at random, so nothing can be learned, only memorised."),
        tried=("abc", "hgfedcba"),
    ),
}
POSITIONS: Final[Mapping[PositionKind, Sentence]] = {
    "sinusoidal": say("sinusoidal"),
    "learned": say("learned"),
    "rotary": say("rotary"),
    "relative": say("relative"),
    "alibi": say("ALiBi"),
    "none": say("none"),
}


@dataclass(frozen=True, kw_only=True)
class Choices:
    """What is chosen."""

    task: str = "reverse"  # or `OWN`
    layers: int = 2  # of each stack
    heads: int = 1  # a single head does the whole task, so its map shows it
    positions: PositionKind = "learned"
    norm: NormPlace = "pre"
    norm_kind: NormKind = "layer"
    residual: bool = True
    gated: bool = False  # SwiGLU
    scaled: bool = True  # scores are divided by the root of a head's width
    rate: float = 2.75e-3
    warmup: bool = True
    causal_mask: bool = True
    epochs: int = 8
    minutes: int = 5
    compare: Literal["", "parts", "positions"] = ""


# In the order in which a comparison of parts switches them on: what the minimal model has, and what is then added.
PARTS: Final[Mapping[str, tuple[object, Sentence]]] = {
    "causal_mask": (False, say("causal mask")),
    "positions": ("none", say("positions")),
    "scaled": (False, say("scale")),
    "heads": (1, say("several heads")),
    "residual": (False, say("residual connections")),
    "norm_kind": ("none", say("norms")),
    "layers": (1, say("more layers")),
}
MINIMAL: Final = "minimal"
LABELS: Final[Mapping[str, Sentence]] = {
    MINIMAL: say("minimal"),
    **{name: say("+ {part}", part=part) for name, (_, part) in PARTS.items()},
    **{kind: title for kind, title in POSITIONS.items() if kind != "none"},
}  # of the models of a comparison, by the end of their names


def compared(chosen: Choices) -> dict[str, Choices]:
    """The models to train, by the end of their names; a single one has none."""
    if chosen.compare == "positions":
        return {kind: replace(chosen, positions=kind) for kind in POSITIONS if kind != "none"}
    if not chosen.compare:
        return {"": chosen}
    now = replace(chosen, **{name: least for name, (least, _) in PARTS.items()})  # type: ignore[arg-type]
    found = {MINIMAL: now}
    for name in PARTS:
        more = replace(now, **{name: getattr(chosen, name)})
        if more != now:  # or the chosen model does not have it either
            found[name] = now = more
    return found


def label_of(model: str) -> Sentence | None:
    """What a model of a comparison is called, by its name; None for the only model of a training."""
    return LABELS.get(model.partition("-")[2])


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
    "parts": (
        say("From minimal to complete"),
        say(
            "Small models, one after the other: the first has no mask, positions, scale, heads, residual connections, "
            "norms and depth; each next one has one of them more."
        ),
        Choices(heads=4, epochs=8, minutes=10, compare="parts"),
    ),
    "lengths": (
        say("Beyond the training length"),
        say(
            "Five models, alike but for their positions, learn from up to 8 letters. Then each is asked for up to 24: "
            "do sinusoids extrapolate?"
        ),
        Choices(heads=4, epochs=8, minutes=10, compare="positions"),
    ),
    "noise": (
        say("Memorised noise"),
        say(
            "The targets are random letters. The training loss falls all the same; watch the dev loss, and the line "
            "of guessing."
        ),
        Choices(task="noise", heads=4, epochs=50),
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


@cache
def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    train_command.add(parser)
    return parser


def n_parameters(made: Plan) -> int:
    """The parameters of the model, of several the most."""
    configs = (train_command.config_of(_options().parse_args(words)) for _, *words in made.trains.values())
    return max(config.count_parameters() for config in configs)


def plan(chosen: Choices, pairs: Pairs | None = None) -> Plan:
    """The commands of a training, and the files that they read. Raises `QueryError`: a model would be too large."""
    minutes = min(float(chosen.minutes), MOST_MINUTES)
    files = {} if pairs is None else {"train.tsv": _tsv(pairs.train), "dev.tsv": _tsv(pairs.dev)}
    folder, scored, models = "" if pairs else "data/", "", compared(chosen)
    commands: list[tuple[str, ...]] = []
    if pairs is None:
        near, far, _ = (TASKS[chosen.task].lengths if chosen.compare else None) or ("", "", "")
        fewer = ("--longest", f"{near}", "--train", f"{_FEWER}") if near else ()
        commands.append(("task", chosen.task, "--out", "data", *fewer))
        if far and chosen.compare == "positions":
            commands.append(("task", chosen.task, "--out", "far", "--longest", f"{far}", "--train", "1"))
            scored = "far/test.tsv"
    if chosen.compare == "positions":
        scored = scored or f"{folder}dev.tsv"
    for end, one in models.items():
        name = f"{'my' if one.task == OWN else one.task}-{end or ('model' if one.causal_mask else 'leak')}"
        card = f"{end or 'card'}.json"
        files[card] = json.dumps(_card(one, pairs, label_of(name)), ensure_ascii=False).encode()
        commands.append(_train(one, name, folder, pairs, card=card, minutes=minutes / len(models)))
        if scored:
            commands.append(("evaluate", name, "--pairs", scored, "--by-length", f"{name}.csv"))
    made = Plan(name=name, commands=tuple(commands), files=files, minutes=minutes)
    if (n := n_parameters(made)) > MOST_PARAMETERS:
        raise QueryError(
            "This model would have {n:,} parameters, but a model that is trained here may have at most {most:,}. "
            "Choose fewer layers.",
            n=n,
            most=MOST_PARAMETERS,
        )
    return made


def _train(
    chosen: Choices, name: str, folder: str, pairs: Pairs | None, *, card: str, minutes: float
) -> tuple[str, ...]:
    in_characters = pairs is None or pairs.in_characters
    if pairs is not None:
        n_pieces, longest, batch = pairs.n_pieces(), pairs.longest(), pairs.batch_tokens()
    else:
        task, most = TASKS[chosen.task], _FEWER_TOKENS if chosen.compare else _BATCH
        far = task.lengths if chosen.compare == "positions" else None
        n_pieces, longest, batch = _SPECIAL + task.characters, far[2] if far else task.longest, min(task.batch, most)
    n_snapshots = SNAPSHOTS if in_characters and not chosen.compare else SNAPSHOTS // 2
    options: dict[str, object] = {
        "train": f"{folder}train.tsv", "dev": f"{folder}dev.tsv", "out": name, "card": card,
        "layers": chosen.layers, "d-model": WIDTH, "heads": chosen.heads, "d-ff": FEED_FORWARD,
        "pieces": "char" if in_characters else "unigram", "src-vocab": n_pieces,
        "norm": chosen.norm, "norm-kind": chosen.norm_kind, "activation": "silu" if chosen.gated else "relu",
        "positions": chosen.positions, "max-len": longest, "dropout": 0, "smoothing": 0,
        "batch-tokens": batch,
        "epochs": chosen.epochs, "max-minutes": f"{minutes:g}", "rate": f"{chosen.rate:g}",
        "warmup": WARMUP if chosen.warmup else 0, "seed": SEED, "snapshots": n_snapshots, "save-minutes": SAVE_MINUTES,
    } | ({} if chosen.scaled else {"score-scale": 1})  # fmt: skip
    words = [word for option, value in options.items() for word in (f"--{option}", str(value))]
    switched = {"gated": chosen.gated, "no-residual": not chosen.residual, "no-causal-mask": not chosen.causal_mask}
    return ("train", *words, "--shared-vocab", *(f"--{option}" for option, is_on in switched.items() if is_on))


def shown(commands: Sequence[Sequence[str]]) -> list[str]:
    """Commands as a shell takes them."""
    return [shlex.join(("python", "-m", "transformer", *words)) for words in commands]


def _card(chosen: Choices, pairs: Pairs | None, label: Sentence | None) -> dict[str, object]:
    title = say("My pairs") if pairs is not None else TASKS[chosen.task].title
    if label is not None:
        title = say("{task}: {part}", task=title, part=label)
    elif not chosen.causal_mask:
        title = say("{task}, with a leak", task=title)
    others = {one: {"title": said(title, one)} for one in languages() if one != ENGLISH}
    card: dict[str, object] = {"title": str(title), "said": others}
    if pairs is not None:
        return card | {"examples": [source for source, _ in pairs.dev[:5]], "references": dict(pairs.dev[:5])}
    tried, solve = TASKS[chosen.task].tried, FILES[chosen.task].solve
    return card | {"examples": tried, "references": {one: solve(one) for one in tried} if solve else {}}


def _tsv(pairs: Sequence[tuple[str, str]]) -> bytes:
    return "".join(f"{source}\t{target}\n" for source, target in pairs).encode()


COMMANDS = "commands.txt"


def lengths_of(out: Path) -> Path:
    """The file of a model's scores by length, if they were requested."""
    return out.with_name(f"{out.name}.csv")


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
        for folder in (each for out in training.outs.values() for each in (out, folder_of(out))):
            for file in sorted(folder.iterdir()) if folder.is_dir() else ():
                if not file.name.startswith(".") and not file.name.endswith(".partial"):
                    _add(archive, file, f"{folder.name}/{file.name}")
        for file in filter(Path.exists, map(lengths_of, training.outs.values())):
            _add(archive, file, file.name)
        for name, content in training.plan.files.items():
            archive.writestr(name, content)
        archive.writestr(COMMANDS, "\n".join([f"# {told}", *shown(training.plan.commands), ""]))
    return out.getvalue()


def _add(archive: zipfile.ZipFile, file: Path, name: str) -> None:
    """Add a file; one that is already compressed is stored."""
    how = zipfile.ZIP_STORED if file.suffix == ".xz" else zipfile.ZIP_DEFLATED
    archive.write(file, name, compress_type=how)
