"""Readers of a model in memory (own, Hugging Face, torch layers), tokenizers; `from_memory`, `show` for notebooks.

Our own Transformer keeps its class, so errors of a subclass are found. Models of Hugging Face's transformers, of
torch's layers or of a tutorial are read as `extensions.importers.library` reads their files; their modules often add
what such files leave out: the number of heads, the place of the norms, the activation.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from glassformer.extensions.importers.library import import_inputs
from glassformer.extensions.importers.library.import_inputs import NOTHING, ImportInputs, ImportRequest
from glassformer.extensions.importers.library.opening import import_opened, made, obstacle
from glassformer.extensions.weight_files import weights
from transformer.checkpoint.card import Card
from transformer.checkpoint.consistency import Places, Shapes, check_shapes, digest_of, fill, hash_of
from transformer.checkpoint.load import CONFIG, Checkpoint
from transformer.checkpoint.opening import NO_ANSWERS, load
from transformer.checkpoint.parameter_layout import NO_HALVES, Halves
from transformer.errors import CheckpointError, shown
from transformer.model.transformer import Transformer
from transformer.runs.trace import NotebookDisplay
from transformer.text.tokenizer import AnyTokenizer

Read = Callable[[str], Checkpoint]
"""Gives the model as it is now, under a name."""
NORMS: Mapping[object, str] = {True: "pre", False: "post"}
ACTIVATIONS: Mapping[object, str] = {
    F.relu: "relu",
    F.gelu: "gelu",
    F.silu: "silu",
    nn.ReLU: "relu",
    nn.GELU: "gelu",
    nn.SiLU: "silu",
}


def reader(model: object, tokenizer: object, answers: Mapping[str, Any]) -> Read:
    """A function that reads a model repeatedly; a `CheckpointError` says why it cannot be read.

    Args:
        model: Our Transformer, a model of transformers, a module with the names of tutorials around torch's layers,
            or a function that takes a name and makes a checkpoint.
        tokenizer: See `watching.watch`.
        answers: What neither the model nor its tokenizer says, by fields of config.json.
    """
    model = bare(model)
    if isinstance(model, Transformer):
        return partial(_ours, model, _opened(tokenizer, model))
    if isinstance(model, nn.Module) and hasattr(getattr(model, "config", None), "model_type"):
        return partial(_of_huggingface, model, tokenizer, answers)
    if isinstance(model, nn.Module):
        return partial(_of_tutorial, model, tokenizer, {**told_by(model), **answers})
    if callable(model):
        return model
    raise CheckpointError(
        "This model cannot be examined: found {found}, expected a torch module, or a function that takes a name and "
        "returns a Checkpoint.",
        found=shown(type(model).__name__),
    )


def bare(model: object) -> object:
    """A model without what DistributedDataParallel or torch.compile put around it."""
    for name in ("_orig_mod", "module"):
        inner = getattr(model, name, None)
        if isinstance(model, nn.Module) and isinstance(inner, nn.Module) and len(list(model.children())) == 1:
            return bare(inner)
    return model


def told_by(model: nn.Module) -> dict[str, Any]:
    """Fields of the config that the modules of a model say themselves, if all agree."""
    found: dict[str, set[Any]] = {}
    for module in model.modules():
        how = getattr(module, "activation", None)
        function = ACTIVATIONS.get(type(how) if isinstance(how, nn.Module) else how) if callable(how) else None
        said = {
            "n_heads": getattr(module, "num_heads", None),
            "norm": NORMS.get(getattr(module, "norm_first", None)),
            "activation": "gelu_tanh" if getattr(how, "approximate", "none") == "tanh" else function,
            "norm_eps": module.eps if isinstance(module, nn.LayerNorm) and module.eps != 1e-5 else None,
            "pad_id": module.padding_idx if isinstance(module, nn.Embedding) else None,
        }
        for name, value in said.items():
            found.setdefault(name, set()).update({value} - {None})
    return {name: next(iter(values)) for name, values in found.items() if len(values) == 1}


@dataclass(frozen=True)
class _State:
    """The parameters of a model of ours, as they are now."""

    state: Mapping[str, Tensor]

    @property
    def shapes(self) -> Shapes:
        return {name: tuple(value.shape) for name, value in self.state.items()}

    @property
    def narrow(self) -> Halves:
        return NO_HALVES

    def write(self, places: Places) -> Iterator[str]:
        for name, place in places.items():
            place.copy_(self.state[name])
            yield name


def _ours(model: Transformer, tokenizers: tuple[AnyTokenizer, AnyTokenizer], name: str) -> Checkpoint:
    values = _State(dict(model.named_parameters()))
    check_shapes(model.config, values.shapes, label=name)
    filled = fill(model.config, values, label=name)
    filled.model.__class__ = type(model)  # what a class of the user's computes, by what it keeps
    vars(filled.model).update({key: value for key, value in vars(model).items() if key not in vars(filled.model)})
    digests = {tensor: digest_of(parameter) for tensor, parameter in filled.model.named_parameters()}
    return Checkpoint(
        name=name,
        folder=Path(name),
        config=model.config,
        model=filled.model,
        src_tokenizer=tokenizers[0],
        tgt_tokenizer=tokenizers[1],
        card=Card(),
        content_hash=hash_of({CONFIG: model.config.to_json().encode(), **digests}),
        warnings=filled.warnings,
    )


def _of_huggingface(model: Any, tokenizer: Any, answers: Mapping[str, Any], name: str) -> Checkpoint:
    bars = import_module("transformers.utils.logging")
    showing = bars.is_progress_bar_enabled()
    with TemporaryDirectory() as folder:
        bars.disable_progress_bar()
        try:
            model.save_pretrained(folder)
        finally:
            (bars.enable_progress_bar if showing else bars.disable_progress_bar)()
        if tokenizer is not None:
            tokenizer.save_pretrained(folder)
        found = load(Path(folder), answers=answers)
        return replace(found, name=name, card=replace(found.card, title=name))


def _of_tutorial(model: nn.Module, tokenizer: object, answers: Mapping[str, Any], name: str) -> Checkpoint:
    pair = _pair(tokenizer)
    own = all(isinstance(one, AnyTokenizer) for one in pair)
    with _given(() if own else pair) as given:
        now = weights.in_memory(model.state_dict(), label=type(model).__name__)
        imported = import_opened(now, ImportRequest(None, answers, given))
    if imported.content is None:
        raise obstacle(imported.report)
    found = replace(made(imported.content, Path(name)), name=name)
    return replace(found, src_tokenizer=pair[0], tgt_tokenizer=pair[-1]) if own and pair else found


def _opened(tokenizer: object, model: Transformer) -> tuple[AnyTokenizer, AnyTokenizer]:
    pair, config = _pair(tokenizer), model.config
    if pair and all(isinstance(one, AnyTokenizer) for one in pair):
        return pair[0], pair[-1]
    sizes = config.src_vocab_size, config.tgt_vocab_size
    with _given(pair) as given:
        special = [i for i in (config.pad_id, config.bos_id, config.eos_id) if i is not None]
        found = (
            import_inputs.opened(given, sizes, shared=config.shared_vocab)
            if given.has_tokenizer
            else import_inputs.without(sizes, special)
        )
    return found.source, found.target


def _pair(tokenizer: object) -> tuple[Any, ...]:
    """The tokenizers that were given: none, one for both sides, or one for each."""
    if tokenizer is None:
        return ()
    return tokenizer if isinstance(tokenizer, tuple) else (tokenizer,)


@contextmanager
def _given(pair: Sequence[Any]) -> Iterator[ImportInputs]:
    """Tokenizers as files: paths as they are, {"piece": id} and lists of pieces written to files of their own."""
    with TemporaryDirectory() as folder:
        paths = []
        for i, one in enumerate(pair):
            if isinstance(one, str | Path):
                paths.append(Path(one))
                continue
            try:
                table = dict(one) if isinstance(one, Mapping) else {piece: n for n, piece in enumerate(one)}
                content = json.dumps(table)
            except TypeError:
                raise CheckpointError(
                    "This tokenizer cannot be used: found {found}, expected a tokenizer's file, a table of tokens "
                    "and their ids, a list of tokens, or a tuple of two of these, for source and target.",
                    found=shown(type(one).__name__),
                ) from None
            paths.append(Path(folder) / f"tokenizer-{i}.json")
            paths[-1].write_text(content, encoding="utf-8")
        yield NOTHING if not paths else ImportInputs(pieces=paths[0]) if len(paths) == 1 else ImportInputs(*paths[:2])


def from_memory(
    model: object, tokenizer: object = None, *, answers: Mapping[str, Any] = NO_ANSWERS, name: str = ""
) -> Checkpoint:
    """A model that is in memory, as a checkpoint, with the parameters that it has now.

    Args:
        model: Our Transformer, a model of transformers, or a module with the names of tutorials or of torch's layers.
        tokenizer: One for both sides, or a pair of them; see `transformer.doctor.watch`.
        answers: What neither of the two says, by fields of config.json.
        name: What it is called; its class by default.

    Raises:
        CheckpointError: It is not understood, and the error says what is missing or unknown.
    """
    return reader(model, tokenizer, answers)(name or type(bare(model)).__name__)


def show(
    model: object,
    tokenizer: object,
    text: str,
    picture: str = "",
    *,
    answers: Mapping[str, Any] = NO_ANSWERS,
    **view: object,
) -> NotebookDisplay:
    """What a model in memory makes of a text, for the last line of a notebook's cell; see `Trace.show`.

    The other arguments and errors are those of `from_memory`.
    """
    checkpoint = from_memory(model, tokenizer, answers=answers)
    trace = checkpoint.run(text)
    return trace.show(picture or ("step" if trace.n_steps else "attention"), **view)
