"""What visitors share holds no language: each reads it in their own."""

from tests.extensions.scripts import COMPARE
from tests.pages.conftest import STEP
from tests.pages.test_shared_caches import read_in_each_language


def test_each_visitor_reads_a_changed_run_in_their_language(open_page):
    read_in_each_language(open_page, STEP, {"model": "reverse", "src": "poiuy", "do": "zero-cross.1.2"}, "什么都不写")


def test_each_visitor_reads_two_outputs_in_their_language(open_page):
    read_in_each_language(open_page, COMPARE, {"model": "reverse", "src": "lkjhg", "b": "forced=7"}, "第 1 步")
