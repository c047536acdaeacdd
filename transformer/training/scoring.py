"""Scores on held-out pairs: loss, BLEU (Papineni et al., 2002) and chrF (Popović, 2015), both by sacrebleu."""

from collections.abc import Sequence
from dataclasses import dataclass

import sacrebleu
import torch

from transformer.cache import KVCache
from transformer.decoding import Prefix, collect, greedy
from transformer.model import Transformer
from transformer.tokenizer import Tokenizer
from transformer.training.data import Example, make_batch
from transformer.training.loss import target_loss

BATCH_ROWS = 128


@dataclass(frozen=True)
class Scores:
    """BLEU and chrF, 0 to 100; exact is the share of outputs that equal their reference."""

    bleu: float
    chrf: float
    exact: float
    signature: str


@torch.inference_mode()
def held_out_loss(model: Transformer, examples: Sequence[Example]) -> float:
    """Mean loss a target token in nats, without smoothing, in evaluation mode."""
    device = model.src_table.device
    total, n_tokens = 0.0, 0
    for group in _groups(examples):
        batch = make_batch(group, model.config).to(device)
        n = sum(len(e.tgt) for e in group)
        total += float(target_loss(model, batch, smoothing=0.0)) * n
        n_tokens += n
    return total / n_tokens


@torch.inference_mode()
def translate(model: Transformer, tokenizer: Tokenizer, examples: Sequence[Example]) -> list[str]:
    """Greedy output for each example's source, in the order given."""
    device = model.src_table.device
    outputs: dict[int, str] = {}
    order = sorted(range(len(examples)), key=lambda i: len(examples[i].src))
    for start in range(0, len(order), BATCH_ROWS):
        rows = order[start : start + BATCH_ROWS]
        src = make_batch([examples[i] for i in rows], model.config).src.to(device)
        prefix = Prefix(model, src, cache=KVCache(model.config.n_decoder_layers))
        # Twice the source and some is more than any sane translation; it stops a model that cannot stop yet.
        max_new = min(2 * src.size(1) + 10, model.config.max_len)
        for i, ids in zip(rows, collect(greedy(prefix, max_new=max_new)), strict=True):
            outputs[i] = tokenizer.decode(ids)
    return [outputs[i] for i in range(len(examples))]


def score(outputs: Sequence[str], references: Sequence[str]) -> Scores:
    """Compare outputs with one reference each."""
    bleu = sacrebleu.BLEU()
    result = bleu.corpus_score(list(outputs), [list(references)])
    chrf = sacrebleu.CHRF().corpus_score(list(outputs), [list(references)])
    exact = sum(o == r for o, r in zip(outputs, references, strict=True)) / len(references)
    return Scores(result.score, chrf.score, exact, str(bleu.get_signature()))


def _groups(examples: Sequence[Example]) -> list[list[Example]]:
    ordered = sorted(examples, key=lambda e: (len(e.tgt), len(e.src)))
    return [ordered[i : i + BATCH_ROWS] for i in range(0, len(ordered), BATCH_ROWS)]
