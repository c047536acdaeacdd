"""From public text to what training reads: train, dev and test, attributions, a report and a card to start with.

    train.tsv  dev.tsv  test.tsv                  source TAB target, UTF-8, in the order of the input
    train.attribution.tsv  ...                    line of the input TAB whom to name; line n belongs to line n
    card.json                                     for `--card` of the command train, which puts it into the checkpoint
    report.json                                   what was read, changed, dropped and drawn

The same input and settings give the same bytes on every machine.
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from glassformer.extensions.training.library.cleaning import Cleaned, CleanPair, Rules, clean
from glassformer.extensions.training.library.splitting import SMALL, Split, split
from transformer.checkpoint.card import TEXTS
from transformer.checkpoint.save import file_sha256
from transformer.errors import DataError
from transformer.text.line_files import read_lines

SPLITS = ("train", "dev", "test")
CARD, REPORT = "card.json", "report.json"
WRITTEN = (*(f"{name}.tsv" for name in SPLITS), *(f"{name}.attribution.tsv" for name in SPLITS), CARD, REPORT)
LONGEST_EXAMPLE = 80

# What the third column of every line says in the export of manythings.org/anki.
_TATOEBA = ("CC-BY 2.0 (France)", "tatoeba.org")
_TATOEBA_DATA = "Trained on sentences from Tatoeba (tatoeba.org, manythings.org/anki), CC-BY 2.0 FR."
_TATOEBA_LICENCE = "CC-BY 2.0 FR (Tatoeba)"


@dataclass(frozen=True, kw_only=True)
class Preparation:
    """What to read, what to keep and where to put it."""

    files: Sequence[Path]  # one file of tab-separated lines (or a zip that holds one), or two line-aligned files
    out: Path  # the folder to write
    rules: Rules = field(default_factory=Rules)  # what is kept
    dev: int = 1_000  # Pairs to hold out; 0 for none. The seed of `rules` decides which.
    test: int = 2_000
    force: bool = False  # replace what an earlier call wrote, as its report says; other files of the folder stay
    # Title, languages, data and licence, as far as they are given.
    card: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, value in (("--dev", self.dev), ("--test", self.test)):
            if value < 0:
                raise DataError("{name} is {value}; expected 0 or more.", name=name, value=value)


def prepare(job: Preparation) -> dict[str, object]:
    """Read, clean, split and write; returns the report, as it stands in `report.json`.

    A `DataError` where a file cannot be read, the folder is not to be written, or the pairs do not suffice.
    """
    _check_folder(job)
    cleaned = clean(read_lines(job.files), job.rules)
    parts = split([pair[1:3] for pair in cleaned.pairs], dev=job.dev, test=job.test, seed=job.rules.seed)
    contents: dict[str, str] = {}
    for name in SPLITS:
        indices: Sequence[int] = getattr(parts, name)
        contents |= _files(name, [cleaned.pairs[index] for index in indices])
    report = _report(job, cleaned, parts)
    contents[CARD] = _json(_card(job, cleaned.pairs, report))
    _write(job.out, {REPORT: _json(report), **contents})  # the report first: by it a later call knows its own files
    return report


def _check_folder(job: Preparation) -> None:
    """Refuse before the work what could not be written after it."""
    if job.out.exists() and not job.out.is_dir():
        raise DataError("{out}: is a file; --out must be the folder to write to.", out=str(job.out))
    if job.out.is_dir() and any(job.out.iterdir()) and not job.force:
        raise DataError(
            "{out}: already contains files; choose another folder, or use --force to replace them.", out=str(job.out)
        )
    for name in WRITTEN:
        if os.path.lexists(job.out / name) and name not in _written_before(job.out):
            raise DataError(
                "{file}: was not written by prepare, so it will not be replaced or removed; choose another folder.",
                file=str(job.out / name),
            )
    ours = {(job.out / name).resolve() for name in WRITTEN}
    for file in job.files:
        if file.resolve() in ours:
            raise DataError(
                "{file}: would be overwritten by the output made from it; choose a different folder for --out.",
                file=str(file),
            )


def _written_before(folder: Path) -> set[str]:
    """The files that an earlier call wrote into a folder, by its report; none if there is no such report."""
    try:
        report = json.loads((folder / REPORT).read_bytes())
        splits = [name for name in SPLITS if report["settings"] and report["splits"][name]]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return set()
    return {CARD, REPORT, *(f"{name}{kind}.tsv" for name in splits for kind in ("", ".attribution"))}


def _files(name: str, pairs: Sequence[CleanPair]) -> dict[str, str]:
    """The files of one split, none if it is empty; attributions only where there are some."""
    files = {}
    if pairs:
        files[f"{name}.tsv"] = "".join(f"{pair.source}\t{pair.target}\n" for pair in pairs)
    if any(pair.attribution for pair in pairs):
        files[f"{name}.attribution.tsv"] = "".join(f"{pair.line}\t{pair.attribution}\n" for pair in pairs)
    return files


def _report(job: Preparation, cleaned: Cleaned, parts: Split) -> dict[str, object]:
    tally = cleaned.tally
    return {
        "files": [{"file": file.name, "sha256": file_sha256(file)} for file in job.files],
        "settings": {**asdict(job.rules), "dev": job.dev, "test": job.test},
        "read": tally.read,
        "changed": {name: count for name, count in tally.changed.items() if count},
        "dropped": {
            str(reason): {
                "lines": count,
                "examples": [
                    {"line": line, "text": _cut("\t".join(texts))} for line, texts in tally.examples[reason]
                ],
            }
            for reason, count in sorted(tally.dropped.items(), key=lambda item: -item[1])
        },
        "kept": len(cleaned.pairs),
        "with_attribution": sum(bool(pair.attribution) for pair in cleaned.pairs),
        "target_characters_a_source_character": round(cleaned.ratio, 3),
        "spaces_between_words": {"source": cleaned.spaces[0], "target": cleaned.spaces[1]},
        "splits": {name: len(getattr(parts, name)) for name in SPLITS},
        "groups": {
            "groups": parts.n_components,
            "pairs_of_the_largest": parts.largest,
            "most_pairs_of_a_drawn_one": SMALL,
            "pairs_that_could_be_drawn": parts.n_small,
        },
    }


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_EXAMPLE else text[: LONGEST_EXAMPLE - 1] + "…"


def _card(job: Preparation, pairs: Sequence[CleanPair], report: Mapping[str, object]) -> dict[str, object]:
    """What is known before training; licence and source are filled in only if every pair names the same."""
    tatoeba = all(word in pair.attribution for pair in pairs for word in _TATOEBA)
    known = {"data": _TATOEBA_DATA, "licence": _TATOEBA_LICENCE} if tatoeba else {}
    return {
        **dict.fromkeys(TEXTS, ""),
        **known,
        **{name: value for name, value in job.card.items() if value},
        "examples": [],
        "prepared": {name: report[name] for name in ("files", "settings", "splits")},
    }


def _json(record: Mapping[str, object]) -> str:
    return json.dumps(record, indent=2, ensure_ascii=False) + "\n"


def _write(folder: Path, contents: Mapping[str, str]) -> None:
    """Write the files one by one, each whole; what an earlier call wrote and this one does not is removed."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in WRITTEN:
            if name not in contents:
                (folder / name).unlink(missing_ok=True)
        for name, content in contents.items():
            partial = folder / f".{name}.partial"
            partial.write_bytes(content.encode())
            os.replace(partial, folder / name)
    except OSError as error:
        raise DataError(
            "{folder}: cannot be written ({reason}).", folder=str(folder), reason=error.strerror
        ) from None
