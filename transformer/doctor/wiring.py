"""How the model is put together: what may see what, and whether it uses what it is given.

Knows nothing of Streamlit.
"""

from transformer.doctor.patient import Test

TESTS: tuple[Test, ...] = ()
