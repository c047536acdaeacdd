"""What was spent on a training is said in words, and its command is broken into lines that are the same command."""

import pytest

from glassformer.extensions.training_page.training_panels import in_lines
from glassformer.shared.model_notes import effort


def test_the_effort_in_words_without_what_is_no_number():
    record = {"epochs": 17, "target_tokens": 10_856_421, "seconds": 4712.2}
    assert effort(record) == "17 epochs, 10,856,421 target tokens, 79 min"
    assert effort({"epochs": 1, "seconds": 42}) == "1 epoch, 42 s"
    assert effort({"seconds": 7300}) == "2 h 2 min"
    for odd in (None, "many", -1, True, float("inf"), 10**400, [3]):
        assert effort({"epochs": odd, "target_tokens": odd, "seconds": 60}) == "60 s"


def test_a_long_command_is_broken_before_options_and_stays_the_same_command():
    command = "python -m transformer train " + " ".join(f"--option{place} value{place}" for place in range(12))
    broken = in_lines(command)
    lines = broken.split("\n")
    assert len(lines) > 2
    assert max(map(len, lines)) <= 92
    assert all(line.startswith("    --option") for line in lines[1:])
    assert all(line.endswith(" \\") for line in lines[:-1])
    assert " ".join(broken.replace("\\\n", " ").split()) == command
    assert in_lines("train --out x") == "train --out x"


@pytest.mark.parametrize("sign", ["'", '"', "\\", "\n"])
def test_a_command_with_quotes_is_left_alone(sign):
    command = f"train {sign}{'a --b ' * 40}{sign}"
    assert in_lines(command) == command
