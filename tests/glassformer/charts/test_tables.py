"""Maps as tables."""

import numpy as np

from glassformer.charts import tables


def test_a_table_of_too_many_rows_says_so_instead(monkeypatch):
    monkeypatch.setattr(tables, "MOST_ROWS", 10)
    names = {"queries": ["a", "b"], "keys": ["x", "y"], "heads": [1]}
    assert len(tables.heads_columns(np.ones((2, 1, 2, 2)), layers=[1, 2], **names)["weight"]) == 8
    found = tables.heads_columns(np.ones((3, 1, 2, 2)), layers=[1, 2, 3], **names)
    assert list(found) == ["note"]
    assert "12 weights" in found["note"][0]


def test_each_row_of_a_map_may_have_its_own_reason():
    open_cells = np.array([[True, False], [False, False]])
    table = tables.map_columns(
        np.ones((2, 2)), queries=["a", "b"], keys=["c", "d"], allowed=open_cells, mask_reason=["one", "two"]
    )
    assert list(map(str, table["note"])) == ["", "one", "two", "two"]
