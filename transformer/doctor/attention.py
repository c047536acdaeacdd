"""Heads that do nothing, or all the same.

Knows nothing of Streamlit.
"""

from transformer.doctor.patient import Test

TESTS: tuple[Test, ...] = ()
