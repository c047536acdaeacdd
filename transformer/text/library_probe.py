"""Try a tokenizer.json in a process of its own: if the native code crashes, only this process ends.

`transformer.text.library` starts this file as a script and writes the file to its standard input. Exit status 0 means
that it was loaded, that every piece was decoded once, and that the first of them and a broad sample of characters
were encoded. It imports nothing of this library.
"""

import contextlib
import sys

import tokenizers

MEMORY = 6 << 30  # bytes of address space; that of Gemma takes about one
CHARACTERS = 0x3000  # the first of Unicode, then a sample of the rest
ROW = 512  # characters or pieces at a time
ENCODED = 1_000_000  # characters of pieces; all of 250,000 would take half a minute


def _limit() -> None:
    """Where the system can do it: no more memory than any sane file needs, and no core file."""
    with contextlib.suppress(ImportError, ValueError, OSError):  # Windows has no such module
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _sample() -> str:
    codes = [*range(1, CHARACTERS), *range(CHARACTERS, 0x20000, 7)]
    return "".join(chr(code) for code in codes if not 0xD800 <= code < 0xE000)


def main() -> int:
    """Load, encode, decode; 1 and a reason on standard error if the library refuses."""
    _limit()
    try:
        tokenizer = tokenizers.Tokenizer.from_str(sys.stdin.buffer.read().decode())
        tokenizer.no_truncation()
        tokenizer.no_padding()
        pieces = tokenizer.get_vocab(with_added_tokens=True)
        ids = list(pieces.values())
        for start in range(0, len(ids), ROW):
            tokenizer.decode(ids[start : start + ROW])
        text = _sample() + " ".join(pieces)[:ENCODED]
        for start in range(0, len(text), ROW):
            tokenizer.decode(tokenizer.encode(text[start : start + ROW]).ids)
    except BaseException as error:  # a panic of Rust's is no Exception
        print(str(error)[:200], file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
