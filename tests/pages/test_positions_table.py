"""The table of positions with its sines apart from its cosines, without a browser."""

import numpy as np

from tests.pages.conftest import ROOT, check
from tests.pages.reading import address, figure
from tests.pages.test_positions import paper, z_of

PAGE = ROOT / "pages" / "explore" / "positions.py"


def test_sines_stand_apart_from_cosines_unless_asked_otherwise(open_page):
    test = open_page(PAGE, model="zh-en")
    table = paper(64, 256)
    check(next(toggle for toggle in test.toggle if toggle.key == "apart").set_value(False).run())
    assert address(test)["apart"] == "0"
    np.testing.assert_allclose(z_of(test, "position_table"), table, atol=1e-5)
    check(next(toggle for toggle in test.toggle if toggle.key == "apart").set_value(True).run())
    assert "apart" not in address(test)
    np.testing.assert_allclose(z_of(test, "position_table"), np.hstack([table[:, ::2], table[:, 1::2]]), atol=1e-5)
    drawn = figure(test, "position_table")
    assert drawn["layout"]["meta"]["ticks"]["xaxis"]["labels"][126:130] == ["252", "254", "1", "3"]
