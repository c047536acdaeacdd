"""The Chinese catalogue is typeset as Chinese: punctuation, spaces, and Markdown that holds.

Source: W3C, "Requirements for Chinese Text Layout" (https://www.w3.org/TR/clreq/), section 3.1; CommonMark 0.31,
section 6.2, for what may open and close strong emphasis.
"""

import re

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
    """What is wrong with a Chinese text, a template that is no code."""
    bare = CODE.sub("x", text.replace("<br>", "\n"))
    plain = re.sub(r"\*\*(?! )", "", FIELD.sub("{x}", bare))  # a sentence in bold has a space behind it
    found = [name for name, pattern in RULES.items() if re.search(pattern, plain)]
    found += [f"{a} without {b}" for a, b in ("（）", "“”", "《》") if text.count(a) != text.count(b)]
    return found + ["strong emphasis that does not show"] * (not emphasis_holds(bare))


def emphasis_holds(text):
    """Whether each `**` opens or closes: none stands between a letter outside and punctuation inside."""

    def beside(outside, inside):
        return not re.match(r"[^\w\s{}]", inside) or bool(re.match(r"[^\w{}]", outside or " "))

    parts = text.split("**")
    for before, inside, after in zip(parts[::2], parts[1::2], parts[2::2], strict=False):
        if not (inside and beside(before[-1:], inside[:1]) and beside(after[:1], inside[-1:])):
            return False
    return len(parts) % 2 == 1


def test_chinese_is_typeset_as_chinese():
    written = [one.string for one in read(CATALOGUES / "zh") if one.id]
    whole = [text for one in written for text in ([one] if isinstance(one, str) else one) if "\n" not in text]
    assert len(whole) > 4000  # without listings
    assert [f"{text}: {faults(text)}" for text in whole if faults(text)] == []
    assert (CATALOGUES / "zh" / TRANSLATED).stat().st_size < MOST_BYTES


def test_numbers_are_written_as_in_english():
    """Both languages write 1,234.5 and 12% (CLDR 48); only its compact form would count in 万."""
    template = "{n:,.1f} {share:.0%} {small:.2e}"
    both = in_languages({"en": template, "zh": template}, n=1234.5, share=0.12, small=0.0000123)
    assert said(both, "zh") == said(both, "en") == "1,234.5 12% 1.23 × 10⁻⁵"


def test_a_fault_is_found_and_what_is_right_passes():
    for text in (
        *(
            "看这里,再看那里。",
            "权重(每行之和为 1)都在这里。",
            '读"我"。',
            "第 2 层 的头",
            "第{n} 层",
            "看这里， 再看 x。",
        ),
        *("看这里。。", "您可以看", "权重（每行之和为 1", "第 **（1）**层"),
    ):
        assert faults(text), text
    for text in (
        "第 {n:,} 层（{name}）的头，用 softmax 算：50% 以上。",
        "**查询 {query}（读入“{read}”）能看见键 {key}（“{piece}”）吗？**",
        "权重 = exp(分数 − max) / Σ exp(分数 − max)。",
    ):
        assert faults(text) == []
