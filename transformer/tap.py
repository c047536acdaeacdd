"""The public door to the tap (`transformer.model.taps`): see or replace any named value during one call."""

from transformer.model.sites import SITES, sites
from transformer.model.taps import NO_TAP, Recorder, Replacer, Tap, tap_of

__all__ = ["NO_TAP", "SITES", "Recorder", "Replacer", "Tap", "Visitor", "sites", "tap_of"]
