"""The public door to the tap: see or replace any named value during one call. It lives in `transformer.model.tap`."""

from transformer.model.sites import SITES, sites
from transformer.model.tap import NO_TAP, Recorder, Replacer, Tap, Visitor, tap_of

__all__ = ["NO_TAP", "SITES", "Recorder", "Replacer", "Tap", "Visitor", "sites", "tap_of"]
