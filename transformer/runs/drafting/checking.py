"""Check a draft with the model: one pass over it says what the model would have written.

Row t of a pass over a whole output is what the step with t + 1 tokens sees (`transformer.runs.recording`), so one
pass gives the model's choice after every beginning of the draft. Up to the first piece where the model would have
chosen another, decoding step by step writes the same; that piece is replaced, what follows is drafted again, and so
on. What comes out is what decoding step by step writes, whatever the draft was.

A pass over many tokens sums in another order than a step, so where two pieces are nearly equal, only steps can tell
(`transformer.runs.certain`): then the output is decoded step by step.

Source: Stern et al., "Blockwise Parallel Decoding" (2018), section 4; Leviathan et al., "Fast Inference from
Transformers via Speculative Decoding" (2023), for a smaller model's drafts.

Shapes: B rows, T tokens, V target vocabulary.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from torch import Tensor

from transformer.errors import QueryError
from transformer.runs import recording
from transformer.runs.certain import choices
from transformer.runs.drafting.draft import Draft, Ids, Pause, drafters
from transformer.runs.query import Query
from transformer.runs.reading import Reading, padded
from transformer.runs.record import Output
from transformer.runs.rules import Rules
from transformer.runs.source import rules_for
from transformer.runs.trace import Trace

ROUNDS = 6  # drafts of one output; then it is decoded step by step


@dataclass(frozen=True)
class Verdict:
    """What a check says of a draft."""

    kept: Ids  # what decoding step by step surely writes: the draft up to its first wrong piece, and the right one
    whole: bool  # whether this is all of the output
    sure: bool = True  # False: after `kept` two pieces are nearly equal, and only decoding step by step can tell


NOTHING = Verdict((), whole=False)


def verify_and_trace(reading: Reading, draft: Draft | None, pause: Pause) -> tuple[Trace, ...]:
    """The traces of a reading, as decoding step by step gives them; with a draft, sooner.

    Args:
        reading: Queries whose sources have been read.
        draft: What drafts them; None: nothing does.
        pause: Called between two rounds of decoding.

    Raises:
        QueryError: As in `run`.
    """
    rows = range(len(reading.queries))
    with suppress(QueryError):  # step by step, the error may name another site
        proposed = None if draft is None else guess(reading, draft, rows, [()] * len(rows), pause)
        if draft is not None and proposed is not None:
            traces = reading.finish([Output(ids) for ids in proposed])
            verdicts = [verdict_of(trace) for trace in traces]
            judged(reading, proposed, verdicts)
            if all(one.whole and one.kept == ids for one, ids in zip(verdicts, proposed, strict=True)):
                return traces
            del traces  # their maps would stay in memory beside those of the next pass
            found = settled(reading, draft, pause, verdicts)
            if found is not None:
                return reading.finish([Output(ids) for ids in found])
    return reading.finish(reading.decode(pause))


def settled(
    reading: Reading, draft: Draft, pause: Pause, verdicts: Sequence[Verdict] | None = None
) -> list[Ids] | None:
    """What decoding step by step writes in each row, given verdicts on earlier drafts; None: drafts cannot tell."""
    now = list(verdicts or [NOTHING] * len(reading.queries))
    left = [row for row, verdict in enumerate(now) if not verdict.whole]
    with suppress(QueryError):
        for _ in range(ROUNDS):
            if not left:
                break
            if not all(now[row].sure for row in left):
                return None
            ids = guess(reading, draft, left, [now[row].kept for row in left], pause)
            if ids is None:
                return None
            found = check(reading, left, ids)
            if verdicts is None:
                judged(reading, ids, found)
                verdicts = found
            for row, verdict in zip(left, found, strict=True):
                now[row] = verdict
            left = [row for row in left if not now[row].whole]
    return None if left else [verdict.kept for verdict in now]


def guess(
    reading: Reading, draft: Draft, rows: Sequence[int], begun: Sequence[Ids], pause: Pause
) -> list[Ids] | None:
    """What a draft writes; None if it fails, for whatever reason: a run then goes on without."""
    try:
        return draft.write(reading, rows, begun, pause)
    except QueryError:  # as the model's own steps may find out
        return None
    except Exception as error:
        for drafter in drafters():
            drafter.failed(reading.checkpoint.model, draft, error)
        return None


def judged(reading: Reading, ids: Sequence[Ids], verdicts: Sequence[Verdict]) -> None:
    """Remember how good the first drafts of some outputs were."""
    right = sum(
        len(own) if one.kept == own else max(len(one.kept) - 1, 0) for own, one in zip(ids, verdicts, strict=True)
    )
    for drafter in drafters():
        drafter.judge(reading.checkpoint.model, written=sum(map(len, ids)), right=right)


def check(reading: Reading, rows: Sequence[int], ids: Sequence[Ids]) -> list[Verdict]:
    """One pass over the drafts of some rows, without a record. A QueryError if a number is not finite."""
    model, config = reading.checkpoint.model, reading.checkpoint.config
    prompts = [reading.sources[row].prompt_ids for row in rows]
    read_ids = padded([(*prompt, *own[:-1]) for prompt, own in zip(prompts, ids, strict=True)], config.fill_id)
    memory = None if reading.memory is None else reading.memory[list(rows)]
    mask = model.source_mask(reading.src_ids[list(rows)])
    logits = recording.read_target(model, read_ids, memory, mask, ["logits"], tap=reading.tap)["logits"]
    found = []
    for place, (row, own) in enumerate(zip(rows, ids, strict=True)):
        query, source = reading.queries[row], reading.sources[row]
        first = len(source.prompt_ids) - 1
        steps = logits[place, first : first + len(own)]  # [T, V]
        rules = rules_for(config, query, source)
        scores = rules.all_scores(steps.log_softmax(dim=-1), source.prompt_ids + own, steps.logsumexp(dim=-1))
        found.append(verdict(rules, query, scores, own, n_forced=len(source.forced)))
    return found


def verdict_of(trace: Trace) -> Verdict:
    """What a trace says of the draft that it recorded."""
    return verdict(trace.rules, trace.query, trace.all_scores(), trace.tgt_ids, n_forced=trace.n_forced)


def verdict(rules: Rules, query: Query, scores: Tensor, ids: Ids, *, n_forced: int) -> Verdict:
    """What the scores [T, V] of a pass over a draft say of it."""
    penalty, ends = rules.config.repetition_penalty, rules.config.end_ids
    own = choices(scores, ids, query.decoding, n_forced=n_forced, growth=max(penalty, 1 / penalty))
    for step, (proposed, chosen) in enumerate(zip(ids, own, strict=True)):
        if chosen is None:
            return Verdict(ids[:step], whole=False, sure=False)
        if chosen != proposed or chosen in ends or step == rules.most - 1:
            return Verdict((*ids[:step], chosen), whole=chosen in ends or step == rules.most - 1)
    return Verdict(ids, whole=False)
