"""The README and docs/ are true: their Python runs, their commands and options exist, links lead somewhere."""

import json
import re
from dataclasses import fields
from pathlib import Path

import pytest
import yaml

from glassformer.extensions import NAMES
from transformer.__main__ import main
from transformer.extensions import Extension

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs"
READMES = [ROOT / "README.md", ROOT / "README.zh.md"]
DOCS = [*READMES, *sorted(FOLDER.rglob("*.md"))]
PAGES = [*DOCS, ROOT / "CONTRIBUTING.md", ROOT / "benchmarks" / "README.md"]
README_LINES = 150
DECISION_LINES = 20
COMMANDS = ("task", "train", "prepare", "evaluate", "corpus", "sentences", "translate", "import", "doctor")
WITHOUT_EXAMPLE = {"translate"}


def named(path):
    return str(path.relative_to(ROOT))


def blocks(language, *, of):
    """Code of a language; `python` stands alone, `py` needs files or names that the text around it tells of."""
    return re.findall(rf"```{language}\n(.*?)```", of.read_text(encoding="utf-8"), flags=re.DOTALL)


def run(page):
    """The names that are there when the Python of a page has run, from its head to its foot."""
    namespace: dict[str, object] = {}
    for code in blocks("python", of=page):
        exec(compile(code, named(page), "exec"), namespace)
    return namespace


@pytest.mark.parametrize("page", [page for page in DOCS if blocks("python", of=page)], ids=named)
def test_the_python_of_a_page_runs_and_its_results_are_as_it_says(page, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    found, said = run(page), capsys.readouterr().out
    assert found["trace"].output_text in said
    assert found["figure"].data[0].type == "heatmap"
    if page.name == "library.md":
        assert len(found["recorder"].values) == found["checkpoint"].config.n_decoder_layers
        assert "ssalg → saslgg" in said
        assert found["logits"].shape == (1, found["trace"].n_steps, len(found["trace"].vocabulary))


def test_the_scores_of_the_shipped_checkpoints_are_those_of_their_cards():
    page, name, checked = (FOLDER / "training.md").read_text(encoding="utf-8"), "", 0
    table = page.split("## The shipped checkpoints")[1].split("\n\n")[1]
    for row in table.splitlines()[2:]:
        first, _, parameters, file, *cells = (cell.strip() for cell in row.strip("|").split("|"))
        name = first.strip("`") or name
        card = json.loads((ROOT / "checkpoints" / name / "card.json").read_text(encoding="utf-8"))
        scores = {(one["file"].removesuffix(".tsv"), one.get("decoding", "")): one for one in card["scores"]}
        if parameters:
            assert parameters == f"{card['parameters'] / 1e6:.2g} M"
        for cell, decoding in zip(cells, ("greedy", "beam"), strict=True):
            found = scores.get((file.split(",")[0], decoding)) or scores.get((file.split(",")[0], ""))
            said = [(100 * found["exact"], 1e-6, one) for one in re.findall(r"([\d.]+) %", cell)]
            said += [(found[one.lower()], 0.0501, n) for one, n in re.findall(r"(BLEU|chrF) ([\d.]+)", cell)]
            assert [float(n) for _, _, n in said] == [pytest.approx(own, abs=near) for own, near, _ in said], (
                name,
                file,
            )
            checked += len(said)
    assert checked >= 20


def test_every_option_of_the_commands_exists(capsys):
    for command in COMMANDS:
        with pytest.raises(SystemExit, match="0"):
            main([command, "--help"])
        known = options(capsys.readouterr().out)
        examples = [line for page in PAGES for line in lines(page) if f"transformer {command} " in line]
        assert examples or command in WITHOUT_EXAMPLE
        assert [line for line in examples if not options(line) <= known] == []


def lines(page):
    return [line for block in blocks("sh", of=page) for line in block.replace("\\\n", " ").splitlines()]


def options(text):
    return set(re.findall(r"--[a-z0-9-]+", text))


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_link_leads_somewhere(page):
    for target, _, place in re.findall(r"\]\(([^)#:]*)(#([^)]+))?\)", page.read_text(encoding="utf-8")):
        there = (page.parent / target).resolve() if target else page
        assert there.exists(), target
        assert there.is_relative_to(FOLDER) or not page.is_relative_to(FOLDER), f"{target} is not on the site"
        if place:
            assert place in anchors(there), f"{target}#{place}"


def anchors(page):
    """What headings are called in addresses; a Chinese one is given a name in front of it."""
    text = page.read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    found = {re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}
    return found | set(re.findall(r'^<a id="([^"]+)"></a>$', text, flags=re.MULTILINE))


def test_the_site_has_every_page_once_and_a_search_that_comes_with_mkdocs_and_reads_chinese():
    site = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    pages = [str(page.relative_to(FOLDER)) for page in DOCS if page not in READMES]
    assert sorted(leaves(site["nav"])) == pages
    ((plugin, options),) = [one for each in site["plugins"] for one in each.items()]
    assert (plugin, options["lang"]) == ("search", ["en", "zh"])
    assert site["extra_javascript"] == ["search/main.js", "chinese-search.js"]
    assert (FOLDER / "chinese-search.js").is_file()
    assert site["theme"] == {"name": "mkdocs", "highlightjs": False}  # else it asks another machine


def leaves(entry):
    if isinstance(entry, dict):
        return leaves(list(entry.values()))
    return [page for one in entry for page in leaves(one)] if isinstance(entry, list) else [str(entry)]


def test_every_file_that_a_page_of_docs_names_is_there():
    """Such as `glassformer/runs/picture.py`; a page of a decision says where it is carried out."""
    for page in [*DOCS, ROOT / "CONTRIBUTING.md"]:
        for name in re.findall(r"`((?:charts|pages|tests|tools|transformer|ui|words)/[\w/.-]*)`", page.read_text()):
            assert (ROOT / name).exists(), f"{named(page)}: {name}"


def test_pages_are_short_enough_and_name_what_they_have_to():
    for readme in READMES:
        text = readme.read_text(encoding="utf-8")
        assert len(text.splitlines()) <= README_LINES
        assert "make run" in text
        assert "make test" in text
    index = (FOLDER / "decisions" / "index.md").read_text(encoding="utf-8")
    for page in sorted((FOLDER / "decisions").glob("[0-9]*.md")):
        lines_of_page = page.read_text(encoding="utf-8").splitlines()
        assert len(lines_of_page) <= DECISION_LINES, page.name
        assert f"[{lines_of_page[0].removeprefix('# ')}]({page.name})" in index
    for page in DOCS:
        wide = [line for line in page.read_text(encoding="utf-8").splitlines() if len(line) > 120]
        assert all(line.startswith(("|", "![")) for line in wide), named(page)


def test_the_page_of_the_design_knows_every_extension_what_a_record_can_hold_and_a_picture():
    design = FOLDER / "design.md"
    rows = re.findall(r"^\| `?(\w+)`? \|", design.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert {*NAMES, *(one.name for one in fields(Extension))} - {"name", "needs"} <= {*rows}
    (example,) = blocks("py", of=design)
    module = (ROOT / "glassformer" / "runs" / "picture.py").read_text(encoding="utf-8")
    assert example.split() == module[module.index("MASKS = ") : module.index("...\n") + 3].split()
