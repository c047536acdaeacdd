"""The part Parameters of the Doctor page lists, draws and compares what numpy finds in the tensors."""

import math
import shutil
from functools import partial

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from glassformer.extensions.parameters import parameter_panels as parameters
from glassformer.extensions.parameters import parameter_pictures, parameter_tables
from glassformer.extensions.parameters.parameters_part import ParametersLook
from glassformer.runs import loading
from glassformer.server.model_runner import ModelRunner
from glassformer.state import session
from tests.extensions.parts_of_pages import PARTS
from tests.extensions.scripts import DOCTOR
from tests.pages.conftest import check
from tests.pages.reading import address, charts_of, figure, numbers, opened, sentences, told, view
from tests.pages.test_pseudo_language import spoken_whole
from tests.pseudo_language import words_of

captions = partial(told, kinds=("caption",))

QUERY = "encoder.layers.0.self_attn.q_proj.weight"
VALUE = "decoder.layers.1.self_attn.v_proj.weight"
WIDE = "encoder.layers.1.ffn.up_proj.weight"


@pytest.fixture
def open_part(open_page):
    return lambda model="reverse", **parameters: open_page(DOCTOR, model=model, doctor="parameters", **parameters)


@pytest.fixture(scope="module")
def odd_folder(tmp_path_factory, checkpoint_folder, shared_checkpoint_folder):
    """The tiny checkpoint as it is, with odd values in it, and one of other shapes."""
    root = tmp_path_factory.mktemp("odd")
    for name, folder in (("tiny", checkpoint_folder), ("odd", checkpoint_folder), ("other", shared_checkpoint_folder)):
        shutil.copytree(folder, root / name)
    tensors = load_file(root / "odd" / "model.safetensors")
    tensors[QUERY][1, :2] = np.nan
    tensors[QUERY][2, 0] = -np.inf
    tensors[VALUE][:] = 0.25
    tensors[WIDE][:, 3] = 0
    tensors[WIDE] *= 2
    save_file(tensors, root / "odd" / "model.safetensors")
    return root


@pytest.fixture
def odd(odd_folder, monkeypatch, open_part):
    """A function that opens one of them: `odd("odd", tensor=QUERY)`."""
    monkeypatch.setenv(loading.ENVIRONMENT, str(odd_folder))
    return open_part


def held(name):
    checkpoint = opened(name)
    return {name: tensor.detach().double().numpy() for name, tensor in checkpoint.model.named_parameters()}


def shown(test, place=0):
    """A table, a row a tensor, by its name."""
    table = test.dataframe[place].value
    return table.set_index(table["open"].str.removeprefix("● "))


def test_what_is_not_finite_or_constant_is_counted_found_and_left_out(odd):
    table = shown(odd("odd", tensors="not_finite"))
    assert list(table.index) == [QUERY]
    assert tuple(table.loc[QUERY, ["nan", "infinite"]]) == (2, 1)
    assert math.isfinite(table.loc[QUERY, "mean"])
    assert math.isnan(table.loc[QUERY, "effective_rank"])
    test = odd("odd", tensor=QUERY)
    assert "2 NaN and 1 infinite values." in sentences(test)
    assert parameter_pictures.singular.key not in charts_of(test)
    assert numbers(figure(test, parameter_pictures.spread.key)["data"][0]["y"]).sum() == 16 * 16 - 3
    table = shown(odd("odd", tensors="constant"))
    expected = {name for name, values in held("odd").items() if values.size > 1 and np.ptp(values) == 0}
    assert set(table.index) == expected
    assert table.loc[VALUE, "effective_rank"] == pytest.approx(1)


def test_each_text_of_the_part_is_a_whole_sentence_or_data(open_page):
    spoken_whole(open_page, PARTS["doctor parameters"], words_of("float32"))


def test_words_filter_the_names_a_tensor_that_there_is_not_is_said_and_counts_may_be_logarithmic(open_part):
    test = open_part(names="Decoder q_proj weight cross", tensor="<b>no</b>")
    assert list(shown(test).index) == [f"decoder.layers.{layer}.cross_attn.q_proj.weight" for layer in range(2)]
    assert "This model has no tensor “<b>no</b>”; src_table is shown." in sentences(test)
    assert view(test).of(ParametersLook).tensor == ""
    test.text_input(key="names").set_value("src nothing")
    test.selectbox(key=parameters.CHOICE).set_value(VALUE)
    check(test.toggle(key="log_counts").set_value(True).run())
    assert "No tensor matches" in sentences(test)
    assert {"names": "src nothing", "tensor": VALUE, "counts": "1"}.items() <= address(test).items()
    assert figure(test, parameter_pictures.spread.key)["layout"]["yaxis"]["type"] == "log"


def test_rows_of_pieces_are_shown_by_piece(open_part, monkeypatch):
    monkeypatch.setattr(parameter_pictures, "ROWS_AT_ONCE", 7)
    test = open_part(tensor="src_table")
    lengths = np.linalg.norm(held("reverse")["src_table"], axis=1)
    order, pieces = np.argsort(lengths), opened("reverse").src_tokenizer
    drawn = figure(test, parameter_pictures.rows.key)
    expected = [*order[:10], *order[-10:]]
    rows = drawn["layout"]["meta"]["table"]["rows"]
    assert [row[0] for row in rows] == [pieces.piece(i) for i in expected]
    np.testing.assert_allclose(numbers(drawn["data"][0]["x"]), lengths[expected], rtol=1e-6)
    assert numbers(figure(test, parameter_pictures.row_lengths.key)["data"][0]["y"]).sum() == len(lengths)


def test_two_checkpoints_are_compared_tensor_by_tensor(odd):
    test = odd("tiny", against="odd", tensor=WIDE)
    table, a, b = shown(test, 1), held("tiny"), held("odd")
    assert set(table.index) == set(a)
    assert list(table["relative"]) == sorted(table["relative"], reverse=True)
    assert table.loc[WIDE, "largest"] == pytest.approx(np.abs(b[WIDE] - a[WIDE]).max())
    assert table.loc[QUERY, "left_out"] == 3
    assert list(shown(odd("tiny", against="odd", names="encoder ffn up 1 weight"), 1).index) == [WIDE]
    assert "No tensor matches" in sentences(odd("tiny", against="odd", names="nothing"))
    changed = {name for name in a if not np.array_equal(a[name], b[name])}
    assert f"Identical: {len(a) - len(changed)} of {len(a)} tensors." in captions(test)
    drawn = figure(test, parameter_pictures.change.key)
    assert drawn["layout"]["title"]["text"] == f"Change in {WIDE}: odd minus tiny"
    counts, _ = np.histogram(b[WIDE] - a[WIDE], 80)
    assert numbers(drawn["data"][0]["y"]).tolist() == counts.tolist()


def test_what_does_not_match_is_named_and_the_rest_compared(odd):
    a, b = held("tiny"), held("other")
    both = {name for name in a if name in b and a[name].shape == b[name].shape}
    gone = next(name for name in a if name not in both)
    test = odd("tiny", against="other", tensor=gone)
    assert set(shown(test, 1).index) == both
    n = len((set(a) | set(b)) - both)
    assert f"{n} tensors are not listed because they are in only one of the two checkpoints" in sentences(test)
    assert f"and {n - 5} more" in sentences(test)
    assert "The other checkpoint has no tensor with this name and shape." in sentences(test)


def test_a_checkpoint_to_compare_with_is_chosen_among_the_others(odd):
    test = odd("tiny")
    options = test.selectbox(key="against").options
    assert any("(odd)" in option for option in options)
    assert not any("(tiny)" in option for option in options)
    check(test.selectbox(key="against").set_value("odd").run())
    assert address(test)["against"] == "odd"
    assert len(test.dataframe) == 2
    check(test.selectbox(key=session.MODEL).set_value("odd").run())  # now it is this one
    assert "There is no other checkpoint named “odd”." in sentences(test)
    assert len(test.dataframe) == 1


@pytest.fixture
def large(odd, monkeypatch):
    """A model that counts as large, of which nothing is known yet."""
    monkeypatch.setattr(parameter_tables, "AT_ONCE", 0)
    monkeypatch.setattr(parameters, "ONE_AT_ONCE", 0)
    fresh = ModelRunner()
    monkeypatch.setattr(loading, "runner", lambda: fresh)
    return odd


def test_singular_values_of_a_large_model_are_computed_when_asked_for(large, monkeypatch):
    test = large("tiny")
    assert shown(test)["effective_rank"].isna().all()
    assert parameter_pictures.singular.key not in charts_of(test)
    check(test.button(key=parameters.DECOMPOSE).click().run())
    assert parameter_pictures.singular.key in charts_of(test)
    assert shown(check(test.run()))["effective_rank"].notna().sum() == 1  # what is known stays
    check(test.button(key=parameters.SPECTRA).click().run())
    assert shown(test)["effective_rank"].notna().sum() == sum(values.ndim == 2 for values in held("tiny").values())
    assert parameters.SPECTRA not in [button.key for button in test.run().button]
    for module in (parameters, parameter_tables):
        monkeypatch.setattr(module, "MOST", 0)
    test = large("odd")
    assert "too large for this page to compute its singular values" in sentences(test)
    assert "matrices are too large for this page to compute their singular values" in captions(test)
