"""A training.csv that training writes is read, and what somebody spoilt is said in one sentence."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer.checkpoint.curve import MAX_BYTES, MAX_ROWS, Curve, load_curve, read_curve
from transformer.errors import CheckpointError


def read(text: str) -> Curve:
    return read_curve(text.encode())


def test_the_best_epoch_by_what_is_there_and_other_columns_are_passed_over():
    assert read("epoch,dev_loss\n1,3\n2,2\n3,2.5\n").best_epoch() == 2
    assert read("epoch,dev_bleu,dev_loss\n1,5,1\n2,nan,0.5\n3,,0.1\n").best_epoch() == 1
    assert read("epoch,loss\n1,3\n2,2\n").best_epoch() is None
    curve = read("\ufeffcolour,epoch, loss ,note\r\nred,1,3.5,x\r\n\r\nblue,2,3.0,y\n")  # as Windows writes it
    assert (dict(curve.columns), curve.epochs, curve.notes) == ({"loss": (3.5, 3.0)}, (1, 2), ())


def test_scores_of_outputs_are_left_out_where_nothing_was_written():
    names = ["dev_bleu", "dev_chrf", "dev_exact"]
    for values, there in {"0,0,0.5": names[2:], "0,0,0": names, "0,3,0.5": names}.items():  # all 0: a leak, say
        assert list(read(f"{','.join(names)}\n{values}\n").columns) == there
    assert list(read("dev_bleu,dev_exact\n0,0.5\n").columns) == ["dev_bleu", "dev_exact"]


@pytest.mark.parametrize("cell", ["-inf", "", "three", "1e999"])
def test_a_number_that_cannot_be_drawn_is_a_gap_and_said(cell):
    curve = read(f"epoch,loss,dev_loss\n1,{cell},2\n2,3,2\n")
    assert str(curve.columns["loss"]) == "(nan, 3.0)"
    assert curve.notes == ("1 number in training.csv is missing, NaN or infinite; the curves have gaps there.",)
    assert math.isnan(read("epoch,loss,dev_loss\n1,3,2\n2,2").columns["dev_loss"][1])  # it is being written


def test_rows_without_epochs_in_order_are_numbered():
    for text, said in (
        *((f"epoch,loss\n{one},3\n{other},2\n", "are not increasing whole") for one, other in ("11", "x2", ("-1", 2))),
        ("loss\n3\n2\n", "has no epoch column"),
    ):
        curve = read(text)
        assert curve.epochs == (1, 2)
        assert said in curve.notes[0]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "has no rows yet"),
        (
            b"epoch;loss\n1;3\n",
            "found 'epoch;loss', expected at least one of step, loss, dev_loss, dev_bleu, dev_chrf, dev_exact, "
            "learning_rate, tokens, seconds, and optionally epoch.",
        ),
        (b"epoch,loss\n1,x\n2,\n", "has no numbers that can be plotted"),
        (b"\xff\xfe\x00e", "is not comma-separated text (CSV) in UTF-8"),
        (b'epoch,loss\n1,"' + b"x" * 200_000 + b'"\n', "is not comma-separated text (CSV) in UTF-8"),
        (b"epoch,loss\n" + b"1,1\n" * (MAX_ROWS + 1), "has 5,001 rows, one per epoch; the limit is 5,000"),
        (b"," * 10_000 + b"x\n1\n", "has no column that can be plotted"),
    ],
)
def test_what_is_no_curve_is_refused_in_a_sentence(content, says):
    with pytest.raises(CheckpointError) as caught:
        read_curve(content, label="mine/training.csv")
    said = str(caught.value)
    assert said.startswith("mine/training.csv: ")
    assert says in said
    assert "\n" not in said
    assert len(said) < 300


def test_a_file_that_is_huge_or_elsewhere_is_not_read(tmp_path):
    assert load_curve(tmp_path) is None
    (tmp_path / "training.csv").write_bytes(b"epoch,loss\n" + b"1,1\n" * (MAX_BYTES // 4))
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "training.csv").symlink_to(tmp_path / "training.csv")
    for place, said in ((tmp_path, "the limit is 1,000,000"), (tmp_path / "folder", "points outside the folder")):
        with pytest.raises(CheckpointError, match=said):
            load_curve(place)


@given(st.one_of(st.binary(max_size=300), st.text(alphabet='epochls,_01.en-"\n', max_size=200).map(str.encode)))
def test_any_bytes_are_a_curve_or_an_error_of_ours(content):
    try:
        curve = read_curve(content)
    except CheckpointError:
        return
    assert curve.columns
    assert all(len(values) == len(curve.epochs) for values in curve.columns.values())
    assert list(curve.epochs) == sorted(set(curve.epochs))
