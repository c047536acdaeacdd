"""The page Doctor: examinations one after the other, their findings, and the parameters."""
