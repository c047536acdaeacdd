"""A run's head effects as a shared background job, and the head that matters most."""

from collections.abc import Hashable
from functools import partial
from typing import Final, cast

import numpy as np

from glassformer.extensions.what_if.head_effects import HeadEffects, key_of, measuring
from glassformer.runs import loading
from glassformer.runs.measurement_jobs import begins_by_itself, studies, study
from glassformer.server.jobs import JobStatus
from glassformer.server.model_runner import BusyError
from glassformer.shared.i18n import st
from transformer.checkpoint.load import Checkpoint
from transformer.runs.trace import Kind, Trace

WISH: Final = "matters_wish"  # in the session: the run last requested (True) or cancelled (False)
PATIENCE_SECONDS: Final = 0.35  # that a page waits before it shows how far it is


def begun(checkpoint: Checkpoint, trace: Trace, *, patience: float = PATIENCE_SECONDS) -> JobStatus | None:
    """How far it is, after starting it if wanted, else BusyError, and waiting for its end; None if it is not wanted."""
    key, visitor = key_of(trace), loading.visitor()
    kept: tuple[Hashable, bool] | None = st.session_state.get(WISH)
    wish = kept[1] if kept is not None and kept[0] == key else None  # whether it was requested, or cancelled
    seen = studies().look(key, visitor)
    if seen is None or (seen.state == "failed" and wish):
        if wish is False or not (wish or begins_by_itself(checkpoint)):
            return None
        st.session_state.pop(WISH, None)  # what fails is tried once more only when it is asked for once more
        cost = sum(maps.shape[0] * maps.shape[1] for maps in trace.weights.values())
        work = partial(study, loading.runner(), partial(measuring, checkpoint, trace), float(cost))
        seen = studies().ask(key, work, visitor=visitor).seen
    return studies().look(key, visitor, patience=patience) if seen.is_under_way else seen


def look(trace: Trace) -> JobStatus | None:
    """How far it is."""
    return studies().look(key_of(trace), loading.visitor())


def result_of(seen: JobStatus | None) -> HeadEffects | None:
    """What was found, once it is done."""
    return cast("HeadEffects", seen.result) if seen is not None and seen.state == "done" else None


def found_now(checkpoint: Checkpoint, trace: Trace) -> HeadEffects | None:
    """The effects, if they exist or arrive while a page may wait; starts the job if it starts automatically."""
    if not begins_by_itself(checkpoint) or not trace.keeps_maps:
        return None
    try:
        return result_of(begun(checkpoint, trace, patience=2 * PATIENCE_SECONDS))
    except BusyError:
        return None


def matters_most(found: HeadEffects) -> tuple[Kind, int, int]:
    """The head that matters most to the output (in an encoder-only model, to the vectors): attention, layer, head."""

    def loss(kind: Kind) -> np.ndarray:
        effect = found.of[kind]
        return effect.vectors.mean(axis=2) if effect.vectors.shape[2] else -effect.log_prob.sum(axis=2)

    losses = {kind: loss(kind) for kind in found.of}
    kind = max(losses, key=lambda one: float(losses[one].max()))
    layer, head = np.unravel_index(int(losses[kind].argmax()), losses[kind].shape)
    return kind, int(layer), int(head)


def want(key: Hashable) -> None:
    """Callback: have it measured."""
    st.session_state[WISH] = key, True


def stop(key: Hashable) -> None:
    """Callback: cancel it."""
    studies().withdraw(key, loading.visitor())
    st.session_state[WISH] = key, False
