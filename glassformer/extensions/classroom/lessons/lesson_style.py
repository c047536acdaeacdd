"""Where the panel of a lesson stands: beside the page where there is room, else at the bottom; it covers nothing.

The rules are fixed text of ours; a lesson brings only keys of charts, of letters and digits.
"""

from collections.abc import Sequence
from typing import Final

from glassformer.components.streamlit_page import styled
from glassformer.shared.door import st

PANEL: Final = "lesson_panel"
# A class looks at pictures: on a phone what it is asked is one line, which unfolds.
FOLDED: Final = '<details class="gf-asked"><summary><strong>{}</strong></summary></details>'
_OUTLINE: Final = "{ outline: 3px solid #e69f00; outline-offset: 4px; border-radius: 4px; }"

_RULES = styled("""
<style>
.st-key-lesson_panel { gap: 0; }
/* The panel lies over the page. */
.st-key-lesson_panel { background: light-dark(#fbfaf7, #141b23); }
.st-key-lesson_panel > *, .st-key-lesson_panel :--expander, .st-key-lesson_panel details {
  background-color: inherit;
}
[class*="_covered"] { opacity: 0.75; }
/* Beside the panel the page is as narrow as in a small window. */
@media (min-width: 1101px) and (max-width: 1500px) {
  :--app [class*="-step_grid"] {
    grid-template-columns: minmax(0, 1fr);
    grid-template-areas: "candidates" "force" "entropy" "row" "map"; grid-template-rows: none;
  }
  :--app :--main :--horizontal { flex-wrap: wrap; }
  :--app :--main :--column { min-width: calc(100% - 1.5rem); }
}
@media (min-width: 1101px) {
  .st-key-lesson_panel {
    position: fixed; z-index: 25; top: 0.6rem; right: 3.25rem; width: 20rem !important;
    max-height: calc(100vh - 1.2rem); overflow-y: auto;
  }
  :--app :--main-block { padding-right: 24.5rem; }
}
@media (max-width: 1100px) {
  .st-key-lesson_panel {
    position: fixed; z-index: 25; bottom: 0; left: 0; right: 0; width: auto !important;
    max-height: 46vh; overflow-y: auto; padding: 0 0.5rem 1.25rem; scroll-padding-bottom: 1.25rem;
  }
  :root :--app :--main-block { padding-bottom: calc(50vh + var(--gf-room, 0px)); }
}
.gf-asked { display: none; }
@media (max-width: 640px) {
  .gf-asked { display: block; }
  .gf-asked summary {
    overflow: hidden; text-overflow: ellipsis; white-space: nowrap; padding: 0.7rem 0.25rem 0.4rem; font-weight: 600;
  }
  .st-key-lesson_panel:has(.gf-asked:not([open])) { padding-bottom: 0.25rem; }
  .st-key-lesson_panel:has(.gf-asked:not([open])) :--expander,
  .st-key-lesson_panel:has(.gf-asked) :--expander summary { display: none; }
}
/* The sheet is at the foot, so the stepper stays at the top: between the two buttons of the corners. */
@media (max-width: 640px) {
  :--app .st-key-stepper { --gf-foot: static; --gf-side: 2rem; --gf-slider: 1.5rem; position: sticky; }
}
/* A narrower window has the sidebar over the page, not beside it. */
@media (min-width: 769px) and (max-width: 1100px) {
  :root:not(.gf-present) :--sidebar:--unfolded ~ * .st-key-lesson_panel { left: 300px; }
}
</style>
""")


def apply() -> None:
    """Put the rules into the page."""
    st.html(_RULES)


def outline(keys: Sequence[str]) -> None:
    """Outline charts, by their keys: letters, digits, `_` and `-` only."""
    if keys:
        chosen = ", ".join(f".st-key-{key}" for key in keys)
        st.html(f"<style>{chosen} {_OUTLINE}</style>")
