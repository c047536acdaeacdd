"""What all tests of the library share. They run on one thread: on tiny tensors more only get in the way."""

import pytest
import torch

from tests.transformer.one_stack import alone
from transformer.checkpoint.load import load

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def pair(checkpoint_folder):
    """The tiny untrained pair of stacks. Do not change it, nor one of the next three."""
    return load(checkpoint_folder)


@pytest.fixture(scope="session")
def shared(shared_checkpoint_folder):
    """The same with one vocabulary, learned positions and post-norm."""
    return load(shared_checkpoint_folder)


@pytest.fixture(scope="session")
def decoder(tmp_path_factory):
    """A decoder alone."""
    return alone("decoder", tmp_path_factory.mktemp("alone"))


@pytest.fixture(scope="session")
def encoder(tmp_path_factory):
    """An encoder alone."""
    return alone("encoder", tmp_path_factory.mktemp("alone"))


@pytest.fixture(scope="session")
def checkpoint(pair):
    """The pair, where a module says nothing else: it may give names of these fixtures as parameters."""
    return pair


@pytest.fixture(scope="module")
def one_thread():
    """One thread, whatever tests before have set."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
