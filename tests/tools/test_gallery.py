"""The gallery of the documentation links to six saved runs, which its own commands write."""

import re

import pytest

from tools.gallery import PAGE, commands, main
from transformer.checkpoint.named import names

RUNS = list(commands())


def out(words):
    return words[words.index("--out") + 1]


def test_each_of_six_links_leads_to_what_the_command_below_it_writes_of_a_shipped_checkpoint():
    links = re.findall(r'<a href="(.+?)">', PAGE.read_text(encoding="utf-8"))
    assert links == [out(words) for words in RUNS]
    assert len({*links}) == 6
    assert {words[1] for words in RUNS} == {*names()}


def written(tmp_path, runs):
    main(tmp_path / "gallery", runs)
    return {page.name: page.read_text(encoding="utf-8") for page in (tmp_path / "gallery").iterdir()}


def test_a_run_is_written_beside_the_page_and_one_that_fails_ends_it(tmp_path):
    *_, leak = RUNS
    assert [*written(tmp_path, [leak])] == [out(leak)]
    with pytest.raises(SystemExit, match="2"):
        main(tmp_path, [[*leak, "step"]])


@pytest.mark.deep
def test_every_run_is_one_file_without_another_address(tmp_path):
    pages = written(tmp_path, RUNS)
    assert {*pages} == {out(words) for words in RUNS}
    for page in pages.values():
        assert page.lower().startswith("<!doctype html>")
        assert not re.search(r"""(?:src|href)=["']?https?:""", page)
