"""Save and load (first version)."""

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

from transformer.config import ModelConfig

TOKENIZER_NAMES = {1: ("pieces.model",), 2: ("source.model", "target.model")}


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
    """Write a checkpoint folder: all of it or nothing.

    The files are written to a temporary folder beside it and flushed to disk; an existing folder is moved aside,
    the new one renamed in, and only then the old one removed.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        for name, content in _files(parts, dtype).items():
            _write(temporary / name, content)
        if (folder / "training.csv").exists():
            shutil.copy(folder / "training.csv", temporary)
        _sync_folder(temporary)
        _swap(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def file_sha256(path: Path) -> str:
    """SHA-256 of a file, hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _files(parts: Parts, dtype: torch.dtype) -> dict[str, bytes]:
    state = {name: tensor.detach().to("cpu", dtype).contiguous() for name, tensor in parts.state.items()}
    files = {"config.json": parts.config.to_json().encode(), "model.safetensors": to_safetensors(state)}
    files |= dict(zip(TOKENIZER_NAMES[len(parts.tokenizers)], parts.tokenizers, strict=True))
    card = {
        **parts.card,
        "parameters": parts.config.count_parameters(),
        "sha256": {name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
    }
    files["card.json"] = (json.dumps(card, indent=2, ensure_ascii=False) + "\n").encode()
    return files


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
    aside = folder.with_name(f".{folder.name}.old-{os.getpid()}")
    os.chmod(new, 0o755)  # mkdtemp made it private
    if folder.exists():
        os.rename(folder, aside)
    os.rename(new, folder)
    _sync_folder(folder.parent)
    shutil.rmtree(aside, ignore_errors=True)
