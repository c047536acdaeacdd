"""Every page in the pseudo-language: each text that it shows is whole sentences in ⟦…⟧, or data."""

from dataclasses import asdict

import pytest
from streamlit.testing.v1 import AppTest

from glassformer.runs import loading, sources
from glassformer.search import SearchLook
from tests.pages.conftest import ATTENTION, CHECKPOINTS, PAGES, SEARCH, STEP, check
from tests.pages.speaking import texts_of_page
from tests.pseudo_language import words_of, wrong
from transformer.analysis.sampled_outputs import draws
from transformer.i18n import languages, name_of
from transformer.runs.query import Beam, Sampling
from transformer.runs.running import run

MODEL, SOURCE = "reverse", "abcdef"
PARTS_OF_PAGES = {
    "attention": ("panel", ["overview", "head", "flow", "walk", "table"]),
    "positions": ("positions", ["table", "similarity", "shift", "sentence"]),
    "masks": ("masks", ["masks", "one_row", "checks"]),
    "inside": ("inside", ["model", "stream", "lens", "ffn", "pieces"]),
}
PARTS = {
    "step": (STEP, {}),
    "checkpoints": (CHECKPOINTS, {}),
    "forcing": (PAGES["forcing"], {"ref": SOURCE}),
    "glossary": (PAGES["glossary"], {}),
    "search tree": (SEARCH, {"how": "beam"}),
    "search sampling": (SEARCH, {"search": "sampling", "try_k": 5, "try_temp": 2}),
    "search draws": (SEARCH, {"search": "draws"}),
} | {
    f"{page} {part}": (PAGES[page], {parameter: part})
    for page, (parameter, parts) in PARTS_OF_PAGES.items()
    for part in parts
}
CHOSEN = {
    "map of a rollout": {"panel": "head", "query": 1, "key": 3, "kind": "decoder", "layer": 1, "together": "rollout"},
    "flow of words": {"panel": "flow", "words": 1, "hide": 1},
    "chosen weight": {"panel": "walk", "layer": 2, "head": 1, "kind": "decoder", "query": 2, "key": 4},
    "hidden rows of heads": {"panel": "table", "layer": 1, "head": 2, "kind": "decoder", "guess": 1, "step": 3},
}
EACH = PARTS | {name: (ATTENTION, view | {"words": 1, "hide": 1}) for name, view in CHOSEN.items()}


def complaints(test, data, told=()):
    """What is wrong with the texts of a page, but for those that somebody else wrote."""
    texts = [text for text in texts_of_page(test) if text.replace("\\", "").replace("\u2060", "") not in told]
    return [line for text in texts for line in wrong(text, data)]


def models():
    return [loading.open_checkpoint(entry) for entry in loading.usable().values()]


def told_by_models():
    """Whole texts of checkpoints that a page repeats: of cards, configs and tensors."""
    for checkpoint in models():
        card, config = checkpoint.card, asdict(checkpoint.config)
        yield from (card.description, card.data, card.licence, checkpoint.content_hash[:12], "float32")
        yield from (f"{card.source_language} → {card.target_language}", " · ".join(card.examples), *card.examples)
        yield from (text for score in card.scores for part in score.items() for text in map(str, part))
        yield from (*checkpoint.config.normalisation, *config, *map(str, config.values()))
        yield from (name for name, _ in checkpoint.model.named_parameters())


def data_of_models():
    """Names of models, of languages, pieces of each vocabulary, and examples that run as one batch."""
    named = [text for entry in loading.usable().values() for text in (entry.name, entry.title, str(entry.folder))]
    return {"pad", "unk", "noon", "transformer"} | words_of(*named, *map(name_of, languages()))


def written(name):
    """What the runs of a page write, whatever has been drawn already, and what a card was scored on."""
    checkpoint = loading.open_checkpoint(loading.usable()[MODEL])
    if name == "search tree":
        found = run(checkpoint, checkpoint.query(SOURCE, decoding=Beam())).hypotheses
        return words_of("beam size length_penalty", *(one.text for one in found))
    if name == "search draws":
        seeds = range(SearchLook.first_seed, SearchLook.first_seed + SearchLook.draws)
        return words_of(*(one.text for one in draws(checkpoint, checkpoint.query(SOURCE, decoding=Sampling()), seeds)))
    return {"dev", "tsv"} if name == "checkpoints" else set()


def spoken_whole(open_page, part, data=(), told=()):
    """Check that all texts of a part are sentences, but for those of the model and these words."""
    page, parameters = part
    test = open_page(page, model=MODEL, src=SOURCE, lang="qps", **parameters)
    examples = loading.open_checkpoint(loading.usable()[MODEL]).card.examples  # the Masks page runs them, too
    known = words_of(MODEL, SOURCE, SOURCE[::-1], examples) | data_of_models() | {*data}
    found = complaints(test, known, {*told_by_models(), *told})
    assert not found, "\n".join(found)


def explained_by(monkeypatch, name=""):
    """Let only this extension explain what else may lie beside checkpoints; "" for none."""
    for one in sources.sources():
        if type(one).__module__.split(".")[2:3] != [name]:
            monkeypatch.setattr(type(one), "explain", lambda self: None)


@pytest.mark.parametrize("name", sorted(EACH))
def test_what_is_spoken_is_spoken_whole(open_page, monkeypatch, name):
    explained_by(monkeypatch)
    spoken_whole(open_page, EACH[name], written(name))


def page():
    import pandas as pd
    import streamlit

    from glassformer.shared import drawing
    from glassformer.shared.i18n import frame, st
    from transformer.i18n import joined, say, say_n

    out = streamlit if st.session_state.get("bare") else st
    out.title(say("The page"))
    out.markdown(body=joined("\n\n", [say("One sentence."), say("**Another** one with `code` and $x^2$."), "123"]))
    left, right = out.columns(2)
    left.caption(say("Beside"))
    with right, out.container().expander(say("Folded")):
        out.sidebar.metric(say("Far"), 1.5)
    with out.sidebar:
        out.text(say("Apart"))
    out.caption(say_n("{n} token", "{n} tokens", 2))
    out.selectbox(say("Take"), ["a", "b"], format_func=lambda name: say("Choice {name}", name=name), help=say("Help"))
    out.radio(say("One of"), [say("First"), say("Second")], captions=[say("Caption"), say("Other")])
    out.text_input(say("Type"), placeholder=say("Here"), value="abc")
    out.button(say("Go"), icon=":material/add:", help=say("Go there"))
    out.toggle(say("Words"))
    out.slider(say("How many"), 0, 3)
    out.metric(say("Loss"), 1.5)
    out.download_button(say("Save"), "data", help=say("Save it"))
    with out.expander(say("More")):
        out.error(say("Not found."))
    for tab in out.tabs([say("Left"), say("Right")]):
        tab.text("12")
    with out.popover(say("Open")), out.form("form"):
        out.form_submit_button(say("Send"))
    out.table(frame({say("Name"): [say("Cell")]}, index=[say("Row")]) if out is st else pd.DataFrame({"Bare": [1]}))
    out.dataframe(
        frame([[2]], columns=[say("Name")]), column_config={say("Name"): st.column_config.Column(help=say("Many"))}
    )
    out.multiselect(say("Some"), ["x"], format_func=lambda name: say("Option {name}", name=name))
    out.segmented_control(say("Segments"), ["x"], format_func=lambda name: say("Segment {name}", name=name))
    layout = {"title": {"text": say("Chart")}, "height": 300}
    figure = {"data": [{"type": "bar", "hovertext": [say("Hover")], "name": say("Bars")}], "layout": layout}
    if out is st:
        drawing.chart(figure, key="chart", alt=say("Picture"), how_to_read=say("Read it."))


def complained(*, bare):
    """The page, and what is wrong with it."""
    test = AppTest.from_function(page)
    test.query_params["lang"] = "qps"
    test.session_state["bare"] = bare
    return check(test.run()), complaints(test, ())


def test_a_page_behind_the_door_is_spoken_whole():
    test, found = complained(bare=False)
    assert found == []
    said = "Hooveer|Piictuuree|Naamee|Ceell|Maany|Chooiicee a|Roow|Faar|Beesiidee"
    assert {f"⟦{text}⟧" for text in said.split("|")} <= set(texts_of_page(test))


def test_every_text_that_goes_round_the_door_is_found():
    found = "\n".join(complained(bare=True)[1])
    said = (
        "The page|One sentence|tokens|Take|Choice|Help|One of|First|Caption|Type|Here|Go|Go there|Words|How many|Loss"
        "|Beside|Folded|Far|Apart|Save|More|Not found|Left|Right|Open|Send|Bare|Many|Some|Option|Segments|Segment"
    )
    assert [text for text in said.split("|") if text not in found] == []
