"""The little that the theme cannot say: how tight the page's head is, and that examples look like words to pick.

The rules are fixed text of ours; no data ever goes into them.
"""

from __future__ import annotations

import streamlit as st

_RULES = """
<style>
[data-testid="stMainBlockContainer"] { padding-top: 3.75rem; padding-bottom: 4rem; max-width: 84rem; }
[data-testid="stMainBlockContainer"] h1 { padding: 0; font-size: 1.75rem; }
.st-key-examples { row-gap: 0; column-gap: 0.5rem; margin-top: -0.5rem; }
.st-key-examples button {
  min-height: 2rem; padding: 0 0.7rem; border: 1px solid rgb(128 128 128 / 35%) !important; border-radius: 1rem;
}
.st-key-examples button p { font-size: 0.875rem; }
.st-key-source_row { flex-wrap: nowrap; }
@media (max-width: 640px) {
  [data-testid="stMainBlockContainer"] { padding-left: 1rem; padding-right: 1rem; }
}
</style>
"""


def apply() -> None:
    """Put the rules into the page."""
    st.html(_RULES)
