"""Script that tries out a SentencePiece model in a process of its own: loading, encoding and decoding every piece.

If the native code crashes, only this process ends. `transformer.text.sentencepiece_check` starts this file as a script
and writes the model to its standard input. Exit status 0 means that the model was loaded and that every piece, and
every character of a broad sample, was encoded and decoded once. It imports nothing of this library, which would take
seconds.
"""

import contextlib
import sys

import sentencepiece

MEMORY = 2 << 30  # bytes of address space
CHARACTERS = 0x3000  # the first of Unicode, then a sample of the rest
ROW = 512  # characters encoded at a time


def _limit() -> None:
    """Where the system can do it: no more memory than any sane model needs, and no core file."""
    with contextlib.suppress(ImportError, ValueError, OSError):  # Windows has no such module
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _sample() -> str:
    codes = [*range(1, CHARACTERS), *range(CHARACTERS, 0x20000, 7)]
    return "".join(chr(code) for code in codes if not 0xD800 <= code < 0xE000)


def main() -> int:
    """Load, encode, decode; 1 and a reason on standard error if SentencePiece refuses."""
    _limit()
    processor = sentencepiece.SentencePieceProcessor()
    try:
        processor.LoadFromSerializedProto(sys.stdin.buffer.read())
        for i in range(processor.GetPieceSize()):
            processor.EncodeAsIds(processor.IdToPiece(i))
            processor.DecodeIds([i])
        text = _sample()
        for start in range(0, len(text), ROW):
            row = text[start : start + ROW]
            processor.EncodeAsPieces(row)
            processor.DecodeIds(processor.EncodeAsIds(row))
    except (RuntimeError, OSError, ValueError, IndexError, MemoryError) as error:
        print(str(error)[:200], file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
