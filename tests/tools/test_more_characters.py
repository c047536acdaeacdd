"""A vocabulary gets characters that it lacked, and all else is split and computed as before."""

import sys

import numpy as np
import pytest
from sentencepiece import SentencePieceProcessor

from tools.more_characters import main, missing, with_characters
from transformer.checkpoint.load import load


def test_what_was_unknown_is_a_piece_and_what_was_known_is_split_as_before(checkpoint_folder):
    path = next(path for path in sorted(checkpoint_folder.glob("*.model")))
    model = path.read_bytes()
    assert missing(model, ["§" * 5, "¶", "7"]) == ["§", "7"]  # a digit counts even once
    before, after = (SentencePieceProcessor(model_proto=one) for one in (model, with_characters(model, "§7")))
    assert after.get_piece_size() == before.get_piece_size() + 2
    for text in ("ba lo mi ta", "the red fox sees a lake"):
        assert after.encode(text) == before.encode(text)
    assert after.unk_id() in before.encode("7§")
    assert after.unk_id() not in after.encode("7§")
    assert "7" in after.decode(after.encode("ba 7"))


@pytest.mark.parametrize("folder", ["checkpoint_folder", "shared_checkpoint_folder"])
def test_the_grown_checkpoint_computes_what_the_old_one_did(request, folder, tmp_path, monkeypatch, capsys):
    old = request.getfixturevalue(folder)
    (tmp_path / "text.tsv").write_text("ba 7 lo\tthe fox sees §§§§§\n", encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["", str(old), str(tmp_path / "text.tsv"), "--out", str(tmp_path / "new")])
    main()
    assert "characters: " in capsys.readouterr().out
    before, after = load(old), load(tmp_path / "new")
    assert after.config.tgt_vocab_size > before.config.tgt_vocab_size
    assert after.src_tokenizer.encode("ba 7").ids[-1] != before.config.unk_id
    runs = [one.run(one.query("ba lo mi ta", max_new=1)).weights["encoder"] for one in (before, after)]
    np.testing.assert_allclose(*runs, atol=1e-6)
