"""Files of text that somebody names: read as far as they may be long, and decoded, or a `DataError` says why not."""

from pathlib import Path

from transformer.errors import DataError


def read(path: Path, most: int = -1) -> bytes:
    """The first bytes of a file, or all."""
    try:
        with path.open("rb") as file:
            return file.read(most)
    except OSError as error:
        raise DataError("{file}: cannot be read ({reason}).", file=str(path), reason=str(error.strerror)) from None


def decoded(content: bytes, *, label: str) -> str:
    """Text in UTF-8, with or without a byte order mark."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(
            "{file}: is not UTF-8 (byte {place:,}: {byte:#04x}); save it as UTF-8.",
            file=label,
            place=error.start,
            byte=content[error.start],
        ) from None
