"""Streamlit's names for the parts of its page, which any version may change, as our styles use them.

Rules of style name a part as CSS names a custom selector, `:--main`, and `styled` puts Streamlit's name in its place;
the browser has the same names as `PAGE` (`common/streamlit-page.js`). Keys of ours, `st-key-…`, are public.
Knows nothing of Streamlit but its names.
"""

import re
from typing import Final

from glassformer.server.streamlit_private import PAGE, is_on

_TEST_IDS: Final = {
    "skeleton": "AppSkeleton", "skip": "SkipToContent", "header": "Header", "main-menu": "MainMenu",
    "unfold": "ExpandSidebarButton", "sidebar": "Sidebar", "sidebar-content": "SidebarContent",
    "fold": "SidebarCollapseButton", "side-head": "SidebarHeader",
    "side-content": "SidebarUserContent", "main": "Main", "main-block": "MainBlockContainer", "dialog": "Dialog",
    "layout": "LayoutWrapper", "vertical": "VerticalBlock", "horizontal": "HorizontalBlock", "column": "Column",
    "element": "ElementContainer", "waiting": "Skeleton", "alert": "Alert", "exception": "Exception",
    "expander": "Expander", "markdown": "MarkdownContainer", "caption": "CaptionContainer", "code": "Code",
    "icon": "IconMaterial", "hint": "TooltipIcon", "table": "DataFrame", "metric": "MetricValue",
    "metric-label": "MetricLabel", "label": "WidgetLabel", "primary": "BaseButton-primary",
    "primary-submit": "BaseButton-primaryFormSubmit", "popover-button": "PopoverButton", "checkbox": "Checkbox",
    "radio": "Radio", "select": "Selectbox", "tags": "MultiSelectTagsContainer", "slider": "Slider",
    "slider-value": "SliderThumbValue",
}  # fmt: skip
_PARTS: Final = {name: f'[data-testid="st{test_id}"]' for name, test_id in _TEST_IDS.items()} | {
    "sized": '[data-testid="stElementContainer"][width$="px"]',
    "list": '[role="listbox"][data-testid]',
    "app": ".stApp", "component": ".stBidiComponent",
    "number": ".stNumberInput", "text": ".stTextInput",
    # of the sidebar, and of the app
    "folded": '[data-collapsed="true"]', "unfolded": '[data-collapsed="false"]',
    "known": "[data-test-script-state][data-test-connection-state]",
    "runs": '[data-test-script-state="running"]', "rests": '[data-test-script-state="notRunning"]',
    "connected": '[data-test-connection-state="CONNECTED"]',
}  # fmt: skip
SELECTORS: Final = {name: part if is_on(PAGE) else ":not(*)" for name, part in _PARTS.items()}

# Tells Streamlit that the app is above a page; else it finds out itself.
ABOVE: Final = '<script>window.__streamlit = { BACKEND_BASE_URL: new URL(".", location).href };</script>'


def styled(rules: str) -> str:
    """Rules of style, or any text with selectors, with the parts of the page as Streamlit calls them."""
    return re.sub(r":--([\w-]+)", lambda part: SELECTORS[part[1]], rules)
