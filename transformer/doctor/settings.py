"""What a file does not store: heads, scale, place of the norms. Neighbouring values are tried.

Knows nothing of Streamlit.
"""

from transformer.doctor.patient import Test

TESTS: tuple[Test, ...] = ()
