"""What all tests of the library share. They run on one thread: on tiny tensors more only get in the way."""

import pytest
import torch

from transformer.checkpoint.load import load

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def checkpoint(checkpoint_folder):
    """The tiny untrained pair of stacks. Do not change it."""
    return load(checkpoint_folder)


@pytest.fixture(scope="module")
def one_thread():
    """One thread, whatever tests before have set."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
