"""A model that holds attention weights, sizes of norms and the activity of neurons, without the code under test.

It computes itself the linear map that the graph of a logit takes apart: the tests ask it for gradients
and for the effects of cuts, which have to be what the graph says.
"""

from copy import deepcopy
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from glassformer.extensions.effects.attribution.target import AttributionTarget
from transformer.model.taps import Recorder, Replacer, Rewirer


def hold(norm: Any, read: Tensor) -> None:
    """Let a norm divide from now on by what it divides by for this input."""
    if isinstance(norm, torch.nn.Identity):
        return
    size, beta = norm.size(read), 0.0 if norm.bias is None else norm.bias
    norm.forward = lambda x: norm.weight * (x - norm.centre(x)) / size + beta


def held_function(act: Any, gated: bool, read: Tensor) -> Any:
    """The non-linearity, with what it multiplies by as it is for this input."""
    if gated:
        gate = act(read)
        return lambda x: gate + 0 * x
    safe = torch.where(read.abs() < 1e-6, torch.full_like(read, -1e-4), read)
    ratio = act(safe) / safe
    return lambda x: ratio * x


def holding(asked: AttributionTarget) -> AttributionTarget:
    """The step of a copy of the model in which all of that is held."""
    recorder, model = Recorder(["*"]), deepcopy(asked.model)
    with torch.no_grad():
        asked.logits(tap=asked.tap.also(recorder))
    seen, settings = recorder.values, {}
    for stack in [one.name for one in model.anatomy.stacks]:
        module = model.stack(stack)
        if module.embedding.norm is not None:
            hold(module.embedding.norm, seen[f"{stack}.embedding.sum"])
        hold(module.final_norm, seen[f"{stack}.{len(module.layers) - 1}.output"])
        before = seen[f"{stack}.embedding.output"]
        for n, layer in enumerate(module.layers):
            start = before
            for part in model.anatomy.stack(stack).sublayers:
                place, around = f"{stack}.{n}.{part}", getattr(layer, f"{part}_residual")
                post = model.config.norm == "post"
                hold(
                    around.norm,
                    seen[f"{place}.residual"] if post else start if model.config.parallel_residual else before,
                )
                if around.output_norm is not None:
                    hold(around.output_norm, seen[f"{place}.output"])
                if part == "ffn":
                    act = held_function(layer.ffn.activation, model.config.gated, seen[f"{place}.pre_activation"])
                    settings[f"{place}.function"] = lambda _, act=act: act
                before = seen[f"{place}.norm" if post else f"{place}.residual"]
    if (head := model.mlm_head) is not None:
        hold(head.norm, seen["mlm_head.activation"])
        head.activation = held_function(head.activation, False, seen["mlm_head.pre_activation"])
    weights = {site: (lambda _, value=value: value) for site, value in seen.items() if site.endswith(".weights")}
    return replace(asked, model=model, tap=asked.tap.also(Rewirer(settings), Replacer(weights)))
