"""The parameters themselves: values that are no numbers, tensors that hold nothing, or what nobody trained.

What they hold is looked at tensor by tensor, in 32 bits, so that a large model needs no more memory than its largest
tensor once more. Only what is the same in every kind of model is called a fault here; what the tensors do is tested
elsewhere. Tables beside each other are looked at in `tables`.

Many programs draw all matrices of a layer with one deviation, such as 0.02. Training gives each its own, so a layer
in which all deviations are still that one, up to the chance of drawing, was not trained. That they are equal is not
enough: in a small model training may bring them to one value, by chance.

What attention computes of queries and keys is q . k alone, so training changes both by about as much: the gradient
flow keeps W_Q W_Q^T - W_K W_K^T as it is (Arora et al. (2018), "On the Optimization of Deep Networks", theorem 1, for
two linear layers after each other). Where one is much larger, something was added to it or it was scaled.

Source: Roy and Vetterli, "The effective rank" (2007), for the spread of singular values; Glorot and Bengio (2010) and
He et al. (2015) for the uniform distributions that untrained matrices are drawn from.

Knows nothing of Streamlit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from transformer.analysis.spectra import effective_number
from transformer.doctor.findings import MOST_PLACES, Measured, Shown, not_applicable, well
from transformer.doctor.patient import Patient, Test
from transformer.doctor.read_rows import Row
from transformer.model.tap import NO_TAP, Tap
from transformer.runs.finite import first_site
from words import Sentence, say, say_n


@torch.inference_mode()
def finite(patient: Patient) -> Measured:
    """NaN and infinite values: among the parameters, and in what is computed of the first sentence."""
    damaged: dict[str, int] = {}
    for name, parameter in patient.model.named_parameters():
        patient.pause()
        if n := int((~parameter.isfinite()).sum()):
            damaged[name] = n
    row = patient.rows[0]
    site = _first_site(patient, row)
    n = sum(damaged.values())
    shown = Shown(page="inside", source=row.text)
    why = say("A single one spreads to everything that is computed with it.")
    if not n and site is None:
        said = say("All parameters are finite, and so is all that is computed of a sentence.")
        return well(said, 0, 0, why, shown=shown)
    if n:
        said = say_n(
            "{n:,} parameter is NaN or infinite, first in {where}.",
            "{n:,} parameters are NaN or infinite, first in {where}.",
            n,
            where=next(iter(damaged)),
        )
        causes = say(
            "Training diverged (learning rate too high, no warm-up, gradients not clipped, float16 without a "
            "scaler), or a value above 65,504 was saved as float16. Go back to an earlier checkpoint; nothing "
            "repairs this one."
        )
    else:
        said = say("All parameters are finite, but not what is computed of a sentence.")
        causes = say(
            "Parameters are so large that a product overflows, or a row may attend to nothing at all: its softmax is "
            "0/0. Look at the first site below, and at the mask before it."
        )
    return Measured(
        verdict="broken",
        number=n,
        threshold=0,
        why=why,
        said=said,
        meaning=say("What the model computes is not a number from the first site below on, so it can write nothing.")
        if site
        else say("Sentences with the pieces of these rows become NaN; others are computed as if nothing were wrong."),
        causes=causes,
        places=(*(list(damaged)[: MOST_PLACES - 1]), *([site] if site else [])),
        shown=shown,
    )


def _first_site(patient: Patient, row: Row) -> str | None:
    """Where a pass first computes what is not finite, if it does."""
    src, tgt = torch.tensor([row.source]), torch.tensor([row.target])

    def made(tap: Tap) -> object:
        model = patient.model
        return model(src, tgt, tap=tap) if model.anatomy.gives_logits else model.encode(src, tap=tap)

    return first_site(made, tap=NO_TAP)


LARGE = 256  # values that a matrix has at least for its statistics to say something
SAMPLE = 512  # rows and columns of which singular values are computed
UNIFORM = 1.8
"""Largest value over root mean square. Uniform values give 1.73 at most (the root of 3), but for the chance in their
mean; the matrices of nine healthy models from 2.10 up."""
ALIKE = 0.9
"""Length of the mean of rows of length 1: about the root of 1 / rows where they were drawn, 1 where all are alike."""
DIRECTIONS = 2.0
"""Effective rank. The matrices of nine healthy models: from 10 of 32 up."""
HALF_MAX = 65_504.0
NO_GAIN = 1e-3  # of the median


def each(patient: Patient) -> Iterator[tuple[str, Tensor]]:
    """The tensors whose values are all finite: what is in the others is said by a test of its own."""
    for name, parameter in patient.model.named_parameters():
        patient.pause()
        if bool(parameter.isfinite().all()):
            yield name, parameter.detach()


def _matrices(patient: Patient) -> Iterator[tuple[str, Tensor]]:
    """What is multiplied by, with the tables, where they are large enough to say something of them."""
    return ((name, one) for name, one in each(patient) if one.dim() == 2 and one.numel() >= LARGE)


def verdict_on(
    bad: list[str],
    *,
    number: float,
    threshold: float,
    why: Sentence,
    well: Sentence,
    said: Callable[[int, str], Sentence],
    meaning: Sentence,
    causes: Sentence,
    broken: bool = True,
) -> Measured:
    """The finding about tensors of which some are bad."""
    if not bad:
        shown = Shown(page="doctor", panel="parameters")
        return Measured(verdict="well", number=number, threshold=threshold, why=why, said=well, shown=shown)
    return Measured(
        verdict="broken" if broken else "look",
        number=number,
        threshold=threshold,
        why=why,
        said=said(len(bad), bad[0]),
        meaning=meaning,
        causes=causes,
        places=tuple(bad[:MOST_PLACES]),
        shown=Shown(page="doctor", panel="parameters", tensor=bad[0]),
    )


def constant(patient: Patient) -> Measured:
    """Matrices and tables in which all values are equal, such as 0."""
    bad = [name for name, one in _matrices(patient) if bool((one == one[0, 0]).all())]
    return verdict_on(
        bad,
        number=len(bad),
        threshold=0,
        why=say("Training moves every value of a matrix by its own amount, so they are never all equal."),
        well=say("No matrix is constant."),
        said=lambda n, first: say_n(
            "In {n} matrix all values are equal: {first}.",
            "In {n} matrices all values are equal, first in {first}.",
            n,
            first=first,
        ),
        meaning=say("What is multiplied by such a matrix says nothing any more: zeros cut a part of the model off."),
        causes=say(
            "The tensor was not in the file that was converted, or under another name, so that what it was made with "
            "(`torch.zeros`, `torch.ones`) was left; or it was pruned. Compare its name with the original's."
        ),
    )


def initial(patient: Patient) -> Measured:
    """Matrices that are still as they were drawn, from a uniform distribution; drawn rows have no direction alike."""
    found = {}
    for name, one in _matrices(patient):
        values = one.float()
        size = float(values.pow(2).mean().sqrt())
        if size > 0 and float(normalize(values, dim=1).mean(0).norm()) < ALIKE:
            found[name] = float(values.abs().max()) / size
    if not found:
        return not_applicable(say("All matrices of this model are too small to tell."))
    bad = [name for name, ratio in found.items() if ratio < UNIFORM]
    return verdict_on(
        bad,
        number=min(found.values()),
        threshold=UNIFORM,
        why=say(
            "In a matrix as `nn.Linear` draws it no value is above 1.73 times the root mean square; in trained ones "
            "the largest is 2.1 times and more. (Matrices that were drawn from a normal distribution look like "
            "trained ones.)"
        ),
        well=say("No matrix is still as it was drawn, as far as values tell."),
        said=lambda n, first: say_n(
            "{n} matrix is as it was drawn before the training: {first}.",
            "{n} matrices are as they were drawn before the training, first {first}.",
            n,
            first=first,
        ),
        meaning=say("These matrices are noise, and what they compute is, too."),
        causes=say(
            "Their names did not match when weights were loaded with `strict=False` (transformers then says that "
            "they are newly initialized), they got no gradient (frozen, not used, not handed to the optimizer; in an "
            "encoder: a decoder that sees what it has to predict needs no source), or this checkpoint was saved "
            "before the training. Look at what was missing when it was loaded."
        ),
    )


def rank(patient: Patient) -> Measured:
    """Spread of the singular values of what is multiplied by."""
    # In a table rows are looked up: of embeddings, positions or token types.
    found = {name: _effective_rank(one) for name, one in _matrices(patient) if not name.endswith("table")}
    found = {name: value for name, value in found.items() if value > 0}
    if not found:
        return not_applicable(say("All matrices of this model are too small to tell."))
    bad = [name for name, value in found.items() if value < DIRECTIONS]
    least = min(found.values())
    return verdict_on(
        bad,
        number=least,
        threshold=DIRECTIONS,
        why=say(
            "The effective rank is the exponential of the entropy of the shares that singular values have; with "
            "n equal ones it is n. In healthy models it is a third of the width and more."
        ),
        well=say(
            "Singular values are spread: every matrix has an effective rank of {least:.3g} or more.", least=least
        ),
        said=lambda n, first: say_n(
            "{n} matrix has nearly one direction: {first}.",
            "{n} matrices have nearly one direction, first {first}.",
            n,
            first=first,
        ),
        meaning=say(
            "Whatever goes into these matrices comes out on one line: one number is all that they let through."
        ),
        causes=say(
            "Training collapsed (weight decay far too strong, a learning rate that was too high for a while), or the "
            "matrix was compressed to a low rank on purpose."
        ),
        broken=False,
    )


@torch.inference_mode()
def _effective_rank(matrix: Tensor) -> float:
    """Of evenly spaced rows and columns, 1 to as many as there are; 0 for a matrix of zeros."""
    rows, columns = (torch.arange(min(n, SAMPLE)) * n // min(n, SAMPLE) for n in matrix.shape)
    part = matrix[rows][:, columns].double()
    part = part if part.size(0) <= part.size(1) else part.T
    energy = torch.linalg.eigvalsh(part @ part.T).clamp_min(0)  # squares of the singular values
    return effective_number(energy.numpy()) if float(energy.sum()) > 0 else 0.0


def gains(patient: Patient) -> Measured:
    """Gains of norms that are 0."""
    found: dict[str, float] = {}
    for name, one in each(patient):
        if one.dim() == 1 and "norm" in name and name.endswith("weight"):
            size = one.float().abs()
            found[name] = float((size <= NO_GAIN * size.median()).float().mean())
    if not found:
        return not_applicable(say("The norms of this model have no gains, or it has no norms."))
    bad = [name for name, share in found.items() if share > 0.5]
    return verdict_on(
        bad,
        number=max(found.values()),
        threshold=0.5,
        why=say("Large models switch single dimensions off; no healthy one switches off most of a norm's."),
        well=say("The norms let most dimensions through."),
        said=lambda n, first: say_n(
            "{n} norm has a gain of 0 in most dimensions: {first}.",
            "{n} norms have a gain of 0 in most dimensions, first {first}.",
            n,
            first=first,
        ),
        meaning=say("What comes after such a norm sees almost nothing of the stream."),
        causes=say(
            "Gains that are stored as their distance from 1 (Gemma) were taken for the gains themselves; weight "
            "decay was applied to norms; or the tensor was missing and zeros were left."
        ),
    )


def precision(patient: Patient) -> Measured:
    """Whether the values fit into 16 bits, in which checkpoints are saved, and how many are kept so."""
    most, where, n, narrow = 0.0, "", 0, 0
    for name, one in each(patient):
        n += one.numel()
        narrow += one.numel() * (one.element_size() < 4)
        largest = float(one.abs().max())
        most, where = max((most, where), (largest, name))
    why = say("65,504 is the largest number that float16 holds; what is larger is saved as infinite.")
    shown = Shown(page="doctor", panel="parameters", tensor=where)
    if not most > HALF_MAX:
        said = say(
            "The largest value is {most:.3g}, in {where}; {share:.0%} of all values are kept in 16 bits.",
            most=most,
            where=where,
            share=narrow / max(1, n),
        )
        return well(said, most, HALF_MAX, why, shown=shown)
    return Measured(
        verdict="look",
        number=most,
        threshold=HALF_MAX,
        why=why,
        said=say("The largest value is {most:.3g}, in {where}.", most=most, where=where),
        meaning=say("Saved in float16 this value becomes infinite, and the model writes nothing any more."),
        causes=say(
            "Training ran in bfloat16 or float32 and let values grow: no weight decay, no gradient clipping, or a "
            "scale that was multiplied into the weights. Save it in float32 or bfloat16."
        ),
        places=(where,),
        shown=shown,
    )


DRAWN = 4096  # values of a matrix, whose deviation chance then moves by 1.1 %
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
    matrices = [one.detach().float() for one in layer.parameters() if one.dim() == 2 and one.numel() >= DRAWN]
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
    Test("finite", "weights", say("Every value is a number"), finite),
    Test("precision", "weights", say("Values fit into 16 bits"), precision),
    Test("constant", "weights", say("No matrix is constant"), constant),
    Test("initial", "weights", say("Every matrix was trained"), initial),
    Test("rank", "weights", say("Singular values are spread"), rank),
    Test("norm_gains", "weights", say("Norms let the stream through"), gains),
    Test("drawn_layers", "weights", say("Every layer was trained"), layers),
    Test("balance", "weights", say("Queries and keys are of one size"), balance),
)
