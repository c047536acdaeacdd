"""The part that parameters add to the page Doctor, which has a checkpoint and no run."""

from glassformer.runs.picture import PartEntry
from transformer.i18n import say

PART = PartEntry(
    "parameters", say("Parameters"), "glassformer.extensions.parameters.parameter_panels:draw", page="doctor"
)
