"""`make test-deep` tries every property with ten times its examples."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import pytest_collection_modifyitems

HERE = Path(__file__)


def examples_of(profile, parameters=3):
    """How many examples a property of 20 has under a profile, and the markers of its tests."""
    tried, markers = [], []

    @settings(max_examples=20)
    @given(st.integers())
    def a_property(number):
        tried.append(number)

    items = [SimpleNamespace(obj=a_property, add_marker=markers.append, path=HERE) for _ in range(parameters)]
    items.append(SimpleNamespace(obj=examples_of, add_marker=markers.append, path=HERE))
    pytest_collection_modifyitems(SimpleNamespace(getoption=lambda _: profile), items)
    a_property()
    return len(tried), markers


@pytest.mark.parametrize(("profile", "expected"), [(None, (20, [])), ("deep", (200, ["deep"] * 3))])
def test_a_property_has_ten_times_its_examples_in_the_deep_profile_alone(profile, expected):
    assert examples_of(profile) == expected
