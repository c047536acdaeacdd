"""Part of the Positions page: the typed sentence."""
