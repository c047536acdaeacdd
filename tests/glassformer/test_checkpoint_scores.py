"""The Checkpoints page shows a card's scores in one table, whatever is in them."""

import pytest

from glassformer.checkpoints import NONE, details, is_translation, other_rows, score_rows

COLUMNS = ("File", "Decoding", "Pairs", "BLEU", "chrF", "Exact")
GREEDY = {"file": "dev.tsv", "sha256": "0f", "decoding": "greedy", "bleu": 31.17, "chrf": 50.1}
BEAM = {
    "file": "test.tsv", "sha256": "1f", "pairs": 2426, "decoding": "beam", "beam_size": 5, "bleu": 33, "chrf": 51.5,
    "exact": 0.125, "bleu_signature": "nrefs:1|case:mixed",
}  # fmt: skip


def test_scorings_of_now_and_then_stand_in_one_table():
    assert score_rows([GREEDY, BEAM]) == [
        dict(zip(COLUMNS, ("dev.tsv", "greedy", NONE, "31.17", "50.10", NONE), strict=True)),
        dict(zip(COLUMNS, ("test.tsv", "beam 5", "2,426", "33.00", "51.50", "12.5%"), strict=True)),
    ]
    assert list(score_rows([GREEDY])[0]) == ["File", "Decoding", "BLEU", "chrF"]  # nobody fills the others


def test_bleu_of_outputs_too_short_to_have_one_is_no_0():
    assert score_rows([{"file": "a", "bleu": 0.0, "chrf": 100.0, "exact": 1.0}])[0]["BLEU"] == NONE
    assert score_rows([{"file": "a", "bleu": 0.0, "chrf": 10.0, "exact": 0.0}])[0]["BLEU"] == "0.00"


@pytest.mark.parametrize("name", ["file", "decoding", "beam_size", "pairs", "bleu", "exact"])
def test_a_field_of_any_type_is_shown_as_a_text(name):
    for odd in (None, True, [1, 2], {"a": {"b": 1}}, "", "x" * 5000, 10**400, 1e308):
        record = {**BEAM, name: odd}
        for row in (*score_rows([record]), *other_rows([record]), *details(record)):
            assert all(isinstance(text, str) and 0 < len(text) < 1100 for text in row.values()), odd


def test_gaps_that_were_filled_are_no_translations_and_an_alignment_says_its_rates_in_per_cent():
    counts = {"texts": 9, "pieces": 80, "loss": 0.05, "exact": 0.99}
    record = {"file": "test.tsv", "measure": "each piece hidden alone", **counts}
    (row,) = other_rows([record])
    assert list(row) == ["File", "Guessed right", "Loss (nats per token)", "Tokens", "Texts"]
    assert row["Guessed right"] == "99.0%"
    assert not is_translation(record)
    numbers = {"aer": 0.4239, "layer": 2, "head": 3, "diagonal": 0.6, "aer_of_mean": 0.5, "sentences": 440}
    record = {"file": "links.txt", "sha256": "2f", "measure": "alignment error rate", "left_out": 10, **numbers}
    (row,) = other_rows([record | {"row": "predicts", "heads": [[0.5]]}])
    assert row["AER of the best head"] == "42.4%"
    assert (row["Layer"], row["Head"], row["AER without a model"], row["Sentences"]) == ("2", "3", "60.0%", "440")
    assert "Sha256" not in row
    said = {field["Field"]: field["Value"] for field in details(record | {"heads": [[0.5]]})}
    assert (said["left_out"], said["heads"]) == ("10", "[[0.5]]")
