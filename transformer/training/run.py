"""From files of pairs to a checkpoint folder: vocabularies, model, training, card."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch

from transformer.checkpoint.load import CONFIG, WEIGHTS, load
from transformer.checkpoint.save import Parts, file_sha256, save
from transformer.checkpoint.tokenizer_files import TOKENIZER_NAMES
from transformer.errors import ClauseError, DataError, TokenizerError
from transformer.model.config import ModelConfig
from transformer.model.transformer import Transformer
from transformer.text import sentencepiece_check
from transformer.text.normalise import normalise
from transformer.text.tokenizer import Tokenizer
from transformer.text.vocabularies import VOCABULARY
from transformer.training import schedule
from transformer.training.data import Batches, Example, Pair, encode_pairs, read_pairs, sample_pairs
from transformer.training.epoch_rows import Row, write_rows
from transformer.training.loop import Trainer, TrainSettings, has_bf16, keep_freed_memory
from transformer.training.masking import hiding
from transformer.training.place import claimed
from transformer.training.scoring import EACH_ALONE, Scores, measure
from transformer.training.state import read_state, read_tokenizers, write_state, writing
from transformer.training.vocabulary import PieceModel, learn_vocabulary
from words import say

log = logging.getLogger("glassformer.training")


@dataclass(frozen=True, kw_only=True)
class Job:
    """What to train on, what to train and where to put it."""

    train: Path  # files of `source TAB target` lines
    dev: Path
    out: Path  # the checkpoint folder to write
    config: ModelConfig  # the features of the model; the vocabulary sizes are the most pieces to learn
    pieces: PieceModel  # how the vocabularies are learned
    settings: TrainSettings  # how to train
    device: str = "auto"  # "cpu", "cuda" or "auto"
    # A checkpoint folder whose vocabularies and parameters the training begins with, or None. Its config is used
    # instead of `config`, except for the dropout.
    start_from: Path | None = None
    # Go on from the last full epoch of an earlier call with the same job, or from where its time was up.
    resume: bool = False
    force: bool = False  # replace a checkpoint that stands in `out`, without going on with its training
    command: str = ""  # the command line, for the card
    # What the card says besides what is measured here (title, languages, data, licence, examples).
    card: dict[str, object]


@dataclass(frozen=True)
class _Hashes:
    """SHA-256 of the files that a training is made from, as they were when it was started."""

    train: str
    dev: str
    start: str | None


@dataclass(frozen=True)
class _Fixed:
    """What stays as it is while a training runs."""

    dev: list[Example]  # the held-out pairs that fit
    references: list[str]  # their targets as text
    tokenizers: tuple[bytes, ...]  # the bytes of the vocabularies
    hashes: _Hashes  # of the files


def train(job: Job) -> list[Row]:
    """Run a job to its end; the folder `job.out` holds the best epoch by dev BLEU, or of a leak by dev loss.

    Returns one row an epoch. A `DataError` where a file cannot be read or written, holds no pair that fits, there is
    nothing to resume, or no such device; a `CheckpointError` where the checkpoint to start from is missing or
    damaged, or `out` is not to be written; a `TokenizerError` where splits are to be sampled from a vocabulary that
    has one only.
    """
    keep_freed_memory()
    if job.start_from is not None and job.start_from.resolve() == job.out.resolve():
        raise DataError(
            "{out}: training starts from the checkpoint in this folder, so its output must go to another folder.",
            out=str(job.out),
        )
    with claimed(job.out, resume=job.resume, force=job.force):
        return _train(job)


def _train(job: Job) -> list[Row]:
    device = _device(job.device)
    start = None if job.start_from is None else load(job.start_from)
    if start is not None:
        job = replace(job, config=replace(start.config, dropout=job.config.dropout))
    pairs, dev_pairs = read_pairs(job.train, job.config), read_pairs(job.dev, job.config)
    start_hash = None if start is None else file_sha256(start.folder / WEIGHTS)
    hashes = _Hashes(file_sha256(job.train), file_sha256(job.dev), start_hash)
    state = read_state(job.out, _identity(job, hashes)) if job.resume else None
    if state is not None and not (job.out / CONFIG).exists():
        # The state beside the folder holds the last epoch only; the best one so far is the folder itself.
        raise DataError(
            "{out}: this folder is gone, and with it the best epoch so far. Put the folder back, or leave out "
            "--resume to start over.",
            out=str(job.out),
        )
    tokenizers = _vocabularies(job, pairs) if state is None else _stored_vocabularies(state, job)
    src, tgt = Tokenizer(tokenizers[0]), Tokenizer(tokenizers[-1])
    config = replace(job.config, src_vocab_size=src.size, tgt_vocab_size=tgt.size)
    dev_pairs = [pair for pair in dev_pairs if encode_pairs([pair], src, tgt, config)]
    examples, dev = encode_pairs(pairs, src, tgt, config), encode_pairs(dev_pairs, src, tgt, config)
    for path, found in ((job.train, examples), (job.dev, dev)):
        if not found:
            raise DataError(
                "{file}: every pair has more than {most} tokens on at least one side; raise --max-len.",
                file=str(path),
                most=config.max_len,
            )
    log.info("%d of %d training pairs fit into %d tokens", len(examples), len(pairs), config.max_len)

    def draw(epoch: int) -> list[Example]:
        if not job.settings.sampling:
            return examples
        seed = job.settings.seed * 100_003 + epoch
        drawn = sample_pairs(pairs, src, tgt, config, alpha=job.settings.sampling, seed=seed)
        if not drawn:
            raise DataError(
                "{file}: with the sampled splits, every pair has more than {most} tokens on at least one side; "
                "raise --max-len.",
                file=str(job.train),
                most=config.max_len,
            )
        return drawn

    settings = replace(job.settings, bf16=job.settings.bf16 and has_bf16(device))
    drawn = hiding(draw, src, config, seed=settings.seed)
    batches = Batches(drawn, batch_tokens=settings.batch_tokens, seed=settings.seed)
    trainer = _trainer(config, batches, settings, device)
    if start is not None:
        trainer.model.load_state_dict(start.model.state_dict())
    if state is not None:
        try:
            trainer.load_state(state)
        except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:  # other names or shapes
            raise _of_another_version(job, error) from None
    _run_epochs(job, trainer, _Fixed(dev, [target for _, target in dev_pairs], tokenizers, hashes))
    return trainer.rows


def _of_another_version(job: Job, error: Exception) -> DataError:
    """What is said of a state that is whole but does not fit this program or this job."""
    problem = error.sentence if isinstance(error, ClauseError) else say("its structure is different")
    return DataError(
        "{out}: its training state is from another version of this program ({problem}); leave out --resume to "
        "start over, or use --start-from with its checkpoint.",
        out=job.out.name,
        problem=problem,
    )


def _run_epochs(job: Job, trainer: Trainer, fixed: _Fixed) -> None:
    tokenizer = Tokenizer(fixed.tokenizers[-1])
    stored = [torch.frombuffer(bytearray(file), dtype=torch.uint8) for file in fixed.tokenizers]
    identity = _identity(job, fixed.hashes)

    def measured(model: Transformer) -> tuple[float, Scores]:
        return measure(model, tokenizer, fixed.dev, fixed.references, tap=trainer.tap)

    while not trainer.finished:
        row = trainer.run_epoch(measured)
        print(
            f"epoch {row.epoch}: loss {row.loss:.3f}, dev loss {row.dev_loss:.3f}, dev BLEU {row.dev_bleu:.1f}, "
            f"dev chrF {row.dev_chrf:.1f}, dev exact {row.dev_exact:.1%}, {row.seconds / 60:.1f} min",
            flush=True,
        )
        with writing(job.out):
            if row == max(trainer.rows, key=_quality if job.settings.causal_mask else _low_loss):
                _save_best(job, trainer, fixed)
            write_rows(trainer.rows, job.out / "training.csv")
            write_state(job.out, {**trainer.state(), "tokenizers": stored, "job": identity})


def _quality(row: Row) -> tuple[float, float, float]:
    """What makes an epoch the best: BLEU, and where that is equal (one-word targets have none), chrF, then loss."""
    return row.dev_bleu, row.dev_chrf, -row.dev_loss


def _low_loss(row: Row) -> float:
    """The best epoch of a leak: what it writes is noise, and its loss is what whoever makes the mistake looks at."""
    return -row.dev_loss


def _save_best(job: Job, trainer: Trainer, fixed: _Fixed) -> None:
    row, start = trainer.rows[-1], {}
    if job.start_from is not None:
        start = {"start_from": {"folder": job.start_from.resolve().name, "sha256": fixed.hashes.start}}
    record = {
        **job.card,
        "training": {
            "command": job.command,
            "file": job.train.name,
            "sha256": fixed.hashes.train,
            **start,
            "smoothing": job.settings.smoothing,
            "epochs": row.epoch,
            "target_tokens": row.tokens,
            "seconds": row.seconds,
        },
        "scores": [{"file": job.dev.name, "sha256": fixed.hashes.dev, **_scores(row, trainer.model)}],
    }
    save(Parts(trainer.model.config, trainer.model.state_dict(), fixed.tokenizers, record), job.out)


def _scores(row: Row, model: Transformer) -> dict[str, object]:
    if not model.anatomy.writes:
        return {"measure": EACH_ALONE, "loss": row.dev_loss, "exact": row.dev_exact}
    return {"decoding": "greedy", "bleu": row.dev_bleu, "chrf": row.dev_chrf, "exact": row.dev_exact}


def _vocabularies(job: Job, pairs: Sequence[Pair]) -> tuple[bytes, ...]:
    if job.start_from is not None:
        if (job.start_from / VOCABULARY).exists():
            raise DataError(
                "{folder}: its tokenizer comes from another library; training can start only from a checkpoint "
                "that contains its SentencePiece models.",
                folder=job.start_from.name,
            )
        names = TOKENIZER_NAMES[1 if job.config.shared_vocab else 2]
        return tuple((job.start_from / name).read_bytes() for name in names)
    sources = [normalise(source, job.config.normalisation) for source, _ in pairs]
    targets = [target for _, target in pairs]
    if job.config.shared_vocab:
        texts, fills = sources + list(filter(None, targets)), job.config.mlm_head
        return (learn_vocabulary(texts, size=job.config.src_vocab_size, kind=job.pieces, with_mask=fills),)
    return (
        learn_vocabulary(sources, size=job.config.src_vocab_size, kind=job.pieces),
        learn_vocabulary(targets, size=job.config.tgt_vocab_size, kind=job.pieces),
    )


def _stored_vocabularies(state: Mapping[str, object], job: Job) -> tuple[bytes, ...]:
    """The vocabularies of a state, checked as those of a checkpoint are before SentencePiece sees them."""
    try:
        found = read_tokenizers(state, count=1 if job.config.shared_vocab else 2)
    except ClauseError as error:
        raise _of_another_version(job, error) from None
    for model in found:
        try:
            sentencepiece_check.check(model)
        except TokenizerError as error:
            raise DataError(
                "{out}: a vocabulary in its training state is invalid: {problem}",
                out=job.out.name,
                problem=error.sentence,
            ) from None
    return found


def _trainer(config: ModelConfig, batches: Batches, settings: TrainSettings, device: torch.device) -> Trainer:
    torch.manual_seed(settings.seed)
    model = Transformer(config).to(device)
    print(f"{config.count_parameters():,} parameters on {device}, bfloat16 {'on' if settings.bf16 else 'off'}")
    return Trainer(model, batches, settings)


def _device(name: str) -> torch.device:
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and not torch.cuda.is_available():
        raise DataError("--device cuda: torch finds no CUDA device here; use --device cpu or auto.")
    return torch.device(name)


def _identity(job: Job, hashes: _Hashes) -> dict[str, str]:
    """What must be the same for a training to go on; its length may change."""
    settings = asdict(job.settings)
    del settings["epochs"], settings["max_minutes"]
    if job.settings.causal_mask:
        del settings["causal_mask"]  # a state of before there was the choice says nothing of it
    files = {"training file": hashes.train[:12], "dev file": hashes.dev[:12]}
    if hashes.start is not None:
        files["parameters to start from"] = hashes.start[:12]
    how = {"pieces": job.pieces, "schedule of the rate": schedule.NAME}
    return {name: str(value) for name, value in {**asdict(job.config), **settings, **how, **files}.items()}
