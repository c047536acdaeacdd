"""How the model is put together: what may see what, and whether it uses what it is given.

The tests themselves stand in `masking`, `agreement` and `order_used`.

Knows nothing of Streamlit.
"""

from transformer.doctor import agreement, masking, order_used
from transformer.doctor.patient import Test
from words import say

TESTS: tuple[Test, ...] = (
    Test("causality", "wiring", say("No token sees a later one"), masking.causality),
    Test("own_token", "wiring", say("Every token sees itself"), masking.own_token),
    Test("padding_source", "wiring", say("Padding of the source is not seen"), masking.padding_source),
    Test("padding_target", "wiring", say("Padding of the target is not seen"), masking.padding_target),
    Test("batch", "wiring", say("Sentences read together do not change each other"), agreement.batch),
    Test("cache", "wiring", say("With a cache and without it, the same"), agreement.cache),
    Test("positions", "wiring", say("The order of the tokens counts"), order_used.positions),
    Test("source", "wiring", say("The output depends on the source"), order_used.source),
)
