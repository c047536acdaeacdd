import html
import re
from pathlib import Path

import plotly.graph_objects as go
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from glassformer.charts import theme
from glassformer.charts.theme import DARK_COLORS, SCALES, base_layout, literal, shortened, ticks

HOSTILE = ["<s>", "</s>", "<br>", "<b>x</b>", "&lt;", "&amp;", "&#60;", "$x^2$", "%{x}", "{y}", "<a href='x'>y</a>"]


@pytest.mark.parametrize("piece", HOSTILE)
def test_literal_leaves_nothing_that_plotly_reads_as_markup(piece):
    written = literal(piece)
    assert not re.search(r"[<>$%{}]", written)
    assert not re.search(r"&(?!#\d+;)", written)
    assert html.unescape(written) == piece


@pytest.mark.parametrize("piece", ["▁the", "_", "`a`", "图书馆", "👩‍👩‍👧", "é", "", "a b", "100"])
def test_literal_leaves_plain_text_alone(piece):
    assert literal(piece) == piece


@pytest.mark.parametrize(
    ("piece", "shown"),
    [("\x00", "⟨U+0000⟩"), ("\u202eabc", "⟨U+202E⟩abc"), ("a\nb", "a⟨U+000A⟩b"), ("\u200f", "⟨U+200F⟩")],
)
def test_characters_that_cannot_be_seen_are_named(piece, shown):
    assert literal(piece) == shown


def undone(written):
    """The text behind `literal`, as `rawText` in plotly/numbers.js finds it."""
    return re.sub(
        r"⟨U\+([0-9A-F]{4,6})⟩|&#(\d+);",
        lambda match: chr(int(match[1], 16) if match[1] else int(match[2])),
        re.sub("[\u2068\u2069]", "", written),
    )


@given(st.text())
@example("⟨U+202E⟩ \u2068a\u2069 &#60; &#x3c; &lt; <b> שלום\u202e")
def test_what_is_written_can_be_read_back_exactly(text):
    assert undone(literal(text)) == text


def test_right_to_left_text_is_isolated():
    assert literal("שלום") == "\u2068שלום\u2069"


def test_shortening_says_that_it_shortens():
    assert shortened("nationalisierungsb", limit=8) == "nationa…"
    assert shortened("short", limit=8) == "short"


def test_few_labels_are_all_written():
    axis = ticks(["▁a", "▁a", "<s>"], title="Key")["axis"]
    assert axis["tickvals"] == [0, 1, 2]
    assert axis["ticktext"] == ["▁a", "▁a", literal("<s>")]
    assert axis["title"]["text"] == "Key"


def test_labels_that_are_cut_are_kept_whole_beside():
    spec = ticks(["▁a", "<Donaudampfschiff>"], title="Key")["spec"]
    assert spec["labels"][1].endswith("…")
    assert spec["whole"] == {"1": literal("<Donaudampfschiff>")}


def test_many_labels_are_thinned_and_the_title_says_so():
    made = ticks([f"p{place}" for place in range(100)], title="Key")
    assert made["axis"]["tickvals"] == list(range(0, 100, 3))
    assert made["axis"]["ticktext"][1] == "p3"
    assert "1 in 3" in made["axis"]["title"]["text"]
    assert len(made["spec"]["labels"]) == 100


def test_the_layout_is_valid_transparent_and_keeps_its_revision():
    figure = go.Figure(layout=base_layout("A <title>", "x", "y"))
    assert figure.layout.title.text == literal("A <title>")
    assert figure.layout.paper_bgcolor == figure.layout.plot_bgcolor == "rgba(0,0,0,0)"
    assert figure.layout.uirevision == base_layout("Another", "x", "y")["uirevision"]


def test_every_colour_has_a_dark_twin():
    used = {shade for scale in SCALES.values() for _, shade in scale}
    named = {value for name, value in vars(theme).items() if name.endswith(("_COLOR", "_PALE", "MASK_LINE"))}
    assert used | named <= DARK_COLORS.keys()


def test_a_chart_has_no_colour_but_the_themes():
    files = Path(theme.__file__).parent.glob("*.py")
    assert [one.name for one in files if re.search(r"#[0-9A-Fa-f]{6}\b", one.read_text("utf-8"))] == ["theme.py"]


@pytest.mark.parametrize("side", SCALES)
def test_scales_grow_steadily_darker(side):
    shades = [shade for _, shade in SCALES[side]]
    assert [_light(shade) for shade in shades] == sorted((_light(shade) for shade in shades), reverse=True)
    dark = [DARK_COLORS[shade] for shade in shades]
    assert [_light(shade) for shade in dark] == sorted(_light(shade) for shade in dark)


def _light(colour):
    red, green, blue = (int(colour[start : start + 2], 16) for start in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_a_long_label_of_two_parts_keeps_the_beginning_of_both():
    made = ticks(["▁internationalisation → ▁internationalisations", "▁a → ▁b", "▁internationalisation"], title="Rows")
    assert made["axis"]["ticktext"] == ["▁interna… → ▁interna…", "▁a → ▁b", "▁internationa…"]
    assert sorted(made["spec"]["whole"]) == ["0", "2"]
