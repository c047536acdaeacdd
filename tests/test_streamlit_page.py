"""Of the names of parts of Streamlit's page none is there for nothing, in the product with all its extensions."""

from glassformer.components.streamlit_page import SELECTORS
from tests.glassformer.components.test_streamlit_page import used_names


def test_each_name_is_used():
    assert set(SELECTORS) == used_names()
