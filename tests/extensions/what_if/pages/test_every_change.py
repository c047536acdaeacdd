"""Every kind of change is made by its address and drawn: some on each page or part, in turn."""

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
WORDS = list(KINDS)
# With the tests that run each time a page has several kinds at once, with the deep ones each kind alone.
ALL = [
    *(pytest.param(WORDS[n :: len(PLACES)], *place, id=f"{n}") for n, place in enumerate(PLACES)),
    *(
        pytest.param([word], *place, id=f"{word} {n}", marks=pytest.mark.deep)
        for word in WORDS
        for n, place in enumerate(PLACES)
    ),
]


@pytest.mark.parametrize(("words", "path", "parameters"), ALL)
def test_a_changed_run_is_drawn(open_page, words, path, parameters):
    checkpoint = opened("reverse")
    changes = tuple(example(KINDS[word], checkpoint, "glass") for word in words)
    loading.runner().trace(checkpoint, checkpoint.query("glass", interventions=changes))  # it can be run
    test = open_page(path, model="reverse", src="glass", do=write(changes), **parameters)
    assert not test.error, [one.value for one in test.error]
    chips = [one.label for one in test.button if (one.key or "").startswith(f"{CHANGES}_")]
    assert len(chips) == len(words), str(changes)
