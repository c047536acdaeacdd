"""The page Compare: what is compared, both runs, their outputs, candidates and maps."""
