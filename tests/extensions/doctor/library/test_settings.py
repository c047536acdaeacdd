"""Models of other programs ask for settings of the table and for no others."""

import pytest

from tests.healthy import healthy
from tests.transformer.model.test_settings import asked_for, strange


@pytest.mark.parametrize("name", ["s4", "marian", "gpt2", "llama", "bert"])
def test_nothing_else_passes(name):
    names = asked_for(healthy(name).model)
    assert names
    assert not strange(names)
