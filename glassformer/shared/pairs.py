"""Text box for sample pairs: source and target per line."""

from typing import Final, Literal

from glassformer.shared.i18n import st
from transformer.analysis.losses import MOST_SAMPLES
from transformer.i18n import say

ARROW: Final = "=>"  # nobody can type a tab into a box
MOST_CHARACTERS: Final = 20_000  # of a box
CARRIED: Final = "carried_pairs"  # the name of a model, and what its answers were ranked with


def box(*, key: str, persist: Literal["session"] | None = None) -> str:
    """Draw the box; returns what was typed."""
    typed = st.text_area(
        say("Sentences"),
        key=key,
        height=120,
        max_chars=MOST_CHARACTERS,
        placeholder=say("source {arrow} target", arrow=ARROW),
        help=say(
            "One pair per line, separated by “{arrow}” or a tab. A line may also contain only a source. Only the "
            "first {most} lines are read.",
            arrow=ARROW,
            most=MOST_SAMPLES,
        ),
        persist_state=persist,
    )
    return typed or ""


def with_tabs(typed: str) -> str:
    """What was typed as a file has it: a tab between the halves of a pair."""
    lines = [line if "\t" in line else "\t".join(line.split(ARROW, 1)) for line in typed.splitlines()]
    return "\n".join(lines)
