"""The loaded `Checkpoint`; loading of a folder or snapshot, and assembly from another program's model.

    config.json         the features of the model (see `transformer.model.config`)
    model.safetensors   its parameters, float16 as a rule
    source.model        SentencePiece models: two, or one `pieces.model` if the vocabulary is shared
    target.model        (tokenizers of other families: see `transformer.checkpoint.tokenizer_files`)
    card.json           what it is, for people; may be missing
    training.csv        its learning curve; may be missing

Loading trusts nothing. Every file is read once, up to a limit, the parameters a few megabytes at a time. The config is
checked first, then the tensors' names, shapes and dtypes, and only then a model is made. Nothing in a folder is ever
run or imported. If a folder cannot be used, one error names the file and the reason.

`reverse@1200` is the checkpoint `reverse` with the parameters that it had at step 1,200 of its training (see
`transformer.checkpoint.snapshots`).
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO, TypeVar
from weakref import ref

import numpy as np
import torch

from transformer.checkpoint import free_memory, snapshots
from transformer.checkpoint.card import MAX_BYTES as MAX_CARD
from transformer.checkpoint.card import Card, read_card
from transformer.checkpoint.consistency import (
    ContentHash,
    Places,
    Shapes,
    Values,
    check_shapes,
    check_tensors,
    check_vocabularies,
    digest_of,
    fill,
    first,
    hash_of,
    most_bytes,
)
from transformer.checkpoint.free_memory import CPU, Device, Progress, device_of, silent
from transformer.checkpoint.parameter_layout import Halves
from transformer.checkpoint.tokenizer_files import Named, Stored, open_tokenizers, stored_tokenizers, tokenizer_files
from transformer.errors import CheckpointError, shown, within
from transformer.files import strictjson, tensorfile
from transformer.files.untrusted_folder import FolderFiles, name_of
from transformer.i18n import say
from transformer.model.anatomy import Kind, anatomy
from transformer.model.config import ModelConfig, unknown_keys
from transformer.model.taps import NO_TAP, Tap
from transformer.model.transformer import Transformer
from transformer.runs import running
from transformer.runs.interventions import Intervention
from transformer.runs.query import Decoding, Greedy, Query
from transformer.runs.reading import Pause
from transformer.runs.running import each_layer, replay
from transformer.runs.trace import Trace
from transformer.text.tokenizer import AnyTokenizer

CONFIG, WEIGHTS, CARD = "config.json", "model.safetensors", "card.json"
MAX_CONFIG = 64_000
NO_CARD: Mapping[str, object] = MappingProxyType({})
ATTEMPTS = 3  # at reading a folder that is being replaced

_Made = TypeVar("_Made")
_GREEDY = Greedy()
_IN_MEMORY: list["ref[Checkpoint]"] = []


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A loaded checkpoint. Many sessions share it; nothing in it changes. Two are equal if their files are equal."""

    name: str  # name of the folder; of a snapshot with its step, such as `reverse@1200`
    folder: Path  # where it was loaded from; of a snapshot the checkpoint's
    config: ModelConfig  # the features of the model
    # The model in evaluation mode, frozen; float32, except matrices too large for memory (see `warnings`).
    model: Transformer
    # One object if the vocabulary is shared, unless the two sides split their texts differently.
    src_tokenizer: AnyTokenizer
    tgt_tokenizer: AnyTokenizer
    card: Card  # what it is, for people
    content_hash: str  # SHA-256 of config, parameters and tokenizers, hexadecimal; not of the card
    warnings: tuple[str, ...] = ()  # sentences about what was odd but could be loaded
    inside: Path | None = None  # the folder that loading could not leave; None for no limit
    narrow: float | None = None  # share of the values that the file has in 16 bits; None if there is no file

    def __post_init__(self) -> None:
        _IN_MEMORY.append(ref(self, _IN_MEMORY.remove))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Checkpoint) and self.content_hash == other.content_hash

    @property
    def device(self) -> torch.device:
        """Where the model computes."""
        return self.model.device

    @property
    def only_query(self) -> Query | None:
        """The only query that it answers; None for a model, which answers any."""
        return None

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
        """Run a sentence (greedily) or a query; `tap` and errors are as in `running.run`."""
        return running.run(self, source if isinstance(source, Query) else self.query(source), tap=tap)

    def run_batch(self, queries: Sequence[Query], *, maps: bool = True) -> tuple[Trace, ...]:
        """Run queries as one padded batch; see `running.run_batch`."""
        return running.run_batch(self, queries, maps=maps)

    def run_together(
        self, queries: Sequence[Query], *, pause: Pause, most_map_bytes: int | None = None
    ) -> Iterator[Trace | Exception]:
        """Run queries, those of about one length together; see `running.run_together`."""
        return running.run_together(self, queries, most_map_bytes=most_map_bytes, pause=pause)

    def replay(self, trace: Trace, sites: Sequence[str]) -> dict[str, np.ndarray]:
        """What a run had at some sites; see `transformer.runs.running.replay`."""
        return replay(self, trace, sites)

    def each_layer(
        self, trace: Trace, kind: Kind, work: Callable[[np.ndarray, int], _Made], *, layers: Sequence[int] | None
    ) -> list[_Made]:
        """What some work makes of each layer's maps of a run; see `transformer.runs.running.each_layer`."""
        return each_layer(self, trace, kind, work, layers=layers)


@dataclass(frozen=True)
class _InFile:
    """The values in a tensor file, and who sees its bytes on the way."""

    file: BinaryIO
    header: tensorfile.Header
    label: str
    digest: ContentHash

    @property
    def shapes(self) -> Shapes:
        return self.header.shapes

    @property
    def narrow(self) -> Halves:
        kinds = {name: tensorfile.FLOATS.get(info.dtype) for name, info in self.header.tensors.items()}
        return {name: dtype for name, dtype in kinds.items() if dtype in tensorfile.NARROW}

    def write(self, places: Places) -> Iterator[str]:
        self.file.seek(0)
        self.digest.update(self.file.read(self.header.start))
        for name in self.header.tensors:  # in the order of the file
            tensorfile.read_into(self.file, self.header, name, places[name], label=self.label, seen=self.digest.update)
            yield name


def in_memory(content_hash: str) -> Checkpoint | None:
    """A checkpoint that is still in memory, by its hash: a trace keeps only that, so it does not hold the model."""
    held = (one() for one in list(_IN_MEMORY))
    return next((one for one in held if one is not None and one.content_hash == content_hash), None)


def load(
    folder: Path | str, *, inside: Path | None = None, progress: Progress = silent, device: Device = CPU
) -> Checkpoint:
    """Load a checkpoint folder, or a snapshot of its training: `checkpoints/reverse@1200`.

    The model computes on the device: "cpu", "cuda", "cuda:1", or "auto", a GPU if there is one. A `CheckpointError`
    says that there is no such snapshot or device, or that a file is missing, damaged, too large for the config or for
    free memory, does not fit the others, or is outside `inside`, the real path of a folder that no link may leave
    (None: no limit). A folder of the very name of a snapshot comes first.
    """
    device = device_of(device)
    folder, step = snapshots.meant(Path(folder))
    for _ in range(ATTEMPTS):
        files = FolderFiles(folder, inside=inside)
        try:
            checkpoint = _loaded(folder, files, progress, step=step, inside=inside, device=device)
        except CheckpointError:
            if not files.changed():
                raise  # else the files may be of two versions, which do not fit each other
        else:
            if not files.changed():
                return replace(checkpoint, inside=inside)
    raise CheckpointError("{folder}: its files are being replaced; try again in a moment.", folder=files.name)


def _loaded(
    folder: Path, files: FolderFiles, progress: Progress, *, step: int | None, inside: Path | None, device: torch.device
) -> Checkpoint:
    """Read every file once: the small ones whole, that of the tensors a few megabytes at a time."""
    name = name_of(folder) + (f"{snapshots.AT}{step}" if step is not None else "")
    config_file = files.read(CONFIG, limit=MAX_CONFIG)
    config, warnings = read_config(config_file, label=files.label(CONFIG))
    small = {CONFIG: config_file}
    small |= {file: files.read(file, limit=limit) for file, limit in tokenizer_files(files, config).items()}
    card, card_warnings = card_of(files)
    label, opening = _weights(folder, files, config, step=step, inside=inside)
    with opening as (file, size):
        header = tensorfile.read_header(file, size, label=label)
        tokenizers = open_tokenizers(small, config, label=name)
        values = _InFile(file, header, label, ContentHash(small, large=WEIGHTS, size=size))
        check_vocabularies(config, values.shapes, [(file, one.size) for file, one in tokenizers], label=name)
        check_tensors(config, header, label=label)
        filled = fill(config, values, label=label, progress=progress, device=device)
    hashes = {file: hashlib.sha256(content).hexdigest() for file, content in small.items()}
    if step is None:
        content_hash, hashes[WEIGHTS] = values.digest.done()
    else:  # its file also says how long it took to get there, which is another time in each training
        content_hash = _hash_of_values(small, filled.model)
    return Checkpoint(
        name=name,
        folder=folder,
        config=config,
        model=filled.model,
        src_tokenizer=tokenizers[0][1],
        tgt_tokenizer=tokenizers[-1][1],
        card=card,
        content_hash=content_hash,
        warnings=(
            *warnings,
            *card_warnings,
            *filled.warnings,
            *_odd_hashes(card, hashes),
            *_odd_ids(config, tokenizers),
        ),
        narrow=filled.narrow,
    )


def _weights(
    folder: Path, files: FolderFiles, config: ModelConfig, *, step: int | None, inside: Path | None
) -> tuple[str, AbstractContextManager[tuple[BinaryIO, int]]]:
    """How messages call the file of the tensors, and the file with its size: the folder's own, or a snapshot's."""
    if step is None:
        files.check_size(WEIGHTS, limit=most_bytes(config))
        return files.label(WEIGHTS), files.open(WEIGHTS)
    most = most_bytes(config, per_value=2)
    label = f"{snapshots.folder_of(folder).name}/{step}{snapshots.FILE}"
    free_memory.check_bytes(most, label=label)  # it is unpacked as a whole
    return label, snapshots.opened(folder, step, most=most, inside=inside)


def _hash_of_values(small: Mapping[str, bytes], model: Transformer) -> str:
    digests = {tensor: digest_of(parameter) for tensor, parameter in model.named_parameters()}
    return hash_of({**small, **digests})


def card_of(files: FolderFiles) -> tuple[Card, Sequence[str]]:
    """What the card of a folder says, nothing if there is none or it cannot be read; and a warning of that."""
    if not files.has(CARD):
        return Card(), ()
    try:
        return read_card(files.read(CARD, limit=MAX_CARD))
    except CheckpointError as error:  # a card is for people; a model works without
        return Card(), (error.sentence,)


def assembled(
    config: ModelConfig,
    values: Values,
    tokenizers: tuple[bytes, ...] | Stored,
    *,
    source: Path,
    card: Mapping[str, object] = NO_CARD,
    inside: Path | None = None,
    progress: Progress = silent,
    device: Device = CPU,
) -> Checkpoint:
    """A checkpoint made from another program's model, without a checkpoint folder.

    `values` are exactly those that the config calls for; `source` is what was read; `card` is the content of
    `card.json`. A `CheckpointError` says that a tensor is missing, left over or of another shape than in the config,
    that a tokenizer cannot be used or has another size, or that the model does not fit into memory.
    """
    name, files = name_of(source), stored_tokenizers(tokenizers, config)
    opened = open_tokenizers(files, config, label=name)
    check_vocabularies(config, values.shapes, [(file, one.size) for file, one in opened], label=name)
    check_shapes(config, values.shapes, label=name)
    filled = fill(config, values, label=name, progress=progress, device=device_of(device))
    written, card_warnings = read_card(json.dumps(dict(card)).encode())
    return Checkpoint(
        name=name,
        folder=source,
        config=config,
        model=filled.model,
        src_tokenizer=opened[0][1],
        tgt_tokenizer=opened[-1][1],
        card=written,
        content_hash=_hash_of_values({CONFIG: config.to_json().encode(), **files}, filled.model),
        warnings=(*card_warnings, *filled.warnings, *_odd_ids(config, opened)),
        inside=inside,
        narrow=filled.narrow,
    )


def read_config(content: bytes, *, label: str) -> tuple[ModelConfig, tuple[str, ...]]:
    """The config in config.json, and a warning about unknown keys; an error names the field."""
    with within(label):
        record = strictjson.parse(content)
        config = ModelConfig.from_mapping(record)
    unknown = [shown(key) for key in unknown_keys(record)]
    if not unknown:
        return config, ()
    return config, (say("config.json has unknown keys, which are ignored: {keys}.", keys=first(unknown)),)


def _odd_hashes(card: Card, hashes: Mapping[str, str]) -> Sequence[str]:
    """Files that are not those that the card was written for."""
    odd = [name for name, expected in card.sha256.items() if name in hashes and hashes[name] != expected.lower()]
    return [say("{name} is not the file that card.json describes (its SHA-256 differs).", name=name) for name in odd]


def _odd_ids(config: ModelConfig, tokenizers: Sequence[Named]) -> list[str]:
    """Special ids that the tokenizers take for something else."""
    odd: list[str] = []
    for file, tokenizer in tokenizers:
        for name in ("pad_id", "unk_id", "bos_id", "eos_id"):
            i = getattr(config, name)
            if name == "eos_id" and not (anatomy(config).writes or config.append_source_eos):
                continue  # nothing is ended, so the number says nothing
            if i is not None and not tokenizer.is_special(i):
                odd.append(
                    say(
                        "config.json says {name} = {i}, but in {file} that id belongs to the token {piece}.",
                        name=name,
                        i=i,
                        file=file,
                        piece=shown(tokenizer.piece(i)),
                    )
                )
    return list(dict.fromkeys(odd))  # two tokenizers may have one table of ids
