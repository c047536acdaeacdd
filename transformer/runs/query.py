"""Run request `Query`: source, decoding (greedy, beam, sampling), limits, JSON; the protocol `Runnable`.

A query is everything that determines the result of a run. A `Query` is frozen and hashable, so its result can be
cached, linked to, replayed and compared with another's. It goes to JSON and back unchanged. Settings are checked here.
Whether the source and the forced pieces fit a checkpoint is checked when the query is run.
"""

import json
import unicodedata
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, Self

from transformer.errors import QueryError, shown
from transformer.i18n import Sentence, say, say_n
from transformer.model.config import ModelConfig
from transformer.runs.interventions import Intervention, checked, from_record
from transformer.runs.interventions.fields import real_number, whole_number

if TYPE_CHECKING:
    from transformer.model.transformer import Transformer
    from transformer.text.tokenizer import AnyTokenizer


QUERY_VERSION = 1
MAX_HASH = 64  # characters of a SHA-256, hexadecimal
MAX_SOURCE_CHARACTERS = 4_000  # 512 pieces of English are about 2,500
MAX_NEW = 512
MAX_BEAM = 16
MAX_TOP_K = 1_000_000
MAX_SEED = 2**32 - 1


@dataclass(frozen=True)
class Greedy:
    """Choose the most probable piece each time."""


@dataclass(frozen=True, kw_only=True)
class Beam:
    """Keep the best partial outputs."""

    size: int = 4  # beams, 1 to 16
    length_penalty: float = 0.6  # the exponent of the length penalty, 0 (none) to 2; higher favours longer outputs

    def __post_init__(self) -> None:
        whole_number(say("beam size"), self.size, 1, MAX_BEAM)
        object.__setattr__(self, "length_penalty", real_number("length_penalty", self.length_penalty, 0.0, 2.0))


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """Draw each piece at random from the model's distribution."""

    temperature: float = 1.0  # 0.05 to 5; below 1 sharpens the distribution, above 1 flattens it
    top_k: int = 0  # draw only from the k most probable pieces; 0 for all
    top_p: float = 1.0  # draw only from the fewest pieces that together reach this probability; 1 for all
    seed: int = 0  # decides what is drawn: the same query gives the same result (see `transformer.runs.running.run`)

    def __post_init__(self) -> None:
        object.__setattr__(self, "temperature", real_number("temperature", self.temperature, 0.05, 5.0))
        whole_number("top_k", self.top_k, 0, MAX_TOP_K)
        object.__setattr__(self, "top_p", real_number("top_p", self.top_p, 0.01, 1.0))
        whole_number("seed", self.seed, 0, MAX_SEED)


Decoding = Greedy | Beam | Sampling
MOST_TOGETHER = 32  # queries that are decoded together
_DECODINGS: dict[str, type[Decoding]] = {"greedy": Greedy, "beam": Beam, "sampling": Sampling}


@dataclass(frozen=True, kw_only=True)
class Query:
    """One request; a QueryError if a value is of the wrong type or out of range."""

    checkpoint: str  # content hash of the checkpoint it is for
    source: str  # the sentence, at most 4,000 characters; kept in Unicode form NFC (see `check_source`)
    decoding: Decoding = field(default_factory=Greedy)  # how pieces are chosen
    max_new: int = 128  # most pieces to write, end piece included, 1 to 512; the model's own limit applies too
    forced: tuple[int, ...] = ()  # ids that the output must begin with
    hypothesis: int = 0  # which result of beam search is the output, from 0; 0 for the other ways of decoding
    interventions: tuple[Intervention, ...] = ()  # changes inside the model during the run, in order

    def __post_init__(self) -> None:
        found = self.checkpoint
        if not isinstance(found, str) or not found.isascii() or len(found) > MAX_HASH:
            raise QueryError("checkpoint: found {found}, expected a checkpoint's content hash.", found=shown(found))
        object.__setattr__(self, "source", check_source(self.source))
        if not isinstance(self.decoding, Greedy | Beam | Sampling):
            raise QueryError("decoding: found {found}, expected Greedy, Beam or Sampling.", found=shown(self.decoding))
        whole_number("max_new", self.max_new, 1, MAX_NEW)
        most = self.decoding.size - 1 if isinstance(self.decoding, Beam) else 0
        whole_number("hypothesis", self.hypothesis, 0, most)
        if not isinstance(self.forced, list | tuple):
            raise QueryError("forced: found {found}, expected a list of token ids.", found=shown(self.forced))
        object.__setattr__(self, "forced", tuple(self.forced))
        if len(self.forced) > self.max_new:
            raise QueryError(
                "{n:,} token is forced, but the output may have at most {most}.",
                "{n:,} tokens are forced, but the output may have at most {most}.",
                len(self.forced),
                most=self.max_new,
            )
        for i in self.forced:
            whole_number(say("forced token id"), i, 0, 10_000_000)
        object.__setattr__(self, "interventions", checked(self.interventions))

    @property
    def may_join(self) -> bool:
        """Whether it can be run together with others; see `transformer.runs.running`."""
        return isinstance(self.decoding, Greedy | Sampling) and not self.interventions

    def to_json(self) -> str:
        """The query as one line of JSON; without interventions, in the format from before they existed."""
        kind = next(name for name, cls in _DECODINGS.items() if isinstance(self.decoding, cls))
        record = asdict(self) | {"version": QUERY_VERSION, "decoding": {**asdict(self.decoding), "kind": kind}}
        changes = [intervention.to_record() for intervention in self.interventions]
        del record["interventions"]
        record |= {"interventions": changes} if changes else {}
        return json.dumps(record, ensure_ascii=False, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote; a QueryError if it is other JSON, of another version, or a value is refused."""
        try:
            record: dict[str, Any] = json.loads(text)
            version = record.pop("version")
            if type(version) is not int or version != QUERY_VERSION:
                raise QueryError(
                    "this query has a different version number; this program reads only version {version}.",
                    version=QUERY_VERSION,
                )
            decoding = record.pop("decoding")
            record["decoding"] = _DECODINGS[decoding.pop("kind")](**decoding)
            record["interventions"] = [from_record(change) for change in record.pop("interventions", [])]
            return cls(**record)
        except QueryError:
            raise
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise QueryError("this is not a query; it must be JSON written by `Query.to_json`.") from None


def check_source(source: str) -> str:
    """The source in form NFC, `?` for half a surrogate pair; a QueryError if it is not text, or too long."""
    if not isinstance(source, str):
        raise QueryError("the source must be text, not {kind}.", kind=type(source).__name__)
    return _composed(
        source,
        lambda n: say_n(
            "The source has {n:,} character; the limit is {most:,}. Shorten it.",
            "The source has {n:,} characters; the limit is {most:,}. Shorten it.",
            n,
            most=MAX_SOURCE_CHARACTERS,
        ),
    )


def check_reference(reference: str) -> str:
    """A reference, checked in the same way."""
    if not isinstance(reference, str):
        raise QueryError("the reference must be text, not {kind}.", kind=type(reference).__name__)
    return _composed(
        reference,
        lambda n: say_n(
            "The reference has {n:,} character; the limit is {most:,}. Shorten it.",
            "The reference has {n:,} characters; the limit is {most:,}. Shorten it.",
            n,
            most=MAX_SOURCE_CHARACTERS,
        ),
    )


def _composed(text: str, too_long: Callable[[int], Sentence]) -> str:
    """A text in form NFC; its length is checked before and after.

    Composing a long text can take very long, and a few characters have no composed form and become up to three.
    """
    if len(text) > MAX_SOURCE_CHARACTERS:
        raise QueryError(too_long(len(text)))
    composed = unicodedata.normalize("NFC", text.encode("utf-8", "replace").decode("utf-8"))
    if len(composed) > MAX_SOURCE_CHARACTERS:
        raise QueryError(too_long(len(composed)))
    return composed


class Scorable(Protocol):
    """A model and its tokenizers."""

    @property
    def model(self) -> "Transformer":
        """The model, in evaluation mode."""

    @property
    def src_tokenizer(self) -> "AnyTokenizer":
        """The tokenizer of the source."""

    @property
    def tgt_tokenizer(self) -> "AnyTokenizer":
        """The tokenizer of the target."""


class Runnable(Scorable, Protocol):
    """What a run needs of a checkpoint; `transformer.Checkpoint` is one."""

    @property
    def name(self) -> str:
        """Its name, for messages."""

    @property
    def content_hash(self) -> str:
        """The hash by which queries name it."""

    @property
    def config(self) -> ModelConfig:
        """The features of the model."""
