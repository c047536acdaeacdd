"""Part of the Inside page: what makes attention fast."""
