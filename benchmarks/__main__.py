"""The benchmark suite's command: `python -m benchmarks` measures the claims of the README, in about ten minutes.

    python -m benchmarks                       # the claims of the README
    python -m benchmarks decoding training     # some claims
    python -m benchmarks --list                # all that there are
    python -m benchmarks decoding --only zh-en gpt2 --turns 3

It prints a Markdown table: medians of turns, ratios of the sides in the same turn with their range, and the number of
turns. `--markdown FILE` writes the rows that the README has, one for each of its claims.
"""

import argparse
import shlex
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from benchmarks.harness import Comparison, Settings, machine, table

README = ("app_start", "first_picture", "class_at_once", "decoding", "training")
CLAIMS = (*README, "step", "large_files", "corpus", "attention_maps", "recovery", "wirings")


def about(claim: str) -> str:
    """The first line of what a claim's module says of itself."""
    return (import_module(f"benchmarks.{claim}").__doc__ or "").partition("\n")[0]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure claims and print their table."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("claims", nargs="*", metavar="claim", help="its name (default: those of the README)")
    parser.add_argument("--list", action="store_true", help="print the names of all claims")
    parser.add_argument("--quick", action="store_true", help="small counts: that all runs, not how fast")
    parser.add_argument("--turns", type=int, help="turns of each side")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="checkpoints, models or mistakes")
    parser.add_argument("--folder", type=Path, help="where a claim keeps or finds files")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="where training learns")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table of the README there")
    options = parser.parse_args(given)
    if unknown := [name for name in options.claims if name not in CLAIMS]:
        parser.error(f"there is no claim {', '.join(unknown)}; there are {', '.join(CLAIMS)}")
    if options.list:
        print(*(f"{name:16}{about(name)}" for name in CLAIMS), sep="\n")
        return
    settings = Settings(
        quick=options.quick, turns=options.turns, only=tuple(options.only), folder=options.folder, device=options.device
    )
    shown = [word for word in given if word not in ("--markdown", str(options.markdown))]
    said, began = machine(shlex.join(["python", "-m", "benchmarks", *shown])), time.monotonic()
    rows: list[Comparison] = []
    for name in options.claims or README:
        print(f"{name} ({time.monotonic() - began:.0f} s)", file=sys.stderr, flush=True)
        rows += import_module(f"benchmarks.{name}").measure(settings)
    print(f"{said}\n\n{table(rows)}")
    print(f"{time.monotonic() - began:.0f} s", file=sys.stderr)
    if options.markdown is not None:
        text = f"{said}\n\n{table([row for row in rows if row.headline])}\n"
        options.markdown.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
