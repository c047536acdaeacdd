"""A saved table says what it is of, holds every number exactly, and no formula of a stranger's."""

import io
from dataclasses import replace

import numpy as np
import pandas as pd

from glassformer.charts.heatmap import map_columns
from glassformer.shared.csv_export import Origin, csv_bytes, decoding_of, saved, slug, with_origin
from tests.transformer.made_up_changes import SilentHead
from transformer.i18n import ENGLISH, PSEUDO
from transformer.runs.query import Beam, Query, Sampling

ORIGIN = Origin(checkpoint="zh-en", sentence="我喜欢喝咖啡。", chart="Cross-attention: layer 2, head 3")


def read(content):
    return pd.read_csv(io.BytesIO(content), encoding="utf-8-sig", keep_default_na=False, na_values={"weight": [""]})


def test_long_sentences_with_one_beginning_keep_names_of_their_own_of_letters_and_numbers():
    assert ORIGIN.stem("head_map") == "zh-en_我喜欢喝咖啡_head-map_cross-attention-layer-2-head-3"
    names = [Origin(sentence=f"{'很' * 300}{end}", chart="c" * 500).stem("a_chart") for end in "ab"]
    assert names[0] != names[1]
    assert all(len(f"{name}.csv".encode()) <= 255 for name in names)
    for text in ("../../etc/passwd", "a\\b:c*?", "<b>x</b>", " . ", "\u202eevil", "CON|x\0"):
        assert all(letter.isalnum() or letter == "-" for letter in slug(text, 60))


def test_how_an_output_was_made_is_said_where_it_was_not_the_models_own_choice():
    sampling = {"decoding": Sampling(temperature=3.0, seed=7), "forced": (4, 5)}
    for made, said in (
        ({}, ""),
        (sampling, "sampling temperature=3 top_k=0 top_p=1 seed=7 forced=4.5"),
        ({"decoding": Beam(size=4), "hypothesis": 1}, "beam size=4 length_penalty=0.6 hypothesis=2"),
        ({"interventions": (SilentHead("cross", 2, 0),)}, "silent-cross.3.1"),
    ):
        assert decoding_of(Query(checkpoint="x", source="a", **made)) == said


def test_every_row_says_what_it_is_of():
    of = replace(ORIGIN, rows="as, its own step")
    table = read(csv_bytes(with_origin(pd.DataFrame({"weight": [1, 2]}), of, ENGLISH)))
    assert set(table["rows of maps"]) == {"as, its own step"}
    assert list(table.drop(columns="rows of maps")) == ["checkpoint", "sentence", "chart", "weight"]
    assert (set(table["checkpoint"]), set(table["sentence"])) == ({"zh-en"}, {"我喜欢喝咖啡。"})
    assert table["weight"].tolist() == [1, 2]


def test_formulas_are_neutralised_in_cells_headings_and_what_it_is_of():
    formulas = ["=1+1", "+x", "-x", "@x", "\tx", "＝1"]
    table = pd.DataFrame({"=head": formulas, "n": np.arange(-3.0, 3.0)})
    text = csv_bytes(with_origin(table, Origin(sentence="=HYPERLINK()"), ENGLISH)).decode("utf-8-sig")
    found = pd.read_csv(io.StringIO(text, newline=""))
    assert found["'=head"].tolist() == [f"'{formula}" for formula in formulas]
    assert set(found["sentence"]) == {"'=HYPERLINK()"}
    assert found["n"].tolist() == [-3, -2, -1, 0, 1, 2]


def test_numbers_are_read_back_exactly():
    singles = np.random.default_rng(0).random(5000, dtype=np.float32) ** 9
    doubles = np.random.default_rng(1).random(5000)
    table = read(csv_bytes(pd.DataFrame({"weight": singles, "x": doubles})))
    np.testing.assert_array_equal(table["weight"].to_numpy().astype(np.float32), singles)
    np.testing.assert_array_equal(table["x"], doubles)
    text = csv_bytes(pd.DataFrame({"weight": np.array([0.1], dtype=np.float32)}))
    assert text == b"\xef\xbb\xbfweight\r\n0.1\r\n"


def test_a_table_speaks_the_language_it_was_asked_in():
    make = lambda: map_columns(np.eye(1), queries=["a"], keys=["b"], allowed=np.zeros((1, 1), bool))  # noqa: E731
    heading, row = saved(make, Origin("m"), PSEUDO)().decode("utf-8-sig").strip().split("\r\n")
    assert all(name.startswith("⟦") for name in heading.split(","))
    assert row.split(",")[-1].startswith("⟦")
    assert row.startswith("m,1,a,1,b,,")
