"""The first page needs neither pandas nor pyarrow, which are 70 MB and half a second of imports."""

from tests.afresh import run_apart
from tests.source_code import ROOT

DRAW = """
import sys
from streamlit.testing.v1 import AppTest
test = AppTest.from_file("main.py", default_timeout=120).run()
print(len(test.get("bidi_component")), [one.value for one in test.exception], {"pandas", "pyarrow"} & {*sys.modules})
"""


def test_it_is_drawn_without_tables():
    drawn, _, rest = run_apart(DRAW, folder=ROOT).stdout.strip().partition(" ")
    assert int(drawn) > 3
    assert rest == "[] set()"
