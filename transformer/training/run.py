"""From files of pairs to a checkpoint folder: vocabularies, model, training, card."""

import json
import logging
import os
import pickle
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch

from transformer.checkpoint import TOKENIZER_NAMES, WEIGHTS, load
from transformer.config import ModelConfig
from transformer.errors import DataError
from transformer.model import Transformer
from transformer.saving import Parts, file_sha256, save
from transformer.text import normalise
from transformer.tokenizer import Tokenizer
from transformer.training.data import Batches, Example, Pair, encode_pairs, read_pairs, sample_pairs
from transformer.training.loop import Row, Trainer, TrainSettings, has_bf16, keep_freed_memory, write_rows
from transformer.training.scoring import Scores, held_out_loss, score, translate
from transformer.training.vocabulary import PieceModel, learn_vocabulary

log = logging.getLogger("glassformer.training")


@dataclass(frozen=True, kw_only=True)
class Job:
    """What to train on, what to train and where to put it.

    Attributes:
        train, dev: Files of `source TAB target` lines.
        out: The checkpoint folder to write.
        config: The features of the model; the vocabulary sizes are the most pieces to learn.
        pieces: How the vocabularies are learned.
        settings: How to train.
        device: "cpu", "cuda" or "auto".
        start_from: A checkpoint folder whose vocabularies and parameters the training begins with, or None. Its
            config is used instead of `config`, except for the dropout.
        resume: Go on from the last full epoch of an earlier call with the same job.
        command: The command line, for the card.
        card: What the card says besides what is measured here (title, languages, data, licence, examples).
    """

    train: Path
    dev: Path
    out: Path
    config: ModelConfig
    pieces: PieceModel
    settings: TrainSettings
    device: str = "auto"
    start_from: Path | None = None
    resume: bool = False
    command: str = ""
    card: dict[str, object]


def train(job: Job) -> list[Row]:
    """Run a job to its end; the folder `job.out` holds the best epoch by dev BLEU.

    Returns:
        One row an epoch.

    Raises:
        DataError: A file cannot be read, holds no pair that fits, or there is nothing to resume.
    """
    keep_freed_memory()
    device = _device(job.device)
    pairs, dev_pairs = read_pairs(job.train), read_pairs(job.dev)
    start = load(job.start_from) if job.start_from else None
    if start is not None:
        job = replace(job, config=replace(start.config, dropout=job.config.dropout))
    state = _read_state(job)
    tokenizer_files = _vocabularies(job, pairs) if state is None else _stored_vocabularies(state)
    src, tgt = Tokenizer(tokenizer_files[0]), Tokenizer(tokenizer_files[-1])
    config = replace(job.config, src_vocab_size=src.size, tgt_vocab_size=tgt.size)
    dev_pairs = [pair for pair in dev_pairs if encode_pairs([pair], src, tgt, config)]
    examples, dev = encode_pairs(pairs, src, tgt, config), encode_pairs(dev_pairs, src, tgt, config)
    for path, found in ((job.train, examples), (job.dev, dev)):
        if not found:
            raise DataError(f"{path}: no pair fits into {config.max_len} tokens a side; raise --max-len.")
    log.info("%d of %d training pairs fit into %d tokens", len(examples), len(pairs), config.max_len)

    def draw(epoch: int) -> list[Example]:
        if not job.settings.sampling:
            return examples
        seed = job.settings.seed * 100_003 + epoch
        return sample_pairs(pairs, src, tgt, config, alpha=job.settings.sampling, seed=seed)

    settings = replace(job.settings, bf16=job.settings.bf16 and has_bf16(device))
    batches = Batches(draw, config, batch_tokens=settings.batch_tokens, seed=settings.seed)
    trainer = _trainer(config, batches, settings, device)
    if start is not None:
        trainer.model.load_state_dict(start.model.state_dict())
    if state is not None:
        trainer.load_state(state)
    _run_epochs(job, trainer, dev, [target for _, target in dev_pairs], tokenizer_files)
    return trainer.rows


def _run_epochs(
    job: Job, trainer: Trainer, dev: list[Example], references: Sequence[str], tokenizer_files: list[bytes]
) -> None:
    tokenizer = Tokenizer(tokenizer_files[-1])

    def measure(model: Transformer) -> tuple[float, Scores]:
        return held_out_loss(model, dev), score(translate(model, tokenizer, dev), references)

    while not trainer.finished:
        row = trainer.run_epoch(measure)
        print(
            f"epoch {row.epoch}: loss {row.loss:.3f}, dev loss {row.dev_loss:.3f}, "
            f"dev BLEU {row.dev_bleu:.1f}, dev chrF {row.dev_chrf:.1f}, {row.seconds / 60:.1f} min",
            flush=True,
        )
        if row == max(trainer.rows, key=_quality):
            _save_best(job, trainer, tokenizer_files)
        write_rows(trainer.rows, job.out / "training.csv")
        stored = [torch.frombuffer(bytearray(file), dtype=torch.uint8) for file in tokenizer_files]
        _write_state(job, {**trainer.state(), "tokenizers": stored, "job": _identity(job)})


def _quality(row: Row) -> tuple[float, float, float]:
    """What makes an epoch the best: BLEU, and where that is equal (one-word targets have none), chrF, then loss."""
    return row.dev_bleu, row.dev_chrf, -row.dev_loss


def _save_best(job: Job, trainer: Trainer, tokenizer_files: list[bytes]) -> None:
    row = trainer.rows[-1]
    card = {
        **job.card,
        "training": {
            "command": job.command,
            "file": job.train.name,
            "sha256": file_sha256(job.train),
            "epochs": row.epoch,
            "target_tokens": row.tokens,
            "seconds": row.seconds,
        },
        "scores": [
            {
                "file": job.dev.name,
                "sha256": file_sha256(job.dev),
                "decoding": "greedy",
                "bleu": row.dev_bleu,
                "chrf": row.dev_chrf,
                "exact": row.dev_exact,
            }
        ],
    }
    parts = Parts(trainer.model.config, trainer.model.state_dict(), tuple(tokenizer_files), card)
    save(parts, job.out)


def _vocabularies(job: Job, pairs: Sequence[Pair]) -> list[bytes]:
    if job.start_from is not None:
        names = TOKENIZER_NAMES[1 if job.config.shared_vocab else 2]
        return [(job.start_from / name).read_bytes() for name in names]
    sources = [normalise(source, job.config.normalisation) for source, _ in pairs]
    targets = [target for _, target in pairs]
    if job.config.shared_vocab:
        return [learn_vocabulary(sources + targets, size=job.config.src_vocab_size, kind=job.pieces)]
    return [
        learn_vocabulary(sources, size=job.config.src_vocab_size, kind=job.pieces),
        learn_vocabulary(targets, size=job.config.tgt_vocab_size, kind=job.pieces),
    ]


def _stored_vocabularies(state: dict[str, object]) -> list[bytes]:
    return [file.numpy().tobytes() for file in state["tokenizers"]]  # type: ignore[attr-defined]


def _trainer(config: ModelConfig, batches: Batches, settings: TrainSettings, device: torch.device) -> Trainer:
    torch.manual_seed(settings.seed)
    model = Transformer(config).to(device)
    print(f"{config.count_parameters():,} parameters on {device}, bfloat16 {'on' if settings.bf16 else 'off'}")
    return Trainer(model, batches, settings)


def _device(name: str) -> torch.device:
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(name)


def _state_path(job: Job) -> Path:
    return job.out.with_name(job.out.name + ".training") / "state.pt"


def _write_state(job: Job, state: dict[str, object]) -> None:
    path = _state_path(job)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    torch.save(state, partial)
    os.replace(partial, path)


def _read_state(job: Job) -> dict[str, object] | None:
    path = _state_path(job)
    if not job.resume:
        return None
    if not path.exists():
        raise DataError(f"{path}: nothing to resume; leave out --resume to start anew.")
    try:
        state: dict[str, object] = torch.load(path, weights_only=True, map_location="cpu")
        before: dict[str, str] = state["job"]  # type: ignore[assignment]
    except (OSError, RuntimeError, EOFError, KeyError, pickle.UnpicklingError):
        raise DataError(f"{path}: damaged or of another version; leave out --resume to start anew.") from None
    now = _identity(job)
    changed = [f"{name} was {before.get(name)}, is {now[name]}" for name in now if before.get(name) != now[name]]
    if changed:
        raise DataError(f"{path} belongs to another training: {'; '.join(changed)}.")
    return state


def _identity(job: Job) -> dict[str, str]:
    """What must be the same for a training to go on; its length may change."""
    settings = asdict(job.settings)
    del settings["epochs"], settings["max_minutes"]
    files = {"training file": file_sha256(job.train)[:12], "dev file": file_sha256(job.dev)[:12]}
    if job.start_from is not None:
        files["parameters to start from"] = file_sha256(job.start_from / WEIGHTS)[:12]
    return {
        name: str(value) for name, value in {**asdict(job.config), **settings, "pieces": job.pieces, **files}.items()
    }


def read_card(path: Path | None) -> dict[str, object]:
    """Read the file given as --card: what a card says besides what training measures."""
    if path is None:
        return {}
    try:
        card = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read as JSON ({error}).") from None
    if not isinstance(card, dict):
        raise DataError(f"{path}: expected a JSON object.")
    return card
