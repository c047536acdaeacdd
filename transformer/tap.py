"""Public API of the tap: read or replace activations during one call."""

from transformer.model.sites import SITES, sites
from transformer.model.taps import NO_TAP, Hook, Recorder, Replacer, Tap, tap_of

Visitor = Hook  # its name before

__all__ = ["NO_TAP", "SITES", "Hook", "Recorder", "Replacer", "Tap", "Visitor", "sites", "tap_of"]
