"""Public API of the tap: read or replace activations during one call."""

from transformer.model.sites import SITES, sites
from transformer.model.taps import NO_TAP, Recorder, Replacer, Tap, Visitor, tap_of

__all__ = ["NO_TAP", "SITES", "Recorder", "Replacer", "Tap", "Visitor", "sites", "tap_of"]
