"""A job that is done in a second: a tiny model learns to write letters backwards."""

import dataclasses
import hashlib
import io
from pathlib import Path
from typing import Any

import pytest
import torch

from glassformer.extensions.training.library import checkpointing
from glassformer.extensions.training.library.preparation import write_task
from glassformer.extensions.training.library.run import TrainingJob, train
from glassformer.extensions.training.library.settings import TrainSettings
from glassformer.extensions.training.library.state import START, paths
from tests.conftest import SOURCES, TARGETS
from tests.transformer.tiny import tiny_config

SETTINGS = TrainSettings(epochs=2, batch_tokens=200, peak_rate=0.01, warmup=5, precision="fp32")


def make_job(folder: Path, **changes: Any) -> TrainingJob:
    """A job whose files are in `folder`; `changes` replace its fields."""
    if not (folder / "train.tsv").exists():
        write_task("reverse", folder, train=300, dev=12, test=2)
    layers = {"n_encoder_layers": 1, "n_decoder_layers": 1}
    vocabulary = {"src_vocab_size": 40, "tgt_vocab_size": 40, "shared_vocab": True}
    config = tiny_config(d_model=16, n_heads=2, dropout=0.1, **layers, **vocabulary)
    job = TrainingJob(
        train=folder / "train.tsv",
        dev=folder / "dev.tsv",
        out=folder / "out" / "reverse",
        config=config,
        pieces="char",
        settings=SETTINGS,
        device="cpu",
        card={"title": "Backwards"},
        command="python -m transformer train",
    )
    return dataclasses.replace(job, **changes)


def job_on_sentences(folder: Path, *, times: int, **settings: Any) -> TrainingJob:
    """A job on a few sentences of the tiny checkpoints' languages, each so many times, with dropout."""
    text = "".join(f"{source}\t{target}\n" for source, target in zip(SOURCES, TARGETS, strict=True))
    for name in ("train", "dev"):
        (folder / f"{name}.tsv").write_text(text * times, encoding="utf-8")
    job = with_settings(make_job(folder), **settings)
    return dataclasses.replace(job, config=dataclasses.replace(job.config, dropout=0.2, max_len=48))


def with_settings(job: TrainingJob, **changes: Any) -> TrainingJob:
    """The same job with other settings."""
    return dataclasses.replace(job, settings=dataclasses.replace(job.settings, **changes))


def stored(out: Path) -> dict[str, Any]:
    """The training state that belongs to a checkpoint folder."""
    content = paths(out)[0].read_bytes().split(b"\n", 1)[1]
    state: dict[str, Any] = torch.load(io.BytesIO(content), weights_only=True)
    return state


def store(out: Path, state: object) -> None:
    """Put something else in the place of the training state, with a SHA-256 that is right."""
    content = io.BytesIO()
    torch.save(state, content)
    first = START + hashlib.sha256(content.getvalue()).hexdigest().encode() + b"\n"
    paths(out)[0].write_bytes(first + content.getvalue())


def train_and_stop(job: TrainingJob, monkeypatch: pytest.MonkeyPatch, *, step: int | None = None) -> None:
    """Train until the state of a step, or of the first epoch, is written; then stop as Ctrl-C does."""
    write_state = checkpointing.write_state

    def write_and_stop(out: Path, state: Any) -> None:
        write_state(out, state)
        if state["rows"] if step is None else state["place"]["step"] == step:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(checkpointing, "write_state", write_and_stop)
        with pytest.raises(KeyboardInterrupt):
            train(job)
