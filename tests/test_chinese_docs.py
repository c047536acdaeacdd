"""A Chinese page of the documentation has the code, links, headings, rows and pictures of its English page."""

import re

import pytest

from tests.source_code import ROOT
from tests.test_plain_words import CHINESE_TICS, TICS, found

DOCS = ROOT / "docs"
CHINESE = {ROOT / "README.md": ROOT / "README.zh.md"}
CHINESE |= {DOCS / page.name: page for page in sorted((DOCS / "zh").glob("*.md"))}
ENGLISH = {chinese: english for english, chinese in CHINESE.items()}
ENGLISH |= {picture: DOCS / picture.name for picture in (DOCS / "zh").glob("*.png")}
PAIRS = pytest.mark.parametrize(("english", "chinese"), CHINESE.items(), ids=[page.name for page in CHINESE])
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)]+)\)")


def text(page):
    return page.read_text(encoding="utf-8")


def prose(page):
    return FENCED.sub("", text(page))


def code(page):
    """Each block with its language, without comments, which each language writes itself."""
    return [(language, re.sub(r" +# .*", "", block)) for language, block in FENCED.findall(text(page))]


def links(page):
    """Where a page leads, with the English page for a Chinese one; the first link leads to the other language."""
    targets = [link.partition("#") for link in LINK.findall(prose(page))[1:] if ":" not in link]
    there = [(page.parent / path).resolve() if path else page for path, _, _ in targets]
    return sorted(f"{ENGLISH.get(to, to)}#{place}" for to, (_, _, place) in zip(there, targets, strict=True))


def outline(page):
    """What each line is that is more than prose, in order: a heading and its level, a row and its cells, an item."""
    kinds = re.findall(r"^(#+ |\|.*\||- |!\[|\*\*)", prose(page), flags=re.MULTILINE)
    return [f"row of {kind.count('|') - 1}" if kind.startswith("|") else kind.strip() for kind in kinds]


def literal(page):
    """What is typed or read as it is: commands, options, addresses."""
    return sorted(set(re.findall(r"`([^`\n]+)`", prose(page))))


PARTS = (code, links, outline, literal)


@PAIRS
def test_both_pages_have_the_same_lead_to_each_other_and_are_plain(english, chinese):
    for part in PARTS:
        assert part(chinese) == part(english), part.__name__
    for page, other, language in ((english, chinese, "中文"), (chinese, english, "English")):
        (said, target) = re.findall(r"\A# .*\n\n\[(.*)\]\((.*)\)\n", text(page))[0]
        assert (said, (page.parent / target).resolve()) == (language, other)
    assert not found(TICS, [(english.name, prose(english))])
    assert not found(CHINESE_TICS, [(chinese.name, prose(chinese))])


def test_every_chinese_page_has_an_english_one():
    assert len(CHINESE) == 4
    assert all(page.exists() for pair in CHINESE.items() for page in pair)


def test_what_only_one_of_them_has_is_found(tmp_path):
    lines = ("```sh\nmake all\n```", "[x](docs/design.md)", "## Another", "`--new`")
    other = tmp_path / "README.md"
    for part, line in zip(PARTS, lines, strict=True):
        other.write_text(f"{text(ROOT / 'README.md')}\n{line}\n", encoding="utf-8")
        assert len(part(other)) == len(part(ROOT / "README.md")) + 1
