"""Doctor tests of parameters: NaN, 16-bit range, constant, untrained, rank, norm gains, W_Q against W_K, copies.

Tensors are read one by one, in 32 bits: a large model needs memory for its largest tensor once more. Faults are those
of every kind of model; what the tensors do is tested elsewhere, rows of tables in `feed_forward_tests`.

Many programs draw all matrices of a layer with one deviation, such as 0.02. Training gives each its own, so a layer in
which all deviations are still that one, up to chance, was not trained. Equal deviations alone are not enough: training
of a small model may reach one value by chance.

Attention reads queries and keys only by q . k, so training changes both by about as much: the gradient flow keeps W_Q
W_Q^T - W_K W_K^T as it is (Arora et al. (2018), "On the Optimization of Deep Networks", theorem 1, for two successive
linear layers). Where one is much larger, something was added to it or it was scaled.

Source: Roy and Vetterli, "The effective rank" (2007), for the spread of singular values; Glorot and Bengio (2010) and
He et al. (2015) for the uniform distributions that untrained matrices are drawn from.
"""

import math
import re
from collections.abc import Iterator
from functools import partial
from itertools import combinations
from typing import Final

import torch
from torch import Tensor

from glassformer.extensions.doctor.library.context import BELOW, DoctorTest, ExaminationContext, ParameterContext
from glassformer.extensions.doctor.library.findings import (
    MOST_PLACES,
    DoctorTestResult,
    NotTestable,
    PageTarget,
    Verdict,
    at_least,
    at_most,
)
from transformer.analysis.parameters import UNIFORM, is_unstructured, largest_of, spectrum, work_of
from transformer.i18n import Sentence, say, say_n
from transformer.model.taps import NO_TAP, Tap
from transformer.runs.recording_pass import first_site

LARGE = 256  # values that a matrix has at least for its statistics to say something
WORK = 1e11  # multiplications of singular values, about 20 seconds of a core
ADDED = ("positions.table", "types.table")
"""Tables whose rows are added: fixed ones, such as sinusoids, do as well as trained ones."""
DIRECTIONS = 2.0  # effective rank
HALF_MAX = 65_504.0
NO_GAIN = 1e-3  # of the median
MOST = 0.5  # of a norm's dimensions
DRAWN = 4096  # values of a matrix, whose deviation chance then moves by 1.1 %
FEWEST = 4  # matrices of a layer
USUAL = (0.01, 0.02)  # deviations that programs draw with; the root of 1 / d_model is another
ONE = 3.0
"""How far a layer's deviations are from a usual one, in units of chance: about 1 as drawn."""
APART = 1.4  # how many times each other the deviations of W_K and W_Q may be
COPY = 0.9  # mean cosine of the rows of two tables: about 0 of those that have nothing in common, 1 of copies
TABLES = ("src_table", "tgt_table", "output_table")

_LAYER = re.compile(r"(?:encoder|decoder)\.layers\.\d+(?=\.)")
_PROJECTION = re.compile(r"(encoder|decoder)\.layers\.(\d+)\.(self_attn|cross_attn)\.(q|k)_proj\.weight$")

_TOO_SMALL: Final = say("All matrices of this model are too small for this test.")

of_weights = partial(DoctorTest, "weights")


@of_weights(
    say("Every value is finite"),
    threshold=0,
    why=say("A single NaN or infinite value spreads to everything computed from it."),
    cause=BELOW,
)
@torch.inference_mode()
def finite(patient: ParameterContext) -> DoctorTestResult:
    """NaN and infinite values: among the parameters, and in what is computed of the first sentence."""
    damaged: dict[str, int] = {}
    for name, parameter in patient.tensors():
        patient.pause()
        if n := int((~parameter.isfinite()).sum()):
            damaged[name] = n
    whole = patient.whole
    site = None if whole is None else _first_site(whole)
    n, shown = sum(damaged.values()), None if whole is None else PageTarget(page="inside", source=whole.rows[0].text)
    if not n and site is None:
        said = say("All parameters are finite, and so is everything computed from a sentence.")
        said = said if whole else say("All parameters are finite.")
        return DoctorTestResult(verdict="well", number=0, said=said, shown=shown)
    return DoctorTestResult(
        verdict="broken",
        number=n,
        said=say_n(
            "{n:,} parameter is NaN or infinite, first in {where}.",
            "{n:,} parameters are NaN or infinite, first in {where}.",
            n,
            where=next(iter(damaged)),
        )
        if n
        else say("All parameters are finite, but some values computed from a sentence are not."),
        meaning=say(
            "The computation goes wrong at the last place listed. From there on, values are NaN or infinite, so "
            "the model cannot write anything."
        )
        if site
        else say(
            "A damaged value in an embedding table harms only sentences that use its row; anywhere else it harms every "
            "sentence."
        ),
        causes=say(
            "Training diverged (learning rate too high, no warm-up, gradients not clipped, float16 without a "
            "scaler), or a value above 65,504 was saved as float16. Go back to an earlier checkpoint; this one "
            "cannot be repaired."
        )
        if n
        else say(
            "Parameters are so large that a product overflows, or the mask of a row closes every token, so its "
            "softmax is 0/0. Look at the place listed and at the mask before it."
        ),
        places=(*(list(damaged)[: MOST_PLACES - 1]), *([site] if site else [])),
        shown=shown,
    )


def _first_site(patient: ExaminationContext) -> str | None:
    """Where a pass of the first row first computes what is not finite, if it does."""
    row = patient.rows[0]
    src, tgt = torch.tensor([row.source]), torch.tensor([row.target])

    def made(tap: Tap) -> object:
        model = patient.model
        return model(src, tgt, tap=tap) if model.anatomy.gives_logits else model.encode(src, tap=tap)

    return first_site(made, tap=NO_TAP)


def each(patient: ParameterContext) -> Iterator[tuple[str, Tensor]]:
    """The tensors whose values are all finite: what is in the others is said by a test of its own."""
    for name, parameter in patient.tensors():
        patient.pause()
        if bool(parameter.isfinite().all()):
            yield name, parameter.detach()


def _matrices(patient: ParameterContext) -> Iterator[tuple[str, Tensor]]:
    """What is multiplied by, with the tables of pieces, where they are large enough to say something of them."""
    large = ((name, one) for name, one in each(patient) if one.dim() == 2 and one.numel() >= LARGE)
    return ((name, one) for name, one in large if not name.endswith(ADDED))


def found_in(
    bad: list[str], number: float, *, said: Sentence, well: Sentence, fault: Verdict = "broken"
) -> DoctorTestResult:
    """What was found of tensors, some of which may be bad: `said` of those that are, or that all is well."""
    shown = PageTarget(page="doctor", panel="parameters", tensor=bad[0] if bad else None)
    if not bad:
        return DoctorTestResult(verdict="well", number=number, said=well, shown=shown)
    return DoctorTestResult(verdict=fault, number=number, said=said, places=tuple(bad), shown=shown)


@of_weights(
    say("Values fit into 16 bits"),
    threshold=HALF_MAX,
    why=say("The largest number that float16 holds is 65,504; anything larger is saved as infinity."),
    causes=say(
        "Values grew too large in bfloat16 or float32 training: there was no weight decay or no gradient clipping, "
        "or a scale was multiplied into the weights. Save the model in float32 or bfloat16."
    ),
)
def precision(patient: ParameterContext) -> DoctorTestResult:
    """Whether the values fit into 16 bits, in which checkpoints are saved, and how many of the file have them."""
    most, where, narrow = 0.0, "", patient.whole.checkpoint.narrow if patient.whole else None
    for name, one in each(patient):
        largest = float(one.abs().max())
        most, where = max((most, where), (largest, name))
    too_large = most > HALF_MAX
    said = (
        say("The largest value is {most:.3g}, in {where}.", most=most, where=where)
        if too_large or narrow is None
        else say(
            "The largest value is {most:.3g}, in {where}; in the file, {share:.0%} of all values have 16 bits.",
            most=most,
            where=where,
            share=narrow,
        )
    )
    return DoctorTestResult(
        verdict="look" if too_large else "well",
        number=most,
        said=said,
        places=(where,) if too_large else (),
        shown=PageTarget(page="doctor", panel="parameters", tensor=where),
    )


@of_weights(
    say("No matrix is constant"),
    threshold=0,
    why=say("Training changes each value of a matrix by a different amount, so the values are never all equal."),
    meaning=say(
        "Multiplying by a constant matrix loses nearly all information. If the constant is 0, that part of the "
        "model is cut off."
    ),
    causes=say(
        "The matrix was pruned, or its tensor was missing from the converted file or had a different name there, "
        "so it kept the values it was created with (`torch.zeros`, `torch.ones`). Compare its name with the one in "
        "the original file."
    ),
)
def constant(patient: ParameterContext) -> DoctorTestResult:
    """Matrices and tables in which all values are equal, such as 0."""
    bad = [name for name, one in _matrices(patient) if bool((one == one[0, 0]).all())]
    said = say_n(
        "In {n} matrix, all values are equal: {first}.",
        "In {n} matrices, all values are equal; the first is {first}.",
        len(bad),
        first=next(iter(bad), ""),
    )
    return found_in(bad, len(bad), said=said, well=say("No matrix is constant."))


@of_weights(
    say("Every matrix was trained"),
    threshold=UNIFORM,
    why=say(
        "In a matrix freshly initialised by `nn.Linear`, no value is above 1.73 times the root mean square. In "
        "the shipped checkpoints, the largest value of every matrix is at least {least:g} times that. "
        "(Matrices initialised from a normal distribution look like trained ones in this test.)",
        least=at_least("initial"),
    ),
    causes=say(
        "The names of these matrices did not match when weights were loaded with `strict=False` (transformers then "
        "reports them as newly initialized), the matrices got no gradient (they were frozen, not used, or not "
        "passed to the optimizer), or this checkpoint was saved before training. Encoder matrices also get no "
        "gradient if the decoder can see the tokens that it has to predict, because it then does not need the "
        "source. Look up which names were missing when the weights were loaded."
    ),
    of_wiring=True,
)
def initial(patient: ParameterContext) -> DoctorTestResult:
    """Matrices that are still as they were drawn, from a uniform distribution."""
    found = {name: found for name, one in _matrices(patient) if (found := largest_of(one)) is not None}
    if not found:
        raise NotTestable(_TOO_SMALL)
    bad = [name for name, ratio in found.items() if ratio < UNIFORM]
    said = say_n(
        "{n} of {whole} matrices still has its initial values: {first}.",
        "{n} of {whole} matrices still have their initial values; the first is {first}.",
        len(bad),
        whole=len(found),
        first=next(iter(bad), ""),
    )
    well = say("Judging by the values, no matrix is still as it was initialised.")
    return found_in(bad, min(found.values()), said=said, well=well)


@of_weights(
    say("Singular values are spread out"),
    threshold=DIRECTIONS,
    why=say(
        "Divide each singular value by the sum of all: the effective rank is e to the power of the entropy of these "
        "shares (Roy and Vetterli, 2007). If n singular values are equal and the rest are 0, the effective rank is "
        "n. In the shipped checkpoints, it is at least {least:g}.",
        least=at_least("rank"),
    ),
    causes=say(
        "Training collapsed (weight decay far too strong, or a learning rate that was too high for a while), or "
        "the matrix was compressed to a low rank on purpose."
    ),
)
def rank(patient: ParameterContext) -> DoctorTestResult:
    """Spread of the singular values of what is multiplied by: in a table, rows are looked up."""
    matrices = [pair for pair in _matrices(patient) if not pair[0].endswith("table") and bool(pair[1].any())]
    if not matrices:
        raise NotTestable(_TOO_SMALL)
    found, work = dict[str, float](), 0
    for name, one in sorted(matrices, key=lambda pair: work_of(tuple(pair[1].shape))):  # the smaller first
        patient.pause()
        work += work_of(tuple(one.shape))
        if work <= WORK and (values := spectrum(one)) is not None:
            found[name] = values.effective_rank
    if not found:
        raise NotTestable("All matrices of this model are too large for this test.")
    bad = [name for name, value in found.items() if value < DIRECTIONS]
    least = min(found.values())
    said = say_n(
        "{n} matrix uses almost only one direction: {first}.",
        "{n} matrices use almost only one direction; the first is {first}.",
        len(bad),
        first=next(iter(bad), ""),
    )
    well = say(
        "The singular values are spread out: {n} of {all} matrices were decomposed, and each has an effective rank "
        "of at least {least:.3g}.",
        n=len(found),
        all=len(matrices),
        least=least,
    )
    return found_in(bad, least, said=said, well=well, fault="look")


@of_weights(
    say("Norms keep most of the stream"),
    threshold=MOST,
    why=say("Large models switch off a few dimensions of a norm, but no healthy model switches off most of them."),
    meaning=say("A norm whose gains are mostly 0 hides almost all of the stream from the part of the model after it."),
    causes=say(
        "Gains that are stored as their difference from 1 (as in Gemma) were read as the gains themselves, weight "
        "decay was applied to the norms, or the tensor was missing, so the gains stayed 0."
    ),
)
def norm_gains(patient: ParameterContext) -> DoctorTestResult:
    """Gains of norms that are 0."""
    found: dict[str, float] = {}
    for name, one in each(patient):
        if one.dim() == 1 and "norm" in name and name.endswith("weight"):
            size = one.float().abs()
            found[name] = float((size <= NO_GAIN * size.median()).float().mean())
    if not found:
        raise NotTestable("This model has no norms, or its norms have no gains.")
    bad = [name for name, share in found.items() if share > MOST]
    said = say_n(
        "{n} norm has a gain of 0 in most dimensions: {first}.",
        "{n} norms have a gain of 0 in most dimensions; the first is {first}.",
        len(bad),
        first=next(iter(bad), ""),
    )
    return found_in(bad, max(found.values()), said=said, well=say("The norms keep most dimensions."))


@of_weights(
    say("Every layer was trained"),
    threshold=ONE,
    why=say(
        "This number is how far the standard deviations of a layer's matrices are from a typical initial value "
        "(0.01, 0.02 or 1/√d_model), in units of the variation expected by chance. It is about 1 in a newly "
        "initialised layer and at least {least:g} in the shipped checkpoints.",
        least=at_least("drawn_layers"),
    ),
    causes=say(
        "The layer was missing from the file or had different names there, and the file was loaded with "
        "`strict=False`; the layer was frozen or not passed to the optimizer; or the model was trained for only a "
        "few steps."
    ),
    of_wiring=True,
)
def drawn_layers(patient: ParameterContext) -> DoctorTestResult:
    """Layers whose matrices all have a deviation that programs draw with."""
    usual = USUAL if patient.d_model is None else (*USUAL, patient.d_model**-0.5)
    sizes: dict[str, list[tuple[float, int]]] = {}  # deviations, numbers of values
    for layer, one in _in_layers(patient):
        sizes.setdefault(layer, []).append((float(one.float().pow(2).mean().sqrt()), one.numel()))
    found = {
        layer: min(_distance(there, drawn) for drawn in usual)
        for layer, there in sizes.items()
        if len(there) >= FEWEST and all(0 < size < math.inf for size, _ in there)
    }
    near = {layer for layer, spread in found.items() if spread < ONE}
    trained = {layer for layer, one in _in_layers(patient) if layer in near and not is_unstructured(one.float())}
    found |= dict.fromkeys(trained, ONE)
    if not found:
        raise NotTestable(_TOO_SMALL)
    bad = [name for name, spread in found.items() if spread < ONE]
    said = say_n(
        "In {n} layer ({first}), all matrices still have a typical initial standard deviation.",
        "In {n} layers (the first is {first}), all matrices still have a typical initial standard deviation.",
        len(bad),
        first=next(iter(bad), ""),
    )
    well = say("Every layer has at least one matrix whose standard deviation is no longer a typical initial value.")
    return found_in(bad, min(found.values()), said=said, well=well, fault="look")


def _in_layers(patient: ParameterContext) -> Iterator[tuple[str, Tensor]]:
    """The large matrices of layers, each with what the names of its layer begin with."""
    for name, one in patient.tensors():
        patient.pause()
        layer = _LAYER.match(name)
        if layer and one.dim() == 2 and one.numel() >= DRAWN:
            yield layer[0], one.detach()


def _distance(sizes: list[tuple[float, int]], drawn: float) -> float:
    """Chi-square of their logarithms, a degree of freedom; 1 / (2 n) is the variance of one of n values."""
    return sum(math.log(size / drawn) ** 2 * 2 * n for size, n in sizes) / len(sizes)


@of_weights(
    say("W_Q and W_K are similar in size"),
    threshold=APART,
    why=say(
        "This compares the standard deviations of W_K and W_Q. Both matrices are initialised in the same way and "
        "change by similar amounts in training: in the shipped checkpoints, neither is more than {most:g} times the "
        "other.",
        most=at_most("balance"),
    ),
    meaning=say(
        "W_Q or W_K was scaled, or something was added to it, so the attention scores differ from those in training."
    ),
    causes=say(
        "W_Q or W_K contains noise (because its values were quantised too coarsely, or because noise was added), "
        "the scale of the scores was multiplied into one of them while the file was converted, or the two matrices "
        "were initialised differently (as in T5). Compare the file with the original."
    ),
)
def balance(patient: ParameterContext) -> DoctorTestResult:
    """Whether W_Q and W_K are of one size."""
    config = patient.whole.config if patient.whole else None
    if config is not None and (config.score_scale is not None or config.qk_norm):
        raise NotTestable("This model scales its scores in its own way, so W_Q and W_K may differ in size.")
    sizes: dict[tuple[str, ...], dict[str, float]] = {}
    for name, one in patient.tensors():
        patient.pause()
        if projection := _PROJECTION.match(name):
            sizes.setdefault(projection.groups()[:3], {})[projection[4]] = float(one.detach().float().std())
    found = {}
    order = sorted(sizes, key=lambda place: (place[2] != "self_attn", place[0] != "encoder", int(place[1])))
    for stack, layer, attention in order:
        query, key = (sizes[stack, layer, attention].get(name, 0.0) for name in "qk")
        if 0 < query < math.inf and 0 < key < math.inf:
            found[f"{stack if attention == 'self_attn' else 'cross'}.{int(layer) + 1}"] = key / query
    if not found:
        raise NotTestable("This model has no W_Q and W_K that can be compared.")
    mean = math.exp(sum(map(math.log, found.values())) / len(found))
    said = say(
        "On average over {n} attention sub-layers, the standard deviation of W_K is {times:.2f} times that of W_Q.",
        times=mean,
        n=len(found),
    )
    number = max(mean, 1 / mean)
    if 1 / APART < mean < APART:
        return DoctorTestResult(verdict="well", number=number, said=said)
    places = tuple(name for name, times in found.items() if not 1 / APART < times < APART)
    shown = PageTarget(page="doctor", panel="parameters")
    return DoctorTestResult(verdict="look", number=number, said=said, places=places, shown=shown)


@of_weights(
    say("Tied tables are identical"),
    meaning=say(
        "These tables were once a single table, or started as copies of each other, and were then trained separately."
    ),
    causes=say(
        "The training code tied the weights, but saving or loading made two copies, and training continued with "
        "both. Tie them again before you train further. If they were untied on purpose, nothing is wrong."
    ),
)
def copies(patient: ParameterContext) -> DoctorTestResult:
    """Tables that look like copies of each other and are not equal."""
    tables = [(name, one) for name, one in each(patient) if name in TABLES]
    alike: dict[str, float] = {}
    for (name, one), (other, two) in combinations(tables, 2):
        if one.shape == two.shape and not torch.equal(one, two):
            alike[f"{name}, {other}"] = float(torch.cosine_similarity(one.float(), two.float(), dim=1).mean())
    most = max(alike.values(), default=None)
    shown = PageTarget(page="doctor", panel="parameters", tensor="src_table")
    said = say("Tied tables are identical, and no other tables look like copies of each other.")
    places: tuple[str, ...] = ()
    if most is not None and most > COPY:
        places = tuple(name for name, cosine in alike.items() if cosine > COPY)
        said = say(
            "Two tables are almost but not exactly equal: the cosine similarity of their corresponding rows is "
            "{most:.4f} on average.",
            most=most,
        )
    verdict: Verdict = "look" if places else "well"
    return DoctorTestResult(  # without anything to compare, the threshold is still reported
        verdict=verdict, number=most, threshold=COPY, why=_WHY_COPIES, said=said, places=places, shown=shown
    )


_WHY_COPIES: Final = say(
    "Corresponding rows of tables that were trained separately have no direction in common, so their mean cosine "
    "similarity is nearer to 0 than to 1; in copies, it is nearly 1."
)


TESTS = (finite, precision, constant, initial, rank, norm_gains, drawn_layers, balance, copies)
