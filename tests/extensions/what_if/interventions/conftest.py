"""The made-up checkpoints that are changed: tests of one file share theirs."""

import pytest

from tests.extensions.what_if.interventions.reference import made


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    return made(tmp_path_factory.mktemp("made"))


@pytest.fixture(scope="module")
def decoder(tmp_path_factory):
    return made(tmp_path_factory.mktemp("made"), "decoder")


@pytest.fixture(scope="module", params=["both", "decoder"])
def checkpoint(request, tmp_path_factory):
    return made(tmp_path_factory.mktemp("made"), request.param)
