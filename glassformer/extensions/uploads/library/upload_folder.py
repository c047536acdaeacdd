"""Rewriting of untrusted uploads into a folder that opens: weights, JSON, SentencePiece, text; refusals.

This runs in the process that `upload_worker` forks, and trusts nothing: neither names, archives nor contents.

    model.safetensors            a new header, and the same values, under any name
        lesson.pt                    lesson.pt.safetensors, and lesson.pt.safetensors.outline.json, with everything
                                     around the tensors; pytorch_model.bin becomes model.safetensors
    model.npz                    model.npz.safetensors with its arrays, and the outline with its texts
    config.json, tokenizer.json  parsed by the strict rules, and written again
    letters.model                the same bytes, after SentencePiece was tested on every piece
    vocab.txt, training.csv      the same bytes, if they are text; config.yaml, too

Anything else is left out and listed. What the files mean is not checked here.
"""

import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import BinaryIO

from glassformer.extensions.importers.library.opening import QuestionsError, kind_of
from glassformer.extensions.uploads.library.archives import (
    OURS,
    UploadLimits,
    check_all_differ,
    check_name,
    check_total,
    is_junk,
    unpack,
)
from glassformer.extensions.weight_files import pickle_worker, pickles, weights
from glassformer.extensions.weight_files.weight_folder import ARRAYS, TENSORS, WHOLE
from glassformer.extensions.weight_files.weight_folder import PICKLED as USUAL
from glassformer.extensions.weight_files.weights import OUTLINE
from transformer.checkpoint.opening import load
from transformer.checkpoint.tokenizer_files import MAX_JSON, MAX_TOKENIZER
from transformer.errors import CheckpointError, shown, within
from transformer.extensions import provided
from transformer.files import kinds, strictjson, tensorfile
from transformer.files.kinds import PICKLED, is_archive, looked_at
from transformer.i18n import Sentence, joined, say, say_n
from transformer.text import sentencepiece_check

SENTENCEPIECE = (".model", ".spm")
TEXTS = (".txt", ".csv", ".yml", ".yaml")
WEIGHTS = (TENSORS, ARRAYS, *PICKLED)
OPENED = (*WEIGHTS, ".json", *SENTENCEPIECE, *TEXTS)
MAX_DEPTH = 64
CHUNK = 2**20
SECONDS = 60.0


def _ending(name: str, source: Path) -> str:
    """The ending that a file should have by its first bytes; that of its name, where those say nothing."""
    ending, start = Path(name).suffix.lower(), kinds.start_of(source)
    torch = ending if ending in PICKLED else PICKLED[0]
    own = {None: ending, "torch": torch, "tensors": TENSORS, "arrays": ARRAYS}
    return own[kinds.kind_of(start, source.stat().st_size, name)]


def _write(name: str, ending: str, source: Path, target: Path, *, work: Path) -> None:
    """Rewrite one file with one of the endings `OPENED`; `work` is an empty folder for temporary files."""
    if ending == TENSORS:
        with source.open("rb") as file:
            header = tensorfile.read_header(file, source.stat().st_size, label=name)
            _anew(file, header, target / (name if Path(name).suffix.lower() == TENSORS else name + TENSORS))
    elif ending == ARRAYS:
        _arrays(name, source, target / (name + TENSORS))
    elif ending in PICKLED:
        _pickle(name, source, target / (WHOLE if name in (USUAL, WHOLE) else name + TENSORS), work)
    elif ending == ".json":
        _json(name, source, target / name)
    elif ending in SENTENCEPIECE:
        _sentencepiece(name, source, target / name)
    else:
        _text(name, source, target / name)


def _arrays(name: str, source: Path, target: Path) -> None:
    """The arrays, and the outline that an equivalent file of torch.save would have."""
    with source.open("rb") as file:
        header, texts = weights.read_arrays(file, source.stat().st_size, label=name)
        _anew(file, header, target)
    tensors = [[tensor, {"t": tensor}] for tensor in header.tensors]
    outline = {"outline": {"d": [*tensors, *([key, text] for key, text in texts.items())]}}
    target.with_name(target.name + OUTLINE).write_text(json.dumps(outline), encoding="ascii")


def _anew(file: BinaryIO, header: tensorfile.Header, target: Path) -> None:
    """A file's tensors in their order, with a new header."""
    places, end = {}, 0
    for tensor, info in sorted(header.tensors.items(), key=lambda one: one[1].begin):
        places[tensor] = [end, end := end + info.end - info.begin]
    record = {
        tensor: {"dtype": info.dtype, "shape": list(info.shape), "data_offsets": places[tensor]}
        for tensor, info in header.tensors.items()
    }
    text = json.dumps(record, separators=(",", ":")).encode("ascii")
    text += b" " * (-len(text) % tensorfile.LENGTH_BYTES)
    with target.open("xb") as made:
        made.write(len(text).to_bytes(tensorfile.LENGTH_BYTES, "little") + text)
        for tensor in places:
            info = header.tensors[tensor]
            file.seek(header.start + info.begin)
            for begin in range(info.begin, info.end, CHUNK):
                made.write(file.read(min(CHUNK, info.end - begin)))


def _pickle(name: str, source: Path, target: Path, work: Path) -> None:
    if target.exists():
        raise CheckpointError(
            "{name}: {other} contains the same weights; upload only one of the two files.", name=name, other=target.name
        )
    with source.open("rb") as file:
        pickles.check_kind(file.read(kinds.START), label=name)
        _in_a_fork(file.fileno(), work, label=name)
    pickles.outline_in(work, label=name)
    os.replace(work / pickles.TENSORS, target)
    os.replace(work / pickles.OUTLINE, target.with_name(target.name + OUTLINE))


def _in_a_fork(descriptor: int, work: Path, *, label: str) -> None:
    """Unpickle in a fork that has torch already imported, which isolates side effects."""
    child = os.fork()
    if not child:
        try:
            pickle_worker.main(descriptor, work)
        finally:
            os._exit(0)
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        if os.waitpid(child, os.WNOHANG)[0]:
            return
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise pickles.refusal(label, "time")


def _json(name: str, source: Path, target: Path) -> None:
    with within(name):
        record = strictjson.parse(_content(name, source, MAX_JSON), max_depth=MAX_DEPTH)
    target.write_text(json.dumps(record, ensure_ascii=False), encoding="utf-8")


def _sentencepiece(name: str, source: Path, target: Path) -> None:
    content = _content(name, source, MAX_TOKENIZER)
    with within(name):
        sentencepiece_check.check(content)
    target.write_bytes(content)


def _text(name: str, source: Path, target: Path) -> None:
    content = _content(name, source, MAX_TOKENIZER)
    try:
        is_text = "\0" not in content.decode()
    except UnicodeDecodeError:
        is_text = False
    if not is_text:
        raise CheckpointError("{name}: is not UTF-8 text; save it as UTF-8, or remove it.", name=name)
    target.write_bytes(content)


def _content(name: str, source: Path, most: int) -> bytes:
    size = source.stat().st_size
    if size > most:
        raise CheckpointError(
            "{label}: has {n:,} byte; the limit is {limit:,}.",
            "{label}: has {n:,} bytes; the limit is {limit:,}.",
            size,
            label=name,
            limit=most,
        )
    return source.read_bytes()


MOST_NAMED = 6
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Received:
    """An uploaded file."""

    name: str  # what its owner calls it
    path: Path  # where it is


@dataclass(frozen=True)
class Read:
    """What became of an upload."""

    native: bool  # whether it is a checkpoint of this program
    left_out: tuple[str, ...]  # names of files that were left out


def read(
    received: Sequence[Received],
    folder: Path,
    *,
    work: Path,
    pickles: bool = True,
    limits: UploadLimits = OURS,
    progress: Progress = lambda *_: None,
) -> Read:
    """Rewrite uploaded files, and check that the result opens, or refuse them.

    Both folders are empty; messages call the model by the new one's name, and `work` is for temporary files. `progress`
    is called with the number of files done, their total, and the next name.
    """
    files, left_out = _files(received, work, limits)
    check_total(len(files), sum(path.stat().st_size for path in files.values()), limits)
    if whole := [name for name, path in files.items() if _is_whole(name, path)]:
        with files[whole[0]].open("rb") as file, (folder / whole[0]).open("xb") as made:
            shutil.copyfileobj(file, made)  # `copyfile` has the kernel copy, which the sandbox forbids
        return Read(False, (*left_out, *(name for name in files if name != whole[0])))
    endings = {name: _ending(name, path) for name, path in files.items() if not name.endswith(OUTLINE)}
    chosen = {name: ending for name, ending in endings.items() if ending in OPENED}
    left_out += [name for name in files if name not in chosen and not is_junk(name)]
    _check_kinds(files, chosen, left_out, pickles=pickles)
    # The weights last: a wrong word in a config is found at once.
    order = sorted(chosen, key=lambda name: (chosen[name] in WEIGHTS, name))
    for done, name in enumerate(order):
        progress(done, len(order) + 1, name)
        with_room = Path(mkdtemp(dir=work))
        _write(name, chosen[name], files[name], folder, work=with_room)
        shutil.rmtree(with_room)
    progress(len(order), len(order) + 1, folder.name)
    return Read(_opens(folder), tuple(left_out))


def _is_whole(name: str, path: Path) -> bool:
    """Whether a file is all that there is to open, such as a saved run; raises what is wrong with it."""
    with path.open("rb") as file:
        size = path.stat().st_size
        return any(one.takes(name, file, size) for one in provided("formats"))


def _files(received: Sequence[Received], work: Path, limits: UploadLimits) -> tuple[dict[str, Path], list[str]]:
    """Every file by its name, archives unpacked; and the names that archives have in other folders."""
    found: list[tuple[str, Path]] = []
    left_out: list[str] = []
    for number, one in enumerate(received):
        check_name(one.name)
        if not is_archive(one.name, one.path):
            found.append((one.name, one.path))
            continue
        inner = work / f"unpacked-{number}"
        inner.mkdir()
        with one.path.open("rb") as file:
            unpacked = unpack(file, inner, label=one.name, limits=limits)
        found += unpacked.files.items()
        left_out += unpacked.left_out
    check_all_differ(name for name, _ in found)
    return dict(found), left_out


def _check_kinds(
    files: Mapping[str, Path], chosen: Mapping[str, str], left_out: Sequence[str], *, pickles: bool
) -> None:
    """Refuse files that cannot become a model before reading them; `chosen` are the endings of those to be read."""
    weights = [name for name, ending in chosen.items() if ending in WEIGHTS]
    refused = [name for name in weights if chosen[name] in PICKLED]
    if refused and not pickles:
        raise CheckpointError(
            "{name}: this server does not accept torch.save files; save the weights as safetensors.",
            name=shown(refused[0]),
        )
    if weights:
        return
    for name, path in files.items():
        if name.endswith(".index.json"):
            raise CheckpointError(
                "{name}: says that the weights are in other files, but none of those was uploaded; add them.", name=name
            )
        if (problem := looked_at(path, name)[1]) is not None:
            raise CheckpointError("{label}: {problem}", label=name, problem=problem)
    names = [*chosen, *left_out]
    there: Sentence | str = joined(", ", map(shown, names[:MOST_NAMED])) or say("nothing")
    if (more := len(names) - MOST_NAMED) > 0:
        there = say_n("{names} and {n} more", "{names} and {n} more", more, names=there)
    raise CheckpointError(
        "None of the files contains weights ({names}). Add one that was saved as safetensors or with torch.save, "
        "or upload a zip archive with all files.",
        names=there,
    )


def _opens(folder: Path) -> bool:
    """Open it once, or refuse what no answer opens; returns whether it is a checkpoint of this program."""
    native = kind_of(folder, inside=folder)[0] == "native"
    try:
        load(folder, inside=folder)
    except QuestionsError:
        return False  # the page asks them
    return native
