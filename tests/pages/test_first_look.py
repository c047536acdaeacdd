"""What a page shows at rest: few controls before its first picture, few words beside its pictures.

Read from the transcripts, which are what the pages tell. What is folded does not count, nor what a picture's component
keeps behind "How to read this", nor labels of controls. A Chinese word is counted as 1.7 characters.
"""

import re

import pytest

from tests.pages.transcript import files, sections

EXPLORE = ("step", "search", "forcing", "attention", "positions", "masks", "inside", "compare", "matters", "wrong")
FEW = ("step", "attention", "positions")  # pages that begin with at most `MOST_THERE` controls
MOST_CONTROLS, MOST_THERE, MOST_WORDS = 12, 6, 60
PICTURES = ("chart", "flow_view", "dataframe", "table")
CONTROLS = ("button", "button_group", "selectbox", "text_input", "number_input", "slider", "select_slider", "toggle",
            "multiselect", "menu_button", "[popover]", "[expandable]", "page_link")  # fmt: skip
TEXTS = ("markdown", "caption", "subheader", "text")
FOLDED = ("[popover]", "[expandable]")
SIDEBAR = re.compile(r"selectbox: (Language|语言)")
CHINESE = re.compile(r"[\u4e00-\u9fff]")
STATES = {
    address: lines
    for file in files()
    for address, lines in sections(file.read_text(encoding="utf-8")).items()
    if address.partition("?")[0] in EXPLORE and not re.search(r"lesson=|guess=", address)
}


def at_rest(lines):
    """The kind and text of all that is not folded, down to the sidebar."""
    fold = None
    for line in lines:
        depth, kind = len(line) - len(line.lstrip()), line.split(maxsplit=1)[0].rstrip(":")
        if SIDEBAR.match(line):
            return
        if fold is not None and depth > fold:
            continue
        fold = depth if kind in FOLDED else None
        if depth == 0 or fold is not None:
            yield kind, line.partition(" ")[2]


def n_words(text):
    own = len(CHINESE.findall(text)) / 1.7
    return own + len(re.findall(r"\w[\w'’.,-]*", CHINESE.sub(" ", text)))


@pytest.mark.parametrize("address", STATES)
def test_few_controls_stand_before_the_first_picture_and_few_words_beside_it(address):
    there = list(at_rest(STATES[address]))
    first = next((place for place, (kind, _) in enumerate(there) if kind in PICTURES), 0)
    before = [text for kind, text in there[:first] if kind in CONTROLS]
    assert len(before) <= (MOST_THERE if address.partition("?")[0] in FEW else MOST_CONTROLS), before
    said = [text.partition("$$")[0] for kind, text in there if kind in TEXTS]  # a formula is shown
    assert sum(map(n_words, said)) <= MOST_WORDS, said
