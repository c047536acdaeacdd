"""A tokenizer.json in a process of its own, which has little time, memory and nothing else.

A file says how each text is rewritten, cut and joined: rules that replace a few signs by hundreds, one after the
other, or a regular expression that goes back again and again, take any time and any memory on a text of one word. No
look at the file tells this safely, so all that the file says happens here, and what takes too much ends this process
alone.

`tokenizers.library` starts this file as a script, as `probe` or as `serve` with limits, and writes to
its standard input: first the file, then to `serve` requests, each a number of bytes and so many of JSON. To answer is
to write the same. Exit status 1 means that the library refused the file; the reason is on standard error. It imports
nothing of this library but `transformer.sandbox`, by its path.

    probe   load the file, decode every piece once, encode the first of them and a broad sample of characters
    serve   say what the file is (`_described`), then answer `encode` and `decode`
"""

import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import tokenizers

LOADING = 3 << 30  # bytes that a file may take; 256,000 pieces and their merges take about one
CHARACTERS = 0x3000  # the first of Unicode, then a sample of the rest
ROW = 512  # characters or pieces at a time
ENCODED = 1_000_000  # characters of pieces; all of 250,000 would take half a minute


def main() -> int:
    """Do what the first argument says; 1 and a reason on standard error if the library refuses."""
    confined = _confined()
    if confined.can_limit():
        confined.confine(
            Path(os.devnull), [], memory=LOADING, seconds=None, file_bytes=0, with_parent=sys.argv[1] == "probe"
        )
    try:
        content = _read().decode("utf-8-sig")
        tokenizer = tokenizers.Tokenizer.from_str(content)
        tokenizer.no_truncation()  # a file may say how long its texts were; the config does here
        tokenizer.no_padding()
        if sys.argv[1] == "probe":
            _try_out(tokenizer)
            return 0
        _write(_described(tokenizer, json.loads(content), json.loads(sys.argv[2])))
    except BaseException as error:  # a panic of Rust's is no Exception
        print(_reason(error), file=sys.stderr)
        return 1
    limits = json.loads(sys.argv[2])
    if confined.can_limit():
        confined.limit(memory=limits["memory"], seconds=None, file_bytes=0)
    _serve(tokenizer, limits)
    return 0


def _confined() -> Any:
    spec = spec_from_file_location("confined", Path(__file__).resolve().parents[3] / "transformer" / "confined.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _try_out(tokenizer: Any) -> None:
    pieces = tokenizer.get_vocab(with_added_tokens=True)
    ids = list(pieces.values())
    for start in range(0, len(ids), ROW):
        tokenizer.decode(ids[start : start + ROW])
    text = _sample() + " ".join(pieces)[:ENCODED]
    for start in range(0, len(text), ROW):
        tokenizer.decode(tokenizer.encode(text[start : start + ROW]).ids)


def _sample() -> str:
    codes = [*range(1, CHARACTERS), *range(CHARACTERS, 0x20000, 7)]
    return "".join(chr(code) for code in codes if not 0xD800 <= code < 0xE000)


def _described(tokenizer: Any, record: dict[str, Any], limits: dict[str, Any]) -> dict[str, Any]:
    """What the server has to know; or that the file has ids beyond the limit, or more pieces than fit an answer.

    Pieces by their ids, None where there is none; of the added ones which are special; the unknown one; the ids that
    a template puts around a text; whether pieces are bytes, and what begins one that goes on with a word.
    """
    pieces = tokenizer.get_vocab(with_added_tokens=True)
    last = max(pieces.values(), default=-1)
    if not 0 <= last < limits["pieces"]:
        return {"last": last}
    n_bytes = sum(len(piece.encode()) for piece in pieces)
    if n_bytes > limits["bytes"]:
        return {"bytes": n_bytes}
    names: list[str | None] = [None] * (last + 1)
    for piece, i in pieces.items():
        names[i] = piece
    kinds = list(_kinds(record.get("decoder"))) or list(_kinds(record.get("pre_tokenizer")))
    found = tokenizer.encode("a", add_special_tokens=True)
    of_text = [place for place, sequence in enumerate(found.sequence_ids) if sequence is not None]
    around = [found.ids[: of_text[0]], found.ids[of_text[-1] + 1 :]] if of_text else [[], []]
    return {
        "pieces": names,
        "added": [[i, token.special] for i, token in tokenizer.get_added_tokens_decoder().items()],
        "around": around,
        "unknown": _unknown_of(record["model"], pieces, last),
        "over_bytes": any(part.get("type") == "ByteLevel" for part in kinds),
        "continuation": next((str(part.get("prefix"))[:ROW] for part in kinds if part.get("type") == "WordPiece"), ""),
    }


def _kinds(part: object) -> Iterator[dict[str, Any]]:
    """A step of the file, and those that it is a sequence of."""
    if not isinstance(part, dict):
        return
    yield part
    for key in ("decoders", "pretokenizers"):
        inner = part.get(key)
        for step in inner if isinstance(inner, list) else ():
            yield from _kinds(step)


def _unknown_of(model: dict[str, Any], pieces: dict[str, int], last: int) -> int | None:
    """The row of what the vocabulary does not know, if it has one."""
    name, i = model.get("unk_token"), model.get("unk_id")
    if type(i) is int and 0 <= i <= last:
        return i
    return pieces.get(name) if isinstance(name, str) else None


def _serve(tokenizer: Any, limits: dict[str, Any]) -> None:
    """Answer until the input ends. The system ends this process where a request takes more seconds than are left."""
    most, each, timer = limits["seconds"], limits["each"], getattr(signal, "setitimer", None)  # Windows has none
    left = most
    while content := _read():
        begin, left = time.process_time(), max(min(left + each, most), each)
        if timer:
            timer(signal.ITIMER_PROF, left)
        answer = _answer(tokenizer, json.loads(content), limits)
        left -= time.process_time() - begin
        _write(answer)
        if timer:
            timer(signal.ITIMER_PROF, 0)


def _answer(tokenizer: Any, request: dict[str, Any], limits: dict[str, Any]) -> dict[str, Any]:
    try:
        if "decode" in request:
            text = tokenizer.decode(request["decode"], skip_special_tokens=True)
            return {"text": text} if len(text) <= limits["characters"] else {"characters": len(text)}
        found = tokenizer.encode(request["encode"], add_special_tokens=False)
        ids = found.ids
        if len(ids) > limits["tokens"]:
            return {"tokens": len(ids)}
        return {"ids": ids, "unknown": _unknown(request, ids, found.offsets, limits["characters"])}
    except MemoryError:
        raise
    except BaseException as error:
        return {"refused": _reason(error)}


def _unknown(
    request: dict[str, Any], ids: list[int], offsets: list[tuple[int, int]], left: int
) -> list[tuple[int, str]]:
    """Where a piece is unknown, what the text has there; not where it is endless."""
    found = []
    for place, (i, (start, end)) in enumerate(zip(ids, offsets, strict=True)):
        if i == request["unknown"] and start < end <= start + left:
            found.append((place, request["encode"][start:end]))
            left -= end - start
    return found


def _reason(error: BaseException) -> str:
    return str(error)[:200]


def _read() -> bytes:
    length = sys.stdin.buffer.read(8)
    return sys.stdin.buffer.read(int.from_bytes(length, "little"))


def _write(answer: dict[str, Any]) -> None:
    content = json.dumps(answer).encode()
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.buffer.write(len(content).to_bytes(8, "little") + content)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    sys.exit(main())
