"""What `glassformer.components` packed, as the browser reads it."""

import base64

import numpy as np


def numbers_of(sent):
    """The numbers, in one row."""
    steps = np.frombuffer(base64.b64decode(sent["steps"]), dtype="<u2" if sent["levels"] > 255 else "u1")
    whole = np.zeros(sent["count"])
    filled = slice(None)
    if sent["filled"] is not None:
        bits = np.frombuffer(base64.b64decode(sent["filled"]), dtype=np.uint8)
        filled = np.unpackbits(bits)[: sent["count"]].astype(bool)
    whole[filled] = steps / sent["levels"]
    return whole


def flow_weights(sent, n_queries, n_keys):
    """Weights [head, query, key] of the flow view, NaN where nothing was sent."""
    allowed = np.ones(n_queries * n_keys, dtype=bool)
    if sent["open"] is not None:
        bits = np.frombuffer(base64.b64decode(sent["open"]), dtype=np.uint8)
        allowed = np.unpackbits(bits)[: allowed.size].astype(bool)
    weights = np.full((sent["heads"], allowed.size), np.nan)
    weights[:, allowed] = numbers_of(sent["weights"]).reshape(sent["heads"], -1)
    return weights.reshape(sent["heads"], n_queries, n_keys)
