"""Whether the tokenizers are those of the model.

Knows nothing of Streamlit.
"""

from transformer.doctor.patient import Test

TESTS: tuple[Test, ...] = ()
