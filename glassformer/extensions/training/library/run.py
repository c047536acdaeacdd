"""One training, from files of pairs to a checkpoint folder: job, vocabularies, model, resuming, card."""

import io
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

import sentencepiece
import torch

from glassformer.extensions.training.library import checkpointing
from glassformer.extensions.training.library.checkpointing import Keeper
from glassformer.extensions.training.library.data import Batches, Example, encode_pairs, hiding, n_source, sample_pairs
from glassformer.extensions.training.library.distributed import Processes, precision_on, started, was_restarted
from glassformer.extensions.training.library.loop import Trainer
from glassformer.extensions.training.library.settings import NOT_LEARNED, ROUNDED, SCHEDULES, TrainSettings
from glassformer.extensions.training.library.state import EpochRow, claimed, has_state, read_state, read_tokenizers
from transformer.analysis.hidden_pieces import MASK_PIECES
from transformer.checkpoint import card, snapshots
from transformer.checkpoint.free_memory import keep_freed_memory
from transformer.checkpoint.load import CONFIG, WEIGHTS, Checkpoint, load
from transformer.checkpoint.save import file_sha256
from transformer.checkpoint.tokenizer_files import TOKENIZER_NAMES, VOCABULARY
from transformer.errors import ClauseError, DataError, TokenizerError
from transformer.files import strictjson, untrusted_folder
from transformer.i18n import say, say_n
from transformer.model.config import DROPOUTS, ModelConfig
from transformer.model.transformer import Transformer
from transformer.runs.sentence_files import Pair, read_pairs
from transformer.text import sentencepiece_check
from transformer.text.tokenizer import Tokenizer, normalise

PieceModel = Literal["unigram", "bpe", "char"]

log = logging.getLogger("glassformer.training")


@dataclass(frozen=True, kw_only=True)
class TrainingJob:
    """What to train on, what to train and where to put it."""

    train: Path  # files of `source TAB target` lines
    dev: Path
    out: Path  # the checkpoint folder to write
    config: ModelConfig  # the features of the model; the vocabulary sizes are the most pieces to learn
    pieces: PieceModel  # how the vocabularies are learned
    settings: TrainSettings  # how to train
    device: str = "auto"  # "cpu", "cuda" or "auto"
    # A checkpoint folder with the initial vocabularies and parameters, or None. Its config replaces `config`, except
    # for dropout.
    start_from: Path | None = None
    resume: bool = False  # resume from the last state of an earlier call with the same job
    force: bool = False  # replace a checkpoint in `out` instead of resuming its training
    snapshots: int = 0  # how many to take of the model while it learns; 0 for none
    log: str | None = None  # "tensorboard" or "trackio": write scalars for it
    command: str = ""  # the command line, for the card
    # What the card says besides what is measured here (title, languages, data, licence, examples).
    card: dict[str, object]


@dataclass(frozen=True)
class _Hashes:
    """SHA-256 of a training's files at its start."""

    train: str
    dev: str
    start: str | None


def train(job: TrainingJob) -> list[EpochRow]:
    """Run a job to its end; the folder `job.out` has the best epoch by dev BLEU, or of a leak by dev loss.

    Returns one row per epoch. A `DataError` if a file cannot be read or written, no pair fits, there is nothing to
    resume, or no such device; a `CheckpointError` if the initial checkpoint is missing or damaged, or `out` cannot be
    written; a `TokenizerError` if splits should be sampled from a vocabulary that has only one.
    """
    keep_freed_memory()
    if job.start_from is not None and job.start_from.resolve() == job.out.resolve():
        raise DataError(
            "{out}: training starts from the checkpoint in this folder, so its output must go to another folder.",
            out=str(job.out),
        )
    again = was_restarted()  # the files there are its own
    with started(job.device) as processes:
        place = claimed(job.out, resume=job.resume, force=job.force or again)
        with processes.first_in(place):
            return _train(job, processes, again=again)


def _train(job: TrainingJob, processes: Processes, *, again: bool) -> list[EpochRow]:
    if job.settings.shard and not processes.together:
        raise DataError("--shard: shares a model between processes; start several with --processes or torchrun.")
    settings = replace(job.settings, precision=precision_on(processes.device, job.settings))
    pairs, dev_pairs, start, hashes = processes.agreed(lambda: _read(job))
    if len(set(processes.gathered([hashes]))) > 1:
        raise DataError("{file}: another process reads a different file of this name.", file=str(job.train))
    if start is not None:
        dropouts = {name: getattr(job.config, name) for name in DROPOUTS}
        job = replace(job, config=replace(start.config, **dropouts))
    identity, numbers = _identity(job, hashes), _numbers(settings, processes)
    state = processes.from_first(lambda: _state(job, identity, again=again))
    tokenizers = processes.from_first(
        lambda: _vocabularies(job, pairs) if state is None else _stored_vocabularies(state, job)
    )
    src, tgt = Tokenizer(tokenizers[0]), Tokenizer(tokenizers[-1])
    config = replace(job.config, src_vocab_size=src.size, tgt_vocab_size=tgt.size)
    checkpointing.check_snapshots(job.snapshots, config)
    dev_pairs = [pair for pair in dev_pairs if encode_pairs([pair], src, tgt, config)]
    examples, dev = encode_pairs(pairs, src, tgt, config), encode_pairs(dev_pairs, src, tgt, config)
    for path, found in ((job.train, examples), (job.dev, dev)):
        if not found:
            raise _too_long(path, config)
    log.info("%d of %d training pairs fit into %d tokens", len(examples), len(pairs), config.max_len)

    draw = _sampled(job, pairs, src, tgt, config) if settings.sampling else lambda epoch: examples
    drawn = hiding(draw, src, config, seed=settings.seed)
    batches = Batches(drawn, batch_tokens=settings.batch_tokens, seed=settings.seed)
    trainer = _trainer(config, batches, settings, processes, None if start is None else start.model)
    if state is not None:
        _go_on(job, trainer, state, numbers)
    keeper = Keeper(
        trainer=trainer,
        out=job.out,
        dev=dev,
        references=[target for _, target in dev_pairs],
        tokenizers=tokenizers,
        job=identity,
        numbers=numbers,
        training=_told(job, hashes) | {"longest": max(n_source(one, config) for one in examples)},
        scored={"file": job.dev.name, "sha256": hashes.dev},
        card=job.card,
        snapshots=job.snapshots,
        log=job.log,
    )
    _run_epochs(trainer, keeper, anew=state is None)
    return trainer.rows


def _too_long(file: Path, config: ModelConfig) -> DataError:
    return DataError(
        "{file}: every pair has more than {most} tokens on at least one side; raise --max-len.",
        file=str(file),
        most=config.max_len,
    )


def _sampled(
    job: TrainingJob, pairs: Sequence[Pair], src: Tokenizer, tgt: Tokenizer, config: ModelConfig
) -> Callable[[int], list[Example]]:
    """The pairs of an epoch, each split into pieces at random."""

    def draw(epoch: int) -> list[Example]:
        seed = job.settings.seed * 100_003 + epoch
        drawn = sample_pairs(pairs, src, tgt, config, alpha=job.settings.sampling, seed=seed)
        if not drawn:
            raise _too_long(job.train, config)
        return drawn

    return draw


def _run_epochs(trainer: Trainer, keeper: Keeper, *, anew: bool) -> None:
    keeper.begin(anew=anew)
    while not trainer.finished:
        trainer.run_epoch(keeper.after_step)
        keeper.after_epoch(trainer.end_epoch(keeper.measure))
    keeper.end()


def _read(job: TrainingJob) -> tuple[list[Pair], list[Pair], Checkpoint | None, _Hashes]:
    start = None if job.start_from is None else load(job.start_from)
    config = job.config if start is None else start.config
    pairs, dev_pairs, start_hash = read_pairs(job.train, config), read_pairs(job.dev, config), None
    if start is not None:
        whole = start.folder / WEIGHTS  # a snapshot has none of its own
        start_hash = file_sha256(whole) if start.name == start.folder.resolve().name else start.content_hash
    return pairs, dev_pairs, start, _Hashes(file_sha256(job.train), file_sha256(job.dev), start_hash)


def _state(job: TrainingJob, identity: Mapping[str, str], *, again: bool) -> dict[str, object] | None:
    """The state to resume from, if requested, or if torchrun restarted the processes."""
    if again and not job.resume:
        try:
            return read_state(job.out, identity) if has_state(job.out) else None
        except DataError as error:
            log.warning("%s", error)
            return None
    return read_state(job.out, identity) if job.resume else None


def _go_on(job: TrainingJob, trainer: Trainer, state: Mapping[str, object], numbers: Mapping[str, str]) -> None:
    try:
        trainer.load_state(state)
    except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:  # other names or shapes
        raise _of_another_version(job, error) from None
    if trainer.rows and not trainer.processes.from_first(lambda: (job.out / CONFIG).exists()):
        # The state beside the folder holds the last epoch only; the best one so far is the folder itself.
        raise DataError(
            "{out}: this folder is gone, and with it the best epoch so far. Put the folder back, or leave out "
            "--resume to start over.",
            out=str(job.out),
        )
    if not trainer.processes.first:
        return
    print(f"going on after step {trainer.place.step:,}")
    if state.get("numbers") != numbers:
        print(
            "The processes, the device or the precision are not those of before, so the result will not be equal "
            "to the last bit to that of an undisturbed training."
        )


def _told(job: TrainingJob, hashes: _Hashes) -> dict[str, object]:
    """The card's record of the training, without its progress."""
    start = {}
    if job.start_from is not None:
        start = {"start_from": {"folder": job.start_from.resolve().name, "sha256": hashes.start}}
    files = {"command": job.command, "file": job.train.name, "sha256": hashes.train}
    return {**files, **start, "smoothing": job.settings.smoothing}


def _of_another_version(job: TrainingJob, error: Exception) -> DataError:
    """The error for an intact state that does not fit this program or this job."""
    problem = error.sentence if isinstance(error, ClauseError) else say("its structure is different")
    return DataError(
        "{out}: its training state is from another version of this program ({problem}); leave out --resume to "
        "start over, or use --start-from with its checkpoint.",
        out=job.out.name,
        problem=problem,
    )


def _vocabularies(job: TrainingJob, pairs: Sequence[Pair]) -> tuple[bytes, ...]:
    if job.start_from is not None:
        folder, _ = snapshots.meant(job.start_from)
        if (folder / VOCABULARY).exists():
            raise DataError(
                "{folder}: its tokenizer comes from another library; training can start only from a checkpoint "
                "that contains its SentencePiece models.",
                folder=folder.name,
            )
        names = TOKENIZER_NAMES[1 if job.config.shared_vocab else 2]
        return tuple((folder / name).read_bytes() for name in names)
    sources = [normalise(source, job.config.normalisation) for source, _ in pairs]
    targets = [target for _, target in pairs]
    if job.config.shared_vocab:
        texts, fills = sources + list(filter(None, targets)), job.config.mlm_head
        return (learn_vocabulary(texts, size=job.config.src_vocab_size, kind=job.pieces, with_mask=fills),)
    return (
        learn_vocabulary(sources, size=job.config.src_vocab_size, kind=job.pieces),
        learn_vocabulary(targets, size=job.config.tgt_vocab_size, kind=job.pieces),
    )


def _stored_vocabularies(state: Mapping[str, object], job: TrainingJob) -> tuple[bytes, ...]:
    """The vocabularies of a state, checked before SentencePiece reads them, as those of a checkpoint."""
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


def _trainer(
    config: ModelConfig, batches: Batches, settings: TrainSettings, processes: Processes, start: Transformer | None
) -> Trainer:
    torch.manual_seed(settings.seed)
    model = Transformer(config)
    if start is not None:
        model.load_state_dict(start.state_dict())
    if processes.first:
        several = f" in {processes.count} processes" if processes.count > 1 else ""
        print(f"{config.count_parameters():,} parameters on {processes.device}{several}, {settings.precision}")
    return Trainer(model.to(processes.device), batches, settings, processes)


def _identity(job: TrainingJob, hashes: _Hashes) -> dict[str, str]:
    """What must not change for a training to resume; its length may change."""
    settings = asdict(job.settings)
    for name in (*NOT_LEARNED, *ROUNDED, "schedule"):
        del settings[name]
    files = {"training file": hashes.train[:12], "dev file": hashes.dev[:12]}
    if hashes.start is not None:
        files["parameters to start from"] = hashes.start[:12]
    how = {"pieces": job.pieces, "schedule of the rate": SCHEDULES[job.settings.schedule]}
    return {name: str(value) for name, value in {**asdict(job.config), **settings, **how, **files}.items()}


def _numbers(settings: TrainSettings, processes: Processes) -> dict[str, str]:
    """What decides the last bits of a training's numbers, beyond `_identity`."""
    how = {"processes": processes.count, "device": processes.device.type}
    return {name: str(value) for name, value in {**how, **{n: getattr(settings, n) for n in ROUNDED}}.items()}


def learn_vocabulary(
    texts: Sequence[str], *, size: int, kind: PieceModel = "unigram", with_mask: bool = False
) -> bytes:
    """Learn pieces from sentences: the bytes of a SentencePiece model.

    `size` is the most pieces, including special ones; a small text may give fewer. "unigram" and "bpe" learn parts of
    words; "char" takes single characters, and leaves spaces alone. Padding, unknown, start and end are the ids 0, 1, 2
    and 3; for an encoder-only model 4 is the mask piece, which may also be typed. A `DataError` if SentencePiece fails.
    """
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.Train(
            sentence_iterator=iter(texts),
            model_writer=model,
            model_type=kind,
            vocab_size=size,
            hard_vocab_limit=False,
            # Chinese has thousands of rare characters: the rarest 0.05 % become the unknown piece.
            character_coverage=1.0 if kind == "char" else 0.9995,
            add_dummy_prefix=kind != "char",
            split_digits=True,
            pad_id=0,
            unk_id=1,
            bos_id=2,
            eos_id=3,
            user_defined_symbols=list(MASK_PIECES[:1]) if with_mask else [],
            num_threads=1,  # the result depends on the number of threads
            minloglevel=2,
        )
    except (RuntimeError, OSError) as error:
        raise DataError(
            say_n(
                "no vocabulary of {n} token could be learned: {reason}",
                "no vocabulary of {n} tokens could be learned: {reason}",
                size,
                reason=str(error)[:200],
            )
        ) from None
    return model.getvalue()


MOST_CARD = card.MAX_BYTES // 4  # of --card; written with indents and with what training adds it is larger


def read_card(path: Path | None) -> dict[str, object]:
    """What the file given as --card says; a `DataError` where loading the checkpoint would leave some of it out."""
    if path is None:
        return {}
    content = untrusted_folder.read_start(path, MOST_CARD + 1)
    if len(content) > MOST_CARD:
        raise DataError("{file}: is longer than {most:,} bytes; shorten it.", file=str(path), most=MOST_CARD)
    _, problems = card.read_card(content)
    if problems:
        raise DataError("{file}: cannot be used as a checkpoint's card. {problem}", file=str(path), problem=problems[0])
    given: dict[str, object] = strictjson.parse(content)
    return given
