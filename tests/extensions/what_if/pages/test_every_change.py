"""Every page draws the run of a changed model: each kind of change on a part of Attention, and on one page more."""

import pytest

from glassformer.extensions.what_if.interventions import KINDS
from glassformer.extensions.what_if.what_if_panels import CHANGES
from glassformer.runs import loading
from tests.extensions.scripts import COMPARE, MATTERS
from tests.extensions.what_if.interventions.of_kinds import example
from tests.pages.conftest import ROOT
from tests.pages.reading import opened
from transformer.errors import GlassformerError
from transformer.runs.interventions import write

EXPLORE = ROOT / "pages" / "explore"
PARTS = ("overview", "head", "flow", "walk", "table")
OTHERS = (
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


@pytest.mark.parametrize("turn", range(len(KINDS)), ids=list(KINDS))
def test_a_changed_run_is_drawn(open_page, turn):
    checkpoint = opened("reverse")
    change = example(list(KINDS.values())[turn], checkpoint, "glass")
    try:
        loading.runner().trace(checkpoint, checkpoint.query("glass", interventions=(change,)))
    except GlassformerError as error:
        pytest.fail(f"{change}: {error}")
    page, more = OTHERS[turn % len(OTHERS)]
    for path, parameters in ((EXPLORE / "attention.py", {"panel": PARTS[turn % len(PARTS)]}), (page, more)):
        test = open_page(path, model="reverse", src="glass", do=write([change]), **parameters)
        assert not test.error, [one.value for one in test.error]
        assert [one.label for one in test.button if (one.key or "").startswith(f"{CHANGES}_")], str(change)
