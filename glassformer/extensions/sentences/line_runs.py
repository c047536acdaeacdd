"""Lines of a file run in batches on one model: chrF and (pseudo-)log-likelihood of each, summary of all, CSV.

Lines of similar length are decoded as a batch and recorded one by one (`transformer.runs.running`), so a
line's numbers equal those of `checkpoint.run` to the last bit. An encoder-only model writes nothing: with an MLM head
each text gets its pseudo-log-likelihood, with every piece hidden in turn.

Sources: Welleck et al., "Neural Text Generation with Unlikelihood Training" (2020), section 6.1, for the share of
repeated n-grams; Salazar et al., "Masked Language Model Scoring" (2020), section 2, for pseudo-log-likelihoods.

Missing values are empty (chrF without a reference, everything about a line that failed).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from transformer.analysis.chrf import Counts, chrf, chrf_counts, together
from transformer.analysis.hidden_pieces import MASK_PIECES, hide, mask_id
from transformer.errors import GlassformerError, QueryError
from transformer.i18n import Sentence, say
from transformer.model.anatomy import anatomy
from transformer.model.config import ModelConfig
from transformer.runs.apply_interventions import tap_for
from transformer.runs.distribution import entropy
from transformer.runs.inputs import read_source
from transformer.runs.query import Query, Runnable
from transformer.runs.reading import Pause, go_on
from transformer.runs.running import run_apart
from transformer.runs.sentence_files import SentenceLine
from transformer.runs.trace import Trace
from transformer.text.cells import cell
from transformer.text.tokenizer import normalise

ROWS = 32
"""Lines that are decoded together: beyond it the time of a line hardly falls, and the first results come later."""

HIDDEN_AT_ONCE = 32  # pieces of a text, before others get their turn
REPEATED_N = 2  # pieces in a row


@dataclass(frozen=True, kw_only=True)
class LineResult:
    """The result of running a line; None for what its model or the line does not have."""

    line: SentenceLine  # the line
    output: str = ""  # what was written; empty for an encoder-only model
    # Of the output under the model, in nats; of an encoder's text its pseudo-log-likelihood.
    log_prob: float | None = None
    n_counted: int = 0  # pieces that it sums over: those of the output with its end mark, or those that were hidden
    score: float | None = None  # what beam search ranked the output by
    entropy: float | None = None  # mean over the steps, in bits
    n_source: int = 0  # pieces of the source, without marks around it
    n_unknown: int = 0  # how many of them the model has never seen
    n_output: int | None = None  # pieces of the output, without its end mark
    repeated: float | None = None  # share of the output's pairs of neighbouring pieces that were there before, 0 to 1
    ended: bool | None = None  # whether the output ended with the end piece
    counts: Counts | None = None  # the counts behind chrF
    problem: Sentence | None = None  # why the line could not be run

    @property
    def mean_log_prob(self) -> float | None:
        """Mean log-probability per piece, in nats."""
        return None if self.log_prob is None or not self.n_counted else self.log_prob / self.n_counted

    @property
    def length_ratio(self) -> float | None:
        """Pieces written per piece read."""
        return None if self.n_output is None or not self.n_source else self.n_output / self.n_source

    @property
    def chrf(self) -> float | None:
        """chrF2 against the reference, 0 to 100."""
        return None if self.counts is None else chrf(self.counts)


def check_can_run(checkpoint: Runnable) -> None:
    """Refuse a model that neither writes nor predicts hidden pieces: a QueryError."""
    if not anatomy(checkpoint.config).writes:
        _mask(checkpoint)


def batches(checkpoint: Runnable, lines: Sequence[SentenceLine], *, rows: int = ROWS) -> list[tuple[SentenceLine, ...]]:
    """Batches of lines of similar length, at most `rows` each, the batch with the first line first."""
    steps, encode = checkpoint.config.normalisation, checkpoint.src_tokenizer.encode
    ordered = sorted(lines, key=lambda line: (len(encode(normalise(line.source, steps)).ids), line.number))
    cut = [tuple(ordered[start : start + rows]) for start in range(0, len(ordered), rows)]
    return sorted(cut, key=lambda batch: min(line.number for line in batch))


def run_lines(
    checkpoint: Runnable, lines: Sequence[SentenceLine], how: Query, *, rows: int = ROWS
) -> Iterator[LineResult]:
    """Run lines in batches of similar length, with everything of a query but its source.

    Results come batch by batch, not in the order of the file. A line that fails has an error and does not affect the
    rest. Errors are those of `check_can_run`.
    """
    check_can_run(checkpoint)
    for batch in batches(checkpoint, lines, rows=rows):
        yield from run_batch_of_lines(checkpoint, batch, how)


def run_batch_of_lines(
    checkpoint: Runnable, batch: Sequence[SentenceLine], how: Query, *, pause: Pause = go_on
) -> Iterator[LineResult]:
    """Run lines together, as `run_lines` does with each of its batches; in their order.

    `pause` is called between two rounds of decoding and between two lines. An `Exception` that it raises counts as that
    line's error; any other exception ends the run.
    """
    runnable = [line for line in batch if line.problem is None]
    if anatomy(checkpoint.config).writes:
        queries = [replace(how, source=line.source) for line in runnable]
        traces = run_apart(checkpoint, queries, most_map_bytes=0, pause=pause)
        found = (_result(checkpoint.config, *one) for one in zip(runnable, traces, strict=True))
    else:
        mask = _mask(checkpoint)
        found = (_hidden(checkpoint, line, how, mask, pause) for line in runnable)
    for line in batch:
        yield LineResult(line=line, problem=line.problem) if line.problem is not None else next(found)
        pause()


def repeated_share(ids: Sequence[int]) -> float:
    """Share of n-grams that repeat an earlier one, 0 to 1: 1 - different ones / all; 0 if there are none."""
    grams = [tuple(ids[i : i + REPEATED_N]) for i in range(len(ids) - REPEATED_N + 1)]
    return 1 - len(set(grams)) / len(grams) if grams else 0.0


def _mask(checkpoint: Runnable) -> int:
    """The mask piece of an encoder-only model; errors as `check_can_run`."""
    if not anatomy(checkpoint.config).fills:
        raise QueryError(
            "{model} is an encoder-only model without an MLM head. It can neither generate text nor give a text a "
            "probability, so there is nothing to list. Choose another checkpoint.",
            model=checkpoint.name,
        )
    found = mask_id(checkpoint.src_tokenizer)
    if found is None:
        raise QueryError(
            "The tokenizer of {model} has none of the mask tokens {names}, so no token can be hidden and no text "
            "can be scored. Choose another checkpoint.",
            model=checkpoint.name,
            names=", ".join(MASK_PIECES),
        )
    return found


def _failed(line: SentenceLine, error: Exception) -> LineResult:
    if isinstance(error, GlassformerError):
        return LineResult(line=line, problem=error.sentence)
    return LineResult(line=line, problem=say("The result could not be computed ({kind}).", kind=type(error).__name__))


def _result(config: ModelConfig, line: SentenceLine, trace: Trace | Exception) -> LineResult:
    if isinstance(trace, Exception):
        return _failed(line, trace)
    ended = trace.stop_reason == "end of sentence"
    written = trace.tgt_ids[: trace.n_steps - ended]
    return LineResult(
        line=line,
        output=trace.output_text,
        log_prob=trace.log_prob,
        n_counted=trace.n_steps,
        score=trace.hypotheses[trace.query.hypothesis].score if trace.hypotheses else None,
        entropy=float(np.mean(trace.entropies())) if trace.n_steps else None,
        n_source=_without_marks(config, len(trace.src_ids)),
        n_unknown=trace.src_ids.count(config.unk_id),
        n_output=len(written),
        repeated=repeated_share(written),
        ended=ended,
        counts=None if line.reference is None else chrf_counts(trace.output_text, line.reference),
    )


def _without_marks(config: ModelConfig, n: int) -> int:
    return n - len(config.source_start) - len(config.source_end)


def _hidden(checkpoint: Runnable, line: SentenceLine, how: Query, mask: int, pause: Pause) -> LineResult:
    """A text scored by an encoder-only model with an MLM head."""
    config = checkpoint.config
    try:
        source = read_source(checkpoint, replace(how, source=line.source))
        first = len(config.source_start)
        places = range(first, first + _without_marks(config, len(source.ids)))
        tap, losses, entropies = tap_for(how.interventions, checkpoint), [], []
        for start in range(0, len(places), HIDDEN_AT_ONCE):
            here = places[start : start + HIDDEN_AT_ONCE]
            some = hide(checkpoint.model, source.ids, here, mask, tap=tap, whole=True)
            losses += some.losses.tolist()
            entropies += [entropy(row) for row in some.log_probs]
            pause()
    except Exception as error:  # this line's own: it does not cost the others
        return _failed(line, error)
    return LineResult(
        line=line,
        log_prob=-sum(losses),
        n_counted=len(losses),
        entropy=float(np.mean(entropies)),
        n_source=len(places),
        n_unknown=source.ids.count(config.unk_id),
    )


@dataclass(frozen=True)
class Summary:
    """A summary of all lines; None for what no line has."""

    n: int  # lines
    n_failed: int  # of them, those that could not be run
    chrf: float | None  # of all outputs that have a reference, their counts added up, 0 to 100
    log_prob: float | None  # mean of a piece, over all pieces, in nats
    entropy: float | None  # mean of the lines' means, in bits
    ended: float | None  # share of the outputs that ended by themselves
    unknown: float | None  # share of the sources' pieces that the model has never seen
    n_unknown_lines: int  # lines with such a piece
    length_ratio: float | None  # pieces written for each piece read, over all lines
    repeated: float | None  # mean of the outputs' shares of repeated pairs of pieces


def summary(results: Sequence[LineResult]) -> Summary:
    """The summary of some results."""
    ran = [one for one in results if one.problem is None]
    counts = [one.counts for one in ran if one.counts is not None]
    wrote = [one for one in ran if one.n_output is not None]
    scored = [one for one in ran if one.log_prob is not None]
    return Summary(
        n=len(results),
        n_failed=len(results) - len(ran),
        chrf=chrf(together(counts)) if counts else None,
        log_prob=_ratio(sum(one.log_prob or 0.0 for one in scored), sum(one.n_counted for one in scored)),
        entropy=_mean([one.entropy for one in ran]),
        ended=_mean([one.ended for one in ran]),
        unknown=_ratio(sum(one.n_unknown for one in ran), sum(one.n_source for one in ran)),
        n_unknown_lines=sum(one.n_unknown > 0 for one in ran),
        length_ratio=_ratio(sum(one.n_output or 0 for one in wrote), sum(one.n_source for one in wrote)),
        repeated=_mean([one.repeated for one in ran]),
    )


def columns(results: Sequence[LineResult], *, ordered: bool = True) -> dict[str, list[Any]]:
    """The table's columns by name, in the order of the file or of the results; empty ones are left out."""
    rows = [_row(one) for one in (sorted(results, key=lambda one: one.line.number) if ordered else results)]
    found = {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}
    return {name: values for name, values in found.items() if any(value not in (None, "") for value in values)}


def as_csv(results: Sequence[LineResult]) -> str:
    """The table as CSV (RFC 4180); a cell that a spreadsheet would take for a formula begins with an apostrophe."""
    table = pd.DataFrame(columns(results), dtype=object)  # numbers stay as they are
    safe = table.map(lambda value: cell(value) if isinstance(value, str) else value)
    return safe.to_csv(index=False, lineterminator="\r\n")


def _row(one: LineResult) -> dict[str, Any]:
    return {
        "line": one.line.number,
        "source": one.line.source,
        "reference": one.line.reference,
        "output": one.output,
        "chrf": one.chrf,
        "score": one.score,
        "log_prob": one.log_prob,
        "pieces": one.n_counted or None,
        "log_prob_per_piece": one.mean_log_prob,
        "entropy_bits": one.entropy,
        "length_ratio": one.length_ratio,
        "repeated": one.repeated,
        "source_pieces": one.n_source or None,
        "unknown": one.n_unknown if one.problem is None else None,
        "ended": one.ended,
        "problem": one.problem,
    }


def _ratio(total: float, count: float) -> float | None:
    return total / count if count else None


def _mean(values: Sequence[float | None]) -> float | None:
    there = [float(value) for value in values if value is not None]
    return _ratio(sum(there), len(there))
