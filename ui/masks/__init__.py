"""The page Masks: a batch, its masks, one row, live checks."""
