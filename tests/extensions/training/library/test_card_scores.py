"""Writing scores into a card: the rest stays, equal settings replace, a failure changes nothing."""

import json
import os
import stat

import pytest

from glassformer.extensions.training.library.card_scores import merged, record_scores
from transformer import load
from transformer.errors import CheckpointError, DataError

GREEDY = {"file": "dev.tsv", "sha256": "aa", "pairs": 9, "decoding": "greedy", "bleu": 12.5}
BEAM = {"file": "dev.tsv", "sha256": "aa", "pairs": 9, "decoding": "beam", "beam_size": 5, "length_penalty": 0.6}
CARD = {
    "title": "Tiny 小",
    "scores": [{"file": "dev.tsv", "sha256": "aa", "decoding": "greedy", "bleu": 1.0, "exact": 0.1}],
    "colour": {"deep": [1, 2.5, None, 1e-7, 2**60]},
    "sha256": {},
}


def folder_with(spoil, card):
    return spoil("card.json", json.dumps(card, ensure_ascii=False).encode())


def test_the_rest_of_the_card_stays_as_it_is(spoil):
    folder = folder_with(spoil, CARD)
    os.chmod(folder / "card.json", 0o640)
    others = {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "card.json"}
    record_scores(load(folder), [GREEDY, BEAM])
    card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
    assert list(card) == list(CARD)
    assert card == CARD | {"scores": [GREEDY, BEAM]}
    assert "小" in (folder / "card.json").read_text(encoding="utf-8")
    assert stat.S_IMODE((folder / "card.json").stat().st_mode) == 0o640
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "card.json"} == others
    assert load(folder).warnings == ()


def test_recording_the_same_again_replaces(spoil):
    folder = folder_with(spoil, CARD)
    checkpoint = load(folder)
    record_scores(checkpoint, [GREEDY, BEAM])
    once = (folder / "card.json").read_bytes()
    record_scores(checkpoint, [BEAM, GREEDY])
    assert (folder / "card.json").read_bytes() == once
    record_scores(checkpoint, [GREEDY | {"bleu": 13.0}])
    assert [score.get("bleu") for score in load(folder).card.scores] == [13.0, None]


@pytest.mark.parametrize(
    "other",
    [
        {"sha256": "bb"},
        {"decoding": "beam", "beam_size": 5},
        {"max_pairs": 4},
        {"measure": "alignment error rate"},
        {"source": {"text": "joined"}},
    ],
)
def test_other_files_and_settings_stand_beside(other):
    assert merged([GREEDY], [GREEDY | other]) == [GREEDY, GREEDY | other]


def test_beams_and_penalties_differ_and_names_and_odd_entries_do_not_matter():
    wide, strong = BEAM | {"beam_size": 6}, BEAM | {"length_penalty": 1.0}
    renamed = BEAM | {"file": "copy.tsv"}
    assert merged(["odd", BEAM, 3, BEAM], [wide, strong, renamed]) == ["odd", renamed, 3, wide, strong]


def test_a_checkpoint_without_a_card_gets_one(spoil):
    folder = spoil("card.json", None)
    record_scores(load(folder), [GREEDY])
    assert json.loads((folder / "card.json").read_text()) == {"scores": [GREEDY]}


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"scores": {}}', b'{"a": 1, "a": 2}', b"\xff"])
def test_a_card_that_cannot_be_added_to_is_left_alone(spoil, content):
    folder = spoil("card.json", content)
    with pytest.raises(DataError, match=r"card\.json"):
        record_scores(load(folder), [GREEDY])
    assert (folder / "card.json").read_bytes() == content


def test_a_card_does_not_grow_beyond_what_can_be_read(spoil):
    folder = folder_with(spoil, {"scores": [{"sha256": str(i)} for i in range(100)]})
    with pytest.raises(DataError, match="would contain 101 scores; the limit is 100"):
        record_scores(load(folder), [GREEDY])
    with pytest.raises(DataError, match="bytes long; the limit is 200,000"):
        record_scores(load(folder_with(spoil, {})), [GREEDY | {"signature": "x" * 1_000_000}])


def test_a_folder_that_was_replaced_meanwhile_is_refused(spoil):
    folder = spoil()
    checkpoint = load(folder)
    config = json.loads((folder / "config.json").read_text())
    spoil("config.json", json.dumps(config | {"dropout": 0.25}).encode())
    before = (folder / "card.json").read_bytes()
    with pytest.raises(DataError, match="was replaced while it was being scored"):
        record_scores(checkpoint, [GREEDY])
    assert (folder / "card.json").read_bytes() == before


def test_a_failure_leaves_the_old_card(spoil, monkeypatch):
    folder = folder_with(spoil, CARD)
    checkpoint, before = load(folder), sorted(path.name for path in folder.iterdir())
    content = (folder / "card.json").read_bytes()

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("glassformer.extensions.training.library.card_scores.os.replace", fail)
    with pytest.raises(DataError, match="cannot be written"):
        record_scores(checkpoint, [GREEDY])
    assert (folder / "card.json").read_bytes() == content
    assert sorted(path.name for path in folder.iterdir()) == before


def test_a_card_outside_the_folder_is_not_followed(spoil, tmp_path):
    folder = spoil("card.json", None)
    (tmp_path / "elsewhere.json").write_text("{}")
    (folder / "card.json").symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(CheckpointError, match="link that points outside the folder"):
        record_scores(load(folder), [GREEDY])
    assert (tmp_path / "elsewhere.json").read_text() == "{}"
