"""Training loss with label smoothing; decoding of many sources; scores of outputs: BLEU, chrF, hidden tokens.

An encoder-only model writes nothing: each piece of each held-out text is hidden alone, as in the app, and the score is
the share that it guesses right.

Source: Papineni et al. (2002) for BLEU, Popović (2015) for chrF; Post, "A Call for Clarity in Reporting BLEU Scores"
(2018), for the signatures, which make scores comparable.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import sacrebleu
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from glassformer.extensions.training.library.data import Batch, Example, make_batch
from transformer.model.cache import KVCache
from transformer.model.taps import NO_TAP, Tap
from transformer.model.transformer import Transformer
from transformer.runs import recording_pass
from transformer.runs.beam import beam_search
from transformer.runs.decoding import Prefix, collect, greedy
from transformer.runs.inputs import room_of
from transformer.runs.query import Beam, Greedy
from transformer.text.tokenizer import AnyTokenizer

ROWS = 512  # of logits at a time: enough for fast products, few enough for the processor's outer cache
ROWS_ON_GPU = 8192  # which is quick with many at once


def target_loss(model: Transformer, batch: Batch, *, smoothing: float, tap: Tap = NO_TAP) -> Tensor:
    """Mean loss per target token, in nats; the tap sees the stack that predicts.

    Padding is removed before the projection to the vocabulary, the most expensive step. A GPU keeps it with weight 0,
    because counting the rows would make it wait.
    """
    hidden, targets, real = predicting(model, batch, tap=tap)
    counted = real.flatten() if hidden.is_cuda else None
    if counted is None:
        hidden, targets = hidden[real], targets[real]
    hidden, targets = hidden.flatten(end_dim=-2), targets.flatten()
    hidden = hidden if model.mlm_head is None else model.mlm_head(hidden)
    weight, bias = model.output_weight, model.output_bias
    return smoothed_loss(hidden, weight, bias, targets, smoothing=smoothing, counted=counted)


def predicting(model: Transformer, batch: Batch, *, tap: Tap = NO_TAP) -> tuple[Tensor, Tensor, Tensor]:
    """The last vectors [B, T, D], the pieces to be predicted [B, T], and where there is one, bool [B, T]."""
    parts = model.anatomy
    if parts.reads and parts.writes:
        hidden = model.decode(batch.tgt_in, model.encode(batch.src), model.source_mask(batch.src), tap=tap)
    else:
        hidden = model.decode(batch.tgt_in, tap=tap) if parts.writes else model.encode(batch.src, tap=tap)
    return hidden, batch.tgt_out, batch.tgt_out.ne(model.config.fill_id)


def smoothed_loss(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    *,
    smoothing: float,
    counted: Tensor | None = None,
) -> Tensor:
    """Mean cross-entropy of softmax(hidden weight^T + bias) against smoothed targets, in nats per token.

    `hidden` is [N, D], `weight` [V, D], `bias` [V], `targets` are ids [N]. The target distribution has 1 - smoothing on
    the target and smoothing / V on every piece, including the target. Rows that are not `counted`, bool [N], are left
    out of the mean. Under autocast the products are in its dtype; softmax and loss are float32 (float64 for float64
    inputs). The scalar can be differentiated once, with respect to hidden, weight and bias.
    """
    loss: Tensor = _SmoothedLoss.apply(hidden, weight, bias, targets, smoothing, counted)
    return loss


class _SmoothedLoss(torch.autograd.Function):
    """Computes the gradients with the loss, `ROWS` rows at a time, and keeps them for the backward pass."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        smoothing: float,
        counted: Tensor | None,
    ) -> Tensor:
        learning = any(ctx.needs_input_grad)
        precise = torch.promote_types(hidden.dtype, torch.float32)
        device = hidden.device.type
        dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else hidden.dtype
        weight_cast = weight.to(dtype)
        total = hidden.new_zeros((), dtype=precise)
        grads: list[Tensor] = []
        d_weight = torch.zeros_like(weight) if learning else None
        d_bias = torch.zeros_like(bias) if learning and bias is not None else None
        n_rows = ROWS_ON_GPU if hidden.is_cuda else ROWS
        for start in range(0, len(hidden), n_rows):
            part = slice(start, start + n_rows)
            rows, wanted = hidden[part].to(dtype), targets[part, None]  # [n, D], [n, 1]
            logits = F.linear(rows, weight_cast, None if bias is None else bias.to(dtype)).to(precise)  # [n, V]
            probs = logits.softmax(dim=-1)
            # log p = logit - c with one c a row. The likeliest piece gives it, so no logarithm of all is needed.
            aimed = (1 - smoothing) * logits.gather(1, wanted)[:, 0] + smoothing * logits.mean(dim=-1)  # [n]
            gained = aimed - logits.amax(dim=-1) + probs.amax(dim=-1).log()
            total -= (gained if counted is None else gained * counted[part]).sum()
            if d_weight is None:
                continue
            # d loss / d logits = softmax - wanted distribution; the mean's 1 / N waits for the backward pass.
            d_logits = probs.sub_(smoothing / logits.size(-1))
            d_logits.scatter_add_(1, wanted, d_logits.new_full((), smoothing - 1).expand(wanted.shape))
            if counted is not None:
                d_logits *= counted[part, None]
            d_cast = d_logits.to(dtype)
            grads.append((d_cast @ weight_cast).to(hidden.dtype))  # [n, D]
            d_weight += d_cast.t() @ rows  # [V, D]
            if d_bias is not None:
                d_bias += d_logits.sum(dim=0)
        ctx.save_for_backward(torch.cat(grads) if grads else None, d_weight, d_bias)
        ctx.n_tokens = len(hidden) if counted is None else counted.sum()
        return total / ctx.n_tokens

    @staticmethod
    def backward(ctx: Any, *d_loss: Tensor) -> tuple[Tensor | None, ...]:
        (scale,) = d_loss
        scale = scale / ctx.n_tokens
        scaled = [None if grad is None else grad * scale for grad in ctx.saved_tensors]
        return (*scaled, None, None, None)


EACH_ALONE = "each piece hidden alone"  # what a card calls the measure of a model that fills gaps
BATCH_ROWS = 128  # that the model sees at once, the beams of a sentence counted
BATCH_ROWS_ON_GPU = 1280  # which takes as long for a few

Ids = Sequence[int]
Done = Callable[[int], object]  # called with the number of new sentences


@dataclass(frozen=True)
class Scores:
    """BLEU and chrF, 0 to 100; exact is the share of outputs that equal their reference, or of hidden pieces guessed.

    For a model that writes nothing, BLEU and chrF are 0 and have no signatures.
    """

    bleu: float
    chrf: float
    exact: float
    signature: str = ""
    chrf_signature: str = ""


@dataclass(frozen=True)
class SentenceScores:
    """chrF and BLEU of one output, 0 to 100; BLEU counts only as many words in a row as the output has."""

    chrf: float
    bleu: float


@torch.inference_mode()
def guesses(model: Transformer, examples: Sequence[Example], *, tap: Tap = NO_TAP) -> tuple[float, float]:
    """Mean loss of a hidden piece in nats, and the share that the model guesses right, in evaluation mode."""
    total, right, n_tokens = 0.0, 0, 0
    for group in _groups(examples):
        batch = make_batch(group, model.config).to(model.src_table.device)
        hidden, targets, real = predicting(model, batch, tap=tap)
        logits, targets = model.project(hidden[real]), targets[real]
        total += float(F.cross_entropy(logits.float(), targets, reduction="sum"))
        right += int((logits.argmax(dim=-1) == targets).sum())
        n_tokens += len(targets)
    return total / n_tokens, right / n_tokens


@torch.inference_mode()
def held_out_loss(model: Transformer, examples: Sequence[Example], *, tap: Tap = NO_TAP) -> float:
    """Mean loss a target token in nats, without smoothing, in evaluation mode."""
    device = model.src_table.device
    total, n_tokens = 0.0, 0
    for group in _groups(examples):
        batch = make_batch(group, model.config).to(device)
        total += float(target_loss(model, batch, smoothing=0.0, tap=tap)) * batch.n_tokens
        n_tokens += batch.n_tokens
    return total / n_tokens


def translate(model: Transformer, tokenizer: AnyTokenizer, examples: Sequence[Example]) -> list[str]:
    """Greedy output for each example's source, in the order given; for a model that still learns."""
    longest = max((len(example.tgt) for example in examples), default=0)

    def limit(n_source: int) -> int:
        # It stops a model that cannot stop yet: no sane translation is longer than twice the source plus some. A
        # prompt's length says nothing about its continuation.
        most = 2 * n_source if model.anatomy.reads else longest
        return min(most + 10, room_of(model.config, 1 if model.anatomy.reads else n_source))

    found = decode(model, [example.src for example in examples], Greedy(), limit=limit)
    return [tokenizer.decode(ids) for ids in found]


@torch.inference_mode()
def decode(
    model: Transformer,
    sources: Sequence[Ids],
    decoding: Greedy | Beam,
    *,
    limit: Callable[[int], int],
    done: Done = lambda n: None,
) -> list[Ids]:
    """Decode many sources, those of similar length as one batch; beam search returns its best result.

    Prompts of a decoder-only model share a batch if they are equally long. The model is in evaluation mode; no source
    is empty or longer than `max_len`. `limit` maps the source tokens of a batch to the most pieces to write, including
    the end piece; `done` is called after each batch with its number of sources. Returns the written ids, in the order
    of the sources. A `QueryError` names the first site with a value that is not finite.
    """
    size = decoding.size if isinstance(decoding, Beam) else 1
    most = BATCH_ROWS_ON_GPU if model.src_table.is_cuda else BATCH_ROWS
    outputs: dict[int, Ids] = {}
    # The longest first: the time left is then over- rather than underestimated, and memory runs out at once if ever.
    order = sorted(range(len(sources)), key=lambda i: len(sources[i]), reverse=True)
    alike = [order] if model.anatomy.reads else [list(rows) for _, rows in groupby(order, lambda i: len(sources[i]))]
    for rows in (part for group in alike for part in _cut(group, most // size)):
        batch = [torch.tensor(sources[i]) for i in rows]
        src = pad_sequence(batch, batch_first=True, padding_value=model.config.fill_id)  # [B, S]
        prefix = Prefix(model, src.to(model.src_table.device), cache=KVCache(model.config.n_decoder_layers))
        _check_first_step(prefix)
        outputs |= dict(zip(rows, _decode_batch(prefix, decoding, limit(src.size(1))), strict=True))
        done(len(rows))
    return [outputs[i] for i in range(len(sources))]


def _check_first_step(prefix: Prefix) -> None:
    """Record one sentence's first step, because the fast attention kernel hides values that are not finite.

    A damaged parameter shows in every sentence and step, so one check covers the batch.
    """
    memory = None if prefix.memory is None else prefix.memory[:1]
    src_mask = None if prefix.src_mask is None else prefix.src_mask[:1]
    recording_pass.read_target(prefix.model, prefix.ids[:1], memory, src_mask, ("*_attn.weights", "logits"), tap=NO_TAP)


def _decode_batch(prefix: Prefix, decoding: Greedy | Beam, max_new: int) -> Sequence[Ids]:
    if isinstance(decoding, Greedy):
        return collect(greedy(prefix, max_new=max_new))
    rounds = beam_search(prefix, size=decoding.size, alpha=decoding.length_penalty, max_new=max_new)
    return [best[0].ids for best in deque(rounds, maxlen=1).pop()]


def score(outputs: Sequence[str], references: Sequence[str], *, words: str = "13a") -> Scores:
    """Compare outputs with one reference each.

    `words` is sacrebleu's word splitter for BLEU: "13a" for languages with spaces, "zh" for Chinese, "char".
    """
    bleu, chrf = sacrebleu.BLEU(tokenize=words), sacrebleu.CHRF()
    result = bleu.corpus_score(list(outputs), [list(references)])
    by_characters = chrf.corpus_score(list(outputs), [list(references)])
    exact = sum(o == r for o, r in zip(outputs, references, strict=True)) / len(references)
    signatures = str(bleu.get_signature()), str(chrf.get_signature())
    return Scores(result.score, by_characters.score, exact, *signatures)


def score_sentences(outputs: Sequence[str], references: Sequence[str], *, words: str = "13a") -> list[SentenceScores]:
    """The same sentence by sentence."""
    bleu, chrf = sacrebleu.BLEU(tokenize=words, effective_order=True), sacrebleu.CHRF()
    return [
        SentenceScores(chrf.sentence_score(output, [reference]).score, bleu.sentence_score(output, [reference]).score)
        for output, reference in zip(outputs, references, strict=True)
    ]


def _groups(examples: Sequence[Example]) -> list[list[Example]]:
    ordered = sorted(examples, key=lambda e: (e.width, len(e.src)))
    return [ordered[i : i + BATCH_ROWS] for i in range(0, len(ordered), BATCH_ROWS)]


def _cut(order: Sequence[int], size: int) -> Iterable[Sequence[int]]:
    return (order[start : start + size] for start in range(0, len(order), size))
