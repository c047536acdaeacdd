"""The examinations of the server."""

from ui.runs import loading
from ui.runs.examinations import Examinations
from ui.shared.door import st


@st.cache_resource(show_spinner=False)
def examinations() -> Examinations:
    """All visitors' examinations."""
    return Examinations(is_busy=lambda: loading.runner().is_busy)
