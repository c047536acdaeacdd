"""Page "How pieces are chosen": a beam search as a tree, sampling, many draws, and drafts that are checked."""

from glassformer.frame.run_page import run_page
from glassformer.search import search_panels
from glassformer.search.tree_pictures import SEARCH

run_page(SEARCH, search_panels.draw, decodes=True)
