"""The app's own pages open where no extension is there."""

import subprocess
import sys

from tests.pages.conftest import ROOT

SCRIPT = """
import sys
from pathlib import Path
from streamlit.testing.v1 import AppTest
import glassformer.extensions
import transformer

glassformer.extensions.NAMES = ()
assert "Checkpoint" in dir(transformer) and "examine" not in dir(transformer)
for page in [*sorted(Path("pages").glob("*/*.py")), Path("main.py")]:
    test = AppTest.from_file(str(page.resolve()), default_timeout=300)
    test.query_params.update(model="reverse", src="abcdef")
    assert not test.run().exception, (page, test.exception)
assert not [name for name in sys.modules if name.startswith("glassformer.extensions.")]
"""


def test_each_page_of_the_app_opens():
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
