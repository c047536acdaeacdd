"""The library's exceptions with translatable messages; `within` adds a file's name, `shown` writes a value.

Every message is one or two sentences that name the value found, the limit and the remedy, so a page can show it
unchanged. Each class is a `ValueError`: the caller gave something that cannot be used.

`ClauseError` stays inside the library: code that parses bytes says what is wrong, and its caller says where.

An error is raised with a sentence, or with what `transformer.i18n.say` or `say_n` takes. A page shows the sentence in
the reader's language: `error.sentence`. In a traceback or a log it is English.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, LiteralString

from transformer.i18n import Sentence, say
from transformer.i18n.sentence import Template


class SentenceError(Exception):
    """An error that keeps its message as a sentence: one, or what `say` takes, or what `say_n` takes."""

    def __init__(
        self, message: LiteralString | Sentence, many: LiteralString | None = None, n: int = 0, /, **values: Any
    ) -> None:
        super().__init__(_said(message, many, n, values))

    @property
    def sentence(self) -> Sentence:
        """The message as a sentence; `transformer.i18n.said` translates it."""
        message: Sentence = self.args[0]
        return message


class ClauseError(SentenceError, ValueError):
    """What is wrong, as a clause without a full stop: the caller puts it into a sentence that names the file."""


class GlassformerError(SentenceError, ValueError):
    """Base of every error that reaches a caller of the library."""


class ConfigError(GlassformerError):
    """A field of a `ModelConfig` is missing, of the wrong type or out of range; the message says what is wrong."""

    def __init__(
        self,
        field: str,
        message: LiteralString | Sentence,
        many: LiteralString | None = None,
        n: int = 0,
        /,
        **values: Any,
    ) -> None:
        self.field = field
        self._problem = _said(message, many, n, values)
        super().__init__(say("{label}: {problem}", label=field, problem=self._problem))

    def __reduce__(self) -> tuple[object, ...]:
        return ConfigError, (self.field, self._problem)


class CheckpointError(GlassformerError):
    """A file of a checkpoint folder is missing, damaged or does not fit the others."""


class UnansweredError(CheckpointError):
    """Something has to be answered before it can be loaded."""


class TokenizerError(GlassformerError):
    """A vocabulary's file cannot be used, or an id is outside of it."""


class QueryError(GlassformerError):
    """A request cannot be run on this checkpoint; nothing was changed."""


class NotFiniteError(QueryError):
    """The model computes a value that is NaN or infinite; the message names the first site."""


class MapsError(GlassformerError):
    """Attention maps from elsewhere cannot be shown."""


class DataError(GlassformerError):
    """A training or scoring file cannot be read."""


@contextmanager
def within(label: str, kind: Callable[[Sentence], GlassformerError] = CheckpointError) -> Iterator[None]:
    """Say of what is refused inside which file or folder it is in, as an error of a kind."""
    try:
        yield
    except ClauseError as error:
        raise kind(say("{label}: {problem}.", label=label, problem=error.sentence)) from None
    except (ConfigError, TokenizerError) as error:
        raise kind(say("{label}: {problem}", label=label, problem=error.sentence)) from error


def shown(value: object) -> str:
    """A value as a message shows it: on one line, and cut if it is long."""
    if isinstance(value, int) and abs(value) >= 10**30:
        return say("an integer with more than 30 digits")  # Python refuses to print the longest ones
    try:
        text = repr(value).replace("\n", " ")  # that of a tensor has several lines
    except RecursionError:
        return say("a value nested too deeply to show")
    except ValueError:  # one of its items is such an integer
        return say("an integer with more than 30 digits")
    return text if len(text) <= 60 else text[:57] + "..."


def _said(message: str, many: str | None, n: int, values: dict[str, Any]) -> Sentence:
    if isinstance(message, Sentence):
        return message
    return Template(message, many, values.pop("about", ""), values if many is None else {"n": n, **values})
