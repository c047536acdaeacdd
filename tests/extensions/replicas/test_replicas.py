"""What replicas share is a folder that can be written, and a lock that ends with its process."""

import subprocess
import sys

import pytest

from glassformer.server import replicas
from transformer.errors import DataError
from transformer.i18n import say


def test_the_folder_is_made_ready_or_refused(monkeypatch, tmp_path):
    monkeypatch.delenv(replicas.SHARED, raising=False)
    assert replicas.folder("models") is None
    monkeypatch.setenv(replicas.SHARED, str(tmp_path))
    replicas.check()
    assert {one.name for one in tmp_path.iterdir()} == set(replicas.PARTS)
    assert replicas.folder("models") == tmp_path / "models"
    monkeypatch.setenv(replicas.SHARED, str(tmp_path / "none"))  # a wrong name is not made
    with pytest.raises(DataError, match=r"GLASSFORMER_SHARED is “.*none”, but this server cannot write"):
        replicas.check()


@pytest.mark.parametrize(
    ("store", "shared", "more"), [("redis://x", "", True), ("redis://x", "/x", False), ("", "", False)]
)
def test_what_is_gone_may_be_on_another_replica(monkeypatch, store, shared, more):
    monkeypatch.setenv(replicas.STORE, store)
    monkeypatch.setenv(replicas.SHARED, shared)
    said = str(replicas.gone(say("It is gone.")))
    assert said.startswith("It is gone.")
    assert said.endswith("to set GLASSFORMER_SHARED.") == more


def test_a_lock_is_held_until_its_process_ends(tmp_path):
    lock = replicas.Lock(tmp_path / "held")
    assert not lock.is_others()
    code = f"import fcntl; fcntl.flock(held := open({str(tmp_path / 'held')!r}, 'a'), fcntl.LOCK_EX); print(1); input()"
    other = subprocess.Popen([sys.executable, "-u", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert other.stdout.readline() == b"1\n"
    assert (lock.take(), lock.is_others()) == (False, True)
    other.kill()
    other.wait()
    assert (lock.is_others(), lock.take(), lock.is_others()) == (False, True, False)
    lock.let_go()
    lock.let_go()
