"""The parts of the Checkpoints page: the card, the model's features, the list of folders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

import pandas as pd

from glassformer.charts.theme import shortened
from glassformer.frame.source_box import EXAMPLE_CHARACTERS
from glassformer.runs import loading, sources
from glassformer.runs.attempt import to_the_doctor
from glassformer.runs.open_run import address
from glassformer.runs.sides import has_one_stack
from glassformer.shared import cover, drawing, menu, page_style
from glassformer.shared.door import frame, st
from glassformer.shared.effort import effort
from glassformer.state import session
from transformer.analysis.costs import holdings
from transformer.i18n import Sentence, joined, say
from transformer.model.anatomy import anatomy
from transformer.model.config import ModelConfig

if TYPE_CHECKING:
    from transformer.checkpoint.load import Checkpoint

MOST_EXAMPLES = 8
TRAINED_FOR = "trained_for"  # in `cover` of a lesson that asks for it
BROKEN = say("cannot be opened: see the top of the page.")


def card(checkpoint: Checkpoint) -> None:
    """Draw what the chosen checkpoint is, with its licence and what was odd about its files."""
    about = checkpoint.card
    st.subheader(drawing.plain(about.title or checkpoint.name))
    st.write(drawing.plain(about.description))
    for warning in checkpoint.warnings:
        st.warning(drawing.plain(warning), icon=":material/warning:")
    to_the_doctor(address(checkpoint, session.asked()))
    rows = {
        say("Languages"): joined(" → ", filter(None, (about.source_language, about.target_language))),
        say("Model"): in_short(checkpoint.config),
        say("Parameters"): say("{n:,}", n=sum(one.parameters for one in holdings(checkpoint.model).values())),
        say("Trained for"): "" if cover.covered(TRAINED_FOR) else effort(about.training),
        say("Data and attribution"): about.data,
        say("Attribution"): about.attribution(),
        say("Licence"): about.licence,
        say("Examples"): _examples(checkpoint),
        say("Content hash"): checkpoint.content_hash[:12],
    }
    with st.container(key=page_style.CARD):
        st.table(table(rows), hide_header=True)


def in_short(config: ModelConfig) -> str:
    """A model in one sentence."""
    encoder, decoder = config.of("encoder").n_heads, config.of("decoder").n_heads
    heads = say("{n} heads in each attention sub-layer", n=encoder)
    if encoder != decoder:
        heads = say("{n} heads per attention sub-layer in the encoder and {m} in the decoder", n=encoder, m=decoder)
    most = say("at most {n} tokens per side", n=config.max_len)
    return joined(", ", [_layers(config), heads, _pieces(config), most])


def _layers(c: ModelConfig) -> str:
    counts = {stack.name: stack.n_layers for stack in anatomy(c).stacks}
    match counts:
        case {"encoder": encoder, "decoder": decoder}:
            return say(
                "{encoder} encoder and {decoder} decoder layers of width {width}",
                encoder=encoder,
                decoder=decoder,
                width=c.d_model,
            )
        case {"decoder": n}:
            return say("decoder-only with {n} layers of width {width}", n=n, width=c.d_model)
    return say("encoder-only with {n} layers of width {width}", n=counts["encoder"], width=c.d_model)


def _pieces(c: ModelConfig) -> str:
    if has_one_stack(c):
        return say("one vocabulary of {n:,} pieces", n=c.src_vocab_size)
    if c.shared_vocab:
        return say("one vocabulary of {n:,} pieces for both sides", n=c.src_vocab_size)
    return say(
        "a source vocabulary of {source:,} pieces and a target vocabulary of {target:,}",
        source=c.src_vocab_size,
        target=c.tgt_vocab_size,
    )


def _examples(checkpoint: Checkpoint) -> str:
    found = checkpoint.card.tried()
    some = [shortened(" ".join(example.split()), limit=EXAMPLE_CHARACTERS) for example in found]
    more = len(some) - MOST_EXAMPLES
    return joined(" · ", [*some[:MOST_EXAMPLES], *([say("and {n} more", n=more)] if more > 0 else [])])


def features(checkpoint: Checkpoint) -> None:
    """Draw the features of the chosen checkpoint's model, as config.json has them."""
    with st.expander(say("Features of the model (config.json)")):
        st.table(table({name: _shown(value) for name, value in asdict(checkpoint.config).items()}), hide_header=True)


def further(checkpoint: Checkpoint) -> None:
    """Draw the ways to its training and to its tensors."""
    asked = session.asked()
    menu.link("training", say("How it was trained"), address(checkpoint, asked), icon=":material/show_chart:")
    leads_to = address(checkpoint, asked, doctor_panel="parameters")
    menu.link("doctor", say("The model's tensors and their numbers"), leads_to, icon=":material/table_chart:")


def broken() -> None:
    """Draw why folders cannot be opened; whoever comes for that finds it on top."""
    for entry in loading.entries():
        if entry.error is not None:
            said = joined(" ", [drawing.strong(entry.name), drawing.plain(entry.error)])
            st.error(said, icon=":material/error:")


def folders() -> None:
    """Draw every folder that was found."""
    st.subheader(say("Folders and files"))
    for entry in loading.entries():
        own = (":material/check_circle:", entry.title) if entry.error is None else (":material/error:", BROKEN)
        icon, said = sources.told(entry) or own
        st.markdown(joined(" ", [icon, drawing.strong(entry.name), drawing.plain(said)]))
    st.caption(
        say(
            "To see your own checkpoints here, start the app with `-- {option} DIR` or set the environment "
            "variable `{variable}`.",
            option=loading.OPTION,
            variable=loading.ENVIRONMENT,
        )
    )


def table(rows: Mapping[str, str] | Mapping[Sentence, str]) -> pd.DataFrame:
    """Names and what is said of each, without those of which nothing is."""
    kept = {name: drawing.plain(value) for name, value in rows.items() if value}
    return frame({"": list(kept.values())}, index=list(kept))


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return say("yes") if value else say("no")
    if value is None:
        return ""  # a feature that the model does not have
    if isinstance(value, dict):
        return joined(", ", [joined(": ", [name, _shown(one)]) for name, one in value.items() if one is not None])
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
