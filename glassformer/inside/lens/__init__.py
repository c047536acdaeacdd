"""Part of the Inside page: the logit lens."""
