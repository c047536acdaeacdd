"""The part of a config that says what ids mean, and which ids are added around a text.

    source     (bos) prefix, the pieces of the text, (eos) suffix
    output     decoder_start_id is read first; forced_ids are written first; then the model chooses, until an end id

Source: Vaswani et al. (2017) has the padding, start and end pieces; Johnson et al., "Google's Multilingual Neural
Machine Translation System" (2017), for a piece before the source that names a language; Tang et al., "Multilingual
Translation with Extensible Multilingual Pretraining and Finetuning" (2020), for one that the output must begin with.
It knows nothing of torch, nor of the rest of a config.
"""

from dataclasses import dataclass

from transformer.errors import ConfigError, shown

_LISTS = ("source_prefix", "source_suffix", "forced_ids", "banned_ids", "further_eos_ids")


@dataclass(frozen=True, kw_only=True)
class Ids:
    """Special ids, and the wrapping of source and output."""

    # Special ids, the same on both sides; all but `eos_id` may be None: the model has no such piece. Without `pad_id`
    # no token counts as padding.
    pad_id: int | None = 0
    unk_id: int | None = 1
    bos_id: int | None = 2
    eos_id: int = 3
    further_eos_ids: tuple[int, ...] = ()  # more ids that end the output
    decoder_start_id: int = 2  # the id that the decoder reads first; some models use their `pad_id`
    prepend_source_bos: bool = False  # the source begins with `bos_id`
    append_source_eos: bool = True  # the source ends with `eos_id`
    source_prefix: tuple[int, ...] = ()  # ids before the text, after `bos_id` if that is prepended
    source_suffix: tuple[int, ...] = ()  # ids after the text, after `eos_id` if that is appended
    # Ids that every output begins with, unless a query forces others in their places.
    forced_ids: tuple[int, ...] = ()
    banned_ids: tuple[int, ...] = ()  # ids that are never written; `pad_id` never is

    @property
    def end_ids(self) -> tuple[int, ...]:
        """Every id that ends an output."""
        return (self.eos_id, *self.further_eos_ids)

    @property
    def never_written(self) -> tuple[int, ...]:
        """Every id that decoding may not choose. Padding is included: a mask would hide it from all later steps."""
        return tuple(sorted({*self.banned_ids, *(() if self.pad_id is None else (self.pad_id,))}))

    @property
    def fill_id(self) -> int:
        """The id that fills short rows of a batch: padding, or in a model without it one written after the end."""
        return self.eos_id if self.pad_id is None else self.pad_id

    @property
    def source_start(self) -> tuple[int, ...]:
        """The ids before the text."""
        return (*((self.bos_id,) if self.prepend_source_bos and self.bos_id is not None else ()), *self.source_prefix)

    @property
    def source_end(self) -> tuple[int, ...]:
        """The ids after the text."""
        return (*((self.eos_id,) if self.append_source_eos else ()), *self.source_suffix)

    def check_ids(self, *, src_size: int, tgt_size: int, max_len: int) -> None:
        """Check them against the sizes of both vocabularies and the longest text; a ConfigError names the field."""
        for name in ("pad_id", "unk_id", "bos_id", "eos_id", "decoder_start_id"):
            _check_range(name, getattr(self, name), min(src_size, tgt_size))
        for name in _LISTS:
            for i in getattr(self, name):
                _check_range(name, i, src_size if name.startswith("source") else tgt_size)
        if self.prepend_source_bos and self.bos_id is None:
            raise ConfigError(
                "bos_id", "is null, but prepend_source_bos is true; give the id, or set prepend_source_bos to false."
            )
        for name, ids in (("eos_id", (self.eos_id,)), ("further_eos_ids", self.further_eos_ids)):
            if self.pad_id in ids:
                raise ConfigError(
                    name, "equals pad_id ({pad_id}), so padding would end every sentence.", pad_id=self.pad_id
                )
        if self.eos_id in self.banned_ids:
            raise ConfigError("banned_ids", "contains eos_id ({eos_id}), so no sentence would end.", eos_id=self.eos_id)
        for i in self.forced_ids:
            if i in self.never_written:
                raise ConfigError(
                    "forced_ids",
                    "contains {i}, the id of a token that is never written, because it is pad_id or in banned_ids.",
                    i=i,
                )
        for name, n in (
            ("source_prefix", len(self.source_prefix) + len(self.source_suffix)),
            ("forced_ids", len(self.forced_ids)),
        ):
            if n and n >= max_len:
                raise ConfigError(
                    name, "{n} ids leave no room for text; the model reads at most {most} tokens.", n=n, most=max_len
                )


def _check_range(name: str, value: int | None, size: int) -> None:
    if value is not None and not 0 <= value < size:
        raise ConfigError(
            name, "found {found}, expected 0 to {last} (the smaller vocabulary's ids).", found=shown(value),
            last=size - 1,
        )  # fmt: skip
