"""Run file (`.glass`): a run as safetensors and JSON, for a notebook or the app without the model.

    trace.save("run.glass")
    trace = transformer.load_run("run.glass")          equal to the one that was saved

All that a trace has is in it: the query with the content hash of its checkpoint, tokens, log-probabilities, maps, masks
and the vocabulary; and the config, what the model's card says, and the versions of the programs. Tensors have the
names `log_probs`, `log_sums`, `weights.cross`, `masks.cross`, and so on; `record` is everything else, as JSON in UTF-8.

Nothing in a file is trusted: sizes, ids, texts and shapes are checked against each other before a trace is made.
"""

import hashlib
import json
import math
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal, get_args

import numpy as np
import torch
from safetensors.numpy import save as as_safetensors

from transformer.checkpoint.card import TEXTS, Card
from transformer.checkpoint.load import in_memory
from transformer.errors import CheckpointError, ClauseError, DataError, QueryError, shown, within
from transformer.files import strictjson, tensorfile
from transformer.files.atomic_saves import write_whole
from transformer.model.anatomy import Kind, anatomy
from transformer.model.config import ModelConfig
from transformer.runs.distribution import Rules
from transformer.runs.query import MAX_NEW, MAX_SOURCE_CHARACTERS, Query
from transformer.runs.trace import Ranked, StopReason, Trace

SUFFIX: Final = ".glass"
VERSION: Final = 1
MOST_BYTES: Final = 1_000_000_000
MOST_RECORD: Final = 64_000_000
MOST_NOTES, MOST_PIECE, MOST_NAME = 100, 4_000, 1_000  # notes; characters of a token, of a name
RECORD: Final = "record"
_DTYPES: Final = {"log_probs": "F32", "log_sums": "F32", "weights": "F32", "masks": "BOOL"}
_PLAIN: Final = (
    *("checkpoint", "source_text", "src_ids", "src_tokens", "tgt_ids", "tgt_tokens", "read_ids", "read_tokens"),
    *("first_row", "texts", "stop_reason", "log_prob", "vocabulary", "seconds"),
)
_Side = Literal["source", "target"]


@dataclass(frozen=True)
class RunFile:
    """The content of a run file."""

    trace: Trace
    config: ModelConfig  # of the model
    card: Card  # its texts
    special: Mapping[_Side, frozenset[int]]  # ids without a text of their own, as far as the run knew them
    made_with: Mapping[str, str]  # versions of the programs
    digest: str  # SHA-256 of the file, hexadecimal


def save_run(trace: Trace, path: Path | str) -> None:
    """Write a run to a file, or replace it; an OSError if that cannot be done, and an old file is then unchanged."""
    write_whole(Path(path), run_bytes(trace))


def run_bytes(trace: Trace) -> bytes:
    """The content of a run's file."""
    arrays = {"log_probs": trace.log_probs, "log_sums": trace.log_sums}
    arrays |= {f"weights.{kind}": array for kind, array in trace.weights.items()}
    arrays |= {f"masks.{kind}": array for kind, array in trace.masks.items()}
    text = json.dumps(_record(trace), ensure_ascii=False, separators=(",", ":")).encode()
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    return as_safetensors({**contiguous, RECORD: np.frombuffer(text, np.uint8)}, {"glassformer_run": str(VERSION)})


def _record(trace: Trace) -> dict[str, Any]:
    from transformer import __version__

    checkpoint, rules = in_memory(trace.query.checkpoint), trace.rules
    card = checkpoint.card if checkpoint is not None else Card()
    sides: dict[_Side, Any] = {}
    if checkpoint is not None:
        sides = {"source": checkpoint.src_tokenizer, "target": checkpoint.tgt_tokenizer}
    versions = {"glassformer": __version__, "torch": str(torch.__version__), "python": platform.python_version()}
    return {
        "version": VERSION,
        "made_with": {**versions, "machine": platform.machine()},
        "query": json.loads(trace.query.to_json()),
        "notes": list(map(str, trace.notes)),
        **{name: getattr(trace, name) for name in _PLAIN},
        "hypotheses": [vars(one) for one in trace.hypotheses],
        "rules": {"n_prompt": rules.n_prompt, "most": rules.most, "insisted": sorted(rules.insisted.items())},
        "config": json.loads(rules.config.to_json()),
        "card": {name: str(getattr(card, name)) for name in TEXTS},
        "special": {side: [i for i in range(one.size) if one.is_special(i)] for side, one in sides.items()},
    }


def load_run(path: Path | str) -> Trace:
    """Read a run that `Trace.save` wrote; a DataError if the file is not one, or damaged."""
    return open_run_file(path).trace


def open_run_file(path: Path | str) -> RunFile:
    """Read a run's file with all that it says; errors as of `load_run`."""
    place = Path(path)
    try:
        with place.open("rb") as file:
            return read_run(file, os.fstat(file.fileno()).st_size, label=place.name)
    except OSError as error:
        raise DataError("{path}: cannot be read: {problem}.", path=str(place), problem=_reason(error)) from None


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def check_run(file: BinaryIO, size: int, *, label: str) -> tuple[str, str]:
    """The model and the sentence of a run's file, without its arrays; errors as of `load_run`."""
    with within(label, DataError):
        record = _read_record(file, _header(file, size, label), label)
        return _text(record, "checkpoint", MOST_NAME), _text(record, "source_text", MAX_SOURCE_CHARACTERS)


def read_run(file: BinaryIO, size: int, *, label: str) -> RunFile:
    """Read an open file, at its start and seekable; errors as of `load_run`."""
    with within(label, DataError):
        try:
            header = _header(file, size, label)
            record = _read_record(file, header, label)
            config = ModelConfig.from_mapping(_part(record, "config", dict))
            query = Query.from_json(json.dumps(_part(record, "query", dict)))
            arrays = {name: _array(file, header, name, label) for name in header.tensors if name != RECORD}
        except QueryError as error:
            raise ClauseError("the query is refused: {problem}", problem=error.sentence) from None
        trace = _trace(record, config, query, arrays)
        card, made = _part(record, "card", dict), _part(record, "made_with", dict)
        texts: dict[str, Any] = {name: _text(card, name, MOST_PIECE) for name in TEXTS}
        versions = {name[:MOST_PIECE]: _text(made, name, MOST_NAME) for name in made}
        special = _part(record, "special", dict)
        sizes: dict[_Side, int] = {"source": config.src_vocab_size, "target": config.tgt_vocab_size}
        known = {side: frozenset(_ids(special, side, n)) for side, n in sizes.items() if side in special}
        digest = hashlib.sha256()
        file.seek(0)
        while part := file.read(2**20):
            digest.update(part)
    return RunFile(trace, config, Card(**texts), known, versions, digest.hexdigest())


def _header(file: BinaryIO, size: int, label: str) -> tensorfile.Header:
    if size > MOST_BYTES:
        raise ClauseError("has {size:,} bytes; the limit of a run is {most:,}", size=size, most=MOST_BYTES)
    try:
        header = tensorfile.read_header(file, size, label=label)
    except CheckpointError as error:
        raise DataError(error.sentence) from None
    version = header.metadata.get("glassformer_run")
    if version is None or RECORD not in header.tensors:
        raise ClauseError("is not a saved run; `Trace.save` and the menu “Save this run” write them")
    if version != str(VERSION):
        raise ClauseError(
            "is a run in version {found} of the format; this program reads version {version}",
            found=shown(version),
            version=VERSION,
        )
    return header


def _read_record(file: BinaryIO, header: tensorfile.Header, label: str) -> dict[str, Any]:
    info = header.tensors[RECORD]
    if info.dtype != "U8" or len(info.shape) != 1 or info.end - info.begin > MOST_RECORD:
        raise ClauseError("its record is not text of at most {most:,} bytes", most=MOST_RECORD)
    record = strictjson.parse(_bytes(file, header, info))
    if not isinstance(record, dict):
        raise ClauseError("its record is not a JSON object")
    return record


def _bytes(file: BinaryIO, header: tensorfile.Header, info: tensorfile.TensorInfo) -> bytes:
    file.seek(header.start + info.begin)
    content = file.read(info.end - info.begin)
    if len(content) != info.end - info.begin:
        raise ClauseError("changed while it was being read; try again")
    return content


def _array(file: BinaryIO, header: tensorfile.Header, name: str, label: str) -> np.ndarray:
    info = header.tensors[name]
    if _DTYPES.get(name.partition(".")[0]) != info.dtype:
        raise ClauseError("tensor {name} of dtype {dtype} is not a part of a run", name=shown(name), dtype=info.dtype)
    values = np.frombuffer(_bytes(file, header, info), np.uint8 if info.dtype == "BOOL" else "<f4")
    if info.dtype == "BOOL" and (values > 1).any():
        raise ClauseError("tensor {name} has a value that is neither true nor false", name=shown(name))
    made = values.astype(bool if info.dtype == "BOOL" else np.float32)
    return made.reshape(info.shape)


def _trace(record: Mapping[str, Any], config: ModelConfig, query: Query, arrays: Mapping[str, np.ndarray]) -> Trace:
    """The trace of checked parts; a ClauseError names the one that does not fit the others."""
    src = _ids(record, "src_ids", config.src_vocab_size)
    read = _ids(record, "read_ids", config.tgt_vocab_size)
    tgt = _ids(record, "tgt_ids", config.tgt_vocab_size, most=MAX_NEW)
    n_steps, rules = len(tgt), _part(record, "rules", dict)
    has = anatomy(config)
    vocabulary = _texts(record, "vocabulary", config.tgt_vocab_size if has.writes or n_steps else None)
    first_row = _count(record, "first_row", max(len(read) - n_steps, 0))
    trace = Trace(
        query=query,
        checkpoint=_text(record, "checkpoint", MOST_NAME),
        notes=_texts(record, "notes", None, most=MOST_NOTES),
        source_text=_text(record, "source_text", MAX_SOURCE_CHARACTERS),
        src_ids=src,
        src_tokens=_texts(record, "src_tokens", len(src)),
        tgt_ids=tgt,
        tgt_tokens=_texts(record, "tgt_tokens", n_steps),
        read_ids=read,
        read_tokens=_texts(record, "read_tokens", len(read)),
        first_row=first_row,
        texts=_texts(record, "texts", n_steps),
        stop_reason=_one_of(record, "stop_reason", get_args(StopReason)),
        log_prob=_number(record, "log_prob"),
        log_probs=_shaped(arrays, "log_probs", (n_steps, config.tgt_vocab_size)),
        log_sums=_shaped(arrays, "log_sums", (n_steps,)),
        weights={},
        masks={},
        hypotheses=tuple(map(_hypothesis, _part(record, "hypotheses", list))),
        vocabulary=vocabulary,
        pad_id=config.pad_id,
        rules=Rules(
            config, _count(rules, "n_prompt", len(read)), _count(rules, "most", MAX_NEW), _insisted(rules, config)
        ),
        seconds=_number(record, "seconds"),
    )
    n_tokens = {"encoder": len(src) if "encoder" in [one.kind for one in has.attentions] else 0, "decoder": len(read)}
    weights: dict[Kind, np.ndarray] = {}
    masks: dict[Kind, np.ndarray] = {}
    for one in has.attentions:
        n_queries, n_keys = n_tokens[one.stack], n_tokens[one.keys_from]
        mask = arrays.get(f"masks.{one.kind}", np.zeros((), bool))
        layers = (one.n_layers,) if mask.ndim == 3 else ()
        masks[one.kind] = _shaped(arrays, f"masks.{one.kind}", (*layers, n_queries, n_keys))
        found = arrays.get(f"weights.{one.kind}", np.zeros(()))
        cells = (0, 0) if found.size == 0 else (n_queries, n_keys)  # of a long run no maps are kept
        n_heads = config.of(one.stack).n_heads
        weights[one.kind] = _shaped(arrays, f"weights.{one.kind}", (one.n_layers, n_heads, *cells))
        if not ((found >= -1e-6) & (found <= 1 + 1e-6)).all():
            raise ClauseError("a weight of {name} is not from 0 to 1", name=one.kind)
    if surplus := arrays.keys() - {"log_probs", "log_sums", *(f"{a}.{k}" for a in ("weights", "masks") for k in masks)}:
        raise ClauseError("tensor {name} belongs to no attention of this model", name=shown(min(surplus)))
    if np.isnan(trace.log_probs).any() or not np.isfinite(trace.log_sums).all():
        raise ClauseError("a log-probability is not a number")
    return replace(trace, weights=weights, masks=masks)


def _shaped(arrays: Mapping[str, np.ndarray], name: str, shape: tuple[int, ...]) -> np.ndarray:
    if name not in arrays:
        raise ClauseError("has no tensor {name}", name=shown(name))
    if arrays[name].shape != shape:
        raise ClauseError(
            "tensor {name} has the shape {found}; the tokens of the run need {shape}",
            name=shown(name),
            found=shown(arrays[name].shape),
            shape=shown(shape),
        )
    return arrays[name]


def _checked(record: Mapping[str, Any], name: str, is_right: Callable[[Any], bool]) -> Any:
    if not is_right(found := record.get(name)):
        raise _refused(name, found)
    return found


def _part(record: Mapping[str, Any], name: str, kind: type) -> Any:
    return _checked(record, name, lambda found: isinstance(found, kind))


def _text(record: Mapping[str, Any], name: str, most: int) -> Any:
    return _checked(record, name, lambda found: isinstance(found, str) and len(found) <= most and "\0" not in found)


def _texts(record: Mapping[str, Any], name: str, count: int | None, *, most: int = 2**31) -> tuple[str, ...]:
    def are_right(found: list[Any]) -> bool:
        right = len(found) <= most and (count is None or len(found) == count)
        return right and all(isinstance(one, str) and len(one) <= MOST_PIECE for one in found)

    return tuple(_checked(record, name, lambda found: isinstance(found, list) and are_right(found)))


def _ids(record: Mapping[str, Any], name: str, size: int, *, most: int = 2**31) -> tuple[int, ...]:
    def are_right(found: list[Any]) -> bool:
        return len(found) <= most and all(type(i) is int and 0 <= i < size for i in found)

    return tuple(_checked(record, name, lambda found: isinstance(found, list) and are_right(found)))


def _count(record: Mapping[str, Any], name: str, most: int) -> Any:
    return _checked(record, name, lambda found: type(found) is int and 0 <= found <= most)


def _number(record: Mapping[str, Any], name: str) -> float:
    return float(_checked(record, name, lambda found: type(found) in (int, float) and math.isfinite(found)))


def _one_of(record: Mapping[str, Any], name: str, known: Sequence[Any]) -> Any:
    return _checked(record, name, lambda found: found in known)


def _hypothesis(record: Any) -> Ranked:
    if not isinstance(record, dict):
        raise _refused("hypotheses", record)
    return Ranked(
        text=_text(record, "text", 2**20),
        ids=_ids(record, "ids", 2**31, most=MAX_NEW),
        log_prob=_number(record, "log_prob"),
        score=_number(record, "score"),
        stop_reason=_one_of(record, "stop_reason", get_args(StopReason)),
    )


def _insisted(rules: Mapping[str, Any], config: ModelConfig) -> dict[int, int]:
    pairs = _part(rules, "insisted", list)
    for pair in pairs:
        right = isinstance(pair, list) and len(pair) == 2 and all(type(i) is int and i >= 0 for i in pair)
        if not right or pair[1] >= config.tgt_vocab_size:
            raise _refused("insisted", pairs)
    return dict(pairs)


def _refused(name: str, found: object) -> ClauseError:
    return ClauseError("{name} of the run does not fit the rest: found {found}", name=name, found=shown(found))
