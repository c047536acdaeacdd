"""Rotary positions (RoPE): frequencies, scalings for longer texts (linear, Llama 3, YaRN), rotation of a vector.

Queries and keys turn by angles that grow with their position. If one pair of numbers is turned by p w and another by q
w, their dot product depends on (p - q) w only. So of the positions of query and key only the distance affects a score.
Each pair of dimensions has its own w, from fast to slow.

Source: Su et al., "RoFormer" (2021), section 3.2; pairs are (i, i + n / 2), as in the files of GPT-NeoX and LLaMA in
transformers. Scalings: see `transformer.model.attention_features.Rotary`.

Shapes: T tokens, n dimensions that turn, d d_head.
"""

import math

import numpy as np
import torch
from torch import Tensor

from transformer.model.attention_features import Rotary

Rotation = tuple[Tensor, Tensor]
"""Cosines and sines of the angles, each [T, n / 2], times the magnitude."""


def frequencies(rotary: Rotary, d_head: int, *, max_len: int, local: bool = False) -> np.ndarray:
    """How many radians each pair turns from one token to the next [n / 2]; `local`: in a layer with a window."""
    width = rotary.width(d_head)
    steps = np.arange(0, width, 2) / width  # [n / 2]
    if local and rotary.local_base is not None:
        return np.asarray(rotary.local_base**-steps)
    plain: np.ndarray = rotary.base**-steps
    kept = _share_kept(rotary, plain, length=rotary.original_len or max_len)
    return plain * kept + plain / rotary.factor * (1 - kept)


def _share_kept(rotary: Rotary, plain: np.ndarray, *, length: int) -> np.ndarray:
    """How much of each pair's frequency stays, 0 to 1; the rest is divided by the factor."""
    if rotary.scaling == "none":
        return np.ones_like(plain)
    if rotary.scaling == "linear":
        return np.zeros_like(plain)
    if rotary.scaling == "llama3":
        turns = length * plain / (2 * math.pi)
        return np.clip((turns - rotary.slow) / (rotary.fast - rotary.slow), 0, 1)
    n_pairs = len(plain)
    first, last = (_pair_that_turns(turns, rotary.base, n_pairs, length) for turns in (rotary.fast, rotary.slow))
    if rotary.rounded:
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, 2 * n_pairs - 1)
    return 1 - np.clip((np.arange(n_pairs) - first) / max(last - first, 1e-3), 0, 1)


def _pair_that_turns(turns: float, base: float, n_pairs: int, length: int) -> float:
    """The pair, as a fraction, that makes so many turns in a text."""
    return n_pairs * math.log(length / (turns * 2 * math.pi)) / math.log(base)


def magnitude(rotary: Rotary, *, local: bool = False) -> float:
    """The factor on turned queries and keys."""
    if local and rotary.local_base is not None:
        return 1.0
    if rotary.magnitude is not None:
        return rotary.magnitude
    return 0.1 * math.log(rotary.factor) + 1 if rotary.scaling == "yarn" and rotary.factor > 1 else 1.0


def rotation(speeds: np.ndarray, size: float, places: Tensor, *, like: Tensor) -> Rotation:
    """The rotation of tokens at these places [T], with the speeds of `frequencies` and the factor of `magnitude`."""
    angles = torch.from_numpy(places.numpy(force=True)[:, None] * speeds)  # [T, n / 2], float64
    return (angles.cos() * size).to(like), (angles.sin() * size).to(like)


def rotate(x: Tensor, turn: Rotation) -> Tensor:
    """Turn each pair (i, i + n / 2) of the first n dimensions, [B, H, T, d] -> the same.

    [ cos p w   -sin p w ] [ x_i         ]
    [ sin p w    cos p w ] [ x_(i + n/2) ]
    """
    cos, sin = turn  # [T, n / 2]
    first, second, rest = x.split([cos.size(-1), cos.size(-1), x.size(-1) - 2 * cos.size(-1)], dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin, rest), dim=-1)
