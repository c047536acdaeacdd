"""The examinations of the server."""

from glassformer.extensions.doctor.examinations import Examinations
from glassformer.runs import loading
from glassformer.shared.door import st


@st.cache_resource(show_spinner=False)
def examinations() -> Examinations:
    """All visitors' examinations."""
    return Examinations(is_busy=lambda: loading.runner().is_busy)
