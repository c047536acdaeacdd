"""Write a checkpoint folder: all of it or nothing.

The files go to a temporary folder beside the old one and are flushed to disk. Then the old folder is moved
aside, the new one is renamed in, and only after that the old one is removed. Whatever fails on the way, the
old folder is there again afterwards.
"""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import save as to_safetensors
from torch import Tensor

from transformer.checkpoint.load import CARD, CONFIG, TOKENIZER_NAMES, WEIGHTS
from transformer.errors import CheckpointError
from transformer.model.config import ModelConfig

CURVE = "training.csv"


@dataclass(frozen=True)
class Parts:
    """What a checkpoint folder is made of.

    Attributes:
        config: The features of the model.
        state: Its parameters by name.
        tokenizers: The bytes of its SentencePiece models: source and target, or one for both.
        card: What `card.json` says.
    """

    config: ModelConfig
    state: Mapping[str, Tensor]
    tokenizers: tuple[bytes, ...]
    card: Mapping[str, object]


def save(parts: Parts, folder: Path, *, dtype: torch.dtype = torch.float16) -> None:
    """Write a checkpoint folder; an existing `training.csv` is kept.

    Args:
        parts: What to write.
        folder: Where; an existing folder is replaced.
        dtype: Of the parameters in the file.

    Raises:
        CheckpointError: A parameter is too large for `dtype`.
        OSError: The disk is full or the place cannot be written; the old folder is as it was.
    """
    files = _files(parts, dtype)
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        if (folder / CURVE).exists():
            files[CURVE] = (folder / CURVE).read_bytes()
        for name, content in files.items():
            _write(temporary / name, content)
        temporary.chmod(0o755)  # mkdtemp made it private
        _sync_folder(temporary)
        _swap(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def file_sha256(path: Path) -> str:
    """SHA-256 of a file, hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _files(parts: Parts, dtype: torch.dtype) -> dict[str, bytes]:
    state = {name: _stored(name, tensor, dtype) for name, tensor in parts.state.items()}
    files = {CONFIG: parts.config.to_json().encode(), WEIGHTS: to_safetensors(state)}
    names = TOKENIZER_NAMES[1 if parts.config.shared_vocab else 2]
    files |= dict(zip(names, parts.tokenizers, strict=True))
    card = {
        **parts.card,
        "parameters": parts.config.count_parameters(),
        "sha256": {name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
    }
    files[CARD] = (json.dumps(card, indent=2, ensure_ascii=False) + "\n").encode()
    return files


def _stored(name: str, tensor: Tensor, dtype: torch.dtype) -> Tensor:
    stored = tensor.detach().to("cpu", dtype).contiguous()
    if bool((stored.isinf() & tensor.detach().cpu().isfinite()).any()):
        raise CheckpointError(
            "{name}: a value is too large for {dtype}; save with dtype=torch.float32.", name=name, dtype=str(dtype)
        )
    return stored


def _write(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":
        return  # Windows cannot open a folder
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _swap(new: Path, folder: Path) -> None:
    """Put `new` in the place of `folder`, which comes back if that fails."""
    aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.old.", dir=folder.parent))
    old = aside / folder.name
    try:
        if folder.exists():
            os.rename(folder, old)
        os.rename(new, folder)
        _sync_folder(folder.parent)
    except BaseException:
        if not new.exists():
            os.rename(folder, new)
        if old.exists():
            os.rename(old, folder)
        raise
    finally:
        if folder.exists() or not old.exists():  # otherwise the old one is all there is
            shutil.rmtree(aside, ignore_errors=True)
