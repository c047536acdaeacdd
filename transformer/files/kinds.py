"""File kinds by their first bytes, whatever a file is called; and the remedy where nothing opens it.

A name decides only between formats that begin alike, or with nothing of their own. Nothing is parsed.

Source: PyTorch's "Serialization semantics"; the descriptions of safetensors, GGUF, ONNX's `ModelProto`, TensorFlow's
`SavedModel`, HDF5, TFLite, NumPy's `.npy`, CTranslate2's `model.bin`; PKWARE's APPNOTE, 4.3.7.
"""

import os
import re
import stat
from functools import lru_cache
from pathlib import Path
from typing import Literal

from transformer.errors import shown
from transformer.i18n import Sentence, say

START = 512  # bytes that are enough
ZIP, LEGACY = b"PK\x03\x04", b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"
PICKLED, ARRAYS = (".pt", ".pth", ".bin", ".ckpt", ".pt2"), ".npz"  # endings that torch.save's and numpy's files have
Kind = Literal["torch", "tensors", "arrays"]
SAVE_AGAIN = say(
    "In the program that trained the model, save only the weights: `state = model.state_dict()`, then "
    '`torch.save(state, "weights.pt")`.'
)
UNPACK = say("is an archive, not a file of weights; unpack it, and open what is in it.")
_PICKLE = say(
    "is a pickle file that torch.save did not write. Pickle files can run code; save the weights with torch.save."
)
_TENSORFLOW = say(
    "is a TensorFlow model. This program opens no TensorFlow models. If transformers wrote the model, open its "
    "PyTorch weights instead (model.safetensors or pytorch_model.bin)."
)
_KERAS = say(
    "is an HDF5 or Keras file. This program opens Transformers written in PyTorch. If transformers wrote the model, "
    "open its PyTorch weights instead; otherwise copy its arrays into a PyTorch model, and save that one's "
    "state_dict with torch.save."
)
_GGUF = say(
    "is a GGUF or GGML file of llama.cpp. Open the model that it was made from. A GGUF file can also be turned into "
    "a folder that opens here: in transformers, AutoModelForCausalLM.from_pretrained(folder, gguf_file=name), then "
    "save_pretrained."
)
_ONNX = say(
    "is an ONNX file: a program with weights whose names are lost. Open the model that was exported, saved as "
    "safetensors or with torch.save."
)
_CTRANSLATE2 = say("is a CTranslate2 model. Open the model that it was converted from.")
_FLAX = say(
    "is a Flax file. In transformers 4, from_pretrained(folder, from_flax=True) reads the model, and save_pretrained "
    "writes it as a folder that opens here."
)
_ONE_ARRAY = say("is a single NumPy array; save all weights of the model in one .npz file with numpy.savez.")
_SHARD = say(
    "is a part of a distributed checkpoint of PyTorch. Join its folder into one file with: "
    "python -m torch.distributed.checkpoint.format_utils dcp_to_torch FOLDER weights.pt"
)
# How a file begins and what its name ends in, and what it is then: the first one that fits.
_OTHERS: tuple[tuple[bytes, str, Sentence], ...] = (
    (rb"\Z", "", say("is empty; copy or download it again.")),
    (rb"(?i)\s*<(!doctype|html|\?xml)", "", say("is a web page, not a weights file; download the file itself.")),
    (b"", r"\.distcp$", _SHARD),
    (rb"PK\x03\x04.{22}\x0d\0..metadata\.json", "", _KERAS),
    (rb"PK\x03\x04|.{257}ustar|\x1f\x8b|BZh|\xfd7zXZ\0|\x28\xb5\x2f\xfd|7z\xbc\xaf\x27\x1c|Rar!", "", UNPACK),
    (rb"GGUF|lmgg|fmgg|tjgg", "", _GGUF),
    (rb"\x89HDF\r\n\x1a\n", "", _KERAS),
    (rb".{4}TFL3|\x08\x01\x12|model_checkpoint_path:", "", _TENSORFLOW),
    (rb"\x93NUMPY", "", _ONE_ARRAY),
    (rb"version https://git-", "", say("is a Git LFS pointer, not the file itself; fetch it with `git lfs pull`.")),
    (rb"\x80", "", _PICKLE),
    (rb"\x08[\x02-\x1f][\x12\x1a\x22\x28\x3a\x42]", "", _ONNX),  # the fields of a `ModelProto`, after its version
    (rb".{6,59}Spec\0", "", _CTRANSLATE2),
    (b"", r"\.onnx$", _ONNX),
    (b"", r"\.msgpack$", _FLAX),
    (b"", r"\.(pb|tflite|index)$|\.data-0", _TENSORFLOW),
    (b"", r"\.(keras|h5|hdf5)$", _KERAS),
    (b"", r"\.(pkl|pickle|joblib)$", _PICKLE),
)
# Files that lie next to models and never are one, so a list need not open them.
_ENDINGS = ".json.jsonl.txt.md.csv.tsv.yml.yaml.toml.py.ipynb.log.model.spm.vocab.svg.png.jpg.pdf.html.sh.training"
BESIDE = [f".{ending}" for ending in _ENDINGS.split(".")[1:]]
_OF_TORCH = re.compile(rb"[^/]+/(data\.pkl$|archive_format$|version$|data/)")  # first records of its archives


def kind_of(start: bytes, size: int, name: str) -> Kind | None:
    """What opens here, by the first `START` bytes of a file, its length and its name; None for anything else.

    "torch" includes PyTorch programs, and zip archives of such a name: what opens them says the rest.
    """
    ending = Path(name).suffix.lower()
    if ending in (ARRAYS, ".distcp"):
        return "arrays" if ending == ARRAYS else None
    if start.startswith(ZIP):
        first = _first_of_zip(start)
        own = _OF_TORCH.match(first) or (ending in PICKLED and first != b"metadata.json")
        return "arrays" if first.endswith(b".npy") else "torch" if own else None
    if LEGACY[2:] in start[:32]:
        return "torch"
    length = int.from_bytes(start[:8], "little")
    return "tensors" if start[8:9] == b"{" and 0 < length <= size - 8 else None


def unopened(start: bytes, name: str) -> Sentence | None:
    """What is said of a file that cannot be opened, with the remedy; None for an unknown kind."""
    ending = Path(name).suffix.lower()
    fitting = (one for one in _OTHERS if re.match(one[0], start, re.DOTALL) and re.match(one[1], ending))
    return next((said for _, _, said in fitting), None)


def refusal(start: bytes, name: str) -> Sentence:
    """`unopened`, or the same of an unknown kind of file."""
    return unopened(start, name) or say(
        "is not a weights file that opens here: it begins with {found}. Files of torch.save, safetensors "
        "and numpy.savez open under any name.",
        found=shown(start[:8]),
    )


def is_archive(name: str, path: Path) -> bool:
    """Whether a file is an archive to be unpacked: a zip by name, which torch.save did not write under that name."""
    return Path(name).suffix.lower() == ".zip" and not _first_of_zip(start_of(path)).endswith(b"/data.pkl")


def start_of(path: Path) -> bytes:
    """The first bytes of a file; none of one that is not regular, or cannot be read."""
    try:
        there = path.stat()
        return _start_of(path, there.st_mode, there.st_dev, there.st_ino, there.st_size, there.st_mtime_ns)
    except (OSError, ValueError, RuntimeError):
        return b""


def looked_at(path: Path, name: str = "") -> tuple[Kind | None, Sentence | None]:
    """`kind_of` and `unopened` of a file by this name, unless it is a link or has an ending of `BESIDE`."""
    name = name or path.name
    if Path(name).suffix.lower() in BESIDE or name.startswith(".") or not name.isprintable() or path.is_symlink():
        return None, None
    start = start_of(path)
    if not start:
        return None, None
    kind = kind_of(start, path.stat().st_size, name)
    return kind, None if kind else unopened(start, name)


@lru_cache(maxsize=4096)
def _start_of(path: Path, mode: int, *_: int) -> bytes:
    if not stat.S_ISREG(mode):
        return b""
    with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:  # it may be a pipe by now
        return file.read(START) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else b""


def _first_of_zip(start: bytes) -> bytes:
    """The name of the first record of an archive."""
    return start[30 : 30 + int.from_bytes(start[26:28], "little")]
