"""Doctor tests of attention: heads that write nothing, are the same, or give all keys the same weight.

Each number is the maximum over all sentences and tokens: an idle head was idle every time. A head's output is compared
with the stream that it is added to, token by token: what is smaller than the stream's rounding changes nothing. No
wiring explains such heads.

Source: Michel et al. (2019), "Are Sixteen Heads Really Better than One?", for heads that do nothing; Elhage et al.
(2021), "A Mathematical Framework for Transformer Circuits", for W_Q^T W_K, by which two heads are compared.

Shapes: L layers, H heads, Q queries, K keys, d d_head, D d_model.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from glassformer.extensions.doctor.library.context import (
    DoctorTest,
    ExaminationContext,
    Texts,
    once,
    own_texts,
    random_texts,
    read_again,
)
from glassformer.extensions.doctor.library.findings import DoctorTestResult, NotTestable, PageTarget, at_least
from transformer.i18n import Sentence, say, say_n
from transformer.model.anatomy import Kind
from transformer.model.attention import MultiHeadAttention
from transformer.model.module import widened
from transformer.model.taps import Observer

FEW_TOKENS = 256
PROBES = 16
NO_RUN: Sentence = say("No sentence could be run through this model, so nothing is known about its heads.")
_LOOKED_AT = ("values", "scores", "heads", "residual")

UNHEARD = 1e-5
"""Share of the stream's length below which what is added to it changes nothing that matters."""
ALIKE = 0.01
"""Two heads nearer than this have the same parameters."""
SAME_MAP = 0.01
FLAT = 0.01
"""Scores that differ by less make weights that differ by less than 1 %."""


@dataclass(frozen=True, order=True)
class MeasuredHead:
    """One head."""

    kind: Kind  # which attention
    layer: int  # from 0
    head: int  # from 0

    def __str__(self) -> str:
        return f"{self.kind}.{self.layer + 1}.{self.head + 1}"


@dataclass(eq=False)
class HeadMeasures:
    """The heads of one attention over all sentences so far, each array [L, H]."""

    writes: np.ndarray  # the most that a head wrote at a token, as a share of the length of the stream there
    says: np.ndarray  # the most that what it could write differed between the keys of a sentence, as the same share
    spread: np.ndarray  # the most that a score differed from the mean of its row
    compared: bool = False  # whether any map had several rows and keys

    def note(self, layer: int, seen: Mapping[str, Tensor], parts: Tensor) -> None:
        """See one layer in some sentences; `parts` are the rows of W_O that each head is multiplied with [H, d, D]."""
        scores, stream = seen["scores"], seen["residual"]  # [B, H, Q, K], [B, Q, D]
        self.compared |= min(scores.shape[2:]) > 1
        parts = parts.to(stream.dtype)
        lengths = stream.norm(dim=2).clamp_min(torch.finfo(stream.dtype).tiny)  # [B, Q]
        written = (seen["heads"] @ parts).norm(dim=3)  # [B, H, Q]
        values = seen["values"].repeat_interleave(len(parts) // seen["values"].size(1), dim=1)  # [B, H, K, d]
        differing = (values - values.mean(dim=2, keepdim=True)) @ parts  # [B, H, K, D]
        for kept, most in (  # [H]
            (self.writes, (written / lengths[:, None]).amax(dim=(0, 2))),
            (self.says, differing.norm(dim=3).amax(dim=(0, 2)) / lengths.mean()),
            (self.spread, (scores - scores.mean(dim=3, keepdim=True)).abs().amax(dim=(0, 2, 3))),
        ):
            kept[layer] = np.maximum(kept[layer], most.double().numpy())


def texts_of(patient: ExaminationContext) -> list[Texts]:
    """The texts for heads: the context's runs and random texts, as a run that ends at once shows no heads.

    Empty if the model could read no sentence.
    """
    own = own_texts(patient)
    return [] if patient.runs and not own else [*own, *random_texts(patient, most=FEW_TOKENS)]


@once
def _measured(patient: ExaminationContext) -> dict[Kind, HeadMeasures]:
    """What the heads of each attention do; nothing where no text could be read, or what is computed is NaN."""
    config, kinds = patient.config, patient.anatomy.attentions
    found = {one.kind: HeadMeasures(*np.zeros((3, one.n_layers, config.of(one.stack).n_heads))) for one in kinds}
    parts = {one.kind: list(map(_output_parts, patient.model.attentions(one.kind))) for one in kinds}
    places = {one.place(layer): (one.kind, layer) for one in kinds for layer in range(one.n_layers)}
    seen: dict[str, Tensor] = {}

    def see(site: str, value: Tensor) -> None:
        place, _, name = site.rpartition(".")
        seen[name] = value.cpu()
        if name == "residual":  # the last of them
            kind, layer = places[place]
            found[kind].note(layer, seen, parts[kind][layer])

    texts = texts_of(patient)
    read_again(patient, texts, Observer([f"*_attn.{name}" for name in _LOOKED_AT], see))
    finite = all(np.isfinite([one.writes, one.says, one.spread]).all() for one in found.values())
    return {kind: one for kind, one in found.items() if one.compared} if texts and finite else {}


def _output_parts(attention: MultiHeadAttention) -> Tensor:
    """The rows of W_O that each head is multiplied with [H, d, D]."""
    matrix = widened(attention.out_proj.weight.detach()).cpu()
    return matrix.T.reshape(attention.n_heads, -1, len(matrix))


def distances(attention: MultiHeadAttention) -> np.ndarray:
    """How far apart the scores of every two heads of a layer are by their parameters, 0 to about 1.4 [H, H].

    A head's scores are x W_Q^T W_K y. This product does not change if both matrices are rotated together, as a head's
    own axes mean nothing. It is D x D, so only its product with `PROBES` random vectors is computed: their distances
    are those of the products, within about a tenth. 0: equal; 1: unrelated. NaN where a head's product is 0.

    Source: Johnson and Lindenstrauss (1984), for distances after a random projection.
    """
    n, shared = attention.n_heads, attention.n_heads // attention.n_kv_heads
    queries = _heads_of(attention.q_proj.weight, attention.q_proj.bias, n)  # [H, d, D + 1]
    keys = _heads_of(attention.k_proj.weight, attention.k_proj.bias, attention.n_kv_heads)  # [G, d, D + 1]
    drawn = torch.randn(keys.size(2), PROBES, generator=torch.Generator().manual_seed(0))
    asked = (keys @ drawn).repeat_interleave(shared, dim=0)  # [H, d, PROBES]
    made = (queries.transpose(1, 2) @ asked).flatten(1).double()  # [H, (D + 1) * PROBES]
    sizes = made.norm(dim=1).numpy()
    both = sizes[:, None] ** 2 + sizes**2
    apart = torch.cdist(made, made, compute_mode="donot_use_mm_for_euclid_dist").numpy()
    return np.divide(apart, np.sqrt(both), out=np.full((n, n), np.nan), where=(sizes > 0) & (sizes[:, None] > 0))


def _heads_of(weight: Tensor, bias: Tensor | None, n: int) -> Tensor:
    """A projection's matrix by heads, the bias as one more column: [n, d, D + 1]."""
    matrix = widened(weight.detach()).cpu().float()
    whole = matrix if bias is None else torch.cat((matrix, bias.detach().cpu().float()[:, None]), dim=1)
    return whole.reshape(n, -1, whole.size(1))


def pairs_of(patient: ExaminationContext) -> Iterator[tuple[MeasuredHead, MeasuredHead, float]]:
    """Every two heads of a layer, and how far apart they are."""
    for one in patient.anatomy.attentions:
        for layer, attention in enumerate(patient.model.attentions(one.kind)):
            apart = distances(attention)
            for i, j in zip(*np.triu_indices(len(apart), 1), strict=True):
                yield MeasuredHead(one.kind, layer, int(i)), MeasuredHead(one.kind, layer, int(j)), float(apart[i, j])


def of_each(patient: ExaminationContext, measure: Callable[[HeadMeasures], np.ndarray]) -> dict[MeasuredHead, float]:
    """A number of every head; `NotTestable` where nothing is known of them."""
    if not (found := _measured(patient)):
        raise NotTestable(NO_RUN)
    return {
        MeasuredHead(kind, *place): float(value)
        for kind, one in found.items()
        for place, value in np.ndenumerate(measure(one))
    }


def shown(patient: ExaminationContext, head: MeasuredHead) -> PageTarget:
    """The map of a head, for the first sentence."""
    return PageTarget(
        page="attention", panel="head", source=patient.first_source, kind=head.kind, layer=head.layer, head=head.head
    )


# ------------------------------------------------------------------------------------------------ the tests

of_attention = partial(DoctorTest, "attention")


@of_attention(
    say("No head is dead"),
    threshold=UNHEARD,
    why=say(
        "If the vector that a head adds has only {share:g} times the stream's length, it is nearly lost in 32-bit "
        "rounding. In the shipped checkpoints, every head's vector has at least {least:g} times that length.",
        share=UNHEARD,
        least=at_least("dead_heads"),
    ),
    meaning=say(
        "These heads do not affect any output: without them, the model would write exactly the same text. The "
        "model has less capacity than its size suggests."
    ),
    causes=say(
        "The head's rows of W_V or its columns of W_O are 0. This happens after pruning, after an import that "
        "filled in only some heads, or with very strong weight decay. Look at the head's map and at the two "
        "matrices. If the head was pruned on purpose, nothing is wrong."
    ),
    of_wiring=True,
)
def dead_heads(patient: ExaminationContext) -> DoctorTestResult:
    """Heads that write nothing, whatever the sentence."""
    loud = of_each(patient, lambda one: np.fmin(one.writes, one.says))
    silent = [head for head, loudness in loud.items() if not loudness >= UNHEARD]
    least = min(loud.values())
    if not silent:
        said = say(
            "Even the weakest of {n} heads adds a vector of up to {share:.2%} of the stream's length.",
            n=len(loud), share=least,
        )  # fmt: skip
        return DoctorTestResult(verdict="well", number=least, said=said)
    heard = {(one.kind, one.layer) for one in loud if one not in silent}
    whole = any((one.kind, one.layer) not in heard for one in silent)
    return DoctorTestResult(
        verdict="broken" if whole else "look",
        number=least,
        said=say_n(
            "{n} of {whole} heads adds nothing to the residual stream in any sentence.",
            "{n} of {whole} heads add nothing to the residual stream in any sentence.",
            len(silent), whole=len(loud),
        ),
        meaning=say(
            "In at least one layer, all heads of an attention sub-layer add nothing to the stream, so this "
            "sub-layer passes no information between tokens."
        ) if whole else "",
        places=tuple(map(str, silent)),
        shown=shown(patient, silent[0]),
    )  # fmt: skip


@of_attention(
    say("No two heads are equal"),
    threshold=ALIKE,
    why=say(
        "This is the distance between W_Q^T W_K of two heads: 0 if the heads are equal, 1 if they have nothing in "
        "common. Heads start from random values, at a distance of about 1, and training does not bring them closer "
        "together. In the shipped checkpoints, no two heads are closer than {least:g}.",
        least=at_least("equal_heads"),
    ),
    causes=say(
        "When the file was converted, one head's parameters overwrote another's, or shared key-value heads were "
        "repeated wrongly; or both heads started with the same values and always got the same gradients. Compare "
        "the file with the original. Before you train this model further, give the heads different values."
    ),
)
def equal_heads(patient: ExaminationContext) -> DoctorTestResult:
    """Two heads of a layer with the same scores."""
    pairs = [pair for pair in pairs_of(patient) if np.isfinite(pair[2])]
    if not pairs:
        raise NotTestable("No layer has two heads to compare.")
    least = min(apart for *_, apart in pairs)
    alike = _with_equal_maps(patient, [(a, b) for a, b, apart in pairs if apart < ALIKE])
    if not alike:
        said = say("Within a layer, the distance between the two most similar heads is {apart:.2f}.", apart=least)
        return DoctorTestResult(verdict="well", number=least, said=said)
    return DoctorTestResult(
        verdict="look",
        number=least,
        said=say_n(
            "In {n} pair of heads, both heads have the same W_Q and W_K.",
            "In {n} pairs of heads, both heads have the same W_Q and W_K.",
            len(alike),
        ),
        places=tuple(f"{a} = {b}" for a, b in alike),
        shown=shown(patient, alike[0][0]),
    )


def _with_equal_maps(
    patient: ExaminationContext, pairs: list[tuple[MeasuredHead, MeasuredHead]]
) -> list[tuple[MeasuredHead, MeasuredHead]]:
    """Those pairs whose maps agree, too: a bias of positions may be another in each head."""
    apart, by_site = dict.fromkeys(pairs, 0.0), defaultdict[str, list[tuple[MeasuredHead, MeasuredHead]]](list)
    for pair in pairs:
        by_site[patient.anatomy.attention(pair[0].kind).site(pair[0].layer, "weights")].append(pair)

    def see(site: str, value: Tensor) -> None:
        for one, other in by_site[site]:
            far = float(torch.dist(value[:, one.head], value[:, other.head], p=float("inf")))
            apart[one, other] = max(apart[one, other], far)

    if pairs:
        read_again(patient, texts_of(patient), Observer(by_site, see))
    return [pair for pair in pairs if apart[pair] < SAME_MAP]


@of_attention(
    say("No head gives all keys the same weight"),
    threshold=FLAT,
    why=say(
        "Scores that differ by {flat:g} give weights that differ by 1 %. In the shipped checkpoints, the largest "
        "difference in each head is at least {least:g}.",
        flat=FLAT,
        least=at_least("uniform_heads"),
    ),
    meaning=say(
        "A head with equal weights takes the plain mean of all value vectors that it may see, so it cannot choose "
        "between tokens."
    ),
    causes=say(
        "The head's W_Q or W_K is 0 or nearly 0 (pruned, not filled in by an import, or shrunk by weight decay), all "
        "tokens have the same vector in this layer, or the factor that scales the scores is far too small."
    ),
    of_wiring=True,
)
def uniform_heads(patient: ExaminationContext) -> DoctorTestResult:
    """Heads whose scores are the same for all keys."""
    spread = of_each(patient, lambda one: one.spread)
    flat, n, least = [head for head, value in spread.items() if not value >= FLAT], len(spread), min(spread.values())
    if not flat:
        well = say(
            "In each of {n} heads, the scores differ between keys; the largest difference is at least {least:.2g}.",
            n=n,
            least=least,
        )
        return DoctorTestResult(verdict="well", number=least, said=well)
    said = say_n(
        "{n} of {whole} heads gives all keys the same weight, in every row of every sentence.",
        "{n} of {whole} heads give all keys the same weight, in every row of every sentence.",
        len(flat),
        whole=n,
    )
    places = tuple(map(str, flat))
    return DoctorTestResult(verdict="look", number=least, said=said, places=places, shown=shown(patient, flat[0]))


TESTS = (dead_heads, equal_heads, uniform_heads)
