"""Entry of the part Parameters on the page Doctor, and the fields of its view (`ParametersLook`)."""

from typing import Literal

from glassformer.runs.picture import PartEntry
from glassformer.state.fields import LONGEST_NAME, Look, choice, flag, text
from transformer.i18n import say

Tensors = Literal["all", "not_finite", "constant"]


class ParametersLook(Look):
    """View state of parameters."""

    tensor: str = text("tensor", most=LONGEST_NAME)  # A parameter by its name; "" for the page's own choice
    tensors: Tensors = choice("tensors", "all")  # which parameters are listed
    names: str = text("names", most=LONGEST_NAME)  # words that the names of those have
    against: str = text("against", most=LONGEST_NAME)  # the checkpoint they are compared with, by name; "" for none
    log_counts: bool = flag("counts")  # the counts of a histogram go by their logarithm


PART = PartEntry(
    "parameters", say("Parameters"), "glassformer.extensions.parameters.parameter_panels:draw", page="doctor"
)
