"""Scores of a checkpoint on held-out pairs: BLEU and chrF; worst outputs, lengths as CSV; records in `card.json`.

A file is scored as the app would translate it: sources are processed like a query (`transformer.runs.running`), with
form NFC, the checkpoint's normalisation, the same limits and decoding. Only the batches are larger, so rounding may
decide between two equally probable pieces. A length is the number of a source's own tokens; what a training has seen is
in its card (`training.longest`).

A record in `card.json` is about one file under certain settings; writing it again replaces the earlier one. Everything
else in the card is unchanged. The card is read more strictly than on loading: what loading would skip with a warning is
refused here, because it can still be corrected.
"""

import csv
import io
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from itertools import groupby
from pathlib import Path
from typing import Any

from glassformer.extensions.training.library.data import Example, each_alone, encode_pairs, encode_source, n_source
from glassformer.extensions.training.library.scoring import (
    EACH_ALONE,
    Done,
    Scores,
    SentenceScores,
    decode,
    guesses,
    held_out_loss,
    score,
    score_sentences,
    translate,
)
from transformer.analysis.chrf import usual_words
from transformer.checkpoint.card import MAX_BYTES, MAX_ITEMS
from transformer.checkpoint.load import CARD, Checkpoint, load
from transformer.checkpoint.save import file_sha256
from transformer.errors import ClauseError, DataError, QueryError
from transformer.files import strictjson
from transformer.files.atomic_saves import write_whole
from transformer.files.untrusted_folder import FolderFiles
from transformer.i18n import say_n
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
        raise DataError("{name} is {value}; expected at least {least}.", name="--max-pairs", value=max_pairs, least=1)
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


# ------------------------------------------------------------------------------------------------ by length


@dataclass(frozen=True)
class LengthScore:
    """How a model does on the pairs whose sources have one length."""

    length: int  # tokens of the source
    pairs: int
    loss: float  # nats a target token, each read before the next is predicted
    exact: float  # share of greedy outputs that equal their reference
    seen: int  # 1 if the training had sources at least as long, 0 if not, -1 if the card does not say


def scores_by_length(checkpoint: Checkpoint, pairs: Sequence[Pair]) -> list[LengthScore]:
    """The scores at each length, the shortest first; pairs that the model cannot read are left out.

    A `DataError` if the model writes nothing, or no pair is left.
    """
    config, model = checkpoint.config, checkpoint.model
    if not model.anatomy.writes:
        raise DataError(
            "{model}: an encoder-only model writes nothing; give a model with a decoder.", model=checkpoint.name
        )
    source, target = checkpoint.src_tokenizer, checkpoint.tgt_tokenizer
    each = ((pair, example) for pair in pairs for example in encode_pairs([pair], source, target, config))
    ordered = sorted(each, key=lambda one: n_source(one[1], config))
    if not ordered:
        raise DataError("{model}: cannot read any of the pairs; give shorter ones.", model=checkpoint.name)
    longest = checkpoint.card.training.get("longest")
    found = []
    for length, rows in groupby(ordered, lambda one: n_source(one[1], config)):
        group, examples = zip(*rows, strict=True)
        outputs = translate(model, target, examples)
        exact = sum(output == wanted for output, (_, wanted) in zip(outputs, group, strict=True)) / len(group)
        seen = int(length <= longest) if isinstance(longest, int) else -1
        found.append(LengthScore(length, len(group), held_out_loss(model, examples), exact, seen))
    return found


COLUMNS = tuple(field.name for field in fields(LengthScore))


def write_lengths(path: Path, found: Sequence[LengthScore]) -> None:
    """Write the scores as CSV."""
    with path.open("w", newline="", encoding="ascii") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([COLUMNS, *map(astuple, found)])


def read_lengths(path: Path) -> list[LengthScore]:
    """The scores that `write_lengths` has written; empty if there is no such file, or it is not whole."""
    try:
        rows = [[float(cell) for cell in row] for row in list(csv.reader(path.read_text("ascii").splitlines()))[1:]]
        return [LengthScore(int(row[0]), int(row[1]), row[2], row[3], int(row[4])) for row in rows]
    except (OSError, ValueError, IndexError):
        return []


# ------------------------------------------------------------------------------------------------ in the card


Record = Mapping[str, Any]

# What makes two records be about the same thing; a field that is missing in both is equal.
IDENTITY = ("sha256", "measure", "decoding", "beam_size", "length_penalty", "max_pairs", "source", "target")


def record_scores(checkpoint: Checkpoint, records: Sequence[Record]) -> None:
    """Add records, each with its file's name and SHA-256, to the scores of a checkpoint's card.

    A `CheckpointError` if the card cannot be read; a `DataError` if the folder now holds another checkpoint, or its
    card cannot be extended or written.
    """
    if load(checkpoint.folder).content_hash != checkpoint.content_hash:
        raise DataError(
            "{model}: was replaced while it was being scored, so nothing was recorded. Score it again.",
            model=checkpoint.name,
        )
    card = read_open_card(checkpoint.folder)
    scores = merged(card.get("scores", []), records)
    if len(scores) > MAX_ITEMS:
        raise DataError(
            say_n(
                "{model}/{card}: would contain {n} score; the limit is {most}.",
                "{model}/{card}: would contain {n} scores; the limit is {most}.",
                len(scores),
                model=checkpoint.name,
                card=CARD,
                most=MAX_ITEMS,
            )
        )
    content = (json.dumps(card | {"scores": scores}, indent=2, ensure_ascii=False) + "\n").encode()
    if len(content) > MAX_BYTES:
        raise DataError(
            say_n(
                "{model}/{card}: would be {n:,} byte long; the limit is {most:,}.",
                "{model}/{card}: would be {n:,} bytes long; the limit is {most:,}.",
                len(content),
                model=checkpoint.name,
                card=CARD,
                most=MAX_BYTES,
            )
        )
    try:
        _replace(checkpoint.folder / CARD, content)
    except OSError as error:
        file = f"{checkpoint.name}/{CARD}"
        raise DataError("{file}: cannot be written ({reason}).", file=file, reason=error.strerror) from None


def read_open_card(folder: Path) -> dict[str, Any]:
    """Read every field of a card; empty if there is no card.

    A `CheckpointError` if it is unreadable or too large; a `DataError` if it is not a JSON object, or its scores are
    not a list: adding to it would lose something.
    """
    there = FolderFiles(folder)
    if not there.has(CARD):
        return {}
    content = there.read(CARD, limit=MAX_BYTES)
    try:
        card = strictjson.parse(content)
    except ClauseError as error:
        raise DataError(
            "{label}: {problem}; correct this file before you record scores.",
            label=there.label(CARD),
            problem=error.sentence,
        ) from None
    if not isinstance(card, dict) or not isinstance(card.get("scores", []), list):
        raise DataError(
            "{label}: expected a JSON object in which scores is a list; correct this file first.",
            label=there.label(CARD),
        )
    return card


def merged(earlier: Iterable[Any], records: Sequence[Record]) -> list[Any]:
    """The earlier scores with the new ones: each replaces the earlier one in place, or is appended."""
    scores = list(earlier)
    for record in records:
        places = [i for i, old in enumerate(scores) if isinstance(old, Mapping) and _about(old) == _about(record)]
        if places:
            scores[places[0]] = dict(record)
            scores = [old for i, old in enumerate(scores) if i not in places[1:]]
        else:
            scores.append(dict(record))
    return scores


def _about(record: Record) -> list[Any]:
    return [record.get(name) for name in IDENTITY]


def _replace(path: Path, content: bytes) -> None:
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
    write_whole(path, content, path.with_name(f".{path.name}.{os.getpid()}"))
    path.chmod(mode)
