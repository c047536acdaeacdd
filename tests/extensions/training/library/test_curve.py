"""`training.csv`: what training writes is read."""

from glassformer.extensions.training.library.state import EpochRow, write_rows
from transformer.checkpoint.curve import load_curve

ROWS = [
    EpochRow(1, 10, 5.0, 4.0, 1.0, 10.0, 1e-3, 1000, 12.5, 0.01),
    EpochRow(2, 20, 3.0, 2.5, 20.0, 40.0, 5e-4, 2000, 25.0, 0.1),
    EpochRow(3, 30, 2.0, 2.75, 20.0, 38.0, 1e-4, 3000, 37.5, 0.09),
]


def test_what_training_writes_is_read(tmp_path):
    write_rows(ROWS, tmp_path / "training.csv")
    curve = load_curve(tmp_path)
    assert curve is not None
    assert curve.epochs == (1, 2, 3)
    for name, values in curve.columns.items():
        assert values == tuple(getattr(row, name) for row in ROWS)
    assert set(curve.columns) | {"epoch"} == set(EpochRow.__dataclass_fields__)
    assert curve.notes == ()


def test_the_best_epoch_is_the_one_that_training_keeps(tmp_path):
    write_rows(ROWS, tmp_path / "training.csv")
    assert load_curve(tmp_path).best_epoch() == 2  # equal BLEU, higher chrF
