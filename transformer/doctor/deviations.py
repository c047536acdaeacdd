"""How large the values of matrices are beside each other: what was drawn, and what was added, shows there.

Many programs draw all matrices of a layer with one deviation, such as 0.02. Training gives each its own, so a layer
in which all deviations are still that one, up to the chance of drawing, was not trained. That they are equal is not
enough: in a small model training may bring them to one value, by chance.

What attention computes of queries and keys is q . k alone, so training changes both by about as much: the gradient
flow keeps W_Q W_Q^T - W_K W_K^T as it is (Arora et al. (2018), "On the Optimization of Deep Networks", theorem 1, for
two linear layers after each other). Where one is much larger, something was added to it or it was scaled.

Knows nothing of Streamlit.
"""

from __future__ import annotations

import math

from torch import nn

from transformer.doctor.patient import Patient, Test
from transformer.doctor.report import MOST_PLACES, Measured, Shown, not_applicable, well
from transformer.doctor.tensors import verdict_on
from words import say, say_n

LARGE = 4096  # values of a matrix, whose deviation chance then moves by 1.1 %
FEWEST = 4  # matrices of a layer
USUAL = (0.01, 0.02)  # deviations that programs draw with; the root of 1 / d_model is another
ONE = 3.0
"""How far a layer's deviations are from a usual one, in units of chance: 1 as drawn, in healthy models 30 or more."""
APART = 1.4
"""In all healthy models that were tried deviations of W_K and W_Q are 0.97 to 1.02 times each other."""


def layers(patient: Patient) -> Measured:
    """Layers whose matrices all have a deviation that programs draw with."""
    found, usual = {}, (*USUAL, patient.config.d_model**-0.5)
    for one in patient.anatomy.stacks:
        for i, layer in enumerate(patient.model.stack(one.name).layers):
            patient.pause()
            sizes = _deviations(layer)
            if len(sizes) >= FEWEST and all(0 < size < math.inf for size, _ in sizes):
                found[f"{one.name}.layers.{i}"] = min(_distance(sizes, drawn) for drawn in usual)
    if not found:
        return not_applicable(say("All matrices of this model are too small to tell."))
    bad = [name for name, spread in found.items() if spread < ONE]
    return verdict_on(
        bad,
        number=min(found.values()),
        threshold=ONE,
        why=say(
            "How far the deviations of a layer's matrices are from one that programs draw with (0.01, 0.02, "
            "1/√d_model), in units of what chance makes of it: 1 in a layer as it was drawn; in healthy models 30 "
            "and more."
        ),
        well=say("In no layer do all matrices have a deviation that programs draw with."),
        said=lambda n, first: say_n(
            "In {n} layer all matrices have the same deviation: {first}.",
            "In {n} layers all matrices have the same deviation, first {first}.",
            n,
            first=first,
        ),
        meaning=say("Such a layer is as programs draw it before a training: what it computes is noise."),
        causes=say(
            "The layer was not in the file, or under other names, and was loaded with `strict=False`; it was frozen "
            "or not handed to the optimizer; or the model was trained for a few steps only."
        ),
        broken=False,
    )


def _deviations(layer: nn.Module) -> list[tuple[float, int]]:
    """Of its large matrices, each with how many values it has."""
    matrices = [one.detach().float() for one in layer.parameters() if one.dim() == 2 and one.numel() >= LARGE]
    return [(float(one.pow(2).mean().sqrt()), one.numel()) for one in matrices]


def _distance(sizes: list[tuple[float, int]], drawn: float) -> float:
    """Chi-square of their logarithms, a degree of freedom; 1 / (2 n) is the variance of one of n values."""
    return sum(math.log(size / drawn) ** 2 * 2 * n for size, n in sizes) / len(sizes)


def balance(patient: Patient) -> Measured:
    """Whether W_Q and W_K are of one size."""
    if patient.config.score_scale is not None or patient.config.qk_norm:
        return not_applicable(say("This model scales its scores in a way of its own, so W_Q and W_K may differ."))
    found = {}
    for kind in patient.anatomy.kinds:
        for layer, attention in enumerate(patient.model.attentions(kind)):
            patient.pause()
            query, key = (float(one.weight.detach().float().std()) for one in (attention.q_proj, attention.k_proj))
            if not (0 < query < math.inf and 0 < key < math.inf):
                continue
            found[f"{kind}.{layer + 1}"] = key / query
    if not found:
        return not_applicable(say("This model has no attention whose matrices could be compared."))
    mean = math.exp(sum(map(math.log, found.values())) / len(found))
    said = say("W_K is {times:.2f} times as large as W_Q, on average over {n} attentions.", times=mean, n=len(found))
    why = say(
        "Ratio of the deviations. Both are drawn alike and change alike in training: 0.97 to 1.02 in all healthy "
        "models that were tried."
    )
    if 1 / APART < mean < APART:
        return well(said, max(mean, 1 / mean), APART, why)
    return Measured(
        verdict="look",
        number=max(mean, 1 / mean),
        threshold=APART,
        said=said,
        why=why,
        meaning=say("Something was added to one of the two, or it was scaled: scores are not those of the training."),
        causes=say(
            "Noise (values that were quantised too coarsely, or noise that was added), the scale of the scores "
            "multiplied into W_Q or W_K while the file was converted, or first values that were drawn otherwise for "
            "the two (as in T5). Compare the file with its source."
        ),
        places=tuple(name for name, times in found.items() if not 1 / APART < times < APART)[:MOST_PLACES],
        shown=Shown(page="doctor", panel="parameters"),
    )


TESTS: tuple[Test, ...] = (
    Test("drawn_layers", "weights", say("Every layer was trained"), layers),
    Test("balance", "weights", say("Queries and keys are of one size"), balance),
)
