"""The candidates of the current step in both runs: two lists beside each other, and how far each piece moved."""

from functools import partial

from glassformer.extensions.what_if.compare import pair_pictures
from glassformer.extensions.what_if.compare.pair import Pair
from glassformer.extensions.what_if.compare.second_run import branching
from glassformer.runs.open_run import OpenRun
from glassformer.runs.show import show
from glassformer.shared import drawing


def draw(pair: Pair[OpenRun]) -> None:
    """Draw both lists of two runs with an output, and what changed between them; errors as of `read_by`."""
    take = branching(pair.main)
    drawing.beside(*(partial(show, one, pair, take=take) for one in (pair_pictures.left, pair_pictures.right)))


def alone(run: OpenRun, *, branches: bool) -> None:
    """Draw the candidates of a run that nothing is beside yet; where branches are compared, a click makes one."""
    pair = Pair("branches" if branches else "ways", run, run)
    show(pair_pictures.left, pair, take=branching(run))
