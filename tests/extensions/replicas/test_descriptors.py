"""A server that has nearly as many files open as it may have says so in its health."""

from glassformer.extensions.replicas.server_part import Health
from glassformer.server import descriptors
from tests.glassformer.server.test_descriptors import scarce as scarce


def test_health_says_what_who_comes_is_told(scarce):
    assert str(Health().problem()) == str(descriptors.problem())
    assert descriptors.problem() is not None
