"""The page that compares speaks whole sentences, to each visitor in their own language."""

import pytest

from tests.extensions.parts_of_pages import PARTS, parts_of
from tests.extensions.scripts import COMPARE
from tests.pages.conftest import STEP
from tests.pages.test_pseudo_language import spoken_whole
from tests.pages.test_shared_caches import read_in_each_language

DATA = {
    "compare": {"skip"},
    "compare branches": {"forced"},  # names of files say how a run was made
    "compare changed": {"zero"},
    "compare checkpoints": {"Da", "Na", "ba", "need"},  # pieces of the other model
}


@pytest.mark.parametrize("name", parts_of("compare"))
def test_what_is_spoken_is_spoken_whole(open_page, name):
    spoken_whole(open_page, PARTS[name], DATA.get(name, ()))


def test_each_visitor_reads_a_changed_run_in_their_language(open_page):
    read_in_each_language(open_page, STEP, {"model": "reverse", "src": "poiuy", "do": "zero-cross.1.2"}, "什么都不写")


def test_each_visitor_reads_two_outputs_in_their_language(open_page):
    read_in_each_language(open_page, COMPARE, {"model": "reverse", "src": "lkjhg", "b": "forced=7"}, "第 1 步")
