"""The runs that questions are asked about, of each shipped checkpoint."""

import pytest

from tests.extensions.lessons.library.posed import case

RUNS = {"zh-en": "她昨天买了一本新书。", "en-fr": "My brother works in a small shop.", "reverse": "lantern"}


@pytest.fixture(params=RUNS)
def run(request):
    return case(request.param, RUNS[request.param])
