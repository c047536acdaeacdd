"""Commands `pull` and `models`: fetch a model of the Hugging Face Hub, and list what its cache holds."""

import argparse

from transformer.errors import DataError
from transformer.extensions import shipped


def add_pull(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.set_defaults(run=_pull)
    parser.add_argument("name", help="such as Helsinki-NLP/opus-mt-zh-en")
    parser.add_argument("--revision", default="", help="a branch, a tag or a commit (default: main)")


def _pull(options: argparse.Namespace) -> None:
    from glassformer.extensions.hub.hub_cache import parted, pull

    folder = pull(options.name, revision=options.revision)
    alone, revision = parted(options.name)
    revision = options.revision or revision
    opens = alone if revision == "main" else f"{alone}@{revision}"
    print(f"{alone}, revision {folder.name}\n{folder}\nopen it with: glassformer {opens}")


def add_models(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.set_defaults(run=_models)


def _models(options: argparse.Namespace) -> None:
    from glassformer.extensions.hub.hub_cache import models
    from transformer.checkpoint.listing import listing

    folder = shipped()
    own = (
        [] if folder is None else [(one.name, "glassformer", "", "", one.error or "opens") for one in listing([folder])]
    )
    rows = own + [
        (one.entry.name, one.family, f"{one.n_bytes / 1e6:,.0f} MB", one.revision[:12], one.entry.error or "opens")
        for one in models()
    ]
    if not rows:
        raise DataError("there are no models here; `glassformer pull NAME` fetches one.")
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
