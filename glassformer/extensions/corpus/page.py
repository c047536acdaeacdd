"""The page Over a corpus, with its place in the menu: the heads of a model over many sentences."""

from pathlib import Path

from glassformer.shared.page_blocks import MY_MODEL, PageEntry
from transformer.i18n import say

PAGES = (PageEntry(65, Path(__file__), say("Over a corpus"), MY_MODEL, path="corpus"),)

if __name__ == "__main__":  # Streamlit runs this file; the list of pages only imports it
    from glassformer.extensions.corpus import open_corpus_run
    from glassformer.extensions.corpus.corpus_pictures import CORPUS
    from glassformer.frame.run_page import sidebar
    from glassformer.frame.source_box import head_without_run
    from glassformer.runs.run_address import publish
    from glassformer.state import session

    session.begin(CORPUS.path)
    checkpoint = sidebar(CORPUS.title)
    head_without_run(CORPUS.title)
    open_corpus_run.draw(checkpoint)
    publish(checkpoint)
