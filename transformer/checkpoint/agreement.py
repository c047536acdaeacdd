"""Whether the files of a checkpoint agree: config, tensors and tokenizers.

The config determines the names and shapes of all tensors; the header of a tensor file is compared with them before
any tensor is read.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType

import torch

from transformer.errors import CheckpointError, shown
from transformer.files import tensorfile
from transformer.i18n import Sentence, joined, say, say_n
from transformer.model.config import ModelConfig
from transformer.model.transformer import Transformer

Shapes = Mapping[str, tuple[int, ...]]

NAMED = 5  # things that a message lists


@lru_cache(maxsize=64)  # the listing asks again every few seconds, and building the modules costs 20 ms
def expected_shapes(config: ModelConfig) -> Shapes:
    """Name and shape of every tensor in the file of such a model; no memory is allocated."""
    with torch.device("meta"):
        model = Transformer(config)
    return MappingProxyType({name: tuple(tensor.shape) for name, tensor in model.state_dict().items()})


def most_bytes(config: ModelConfig, *, per_value: int = 8) -> int:
    """The largest possible tensor file of this config: some bytes per parameter, and the header."""
    return config.count_parameters() * per_value + tensorfile.LENGTH_BYTES + tensorfile.MAX_HEADER


def check_tensors(config: ModelConfig, header: tensorfile.Header, *, label: str) -> None:
    """Compare names, dtypes and shapes of a file with the config; an error names five of each kind."""
    wrong_dtype = [
        f"{shown(name)} ({info.dtype})" for name, info in header.tensors.items() if info.dtype not in tensorfile.FLOATS
    ]
    check_shapes(config, header.shapes, label=label, wrong_dtype=wrong_dtype)


def check_shapes(config: ModelConfig, found: Shapes, *, label: str, wrong_dtype: Sequence[str] = ()) -> None:
    """The same for names and shapes alone; tensors of another dtype are named, too."""
    expected = expected_shapes(config)
    wrong_shape = [
        say(
            "{name} (found {found}, expected {expected})",
            name=shown(name),
            found=list(found[name]),
            expected=list(shape),
        )
        for name, shape in expected.items()
        if name in found and found[name] != shape
    ]
    missing = [shown(name) for name in expected if name not in found]
    unknown = [shown(name) for name in found if name not in expected]
    faults = list(clauses(missing=missing, unknown=unknown, wrong_dtype=wrong_dtype, wrong_shape=wrong_shape))
    if faults:
        raise CheckpointError("{label}: {faults}.", label=label, faults=joined("; ", faults))


def clauses(
    *, missing: Sequence[str], unknown: Sequence[str], wrong_shape: Sequence[str], wrong_dtype: Sequence[str] = ()
) -> Iterator[Sentence]:
    """A clause for each kind of fault found, with its first five tensors as messages name them."""
    if missing:
        yield say_n(
            "{n} tensor is missing: {names}", "{n} tensors are missing: {names}", len(missing), names=first(missing)
        )
    if unknown:
        yield say_n(
            "{n} tensor does not belong to the model that config.json describes: {names}",
            "{n} tensors do not belong to the model that config.json describes: {names}",
            len(unknown),
            names=first(unknown),
        )
    if wrong_dtype:
        yield say_n(
            "{n} tensor has a dtype other than F16, BF16, F32 or F64: {names}",
            "{n} tensors have a dtype other than F16, BF16, F32 or F64: {names}",
            len(wrong_dtype),
            names=first(wrong_dtype),
        )
    if wrong_shape:
        yield say_n(
            "{n} tensor has a different shape than config.json implies: {names}",
            "{n} tensors have different shapes than config.json implies: {names}",
            len(wrong_shape),
            names=first(wrong_shape),
        )


def check_vocabularies(
    config: ModelConfig, shapes: Shapes, pieces_of: Sequence[tuple[str, int]], *, label: str
) -> None:
    """Refuse a vocabulary whose three sizes differ: the config's, the rows of the embedding, the tokenizer's pieces.

    `shapes` are those of the tensors, by name; `pieces_of` has the file and number of pieces of each tokenizer,
    source before target.
    """
    sides = (("src", config.src_vocab_size), ("tgt", config.tgt_vocab_size))
    for (side, size), (file, n_pieces) in zip(sides, pieces_of, strict=False):  # a shared one is the source's
        table = shapes.get(f"{side}_table")
        if table is None or len(table) != 2:
            continue  # check_tensors says so
        if not size == table[0] == n_pieces:
            raise CheckpointError(
                "{label}: the sizes of the {side} vocabulary differ: {size:,} in config.json ({side}_vocab_size), "
                "{rows:,} rows in {side}_table, {n_pieces:,} pieces in {file}. All three must be equal.",
                label=label,
                side=side,
                size=size,
                rows=table[0],
                n_pieces=n_pieces,
                file=file,
            )


def first(names: Sequence[str]) -> str:
    """The first few names, for a message."""
    return joined(", ", [*names[:NAMED], *["..."] * (len(names) > NAMED)])
