"""`make test-deep` tries every property with ten times its examples."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import pytest_collection_modifyitems


@pytest.mark.parametrize(("profile", "n_examples", "marked"), [(None, 20, []), ("deep", 200, ["deep"] * 3)])
def test_a_property_has_ten_times_its_examples_in_the_deep_profile_alone(profile, n_examples, marked):
    markers = []

    @settings(max_examples=20)
    @given(st.integers())
    def a_property(number):
        pass

    tests = [a_property] * 3 + [str]  # a property for each of its parameters, and what is none
    items = [SimpleNamespace(obj=one, add_marker=markers.append, path=Path(__file__)) for one in tests]
    pytest_collection_modifyitems(SimpleNamespace(getoption=lambda _: profile), items)
    assert (a_property._hypothesis_internal_use_settings.max_examples, markers) == (n_examples, marked)
