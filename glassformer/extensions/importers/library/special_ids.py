"""The special ids of a tutorial's model, and what stands around its texts: read from its tokenizer, or asked.

Training programs agree on little of it. What nearly all of them do is inferred and said; a text of ids is taken as it
is typed, but whether its end mark is to be added is tried.

Which ids are tried first: a tokenizer names its special pieces; without one, tutorials give them the first ids; and a
table of embeddings whose row is all zeros was told so, as PyTorch's `nn.Embedding(padding_idx=...)` makes that row
zero and never learns it.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from torch import Tensor

from glassformer.extensions.importers.library.handed_pieces import Tokenizers
from glassformer.extensions.importers.library.report import Field, ask, inferred
from glassformer.extensions.tokenizers.vocabulary_files import CALLED
from transformer.i18n import Sentence, say
from transformer.text.tokenizer import AnyTokenizer

USUAL = 4  # ids from 0 that tutorials give to special pieces
MOST_NAMED = 8  # special pieces of a tokenizer that are tried; some have hundreds, for languages
# Without a tokenizer: usual for each, in an order in which the first of all four differ.
FIRST: Mapping[str, int] = MappingProxyType({"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3})
MAY_BE_NONE = ("pad_id", "unk_id", "bos_id")


def settled(fields: Mapping[str, Field], tokenizers: Tokenizers | None, answers: Mapping[str, Any]) -> list[Field]:
    """The fields about ids, from what is known of them so far, by name, and how many layers each stack has.

    There are no tokenizers while the sizes of the vocabularies are asked; then nothing of it is asked yet.
    """
    if tokenizers is None:
        return []
    writes = bool(fields["n_decoder_layers"].value)
    reads = bool(fields["n_encoder_layers"].value)
    ids = {name: _id(fields[name], tokenizers) for name in CALLED}
    if tokenizers.raw and not reads:
        ids["bos_id"] = _or_else(ids["bos_id"], None, say("Nothing is added before texts that are typed as ids."))
    if not writes:
        ids["bos_id"] = _or_else(
            ids["bos_id"], None, say("An encoder-only model generates no output, so it needs no start mark.")
        )
        pad = answers.get("pad_id", ids["pad_id"].value)
        why = say("Not used: an encoder-only model generates no output, so it needs no end mark.")
        ids["eos_id"] = _or_else(ids["eos_id"], int(pad == 0), why)
    known = {name: answers.get(name, one.value) for name, one in ids.items()}
    open_ids = {name for name, one in ids.items() if one.how == "asked" and name not in answers}
    return [*ids.values(), *_around(tokenizers, known, open_ids, reads=reads, writes=writes)]


def _or_else(field: Field, value: Any, why: Sentence) -> Field:
    return inferred(field.name, value, why) if field.how == "asked" else field


def _id(field: Field, tokenizers: Tokenizers) -> Field:
    """A special id; what was saved beside the weights goes before what a tokenizer calls so."""
    if field.how != "asked":
        return field
    if tokenizers.raw:
        why = say("Without a tokenizer, texts are typed as ids, so no text is unknown.")
        return inferred(field.name, None, why) if field.name == "unk_id" else field
    first, second = (
        next(((i, name) for name in CALLED[field.name] if (i := one.id_of(name)) is not None), None)
        for one in (tokenizers.source, tokenizers.target)
    )
    if first is not None and second is not None:
        if first[0] == second[0]:
            why = say("In the tokenizer, this piece is called {name}.", name=first[1])
            return Field(field.name, "read", first[0], why)
        why = say(
            "The two tokenizers give this piece different ids, {first} and {second}, but the model can have only "
            "one id for it.",
            first=first[0],
            second=second[0],
        )
        return ask(field.name, why)
    if field.name in ("pad_id", "unk_id"):
        return inferred(field.name, None, say("The tokenizer has no piece of this kind."))
    return field


def _around(
    tokenizers: Tokenizers, ids: Mapping[str, Any], asked: set[str], *, reads: bool, writes: bool
) -> Iterator[Field]:
    """What stands around a source, and what a decoder reads first."""
    start = ids["bos_id"]
    if reads and writes and "bos_id" not in asked:
        if start is None:
            yield ask("decoder_start_id", say("There is no bos_id that an output could begin with."))
        else:
            yield inferred("decoder_start_id", start, say("Outputs usually begin with bos_id."))
    elif "eos_id" not in asked and not (reads and writes):
        why = say("An encoder-only or decoder-only model has no separate start id for its output.")
        yield inferred("decoder_start_id", ids["eos_id"], why)
    wrapping = tokenizers.source.wrapping
    if wrapping.before or wrapping.after:
        why = say("The tokenizer determines this.")
        before, after = wrapping.before, wrapping.after if reads else ()
        starts, ends = before[:1] == (start,), after[:1] == (ids["eos_id"],)
        yield Field("prepend_source_bos", "read", starts, why)
        yield Field("append_source_eos", "read", ends, why)
        yield Field("source_prefix", "read", before[starts:], why)
        yield Field("source_suffix", "read", after[ends:], why)
        return
    if tokenizers.raw:
        why = say("Without a tokenizer, ids are read exactly as typed.")
        yield inferred("prepend_source_bos", False, why)
        yield inferred("append_source_eos", False, why, *((False, True) if reads else ()))
        return
    if start is None and "bos_id" not in asked:
        yield inferred("prepend_source_bos", False, say("There is no bos_id."))
    else:
        why = say("Only the training code can tell you whether texts begin with bos_id.")
        yield ask("prepend_source_bos", why, True, False)
    if reads:
        why = say("Only the training code can tell you whether sources end with eos_id.")
        yield ask("append_source_eos", why, True, False)
    else:
        yield inferred(
            "append_source_eos", False, say("A decoder-only model continues its text, so the text gets no end mark.")
        )


def likely_ids(name: str, size: int, tokenizer: AnyTokenizer | None, table: Tensor | None) -> list[int | None]:
    """The values that a special id, one of `CALLED`, may have in a vocabulary of a size, the smaller of both.

    The tokenizer is the source's, if there is one with names, and the table its embeddings [V, D], if they were read.
    """
    found: list[int | None] = []
    if tokenizer is not None:
        found += [i for called in CALLED[name] if (i := tokenizer.id_of(called)) is not None]
    if name == "pad_id" and table is not None:
        found += zero_rows(table)
    first = FIRST[name]
    found += [first] * (tokenizer is None)
    found += [None] * (name == "pad_id")  # which does no harm where nothing says which it is
    if tokenizer is None:
        found += range(USUAL)
    else:
        found += [i for i in range(min(tokenizer.size, 64)) if tokenizer.is_special(i)][:MOST_NAMED]
    found += [None] * (name in MAY_BE_NONE)
    return [i for i in dict.fromkeys(found) if i is None or i < size]


def zero_rows(table: Tensor) -> list[int]:
    """Rows [D] of a table [V, D] that are all zeros, if they are few: what padding has."""
    rows = [int(i) for i in (table == 0).all(dim=1).nonzero()[:, 0]]
    return rows if len(rows) == 1 else []
