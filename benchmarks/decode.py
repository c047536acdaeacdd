"""Milliseconds per target token: our decoding and our full trace against Hugging Face Marian and CTranslate2.

    python -m benchmarks.decode --turns 7

All programs have the same parameters (`benchmarks.same_model`), read the same 20 source tokens and write 30 target
tokens greedily. The script first checks that they write the same tokens. Times are those of the whole sentence,
encoder included, divided by 30. Each program and number of threads has its own process; one runs while the others
wait.

Needs: pip install transformers ctranslate2 (tried with 5.23.0 and 4.8.5).
"""

import argparse
import json
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import torch

from benchmarks import same_model
from transformer.checkpoint.load import Checkpoint
from transformer.model.cache import KVCache
from transformer.runs.decoding import Prefix, collect, greedy
from transformer.runs.query import Query
from transformer.runs.running import run

SOURCE_TOKENS, TARGET_TOKENS = 20, 30
NAMES = {
    "hf": "Hugging Face `generate`",
    "hf-attentions": "Hugging Face `generate(output_attentions=True)`",
    "ctranslate2": "CTranslate2, float32",
    "decode": "our decoding",
    "trace": "our full trace",
    "forward": "our forward pass alone",
}
Work = Callable[[], list[int]]  # writes one sentence, returns its ids


def main() -> None:
    """Parse the command line, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--sentences", type=int, default=20, help="sentences per turn")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="numbers of threads to try")
    parser.add_argument("--worker", choices=NAMES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        _work(options.worker, options.threads[0], options.sentences)
    else:
        _report(_measure(options.turns, options.sentences, options.threads))


def _measure(turns: int, sentences: int, threads: list[int]) -> dict[tuple[str, int], list[float]]:
    """Milliseconds a token of each turn, by program and number of threads."""
    places = [(name, n) for name in NAMES for n in threads]
    workers = {place: _start(*place, sentences) for place in places}
    written = {place: json.loads(_ask(worker, "write")) for place, worker in workers.items()}
    expected = written["hf", threads[0]]
    wrong = [f"{name} with {n} threads" for (name, n), ids in written.items() if ids != expected]
    if wrong:
        sys.exit(f"not the same output as Hugging Face: {', '.join(wrong)}")
    print(f"All programs write the same {len(expected)} tokens, {len(set(expected))} of them different.", flush=True)
    times: dict[tuple[str, int], list[float]] = {place: [] for place in places}
    for turn in range(turns):
        random.Random(turn).shuffle(places)
        for place in places:
            times[place].append(float(_ask(workers[place], "time")))
    for worker in workers.values():
        worker.terminate()
    return times


def _start(name: str, threads: int, sentences: int) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "benchmarks.decode", "--worker", name]
    command += ["--threads", str(threads), "--sentences", str(sentences)]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )


def _ask(worker: "subprocess.Popen[str]", what: str) -> str:
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write(what + "\n")
    worker.stdin.flush()
    answer = worker.stdout.readline()
    if not answer:
        sys.exit(f"a worker has failed: {' '.join(map(str, worker.args))}")  # type: ignore[arg-type]
    return answer


def _work(name: str, threads: int, sentences: int) -> None:
    """Answer the questions that come on standard input."""
    torch.set_num_threads(threads)
    work = _program(name, threads)
    with torch.inference_mode():
        for _ in range(3):
            ids = work()
        for question in sys.stdin:
            if question.strip() == "write":
                print(json.dumps(ids), flush=True)
                continue
            work()
            times = []
            for _ in range(sentences):
                started = time.perf_counter()
                work()
                times.append(time.perf_counter() - started)
            print(1000 * statistics.median(times) / TARGET_TOKENS, flush=True)


def _program(name: str, threads: int) -> Work:
    peer = same_model.marian()
    checkpoint = same_model.ours(peer)
    query = _query(checkpoint)
    src = torch.tensor([list(run(checkpoint, query).src_ids)])  # [1, S]
    if src.size(1) != SOURCE_TOKENS:
        raise RuntimeError(f"the source has {src.size(1)} tokens, not {SOURCE_TOKENS}")
    if name == "ctranslate2":
        return _ctranslate2(peer, checkpoint, src, threads)
    if name.startswith("hf"):
        return _hugging_face(peer, src, attentions=name == "hf-attentions")
    if name == "trace":
        return lambda: list(run(checkpoint, query).tgt_ids)
    if name == "forward":
        return _forward(checkpoint, src, run(checkpoint, query).tgt_ids)
    n_layers = checkpoint.config.n_decoder_layers
    return lambda: collect(greedy(Prefix(checkpoint.model, src, cache=KVCache(n_layers)), max_new=TARGET_TOKENS))[0]


def _query(checkpoint: Checkpoint) -> Query:
    """A query whose source has 20 tokens: words of the vocabulary, more and more until there are enough."""
    words = [piece[1:] for piece in checkpoint.src_tokenizer.pieces[100:] if piece.startswith("▁") and len(piece) > 3]
    source = " ".join(words[: SOURCE_TOKENS - 1])
    ids = checkpoint.src_tokenizer.encode(source).ids
    return checkpoint.query(checkpoint.src_tokenizer.decode(ids[: SOURCE_TOKENS - 1]), max_new=TARGET_TOKENS)


def _forward(checkpoint: Checkpoint, src: torch.Tensor, output: tuple[int, ...]) -> Work:
    """One teacher-forced pass over the finished output: what a trace needs beside decoding."""
    read = torch.tensor([[checkpoint.config.decoder_start_id, *output[:-1]]])

    def work() -> list[int]:
        return [int(i) for i in checkpoint.model(src, read)[0].argmax(dim=-1)]

    return work


def _hugging_face(peer: Any, src: torch.Tensor, *, attentions: bool) -> Work:
    if attentions:
        peer.set_attn_implementation("eager")  # the only one that returns attention weights
    options: dict[str, Any] = {"max_new_tokens": TARGET_TOKENS, "num_beams": 1, "do_sample": False}
    options |= {"output_attentions": attentions, "return_dict_in_generate": True}

    def work() -> list[int]:
        result = peer.generate(src, **options)
        if attentions and len(result.cross_attentions) != TARGET_TOKENS:
            raise RuntimeError("no attentions came back")
        return [int(i) for i in result.sequences[0, 1:]]

    return work


def _ctranslate2(peer: Any, checkpoint: Checkpoint, src: torch.Tensor, threads: int) -> Work:
    pieces = list(checkpoint.src_tokenizer.pieces)
    ids = {piece: i for i, piece in enumerate(pieces)}
    translator = same_model.ctranslate2(peer, pieces=pieces, threads=threads)
    source = [[pieces[i] for i in src[0].tolist()]]
    options = {"beam_size": 1, "min_decoding_length": TARGET_TOKENS, "max_decoding_length": TARGET_TOKENS}
    return lambda: [ids[piece] for piece in translator.translate_batch(source, **options)[0].hypotheses[0]]


def _report(times: dict[tuple[str, int], list[float]]) -> None:
    best: dict[str, float] = {}
    print("\n| | threads | ms a token, median of turns | range of turns |\n|---|---|---|---|")
    for name, label in NAMES.items():
        threads = min((n for key, n in times if key == name), key=lambda n: statistics.median(times[name, n]))
        found = times[name, threads]
        best[name] = statistics.median(found)
        print(f"| {label} | {threads} | {best[name]:.2f} | {min(found):.2f}-{max(found):.2f} |")
    print(f"\nHugging Face with attentions / our full trace: {best['hf-attentions'] / best['trace']:.2f}")
    print(f"our decoding / CTranslate2: {best['decode'] / best['ctranslate2']:.2f}")
    print(f"our full trace / (decoding + forward pass): {best['trace'] / (best['decode'] + best['forward']):.2f}")


if __name__ == "__main__":
    main()
