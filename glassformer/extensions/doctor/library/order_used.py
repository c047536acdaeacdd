"""Whether the model uses what it is given: the order of the tokens, and the source.

Order: the tokens before the last one change places. Attention by itself takes them as a set (Vaswani et al. (2017),
section 3.5), so in the first layer what the last token gets from it stays the same up to rounding, unless positions
say otherwise. Later layers read what the causal mask has made of the order, so only the first one tells.

Source: the model reads the right output three times more, with another source, and what it then thinks of the next
piece is compared with what it thinks with the right one.

    KL = sum over pieces of p(piece | source) (log p(piece | source) - log p(piece | another source))

Shapes: S source tokens, T target tokens, V target vocabulary, D d_model.
"""

import random
from statistics import fmean

import torch
from torch import Tensor

from glassformer.extensions.doctor.library.calibrated import at_least
from glassformer.extensions.doctor.library.findings import Measured, NotTested, Shown
from glassformer.extensions.doctor.library.patient import BELOW, Patient, Test
from glassformer.extensions.doctor.library.read_rows import Drawing, Row, result
from glassformer.extensions.doctor.library.rereading import Texts, read
from transformer.errors import QueryError
from transformer.i18n import say
from transformer.model.anatomy import Stack
from transformer.model.taps import Recorder, tap_of

TOKENS = 8  # that change places
TRIES = 3
ORDER_SEEN = 1e-4
"""Of the length of what attention gives: more than rounding moves it, less than positions do (`calibrated`)."""
SOURCE_SEEN = 0.01
"""Nats a piece. A cross-attention that is cut moves nothing at all; `calibrated` has what the shipped models do."""


@Test(
    "wiring",
    say("Token order matters"),
    threshold=ORDER_SEEN,
    why=say(
        "Without positions, reordering the tokens changes the attention output only by rounding, which is far below "
        "the threshold. In the shipped checkpoints, it changes by at least {least:g} times its length.",
        least=at_least("positions"),
    ),
    meaning=say("The order of the tokens is lost: to this model, every sentence is an unordered bag of pieces."),
    causes=say(
        "The position vectors are not added (or the result is discarded), their table is all zeros because the "
        "loaded file did not contain it, or all rotary angles are 0. Look at the table of positions."
    ),
    cause=BELOW,
    finds=("positions-missing",),
)
def positions(patient: Patient) -> Measured:
    """Let tokens change places: the first layer's attention must give the last one something else."""
    if patient.config.placing.adds == "nothing":
        return _no_positions(patient)
    found = {}
    for stack in patient.anatomy.stacks:
        patient.pause()
        if not _tells(patient, stack):
            raise NotTested(
                "The first layer of this model ignores positions by design, and no other layer can show whether "
                "the model uses them."
            )
        found[stack.name] = max(_turned(patient, stack, seed) for seed in range(TRIES))
    least = min(found.values())
    lost = least <= ORDER_SEEN
    said = (
        say(
            "When tokens are reordered, the attention output of the first layer changes by {least:.2g} of its "
            "length. This is only rounding error.",
            least=least,
        )
        if lost
        else say(
            "When tokens are reordered, the attention output of the first layer changes by {least:.2g} of its "
            "length.",
            least=least,
        )
    )
    places = tuple(name for name, far in found.items() if far <= ORDER_SEEN)
    shown = Shown(page="positions", panel="table")
    return Measured(verdict="broken" if lost else "well", number=least, said=said, places=places, shown=shown)


def _no_positions(patient: Patient) -> Measured:
    return Measured(
        verdict="look",
        said=say("According to its config, this model does not use positions."),
        meaning=say("The encoder reads every sentence as an unordered bag of pieces: the order is lost.")
        if patient.anatomy.reads
        else say(
            "This decoder can tell a token's position only from the causal mask, and only from the second layer on."
        ),
        causes=say(
            "Some models are trained without positions. If this one was trained with positions, its config is "
            "wrong: enter the kind of positions used in training."
        ),
        shown=Shown(page="inside", panel="model"),
    )


def _tells(patient: Patient, stack: Stack) -> bool:
    """Whether the first layer of a stack has positions, and sees more than one token."""
    window = patient.config.window(0) if stack.name == "decoder" else 0
    return 0 not in patient.config.unplaced_layers and (not window or window > 2) and patient.config.max_len > 2


@torch.inference_mode()
def _turned(patient: Patient, stack: Stack, seed: int) -> float:
    """How far the first attention's output at the last token moves, as a share of its length."""
    drawing = Drawing(patient.checkpoint, seed)
    window = patient.config.window(0) if stack.name == "decoder" else 0
    n = min(TOKENS, patient.config.max_len, window or TOKENS)
    ids = drawing.source(n) if stack.name == "encoder" else drawing.target(n)
    site = f"{stack.name}.0.self_attn.output"
    made: list[Tensor] = []
    for order in (ids, (*ids[-2::-1], ids[-1])):
        recorder, source = Recorder([site]), torch.tensor([order])
        if stack.name == "encoder":
            patient.model.encode(source, tap=tap_of(recorder))
        else:
            read(patient, Texts(torch.tensor([patient.rows[0].source]), source), tap=tap_of(recorder))
        made.append(recorder.values[site][0, -1].float())  # [D]
    before, after = made
    far = (after - before).norm() / before.norm().clamp_min(1e-30)
    if not bool(far.isfinite()):
        raise QueryError("At {site}, this model computes NaN (not a number) or infinite values.", site=site)
    return float(far)


@Test(
    "wiring",
    say("The output depends on the source"),
    threshold=SOURCE_SEEN,
    why=say(
        "If the model does not use the source, a different source changes nothing (0 nats). In the shipped "
        "checkpoints, a different source changes the next piece's probabilities by at least {least:g} nats on "
        "average.",
        least=at_least("source"),
    ),
    meaning=say("The output does not depend on the source: the decoder writes whatever is likely without it."),
    causes=say(
        "The encoder's output does not reach the decoder, the mask closes all keys of cross-attention (it uses "
        "True for “may not attend” where True should mean “may attend”), the weights of cross-attention were not "
        "loaded, or the model was not trained long enough to use the source (its loss then stays at the level of a "
        "language model)."
    ),
    cause=BELOW,
    of_a_leak=True,
    finds=("source-is-lost", "no-cross-attention"),
    sees=("collapsed-embeddings",),
)
def source(patient: Patient) -> Measured:
    """Give the decoder the memory of another source: what it thinks must change."""
    if "cross" not in patient.anatomy.kinds:
        raise NotTested("This model has no cross-attention: it reads one text only.")
    rows = patient.written
    if not rows:
        raise NotTested(
            "This test compares different sources, but there are no sentences. Provide pairs or sentences."
        )
    drawing, config = Drawing(patient.checkpoint, patient.seed), patient.config
    says_nothing = config.unk_id if config.unk_id is not None else config.eos_id
    moves: dict[str, list[float]] = {"another": [], "shuffled": [], "blank": []}
    for i, row in enumerate(rows):
        patient.pause()
        others = [one.source for one in rows[i + 1 :] + rows[:i] if one.source != row.source]
        another = others[0] if others else drawing.source(len(row.source))
        inner = list(row.source)
        random.Random(patient.seed).shuffle(inner)
        blank = (says_nothing,) * len(row.source)
        for name, ids in zip(moves, (another, tuple(inner), blank), strict=True):
            moves[name].append(_divergence(patient, row, ids))
    means = {name: fmean(values) for name, values in moves.items()}
    used = max(means.values()) > SOURCE_SEEN
    shown = Shown(page="attention", panel="overview", source=rows[0].text, kind="cross", layer=None if used else 0)
    said = say("The next piece's probabilities change by {another:.2g} nats (KL) if the model reads another "
               "sentence's source, by {shuffled:.2g} if the source is shuffled, and by {blank:.2g} if it is blank.",
               another=means["another"], shuffled=means["shuffled"], blank=means["blank"])  # fmt: skip
    return Measured(verdict="well" if used else "broken", number=max(means.values()), said=said, shown=shown)


def _divergence(patient: Patient, row: Row, other: tuple[int, ...]) -> float:
    """Mean over the target's tokens of how far the next piece's probabilities are from those with another source."""
    target = torch.tensor([row.target])
    logits = [result(patient.model, torch.tensor([ids]), target)[0] for ids in (row.source, other)]
    right, wrong = (one.float().log_softmax(dim=-1) for one in logits)  # [T, V]
    return float((right.exp() * (right - wrong)).nan_to_num(0.0).sum(dim=-1).mean())


TESTS = (positions, source)
