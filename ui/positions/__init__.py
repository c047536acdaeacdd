"""The page Positions: the table, similarity, the shift, rotations, bias by distance, the typed sentence."""
