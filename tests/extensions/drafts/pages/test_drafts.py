"""Draft and check on the page How pieces are chosen ends in the output, and its address keeps the draft."""

from glassformer.extensions.drafts.page import draft_panels, draft_pictures
from tests.pages.conftest import SEARCH, check
from tests.pages.reading import address, charts_of, figure, go_to, output, payload  # fmt: skip


def verdicts(test):
    """Round, place and verdict of each cell."""
    rows = figure(test, draft_pictures.rounds.key)["layout"]["meta"]["table"]["rows"]
    return [(row[0], row[1], row[6]) for row in rows]


def test_of_a_large_model_drafts_are_offered_rounds_end_in_the_output_and_a_time_is_measured_if_asked(
    open_page, monkeypatch
):
    monkeypatch.setattr(draft_pictures, "SMALL", 0)
    look = {"model": "reverse", "src": "glasses", "search": "drafts", "draft": "bits", "draft_bits": 2, "ahead": 2}
    test = open_page(SEARCH, **look)
    assert not charts_of(test)
    check(test.button(key=draft_panels.ASK).click().run())
    assert address(test)["with_drafts"] == "1"
    found = verdicts(test)
    assert {verdict for *_, verdict in found} >= {"accepted", "replaced"}
    written = [place for _, place, verdict in found if verdict != "not reached"]
    assert written == list(range(1, len(output(test)) + 2))
    check(test.selectbox(key="draft").set_value("jacobi").run())
    assert address(test)["draft"] == "jacobi"
    assert "not reached" in {verdict for *_, verdict in verdicts(test)}
    check(go_to(test, 4))
    assert payload(test, draft_pictures.rounds.key)["said"]["above"].startswith("Step 4: ")
    assert figure(test, draft_pictures.rounds.key)["layout"]["shapes"][0]["x0"] == 2.5
    check(test.button(key=f"{draft_panels.MEASURE}_begin").click().run())
    while [button for button in test.button if button.key == f"{draft_panels.MEASURE}_stop"]:
        check(test.run())
    assert "One token at a time:" in " ".join(one.value for one in test.markdown)


def test_a_decoder_alone_copies_its_own_text(open_one_stack):
    test = open_one_stack("decoder", SEARCH, search="drafts", draft="source")
    assert "The text so far" in [option for box in test.selectbox if box.key == "draft" for option in box.options]
    assert verdicts(test)
