"""Saved runs as checkpoints without a model: `RecordedCheckpoint`, `RecordedTokenizer`; `RunFormat` of `.glass`.

Pages and notebooks get it where they get a loaded checkpoint. It answers its own query; whatever else would need the
model is refused with one sentence. Its content hash is the file's, so nothing that is cached of it is ever taken for
that of the model.

Run files (`NAME.glass`) are listed among checkpoints, checked as uploads, and opened as such a checkpoint.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO, Final, NoReturn, TypeVar

import numpy as np

from transformer.checkpoint.card import Card
from transformer.checkpoint.listing import Entry, Format, LoadOptions
from transformer.checkpoint.load import Checkpoint
from transformer.errors import GlassformerError, QueryError, TokenizerError
from transformer.files.untrusted_folder import FolderFiles
from transformer.i18n import Sentence, say
from transformer.model.anatomy import Kind
from transformer.runs.query import Query
from transformer.runs.run_file import SUFFIX, check_run, read_run
from transformer.runs.trace import Trace
from transformer.text import SPACE_MARK
from transformer.text.tokenizer import AnyTokenizer, Encoding

_Made = TypeVar("_Made")
Ids = tuple[int, ...]


def _refusal(name: str) -> Sentence:
    return say(
        "This is a saved run of {name}. It has the sentence, its steps and its maps, but not the model, which this "
        "needs. Open {name} to see it.",
        name=name,
    )


def _refuse(name: str) -> NoReturn:
    raise QueryError(_refusal(name))


class _NoModel:
    """In the place of the model: the first thing that is asked of it is refused."""

    def __init__(self, name: str) -> None:
        self.__dict__["_name"] = name

    def __getattr__(self, asked: str) -> NoReturn:
        if asked.startswith("__"):
            raise AttributeError(asked)
        _refuse(self.__dict__["_name"])


class RecordedTokenizer(AnyTokenizer):
    """The vocabulary as a run knows it; it splits the text of the run and no other."""

    def __init__(self, pieces: tuple[str, ...], special: frozenset[int], *, name: str, text: str, ids: Ids) -> None:
        super().__init__(pieces, special)
        self._name, self._text = name, text
        self._ids_of_text = tuple(i for i in ids if not self.is_special(i))

    def encode(self, text: str) -> Encoding:
        """The tokens of the run's own text; any other is refused, because the tokenizer is the model's."""
        if text != self._text:
            raise TokenizerError(_refusal(self._name))
        return Encoding(self._ids_of_text, tuple(map(self.piece, self._ids_of_text)))

    def decode(self, ids: Sequence[int]) -> str:
        """The pieces in a row, with spaces where words begin."""
        pieces = (self.piece(i) for i in ids if not self.is_special(i))
        return "".join(pieces).replace(SPACE_MARK, " ").removeprefix(" ")


@dataclass(frozen=True, eq=False)
class RecordedCheckpoint(Checkpoint):
    """What a saved run says of its model."""

    recorded: Trace = field(kw_only=True)  # its query has this checkpoint's hash

    def __post_init__(self) -> None:
        """Nothing: a run looks for its model among those in memory, and must not find this."""

    @property
    def only_query(self) -> Query:
        """That of the run."""
        return self.recorded.query

    def run(self, source: str | Query, **_: Any) -> Trace:
        """The run, if that is asked for."""
        if isinstance(source, str):
            source = replace(self.recorded.query, source=source)
        own, is_long = self.recorded.query, source.max_new >= self.recorded.n_steps  # pages limit it to the model's
        if not is_long or replace(source, max_new=own.max_new) != own:
            raise QueryError(
                "This is a saved run of {name}: it has the sentence {sentence} as it was decoded then, and no other. "
                "Open {name} to change something.",
                name=self.recorded.checkpoint,
                sentence=self.recorded.query.source,
            )
        return self.recorded

    def run_batch(self, queries: Sequence[Query], *, maps: bool = True) -> tuple[Trace, ...]:
        """The run for each query that is its own."""
        return tuple(map(self.run, queries))

    def run_together(self, queries: Sequence[Query], **_: Any) -> Iterator[Trace | Exception]:
        """The run for each query that is its own, a QueryError for any other."""
        for query in queries:
            try:
                yield self.run(query)
            except QueryError as error:
                yield error

    def replay(self, trace: Trace, sites: Sequence[str]) -> dict[str, np.ndarray]:
        """Weights and masks of the run; other values are refused."""
        _refuse(self.recorded.checkpoint)

    def each_layer(
        self, trace: Trace, kind: Kind, work: Callable[[np.ndarray, int], _Made], *, layers: Sequence[int] | None
    ) -> list[_Made]:
        """What some work makes of the maps of each layer; refused if the run kept none."""
        if not trace.keeps_maps:
            _refuse(self.recorded.checkpoint)
        maps = trace.maps(kind)
        return [work(maps[layer], layer) for layer in (range(len(maps)) if layers is None else layers)]


def opened(file: Path, *, name: str, inside: Path | None) -> RecordedCheckpoint:
    """The checkpoint of a run's file, which may lead nowhere `inside` is not; `name` is the app's of it."""
    with FolderFiles(file.parent, inside=inside).open(file.name) as (content, size):
        found = read_run(content, size, label=file.name)
    return _made(found.trace, found.card, found.special, name=name, folder=file, digest=found.digest)


def recorded_of(trace: Trace) -> RecordedCheckpoint:
    """The checkpoint of a run whose model is not in memory."""
    name = trace.checkpoint
    return _made(trace, Card(), {}, name=name, folder=Path(name), digest=trace.query.checkpoint)


def _made(
    trace: Trace, card: Card, special: Mapping[Any, frozenset[int]], *, name: str, folder: Path, digest: str
) -> RecordedCheckpoint:
    config = trace.rules.config
    marked = frozenset(i for i in (config.pad_id, config.unk_id, config.bos_id, *config.end_ids) if i is not None)
    known = dict(zip(trace.src_ids, trace.src_tokens, strict=True))
    source = trace.vocabulary if config.shared_vocab else ()
    source = source or tuple(known.get(i, f"#{i}") for i in range(config.src_vocab_size))
    read = "source", source, trace.query.source, trace.src_ids
    written = "target", trace.vocabulary or source, trace.output_text, trace.tgt_ids
    sides = [
        RecordedTokenizer(pieces, special.get(side, marked), name=trace.checkpoint, text=text, ids=ids)
        for side, pieces, text, ids in (read, written)
    ]
    model: Any = _NoModel(trace.checkpoint)
    title = card.title or trace.checkpoint
    return RecordedCheckpoint(
        name=name,
        folder=folder,
        config=config,
        model=model,
        src_tokenizer=sides[0],
        tgt_tokenizer=sides[1],
        card=replace(card, title=title, examples=(trace.query.source,)),
        content_hash=digest,
        recorded=replace(trace, query=replace(trace.query, checkpoint=digest)),
    )


# ------------------------------------------------------------------------------------------------ files

HOLDS: Final = "run"


class RunFormat(Format):
    """Files that `Trace.save` wrote, or folders of one such file."""

    suffix = SUFFIX

    def lists(self, file: Path, inside: Path) -> bool:
        """Whether a file is called as a run is."""
        return file.suffix == SUFFIX and file.name[0] != "." and file.name.isprintable() and not file.is_dir()

    def look(self, place: Path, name: str, root: Path) -> Entry | None:
        """The entry of a file, by what it says of its model and sentence."""
        if place.is_dir():
            files = list(place.glob(f"*{SUFFIX}"))
            place = files[0] if len(files) == 1 else place
        if place.suffix != SUFFIX or place.is_dir():
            return None
        try:
            with FolderFiles(place.parent, inside=root).open(place.name) as (content, size):
                model, sentence = check_run(content, size, label=place.name)
        except GlassformerError as error:
            return Entry(name, place, error.sentence, name, root, holds=HOLDS)
        return Entry(name, place, None, f"{model}: {sentence}", root, examples=(sentence,), holds=HOLDS)

    def takes(self, name: str, file: BinaryIO, size: int) -> bool:
        """Whether an uploaded file is a run; raises what is wrong with one."""
        if not name.endswith(SUFFIX):
            return False
        read_run(file, size, label=name)
        return True

    def reads(self, source: Path, *, inside: Path | None) -> bool:
        """Whether it is a run's file."""
        return source.suffix == SUFFIX and source.is_file()

    def load(self, source: Path, how: LoadOptions) -> Checkpoint:
        """The run in the place of a checkpoint."""
        return opened(source, name=source.name, inside=how.inside)


FORMAT = RunFormat()
