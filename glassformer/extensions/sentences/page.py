"""The page A file of sentences, with its place in the menu: each line run, in a table that leads to every page."""

from pathlib import Path

from glassformer.shared.page_blocks import MY_MODEL, PageEntry
from transformer.i18n import say

PAGES = (PageEntry(64, Path(__file__), say("A file of sentences"), MY_MODEL, path="sentences"),)

if __name__ == "__main__":  # Streamlit runs this file; the list of pages only imports it
    from glassformer.extensions.sentences import sentence_panels
    from glassformer.frame.decoding import decoding_line
    from glassformer.frame.run_page import sidebar
    from glassformer.frame.source_box import head_without_run
    from glassformer.runs.run_address import publish
    from glassformer.shared.i18n import st
    from glassformer.state import session

    session.begin("sentences")
    checkpoint = sidebar(PAGES[0].title, decodes=True)
    head_without_run(PAGES[0].title)
    with st.container(key="decoding_alone"):  # there is no stepper above it
        decoding_line(checkpoint)
    job = sentence_panels.current(checkpoint)
    if job is None:
        st.caption(say("Each line is run separately in the background. Afterwards, you can open it on any page."))
        sentence_panels.ask(checkpoint, None)
        publish(checkpoint, job="")
    else:
        sentence_panels.draw(job, checkpoint)
        sentence_panels.ask(checkpoint, job)
