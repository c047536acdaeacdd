"""Measures of heads of given maps."""

import numpy as np

from tests.extensions.maps.library.made_up import all_three
from transformer.analysis import head_statistics as hs


def test_every_head_of_given_maps_is_measured():
    maps = all_three()
    for kind in maps.kinds:
        for measure in hs.measure_maps(maps.maps(kind), maps.mask(kind), kind).values():
            assert measure.means().shape == maps.maps(kind).shape[:2]
            assert np.isfinite(measure.means()).all()
