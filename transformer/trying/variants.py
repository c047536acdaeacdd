"""The same weights under another config: most of what a file cannot say changes what is computed, not what is stored.

A variant shares every parameter with the model that it is made of, so that hundreds can be tried in the memory of
one.
"""

import copy
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import torch
from torch import Tensor

from transformer.errors import ConfigError
from transformer.model.config import ModelConfig
from transformer.model.config_ids import Ids
from transformer.model.positions import FixedPositions
from transformer.model.transformer import Transformer
from transformer.runs.runnable import Scorable
from transformer.text.tokenizer import AnyTokenizer

Answers = Mapping[str, Any]
KEPT = 4  # models that are kept for others that differ in ids alone
_IDS = tuple(one.name for one in fields(Ids))


@dataclass(frozen=True)
class Variant:
    """A model that shares its parameters with others."""

    model: Transformer
    src_tokenizer: AnyTokenizer
    tgt_tokenizer: AnyTokenizer


@dataclass(frozen=True)
class Variants:
    """The models that can be made of one."""

    base: Scorable  # whose parameters and tokenizers they share
    # The last that were made, by their configs with the ids of the base.
    kept: "OrderedDict[ModelConfig, Transformer]" = field(default_factory=OrderedDict)

    def get(self, answers: Answers) -> Variant | None:
        """The model with these values of fields of the config; None if it has other parameters."""
        config = with_answers(self.base.model.config, answers)
        alike = replace(config, **{name: getattr(self.base.model.config, name) for name in _IDS})
        if config.sinusoid_layout == "fairseq":  # its positions are counted from the padding id
            alike = config
        model = self.kept.get(alike) or _made(self.base.model, alike)
        if model is None:
            return None
        self.kept[alike] = model
        while len(self.kept) > KEPT:
            self.kept.popitem(last=False)
        twin = copy.copy(model)  # of the same layers: those know nothing of ids
        twin.config = config
        return Variant(twin, self.base.src_tokenizer, self.base.tgt_tokenizer)


def with_answers(config: ModelConfig, answers: Answers) -> ModelConfig:
    """A config with other values, and what follows from them derived anew; ConfigError if they contradict."""
    changes = dict(answers)
    if "n_heads" in changes:
        divided = config.d_head == config.d_model // config.n_heads
        changes = {"d_head": 0} | changes if divided else changes
        changes = {"n_kv_heads": 0} | changes if config.n_kv_heads == config.n_heads else changes
    if "bos_id" in changes and config.decoder_start_id == config.bos_id and "decoder_start_id" not in changes:
        if changes["bos_id"] is not None:
            changes["decoder_start_id"] = changes["bos_id"]
        elif config.n_encoder_layers:
            raise ConfigError("bos_id", "found null, but the decoder needs this id to start; enter an id.")
    return replace(config, **changes)


def _made(base: Transformer, config: ModelConfig) -> Transformer | None:
    with torch.device("meta"):  # shapes without values
        model = Transformer(config)
    state = dict(base.state_dict())
    if _shapes(model.state_dict()) != _shapes(state):
        return None
    model.load_state_dict(state, assign=True)
    for module in model.modules():
        if isinstance(module, FixedPositions):
            module.fill(model.device)  # a formula: no file holds it
    return model.requires_grad_(False).eval()


def _shapes(state: Mapping[str, Tensor]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in state.items()}
