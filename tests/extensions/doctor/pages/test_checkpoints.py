"""The ways from the Checkpoints page to the doctor."""

from tests.pages.conftest import CHECKPOINTS, MAIN


def test_the_ways_to_the_doctor_and_to_the_tensors(open_page):
    test = open_page(MAIN, model="zh-en")
    test.switch_page(str(CHECKPOINTS.relative_to(MAIN.parent))).run()
    doctor, tensors = [one.proto for one in test.get("page_link") if one.proto.page == "doctor"]
    assert doctor.label == "Is this model healthy? Ask the doctor"
    assert "doctor=" not in doctor.query_string
    assert "doctor=parameters" in tensors.query_string
