"""Masked-token predictions of an encoder with an MLM head: losses, ranks and pseudo-perplexity.

The vocabulary's mask piece replaces a piece, and the head predicts the piece there. If all pieces of a text are hidden
in turn, the exponential of their mean loss is the pseudo-perplexity.

Source: Devlin et al., "BERT" (2019), section 3.1; Salazar et al., "Masked Language Model Scoring" (2020), section 2.

Shapes: R rows that are read at once, T tokens, V vocabulary.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from transformer.errors import QueryError
from transformer.model.taps import NO_TAP, Tap
from transformer.model.transformer import Transformer
from transformer.runs.array_records import ArrayRecord
from transformer.runs.distribution import ranks_of
from transformer.runs.recording_pass import check_recorded
from transformer.text.tokenizer import AnyTokenizer

MASK_PIECES = ("[MASK]", "<mask>")
"""What BERT's and RoBERTa's vocabularies, and those made like them, call the mask piece."""

_MOST_LOGITS = 2**23  # of the pieces that are hidden at once, 32 MB


def mask_id(tokenizer: AnyTokenizer) -> int | None:
    """The id of the mask piece; None if the vocabulary has none."""
    found = (tokenizer.id_of(piece) for piece in MASK_PIECES)
    return next((i for i in found if i is not None), None)


@dataclass(frozen=True, eq=False)
class Hidden(ArrayRecord):
    """The model's predictions for pieces, each hidden alone."""

    places: np.ndarray  # the tokens, from 0 [piece]
    originals: np.ndarray  # the ids in those places [piece]
    losses: np.ndarray  # -ln of the probability of the original, in nats [piece]
    ranks: np.ndarray  # the place of the original among all pieces, from 1; ties go by id [piece]
    best: np.ndarray  # the likeliest id [piece]
    best_probabilities: np.ndarray  # its probability [piece]
    log_probs: np.ndarray  # log-probabilities [piece, V], in nats; empty [0, V] unless requested

    @property
    def pseudo_perplexity(self) -> float:
        """exp of the mean loss: as unsure as between this many equally probable pieces."""
        return float(np.exp(self.losses.mean()))

    def likeliest(self, index: int, count: int) -> list[int]:
        """The most probable ids for one place, best first; needs a record with log-probabilities."""
        return [int(i) for i in np.argsort(-self.log_probs[index], kind="stable")[:count]]


def hide(
    model: Transformer, ids: Sequence[int], places: Sequence[int], mask: int, *, tap: Tap = NO_TAP, whole: bool = False
) -> Hidden:
    """Hide tokens of a text, special pieces included, one at a time, and predict the piece there.

    The mask piece is given by its id, `whole` keeps all log-probabilities, and the tap acts in every pass. A
    QueryError says that the model is not encoder-only with an MLM head, that a place has no token, or that the model
    computes a value that is not finite.
    """
    check_hidden(model, places, len(ids))
    size = model.config.tgt_vocab_size
    at_once = max(1, _MOST_LOGITS // size)
    parts = [_some(model, ids, places[first : first + at_once], mask, tap) for first in range(0, len(places), at_once)]
    log_probs = torch.cat(parts) if parts else torch.zeros(0, size)
    originals = torch.tensor([ids[place] for place in places], dtype=torch.long)
    own = log_probs.gather(1, originals[:, None])  # [piece, 1]
    best = log_probs.max(dim=1) if len(log_probs) else (torch.zeros(0), torch.zeros(0, dtype=torch.long))
    return Hidden(
        places=np.array(places, dtype=np.int64),
        originals=originals.numpy(),
        losses=-own[:, 0].numpy(),
        ranks=ranks_of(log_probs, originals).numpy(),
        best=best[1].numpy(),
        best_probabilities=best[0].exp().numpy(),
        log_probs=(log_probs if whole else log_probs[:0]).numpy(),
    )


def check_hidden(model: Transformer, places: Iterable[int], n_tokens: int) -> None:
    """Check that a model can predict the piece at these tokens of a text; a QueryError if not."""
    if not model.anatomy.fills:
        raise QueryError("This model has no head that predicts hidden tokens, so no token can be hidden.")
    for place in places:
        if not 0 <= place < n_tokens:
            raise QueryError("token {place} does not exist; the text ends with token {n}.", place=place + 1, n=n_tokens)


@torch.inference_mode()
def _some(model: Transformer, ids: Sequence[int], places: Sequence[int], mask: int, tap: Tap) -> torch.Tensor:
    """Log-probabilities in the places of tokens that are hidden, one per row [R, V]."""
    rows, here = torch.arange(len(places)), torch.tensor(places)
    hidden = torch.tensor(ids).repeat(len(places), 1)  # [R, T]
    hidden[rows, here] = mask

    def read(seen: Tap) -> torch.Tensor:
        memory = model.encode(hidden, tap=seen)  # [R, T, D]
        return model.project(memory[rows, here][:, None], tap=seen)[:, 0]  # [R, V]

    logits = read(tap)
    check_recorded([logits], read, tap=tap)
    return logits.cpu().float().log_softmax(dim=-1)
