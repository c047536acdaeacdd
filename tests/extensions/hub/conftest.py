"""A stand-in hub for all tests of the hub, with models that open and some that do not."""

import json
import shutil

import pytest
from huggingface_hub import constants

from tests.extensions.hub.stand_in_hub import running
from tests.pages.conftest import open_page as open_page
from tests.pages.conftest import shipped_checkpoints_alone as shipped_checkpoints_alone


def at(url, monkeypatch):
    """Have `huggingface_hub` ask another hub."""
    monkeypatch.setattr(constants, "ENDPOINT", url)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", url + "/{repo_id}/resolve/{revision}/{filename}")


@pytest.fixture
def hub(tmp_path, monkeypatch, checkpoint_folder):
    """A hub with a checkpoint of this program, a family that is unknown, and one without weights that open."""
    folder = tmp_path / "hub"
    shutil.copytree(checkpoint_folder, folder / "our--tiny")
    (folder / "our--tiny" / "tf_model.h5").write_bytes(b"not read")
    for name, kind, file in (("some--vit", "vit", "model.safetensors"), ("some--onnx", "bert", "model.onnx")):
        (folder / name).mkdir()
        (folder / name / "config.json").write_text(json.dumps({"model_type": kind}))
        (folder / name / file).write_bytes(bytes(8))
    (folder / "some--files").mkdir()
    (folder / "some--files" / "readme.md").write_text("no model")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    with running(folder) as hub:
        at(hub.url, monkeypatch)
        yield hub
