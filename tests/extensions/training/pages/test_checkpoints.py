"""The Checkpoints page leads to the training of the model that is looked at."""

from tests.pages.conftest import CHECKPOINTS, MAIN


def test_the_way_to_the_training(open_page):
    test = open_page(MAIN, model="reverse")
    test.switch_page(str(CHECKPOINTS.relative_to(MAIN.parent))).run()
    (training,) = [one.proto for one in test.get("page_link") if one.proto.page == "training"]
    assert training.label == "How it was trained"
    assert "model=reverse" in training.query_string
