"""Load a checkpoint folder.

    config.json         the features of the model (see `transformer.model.config`)
    model.safetensors   its parameters, float16 as a rule
    source.model        SentencePiece models: two, or one `pieces.model` when the vocabulary is shared
    target.model
    card.json           what it is, for people; may be missing
    training.csv        its learning curve; may be missing

Loading trusts nothing. Every file is read once, into memory, under a limit; the config is checked before the
tensors' names, shapes and dtypes are compared with what it implies, and those before a model is made. Nothing
in a folder is ever run or imported. A folder that cannot be used raises one error that says which file and
why. Writing one is in `transformer.checkpoint.save`.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from transformer.checkpoint import strictjson, tensorfile
from transformer.checkpoint.agreement import check_tensors, check_vocabularies, first, most_bytes
from transformer.checkpoint.card import MAX_BYTES as MAX_CARD
from transformer.checkpoint.card import Card, read_card
from transformer.checkpoint.files import FolderFiles
from transformer.checkpoint.memory import lay_out
from transformer.checkpoint.room import check_room
from transformer.errors import CheckpointError, ClauseError, ConfigError, TokenizerError, shown
from transformer.model.config import ModelConfig, unknown_keys
from transformer.model.positions import FixedPositions
from transformer.model.tap import NO_TAP, Tap
from transformer.model.transformer import Transformer
from transformer.runs import running
from transformer.runs.interventions import Intervention
from transformer.runs.query import Decoding, Greedy, Query
from transformer.runs.trace import Trace
from transformer.text import sentencepiece_check
from transformer.text.tokenizer import Tokenizer
from words import say

CONFIG, WEIGHTS, CARD = "config.json", "model.safetensors", "card.json"
TOKENIZER_NAMES = {1: ("pieces.model",), 2: ("source.model", "target.model")}

MAX_CONFIG = 64_000
MAX_TOKENIZER = 16_000_000
ATTEMPTS = 3  # at reading a folder that is being replaced

_GREEDY = Greedy()


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A loaded checkpoint. Many sessions share one; nothing in it changes. Two are equal if their files are.

    Attributes:
        name: Name of the folder.
        folder: Where it was loaded from.
        inside: What it was not to leave, None if anything would do.
        config: The features of the model.
        model: The model in evaluation mode, float32, frozen.
        src_tokenizer, tgt_tokenizer: One object when the vocabulary is shared.
        card: What it is, for people.
        content_hash: SHA-256 of config, parameters and tokenizers, hexadecimal; the card has no part in it.
        warnings: Sentences about what was odd but could be loaded.
    """

    name: str
    folder: Path
    config: ModelConfig
    model: Transformer
    src_tokenizer: Tokenizer
    tgt_tokenizer: Tokenizer
    card: Card
    content_hash: str
    warnings: tuple[str, ...] = ()
    inside: Path | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Checkpoint) and self.content_hash == other.content_hash

    def __hash__(self) -> int:
        return hash(self.content_hash)

    def query(
        self,
        source: str,
        *,
        decoding: Decoding = _GREEDY,
        max_new: int = 128,
        forced: tuple[int, ...] = (),
        hypothesis: int = 0,
        interventions: tuple[Intervention, ...] = (),
    ) -> Query:
        """A query for this checkpoint; the arguments are those of `Query`."""
        return Query(
            checkpoint=self.content_hash,
            source=source,
            decoding=decoding,
            max_new=max_new,
            forced=forced,
            hypothesis=hypothesis,
            interventions=interventions,
        )

    def run(self, source: str | Query, *, tap: Tap = NO_TAP) -> Trace:
        """Run a sentence (greedily) or a query; `tap` and the errors are those of `running.run`."""
        return running.run(self, source if isinstance(source, Query) else self.query(source), tap=tap)


@dataclass(frozen=True)
class _Content:
    """What was read from a folder: the config, and the bytes of everything else."""

    config: ModelConfig
    warnings: tuple[str, ...]
    files: Mapping[str, bytes]

    @property
    def tokenizers(self) -> list[str]:
        return [name for name in self.files if name.endswith(".model")]


def load(folder: Path | str, *, inside: Path | None = None) -> Checkpoint:
    """Load a checkpoint folder.

    Args:
        folder: The folder.
        inside: The real path of a folder that it may not leave by a link; None if any will do.

    Raises:
        CheckpointError: A file is missing, damaged, too large for the config or the memory that is left, does not fit
            the others or lies outside of `inside`.
    """
    folder = Path(folder)
    content = _read(folder, inside)
    name, config, files = folder.resolve().name, content.config, content.files
    header = tensorfile.header_of(files[WEIGHTS], label=f"{name}/{WEIGHTS}")
    tokenizers = {file: _tokenizer(files[file], label=f"{name}/{file}") for file in content.tokenizers}
    check_vocabularies(config, header, {file: t.size for file, t in tokenizers.items()}, label=name)
    check_tensors(config, header, label=f"{name}/{WEIGHTS}")
    state = dict(tensorfile.read_tensors(files[WEIGHTS], header))
    card, card_warnings = read_card(files[CARD]) if CARD in files else (Card(), ())
    src, *rest = tokenizers.values()
    warnings = (*content.warnings, *card_warnings, *_odd_values(state), *_odd_hashes(card, files))
    return Checkpoint(
        name=name,
        folder=folder,
        config=config,
        model=_build(config, state),
        src_tokenizer=src,
        tgt_tokenizer=rest[0] if rest else src,
        card=card,
        content_hash=_content_hash(files),
        warnings=(*warnings, *_odd_ids(config, tokenizers)),
        inside=inside,
    )


def read_config(content: bytes, *, label: str) -> tuple[ModelConfig, tuple[str, ...]]:
    """The config that config.json holds, and a warning if it has keys that mean nothing here.

    Raises:
        CheckpointError: It is refused; names the field.
    """
    try:
        record = strictjson.parse(content)
        config = ModelConfig.from_mapping(record)
    except ConfigError as error:
        raise CheckpointError("{label}: {problem}", label=label, problem=error.sentence) from error
    except ClauseError as error:
        raise CheckpointError("{label}: {problem}.", label=label, problem=error.sentence) from None
    unknown = [shown(key) for key in unknown_keys(record)]
    if not unknown:
        return config, ()
    return config, (say("config.json has keys that mean nothing here and are ignored: {keys}.", keys=first(unknown)),)


def _read(folder: Path, inside: Path | None) -> _Content:
    """Read every file once; all of them of one version, should somebody replace the folder meanwhile."""
    for _ in range(ATTEMPTS):
        files = FolderFiles(folder, inside=inside)
        content = {CONFIG: files.read(CONFIG, limit=MAX_CONFIG)}
        config, warnings = read_config(content[CONFIG], label=files.label(CONFIG))
        for name in TOKENIZER_NAMES[1 if config.shared_vocab else 2]:
            content[name] = files.read(name, limit=MAX_TOKENIZER)
        files.check_size(WEIGHTS, limit=most_bytes(config))
        with files.open(WEIGHTS) as (_, size):
            check_room(config.count_parameters(), size, label=files.label(WEIGHTS))
        content[WEIGHTS] = files.read(WEIGHTS, limit=most_bytes(config))
        if files.has(CARD):
            try:
                content[CARD] = files.read(CARD, limit=MAX_CARD)
            except CheckpointError as error:  # a card is for people; a model works without
                warnings += (error.sentence,)
        if not files.changed():
            return _Content(config, warnings, content)
    raise CheckpointError("{folder}: its files are being replaced; try again when that is done.", folder=files.name)


def _tokenizer(model: bytes, *, label: str) -> Tokenizer:
    try:
        sentencepiece_check.check(model)
        return Tokenizer(model)
    except TokenizerError as error:
        raise CheckpointError("{label}: {problem}", label=label, problem=error.sentence) from error


def _build(config: ModelConfig, state: Mapping[str, Tensor]) -> Transformer:
    """A model that takes the tensors over: nothing is initialised only to be overwritten."""
    with torch.device("meta"):  # shapes without values
        model = Transformer(config)
    model.load_state_dict(state, assign=True)
    for module in model.modules():
        if isinstance(module, FixedPositions):
            module.fill()  # a formula: no file holds it
    lay_out(model)
    return model.requires_grad_(False).eval()


def _content_hash(files: Mapping[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name in sorted(files.keys() - {CARD}):
        digest.update(f"{name} {len(files[name])}\n".encode())
        digest.update(files[name])
    return digest.hexdigest()


def _odd_values(state: Mapping[str, Tensor]) -> Sequence[str]:
    odd = {name: int((~tensor.isfinite()).sum()) for name, tensor in state.items() if not tensor.isfinite().all()}
    if not odd:
        return []
    counts = [
        say("{name} ({count:,} of {total:,})", name=shown(name), count=count, total=state[name].numel())
        for name, count in odd.items()
    ]
    return [
        say(
            "Some values are not finite (NaN or infinite), so outputs may be meaningless: {tensors}.",
            tensors=first(counts),
        )
    ]


def _odd_hashes(card: Card, files: Mapping[str, bytes]) -> Sequence[str]:
    """Files that are not those that the card was written for."""
    odd = [
        name
        for name, expected in card.sha256.items()
        if name in files and hashlib.sha256(files[name]).hexdigest() != expected.lower()
    ]
    return [say("{name} is not the file that card.json describes (its SHA-256 differs).", name=name) for name in odd]


def _odd_ids(config: ModelConfig, tokenizers: Mapping[str, Tokenizer]) -> list[str]:
    """Special ids that the tokenizers take for something else."""
    odd: list[str] = []
    for file, tokenizer in tokenizers.items():
        for name in ("pad_id", "unk_id", "bos_id", "eos_id"):
            i = getattr(config, name)
            if not tokenizer.is_special(i):
                odd.append(
                    say(
                        "config.json says {name} = {i}; in {file} that is the piece {piece}.",
                        name=name,
                        i=i,
                        file=file,
                        piece=shown(tokenizer.piece(i)),
                    )
                )
    return odd
