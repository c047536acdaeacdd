"""Search conditions for lines: records, each with the query that finds its lines.

A condition selects lines by one number; `queries.search` joins them. Values are bound (`$name`); only column names from
closed sets are written into SQL. It does not know DuckDB.
"""

from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from glassformer.extensions.corpus.library.folder import Run
from glassformer.extensions.corpus.library.rollups import ATTENDS
from glassformer.extensions.corpus.library.tables import NAMES, Name
from transformer.errors import QueryError, shown
from transformer.model.anatomy import Kind
from transformer.text.tokenizer import SPACE_MARK

Select = tuple[str, dict[str, Any]]
Head = tuple[Kind, int, int]  # kind of attention, layer and head, from 1
OfLine = Literal["loss", "log_prob", "worst_rank", "n_source", "n_target"]
LINE_NAMES: Final[tuple[OfLine, ...]] = get_args(OfLine)
Side = Literal["source", "target", "output"]
SIDES: Final[tuple[Side, ...]] = get_args(Side)
PLACE: Final = "peak_query, peak_key, peak_step, peak_query_piece, peak_key_piece, peak"
_OF_HEAD: Final = "FROM read_parquet($heads) WHERE kind = $kind AND layer = $layer AND head = $head"


@dataclass(frozen=True)
class Condition:
    """Base of all conditions."""

    @property
    def of_head(self) -> Head | None:
        """The head that it names; its query then also selects where the largest weight is."""
        return None

    @property
    def order(self) -> str:
        """How its numbers are sorted, what fits best first: ASC, DESC, or empty if there are none."""
        return ""

    def check(self, run: Run) -> None:
        """A `QueryError` where the run cannot answer."""

    def select(self) -> Select:
        """The query, with columns `line` and `value`, and what is bound in it."""
        raise NotImplementedError


@dataclass(frozen=True)
class OfHead(Condition):
    """Base of the conditions that name a head."""

    kind: Kind
    layer: int  # from 1
    head: int  # from 1

    @property
    def of_head(self) -> Head:  # noqa: D102
        return self.kind, self.layer, self.head

    @property
    def order(self) -> str:  # noqa: D102
        return "DESC"

    def bound(self) -> dict[str, Any]:
        """What is bound in the query of its rows."""
        return {"kind": self.kind, "layer": self.layer, "head": self.head}


@dataclass(frozen=True)
class Asked(OfHead):
    """A measure of a head lies between two values, both included; None: unbounded."""

    measure: Name
    at_least: float | None = None
    at_most: float | None = None
    most_first: bool | None = None  # None: as the limits suggest

    @property
    def order(self) -> str:  # noqa: D102
        first = self.at_least is not None or self.at_most is None if self.most_first is None else self.most_first
        return "DESC" if first else "ASC"

    def check(self, run: Run) -> None:  # noqa: D102
        if self.measure not in NAMES:
            raise QueryError("{found} is not a measure of a head.", found=shown(self.measure))
        if self.measure == "effect" and not run.about.options.effect:
            raise QueryError("This run did not measure effects. Run the corpus command again with --effect.")

    def select(self) -> Select:  # noqa: D102
        query = f'SELECT line, "{self.measure}" AS value, {PLACE} {_OF_HEAD} AND isfinite(value){{}}'
        limits, bound = _limits("value", self.at_least, self.at_most)
        return query.format(limits), self.bound() | bound


@dataclass(frozen=True)
class LooksAt(OfHead):
    """A head's largest weight is at least so large, and on a piece: a certain one, or any punctuation."""

    at_least: float
    piece: str | None = None  # with or without the sign for a space; None: any punctuation

    def select(self) -> Select:  # noqa: D102
        bare = f"replace(peak_key_piece, '{SPACE_MARK}', '')"
        fits = f"{bare} = $piece"
        if self.piece is None:  # a pattern is slow, so each piece is looked at once
            different = f"SELECT DISTINCT peak_key_piece {_OF_HEAD}"
            fits = f"peak_key_piece IN (FROM ({different}) WHERE regexp_full_match({bare}, '[\\p{{P}}\\p{{S}}]+'))"
        limits, bound = _limits("peak", self.at_least, None)
        bound |= self.bound()
        if self.piece is not None:
            bound["piece"] = self.piece.replace(SPACE_MARK, "")
        return f"SELECT line, peak AS value, {PLACE} {_OF_HEAD}{limits} AND {fits}", bound


@dataclass(frozen=True)
class OfSentence(Condition):
    """A number of a line lies between two values, both included; None: unbounded."""

    measure: OfLine
    at_least: float | None = None
    at_most: float | None = None

    @property
    def order(self) -> str:  # noqa: D102
        return "DESC" if self.at_least is not None or self.at_most is None else "ASC"

    def check(self, run: Run) -> None:  # noqa: D102
        if self.measure not in LINE_NAMES:
            raise QueryError("{found} is not a number of a line.", found=shown(self.measure))

    def select(self) -> Select:  # noqa: D102
        limits, bound = _limits("value", self.at_least, self.at_most)
        query = f'SELECT line, "{self.measure}"::FLOAT AS value FROM read_parquet($sentences)'
        return f"{query} WHERE value IS NOT NULL{limits}", bound


@dataclass(frozen=True)
class Contains(Condition):
    """A text of a line contains another, upper or lower case alike."""

    side: Side
    text: str

    def check(self, run: Run) -> None:  # noqa: D102
        if self.side not in SIDES:
            raise QueryError("{found} is not a text of a line.", found=shown(self.side))

    def select(self) -> Select:  # noqa: D102
        query = "SELECT line, NULL AS value FROM read_parquet($sentences) WHERE contains(lower({}), lower($text))"
        return query.format(self.side), {"text": self.text}


@dataclass(frozen=True)
class Disagrees(OfHead):
    """How differently a head's attention and its effect rank, among all lines that have both.

    A rank is the share of lines below, 0 to 1; the number is the difference of the two ranks, in either direction.
    """

    attention: Name = "norm_share"  # of `rollups.ATTENDS`; a low entropy ranks high
    attends_more: bool = True
    at_least: float = 0.5

    def check(self, run: Run) -> None:  # noqa: D102
        if self.attention not in ATTENDS:
            raise QueryError("{found} does not say how much a head attends.", found=shown(self.attention))
        Asked(self.kind, self.layer, self.head, "effect").check(run)

    def select(self) -> Select:  # noqa: D102
        sign = "" if ATTENDS[self.attention] else "-"
        attention = f'percent_rank() OVER (ORDER BY {sign}"{self.attention}")'
        effect = "percent_rank() OVER (ORDER BY effect)"
        more, less = (attention, effect) if self.attends_more else (effect, attention)
        ranked = f'SELECT line, {more} - {less} AS value, {PLACE} {_OF_HEAD} AND isfinite("{self.attention}")'
        query = f"SELECT * FROM ({ranked} AND isfinite(effect)) WHERE value >= $least"
        return query, self.bound() | {"least": self.at_least}


def _limits(value: str, least: float | None, most: float | None) -> Select:
    """Conditions for a number; a limit is rounded like the numbers, so 0.7 is at least 0.7."""
    limits = {">= $least::FLOAT": least, "<= $most::FLOAT": most}
    text = "".join(f" AND {value} {limit}" for limit, number in limits.items() if number is not None)
    return text, {name: number for name, number in (("least", least), ("most", most)) if number is not None}
