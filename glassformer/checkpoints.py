"""The parts of the Checkpoints page: model card, its scores as tables, features from config.json, list of folders."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from glassformer.charts.theme import shortened
from glassformer.frame.source_box import EXAMPLE_CHARACTERS
from glassformer.runs import loading, sources
from glassformer.runs.error_boundary import to_the_doctor
from glassformer.runs.map_axes import has_one_stack
from glassformer.runs.run_address import address
from glassformer.shared import cover_box, drawing, menu, page_style
from glassformer.shared.i18n import frame, st
from glassformer.shared.model_notes import effort
from glassformer.state import session
from transformer.analysis.costs import holdings
from transformer.i18n import Sentence, joined, say
from transformer.model.anatomy import anatomy
from transformer.model.config import ModelConfig

if TYPE_CHECKING:
    import pandas as pd

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
        st.warning(drawing.with_code(warning), icon=":material/warning:")
    link, is_saved = address(checkpoint, session.asked()), checkpoint.only_query is not None
    if is_saved:
        menu.link("attention", say("Look at this run"), link, icon=":material/visibility:")
    else:
        to_the_doctor(link)
    rows = {
        say("Languages"): joined(" → ", filter(None, (about.source_language, about.target_language))),
        say("Model"): in_short(checkpoint.config),
        say("Parameters"): "" if is_saved else _parameters(checkpoint),
        say("Trained for"): "" if cover_box.covered(TRAINED_FOR) else effort(about.training),
        say("Data and attribution"): about.data,
        say("Attribution"): about.attribution(),
        say("Licence"): about.licence,
        say("Examples"): _examples(checkpoint),
        say("Content hash"): checkpoint.content_hash[:12],
    }
    with st.container(key=page_style.CARD):
        st.table(table(rows), hide_header=True)


def _parameters(checkpoint: Checkpoint) -> str:
    return say("{n:,}", n=sum(one.parameters for one in holdings(checkpoint.model).values()))


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
        return say("one vocabulary of {n:,} tokens", n=c.src_vocab_size)
    if c.shared_vocab:
        return say("one vocabulary of {n:,} tokens for both sides", n=c.src_vocab_size)
    return say(
        "a source vocabulary of {source:,} tokens and a target vocabulary of {target:,}",
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
    """Draw the ways to its training and to its tensors; a saved run has neither."""
    if checkpoint.only_query is not None:
        return
    asked = session.asked()
    menu.link("training", say("How it was trained"), address(checkpoint, asked), icon=":material/show_chart:")
    leads_to = address(checkpoint, asked, doctor_panel="parameters")
    menu.link("doctor", say("The model's tensors and their numbers"), leads_to, icon=":material/table_chart:")


def broken() -> None:
    """Draw the errors of folders that cannot be opened."""
    for entry in loading.entries():
        if entry.error is not None:
            said = joined(" ", [drawing.strong(entry.name), drawing.with_code(entry.error)])
            st.error(said, icon=":material/error:")


def folders() -> None:
    """Draw every folder that was found."""
    st.subheader(say("Folders and files"))
    for entry in loading.entries():
        own = (":material/check_circle:", entry.title) if entry.error is None else (":material/error:", BROKEN)
        icon, said = sources.first(one.told(entry) for one in sources.sources()) or own
        st.markdown(joined(" ", [icon, drawing.strong(entry.name), drawing.with_code(said)]))
    st.caption(
        say(
            "To see your own checkpoints here, start the app with `glassformer {option} DIR` or set the "
            "environment variable `{variable}`.",
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


Record = Mapping[str, Any]

NONE: Final = "–"
HOW_TO_READ = say(
    "BLEU and chrF (0 to 100, higher is better) compare each output with one reference translation. Scores on "
    "different files cannot be compared. The epoch to keep was chosen by its score on a dev file, so its score on "
    "that file is slightly too high."
)
TOO_SHORT = say(
    "“{mark}” in the BLEU column means that the outputs have fewer than four words, so BLEU cannot be computed.",
    mark=NONE,
)
HOW_TO_READ_ALIGNMENTS = say(
    "The alignment error rate (AER) measures how much the word links derived from cross-attention differ from "
    "links drawn by people; 0 % is perfect. “AER without a model” is the rate when each target word is linked to "
    "the source word that is equally far through its sentence. “Row” is the decoder row that represents a word: "
    "the row that predicts the word or the row that reads it."
)
HOW_TO_READ_GAPS = say(
    "Each token of each text was hidden alone. “Guessed right” is the share of tokens for which the model's most "
    "probable token was the hidden one."
)
_COLUMNS = {
    "file": say("File"),
    "decoding": say("Decoding"),
    "pairs": say("Pairs"),
    "bleu": "BLEU",
    "chrf": "chrF",
    "exact": say("Exact"),
}
_FIRST = ("file", "exact", "loss", "aer", "layer", "head", "row", "aer_of_mean", "diagonal", "sentences")
_RATES = {
    "exact": say("Guessed right"),
    "aer": say("AER of the best head"),
    "aer_of_mean": say("AER of the mean map"),
    "diagonal": say("AER without a model"),
}
_TITLES = _RATES | {
    "file": say("File"),
    "layer": say("Layer"),
    "head": say("Head"),
    "row": say("Row"),
    "sentences": say("Sentences"),
    "loss": say("Loss (nats per token)"),
    "texts": say("Texts"),
    "pieces": say("Tokens"),
}
_MOST_COLUMNS = 8
_MOST_CHARACTERS = 1_000


def scores(checkpoint: Checkpoint) -> None:
    """Draw every scoring that the card records, and under it how each was counted."""
    records = checkpoint.card.scores
    if not records:
        return
    st.subheader(say("Scores"))
    translations = [record for record in records if is_translation(record)]
    if translations:
        st.table(_frame(score_rows(translations)), hide_index=True)
        too_short = any(_is_too_short(record) for record in translations)
        st.caption(joined(" ", [HOW_TO_READ, TOO_SHORT]) if too_short else HOW_TO_READ)
    others: dict[str, list[Record]] = {}
    for record in records:
        if not is_translation(record):
            others.setdefault(_value(record.get("measure")), []).append(record)
    for measure, group in others.items():
        if measure != NONE:
            st.markdown(drawing.strong(_title(measure)))
        st.table(_frame(other_rows(group)), hide_index=True)
        if any("aer" in record for record in group):
            st.caption(HOW_TO_READ_ALIGNMENTS)
        if any("exact" in record for record in group):
            st.caption(HOW_TO_READ_GAPS)
    with st.expander(say("How each score was computed")), st.container(key=page_style.COUNTED):
        for record in records:
            st.markdown(drawing.strong(_name(record)))
            st.table(_frame(details(record)), hide_index=True, hide_header=True)


def score_rows(records: Sequence[Record]) -> list[dict[str, str]]:
    """Scorings of translations of a card, one row each; a column that no record fills is left out."""
    filled = [name for name in _COLUMNS if any(_value(record.get(name)) != NONE for record in records)]
    return [{_COLUMNS[name]: _cell(record, name) for name in filled} for record in records]


def other_rows(records: Sequence[Record]) -> list[dict[str, str]]:
    """Measurements of another kind, such as alignment error rates; what has no room is in the details."""
    there = {name for record in records for name, value in record.items() if _is_short(value)} - {"sha256", "measure"}
    first = [name for name in _FIRST if name in there]
    names = [*first, *sorted(there.difference(first))][:_MOST_COLUMNS]
    return [{_TITLES.get(name, _title(name)): _other_cell(record, name) for name in names} for record in records]


def details(record: Record) -> list[dict[str, str]]:
    """All that a record says, one row a field."""
    return [{say("Field"): str(name), say("Value"): _value(value)} for name, value in record.items()]


def _frame(rows: Sequence[Mapping[str, str]]) -> pd.DataFrame:
    return frame([{drawing.plain(name): drawing.plain(value) for name, value in row.items()} for row in rows])


def is_translation(record: Record) -> bool:
    """Whether a record is of outputs that were compared with references."""
    return "measure" not in record and any(_is_number(record.get(name)) for name in ("bleu", "chrf", "exact"))


def _is_too_short(record: Record) -> bool:
    """BLEU is 0 although outputs equal their references: those have no run of four words."""
    return record.get("bleu") == 0 and _is_number(record.get("exact")) and record["exact"] > 0


def _is_number(value: object) -> bool:
    """Whether it is a number of a size that a score may have."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e18


def _is_short(value: object) -> bool:
    return _is_number(value) or (isinstance(value, str) and len(value) <= 40)


def _cell(record: Record, name: str) -> str:
    value = record.get(name)
    if name == "bleu" and _is_too_short(record):
        return NONE
    if name == "decoding":
        return _decoding(record)
    if name == "exact" and _is_number(value):
        return f"{value:.1%}"
    if name in ("bleu", "chrf") and _is_number(value):
        return f"{value:.2f}"
    return _value(value)


def _other_cell(record: Record, name: str) -> str:
    value = record.get(name)
    if name in _RATES and _is_number(value):
        return f"{value:.1%}"
    return _value(value)


def _decoding(record: Record) -> str:
    """Such as "greedy" or "beam 5"; a card may name another way."""
    how, size = record.get("decoding"), record.get("beam_size")
    if how == "beam" and _is_number(size):
        return say("beam {size}", size=size)
    return {"beam": say("beam"), "greedy": say("greedy")}.get(str(how)) or _value(how)


def _name(record: Record) -> str:
    named = [value for value in (_value(record.get("file")), _decoding(record)) if value != NONE]
    return joined(", ", named) if named else say("Without a file name")


def _title(name: str) -> str:
    """A card's own name for something, which is data, as a heading."""
    text = name.replace("_", " ")
    return text[:1].upper() + text[1:]


def _value(value: object) -> str:
    if value is None or value == "":
        return NONE
    if isinstance(value, bool):
        return say("yes") if value else say("no")
    if isinstance(value, int):
        return say("{n:,}", n=value) if abs(value) < 10**18 else say("a number with more than 18 digits")
    if isinstance(value, float):
        return f"{value:.6g}"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if len(text) <= _MOST_CHARACTERS:
        return text
    return say("{beginning}… ({n:,} characters)", beginning=text[:_MOST_CHARACTERS], n=len(text))
