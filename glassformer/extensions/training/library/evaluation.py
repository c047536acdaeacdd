"""Score a checkpoint on a file of sentence pairs, as the app would translate them.

Sources are processed like a query (`transformer.runs.running`): form NFC, the checkpoint's normalisation, the same
limits and decoding. Only the batches are larger, so rounding may decide between two equally probable pieces.
"""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from glassformer.extensions.training.library.data import Example, each_alone, encode_source
from glassformer.extensions.training.library.scoring import (
    EACH_ALONE,
    Done,
    Scores,
    SentenceScores,
    decode,
    guesses,
    score,
    score_sentences,
)
from transformer.analysis.chrf import usual_words
from transformer.checkpoint.load import Checkpoint
from transformer.checkpoint.save import file_sha256
from transformer.errors import DataError, QueryError
from transformer.model.config import ModelConfig
from transformer.runs.inputs import room_of
from transformer.runs.query import Beam, Greedy, Query, check_source
from transformer.runs.sentence_files import Pair, read_numbered_pairs
from transformer.text.cells import cell

MAX_NEW = Query.max_new  # the app's default maximum

WORST_COLUMNS = ("decoding", "line", "source", "reference", "output", "chrf", "bleu")


@dataclass(frozen=True)
class HeldOut:
    """A file of pairs."""

    name: str  # of the file, without its folder
    sha256: str  # of the whole file, hexadecimal
    lines: tuple[int, ...]  # the line number of each pair, from 1
    pairs: tuple[Pair, ...]  # the first `max_pairs` of the file
    n_in_file: int  # pairs in the whole file

    @property
    def references(self) -> list[str]:
        """The target of each pair."""
        return [target for _, target in self.pairs]


@dataclass(frozen=True, kw_only=True)
class EvaluationScoring:
    """What one way of decoding gave."""

    decoding: Greedy | Beam  # that way
    max_new: int  # most pieces that an output could have
    outputs: tuple[str, ...]  # one per pair
    scores: Scores  # over all pairs
    sentences: tuple[SentenceScores, ...]  # of each pair
    n_unread: int  # pairs whose source the model cannot read (too long, or nothing in it); their output is empty
    n_cut: int  # outputs that the limit cut


def read_held_out(path: Path, config: ModelConfig | None = None, *, max_pairs: int | None = None) -> HeldOut:
    """Read a file of lines as `read_pairs` does, the first `max_pairs` of it, or a `DataError`."""
    if max_pairs is not None and max_pairs < 1:
        raise DataError("--max-pairs: found {found}, expected 1 or more.", found=max_pairs)
    found = read_numbered_pairs(path, config)
    lines, pairs = zip(*found[:max_pairs], strict=True)
    return HeldOut(path.name, file_sha256(path), lines, pairs, len(found))


def evaluate(
    checkpoint: Checkpoint,
    held_out: HeldOut,
    decoding: Greedy | Beam,
    *,
    words: str | None = None,
    done: Done = lambda n: None,
) -> EvaluationScoring:
    """Translate every pair's source and compare with its target; `done` is called with the number of new sentences.

    `words` is sacrebleu's word splitter ("none": at spaces); None: the default of the card's target language. A
    `QueryError` if the model computed a value that is not finite.
    """
    config, reads = checkpoint.config, checkpoint.model.anatomy.reads
    max_new = min(MAX_NEW, config.max_len)
    sources = [_readable(checkpoint, source) for source, _ in held_out.pairs]
    n_unread = sources.count(())
    done(n_unread)

    def limit(n_source: int) -> int:
        return min(MAX_NEW, room_of(config, 1 if reads else n_source))

    found = iter(decode(checkpoint.model, list(filter(None, sources)), decoding, limit=limit, done=done))
    ids = [next(found) if source else () for source in sources]
    outputs = [checkpoint.tgt_tokenizer.decode(written) for written in ids]
    words = words or usual_words(checkpoint.card.target_code)
    return EvaluationScoring(
        decoding=decoding,
        max_new=max_new,
        outputs=tuple(outputs),
        scores=score(outputs, held_out.references, words=words),
        sentences=tuple(score_sentences(outputs, held_out.references, words=words)),
        n_unread=n_unread,
        n_cut=sum(bool(written) and written[-1] not in config.end_ids for written in ids),
    )


def _readable(checkpoint: Checkpoint, source: str) -> tuple[int, ...]:
    """The ids that the encoder reads; empty if the app would refuse the source."""
    config = checkpoint.config
    try:
        ids = encode_source(check_source(source), checkpoint.src_tokenizer, config)
    except QueryError:  # more characters than a query may have
        return ()
    n_around = len(config.source_start) + len(config.source_end)
    return ids if n_around < len(ids) <= config.max_len else ()


def score_gaps(checkpoint: Checkpoint, held_out: HeldOut) -> dict[str, object]:
    """How well an encoder-only model guesses each piece of each text, hidden alone; for `card.json`.

    Texts that the app would refuse are skipped. A `DataError` if no piece can be hidden, or no text is left.
    """
    texts = [Example(ids, ()) for source, _ in held_out.pairs if (ids := _readable(checkpoint, source))]
    gaps = each_alone(texts, checkpoint.src_tokenizer, checkpoint.config)
    if not gaps:
        raise DataError("{file}: contains no text that {model} can read.", file=held_out.name, model=checkpoint.name)
    loss, share = guesses(checkpoint.model, gaps)
    counted = {"texts": len(texts), "pieces": len(gaps), "loss": float(f"{loss:.4g}"), "exact": round(share, 4)}
    return {"file": held_out.name, "sha256": held_out.sha256, "measure": EACH_ALONE, **_part(held_out), **counted}


def _part(held_out: HeldOut) -> dict[str, object]:
    """The number of scored lines, if not all."""
    n = len(held_out.pairs)
    return {"max_pairs": n} if n < held_out.n_in_file else {}


def decoding_name(decoding: Greedy | Beam) -> str:
    """Such as "greedy" or "beam 5"."""
    return "greedy" if isinstance(decoding, Greedy) else f"beam {decoding.size}"


def score_record(held_out: HeldOut, scoring: EvaluationScoring) -> dict[str, object]:
    """A scoring as `card.json` keeps it."""
    scores, decoding = scoring.scores, scoring.decoding
    record: dict[str, object] = {"file": held_out.name, "sha256": held_out.sha256, "pairs": len(held_out.pairs)}
    record |= _part(held_out)
    if isinstance(decoding, Beam):
        record |= {"decoding": "beam", "beam_size": decoding.size, "length_penalty": decoding.length_penalty}
    else:
        record["decoding"] = "greedy"
    return record | {
        "max_new": scoring.max_new,
        "bleu": round(scores.bleu, 2),
        "chrf": round(scores.chrf, 2),
        "exact": round(scores.exact, 4),
        "bleu_signature": scores.signature,
        "chrf_signature": scores.chrf_signature,
    }


def worst_csv(held_out: HeldOut, scorings: Sequence[EvaluationScoring], *, count: int) -> str:
    """The sentences with the lowest chrF (then the lowest BLEU) for each decoding, as CSV.

    A cell that a spreadsheet would read as a formula begins with an apostrophe.
    """
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(WORST_COLUMNS)
    for scoring in scorings:
        by_score = sorted(
            range(len(held_out.pairs)), key=lambda i: (scoring.sentences[i].chrf, scoring.sentences[i].bleu)
        )
        for i in by_score[:count]:
            found = scoring.sentences[i]
            texts = map(cell, (*held_out.pairs[i], scoring.outputs[i]))
            numbers = f"{found.chrf:.2f}", f"{found.bleu:.2f}"
            writer.writerow((decoding_name(scoring.decoding), held_out.lines[i], *texts, *numbers))
    return file.getvalue()
