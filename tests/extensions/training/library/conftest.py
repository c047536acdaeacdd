"""Trainings in this process, which keeps its own ways with memory."""

import pytest

from glassformer.extensions.training.library import run
from tests.extensions.training.library.training_jobs import make_job


@pytest.fixture(autouse=True, scope="package")
def usual_memory():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "keep_freed_memory", lambda: None)
        yield


@pytest.fixture
def job(tmp_path):
    """A job of two epochs."""
    return make_job(tmp_path)
