"""Scores are added to a card whole or not at all, and `--card` refuses what loading would leave out."""

import json
import os
import stat

import pytest

from glassformer.extensions.training.library.held_out_scores import merged, record_scores
from glassformer.extensions.training.library.run import read_card
from transformer import load
from transformer.errors import DataError

GREEDY = {"file": "dev.tsv", "sha256": "aa", "pairs": 9, "decoding": "greedy", "bleu": 12.5}
BEAM = {"file": "dev.tsv", "sha256": "aa", "pairs": 9, "decoding": "beam", "beam_size": 5, "length_penalty": 0.6}
CARD = {
    "title": "Tiny 小",
    "scores": [{"file": "dev.tsv", "sha256": "aa", "decoding": "greedy", "bleu": 1.0, "exact": 0.1}],
    "colour": {"deep": [1, 2.5, None, 1e-7, 2**60]},
    "sha256": {},
}


@pytest.fixture
def made(spoil):
    """A function that makes a checkpoint folder with this card."""
    return lambda card: spoil("card.json", json.dumps(card, ensure_ascii=False).encode())


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_rest_of_the_card_stays_as_it_is_and_the_same_again_replaces(made):
    folder = made(CARD)
    path, before = folder / "card.json", files(folder)
    os.chmod(path, 0o640)
    checkpoint = load(folder)
    record_scores(checkpoint, [GREEDY, BEAM])
    once = path.read_bytes()
    assert list(json.loads(once)) == list(CARD)
    assert json.loads(once) == CARD | {"scores": [GREEDY, BEAM]}
    assert "小" in once.decode()
    record_scores(checkpoint, [BEAM, GREEDY])
    assert files(folder) == before | {"card.json": once}
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    record_scores(checkpoint, [GREEDY | {"bleu": 13.0}])
    assert [score.get("bleu") for score in load(folder).card.scores] == [13.0, None]
    path.unlink()
    record_scores(checkpoint, [GREEDY])
    assert json.loads(path.read_text()) == {"scores": [GREEDY]}


def test_other_files_and_settings_stand_beside_and_odd_entries_stay():
    others = {"sha256": "bb", "decoding": "greedy", "beam_size": 6, "length_penalty": 1.0, "max_pairs": 4}
    others |= {"measure": "alignment error rate", "source": {"text": "joined"}}
    for name, value in others.items():
        other, renamed = BEAM | {name: value}, BEAM | {"file": "copy.tsv"}
        assert merged(["odd", BEAM, 3, BEAM], [other, renamed]) == ["odd", renamed, 3, other]


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"scores": {}}', b'{"a": 1, "a": 2}', b"\xff"])
def test_a_card_that_cannot_be_added_to_is_left_alone(spoil, content):
    folder = spoil("card.json", content)
    with pytest.raises(DataError, match=r"card\.json"):
        record_scores(load(folder), [GREEDY])
    assert (folder / "card.json").read_bytes() == content


def test_a_card_that_would_be_too_large_a_failure_or_another_folder_meanwhile_leave_the_old_card(
    made, spoil, monkeypatch
):
    with pytest.raises(DataError, match="would contain 101 scores; the limit is 100"):
        record_scores(load(made({"scores": [{"sha256": str(i)} for i in range(100)]})), [GREEDY])
    folder = made(CARD)
    checkpoint, before = load(folder), files(folder)
    with pytest.raises(DataError, match="bytes long; the limit is 200,000"):
        record_scores(checkpoint, [GREEDY | {"signature": "x" * 1_000_000}])

    def fail(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("glassformer.extensions.training.library.held_out_scores.write_whole", fail)
        with pytest.raises(DataError, match="cannot be written"):
            record_scores(checkpoint, [GREEDY])
    assert files(folder) == before
    config = json.loads((folder / "config.json").read_text())
    spoil("config.json", json.dumps(config | {"dropout": 0.25}).encode())
    with pytest.raises(DataError, match="was replaced while it was being scored"):
        record_scores(checkpoint, [GREEDY])
    assert (folder / "card.json").read_bytes() == before["card.json"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"licence": "CC0", "temperature": NaN}', "NaN is not a valid number in JSON"),
        (json.dumps({"licence": "x" * 4_001}).encode(), "licence was ignored; .*at most 4,000 characters"),
        (b"[" * 40_000, "its brackets are nested"),
        (b'{"title": "\xff"}', "not valid UTF-8"),
        (b"[" + b"1," * 200_000, "is longer than 50,000 bytes"),
    ],
)
def test_a_given_card_of_which_loading_would_drop_something_is_refused(tmp_path, content, message):
    (tmp_path / "given.json").write_bytes(content)
    with pytest.raises(DataError, match=f"given.json: .*{message}") as caught:
        read_card(tmp_path / "given.json")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400
