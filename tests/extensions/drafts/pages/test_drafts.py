"""Draft and check on the page How pieces are chosen ends in the output, and its address keeps the draft."""

from glassformer.extensions.drafts.page import draft_panels, draft_pictures
from tests.pages.conftest import SEARCH, check
from tests.pages.reading import address, charts_of, figure, go_to, output, payload  # fmt: skip


def drafts_page(open_page, **more):
    return open_page(SEARCH, **({"model": "reverse", "src": "glasses", "search": "drafts"} | more))


def verdicts(test):
    """Round, place and verdict of each cell."""
    return [(row[0], row[1], row[6]) for row in rows_of(test, draft_pictures.rounds.key)]


def rows_of(test, key):
    return figure(test, key)["layout"]["meta"]["table"]["rows"]


def test_rounds_end_in_the_output_and_the_address_keeps_the_draft(open_page):
    test = drafts_page(open_page, draft="bits", draft_bits=2, ahead=2)
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


def test_the_time_is_measured_once_somebody_asks(open_page):
    test = drafts_page(open_page)
    check(test.button(key=f"{draft_panels.MEASURE}_begin").click().run())
    while [button for button in test.button if button.key == f"{draft_panels.MEASURE}_stop"]:
        check(test.run())
    said = " ".join(one.value for one in test.markdown)
    assert "One token at a time:" in said
    assert "torch's own 8-bit products" in said


def test_of_a_large_model_drafts_are_offered(open_page, monkeypatch):
    monkeypatch.setattr(draft_pictures, "SMALL", 0)
    test = drafts_page(open_page)
    assert not charts_of(test)
    check(test.button(key=draft_panels.ASK).click().run())
    assert address(test)["with_drafts"] == "1"
    assert verdicts(test)


def test_a_decoder_alone_copies_its_own_text(open_one_stack):
    test = open_one_stack("decoder", SEARCH, search="drafts", draft="source")
    assert "The text so far" in [option for box in test.selectbox if box.key == "draft" for option in box.options]
    assert verdicts(test)
