"""The parameters themselves: values that are no numbers, tensors that hold nothing, copies that differ.

Knows nothing of Streamlit.
"""

from transformer.doctor.patient import Test

TESTS: tuple[Test, ...] = ()
