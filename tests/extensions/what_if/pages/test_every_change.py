"""Every kind of change is made by its address and drawn: each on another page or part, in turn."""

import pytest

from glassformer.extensions.what_if.interventions import KINDS
from glassformer.extensions.what_if.what_if_panels import CHANGES
from glassformer.runs import loading
from tests.extensions.scripts import COMPARE, MATTERS
from tests.extensions.what_if.interventions.of_kinds import example
from tests.pages.conftest import ROOT
from tests.pages.reading import opened
from transformer.runs.interventions import write

EXPLORE = ROOT / "pages" / "explore"
PLACES = (
    *((EXPLORE / "attention.py", {"panel": part}) for part in ("overview", "head", "flow", "walk", "table")),
    (EXPLORE / "step.py", {}),
    (EXPLORE / "inside.py", {"inside": "stream"}),
    (EXPLORE / "inside.py", {"inside": "lens"}),
    (EXPLORE / "masks.py", {}),
    (EXPLORE / "positions.py", {"positions": "sentence"}),
    (EXPLORE / "search.py", {"how": "beam"}),
    (EXPLORE / "forcing.py", {"ref": "ssalg"}),
    (COMPARE, {}),
    (MATTERS, {"matters": "pieces"}),
    (MATTERS, {"matters": "logit"}),
)
ALL = [
    pytest.param(kind, *place, id=f"{word} {n}", marks=() if n == turn % len(PLACES) else pytest.mark.deep)
    for turn, (word, kind) in enumerate(KINDS.items())
    for n, place in enumerate(PLACES)
]


@pytest.mark.parametrize(("kind", "path", "parameters"), ALL)
def test_a_changed_run_is_drawn(open_page, kind, path, parameters):
    checkpoint = opened("reverse")
    change = example(kind, checkpoint, "glass")
    loading.runner().trace(checkpoint, checkpoint.query("glass", interventions=(change,)))  # it can be run
    test = open_page(path, model="reverse", src="glass", do=write([change]), **parameters)
    assert not test.error, [one.value for one in test.error]
    assert [one.label for one in test.button if (one.key or "").startswith(f"{CHANGES}_")], str(change)
