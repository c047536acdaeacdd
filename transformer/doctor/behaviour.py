"""What the model does with sentences: how it ends, repeats, copies, and how sure it is.

Knows nothing of Streamlit.
"""

from transformer.doctor.patient import Test

TESTS: tuple[Test, ...] = ()
