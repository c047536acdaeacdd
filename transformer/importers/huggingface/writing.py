"""The rules of decoding that a folder's generation settings say, as fields of our config.

Source: transformers 5.23, `GenerationConfig` and what `generate` makes of it: counts of new pieces win over counts of
all tokens, and of several forced ends the smallest id is the likeliest.
"""

from collections.abc import Callable, Mapping
from typing import Any

from transformer.errors import CheckpointError, shown
from transformer.model.config_writing import MAX_COUNT
from words import Sentence, say

SUPPRESSED, BAD_WORDS = "suppress_tokens", "bad_words_ids"
# The field of our config -> the key that says it.
KEYS: Mapping[str, str] = {
    "banned_ids": BAD_WORDS,
    "banned_sequences": BAD_WORDS,
    "first_banned_ids": "begin_suppress_tokens",
    "no_repeat_ngram": "no_repeat_ngram_size",
    "repetition_penalty": "repetition_penalty",
    "min_length": "min_length",
    "min_new": "min_new_tokens",
    "max_length": "max_length",
    "max_new": "max_new_tokens",
    "forced_end_id": "forced_eos_token_id",
}
Ids = Callable[[Any, str], tuple[int, ...]]


def rules_of(record: Mapping[str, Any], ends: tuple[int, ...], *, label: str) -> dict[str, Any]:
    """The values of the fields in `KEYS`; one of another kind than its key calls for is refused.

    The record is what generation_config.json holds, or config.json; `ends` are the ids that end an output, which
    nothing but length keeps back.
    """
    read = _Reader(record, label)
    words = read.words(BAD_WORDS)
    single = {word[0] for word in words if len(word) == 1} | set(read.ids(SUPPRESSED))
    min_new, max_new = read.count("min_new_tokens"), read.count("max_new_tokens")
    forced = read.ids("forced_eos_token_id")
    return {
        "banned_ids": tuple(sorted(single - set(ends))),
        "banned_sequences": tuple(word for word in words if len(word) > 1),
        "first_banned_ids": read.ids("begin_suppress_tokens"),
        "no_repeat_ngram": read.count("no_repeat_ngram_size") or 0,
        "repetition_penalty": read.number("repetition_penalty", 1.0),
        "min_length": 0 if min_new is not None else read.count("min_length") or 0,
        "min_new": min_new or 0,
        "max_length": None if max_new is not None else read.count("max_length", least=1),
        "max_new": read.count("max_new_tokens", least=1),
        "forced_end_id": min(forced, default=None),
    }


class _Reader:
    """The values of one record, each of the kind that its key calls for."""

    def __init__(self, record: Mapping[str, Any], label: str) -> None:
        self._record, self._label = record, label

    def count(self, key: str, *, least: int = 0) -> int | None:
        found = self._record.get(key)
        if found is not None and (type(found) is not int or not least <= found <= MAX_COUNT):
            raise self._refused(
                key, found, say("a whole number from {least} to {most:,}", least=least, most=MAX_COUNT)
            )
        return found

    def number(self, key: str, absent: float) -> float:
        found = self._record.get(key)
        if found is None:
            return absent
        if isinstance(found, bool) or not isinstance(found, int | float) or not 0.01 <= found <= 100:
            raise self._refused(key, found, say("a number from {least:g} to {most:g}", least=0.01, most=100))
        return float(found)

    def ids(self, key: str) -> tuple[int, ...]:
        """One id or a list of them."""
        return ids_of(self._record.get(key), key, self._label)

    def words(self, key: str) -> list[tuple[int, ...]]:
        """Lists of ids; a list may hold one twice."""
        found = self._record.get(key)
        if found is None:
            return []
        if not isinstance(found, list) or not all(isinstance(word, list) and word for word in found):
            raise self._refused(key, found, say("lists of ids"))
        for word in found:
            ids_of(word, key, self._label)
        return list(dict.fromkeys(tuple(word) for word in found))

    def _refused(self, key: str, found: object, expected: Sentence) -> CheckpointError:
        return CheckpointError(
            "{label}: {key}: found {found}, expected {expected}.",
            label=self._label,
            key=key,
            found=shown(found),
            expected=expected,
        )


def ids_of(value: Any, key: str, label: str) -> tuple[int, ...]:
    """One id or a list of them, each once; what is no id is refused."""
    if value is None:
        return ()
    found = value if isinstance(value, list) else [value]
    for i in found:
        if type(i) is not int or not 0 <= i <= MAX_COUNT:
            raise CheckpointError(
                "{label}: {key}: found {found}, expected an id.", label=label, key=key, found=shown(i)
            )
    return tuple(dict.fromkeys(found))
