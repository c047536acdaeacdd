"""A corpus run against Hugging Face: sentences whose heads are measured a second, on one thread.

One small random model with equal parameters in both programs (`benchmarks.same_model`) reads made-up sentences of 3 to
30 pieces, with the reference of each forced. Ours is `extensions.corpus.library.measuring.measure` on shards of them;
Hugging Face's attentions come with `output_attentions=True`, one sentence at a time or in batches of 32 in their order,
and the measures of `head_statistics` are taken from them: ours are those and more. First losses and entropies of all
are compared.

Needs: pip install transformers (tried with 5.23.0).
"""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks import same_model
from benchmarks.harness import Comparison, Settings, timed, turns, worker
from glassformer.extensions.corpus.library.measuring import measure as measure_lines
from glassformer.extensions.corpus.library.tables import CorpusLine, CorpusOptions
from transformer.analysis.head_statistics import measure_maps
from transformer.checkpoint.free_memory import keep_freed_memory
from transformer.checkpoint.load import Checkpoint, load
from transformer.model.anatomy import Kind

SEED, MODEL, COMPARED = 0, "small", 20
KINDS: tuple[Kind, ...] = ("encoder", "decoder", "cross")
PEERS = {"1": "Hugging Face, one at a time", "32": "Hugging Face in batches of 32"}
Found = list[tuple[float, float]]  # loss and mean entropy of all heads, of each sentence
Work = Callable[[Sequence[CorpusLine]], Found]


def measure(settings: Settings) -> Iterator[Comparison]:
    """The table."""
    counts = {"ours": settings.n(2000, 64), "1": settings.n(200, 32), "32": settings.n(400, 32)}
    with settings.work() as folder, ExitStack() as open_ones:
        path = str(same_model.stored(MODEL, folder))
        workers = {name: open_ones.enter_context(worker("corpus", name, path)) for name in counts}
        seen = {name: np.array(ask(COMPARED).said) for name, ask in workers.items()}
        for name in PEERS:
            np.testing.assert_allclose(seen[name], seen["ours"], rtol=0, atol=2e-4, err_msg=name)
        sides = {name: lambda name=name: counts[name] / workers[name]([counts[name]]).said for name in counts}
        found = turns(sides, settings.n_turns(3))
    for name, peer in PEERS.items():
        yield Comparison(
            what="sentences a second whose heads are measured", ours=found["ours"], peer=found[name], peer_name=peer,
            unit="sentences/s", rate=True, more=True,
        )  # fmt: skip


def side(name: str, path: str) -> Callable[[Any], Any]:
    """One program: what it finds in so many sentences, or how many seconds [so many] take it."""
    torch.set_num_threads(1)
    keep_freed_memory()  # as the processes of a corpus run do; for the others it is not slower either
    checkpoint = load(Path(path))
    work = _ours(checkpoint) if name == "ours" else _hugging_face(checkpoint, int(name))

    def answer(question: Any) -> Any:
        if isinstance(question, int):
            return work(_lines(question))
        lines = _lines(question[0])
        return timed(lambda: work(lines))

    return answer


def _lines(count: int) -> list[CorpusLine]:
    """Sentences of ids, about 10 on each side, both alike in length; the first ones are the same for any count."""
    draw = random.Random(SEED)
    lines = []
    for number in range(1, count + 1):
        n = min(max(3, round(draw.lognormvariate(2.2, 0.45))), 30)
        sides = [[draw.randrange(100, 8000) for _ in range(max(3, n + draw.randint(-2, 2)))] for _ in range(2)]
        lines.append(CorpusLine(number, *(" ".join(map(str, ids)) for ids in sides)))
    return lines


def _ours(checkpoint: Checkpoint) -> Work:
    def work(lines: Sequence[CorpusLine]) -> Found:
        found: Found = []
        for start in range(0, len(lines), CorpusOptions.shard):
            shard = lines[start : start + CorpusOptions.shard]
            measured = measure_lines(checkpoint, shard, CorpusOptions(vectors=0))
            by_line = measured.heads.group_by("line").aggregate([("entropy", "mean")])
            means = dict(zip(*(column.to_pylist() for column in by_line.columns), strict=True))
            rows = zip(shard, measured.sentences["loss"].to_pylist(), strict=True)
            found += [(loss, means[line.number]) for line, loss in rows]
        return found

    return work


def _hugging_face(checkpoint: Checkpoint, at_once: int) -> Work:
    """Batches in the order of the sentences; tokenising is part of the work here too."""
    peer, tokenizer, config = same_model.peer_of(MODEL), checkpoint.src_tokenizer, checkpoint.config
    peer.set_attn_implementation("eager")  # the only one that returns attention weights

    def batch(lines: Sequence[CorpusLine]) -> Found:
        src = [[*tokenizer.encode(line.source).ids, *config.source_end] for line in lines]
        tgt = [[*tokenizer.encode(line.target or "").ids, config.eos_id] for line in lines]
        ids, labels, read = _padded(src, 0), _padded(tgt, -100), _padded([[0, *row[:-1]] for row in tgt], 0)
        mask = (torch.arange(ids.size(1)) < torch.tensor([len(row) for row in src])[:, None]).long()
        with torch.inference_mode():
            seen = peer(input_ids=ids, attention_mask=mask, decoder_input_ids=read, output_attentions=True)
            logits = seen.logits.transpose(1, 2)  # [B, V, T]
            losses = torch.nn.functional.cross_entropy(logits, labels, reduction="none").sum(dim=1)
        layers = seen.encoder_attentions, seen.decoder_attentions, seen.cross_attentions
        maps = dict(zip(KINDS, (torch.stack(some, dim=1).numpy() for some in layers), strict=True))
        entropies = [_entropy(maps, row, len(src[row]), len(tgt[row])) for row in range(len(lines))]
        return [(float(loss) / len(row), mean) for loss, row, mean in zip(losses, tgt, entropies, strict=True)]

    def work(lines: Sequence[CorpusLine]) -> Found:
        return [one for start in range(0, len(lines), at_once) for one in batch(lines[start : start + at_once])]

    return work


def _padded(rows: list[list[int]], fill: int) -> torch.Tensor:
    width = max(map(len, rows))
    return torch.tensor([[*row, *([fill] * (width - len(row)))] for row in rows])


def _entropy(maps: dict[Kind, np.ndarray], row: int, n_source: int, n_target: int) -> float:
    """All measures of a sentence; the mean entropy."""
    means = []
    for kind, of_kind in maps.items():
        n_queries, n_keys = n_source if kind == "encoder" else n_target, n_target if kind == "decoder" else n_source
        allowed = np.ones((n_queries, n_keys), bool)
        allowed = np.tril(allowed) if kind == "decoder" else allowed
        end = None if kind == "decoder" else n_keys - 1
        found = measure_maps(of_kind[row][:, :, :n_queries, :n_keys], allowed, kind, end=end)
        means.append({name: one.means() for name, one in found.items()})
    return float(np.mean([of_kind["entropy"] for of_kind in means]))
