"""The tables that a corpus run keeps: their columns, units and ranges.

A run has three. `sentences` has one row per line of the file; `heads` one per line and head; `vectors` one per token
and head of the first lines, if asked. A value that a line or head does not have is null, never 0 or NaN.

Lines count from 1, as editors do; layers and heads from 1, as the app does; tokens (queries, keys) from 0, steps of
the output from 0, as everywhere in the library.
"""

from dataclasses import dataclass
from typing import Final, Literal, get_args

import pyarrow as pa

from transformer.analysis import head_statistics

Table = Literal["sentences", "heads", "vectors", "rollup"]
TABLES: Final[tuple[Table, ...]] = get_args(Table)
Name = Literal[head_statistics.Name, "same", "punctuation", "peak", "effect"]
# The measures of a head, means over the rows that count; see `head_statistics` for all but the last four.
NAMES: Final[tuple[Name, ...]] = (*head_statistics.NAMES, "same", "punctuation", "peak", "effect")
#   same          weight on keys with the query's own text, itself aside; 0 to 1
#   punctuation   weight on keys that are punctuation alone (Unicode categories P and S); 0 to 1
#   peak          the largest weight of the rows with two open keys or more, 0 to 1, the first of equals; where it is
#                 says `peak_query`, ... (with one open key a weight is 1, whatever the head does)
#   effect        log-probability of the output (nats) that is lost if the head writes zeros; null unless asked

_WORDS: Final = pa.dictionary(pa.int32(), pa.string())
_FEW: Final = pa.dictionary(pa.int8(), pa.string())


@dataclass(frozen=True)
class CorpusLine:
    """A line of the file."""

    number: int  # from 1
    source: str
    target: str | None = None  # the reference; None where the file has no second column


@dataclass(frozen=True, kw_only=True)
class CorpusOptions:
    """What is measured; all of it is in the name of the files."""

    decode: bool = False  # measure the model's own greedy output instead of the reference
    effect: bool = False  # also what is lost without each head: as many passes as there are heads
    vectors: int = 200  # so many of the first lines keep their queries and keys, or as many as 64 MB hold of a shard
    shard: int = 2_000  # lines of a shard


SENTENCES: Final = pa.schema(
    [
        pa.field("line", pa.int32(), nullable=False),
        ("source", pa.string()),
        ("target", pa.string()),  # the reference
        ("output", pa.string()),  # what the model wrote; null if the reference was forced
        ("n_source", pa.int16()),  # pieces, with the marks around them
        ("n_target", pa.int16()),  # pieces that were predicted, with the end mark; null for an encoder alone
        ("log_prob", pa.float32()),  # of those, in nats
        ("loss", pa.float32()),  # -log_prob / n_target
        ("worst_rank", pa.int32()),  # the largest rank of a piece that was predicted, 1 = the model's first
        ("worst_step", pa.int16()),  # its step
        ("exact", pa.bool_()),  # decoded: whether output and reference are equal; forced: whether each rank is 1
        ("bleu", pa.list_(pa.int32())),  # sacreBLEU's statistics (13a or as the card says): sys_len, ref_len, ...
        ("chrf", pa.list_(pa.int32())),  # sacreBLEU's statistics of chrF2
        ("sure", pa.int32()),  # gold alignment: sure links; null without gold
        ("problem", pa.string()),  # why nothing was measured; null where it was
    ]
)
HEADS: Final = pa.schema(
    [
        pa.field("line", pa.int32(), nullable=False),
        pa.field("kind", _FEW, nullable=False),  # encoder, decoder, cross
        pa.field("layer", pa.uint8(), nullable=False),
        pa.field("head", pa.uint8(), nullable=False),
        *((name, pa.float32()) for name in NAMES),
        ("peak_query", pa.int16()),  # the row of the largest weight
        ("peak_key", pa.int16()),
        ("peak_step", pa.int16()),  # the step of that row; null for the encoder's
        ("peak_query_piece", _WORDS),
        ("peak_key_piece", _WORDS),
        # Gold alignment: links of this head, those that are sure, those that are possible, where a piece's row is the
        # one that predicts it; then the latter two where it is the row that reads it.
        ("links", pa.int32()),
        ("links_sure", pa.int32()),
        ("links_possible", pa.int32()),
        ("reads_sure", pa.int32()),
        ("reads_possible", pa.int32()),
    ]
)
VECTORS: Final = pa.schema(
    [
        pa.field("line", pa.int32(), nullable=False),
        pa.field("kind", _FEW, nullable=False),
        pa.field("layer", pa.uint8(), nullable=False),
        pa.field("head", pa.uint8(), nullable=False),
        pa.field("side", _FEW, nullable=False),  # query, key
        pa.field("place", pa.int16(), nullable=False),  # of the token
        ("piece", _WORDS),
        ("vector", pa.list_(pa.float32())),  # as it meets the others: after rotation, before scaling
    ]
)
ROLLUP: Final = pa.schema(
    [
        pa.field("kind", _FEW, nullable=False),
        pa.field("layer", pa.uint8(), nullable=False),
        pa.field("head", pa.uint8(), nullable=False),
        pa.field("measure", _FEW, nullable=False),
        ("n", pa.int64()),  # lines that have it
        ("sum", pa.float64()),
        ("squares", pa.float64()),  # sum of squares
        ("bins", pa.list_(pa.int32())),  # lines by value, in the same bins for all shards (`rollups`)
    ]
)
SCHEMAS: Final[dict[Table, pa.Schema]] = {
    "sentences": SENTENCES, "heads": HEADS, "vectors": VECTORS, "rollup": ROLLUP
}  # fmt: skip
