"""Teacher-forced pass: losses and predictions for a whole output read at once.

A run writes piece by piece: no row ever meets what comes after it. In training the decoder gets the whole output, and
only the mask hides the piece that a row has to predict. So a changed mask has an effect here, and a different one, or
none, on a written output.

Source: Williams and Zipser, "A Learning Algorithm for Continually Running Fully Recurrent Neural Networks" (1989),
section 5, for teacher forcing.

Shapes: T rows that predict a piece, V target vocabulary.
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
