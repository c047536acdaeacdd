"""Pieces that were added to a vocabulary after it had been learned, such as `[PAD]` to GPT-2's.

Folders of Hugging Face's transformers list them in tokenizer_config.json ("added_tokens_decoder"), older ones in
added_tokens.json (piece -> id), where special_tokens_map.json says which of them are special.

Source: Hugging Face's tokenizers, "added tokens".
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from transformer.errors import TokenizerError, shown
from transformer.text.piece_rows import Way
from transformer.text.sentencepiece_check import MAX_PIECES
from transformer.text.vocabulary_files import MAX_CHARACTERS, Files, json_record

CONFIG, LIST, MAP = "tokenizer_config.json", "added_tokens.json", "special_tokens_map.json"
FILES = (CONFIG, LIST, MAP)
MAX_ADDED = 5_000
_DECODER, _SEVERAL = "added_tokens_decoder", ("additional_special_tokens", "extra_special_tokens")


@dataclass(frozen=True)
class Added:
    """One of them; the names are those of the library."""

    content: str  # the piece, as somebody types it
    id: int  # its row
    special: bool = False  # it has no text of its own
    lstrip: bool = False  # it swallows the spaces before it, or behind it
    rstrip: bool = False  # it swallows the spaces before it, or behind it
    single_word: bool = False  # it is not found inside a word
    # It is looked for in the text after that was normalised, in small letters if that is how.
    normalized: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.content, str) or not 0 < len(self.content) <= MAX_CHARACTERS:
            raise TokenizerError(
                "an added piece is {found}, expected a text of 1 to {most} characters.",
                found=shown(self.content),
                most=MAX_CHARACTERS,
            )
        if type(self.id) is not int or not 0 <= self.id < MAX_PIECES:
            raise TokenizerError(
                "the added piece {piece} has the id {found}, expected a whole number from 0 to {most:,}.",
                piece=shown(self.content),
                found=shown(self.id),
                most=MAX_PIECES - 1,
            )
        for field in fields(self)[2:]:
            if type(getattr(self, field.name)) is not bool:
                raise TokenizerError(
                    "the added piece {piece}: {field}: found {found}, expected true or false.",
                    piece=shown(self.content),
                    field=field.name,
                    found=shown(getattr(self, field.name)),
                )

    @property
    def way(self) -> Way:
        """How it is found in a text."""
        return Way(self.lstrip, self.rstrip, self.single_word, self.normalized)

    def said(self) -> dict[str, Any]:
        """What JSON says of it: what is not as usual."""
        return {name: value for name, value in asdict(self).items() if value is not False}


def added_from(listed: object) -> tuple[Added, ...]:
    """Read a list of what `said` gives; a TokenizerError begins with "added"."""
    if not isinstance(listed, list | tuple) or len(listed) > MAX_ADDED:
        raise TokenizerError(
            "added: found {found}, expected a list of at most {most:,} pieces.", found=shown(listed), most=MAX_ADDED
        )
    return tuple(_one(record, where="added") for record in listed)


def added_of_folder(files: Files) -> tuple[Added, ...]:
    """What the files of a folder say, in the order of the ids; a TokenizerError begins with the file's name."""
    records = {name: json_record(files, name) for name in FILES if name in files}
    decoder = records.get(CONFIG, {}).get(_DECODER)
    if decoder is not None:
        found, file = list(_of_decoder(decoder)), CONFIG
    else:
        special = {name for record in records.values() for name in _special(record)}
        found, file = list(_of_list(records.get(LIST, {}), special)), LIST
    if len(found) > MAX_ADDED:
        raise TokenizerError(
            "{file}: has {n:,} added pieces; at most {most:,} are read.", file=file, n=len(found), most=MAX_ADDED
        )
    rows: dict[int, Added] = {}
    for one in found:
        other = rows.setdefault(one.id, one)
        if other is not one:
            raise TokenizerError(
                "{file}: {piece} has the id {i}, as {other} has already.",
                file=file,
                piece=shown(one.content),
                i=one.id,
                other=shown(other.content),
            )
    return tuple(rows[i] for i in sorted(rows))


def _of_decoder(decoder: object) -> Iterator[Added]:
    if not isinstance(decoder, Mapping):
        raise TokenizerError(
            "{file}: {field}: expected a JSON object, found {found}.",
            file=CONFIG,
            field=_DECODER,
            found=shown(decoder),
        )
    for i, record in decoder.items():
        if not isinstance(record, Mapping):
            raise TokenizerError(
                "{file}: {field}: expected a JSON object, found {found}.",
                file=CONFIG,
                field=f"{_DECODER}.{i[:20]}",
                found=shown(record),
            )
        known = {field.name for field in fields(Added)}
        values = {name: value for name, value in record.items() if name in known}
        number = int(i) if i.isascii() and i.isdecimal() and len(i) < len(str(MAX_PIECES)) + 1 else i
        yield _one({**values, "id": number}, where=CONFIG)


def _of_list(listed: Mapping[str, Any], special: set[str]) -> Iterator[Added]:
    for piece, i in listed.items():
        is_special = piece in special
        yield _one({"content": piece, "id": i, "special": is_special, "normalized": not is_special}, where=LIST)


def _one(record: object, *, where: str) -> Added:
    try:
        if not isinstance(record, Mapping):
            raise TokenizerError("expected a JSON object, found {found}.", found=shown(record))
        known = [field.name for field in fields(Added)]
        for name in ("content", "id"):
            if name not in record:
                raise TokenizerError("an added piece has no {field}.", field=name)
        for name in record:
            if name not in known:
                raise TokenizerError("{field}: there is no such option.", field=shown(name))
        return Added(**record)
    except TokenizerError as error:
        raise TokenizerError("{file}: {problem}", file=where, problem=error.sentence) from None


def _special(record: Mapping[str, Any]) -> Iterator[str]:
    """The special pieces that a special_tokens_map.json or a tokenizer_config.json names."""
    for key, value in record.items():
        if key in _SEVERAL and isinstance(value, Sequence) and not isinstance(value, str):
            yield from (name for one in value if (name := _name(one)) is not None)
        elif key.endswith("_token") and (name := _name(value)) is not None:
            yield name


def _name(value: object) -> str | None:
    if isinstance(value, Mapping):
        value = value.get("content")
    return value if isinstance(value, str) else None
