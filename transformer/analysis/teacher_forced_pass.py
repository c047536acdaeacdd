"""Teacher-forced pass: losses and predictions for a whole output read at once, and measures of its maps.

A run writes piece by piece: no row ever meets what comes after it. In training the decoder gets the whole output, and
only the mask hides the piece that a row has to predict. So a changed mask has an effect here, and a different one, or
none, on a written output.

Source: Williams and Zipser, "A Learning Algorithm for Continually Running Fully Recurrent Neural Networks" (1989),
section 5, for teacher forcing; Vaswani et al. (2017), section 3.2.1, footnote 4, for scores that grow with d; Dong,
Cordonnier and Loukas, "Attention is not all you need" (2021), section 2, for vectors that become alike without
residual connections.

Shapes: H heads, Q queries, K keys, T rows that predict a piece (or tokens), D d_model, V target vocabulary.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transformer.errors import QueryError
from transformer.model.taps import Recorder, Tap
from transformer.runs.apply_interventions import tap_for
from transformer.runs.array_records import ArrayRecord
from transformer.runs.inputs import read_source
from transformer.runs.query import Query, Runnable
from transformer.runs.recording_pass import alone, check_recorded


@dataclass(frozen=True, eq=False)
class TeacherForcedPass(ArrayRecord):
    """One pass over a whole output."""

    losses: np.ndarray  # -log p of each piece of the output, in nats [T]
    best: np.ndarray  # the likeliest piece of each row [T]
    first_row: int  # the decoder's row that predicts the first piece
    src_ids: tuple[int, ...]  # what was read, special pieces included
    # Each requested site, without the batch axis; rows before `first_row` included.
    values: Mapping[str, np.ndarray]

    @property
    def mean_loss(self) -> float:
        """In nats per piece."""
        return float(self.losses.mean())


@torch.inference_mode()
def read_at_once(
    checkpoint: Runnable, query: Query, written: Sequence[int], sites: Iterable[str] = (), *, finite: bool = True
) -> TeacherForcedPass:
    """Let a model read a whole output, including its end piece, with the source and the changes of a query.

    Values that are not finite are refused, or returned unchanged if so asked. A QueryError also says that the model
    writes nothing, or that the query does not fit it.
    """
    model = checkpoint.model
    if not model.anatomy.writes or not written:
        raise QueryError("There is no output to read: this model does not generate text, or it generated none.")
    source, tap = read_source(checkpoint, query), tap_for(query.interventions, checkpoint)
    src, tgt = torch.tensor([source.ids]), torch.tensor([[*source.prompt_ids, *written[:-1]]])
    recorder, first_row = Recorder(sites), len(source.prompt_ids) - 1

    def read(seen: Tap) -> Tensor:
        return model(src, tgt, tap=seen)  # [1, first_row + T, V]

    logits = read(tap.also(recorder))
    if finite:
        check_recorded((logits, *recorder.values.values()), read, tap=tap)
    log_probs = logits[0, first_row:].cpu().float().log_softmax(dim=-1)  # [T, V]
    return TeacherForcedPass(
        losses=-log_probs.gather(1, torch.tensor(written)[:, None])[:, 0].numpy(),
        best=log_probs.argmax(dim=-1).numpy(),
        first_row=first_row,
        src_ids=source.ids,
        values={site: alone(site, value) for site, value in recorder.values.items()},
    )


def largest_weight(maps: Iterable[np.ndarray]) -> float:
    """The largest weight's share of its row, averaged over the rows with weight of maps [H, Q, K], 0 to 1."""
    rows = np.concatenate([one.reshape(-1, one.shape[-1]).max(axis=-1) for one in maps])
    rows = rows[rows > 0]
    return float(rows.mean()) if len(rows) else 0.0


def on_later(maps: Iterable[np.ndarray]) -> float:
    """The share of weight on later tokens in self-attention [H, T, T], averaged over rows with later tokens."""
    found = [np.triu(one, k=1).sum(axis=-1)[:, :-1].ravel() for one in maps]
    rows = np.concatenate(found) if found else np.zeros(0)
    return float(rows.mean()) if len(rows) else 0.0


def on_keys(maps: Iterable[np.ndarray], keys: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
    """The share of each row's weight on some keys, averaged over maps [H, Q, K] and their heads -> [Q]."""
    stacked = np.concatenate(list(maps))  # [maps * H, Q, K]
    found = stacked[:, :, keys].sum(axis=-1).mean(axis=0)
    return found if rows is None else found[rows]


def likeness(vectors: np.ndarray) -> float:
    """The mean cosine between the vectors [T, D] of any two tokens; 1 if there is one token."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    unit = vectors / np.where(lengths > 0, lengths, 1)
    n = len(unit)
    return float(((unit @ unit.T).sum() - (unit * unit).sum()) / (n * (n - 1))) if n > 1 else 1.0
