"""The little that the theme cannot say: how tight the page's head is, and that examples look like words to pick.

The rules are fixed text of ours; no data ever goes into them. A key of a run begins with its slot, so such rules name
the key's end only: `st-key-candidates` and `st-key-b-candidates` both hold "-candidates".
"""

from __future__ import annotations

from ui.shared.door import st

STEP_GRID = "step_grid"
GUESSING = "guessing"
CARD = "card"
COUNTED = "counted"

_RULES = """
<style>
[class*="-step_grid"] {
  display: grid; gap: 1.5rem 2.5rem; grid-template-columns: minmax(0, 3fr) minmax(0, 2fr);
  grid-template-areas: "candidates entropy" "force ." "map row";
}
[class*="-step_grid"] > * { width: 100% !important; min-width: 0; }
[class*="-step_grid"] > :is([class*="-candidates"], [class*="-guessing"]) { grid-area: candidates; }
[class*="-step_grid"] > [class*="-force_choice"] { grid-area: force; margin-top: -0.75rem; }
[class*="-step_grid"] > [class*="-entropy"] { grid-area: entropy; }
[class*="-step_grid"] > [class*="-cross_row"] { grid-area: row; }
[class*="-step_grid"] > [class*="-cross_map"] { grid-area: map; }
@media (max-width: 900px) {
  [class*="-step_grid"] {
    grid-template-columns: minmax(0, 1fr);
    grid-template-areas: "candidates" "force" "entropy" "row" "map";
  }
}
[data-testid="stMainBlockContainer"] {
  padding: 3.75rem clamp(1.5rem, 3vw, 4rem) 4rem; max-width: 96rem;
}
/* Charts take the room, lines of text do not. */
[data-testid="stMainBlockContainer"] [data-testid="stMarkdownContainer"] > p,
[data-testid="stMainBlockContainer"] [data-testid="stCaptionContainer"] p { max-width: 54rem; }
[data-testid="stMainBlockContainer"] h1 { padding: 0 0 0.25rem; font-size: 1.75rem; }
.st-key-examples { row-gap: 0.375rem; column-gap: 0.5rem; margin-top: -0.375rem; }
.st-key-examples button {
  min-height: 2rem; padding: 0 0.7rem; border: 1px solid rgb(128 128 128 / 35%) !important; border-radius: 1rem;
}
.st-key-examples button p { font-size: 0.875rem; }
[class*="-result_choice"] [data-testid="stRadio"] { display: flex; column-gap: 1.25rem; align-items: baseline; }
[class*="-result_choice"] [data-testid="stWidgetLabel"] { flex: none; }
:is(.st-key-source_row, [class*="-untouched_row"]) { flex-wrap: nowrap; }
/* Tables wrap their text at 400 px otherwise, however wide they are. */
.st-key-card td [data-testid="stMarkdownContainer"], .st-key-counted td [data-testid="stMarkdownContainer"] {
  max-width: none; white-space: normal;
}
.st-key-card td p, .st-key-counted td:last-child p { overflow-wrap: anywhere; }
@media (max-width: 640px) {
  [data-testid="stMainBlockContainer"] { padding-left: 1rem; padding-right: 1rem; }
  .st-key-examples { flex-wrap: nowrap; overflow-x: auto; padding-bottom: 0.25rem; }
  .st-key-examples > * { flex-shrink: 0; }
  .st-key-examples button { white-space: nowrap; }
}
</style>
"""


def apply() -> None:
    """Put the rules into the page."""
    st.html(_RULES)
