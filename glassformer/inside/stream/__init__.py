"""Part of the Inside page: the residual stream."""
