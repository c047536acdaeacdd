"""Folders of runs with numbers drawn at random: what a page is asked about, without a model."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from glassformer.extensions.corpus.library import tables
from glassformer.extensions.corpus.library.folder import file_name
from glassformer.extensions.corpus.library.tables import CorpusOptions

KINDS = ("encoder", "decoder", "cross")
PIECES = np.array(["▁the", "▁dog", "s", ",", "▁,", ".", "</s>", "▁“", "▁", "了", "Ab"])
LACKING = {"encoder": ("diagonal",), "decoder": ("next", "end", "diagonal"), "cross": ("self", "previous", "next")}


def sentences(numbers: np.ndarray, draws: np.random.Generator) -> pa.Table:
    """Rows for lines of these numbers; each 50th could not be measured."""
    n = len(numbers)
    there = numbers % 50 != 0
    long = draws.integers(3, 40, n)
    loss = draws.gamma(2.0, 0.7, n).astype(np.float32)
    words = PIECES[draws.integers(0, len(PIECES), (n, 8))]
    texts = [f"Line {number}: " + "".join(some).replace("▁", " ") for number, some in zip(numbers, words, strict=True)]
    columns = {
        "line": numbers,
        "source": texts,
        "target": [None if number % 7 == 0 else text[::-1] for number, text in zip(numbers, texts, strict=True)],
        "n_source": long,
        "n_target": pa.array(long + 2, mask=~there),
        "log_prob": pa.array(-loss * (long + 2), mask=~there),
        "loss": pa.array(loss, mask=~there),
        "worst_rank": pa.array(draws.geometric(0.1, n), mask=~there),
        "worst_step": pa.array(draws.integers(0, 40, n), mask=~there),
        "exact": pa.array(draws.random(n) < 0.3, mask=~there),
        "problem": [None if one else "too long" for one in there],
    }
    return _table(tables.SENTENCES, columns, n)


def heads(
    numbers: np.ndarray, draws: np.random.Generator, *, effect: bool = True, layers: int = 3, per_layer: int = 4
) -> pa.Table:
    """Rows for those of these lines that could be measured, sorted as a run has them."""
    numbers = numbers[numbers % 50 != 0]
    n = len(numbers)
    parts = []
    for kind in KINDS:
        for layer in range(1, layers + 1):
            for head in range(1, per_layer + 1):
                columns = {"line": numbers, "kind": [kind] * n, "layer": [layer] * n, "head": [head] * n}
                columns |= _measures(kind, draws, n, sharp=(layer * per_layer + head) % 5 + 1, effect=effect)
                parts.append(_table(tables.HEADS, columns, n))
    return pa.concat_tables(parts)


def _measures(kind: str, draws: np.random.Generator, n: int, *, sharp: int, effect: bool) -> dict[str, Any]:
    found: dict[str, Any] = {name: draws.beta(1.0, sharp, n) for name in tables.NAMES}
    found["entropy"] = draws.gamma(sharp, 0.6, n)
    found["distance"] = found["distance"] if kind == "cross" else draws.gamma(2.0, sharp, n)
    found["effect"] = draws.normal(0.2, sharp, n)
    found["largest"] = np.round(found["largest"], 1)  # so that some are equal
    lacking = draws.random(n) < 0.1  # a line too short
    found["previous"] = pa.array(found["previous"], mask=lacking)
    for name in LACKING[kind] if effect else (*LACKING[kind], "effect"):
        del found[name]
    step = draws.integers(0, 30, n)
    found |= {"peak_query": step, "peak_key": draws.integers(0, 30, n)}
    found |= {} if kind == "encoder" else {"peak_step": step}
    for name in ("peak_query_piece", "peak_key_piece"):
        found[name] = PIECES[draws.integers(0, len(PIECES), n)].tolist()
    return found


def _table(schema: pa.Schema, columns: Mapping[str, Any], n: int) -> pa.Table:
    return pa.table([_array(columns.get(field.name, [None] * n), field.type) for field in schema], schema=schema)


def _array(values: Any, kind: pa.DataType) -> pa.Array:
    return (values if isinstance(values, pa.Array) else pa.array(values)).cast(kind)


def write_run(
    out: Path,
    *,
    lines: int = 300,
    options: CorpusOptions | None = None,
    seed: int = 0,
    done: int | None = None,
    layers: int = 3,
    per_layer: int = 4,
) -> Path:
    """Write a run of so many lines into `out`, complete or with the first `done` shards, and give its folder."""
    options = options or CorpusOptions(effect=True, shard=100)
    folder = out / f"{seed:016x}"
    folder.mkdir(parents=True)
    starts = range(1, lines + 1, options.shard)
    for shard, first in enumerate(starts[:done]):
        draws = np.random.default_rng([seed, shard])
        numbers = np.arange(first, min(first + options.shard, lines + 1), dtype=np.int32)
        measured = heads(numbers, draws, effect=options.effect, layers=layers, per_layer=per_layer)
        write(folder, "sentences", shard, sentences(numbers, draws))
        write(folder, "heads", shard, measured, rows_of_group=len(measured) // (3 * layers * per_layer))
        write(folder, "rollup", shard, tables.rolled_up(measured))
    about = {
        "format": 1, "checkpoint": "tiny", "files": ["pairs.tsv"], "lines": lines, "shards": len(starts),
        "content_hash": "0" * 64, "code": "0" * 16, "options": asdict(options), "sha256": "0" * 64, "max_lines": None,
        "complete": done is None,
    }  # fmt: skip
    (folder / "about.json").write_text(json.dumps(about), encoding="utf-8")
    return folder


def write(folder: Path, table: tables.Table, shard: int, rows: pa.Table, *, rows_of_group: int | None = None) -> None:
    """Write a table of a shard."""
    pq.write_table(rows, folder / file_name(table, shard), compression="zstd", row_group_size=rows_of_group)
