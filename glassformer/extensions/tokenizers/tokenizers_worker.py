"""Sandboxed worker script of a `tokenizer.json`: `probe` of all pieces, then `serve` of encode and decode.

A file says how each text is rewritten, cut and joined. Chained rules that replace a few characters by hundreds, or a
regular expression that backtracks, take any time and memory on a text of one word. Inspecting the file cannot exclude
this, so it is used only in this process, which ends when it exceeds its limits.

`tokenizers.tokenizers_library` starts this file as a script, as `probe` or as `serve` with limits. Its standard input
is first the file, then for `serve` requests: a length and that many bytes of JSON. Answers have the same form. Exit
status 1 means that the library refused the file; the reason is on standard error. It imports nothing of this library
but `transformer.sandbox`, by its path.

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
    except BaseException as error:  # a Rust panic is not an Exception
        print(_reason(error), file=sys.stderr)
        return 1
    limits = json.loads(sys.argv[2])
    if confined.can_limit():
        confined.limit(memory=limits["memory"], seconds=None, file_bytes=0)
    _serve(tokenizer, limits)
    return 0


def _confined() -> Any:
    spec = spec_from_file_location("confined", Path(__file__).resolve().parents[3] / "transformer" / "sandbox.py")
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
    codes = [*range(1, CHARACTERS), *range(CHARACTERS, 0x20000, 7)]
    sample = "".join(chr(code) for code in codes if not 0xD800 <= code < 0xE000)
    text = sample + " ".join(pieces)[:ENCODED]
    for start in range(0, len(text), ROW):
        tokenizer.decode(tokenizer.encode(text[start : start + ROW]).ids)


def _described(tokenizer: Any, record: dict[str, Any], limits: dict[str, Any]) -> dict[str, Any]:
    """The file's description; or that its ids exceed the limit, or its pieces an answer.

    Pieces by id, None for gaps; which added ones are special; the unknown id; the ids that a template puts around a
    text; whether pieces are bytes; and the prefix of pieces inside a word.
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
    """A step of the file, and the steps of a sequence."""
    if not isinstance(part, dict):
        return
    yield part
    for key in ("decoders", "pretokenizers"):
        inner = part.get(key)
        for step in inner if isinstance(inner, list) else ():
            yield from _kinds(step)


def _unknown_of(model: dict[str, Any], pieces: dict[str, int], last: int) -> int | None:
    """The id of the unknown piece, if there is one."""
    name, i = model.get("unk_token"), model.get("unk_id")
    if type(i) is int and 0 <= i <= last:
        return i
    return pieces.get(name) if isinstance(name, str) else None


def _serve(tokenizer: Any, limits: dict[str, Any]) -> None:
    """Answer until the input ends. The system ends this process when a request exceeds the remaining seconds."""
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
        unknown, left = list[tuple[int, str]](), limits["characters"]  # the places of unknown pieces, with their texts
        for place, (i, (start, end)) in enumerate(zip(ids, found.offsets, strict=True)):
            if i == request["unknown"] and start < end <= start + left:
                unknown.append((place, request["encode"][start:end]))
                left -= end - start
        return {"ids": ids, "unknown": unknown}
    except MemoryError:
        raise
    except BaseException as error:
        return {"refused": _reason(error)}


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
