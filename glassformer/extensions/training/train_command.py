"""`python -m transformer train`: options of job, model, settings and processes; the training, how to resume it."""

import argparse
import sys
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Final, get_args

from glassformer.extensions.training.library.settings import CHOICES, TrainSettings
from transformer.checkpoint.named import named
from transformer.errors import GlassformerError
from transformer.model.config import ModelConfig, Normalisation
from transformer.model.config_fields import Activation, NormKind, NormPlace
from transformer.model.position_kinds import KINDS

LOGS = ("tensorboard", "trackio")
SETTINGS: Final[Mapping[str, str | None]] = {  # fields of `TrainSettings`, each with its help
    "epochs": None,
    "max_minutes": "end after this time, with the learning rate at 0; 0: no limit",
    "batch_tokens": "target tokens per step, of all processes",
    "accumulate": "parts in which a process learns from its share of a step",
    "peak_rate": "the highest learning rate",
    "schedule": "the way down",
    "warmup": "steps until the highest rate, at most half of all",
    "smoothing": None,
    "sampling": "alpha for random splits into tokens; 0: none",
    "clip": None,
    "weight_decay": None,
    "average": "score and keep the mean of the parameters after so many epochs",
    "patience": "end after so many epochs without a better one",
    "seed": None,
    "precision": "of the products; bf16 is fp32 where the hardware has no bfloat16",
}
# What `TrainingJob` and `ModelConfig` have as it was given.
OF_JOB = ("train", "dev", "out", "pieces", "device", "start_from", "resume", "force", "snapshots", "log")
OF_MODEL = ("d_model", "d_ff", "norm", "norm_kind", "residual", "activation", "gated", "score_scale", "positions",
            "max_len", "dropout", "attention_dropout", "ffn_dropout")  # fmt: skip


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.set_defaults(run=_run)
    _add_model(parser)
    _add_training(parser)
    _add_processes(parser)
    files = parser.add_argument_group("files")
    files.add_argument("--train", type=Path, required=True, help="source TAB target, one pair per line")
    files.add_argument("--dev", type=Path, required=True, help="held-out pairs to score each epoch on")
    files.add_argument("--out", type=Path, required=True, help="the checkpoint folder to write")
    files.add_argument("--card", type=Path, help="JSON: title, languages, data, licence, examples for the card")
    files.add_argument("--start-from", type=named, help="a checkpoint to continue from, with its vocabularies")
    files.add_argument("--resume", action="store_true", help="continue from where the training was stored last")
    files.add_argument("--force", action="store_true", help="replace an existing checkpoint in --out")
    files.add_argument("--snapshots", type=int, default=0, help="keep so many moments of the model beside it")
    files.add_argument("--log", choices=LOGS, help="write loss and scores for this program, too")


def _add_model(parser: argparse.ArgumentParser) -> None:
    model = parser.add_argument_group("model")
    model.add_argument(
        "--kind",
        choices=("encoder-decoder", "decoder", "encoder"),
        default="encoder-decoder",
        help="decoder: a decoder alone, which goes on with the source; encoder: an encoder alone, which fills gaps "
        "in texts, one a line",
    )
    model.add_argument("--layers", type=int, default=3, help="layers of each stack")
    model.add_argument("--d-model", type=int, default=256)
    model.add_argument("--heads", type=int, default=4)
    model.add_argument("--kv-heads", type=int, default=0, help="key-value heads, shared by the heads; 0: as many")
    model.add_argument("--d-ff", type=int, default=1024)
    model.add_argument("--src-vocab", type=int, default=6000, help="most source tokens")
    model.add_argument("--tgt-vocab", type=int, default=5000, help="most target tokens")
    model.add_argument("--shared-vocab", action="store_true", help="one vocabulary (of --src-vocab tokens)")
    model.add_argument("--pieces", choices=("unigram", "bpe", "char"), default="unigram")
    model.add_argument("--norm", choices=get_args(NormPlace), default="pre")
    model.add_argument("--norm-kind", choices=get_args(NormKind), default="layer", help="rms: RMSNorm; none: no norms")
    model.add_argument("--no-residual", action="store_false", dest="residual", help="no residual connections")
    model.add_argument("--activation", choices=get_args(Activation), default="relu")
    model.add_argument("--gated", action="store_true", help="a gate in the feed-forward layers; with silu: SwiGLU")
    model.add_argument("--score-scale", type=float, help="q . k times this, not divided by the root of a head's width")
    model.add_argument("--positions", choices=tuple(KINDS), default="sinusoidal")
    model.add_argument("--max-len", type=int, default=128, help="most tokens per side")
    model.add_argument("--dropout", type=float, default=0.15, help="of embeddings and of what a sub-layer adds")
    model.add_argument("--attention-dropout", type=float, default=0.0, help="of attention weights")
    model.add_argument("--ffn-dropout", type=float, default=0.0, help="inside the feed-forward layers")
    model.add_argument("--normalisation", choices=get_args(Normalisation), nargs="*", default=["nfc"])


def _add_training(parser: argparse.ArgumentParser) -> None:
    training = parser.add_argument_group("training")
    for name, said in SETTINGS.items():
        _add_setting(training, name, said)
    training.add_argument(
        "--no-causal-mask",
        action="store_false",
        dest="causal_mask",
        help="a deliberate mistake: the decoder sees the tokens that it has to predict, so the loss nears 0 and its "
        "output is worthless (`checkpoints/reverse-leak` was trained like this)",
    )
    training.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    _add_setting(training, "save_minutes", "store the state this often, too")


def _add_setting(group: Any, name: str, said: str | None) -> None:
    """An option for a field of `TrainSettings`, with its default."""
    default, option = getattr(TrainSettings, name), name.removeprefix("peak_")
    choices = CHOICES.get(name)
    group.add_argument(
        f"--{option.replace('_', '-')}",
        dest=name,
        type=type(default),
        default=default,
        choices=choices,
        metavar=None if choices else option.upper(),
        help=said,
    )


def _add_processes(parser: argparse.ArgumentParser) -> None:
    several = parser.add_argument_group("several processes; see also torchrun")
    several.add_argument("--processes", type=int, default=1, help="start so many on this machine")
    several.add_argument("--max-restarts", type=int, default=0, help="go on so often when one of them falls")
    several.add_argument("--shard", action="store_true", help="each process keeps a share of the model (FSDP)")


def _run(options: argparse.Namespace) -> int:
    from glassformer.extensions.training.library import distributed

    if distributed.wanted(options.processes, options.max_restarts):
        return distributed.launch(sys.argv[1:], processes=options.processes, max_restarts=options.max_restarts)
    try:
        _train(options)
    except (GlassformerError, OSError) as error:
        return distributed.refused(error)
    except RuntimeError as error:
        if not distributed.is_lost(error):
            raise
        print("error: another process of this training is gone.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        if not distributed.is_first():
            return 1
        raise KeyboardInterrupt(_how_to_resume(options.out)) from None
    return 0


def _train(options: argparse.Namespace) -> None:
    from glassformer.extensions.training.library.run import TrainingJob, read_card, train

    settings = TrainSettings(**{field.name: getattr(options, field.name) for field in fields(TrainSettings)})
    given: dict[str, Any] = {name: getattr(options, name) for name in OF_JOB}
    train(
        TrainingJob(
            config=config_of(options), settings=settings, command=_command(), card=read_card(options.card), **given
        )
    )


def _how_to_resume(out: Path) -> str:
    from glassformer.extensions.training.library.state import has_state

    if has_state(out):
        return f"{out} holds the best epoch so far; the same command with --resume goes on from what was stored last."
    return "Nothing was learned yet: the same command starts anew."


def config_of(options: argparse.Namespace) -> ModelConfig:
    """The model that is asked for, with as many tokens as it has at most."""
    alone = options.kind != "encoder-decoder"
    shared = options.shared_vocab or alone
    given: dict[str, Any] = {name: getattr(options, name) for name in OF_MODEL}
    return ModelConfig(
        n_encoder_layers=0 if options.kind == "decoder" else options.layers,
        n_decoder_layers=0 if options.kind == "encoder" else options.layers,
        n_heads=options.heads,
        n_kv_heads=options.kv_heads,
        src_vocab_size=options.src_vocab,
        tgt_vocab_size=options.src_vocab if shared else options.tgt_vocab,
        shared_vocab=shared,
        mlm_head=options.kind == "encoder",
        prepend_source_bos=alone,
        append_source_eos=options.kind != "decoder",  # the text continues after a prompt
        final_norm=options.norm == "pre" and options.norm_kind != "none",
        normalisation=tuple(options.normalisation),
        **given,
    )


def _command() -> str:
    """The command line for the card, with file names but without this machine's folders."""
    words = [Path(word).name if "/" in word or "\\" in word else word for word in sys.argv[1:]]
    return " ".join(["python -m transformer", *words])
