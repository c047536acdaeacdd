"""Runs that are the same but for rounding."""

from dataclasses import fields

import numpy as np

from transformer.runs.trace import Trace


def told(one):
    """All that a trace says, with numbers apart, for a comparison; of an error its sentence."""
    if isinstance(one, Exception | str):
        return str(one)
    record = {field.name: getattr(one, field.name) for field in fields(one) if field.name != "seconds"}
    record |= dict.fromkeys(("log_prob", "log_probs", "log_sums", "weights", "hypotheses"))
    masks = {kind: mask.tolist() for kind, mask in one.masks.items()}
    best = [[c.id for c in one.step(t, top_k=3).candidates] for t in range(one.n_steps)]
    return record | {"masks": masks, "best": best, "results": [h.ids for h in one.hypotheses]}


def assert_alike(found, expected):
    """The same traces and errors, but for rounding."""
    found, expected = list(found), list(expected)
    assert list(map(told, found)) == list(map(told, expected))
    for one, other in zip(found, expected, strict=True):
        if isinstance(one, Trace):
            for name in ("log_prob", "log_probs", "log_sums"):
                np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-5, atol=3e-5)
            for kind in one.kinds:
                np.testing.assert_allclose(one.maps(kind), other.maps(kind), rtol=0, atol=3e-5)
