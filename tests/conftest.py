"""Fixtures for every test: tiny checkpoint folders, seeded and made on the spot."""

import gc
import logging
import os
import random
import shutil
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

# Before torch is imported anywhere: on tiny tensors threads cost more than they bring.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Making drafts would take longer than the runs of tiny models; tests of drafts, and servers, ask for them.
os.environ.setdefault("GLASSFORMER_DRAFT", "none")
# What a developer has in the cache of the hub shall be on no page of a test.
os.environ["GLASSFORMER_HUB"] = "off"

# Times say nothing on a busy machine; and what passes today shall pass tomorrow.
settings.register_profile(
    "glassformer", max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("glassformer")
settings.register_profile("deep", settings.get_profile("glassformer"))

# Files of tests that take ten seconds and more begin first: a process that comes to one last keeps all others waiting.
LONGEST = (
    "test_table", "test_transcripts", "test_lessons", "test_trainings", "test_replicas", "test_deleting_extensions",
    "test_family_folders", "test_ranks", "test_store_away", "test_pictures", "test_watching",
    "test_upload_worker", "test_checkpointing", "test_durability", "test_corpus", "test_asked_parts",
    "test_config_spellings", "test_over_http",
)  # fmt: skip

MAIN = sys.modules["__main__"]
AT_ONCE = 5.0  # seconds of the processor, for what must not grow with a hostile file

# Modules and twelve thousand tests stay until the end: looking through them for garbage took a tenth of all time.
gc.disable()

SOURCES = ("ba lo mi ta", "mi ta ba", "lo ke su ba lo", "su mi ke ta lo ba", "ta ta ba mi", "ke lo su ta")
TARGETS = (
    "the red fox sees a lake",
    "a lake is red",
    "the fox swims in the lake",
    "a small fox sees the red moon",
    "the moon is small",
    "in the lake swims a moon",
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """The longest first; with the profile "deep" every property is deep, and tries ten times its examples."""
    places = {stem: place for place, stem in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path.stem, len(places)))
    if config.getoption("--hypothesis-profile") != "deep":
        return
    properties = [item for item in items if is_hypothesis_test(getattr(item, "obj", None))]
    for item in properties:
        item.add_marker("deep")
    for test in {item.obj for item in properties}:  # one for all its parameters
        own = test._hypothesis_internal_use_settings
        test._hypothesis_internal_use_settings = settings(own, max_examples=10 * own.max_examples)


def pytest_collection_finish():
    """From now on garbage is looked for, among what tests make; and a log's one place is the root.

    Before and after each part of a test pytest goes to every logger that tells the root nothing, a hundred of
    Streamlit's.
    """
    for name in tuple(logging.root.manager.loggerDict):
        logging.getLogger(name).propagate = True
    gc.freeze()
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish():
    """What is left need not be looked through either."""
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    """In CI a test that is left out is a failure: it would count as passing."""
    report = yield
    if report.skipped and os.environ.get("CI"):
        report.outcome, report.longrepr = "failed", f"left out although CI is set: {report.longrepr}"
    return report


@pytest.fixture(autouse=True)
def anew():
    """The main module is pytest's, and every generator begins anew, whichever tests ran before.

    A page's script that Streamlit has run would be what a new process of `multiprocessing` runs first.
    """
    sys.modules["__main__"] = MAIN
    random.seed(0)
    np.random.seed(0)
    if "torch" in sys.modules:  # a test that does not need it shall not import it
        sys.modules["torch"].default_generator.manual_seed(0)  # its own function seeds every device there may be


@pytest.fixture(scope="session")
def checkpoint_folder(tmp_path_factory):
    """A folder with an untrained tiny model and two vocabularies. Do not write into it; see `spoil`."""
    return _write_checkpoint(tmp_path_factory.mktemp("checkpoints") / "tiny", shared=False)


@pytest.fixture(scope="session")
def shared_checkpoint_folder(tmp_path_factory):
    """The same with one vocabulary for both sides, learned positions and post-norm."""
    return _write_checkpoint(tmp_path_factory.mktemp("checkpoints") / "tiny-shared", shared=True)


@pytest.fixture
def spoil(checkpoint_folder, tmp_path):
    """Copies the tiny checkpoint; `spoil(name, content)` puts other bytes in the place of one file.

    `content` is bytes, a function of the old bytes, or None to remove the file.
    """

    def copy(name="", content=None):
        folder = tmp_path / "spoilt"
        if not folder.exists():
            shutil.copytree(checkpoint_folder, folder)
        if name:
            file = folder / name
            new = content(file.read_bytes()) if callable(content) else content
            file.unlink(missing_ok=True)
            if new is not None:
                file.write_bytes(new)
        return folder

    return copy


def _write_checkpoint(folder, *, shared):
    import torch

    from tests.transformer.learned_pieces import learn_pieces
    from transformer.checkpoint.save import CheckpointContents, save
    from transformer.model.config import ModelConfig
    from transformer.model.transformer import Transformer
    from transformer.text.tokenizer import Tokenizer

    texts = [SOURCES + TARGETS] if shared else [SOURCES, TARGETS]
    models = [learn_pieces(text, size=48) for text in texts]
    config = ModelConfig(
        n_encoder_layers=2, n_decoder_layers=2, d_model=16, n_heads=4, d_ff=32, max_len=32,
        src_vocab_size=Tokenizer(models[0]).size, tgt_vocab_size=Tokenizer(models[-1]).size, shared_vocab=shared,
        norm="post" if shared else "pre", final_norm=not shared, positions="learned" if shared else "sinusoidal",
        normalisation=("nfc", "simplified-chinese"),
    )  # fmt: skip
    torch.manual_seed(0)
    state = Transformer(config).state_dict()
    card = {"title": "Tiny", "examples": list(SOURCES[:3]), "source_language": "Ba-lo"}
    save(CheckpointContents(config, state, tuple(models), card), folder)
    (folder / "training.csv").write_text("epoch,step,loss\n1,10,3.5\n", encoding="utf-8")
    return folder
