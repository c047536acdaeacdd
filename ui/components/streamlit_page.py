"""What Streamlit calls the parts of its page, which any version may change: the one place where our style finds them.

Rules of style name a part as CSS names a custom selector, `:--main`, and `styled` puts Streamlit's name in its place;
the browser has the same names as `SELECTORS` (`common/streamlit-page.js`). Keys of ours, `st-key-…`, are public.
Knows nothing of Streamlit but its names.
"""

import re
from typing import Final

from ui.server.streamlit_private import PAGE, is_on


def _named(test_id: str) -> str:
    return f'[data-testid="{test_id}"]'


_PARTS: Final = {
    "app": ".stApp",
    "skeleton": _named("stAppSkeleton"),  # of the whole page, before anything has come
    "skip": _named("stSkipToContent"),
    "header": _named("stHeader"),
    "main-menu": _named("stMainMenu"),
    "unfold": _named("stExpandSidebarButton"),
    "sidebar": _named("stSidebar"),
    "sidebar-content": _named("stSidebarContent"),
    "fold": _named("stSidebarCollapseButton"),
    "main": _named("stMain"),
    "main-block": _named("stMainBlockContainer"),
    "dialog": _named("stDialog"),
    "list": '[role="listbox"][data-testid]',
    "layout": _named("stLayoutWrapper"),
    "vertical": _named("stVerticalBlock"),
    "horizontal": _named("stHorizontalBlock"),
    "column": _named("stColumn"),
    "element": _named("stElementContainer"),
    "sized": _named("stElementContainer") + '[width$="px"]',
    "component": ".stBidiComponent",
    "waiting": _named("stSkeleton"),
    "alert": _named("stAlert"),
    "exception": _named("stException"),
    "expander": _named("stExpander"),
    "markdown": _named("stMarkdownContainer"),
    "caption": _named("stCaptionContainer"),
    "badge": ".stMarkdownBadge",
    "code": _named("stCode"),
    "icon": _named("stIconMaterial"),
    "hint": _named("stTooltipIcon"),
    "table": _named("stDataFrame"),
    "metric": _named("stMetricValue"),
    "metric-label": _named("stMetricLabel"),
    "label": _named("stWidgetLabel"),
    "primary": _named("stBaseButton-primary"),
    "primary-submit": _named("stBaseButton-primaryFormSubmit"),
    "popover-button": _named("stPopoverButton"),
    "checkbox": _named("stCheckbox"),
    "radio": _named("stRadio"),
    "select": _named("stSelectbox"),
    "tags": _named("stMultiSelectTagsContainer"),
    "number": ".stNumberInput",
    "text": ".stTextInput",
    "slider": _named("stSlider"),
    "slider-value": _named("stSliderThumbValue"),
    "folded": '[data-collapsed="true"]',  # of the sidebar
    "unfolded": '[data-collapsed="false"]',
    "known": "[data-test-script-state][data-test-connection-state]",
    "runs": '[data-test-script-state="running"]',  # of the app
    "rests": '[data-test-script-state="notRunning"]',
    "connected": '[data-test-connection-state="CONNECTED"]',
}
SELECTORS: Final = {name: part if is_on(PAGE) else ":not(*)" for name, part in _PARTS.items()}


def styled(rules: str) -> str:
    """Rules of style, or any text with selectors, with the parts of the page as Streamlit calls them."""
    return re.sub(r":--([\w-]+)", lambda part: SELECTORS[part[1]], rules)
