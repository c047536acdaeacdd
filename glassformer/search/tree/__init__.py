"""Part of the page How pieces are chosen: a beam search as a tree."""
