"""Ids as they are, where there is no tokenizer."""

from collections.abc import Collection, Sequence

from transformer.i18n import say
from transformer.text.tokenizer import AnyTokenizer, Encoding


class RawIds(AnyTokenizer):
    """No vocabulary: a text is a row of ids, such as 12 7 5, and each piece is the number of its row."""

    continuation = " "  # no number begins with it, so each is a word
    notes = (
        say(
            "This model has no tokenizer, so its pieces are the row numbers of its embedding table. Type numbers "
            "separated by spaces, for example 12 7 5."
        ),
    )

    def __init__(self, size: int, special: Collection[int] = ()) -> None:
        super().__init__(tuple(map(str, range(size))), special)

    def encode(self, text: str) -> Encoding:
        """The ids that a text lists; what is no id of this model is left unread."""
        listed = text.replace(",", " ").split()
        read = [word for word in listed if word in self._ids]
        unread = tuple(word for word in listed if word not in self._ids)
        return Encoding(tuple(self._ids[word] for word in read), tuple(read), unread)

    def decode(self, ids: Sequence[int]) -> str:
        """The ids with spaces between them, without special ones."""
        return " ".join(str(i) for i in ids if not self.is_special(i))
