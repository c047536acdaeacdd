"""What the model does with sentences: how it ends, repeats, copies, and how well it guesses.

Knows nothing of Streamlit.
"""

from transformer.doctor import calibration, outputs, pairs
from transformer.doctor.patient import Test

TESTS: tuple[Test, ...] = (*outputs.TESTS, *calibration.TESTS, *pairs.TESTS)
