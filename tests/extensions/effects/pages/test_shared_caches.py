"""What visitors share holds no language: each reads it in their own."""

from tests.extensions.scripts import WRONG
from tests.pages.test_shared_caches import read_in_each_language


def test_each_visitor_reads_a_mistake_in_their_language(open_page):
    read_in_each_language(open_page, WRONG, {"model": "reverse", "src": "zxcvb", "mistake": "scale"}, "权重")
