"""Part of the Inside page: the feed-forward sub-layers."""
