"""The command line: `python -m transformer train`, `task` and `translate`."""

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from transformer.config import Activation, ModelConfig, Normalisation, NormPlace, PositionKind
from transformer.errors import DataError, GlassformerError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m transformer", description="Train and make checkpoints.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_train(commands.add_parser("train", help="learn a vocabulary and a model from files of sentence pairs"))
    _add_task(commands.add_parser("task", help="write the files of a made-up task"))
    _add_translate(commands.add_parser("translate", help="translate lines of text"))
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    try:
        options.run(options)
    except ModuleNotFoundError as error:
        print(f"error: {error.name} is missing; pip install 'glassformer[train]' brings it.", file=sys.stderr)
        return 2
    except GlassformerError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _add_train(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_train)
    files = parser.add_argument_group("files")
    files.add_argument("--train", type=Path, required=True, help="source TAB target, one pair a line")
    files.add_argument("--dev", type=Path, required=True, help="held-out pairs to score each epoch on")
    files.add_argument("--out", type=Path, required=True, help="the checkpoint folder to write")
    files.add_argument("--card", type=Path, help="JSON: title, languages, data, licence, examples for the card")
    files.add_argument("--resume", action="store_true", help="go on from the last full epoch")
    _add_model(parser.add_argument_group("model"))
    _add_settings(parser.add_argument_group("training"))


def _add_model(model: Any) -> None:
    model.add_argument("--layers", type=int, default=3, help="layers of the encoder and of the decoder")
    model.add_argument("--d-model", type=int, default=256)
    model.add_argument("--heads", type=int, default=4)
    model.add_argument("--d-ff", type=int, default=1024)
    model.add_argument("--src-vocab", type=int, default=6000, help="most source pieces")
    model.add_argument("--tgt-vocab", type=int, default=5000, help="most target pieces")
    model.add_argument("--shared-vocab", action="store_true", help="one vocabulary (of --src-vocab pieces)")
    model.add_argument("--pieces", choices=("unigram", "bpe", "char"), default="unigram")
    model.add_argument("--norm", choices=get_args(NormPlace), default="pre")
    model.add_argument("--activation", choices=get_args(Activation), default="relu")
    model.add_argument("--positions", choices=get_args(PositionKind), default="sinusoidal")
    model.add_argument("--max-len", type=int, default=128, help="most tokens a side")
    model.add_argument("--dropout", type=float, default=0.15)
    model.add_argument("--normalisation", choices=get_args(Normalisation), nargs="*", default=["nfc"])


def _add_settings(training: Any) -> None:
    training.add_argument("--epochs", type=int, default=10)
    training.add_argument("--max-minutes", type=float, default=0.0, help="end after this time, the rate at 0")
    training.add_argument("--batch-tokens", type=int, default=3000, help="target tokens a step")
    training.add_argument("--rate", type=float, default=1.2e-3, help="highest learning rate")
    training.add_argument("--warmup", type=int, default=800, help="steps until the highest rate")
    training.add_argument("--smoothing", type=float, default=0.1)
    training.add_argument("--clip", type=float, default=1.0)
    training.add_argument("--weight-decay", type=float, default=0.01)
    training.add_argument("--seed", type=int, default=1)
    training.add_argument("--no-bf16", action="store_true")
    training.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")


def _train(options: argparse.Namespace) -> None:
    from transformer.training.loop import TrainSettings  # needs the extra `train`
    from transformer.training.run import Job, read_card, train

    settings = TrainSettings(
        epochs=options.epochs,
        max_minutes=options.max_minutes,
        batch_tokens=options.batch_tokens,
        peak_rate=options.rate,
        warmup=options.warmup,
        smoothing=options.smoothing,
        clip=options.clip,
        weight_decay=options.weight_decay,
        seed=options.seed,
        bf16=not options.no_bf16,
    )
    job = Job(
        train=options.train,
        dev=options.dev,
        out=options.out,
        config=_config(options),
        pieces=options.pieces,
        settings=settings,
        device=options.device,
        resume=options.resume,
        command=_command(),
        card=read_card(options.card),
    )
    train(job)


def _config(options: argparse.Namespace) -> ModelConfig:
    return ModelConfig(
        n_encoder_layers=options.layers,
        n_decoder_layers=options.layers,
        d_model=options.d_model,
        n_heads=options.heads,
        d_ff=options.d_ff,
        src_vocab_size=options.src_vocab,
        tgt_vocab_size=options.src_vocab if options.shared_vocab else options.tgt_vocab,
        shared_vocab=options.shared_vocab,
        norm=options.norm,
        final_norm=options.norm == "pre",
        activation=options.activation,
        positions=options.positions,
        max_len=options.max_len,
        dropout=options.dropout,
        normalisation=tuple(options.normalisation),
    )


def _command() -> str:
    """The command as typed, with file names but not the folders of this machine."""
    words = [Path(word).name if "/" in word or "\\" in word else word for word in sys.argv[1:]]
    return " ".join(["python -m transformer", *words])


def _add_task(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_task)
    parser.add_argument("name", choices=("reverse",))
    parser.add_argument("--out", type=Path, required=True, help="folder for train.tsv, dev.tsv and test.tsv")


def _task(options: argparse.Namespace) -> None:
    from transformer.training.tasks import write_reverse

    write_reverse(options.out)


def _add_translate(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_translate)
    parser.add_argument("checkpoint", type=Path, help="a checkpoint folder")
    parser.add_argument("lines", nargs="*", help="sentences; standard input, a line each, if there are none")
    parser.add_argument("--beam", type=int, default=0, help="beams; greedy without")
    parser.add_argument("--unseen-in", type=Path, help="refuse sentences that stand in this file of pairs")


def _translate(options: argparse.Namespace) -> None:
    from transformer import Beam, Greedy, load

    lines = [line.strip() for line in (options.lines or sys.stdin) if line.strip()]
    if options.unseen_in:
        _refuse_seen(lines, options.unseen_in)
    checkpoint = load(options.checkpoint)
    decoding = Beam(size=options.beam) if options.beam else Greedy()
    for line in lines:
        print(line, checkpoint.run(checkpoint.query(line, decoding=decoding)).output_text, sep="\t", flush=True)


def _refuse_seen(lines: Sequence[str], pairs: Path) -> None:
    """Punctuation, spaces and case do not make a sentence another one."""
    from transformer.training.data import read_pairs

    seen = {_letters(source) for source, _ in read_pairs(pairs)}
    found = [line for line in lines if _letters(line) in seen]
    if found:
        raise DataError(f"{len(found)} of {len(lines)} sentences stand in {pairs.name}: {' '.join(found[:5])}")


def _letters(text: str) -> str:
    return "".join(character for character in text.casefold() if character.isalnum())


if __name__ == "__main__":
    sys.exit(main())
