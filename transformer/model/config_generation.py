"""Config fields for generation rules: banned ids, repetition, lengths.

They are not part of the model's arithmetic: its probabilities stay the same, and the rules change which piece is
chosen. `transformer.runs.rules` says what each does.

    text       the start piece or the prompt, then what has been written so far

Source: Keskar et al., "CTRL" (2019), section 4.1, for the repetition penalty; Paulus et al., "A Deep Reinforced Model
for Abstractive Summarization" (2018), section 2.5, for runs of pieces that may not repeat; the others are those of
`GenerationConfig` in Hugging Face's transformers. It knows nothing of torch.
"""

from dataclasses import dataclass

from transformer.errors import ConfigError, shown
from transformer.model.checks import check_number, check_whole

MAX_COUNT = 10_000_000
MAX_SEQUENCES = 10_000


@dataclass(frozen=True, kw_only=True)
class Writing:
    """The rules of decoding. By default there are none."""

    # Runs of ids that are never written: if the text ends with all but the last, the last is closed.
    banned_sequences: tuple[tuple[int, ...], ...] = ()
    first_banned_ids: tuple[int, ...] = ()  # ids that are closed for the first piece after `forced_ids`
    no_repeat_ngram: int = 0  # runs of this many pieces may not repeat in a text; 0: they may
    # Logits above 0 of pieces in the text are divided by it, those below multiplied; 1: nothing changes.
    repetition_penalty: float = 1.0
    min_length: int = 0  # the end is closed while the text has fewer tokens than this
    min_new: int = 0  # the end is closed while the output has fewer pieces than this
    # Most tokens of a text with its output, if below the model's own limit; None: only that limit.
    max_length: int | None = None
    max_new: int | None = None  # most pieces of an output; None: only the query's limit
    forced_end_id: int | None = None  # the last piece of an output that the length limit cuts; None: nothing is forced

    @property
    def has_rules(self) -> bool:
        """Whether a choice depends on the text before it, or on its place."""
        return (
            bool(self.banned_sequences or self.first_banned_ids or self.no_repeat_ngram)
            or bool(self.min_length or self.min_new)
            or self.repetition_penalty != 1.0
            or self.forced_end_id is not None
        )

    def _check_writing(self, *, size: int, closed: tuple[int, ...]) -> None:
        """Check the fields of this record by the size of the target's vocabulary and what is never written."""
        for name in ("no_repeat_ngram", "min_length", "min_new"):
            check_whole(name, getattr(self, name), least=0, most=MAX_COUNT)
        for name in ("max_length", "max_new"):
            if getattr(self, name) is not None:
                check_whole(name, getattr(self, name), least=1, most=MAX_COUNT)
        check_number("repetition_penalty", self.repetition_penalty, least=0.01, most=100.0)
        if not isinstance(self.banned_sequences, tuple) or len(self.banned_sequences) > MAX_SEQUENCES:
            raise ConfigError(
                "banned_sequences",
                "found {found}, expected at most {most:,} lists of ids.",
                found=shown(self.banned_sequences),
                most=MAX_SEQUENCES,
            )
        for sequence in self.banned_sequences:
            if not isinstance(sequence, tuple) or len(sequence) < 2:
                raise ConfigError(
                    "banned_sequences",
                    "found {found}, expected a list of two or more ids; a single id belongs in banned_ids.",
                    found=shown(sequence),
                )
            _check_ids("banned_sequences", sequence, size)
        _check_ids("first_banned_ids", self.first_banned_ids, size)
        if self.forced_end_id is not None:
            _check_ids("forced_end_id", (self.forced_end_id,), size)
            if self.forced_end_id in closed:
                raise ConfigError(
                    "forced_end_id",
                    "found {i}, the id of a token that is never written, because it is pad_id or in banned_ids.",
                    i=self.forced_end_id,
                )


def _check_ids(name: str, ids: object, size: int) -> None:
    if not isinstance(ids, tuple):
        raise ConfigError(name, "found {found}, expected a list of ids.", found=shown(ids))
    for i in ids:
        check_whole(name, i, least=0, most=size - 1)
