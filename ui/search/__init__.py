"""The page How pieces are chosen: a beam search as a tree, before the draw, many draws."""
