"""Read the wire format of protocol buffers: fields, one after another, without knowing what they mean.

Only as much as a SentencePiece model needs. The reader never copies more than it was given, so a false length costs
nothing.

Source: Protocol Buffers documentation, "Encoding" (protobuf.dev/programming-guides/encoding).
"""

import struct
from collections.abc import Iterator

from transformer.errors import ClauseError

MAX_VARINT_BYTES = 10

Field = tuple[int, int | float | memoryview]  # number and value


def fields(message: memoryview) -> Iterator[Field]:
    """The fields of a message, number and value; a ClauseError if the bytes are not a message.

    A value is an int for a varint and for 64 fixed bits, a float for 32 fixed bits (here always a float), a view of the
    bytes for text, bytes and nested messages.
    """
    position = 0
    while position < len(message):
        key, position = _varint(message, position)
        number, kind = key >> 3, key & 7
        if number == 0:
            raise ClauseError("no field begins at byte {position}", position=position - 1)
        if kind == 0:
            value, position = _varint(message, position)
            yield number, value
            continue
        if kind == 2:
            length, position = _varint(message, position)
        elif kind in (1, 5):
            length = 8 if kind == 1 else 4
        else:
            raise ClauseError("field {number} has the unknown wire type {kind}", number=number, kind=kind)
        content = message[position : position + length]
        if len(content) < length:
            raise ClauseError(
                "its data ends inside field {number}, which needs {length:,} bytes but has only {given:,}",
                number=number,
                length=length,
                given=len(content),
            )
        position += length
        yield number, _value(kind, content)


def _value(kind: int, content: memoryview) -> int | float | memoryview:
    if kind == 5:
        return float(struct.unpack("<f", content)[0])
    return int.from_bytes(content, "little") if kind == 1 else content


def _varint(message: memoryview, position: int) -> tuple[int, int]:
    """A number of 7 bits a byte, lowest first, and where it ends."""
    value = 0
    for i in range(MAX_VARINT_BYTES):
        if position + i >= len(message):
            raise ClauseError("its data ends inside a number")
        byte = message[position + i]
        value |= (byte & 0x7F) << (7 * i)
        if byte < 0x80:
            return value & (2**64 - 1), position + i + 1
    raise ClauseError("the number that begins at byte {position} has no end", position=position)
