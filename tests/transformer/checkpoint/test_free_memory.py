"""A checkpoint is not loaded into memory that is not there."""

import pytest

from transformer.checkpoint import free_memory, load


def test_one_that_fits_is_loaded_and_so_is_one_where_nothing_is_known(spoil, monkeypatch):
    folder = spoil()
    for there in (100_000_000, None):
        monkeypatch.setattr(free_memory, "available", lambda there=there: there)
        assert load.load(folder).warnings == ()


@pytest.mark.parametrize(
    ("most", "expected"),
    [("6000000\n", 3_500_000), ("max\n", 8_192_000), (None, 8_192_000), ("9999999999\n", 8_192_000)],
)
def test_the_smaller_of_machine_and_group_counts(tmp_path, monkeypatch, most, expected):
    (tmp_path / "meminfo").write_text("MemTotal: 16000 kB\nMemAvailable:    8000 kB\n", encoding="ascii")
    (tmp_path / "memory.current").write_text("3000000\n", encoding="ascii")
    (tmp_path / "memory.stat").write_text("anon 7\ninactive_file 500000\n", encoding="ascii")
    if most is not None:
        (tmp_path / "memory.max").write_text(most, encoding="ascii")
    monkeypatch.setattr(free_memory, "_MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(free_memory, "_GROUP", tmp_path)
    assert free_memory.available() == expected
    monkeypatch.setattr(free_memory, "_MEMINFO", tmp_path / "none")
    (tmp_path / "memory.current").unlink()
    assert free_memory.available() is None  # a system that does not say
