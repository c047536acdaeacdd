"""The flow view without a browser: what it is sent, compared with numpy on the run's own maps."""

import base64

import numpy as np
import pytest

from glassformer.attention import maps_panel as flow_panels
from glassformer.attention.map_pictures import FLOW
from glassformer.components.flow_data import Choice
from tests.glassformer.unpacking import numbers_of
from tests.pages.conftest import ATTENTION, ROOT, check
from tests.pages.reading import address, go_to, payload, view
from transformer.checkpoint.load import load
from transformer.runs.query import Query
from transformer.runs.running import run
from transformer.runs.trace import Trace

CHINESE = "我喜欢喝咖啡。"
FRENCH = "The extraordinary woman is reading."


@pytest.fixture
def flow(open_page):
    """A function that opens the flow view: `flow(model="reverse", src="abc", layer=2)`."""
    return lambda **parameters: open_page(ATTENTION, panel="flow", **parameters)


def traced(model, source):
    checkpoint = load(ROOT / "checkpoints" / model)
    return run(checkpoint, Query(checkpoint=checkpoint.content_hash, source=source))


def sent(test):
    """The data of the view, and its weights [head, query, key] with NaN where nothing was sent."""
    data = payload(test, FLOW)
    shape = (len(data["queries"]), len(data["keys"]))
    allowed = np.ones(shape, dtype=bool)
    if data["open"] is not None:
        bits = np.frombuffer(base64.b64decode(data["open"]), dtype=np.uint8)
        allowed = np.unpackbits(bits)[: allowed.size].astype(bool).reshape(shape)
    weights = np.full((data["heads"], *shape), np.nan)
    weights[:, allowed] = numbers_of(data["weights"]).reshape(data["heads"], -1)
    return data, weights


def same(received, weights, allowed):
    assert np.isnan(received[:, ~allowed]).all()
    np.testing.assert_allclose(received[:, allowed], weights[:, allowed], atol=1e-5)


@pytest.mark.parametrize("model", ["zh-en", "en-fr", "reverse"])
@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_all_heads_of_a_layer_are_sent(flow, model, kind):
    source = {"zh-en": CHINESE, "en-fr": FRENCH, "reverse": "abcd"}[model]
    trace = traced(model, source)
    data, received = sent(flow(model=model, src=source, kind=kind, layer=2))
    same(received, trace.maps(kind)[1], trace.mask(kind))
    rows = list(trace.src_pieces) if kind == "encoder" else [str(label) for label in trace.row_labels()]
    columns = trace.read_pieces if kind == "decoder" else trace.src_pieces
    assert (data["queries"], data["keys"]) == (rows, list(columns))
    assert data["layer"] == "layer 2"
    assert list(data["row_of_step"]) == ([] if kind == "encoder" else list(range(len(rows))))


def test_rows_and_columns_are_named_and_coloured(flow):
    seen = {}
    for kind in ("encoder", "decoder", "cross"):
        data = payload(flow(model="reverse", src="abc", kind=kind, layer=1), FLOW)
        seen[kind] = (data["query_axis"], data["query_side"], data["key_axis"], data["key_side"])
    assert seen == {
        "encoder": ("Source piece (query)", "source", "Source piece (key)", "source"),
        "decoder": ("Reads → predicts (query)", "target", "Output piece read (key)", "target"),
        "cross": ("Reads → predicts (query)", "target", "Source piece (key)", "source"),
    }
    data = payload(flow(model="reverse", src="abc", kind="cross", layer=1), FLOW)
    assert data["queries"][:2] == ["<s> → c", "c → b"]


def test_without_a_layer_the_mean_of_all_heads_is_one_map_and_named_so(flow):
    trace = traced("zh-en", CHINESE)
    data, received = sent(flow(model="zh-en", src=CHINESE, heads="2"))
    assert (data["heads"], data["together"], data["shown"]) == (1, True, [])
    same(received, trace.cross.mean(axis=(0, 1))[None], trace.cross_mask)
    assert data["layer"] == "mean of all 3 layers × 4 heads"
    assert "the mean over all heads of all layers" in data["caption"]


def test_heads_and_following_are_in_the_address_and_come_back(flow):
    test = flow(model="reverse", src="abcd", layer=1, heads="1.3", follow=1)
    data = payload(test, FLOW)
    assert (data["shown"], data["following"], data["pin"]) == ([0, 2], True, None)
    assert (address(test)["heads"], address(test)["follow"]) == ("1.3", "1")
    assert payload(flow(model="reverse", src="abcd", layer=1), FLOW)["following"] is False
    assert payload(flow(model="reverse", src="abcd", layer=1, heads="1.3", head=2), FLOW)["shown"] == [1]
    assert payload(flow(model="reverse", src="abcd", layer=1, heads="1.90"), FLOW)["shown"] == [0]


@pytest.mark.parametrize(
    ("told", "head", "heads"), [((), None, ()), ((2,), 2, ()), ((0, 3), None, (0, 3))], ids=["all", "one", "some"]
)
def test_what_the_reader_shows_is_kept(flow, monkeypatch, told, head, heads):
    given = {}
    monkeypatch.setattr(flow_panels, "flow_view", lambda _, **options: given.update(options))
    monkeypatch.setattr(flow_panels, "last_choice", lambda *_, **__: Choice(told, None, following=True))
    seen = []
    monkeypatch.setattr(flow_panels.session, "replace", lambda _, **fields: seen.append(fields))
    flow(model="reverse", src="abcd", layer=1)
    seen.clear()
    given["on_choice"]()
    assert seen == [{"query": None, "key": None, "follow": True, "head": head, "heads": heads}]


def test_a_step_changes_nothing_so_that_nothing_is_sent(flow):
    first = flow(model="reverse", src="abcd", layer=1)
    before = dict(payload(first, FLOW))
    assert before == payload(check(go_to(first, 3)), FLOW)


def test_guess_mode_sends_nothing_of_what_comes_next(flow):
    trace = traced("zh-en", CHINESE)
    for kind in ("decoder", "cross"):
        data, received = sent(flow(model="zh-en", src=CHINESE, kind=kind, layer=1, step=3, guess=1))
        n_keys = 3 if kind == "decoder" else len(trace.src_pieces)
        same(received, trace.maps(kind)[0, :, :3, :n_keys], trace.mask(kind)[:3, :n_keys])
        assert data["queries"][-1] == f"{trace.read_pieces[2]} → ?"
        seen = " ".join(data["queries"] + (data["keys"] if kind == "decoder" else []))
        assert not [piece for piece in trace.tgt_pieces[2:] if piece in seen]


def test_words_are_summed_over_keys_and_averaged_over_queries(flow):
    trace: Trace = traced("en-fr", FRENCH)
    pieces = trace.src_pieces
    starts = [i for i, piece in enumerate(pieces) if i == 0 or piece.startswith("▁") or piece == "</s>"]
    spans = list(zip(starts, [*starts[1:], len(pieces)], strict=True))
    assert len(spans) < len(pieces)  # some word has several pieces
    data, received = sent(flow(model="en-fr", src=FRENCH, kind="encoder", layer=1, words=1))
    maps = trace.encoder_self[0]
    expected = np.array([[[m[a:b, c:d].sum() / (b - a) for c, d in spans] for a, b in spans] for m in maps])
    np.testing.assert_allclose(received, expected, atol=1e-5)
    assert "for a word among the keys, the weights of its pieces are added up" in data["caption"]


def test_hidden_special_pieces_are_missing_and_their_share_is_said(flow):
    trace = traced("zh-en", CHINESE)
    data, received = sent(flow(model="zh-en", src=CHINESE, kind="encoder", layer=1, hide=1))
    kept = [i for i, piece in enumerate(trace.src_pieces) if piece != "</s>"]
    maps = trace.encoder_self[0]
    np.testing.assert_allclose(received, maps[np.ix_(range(len(maps)), kept, kept)], atol=1e-5)
    hidden = maps[:, kept][:, :, -1].mean()
    assert f"on average, they get {hidden:.2f} of a query's weight" in data["caption"]


def test_the_address_chooses_the_head_and_the_pinned_piece(flow):
    data = payload(flow(model="reverse", src="abcd", layer=1, head=3, query=2, key=1), FLOW)
    assert data["shown"] == [2]
    assert data["pin"] == {"side": "query", "index": 1}
    data = payload(flow(model="reverse", src="abcd", layer=1, key=4), FLOW)
    assert data["pin"] == {"side": "key", "index": 3}
    assert payload(flow(model="reverse", src="abcd", layer=1, key=400), FLOW)["pin"] is None


def test_the_browser_hears_which_of_its_reports_has_arrived(flow):
    test = flow(model="reverse", src="abcd", layer=1)
    assert payload(test, FLOW)["heard"] is None
    test.session_state[FLOW] = {"pin": {"side": "query", "index": 1, "stamp": "x 1"}}
    assert payload(check(test.run()), FLOW)["heard"] == "x 1"
    assert view(test).query is None  # only a report that has just come is taken


def test_the_callback_that_a_session_keeps_holds_no_weights(flow, monkeypatch):
    given = {}
    monkeypatch.setattr(flow_panels, "flow_view", lambda _, **options: given.update(options))
    flow(model="reverse", src="abcd", layer=1)
    held = [cell.cell_contents for cell in given["on_choice"].__closure__]
    assert held
    assert all(isinstance(value, int | str | tuple) for value in held)
