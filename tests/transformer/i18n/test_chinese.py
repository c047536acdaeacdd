"""The Chinese catalogue is typeset as Chinese: punctuation, spaces, and Markdown that holds.

Source: W3C, "Requirements for Chinese Text Layout" (https://www.w3.org/TR/clreq/), section 3.1; CommonMark 0.31,
section 6.2, for what may open and close strong emphasis.
"""

import re

import pytest

from tools.catalogues import CATALOGUES, TRANSLATED, read
from transformer.i18n import in_languages, said

MOST_BYTES = 1_000_000  # of a file that people edit
HAN = r"\u3400-\u4dbf\u4e00-\u9fff"
WIDE = "，。；：？！、（）“”‘’《》"
CODE = re.compile(r"`[^`]*`|\$[^$]*\$|<[^>]*>|\[[^\]]*\]|https?://\S+")
FIELD = re.compile(r"\{[^}]*\}")
RULES = {
    "half-width punctuation behind Chinese": rf"[{HAN}][,;:?!.](?![A-Za-z0-9])",
    "a half-width bracket around Chinese": rf"(?<![A-Za-z])\([{HAN}]",
    "a straight quotation mark beside Chinese": rf"[\"'][{HAN}]|[{HAN}][\"']",
    "a space between Chinese characters": rf"[{HAN}] +[{HAN}]",
    "no space between Chinese and Latin": rf"[{HAN}][A-Za-z0-9{{]|[A-Za-z0-9}}%][{HAN}]",
    "a space beside full-width punctuation": rf"[{WIDE}] +[^{{\s]|\S +[，。；：？！、）”]",
    "punctuation twice": "[，。；：、]{2}",
    "a polite you": "您",
}


def faults(text):
    """What is wrong with a Chinese text.

    Args:
        text: A template that is no code.
    """
    bare = CODE.sub("x", text.replace("<br>", "\n"))
    plain = re.sub(r"\*\*(?! )", "", FIELD.sub("{x}", bare))  # a sentence in bold has a space behind it
    found = [name for name, pattern in RULES.items() if re.search(pattern, plain)]
    found += [
        f"{left} without {right}" for left, right in ("（）", "“”", "《》") if text.count(left) != text.count(right)
    ]
    return found + (["strong emphasis that does not show"] if not emphasis_holds(bare) else [])


def emphasis_holds(text):
    """Whether each `**` opens or closes: none stands between a letter outside and punctuation inside."""
    parts = text.split("**")
    for before, inside, after in zip(parts[::2], parts[1::2], parts[2::2], strict=False):
        opens = not _is_mark(inside[:1]) or not before or before[-1].isspace() or _is_mark(before[-1])
        closes = not _is_mark(inside[-1:]) or not after or after[0].isspace() or _is_mark(after[0])
        if not (inside and opens and closes):
            return False
    return len(parts) % 2 == 1


def _is_mark(character):
    return bool(re.match(r"[^\w\s{}]", character))


@pytest.fixture(scope="module")
def texts():
    written = [one.string for one in read(CATALOGUES / "zh") if one.id]
    whole = [text for one in written for text in ([one] if isinstance(one, str) else one)]
    return [text for text in whole if "\n" not in text]  # listings


def test_chinese_is_typeset_as_chinese(texts):
    assert len(texts) > 4000
    assert [f"{text}: {faults(text)}" for text in texts if faults(text)] == []


def test_numbers_are_written_as_in_english():
    """Both languages write 1,234.5 and 12% (CLDR 48); only its compact form would count in 万."""
    template = "{n:,.1f} {share:.0%} {small:.2e}"
    both = in_languages({"en": template, "zh": template}, n=1234.5, share=0.12, small=0.0000123)
    assert said(both, "zh") == said(both, "en") == "1,234.5 12% 1.23 × 10⁻⁵"


def test_the_catalogue_can_be_edited():
    assert (CATALOGUES / "zh" / TRANSLATED).stat().st_size < MOST_BYTES


@pytest.mark.parametrize(
    "text",
    ["看这里,再看那里。", "权重(每行之和为 1)都在这里。", '读"我"。', "第 2 层 的头", "第{n} 层", "看这里， 再看 x。",
     "看这里。。", "您可以看", "权重（每行之和为 1", "第 **（1）**层"],
)  # fmt: skip
def test_a_fault_is_found(text):
    assert faults(text)


@pytest.mark.parametrize(
    "text",
    [
        "第 {n:,} 层（{name}）的头，用 softmax 算：50% 以上。",
        "**查询 {query}（读入“{read}”）能看见键 {key}（“{piece}”）吗？**",
        "权重 = exp(分数 − max) / Σ exp(分数 − max)。",
    ],
)
def test_what_is_right_passes(text):
    assert faults(text) == []
