"""How pieces are chosen: a beam search as a tree, before the draw, many draws, and drafts that are checked."""

from ui.frame.run_page import run_page
from ui.search import search_panels
from ui.search.search_pictures import SEARCH

run_page(SEARCH, search_panels.draw)
