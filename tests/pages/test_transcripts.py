"""What pages tell their readers is what the transcripts say; see `tests.pages.transcript`."""

import pytest

from tests.pages.conftest import PAGES
from tests.pages.transcript import ROOT, alike, different, files, sections, transcript

STATES = [
    pytest.param(address, lines, id=address)
    for file in files()
    for address, lines in sections(file.read_text(encoding="utf-8")).items()
]
AGAIN = "If that is meant, run `make transcripts`, read the diff and commit it."


@pytest.mark.parametrize(("address", "lines"), STATES)
def test_a_page_tells_what_its_transcript_says(address, lines, tmp_path, monkeypatch):
    page, _, query = address.partition("?")
    assert lines, f"{address} has no transcript yet: run `make transcripts`"
    assert (found := different(lines, transcript(PAGES[page], query))) == [], "\n".join([*found, AGAIN])


def test_there_are_transcripts_of_every_page():
    told = {address.values[0].partition("?")[0] for address in STATES}
    assert {*PAGES} - told == set()
    assert all(file.is_relative_to(ROOT) for file in files())


@pytest.mark.parametrize(
    ("line", "other", "same"),
    [
        ("weight: 0.531", "weight: 0.532", True),
        ("weight: 0.531", "weight: 0.533", False),
        ("weight: 0.531", "loss: 0.531", False),
        ("57 of 144 cells", "58 of 144 cells", False),
        ("1.20e-05 to 1,000.25", "1.21e-05 to 1,000.26", True),
        ("1.20e-05", "1.20e-04", False),
        ("−0.001 nats", "0.000 nats", True),
        ("-0.5", "−0.5", False),
        ("layer2.head1", "layer2.head2", False),
    ],
)
def test_numbers_may_differ_in_their_last_place(line, other, same):
    assert alike(line, other) == alike(other, line) == same


def test_a_line_more_is_a_difference():
    assert different(["one 0.1", "two"], ["one 0.2", "two"]) == []
    assert different(["one"], ["one", "two"]) == ["--- stored", "+++ now", " one", "+two"]
