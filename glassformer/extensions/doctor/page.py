"""The page Doctor, with its place in the menu: findings about the chosen checkpoint, and its parameters."""

from pathlib import Path

from glassformer.shared.page_blocks import MY_MODEL, PageEntry
from transformer.i18n import say

PAGES = (PageEntry(61, Path(__file__), say("Doctor"), MY_MODEL, path="doctor"),)

if __name__ == "__main__":  # Streamlit runs this file; the list of pages only imports it
    from glassformer.extensions.doctor.doctor_page import DOCTOR, FINDINGS
    from glassformer.extensions.doctor.doctor_panels import draw_unopened
    from glassformer.frame.run_page import sidebar
    from glassformer.frame.source_box import head_without_run
    from glassformer.runs.run_address import publish
    from glassformer.runs.show import choose_part
    from glassformer.shared import controls, cover_box, drawing
    from glassformer.shared.i18n import st
    from glassformer.state import session
    from glassformer.state.view import MAIN

    session.begin(DOCTOR.path)
    checkpoint = sidebar(DOCTOR.title, unopened=draw_unopened)
    head_without_run(DOCTOR.title)
    with controls.bar(MAIN):
        part = choose_part(DOCTOR, MAIN)
    if part == FINDINGS.name:
        st.caption(
            say(
                "Tests of {name}: its weights, its wiring, its tokenizers, and how it handles sentences.",
                name=drawing.plain(checkpoint.card.title or checkpoint.name),
            )
        )
    cover_box.part(lambda: DOCTOR.listed()[part].draw(checkpoint))
    publish(checkpoint)
