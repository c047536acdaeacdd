"""Tracing and decoding against Hugging Face and CTranslate2: milliseconds a token of one, 8 and 32 sentences at once.

All programs have the same parameters (`benchmarks.same_model`), read the same sentences and write greedily; they are
first compared: all write the same tokens. `--only` takes the shipped checkpoint zh-en, with eight sentences, and
opus-mt and gpt2, which have random parameters, read 20 tokens and write 30. Times are those of whole sentences, encoder
included, divided by the tokens that they write. Each program has its own process, and the better of one thread and one
a core. Ours runs many as the app does (`run_together`), with the draft that GLASSFORMER_DRAFT names, or its own choice.

CTranslate2 is left out if it is not there, and for GPT-2. Needs: pip install transformers (tried with 5.23.0).
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import torch

from benchmarks import same_model
from benchmarks.harness import CHECKPOINTS, Comparison, Reply, Settings, timed, turns, worker
from transformer.checkpoint.load import Checkpoint, load
from transformer.runs.reading import read
from transformer.runs.running import run_together, write
from transformer.runs.trace import Trace

SIDES = ("trace", "hf-attentions", "decode", "hf", *(("ctranslate2",) if find_spec("ctranslate2") else ()))
PAIRS: tuple[tuple[str, str, str, str, dict[int, float]], ...] = (  # ours, the peer, its name, aims
    ("trace", "hf-attentions", "Hugging Face with attentions", "a full trace", {1: 2.2, 8: 2.0, 32: 2.0}),
    ("decode", "hf", "Hugging Face", "decoding alone", {}),
    ("decode", "ctranslate2", "CTranslate2", "decoding alone", {}),
)
SECONDS = 0.5  # least length of a turn
Ask = Callable[[object], Reply]
Ids = list[int]
Work = Callable[[], list[Ids]]  # writes all sentences


def measure(settings: Settings) -> Iterator[Comparison]:
    """The table."""
    for name in settings.chosen(same_model.NAMES, [same_model.TRAINED]):
        with settings.work() as folder, ExitStack() as open_ones:
            path = CHECKPOINTS / name if name == same_model.TRAINED else same_model.stored(name, folder)
            given = {"name": name, "path": str(path), "seconds": settings.n(1, 0) * SECONDS}
            sides = SIDES[:4] if name == "gpt2" else SIDES
            workers = {side: open_ones.enter_context(worker("decoding", side, given)) for side in sides}
            for batch in (1, 8) if settings.quick else (1, 8, 32):
                yield from _compared(name, workers, batch, settings)


def _compared(name: str, workers: dict[str, Ask], batch: int, settings: Settings) -> Iterator[Comparison]:
    """The rows of one number of sentences at once."""
    threads = sorted({1, settings.n(os.cpu_count() or 1, 1)})
    places = [(side, n) for side in workers for n in threads]
    written = {place: workers[place[0]](["write", batch, place[1]]).said for place in places}
    if different := [place for place in places if written[place] != written["hf-attentions", threads[0]]]:
        raise RuntimeError(f"{name}, {batch} at once: other tokens than Hugging Face's: {different}")
    n_tokens = sum(map(len, written[places[0]]))
    found = turns(
        {(side, n): lambda side=side, n=n: workers[side](["time", batch, n]).said for side, n in places},  # type: ignore[misc]
        settings.n_turns(5),
    )
    best = {side: min((found[side, n] for n in threads), key=median) for side in workers}
    for ours, peer, peer_name, what, aims in PAIRS:
        if peer in best:
            mine, theirs = ([1000 * seconds / n_tokens for seconds in best[side]] for side in (ours, peer))
            yield Comparison(
                what=f"{what} of {name}, {batch} at once, per token", ours=mine, peer=theirs, peer_name=peer_name,
                unit="ms", more=True, aim=f"{aims[batch]} times as fast" if batch in aims else "",
                headline=name == same_model.TRAINED and ours == "trace" and batch == 1,
            )  # fmt: skip


def side(name: str, given: dict[str, Any]) -> Callable[[list[Any]], Any]:
    """One program: its answers to ["write" or "time", sentences at once, threads]."""
    torch.inference_mode().__enter__()
    one, works = _Side(name, given["name"], load(Path(given["path"]))), dict[tuple[int, int], Work]()

    def answer(question: list[Any]) -> Any:
        what, batch, threads = question
        torch.set_num_threads(threads)
        if (batch, threads) not in works:
            works[batch, threads] = one.work(batch, threads)
            works[batch, threads]()  # a draft is made from the second run on
        work = works[batch, threads]
        return work() if what == "write" else timed(work, given["seconds"])

    return answer


class _Side:
    """One program's model."""

    def __init__(self, side: str, name: str, checkpoint: Checkpoint) -> None:
        self.side, self.name, self.checkpoint, self.config = side, name, checkpoint, checkpoint.config
        self.ends = name == same_model.TRAINED
        self.most = same_model.LONGEST if self.ends else same_model.TARGET_TOKENS
        self.peer: Any = None if side in ("trace", "decode") else same_model.peer_of(name)

    def work(self, batch: int, threads: int) -> Work:
        """What writes all sentences, so many at a time."""
        texts = same_model.texts(self.name, batch)
        queries = [self.checkpoint.query(text, max_new=self.most) for text in texts]
        batches = [queries[start : start + batch] for start in range(0, len(queries), batch)]
        if self.side == "trace":
            run = partial(run_together, self.checkpoint)
            return lambda: [list(one.tgt_ids) for some in batches for one in run(some) if isinstance(one, Trace)]
        if self.side == "decode":
            return lambda: [list(ids) for some in batches for ids in write(self.checkpoint, some)]
        sources = [[list(source.ids) for source in read(self.checkpoint, some).sources] for some in batches]
        one = self._ctranslate2(threads) if self.side == "ctranslate2" else self._hugging_face()
        return lambda: [ids for some in sources for ids in one(some)]

    def _cut(self, rows: Iterable[Ids]) -> list[Ids]:
        """Rows up to their end token."""
        end = self.config.eos_id
        return [row[: row.index(end) + 1] if self.ends and end in row else row for row in rows]

    def _hugging_face(self) -> Callable[[list[Ids]], list[Ids]]:
        attentions, fill, alone = self.side == "hf-attentions", self.config.fill_id, not self.config.n_encoder_layers
        if attentions:
            self.peer.set_attn_implementation("eager")  # the only one that returns attention weights
        options: dict[str, Any] = {"max_new_tokens": self.most, "num_beams": 1, "do_sample": False}
        options |= {"output_attentions": attentions, "return_dict_in_generate": True}

        def one(rows: list[Ids]) -> list[Ids]:
            width = max(map(len, rows))
            src = torch.tensor([row + [fill] * (width - len(row)) for row in rows])
            mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows])
            result = self.peer.generate(src, attention_mask=mask, **options)
            if attentions and not (result.attentions if alone else result.cross_attentions):
                raise RuntimeError("no attentions came back")
            return self._cut(result.sequences[:, width if alone else 1 :].tolist())

        return one

    def _ctranslate2(self, threads: int) -> Callable[[list[Ids]], list[Ids]]:
        engine = same_model.ctranslate2(self.peer, self.config, threads=threads)
        options = {"min_decoding_length": 1 if self.ends else self.most, "max_decoding_length": self.most}

        def one(rows: list[Ids]) -> list[Ids]:
            tokens = [list(map(str, row)) for row in rows]
            found = engine.translate_batch(tokens, beam_size=1, return_end_token=True, **options)
            return [list(map(int, result.hypotheses[0])) for result in found]

        return one
