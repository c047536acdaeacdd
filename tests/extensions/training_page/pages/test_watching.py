"""*Watch it learn* starts, stops and goes on with a training, and says what it refuses and whose turn it is."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from glassformer.charts.theme import figure_in
from glassformer.extensions.rooms import room_session
from glassformer.extensions.rooms.registry import ROOMS
from glassformer.extensions.training.library.preparation import NOISE
from glassformer.extensions.training_page import session_trainings, watch_pictures
from glassformer.extensions.training_page.trainings import Training, Trainings
from glassformer.extensions.training_page.watch_choices import PRESETS, Choices, plan, read_pairs
from glassformer.server import replicas, server_options
from glassformer.server.model_runner import BusyError
from tests.glassformer.waiting import until
from tests.pages.conftest import PAGES, check
from transformer.analysis.head_statistics import entropy
from transformer.checkpoint import snapshots
from transformer.checkpoint.load import load

SHIPPED = Path(__file__).parents[4] / "checkpoints"
TRAINING = PAGES["training"]
FAKE = "tests.extensions.training_page.fake_training"


@pytest.fixture
def server(tmp_path, monkeypatch):
    """The trainings of a server, whose processes are not the real ones."""
    monkeypatch.delenv(server_options.TRAINING[0], raising=False)
    made = Trainings(tmp_path, child=FAKE)
    monkeypatch.setattr(session_trainings, "trainings", lambda: made)
    yield made
    made.close()


@pytest.fixture
def watch(server, open_page):
    """A function that opens the part."""
    return lambda **parameters: open_page(TRAINING, **{"model": "reverse", "training": "watch"} | parameters)


def button(test, label):
    return next(one for one in test.button if one.label == label)


def labels(test):
    return [one.label for one in test.button]


def said(test):
    texts = (*test.caption, *test.markdown, *test.info, *test.error, *test.success)
    return " ".join(one.value for one in texts).replace("\\", "")


def begin(test, server):
    """Press the button."""
    check(button(test, "Start training").click().run())
    training = list(server._found.values())[-1]
    until(lambda: "words" in [path.name for path in training.folder.iterdir()])
    return training


def refuses(_):
    raise BusyError("The server is full.")


def test_a_card_starts_its_training_and_leaves_its_settings_in_the_form(watch, server, monkeypatch):
    test, (title, _, chosen) = watch(), PRESETS["leak"]
    with monkeypatch.context() as patch:
        patch.setattr(server, "begin", refuses)
        check(button(test, str(title)).click().run())
    assert [one.value for one in test.main if one.type == "error"] == ["The server is full\\."]  # beside the cards
    check(button(test, str(title)).click().run())
    [training] = server._found.values()
    assert training.plan == plan(chosen)
    assert "Stop the training" in labels(test)
    [command] = [one.value for one in test.code if "python -m transformer train" in one.value]
    assert command.startswith("python -m transformer task reverse --out data\npython -m transformer train --train da")
    assert command.endswith("--no-causal-mask")
    check(button(test, "Stop the training").click().run())
    until(lambda: not server.look(training).is_under_way)
    check(button(check(test.run()), "Train another model").click().run())
    assert not next(one for one in test.toggle if one.label == "Causal mask").value
    assert next(one for one in test.slider if one.label == "Layers in each stack").value == chosen.layers


def test_pairs_of_ones_own_and_where_nobody_can_train(watch, monkeypatch):
    test = watch()
    test.session_state["watch_task"] = "own"
    check(test.run())
    assert button(test, "Start training").disabled
    box = next(one for one in test.text_area if one.label == "Pairs, one per line")
    check(box.set_value("ab => ba\nalone").run())
    assert "What was typed, line 2: Expected a source and a target" in said(test)
    check(box.set_value("\n".join(f"{n} => {n}" for n in range(30))).run())
    assert not button(test, "Start training").disabled
    assert "python -m transformer task" not in " ".join(one.value for one in test.code)
    monkeypatch.setenv(server_options.TRAINING[0], "off")
    test = watch()
    assert "Nobody can train on this server. Its operator can allow it with `-- --training on`." in said(test)
    assert "Start training" not in labels(test)


def test_two_visitors_have_a_training_each_that_ends_and_goes_on(watch, server):
    test = watch()
    training = begin(test, server)
    check(test.run())
    assert "Stop the training" in labels(test)
    test.session_state["watch_form"] = True
    check(test.run())
    check(button(test, "Start training").click().run())
    assert "You already have a training that is waiting or running." in said(test)
    assert len(server._found) == 1
    check(button(test, "Back to the training").click().run())
    other = watch()
    assert "Another training is running." in said(other)
    check(button(other, "Start training").click().run())
    assert "1 training is ahead of this one." in other.get("progress")[0].text.replace("\\", "")
    check(button(other, "Stop the training").click().run())
    assert "The training was stopped." in said(other)
    check(button(test, "Stop the training").click().run())
    assert "The training was stopped." in said(test)
    check(button(test, "Go on with the training").click().run())
    assert server.look(training).is_under_way
    server.cancel(training)
    check(test.run())
    check(button(test, "Delete").click().run())
    assert server.find(training.token) is None
    assert "Start training" in labels(test)


def test_in_a_room_only_the_teacher_may_stop_it(watch, server):
    test = watch()
    training = begin(test, server)
    opened = ROOMS.open()
    test.session_state[room_session.CODE] = opened.code
    check(test.run())
    assert "Stop the training" not in labels(test)
    test.session_state[room_session.TAUGHT] = opened
    check(test.run())
    assert "Stop the training" in labels(test)
    assert next(one for one in test.button if one.label == "Ask the class what the loss will do").disabled
    ROOMS.end(opened)
    server.cancel(training)


def test_one_that_is_gone_says_so(watch, server, monkeypatch):
    test = watch()
    training = begin(test, server)
    server.forget(training)
    check(test.run())
    assert "The training is no longer on this server" in said(test)
    assert "Start training" in labels(test)
    test = watch(model=f"training:{training.token}")
    assert "The training is no longer on this server" in said(test)
    assert replicas.SHARED not in said(test)
    monkeypatch.setenv(replicas.STORE, "redis://elsewhere")  # of several replicas that share no folder
    assert f"Ask who runs the server to set {replicas.SHARED}." in said(watch(model=f"training:{training.token}"))


def test_beside_the_loss_stands_a_map_of_the_newest_snapshot(tmp_path):
    shipped = SimpleNamespace(out=SHIPPED / "reverse", folder=SHIPPED)
    found = watch_pictures.latest(shipped)
    assert found.step == max(snapshots.steps(shipped.out))
    checkpoint = load(SHIPPED / f"reverse@{found.step}", inside=SHIPPED)
    trace = checkpoint.run(checkpoint.query(checkpoint.card.first_example()))
    last = trace.maps("cross")[-1]
    assert (found.kind, found.output, found.head) == ("cross", trace.output_text, entropy(last).mean(axis=-1).argmin())
    np.testing.assert_array_equal(found.weights, last[found.head])
    title = figure_in(watch_pictures.latest_map(found), "en")["layout"]["title"]["text"]
    assert title == f"Step {found.step:,}: “{found.source}” becomes “{found.output}”"

    (tmp_path / "reverse.snapshots").mkdir()
    (tmp_path / "reverse.snapshots" / f"7{snapshots.FILE}").write_bytes(b"half of it")
    assert watch_pictures.latest(SimpleNamespace(out=tmp_path / "reverse", folder=tmp_path)) is None
    assert watch_pictures.latest(SimpleNamespace(out=tmp_path / "none", folder=tmp_path)) is None


@pytest.fixture
def models(tmp_path):
    """A training of two models, of which the first is done and scored by length."""
    made = plan(replace(Choices(), compare="positions"))
    training = Training("x", made, tmp_path)
    begun, second = list(training.outs.values())[:2]
    begun.mkdir()
    (begun / "config.json").write_text("{}")
    rows = ["epoch,step,loss,dev_loss,dev_exact", "1,10,2.5,2.25,0.25", "2,20,1.5,1.25,0.75"]
    (begun / "training.csv").write_text("\n".join(rows) + "\n")
    scores = ["length,pairs,loss,exact,seen", "7,4,0.5,1.0,1", "8,4,0.5,0.75,1", "9,4,1.5,0.25,0", "10,4,2.5,0.5,0"]
    begun.with_name(f"{begun.name}.csv").write_text("\n".join(scores) + "\n")
    training.points[second.name] = [(1, 4.0), (5, 3.0)]
    return training


def test_models_are_drawn_side_by_side_by_step_and_by_length(models):
    scene = watch_pictures.compared(models)
    spec = figure_in(watch_pictures.compared_losses(scene), "en")
    drawn = {line["name"]: (list(line["x"]), list(line["y"])) for line in spec["data"]}
    assert drawn == {"sinusoidal": ([10, 20], [2.5, 1.5]), "learned": ([1, 5], [4.0, 3.0])}
    assert spec["layout"]["yaxis"]["range"] is None
    scene.losses["learned"] = [(1, 4.0), (5, 1e6)]  # one that diverges leaves the chart, and the others are seen
    assert list(figure_in(watch_pictures.compared_losses(scene), "en")["layout"]["yaxis"]["range"]) == [0, 6]
    [exact] = figure_in(watch_pictures.compared_lengths(scene, exact=True), "en")["data"]
    assert (list(exact["x"]), list(exact["y"])) == ([7, 8, 9, 10], [100, 75, 25, 50])
    spec = figure_in(watch_pictures.compared_lengths(scene, exact=False), "en")
    assert list(spec["data"][0]["y"]) == [0.5, 0.5, 1.5, 2.5]
    assert [shape["x0"] for shape in spec["layout"]["shapes"]] == [8.5]  # where the training's lengths end
    assert [str(one) for one in watch_pictures.compared_said(scene)] == [
        "Exact outputs on the dev pairs: sinusoidal 75%.",
        "Up to this many tokens, at least half of the outputs are exact: sinusoidal 8.",
        "The longest source in training has 8 tokens.",
    ]


def test_models_of_a_comparison_are_opened_by_their_own_names(models, monkeypatch):
    monkeypatch.setattr(session_trainings, "find", lambda name: models)
    monkeypatch.setattr(
        session_trainings, "entry_at", lambda out, name, folder: SimpleNamespace(name=name, out=out.name, error=None)
    )
    first, second = list(models.outs)[:2]
    begun, newest, *none = (
        session_trainings.at(f"training:x{end}") for end in (f":{first}@7", "", f":{second}", ":../x")
    )
    assert (begun.name, newest.name, newest.out) == (f"training:x:{first}", "training:x", first)
    assert none == [None, None]


def test_a_line_shows_what_a_guess_costs_and_only_where_the_pieces_are_known():
    curve = watch_pictures.GrowingCurve(((1, 3.0),), ((1, 2.5),), (), 9, n_pieces=9)
    lines = {line["name"]: list(line["y"]) for line in figure_in(watch_pictures.losses(curve), "en")["data"]}
    np.testing.assert_allclose(lines["guessing: ln 9"], -np.log([1 / 9, 1 / 9]))
    assert len(lines) == 1 + len(figure_in(watch_pictures.losses(replace(curve, n_pieces=None)), "en")["data"])
    noise = Training("x", plan(PRESETS["noise"][2]), Path())
    assert watch_pictures._n_pieces(noise) == len({*NOISE, "end"})
    pairs = read_pairs("\n".join(f"{'many letters ' * 4}{n}\tx{n}" for n in range(12)), label="x")
    own = Training("x", plan(replace(Choices(), task="own"), pairs), Path())
    assert watch_pictures._n_pieces(own) is None


def test_a_card_of_several_models_says_which_one_it_is_at(watch, server):
    test, (title, _, chosen) = watch(), PRESETS["parts"]
    check(button(test, str(title)).click().run())
    [training] = server._found.values()
    assert training.plan == plan(chosen)
    until(lambda: training.points.get("reverse-minimal"))
    check(test.run())
    assert "Model 1 of 8; each that has begun is in the sidebar." in said(test)
    assert charts_named(test, "Training loss, side by side")
    check(button(test, "Stop the training").click().run())


def charts_named(test, title):
    return title in " ".join(str(one.proto) for one in test.get("bidi_component"))
