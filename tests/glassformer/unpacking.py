"""What `glassformer.components.packing` packed, as the browser reads it."""

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
