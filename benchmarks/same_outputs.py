"""Whether drafts change what is written: each sentence step by step, and with each kind of draft.

    python -m benchmarks.same_outputs checkpoints/zh-en sentences.txt --lines 2000
    python -m benchmarks.same_outputs tiny sentences.txt --lines 500

The file has one sentence a line; what follows a tab is left out. Instead of a folder, `tiny` means eight small random
models of other families, which have no tokenizer and read a number for each word. With a draft, a sentence is run
alone (pieces, text, the ten best candidates of each step and all log-probabilities are compared), and in a batch of
32 (what `write` and `run_together` give). The process ends with 1 if anything differs.

The eight models need: pip install transformers (tried with 5.23.0).
"""

import argparse
import os
import sys
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch

from benchmarks import same_model
from glassformer.extensions.drafts import drafter, int8_draft
from transformer.checkpoint.load import Checkpoint, load
from transformer.errors import QueryError
from transformer.runs.drafting import Draft, Ids, Pause
from transformer.runs.dynamic_batching import run_together
from transformer.runs.reading import DecodedOutput, EncodedBatch
from transformer.runs.running import run, write
from transformer.runs.trace import Trace

KINDS = ("int8", "ctranslate2")
TINY = {"marian": "swish, scaled", "bart": "gelu", "pegasus": "relu, scaled", "m2m_100": "own decoder",
        "t5": "large", "gpt2": "unscaled", "qwen3": "tied", "gemma2": "caps"}  # fmt: skip
AT_ONCE, TOP = 32, 10
MOST = 64  # pieces of an output


@dataclass
class Found:
    """What came of one kind of draft on one checkpoint."""

    name: str = ""  # the draft that was used
    sentences: int = 0
    without: int = 0  # sentences that no draft was written for
    written: int = 0  # pieces of first drafts
    right: int = 0  # of them, those before the first that the model would not have written
    whole: int = 0  # sentences whose first draft was the output
    stepped: int = 0  # sentences that were decoded step by step after all, because two pieces were nearly equal
    pieces: int = 0  # differences from here on
    text: int = 0
    candidates: int = 0
    together: int = 0
    plain: int = 0
    apart: float = 0.0  # largest difference of a log-probability

    @property
    def differences(self) -> int:
        """Sentences that differ, in any way that readers see."""
        return self.pieces + self.text + self.candidates + self.together + self.plain


class Watched:
    """A draft that remembers what it wrote first."""

    def __init__(self, draft: Draft) -> None:
        self.draft, self.name, self.first = draft, draft.name, Ids()

    def suits(self, reading: EncodedBatch) -> bool:
        """As the draft's."""
        return self.draft.suits(reading)

    def write(self, reading: EncodedBatch, rows: Sequence[int], begun: Sequence[Ids], pause: Pause) -> list[Ids]:
        """As the draft's."""
        found = self.draft.write(reading, rows, begun, pause)
        self.first = self.first or found[0]
        return found


def main() -> None:
    """Parse the command line, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", help="a folder, or the word tiny")
    parser.add_argument("sentences", type=Path)
    parser.add_argument("--lines", type=int, default=2000)
    parser.add_argument("--drafts", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--families", nargs="+", choices=TINY, default=list(TINY), help="which of the eight")
    options = parser.parse_args()
    torch.set_num_threads(1)
    with options.sentences.open(encoding="utf-8") as file:
        texts = [line.split("\t")[0].strip() for line in file]
    texts = [text for text in texts if text][: options.lines]
    tiny = options.checkpoint == "tiny"
    checkpoints = _tiny(options.families) if tiny else iter([(options.checkpoint, load(options.checkpoint))])
    print(f"{len(texts)} sentences\n\n| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}", flush=True)
    wrong = 0
    smallest = 1 if tiny else int8_draft.SMALLEST  # else nothing in the tiny ones would be rounded to 8 bits
    used = mock.patch.object(drafter, "judge")  # drafts are used even where most are wrong
    with used, mock.patch.object(int8_draft, "SMALLEST", smallest):
        for name, checkpoint in checkpoints:
            for kind, found in _compare(name, checkpoint, texts, options.drafts, as_numbers=tiny).items():
                wrong += found.differences
                print(_row(name, found.name if found.name == kind else f"{found.name} for {kind}", found), flush=True)
    sys.exit(1 if wrong else 0)


HEAD = ("", "draft", "sentences", "without a draft", "tokens right", "drafts right", "step by step", "other tokens",
        "other text", "other candidates", "other in a batch", "others of `write`", "nats apart, most")  # fmt: skip


def _row(name: str, kind: str, found: Found) -> str:
    share = found.right / max(found.written, 1)
    cells = [name, kind, found.sentences, found.without, f"{share:.1%}", found.whole, found.stepped, found.pieces,
             found.text, found.candidates, found.together, found.plain, f"{found.apart:.1e}"]  # fmt: skip
    return "| " + " | ".join(map(str, cells)) + " |"


def _compare(
    name: str, checkpoint: Checkpoint, texts: Sequence[str], kinds: Sequence[str], *, as_numbers: bool
) -> dict[str, Found]:
    """Run all sentences that the checkpoint can read."""
    found, began, done = {kind: Found() for kind in kinds}, time.monotonic(), 0
    for start in range(0, len(texts), AT_ONCE):
        block = texts[start : start + AT_ONCE]
        os.environ[drafter.ENVIRONMENT] = "none"
        sources = [_numbers(text, checkpoint) for text in block] if as_numbers else block
        truth = [trace for trace in (_step_by_step(checkpoint, source) for source in sources) if trace]
        plain = _plain(checkpoint, truth)
        for kind in kinds:
            os.environ[drafter.ENVIRONMENT] = kind
            _one_by_one(checkpoint, truth, found[kind])
            _in_a_batch(checkpoint, truth, found[kind])
            found[kind].plain += sum(a != b for a, b in zip(_plain(checkpoint, truth), plain, strict=True))
        done += len(block)
        _progress(name, done, len(texts), time.monotonic() - began, found)
    return found


def _progress(name: str, done: int, most: int, seconds: float, found: dict[str, Found]) -> None:
    said = ", ".join(f"{kind} {one.differences} differences" for kind, one in found.items())
    print(f"{name}: {done} of {most} in {seconds:.0f} s; {said}", file=sys.stderr, flush=True)


def _step_by_step(checkpoint: Checkpoint, text: str) -> Trace | None:
    try:
        return run(checkpoint, checkpoint.query(text, max_new=MOST))
    except QueryError as error:
        print(f"{checkpoint.name}: left out: {error}", file=sys.stderr)
        return None


def _one_by_one(checkpoint: Checkpoint, truth: Sequence[Trace], found: Found) -> None:
    """Each sentence alone: the draft that the program would take, watched."""
    for expected in truth:
        with _watching() as (watched, decoded):
            trace = run(checkpoint, expected.query)
        found.sentences += 1
        found.without += not watched
        found.stepped += bool(watched and decoded.called)
        for draft in watched:
            found.name = draft.name
            right = _agree(draft.first, expected.tgt_ids)
            found.written, found.right = found.written + len(draft.first), found.right + right
            found.whole += draft.first == expected.tgt_ids
        if _differs(trace, expected, found):
            print(f"other output with {checkpoint.name}: {expected.query.source!r}", file=sys.stderr, flush=True)


class _watching:  # noqa: N801  # read as a verb
    """Watches which drafts are written, and whether anything is decoded step by step."""

    def __enter__(self) -> tuple[list[Watched], mock.Mock]:
        """Begin."""
        watched: list[Watched] = []
        ask, decode, decoded = drafter.draft_for, EncodedBatch.decode, mock.Mock()

        def draft_for(reading: EncodedBatch) -> Draft | None:
            draft = ask(reading)
            if draft is None:
                return None
            watched.append(Watched(draft))
            return watched[-1]

        def counted(reading: EncodedBatch, *args: Any, **options: Any) -> list[DecodedOutput]:
            decoded()
            return decode(reading, *args, **options)

        self._patches = (
            mock.patch.object(drafter, "draft_for", draft_for),
            mock.patch.object(EncodedBatch, "decode", counted),
        )
        for patch in self._patches:
            patch.start()
        return watched, decoded

    def __exit__(self, *_: object) -> None:
        """End."""
        for patch in self._patches:
            patch.stop()


def _agree(one: Ids, other: Ids) -> int:
    """How many pieces two outputs begin with alike."""
    alike = [a == b for a, b in zip(one, other, strict=False)]
    return alike.index(False) if False in alike else len(alike)


def _differs(trace: Trace, expected: Trace, found: Found) -> bool:
    """Count how a trace differs from the one of decoding step by step."""
    before = found.differences
    found.pieces += trace.tgt_ids != expected.tgt_ids
    found.text += trace.texts != expected.texts
    if trace.tgt_ids == expected.tgt_ids:
        found.candidates += _candidates(trace) != _candidates(expected)
        found.apart = max(found.apart, _apart(trace, expected))
    return found.differences > before


def _candidates(trace: Trace) -> list[list[int]]:
    return [[one.id for one in trace.step(t, top_k=TOP).candidates] for t in range(trace.n_steps)]


def _apart(trace: Trace, expected: Trace) -> float:
    both = np.isfinite(expected.log_probs)
    if not np.array_equal(both, np.isfinite(trace.log_probs)):
        return float("inf")
    return float(np.abs(trace.log_probs - expected.log_probs, where=both, out=np.zeros_like(trace.log_probs)).max())


def _in_a_batch(checkpoint: Checkpoint, truth: Sequence[Trace], found: Found) -> None:
    """All sentences at once; each trace is to be that of the sentence alone."""
    together = run_together(checkpoint, [trace.query for trace in truth])
    for trace, expected in zip(together, truth, strict=True):
        if isinstance(trace, Exception):
            raise trace
        alike = trace.tgt_ids == expected.tgt_ids and trace.texts == expected.texts
        found.together += not (alike and _candidates(trace) == _candidates(expected))
        found.apart = max(found.apart, _apart(trace, expected)) if alike else found.apart


def _plain(checkpoint: Checkpoint, truth: Sequence[Trace]) -> list[Ids]:
    """What is written without traces, in a batch if the model can pad one."""
    queries = [trace.query for trace in truth]
    at_once = AT_ONCE if checkpoint.config.pad_id is not None else 1
    blocks = [queries[start : start + at_once] for start in range(0, len(queries), at_once)]
    return [tuple(ids) for block in blocks for ids in write(checkpoint, block)]


def _numbers(text: str, checkpoint: Checkpoint) -> str:
    """A sentence for a model without a tokenizer: a number for each word, always the same, as long as it may be."""
    config = checkpoint.config
    first, rows = 5, config.src_vocab_size - 10  # special pieces come first, or last
    most = config.max_len - 2 if config.n_encoder_layers else config.max_len // 2
    return " ".join(str(first + zlib.crc32(word.encode()) % rows) for word in text.split()[:most])


def _tiny(families: Sequence[str]) -> Iterator[tuple[str, Checkpoint]]:
    rows = import_module("tests.extensions.huggingface.tiny_families")
    for family in families:
        yield family, same_model.ours(rows.model_of(family, TINY[family]))


if __name__ == "__main__":
    main()
