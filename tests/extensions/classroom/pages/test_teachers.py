"""A link that the page for teachers builds opens what was chosen, and what it covers is not sent."""

from urllib.parse import parse_qsl, urlsplit

import pytest

from glassformer.extensions.classroom import blocks, lesson, teaching_panels
from glassformer.extensions.classroom import teaching_links as panels
from glassformer.extensions.classroom.teaching_links import PAGE_NAMES
from glassformer.extensions.classroom.teaching_panels import EXAMPLE
from glassformer.shared.cover_box import ALL, PART
from glassformer.state.link import read_link
from tests.extensions.parts_of_pages import PARTS as OF_EXTENSIONS
from tests.pages.conftest import NAMES, check
from tests.pages.conftest import PAGES as SCRIPTS
from tests.pages.reading import keys_of
from tests.pages.test_pseudo_language import MODEL, SOURCE
from tests.pages.test_pseudo_language import PARTS as OF_THE_KERNEL

TEACHERS = SCRIPTS["teachers"]
PARTS = OF_THE_KERNEL | OF_EXTENSIONS


def built(test):
    """The link's path and parameters."""
    address = urlsplit(check(test.run()).code[0].value)
    return address.path.rpartition("/")[2], dict(parse_qsl(address.query))


@pytest.fixture
def pasted(open_page):
    """A function that opens the page, and pastes an address in."""

    def one(address):
        test = check(open_page(TEACHERS).run())
        test.text_input(key=panels.PASTED).set_value(address)
        return check(test.run())

    return one


def test_the_link_says_page_checkpoint_sentence_and_what_is_covered(open_page):
    test = open_page(TEACHERS)
    assert built(test) == ("step", {"model": "zh-en", "src": "我喜欢喝咖啡。"})
    test.selectbox(key=panels.PAGE).set_value("attention")
    test.multiselect(key=panels.COVERED).set_value(["candidates", "head_map"])
    test.toggle(key=panels.GUESS).set_value(True)
    covered = {"guess": "1", "cover": "candidates.head_map"}
    assert built(test) == ("attention", {"model": "zh-en", "src": "我喜欢喝咖啡。"} | covered)


@pytest.mark.parametrize(("page", "words"), [("step", "candidates.cross_map"), ("attention", "head_map")])
def test_what_the_link_covers_is_not_sent_until_its_reader_shows_it(open_page, page, words):
    test = open_page(SCRIPTS[page], panel="head", cover=words)
    assert not {*words.split(".")} & keys_of(test)
    check(test.button(key="show_covered").click().run())
    assert {*words.split(".")} <= keys_of(test)
    assert "cover" not in test.query_params


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("candidates.entropy", ("candidates", "entropy")),
        ("*", ("*",)),
        ("<b>.candidates.candidates..", ("candidates",)),
        ("A" * 1000, ()),
        (".".join(f"w{'x' * i}" for i in range(40)), tuple(f"w{'x' * i}" for i in range(12))),
    ],
)
def test_words_that_are_none_are_left_out(written, words):
    assert blocks.read_cover(written) == words
    assert blocks.read_cover(blocks.write_cover(words)) == words


def test_lessons_of_a_folder_open_and_problems_are_said(open_page, tmp_path, monkeypatch):
    (tmp_path / "good.toml").write_text(EXAMPLE, encoding="utf-8")
    (tmp_path / "bad.toml").write_text(EXAMPLE.replace("read_piece", "read_minds"), encoding="utf-8")
    monkeypatch.setenv(lesson.ENVIRONMENT, str(tmp_path))
    test = check(open_page(TEACHERS).run())
    assert any("What does it read?" in option for option in test.selectbox(key=panels.STEP).options)
    assert ["bad" in one.value for one in test.warning] == [True]
    (tmp_path / "bad.toml").unlink()
    assert not check(test.run()).warning


HEAD = "https://glass.example/app/attention?panel=head&kind=cross&layer=2&head=3&query=2&step=2&model=zh-en&src=我喜欢喝茶。"


@pytest.mark.parametrize(
    "address",
    [
        HEAD,
        "http://localhost:8501/masks?model=zh-en&src=%E4%BD%A0%E5%A5%BD%E3%80%82&kind=decoder&query=2&key=1&cover=part",
        "https://glass.example/step?src=%E4%BD%A0%E5%A5%BD%E3%80%82&step=2&forced=7.9&guess=1&how=beam&beam=4",
    ],
)
def test_an_address_that_is_pasted_in_keeps_all_that_it_says(pasted, address):
    path, said = built(pasted(address))
    there = urlsplit(address)
    assert path == there.path.rpartition("/")[2]
    wanted = read_link({name: (value,) for name, value in parse_qsl(there.query)})[0]
    found = read_link({name: (value,) for name, value in said.items()})[0]
    assert found.view == wanted.view
    assert (found.source, found.forced, found.decoding) == (wanted.source, wanted.forced, wanted.decoding)
    assert said.get("cover", "") == dict(parse_qsl(there.query)).get("cover", "")


def test_what_an_address_says_can_be_chosen_anew(pasted):
    test = pasted("https://glass.example/masks?model=zh-en&cover=part&lesson=masks.2")
    assert test.selectbox(key=panels.STEP).value == "masks.2"
    test.multiselect(key=panels.COVERED).set_value([])
    assert "cover" not in built(test)[1]
    check(test.selectbox(key=panels.STEP).set_value(panels.NONE).run())
    test.selectbox(key=panels.PAGE).set_value("positions")
    path, said = built(test)
    assert (path, said.get("lesson")) == ("positions", None)
    test.selectbox(key=panels.STEP).set_value("heads.0")
    path, said = built(test)
    assert (path, said["lesson"]) == ("attention", "heads.0")  # its opening


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("https://glass.example/nowhere?step=2", "This address leads to “nowhere”"),
        ("https://[", "This is not the address of a page"),
    ],
)
def test_an_address_that_is_none_is_said_to_be_none(pasted, address, why):
    assert [why in warning.value for warning in pasted(address).warning] == [True]


CLOSABLE = [name for name, (path, _) in PARTS.items() if NAMES[path] in PAGE_NAMES]
SOME = {"step", "attention overview", "inside model", "compare"}  # a step, maps, a part, two slots
BOX = "Covered by the link you opened"


def builder(open_page, page, met):
    """The page that builds links, where a page is chosen that had these parts when it was open."""
    test = open_page(TEACHERS)
    test.session_state[blocks.MET] = {page: met}
    check(test.selectbox(key=panels.PAGE).set_value(page).run())
    assert len(test.multiselect(key=panels.COVERED).options) >= len(met)
    return test


def hidden_by(test, page, keys):
    """The words of the address that the page for links makes when these are chosen."""
    path, said = built(test.multiselect(key=panels.COVERED).set_value(keys))
    assert path == page
    return said["cover"]


@pytest.mark.parametrize(
    "name", [name if name in SOME else pytest.param(name, marks=pytest.mark.deep) for name in CLOSABLE]
)
def test_any_part_of_any_page_can_be_covered(open_page, name):
    assert {NAMES[PARTS[name][0]] for name in CLOSABLE} == set(PAGE_NAMES)
    path, view = PARTS[name]
    view = {"model": MODEL, "src": SOURCE} | view
    test = check(open_page(path, **view).run())
    met = dict(test.session_state[blocks.MET][NAMES[path]])
    assert PART in met
    inside = [key for key in met if key not in (ALL, PART)]
    assert all(met[key] for key in keys_of(test) & set(inside)), "each chart is called by its title"
    links = builder(open_page, NAMES[path], met)
    for keys in (
        [PART],
        [ALL],
        *(inside[i : i + blocks.MOST_COVERED] for i in range(0, len(inside), blocks.MOST_COVERED)),
    ):
        words = hidden_by(links, NAMES[path], keys)
        assert blocks.read_cover(words) == tuple(keys)
        covered = check(open_page(path, **view, cover=words).run())
        assert not (set(inside) if keys[0] in (ALL, PART) else set(keys)) & keys_of(covered)
        assert sum(caption.value == BOX for caption in covered.caption) == len(keys)


def test_a_plan_on_a_topic_fills_the_minutes_asked(open_page):
    """Of any topics and minutes in `test_planning`."""
    test = check(open_page(TEACHERS).run())
    test.number_input(key=teaching_panels.LENGTH).set_value(75)
    test.button_group(key=teaching_panels.ABOUT).set_value(["positions"])
    (planned,) = [one.value for one in check(test.run()).table if list(one.value)[-1] == "Votes"]
    assert {"6. Order", "7. Clocks"} <= set(planned["Lesson"])
    assert 73 <= int(planned["Time"].iloc[-1].split()[2]) <= 75
