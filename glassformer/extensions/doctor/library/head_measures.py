"""Measures of heads for doctor tests: maxima over all sentences, and distances of two heads' parameters.

Each is the maximum over all sentences and tokens: an idle head was idle every time. A head's output is compared with
the stream that it is added to, token by token: what is smaller than the stream's rounding changes nothing.

Source: Michel et al. (2019), "Are Sixteen Heads Really Better than One?", for heads that do nothing; Elhage et al.
(2021), "A Mathematical Framework for Transformer Circuits", for W_Q^T W_K, by which two heads are compared.

Shapes: L layers, H heads, Q queries, K keys, d d_head, D d_model.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from glassformer.extensions.doctor.library.context import ExaminationContext, Texts, own_texts, random_texts, read_again
from glassformer.extensions.doctor.library.findings import NotTestable, PageTarget
from transformer.i18n import Sentence, say
from transformer.model.anatomy import Attention, Kind
from transformer.model.attention import MultiHeadAttention
from transformer.model.module import widened

FEW_TOKENS = 256
PROBES = 16
NO_RUN: Sentence = say("No sentence could be run through this model, so nothing is known about its heads.")
_LOOKED_AT = ("values", "scores", "heads", "residual")


@dataclass(frozen=True, order=True)
class MeasuredHead:
    """One head."""

    kind: Kind  # which attention
    layer: int  # from 0
    head: int  # from 0

    @property
    def place(self) -> tuple[Kind, int]:
        """Its layer."""
        return self.kind, self.layer

    def __str__(self) -> str:
        return f"{self.kind}.{self.layer + 1}.{self.head + 1}"


@dataclass(frozen=True, eq=False)
class HeadMeasures:
    """The heads of one attention over all sentences, each array [L, H]."""

    writes: np.ndarray  # the most that a head wrote at a token, as a share of the length of the stream there
    says: np.ndarray  # the most that what it could write differed between the keys of a sentence, as the same share
    spread: np.ndarray  # the most that a score differed from the mean of its row


def texts_of(patient: ExaminationContext) -> list[Texts]:
    """The texts for heads: the context's runs and random texts, as a run that ends at once shows no heads.

    Empty if the model could read no sentence.
    """
    own = own_texts(patient)
    return [] if patient.runs and not own else [*own, *random_texts(patient, most=FEW_TOKENS)]


def heads_of(patient: ExaminationContext) -> dict[Kind, HeadMeasures]:
    """What the heads of each attention do; `NotTestable` where no text could be read, or what is computed is NaN."""
    found = patient.once(_measured)
    if not found:
        raise NotTestable(NO_RUN)
    return found


def _measured(patient: ExaminationContext) -> dict[Kind, HeadMeasures]:
    looks = {one.kind: _Look(one, patient.config.of(one.stack).n_heads) for one in patient.anatomy.attentions}
    texts = texts_of(patient)
    read_again(patient, texts, _Visitor(patient, looks))
    if not texts or not all(look.finite for look in looks.values()):
        return {}
    return {kind: look.result() for kind, look in looks.items() if look.compared}


@dataclass(eq=False)
class _Look:
    """What was seen of one attention so far."""

    attention: Attention
    n_heads: int
    found: dict[str, np.ndarray] = field(default_factory=dict)
    compared: bool = False

    def __post_init__(self) -> None:
        shape = self.attention.n_layers, self.n_heads
        names = ("writes", "says", "spread")
        self.found = {name: np.zeros(shape) for name in names}

    @property
    def finite(self) -> bool:
        """Whether all numbers are."""
        return all(np.isfinite(values).all() for values in self.found.values())

    def most(self, name: str, layer: int, values: Tensor) -> None:
        """Note values [H] that are the most of one sentence."""
        kept = self.found[name]
        kept[layer] = np.maximum(kept[layer], values.double().numpy())

    def scores(self, layer: int, scores: Tensor) -> None:
        """Note how scores [B, H, Q, K] differ along a row."""
        self.compared |= min(scores.shape[2:]) > 1
        along = scores - scores.mean(dim=3, keepdim=True)
        self.most("spread", layer, along.abs().amax(dim=(0, 2, 3)))

    def result(self) -> HeadMeasures:
        """All of it."""
        return HeadMeasures(**self.found)


class _Visitor:
    """Sees one attention after another, and notes what `_Look` asks for."""

    causal = True

    def __init__(self, patient: ExaminationContext, looks: dict[Kind, _Look]) -> None:
        self._looks = {
            f"{one.place(layer)}.{name}": (looks[one.kind], layer, name)
            for one in patient.anatomy.attentions
            for layer in range(one.n_layers)
            for name in _LOOKED_AT
        }
        self._parts = {kind: list(map(_output_parts, patient.model.attentions(kind))) for kind in looks}
        self._seen: dict[str, Tensor] = {}

    def wants(self, site: str) -> bool:
        return site in self._looks

    def visit(self, site: str, value: Tensor, offset: int) -> Tensor:
        look, layer, name = self._looks[site]
        self._seen[name] = here = value.cpu()
        if name == "scores":
            look.scores(layer, here)
        elif name == "residual":
            self._writes(look, layer, here)
            self._seen.clear()
        return value

    def _writes(self, look: _Look, layer: int, stream: Tensor) -> None:
        """Note what the heads write beside the stream [B, Q, D] that it was added to."""
        parts = self._parts[look.attention.kind][layer].to(stream.dtype)  # [H, d, D]
        lengths = stream.norm(dim=2).clamp_min(torch.finfo(stream.dtype).tiny)  # [B, Q]
        written = (self._seen["heads"] @ parts).norm(dim=3)  # [B, H, Q]
        look.most("writes", layer, (written / lengths[:, None]).amax(dim=(0, 2)))
        values = self._seen["values"]  # [B, G, K, d]
        values = values.repeat_interleave(look.n_heads // values.size(1), dim=1)
        differing = (values - values.mean(dim=2, keepdim=True)) @ parts  # [B, H, K, D]
        look.most("says", layer, differing.norm(dim=3).amax(dim=(0, 2)) / lengths.mean())


def _output_parts(attention: MultiHeadAttention) -> Tensor:
    """The rows of W_O that each head is multiplied with [H, d, D]."""
    matrix = widened(attention.out_proj.weight.detach()).cpu()
    return matrix.T.reshape(attention.n_heads, -1, len(matrix))


# ---------------------------------------------------------------- two heads


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


# ---------------------------------------------------------------- what tests say of heads


def each(
    found: dict[Kind, HeadMeasures], measure: Callable[[HeadMeasures], np.ndarray]
) -> list[tuple[MeasuredHead, float]]:
    """A number of every head."""
    return [
        (MeasuredHead(kind, int(layer), int(head)), float(value))
        for kind, one in found.items()
        for (layer, head), value in np.ndenumerate(measure(one))
    ]


def shown(patient: ExaminationContext, head: MeasuredHead) -> PageTarget:
    """The map of a head, for the first sentence."""
    return PageTarget(
        page="attention", panel="head", source=patient.first_source, kind=head.kind, layer=head.layer, head=head.head
    )
