"""A toolkit's list of pieces and its settings are read as YAML has them, in no more time than they may take."""

import time

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from glassformer.extensions.toolkits import toolkit
from glassformer.extensions.toolkits.toolkit import ToolkitFiles
from tests.conftest import AT_ONCE
from tests.extensions.refusing import made_or_refused, refusal
from transformer.errors import CheckpointError
from transformer.files.untrusted_folder import FolderFiles

PIECES = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=8)


def place(folder, text):
    (folder / "vocab.yml").write_bytes(text.encode())
    return ToolkitFiles(None, folder, "", FolderFiles(folder))


@given(
    pieces=st.lists(PIECES, min_size=1, max_size=8, unique=True),
    ascii_only=st.booleans(),
    style=st.sampled_from("\"' "),
)
def test_pieces_are_those_of_yaml(tmp_path_factory, pieces, ascii_only, style):
    folder = tmp_path_factory.getbasetemp()
    lines = [
        yaml.dump(piece, default_style=style.strip() or None, allow_unicode=not ascii_only, width=10**6)
        .removesuffix("\n").removesuffix("\n...") + f": {i}\n"
        for i, piece in enumerate(pieces)
    ]  # fmt: skip
    assert place(folder, "".join(lines)).by_ids("vocab.yml") == tuple(pieces)


def test_a_list_takes_no_time_and_settings_are_short(tmp_path):
    began = time.process_time()
    for text, said in (
        ('"\\ud800": 0\n', "an unpaired surrogate"),
        ("\n" * 2_000_000, "has 2,000,000 lines; expected a list of 1 to 1,000,000 tokens"),
        ("a: 0\n" + "x" * 2_000_000, "line 2 has 2,000,000 characters; the limit is 1,000"),
        ("".join(f'"\\x41{i}": {i}\n' for i in range(50_000)), "more than 10,000 lines are in a form that is slow"),
    ):
        refusal(lambda text=text: place(tmp_path, text).by_ids("vocab.yml"), said)
    for text in ("a: [" + "1," * 480_000 + "1]", "a: 1" + ":59" * 330_000):
        with pytest.raises(CheckpointError, match=r"x: has 9\d\d,\d{3} bytes of settings; the limit is 100,000"):
            toolkit.settings(text, label="x")
    assert time.process_time() - began < 3 * AT_ONCE


@given(
    text=st.text(st.characters(codec="utf-8"), max_size=60) | st.text("ab01:\"'\\\\{}[]&*!|>%@`#-? \n\t", max_size=60)
)
def test_any_text_is_a_list_or_settings_or_one_sentence(tmp_path_factory, text):
    folder = tmp_path_factory.getbasetemp()
    made_or_refused(lambda: place(folder, text).by_ids("vocab.yml"), "")
    made_or_refused(lambda: toolkit.settings(text, label="x"), "x: ")
