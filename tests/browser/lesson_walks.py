"""Lessons with sentences of one's own, which tests walk: in a browser, and page after page without one."""

from dataclasses import dataclass

from transformer.i18n import Sentence


@dataclass(frozen=True)
class Walk:
    """A lesson in a language with a sentence of one's own, given in the link or typed at the first step."""

    lesson: str
    language: str
    model: str
    sentence: str
    typed: bool = False

    def __str__(self):
        return f"{self.lesson}-{self.language}"

    def said(self, text):
        return text.in_language(self.language) if isinstance(text, Sentence) else text


WALKS = (
    Walk("one-piece", "en", "zh-en", "我喜欢喝绿茶。"),
    Walk("one-piece", "zh", "reverse", "lantern", typed=True),
    Walk("one-weight", "en", "en-fr", "We often read in the garden.", typed=True),
    Walk("one-weight", "zh", "zh-en", "今天下午我们去公园。"),
    Walk("masks", "en", "reverse", "window"),
    Walk("masks", "zh", "zh-en", "她每天早上喝牛奶。", typed=True),
)


def answer_of(posed, *, right):
    """An answer that is right, or one that is wrong: of those to which there is most to say."""
    true, form = posed.answer.right, posed.step.ask.form
    if right:
        return f"{true:.4f}" if form == "number" else str(true)
    if form == "number":
        usual = posed.answer.usual
        return str(true + 1 if usual is None or posed.is_right(str(usual)) else usual)
    wrong = [option.word for option in posed.options if not posed.is_right(option.word)]
    return next((word for word in wrong if posed.misled(word)), wrong[0]) if wrong else "q"
