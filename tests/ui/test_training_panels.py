import pytest

from ui.training_panels import effort


def test_the_effort_in_words():
    record = {"epochs": 17, "target_tokens": 10_856_421, "seconds": 4712.2}
    assert effort(record) == "17 epochs, 10,856,421 target pieces, 79 min"
    assert effort({"epochs": 1, "seconds": 42}) == "1 epoch, 42 s"
    assert effort({"seconds": 7300}) == "2 h 2 min"


@pytest.mark.parametrize("odd", [None, "many", -1, True, float("inf"), 10**400, [3]])
def test_what_is_no_number_is_passed_over(odd):
    assert effort({"epochs": odd, "target_tokens": odd, "seconds": 60}) == "60 s"
