"""Tables of embeddings: copies of one that went apart, and rows that hold nothing.

What their rows say is tested in `embeddings`; here it is how they were kept.

Knows nothing of Streamlit.
"""

from __future__ import annotations

from itertools import combinations

import torch

from transformer.doctor.findings import MOST_PLACES, Measured, Shown, well
from transformer.doctor.parameter_tests import each, verdict_on
from transformer.doctor.patient import Patient, Test
from words import say, say_n

ALIKE = 0.9
"""Mean cosine of the rows of two tables. Tables that were trained apart: -0.3 to 0.1; copies: above 0.99."""


def copies(patient: Patient) -> Measured:
    """Tables that look like copies of each other and are not equal."""
    tables = [(name, one) for name, one in each(patient) if name in ("src_table", "tgt_table", "output_table")]
    alike: dict[str, float] = {}
    for (name, one), (other, two) in combinations(tables, 2):
        if one.shape == two.shape and not torch.equal(one, two):
            alike[f"{name}, {other}"] = float(torch.cosine_similarity(one.float(), two.float(), dim=1).mean())
    most = max(alike.values(), default=None)
    why = say("Rows of tables that were trained apart have a mean cosine of -0.3 to 0.1; those of a copy above 0.99.")
    shown = Shown(page="doctor", panel="parameters", tensor="src_table")
    if most is None or most <= ALIKE:
        said = say("Tables that are tied are one, and none looks like a copy of another.")
        return well(said, most, ALIKE, why, shown=shown)
    return Measured(
        verdict="look",
        number=most,
        threshold=ALIKE,
        why=why,
        said=say(
            "Two tables are nearly equal, but not quite: their rows have a mean cosine of {most:.4f}.", most=most
        ),
        meaning=say("They were one table, or began as copies, and then went on learning apart."),
        causes=say(
            "Weights were tied in the code that trained and copied when they were saved or loaded, and training "
            "went on with two of them: tie them again before you train further. If they were untied on purpose, all "
            "is well."
        ),
        places=tuple(name for name, cosine in alike.items() if cosine > ALIKE),
        shown=shown,
    )


def zero_rows(patient: Patient) -> Measured:
    """Rows of the embeddings that are all 0, but for padding."""
    bad: list[str] = []
    n = 0
    tokenizers = {"src_table": patient.checkpoint.src_tokenizer}
    for name, one in each(patient):
        if name in ("src_table", "tgt_table", "output_table") and one.abs().max() > 0:
            size = tokenizers.get(name, patient.checkpoint.tgt_tokenizer).size
            rows = [int(i) for i in (one == 0).all(dim=1).nonzero()[:, 0] if i < size and i != patient.config.pad_id]
            n += len(rows)
            bad += [f"{name}[{i}]" for i in rows[:MOST_PLACES]]
    return verdict_on(
        bad,
        number=n,
        threshold=0,
        why=say("Rows are drawn before the training; only that of padding is set to 0 on purpose."),
        well=say("No piece has an embedding of zeros, padding left out."),
        said=lambda _, first: say_n(
            "{n} row is all 0: {first}.", "{n} rows are all 0, first {first}.", n, first=first
        ),
        meaning=say("The model reads nothing where these pieces stand."),
        causes=say(
            "The vocabulary was made larger after the training, `padding_idx` was another id than the config's "
            "pad_id, or the rows fill the table up to a round size and no text has them."
        ),
        broken=False,
    )


TESTS: tuple[Test, ...] = (
    Test("copies", "weights", say("Tied tables are one"), copies),
    Test("zero_rows", "weights", say("Every piece has an embedding"), zero_rows),
)
