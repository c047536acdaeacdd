"""Scores of a snapshot."""

from tests.transformer.checkpoint.test_snapshots import grown as grown
from transformer.__main__ import main


def test_scores_of_a_snapshot_have_no_card(grown, tmp_path, capsys):
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("ba lo\tthe red fox\n")
    card = (grown / "card.json").read_bytes()
    assert main(["evaluate", f"{grown}@219", "--pairs", str(pairs), "--record"]) != 0
    assert "leave out --record" in capsys.readouterr().err
    assert (grown / "card.json").read_bytes() == card
