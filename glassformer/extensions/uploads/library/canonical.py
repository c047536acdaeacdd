"""Write what was handed in anew, file by file, so that nobody has to open the files themselves.

    model.safetensors            a header of our own, and the same values, whatever it is called
    lesson.pt                    lesson.pt.safetensors, and lesson.pt.safetensors.outline.json, which says what was
                                 around the tensors; pytorch_model.bin becomes model.safetensors
    model.npz                    model.npz.safetensors with its arrays, and the outline with its texts
    config.json, tokenizer.json  parsed by the strict rules, and written again
    letters.model                the same bytes, once SentencePiece was tried on every piece of them
    vocab.txt, training.csv      the same bytes, once they are text; config.yaml, too

Anything else is left out, and named. What the files mean is not looked at here.
"""

import json
import os
import signal
import time
from pathlib import Path
from typing import BinaryIO

from glassformer.extensions.weight_files.library import pickle_child, pickles, weights
from glassformer.extensions.weight_files.library.weights import OUTLINE, TENSORS, WHOLE
from transformer.checkpoint.tokenizer_files import MAX_JSON, MAX_TOKENIZER
from transformer.errors import CheckpointError, within
from transformer.files import kinds, strictjson, tensorfile
from transformer.files.kinds import PICKLED
from transformer.text import sentencepiece_check

SENTENCEPIECE = (".model", ".spm")
TEXTS = (".txt", ".csv", ".yml", ".yaml")
WEIGHTS = (TENSORS, weights.SUFFIX, *PICKLED)
OPENED = (*WEIGHTS, ".json", *SENTENCEPIECE, *TEXTS)
MAX_DEPTH = 64
CHUNK = 2**20
SECONDS = 60.0


def is_opened(name: str, source: Path) -> bool:
    """Whether a file is one of those that are written anew."""
    return kind(name, source) in OPENED and not name.endswith(OUTLINE)


def kind(name: str, source: Path) -> str:
    """The ending that a file should have by its first bytes; that of its name, where those say nothing."""
    ending, start = Path(name).suffix.lower(), kinds.start_of(source)
    torch = ending if ending in PICKLED else PICKLED[0]
    own = {None: ending, "torch": torch, "tensors": TENSORS, "arrays": weights.SUFFIX}
    return own[kinds.kind_of(start, source.stat().st_size, name)]


def write(name: str, source: Path, target: Path, *, work: Path) -> None:
    """Write one file anew that `is_opened`; `work` is an empty folder for what is needed meanwhile."""
    ending = kind(name, source)
    if ending == TENSORS:
        _tensors(name, source, target / (name if Path(name).suffix.lower() == TENSORS else name + TENSORS))
    elif ending == weights.SUFFIX:
        _arrays(name, source, target / (name + TENSORS))
    elif ending in PICKLED:
        _pickle(name, source, target / (WHOLE if name in (weights.PICKLED, WHOLE) else name + TENSORS), work)
    elif ending == ".json":
        _json(name, source, target / name)
    elif ending in SENTENCEPIECE:
        _sentencepiece(name, source, target / name)
    else:
        _text(name, source, target / name)


def _tensors(name: str, source: Path, target: Path) -> None:
    with source.open("rb") as file:
        _anew(file, tensorfile.read_header(file, source.stat().st_size, label=name), target)


def _arrays(name: str, source: Path, target: Path) -> None:
    """The arrays, and the outline that a file of torch.save would have with the same."""
    with source.open("rb") as file:
        header, texts = weights.read_arrays(file, source.stat().st_size, label=name)
        _anew(file, header, target)
    tensors = [[tensor, {"t": tensor}] for tensor in header.tensors]
    outline = {"outline": {"d": [*tensors, *([key, text] for key, text in texts.items())]}}
    target.with_name(target.name + OUTLINE).write_text(json.dumps(outline), encoding="ascii")


def _anew(file: BinaryIO, header: tensorfile.Header, target: Path) -> None:
    """The tensors of a file behind a header of our own, one after another as they lie there."""
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
    """Unpickle in a process of its own, which has torch already; what it does to itself ends with it."""
    child = os.fork()
    if not child:
        try:
            pickle_child.main(descriptor, work)
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
            "{name}: has {size:,} bytes; the limit for this kind of file is {most:,}.", name=name, size=size, most=most
        )
    return source.read_bytes()
