"""Text in a chart is shown letter by letter, cut labels stay whole beside, and each colour has a dark twin."""

import html
import re
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from glassformer.charts import theme
from glassformer.charts.theme import DARK_COLORS, SCALES, SIGNED_SCALE, capitalised, literal, ticks
from transformer.i18n import joined, say

HOSTILE = ["<s>", "<br>", "<b>x</b>", "&lt;", "&amp;", "&#60;", "$x^2$", "%{x}", "{y}", "<a href='x'>y</a>"]


def test_literal_leaves_nothing_that_plotly_reads_as_markup_and_plain_text_alone():
    for piece in (*HOSTILE, "▁the", "_", "`a`", "图书馆", "👩‍👩‍👧", "é", "", "a b"):
        written = literal(piece)
        assert not re.search(r"[<>$%{}]|&(?!#\d+;)", written)
        assert html.unescape(written) == piece
        assert piece in HOSTILE or written == piece
    unseen = {"\x00": "⟨U+0000⟩", "\u202eabc": "⟨U+202E⟩abc", "a\nb": "a⟨U+000A⟩b", "\u200f": "⟨U+200F⟩"}
    assert {piece: literal(piece) for piece in unseen} == unseen
    assert literal("שלום") == "\u2068שלום\u2069"  # right-to-left text is isolated


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


def test_many_labels_are_thinned_and_one_that_is_cut_is_kept_whole_beside_and_of_two_parts_the_beginning_of_both():
    few = ticks(["▁a", "▁a", "<s>"], title="Key")["axis"]
    assert (few["tickvals"], few["ticktext"]) == ([0, 1, 2], ["▁a", "▁a", literal("<s>")])
    many = ticks([f"p{place}" for place in range(100)], title="Key")
    assert many["axis"]["tickvals"] == list(range(0, 100, 3))
    assert many["axis"]["ticktext"][1] == "p3"
    assert "1 in 3" in many["axis"]["title"]["text"]
    assert len(many["spec"]["labels"]) == 100
    rows = ["▁internationalisation → ▁internationalisations", "▁a → ▁b", "<Donaudampfschiff>"]
    made = ticks(rows, title="Rows")
    assert made["axis"]["ticktext"][:2] == ["▁interna… → ▁interna…", "▁a → ▁b"]
    assert made["spec"]["labels"][2].endswith("…")
    assert made["spec"]["whole"] == {"0": rows[0], "2": literal(rows[2])}


def test_every_colour_has_a_dark_twin_and_charts_have_no_colour_but_the_themes():
    used = {shade for scale in (*SCALES.values(), SIGNED_SCALE) for _, shade in scale}
    named = {value for name, value in vars(theme).items() if name.endswith(("_COLOR", "_PALE", "MASK_LINE"))}
    assert used | named <= DARK_COLORS.keys()
    files = Path(theme.__file__).parents[1].rglob("*_pictures.py"), Path(theme.__file__).parent.glob("*.py")
    own = [one.name for each in files for one in each if re.search(r"#[0-9A-Fa-f]{6}\b", one.read_text("utf-8"))]
    assert own == ["theme.py"]


def test_a_sentence_gets_a_capital_and_data_at_its_beginning_stays_as_it_was_typed():
    assert capitalised(say("the loss is {n}", n=2)) == "The loss is 2"
    assert capitalised(say("{path}: is missing.", path="appfiles/config.json")) == "appfiles/config.json: is missing."
    inner = say("{label}: {problem}", label="tokenizer.json", problem=say("it is damaged"))
    assert capitalised(say("{said}", said=inner)) == "tokenizer.json: it is damaged"
    assert capitalised(joined(" ", ["", inner])) == " tokenizer.json: it is damaged"
    assert capitalised(say("{measure}: more", measure=say("mean loss"))) == "Mean loss: more"
