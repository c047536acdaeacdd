"""Part "Train a small model" of the Training page: the form, and a training followed live, with its buttons.

First the form and its notes; then the training's progress, in a fragment that reruns, and its buttons. The model is in
the sidebar's menu as soon as it exists.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from glassformer.charts.theme import Spec
from glassformer.extensions.training_page import session_trainings, watch_choices, watch_pictures
from glassformer.extensions.training_page.training_pictures import ARRIVED, TRAINING
from glassformer.extensions.training_page.trainings import MOST_MINUTES, Plan, Training, TrainingProgress
from glassformer.extensions.training_page.watch_choices import (
    LIMITS,
    MOST_PARAMETERS,
    OWN,
    POSITIONS,
    PRESETS,
    TASKS,
    Choices,
    Pairs,
)
from glassformer.runs.error_boundary import attempt
from glassformer.runs.run_address import publish
from glassformer.runs.show import choose_part
from glassformer.server import replicas, server_options
from glassformer.server.jobs import JobStatus
from glassformer.server.model_runner import BusyError
from glassformer.shared import controls, cover_box, drawing
from glassformer.shared.controls import KEEP
from glassformer.shared.i18n import here, st
from glassformer.shared.model_notes import time_of
from glassformer.shared.page_blocks import draw_below
from glassformer.state import global_params, session
from glassformer.state.view import MAIN
from transformer.checkpoint import snapshots
from transformer.checkpoint.load import Checkpoint
from transformer.errors import GlassformerError
from transformer.i18n import Sentence, joined, say, say_n

CURRENT, FORM, CHOSEN = "watch_current", "watch_form", "watch_chosen"
PROBLEM, FROM_CARD = "watch_problem", "watch_from_card"
CHART, LATEST, COMPARED = "training_growing", "training_latest", "training_compared"
TEXT, FILE = "watch_text", "watch_file"
LOOK_SECONDS: Final = 2.0
_KEY: Final = "watch_"  # of the widget of each choice
_MEGABYTES: Final = 2
_NORMS: Final = {"pre": say("pre-norm"), "post": say("post-norm")}
_NORM_KINDS: Final = {"layer": "LayerNorm", "rms": "RMSNorm", "none": say("none")}
_COMPARE: Final = {"": say("one model"), "parts": say("from minimal to complete"), "positions": say("all positions")}
_CARDS: Final = 3  # in a row


def watch(checkpoint: Checkpoint) -> None:
    """Draw the part."""
    with controls.bar(MAIN):
        choose_part(TRAINING, MAIN)
    drawing.notes(session.take_notes())
    cover_box.part(_part)
    publish(checkpoint)


def _part() -> None:
    if not server_options.trains():
        st.caption(_why_off())
        return
    training = _current()
    if training is None or st.session_state.get(FORM):
        if training is not None:
            _button(say("Back to the training"), "back", "arrow_back", _show_form, False)
        _form()
        return
    seen = session_trainings.trainings().look(training)
    every = LOOK_SECONDS if seen.is_under_way else None
    st.fragment(_follow, run_every=every)(session_trainings.name_of(training), seen.is_under_way)


def _current() -> Training | None:
    """The session's training: the one that it started, while it runs, else the sidebar's model's."""
    name = st.session_state.get(CURRENT) or ""
    chosen, begun = session_trainings.find(st.session_state.get(session.MODEL) or ""), session_trainings.find(name)
    if begun is not None and (chosen is None or session_trainings.is_under_way(begun)):
        return begun
    if chosen is None and name:
        del st.session_state[CURRENT]
        st.info(replicas.gone(session_trainings.GONE), icon=":material/info:")
    return chosen


def _why_off() -> Sentence:
    said = server_options.said(None, *server_options.TRAINING)
    if said is not None and said not in server_options.TRAINING_MODES:
        return say(
            "Nobody can train on this server, because its setting is “{found}”. It must be one of {modes}.",
            found=drawing.plain(said[:40]),
            modes=", ".join(server_options.TRAINING_MODES),
        )
    return say(
        "Nobody can train on this server. Its operator can allow it with `-- {option} on`.",
        option=server_options.TRAINING[1],
    )


# ------------------------------------------------------------------------------------------------ the form


def _form() -> None:
    said = say(
        "Train a small model on this server and watch it learn: as soon as it has begun, you can look at it on "
        "every page, at each moment of its training so far. A click on a card starts its training."
    )
    st.markdown(said)
    columns = [column for _ in range(0, len(PRESETS), _CARDS) for column in st.columns(_CARDS)]
    for column, (name, (title, about, chosen)) in zip(columns, PRESETS.items(), strict=False):
        with column, st.container(border=True, height="stretch"):
            key, icon = f"{_KEY}preset_{name}", ":material/play_arrow:"
            st.button(title, key=key, on_click=_start, args=(chosen,), icon=icon, width="stretch")
            st.caption(about)
    at_cards = st.container()
    with st.expander(say("Or choose the settings yourself")):
        for name, value in vars(Choices()).items():
            st.session_state.setdefault(f"{_KEY}{name}", value)
        _task()
        pairs = _pairs() if st.session_state[f"{_KEY}task"] == OWN else None
        chosen = _choices()
        fits = (chosen.task != OWN or pairs is not None) and _said_before(chosen, pairs)
        _busy()
        st.button(
            say("Start training"),
            key=f"{_KEY}start",
            type="primary",
            icon=":material/play_arrow:",
            on_click=_start,
            disabled=not fits,
        )
    if (problem := st.session_state.get(PROBLEM)) is not None:  # beside what was clicked
        with at_cards if st.session_state.get(FROM_CARD) else st.container():
            st.error(drawing.with_code(problem))


def _chosen() -> Choices:
    """The widgets' values."""
    return Choices(**{name: st.session_state.get(f"{_KEY}{name}", value) for name, value in vars(Choices()).items()})


def _task() -> None:
    tasks = {**{name: task.title for name, task in TASKS.items()}, OWN: say("My own pairs")}
    st.segmented_control(say("Task"), required=True, **_of("task", tasks))
    if (task := TASKS.get(st.session_state[f"{_KEY}task"])) is not None:
        st.caption(task.example)


def _choices() -> Choices:
    first, second, third = st.columns(3, gap="large")
    with first:
        st.slider(say("Layers in each stack"), 1, watch_choices.MOST_LAYERS, **_of("layers"))
        st.segmented_control(say("Heads"), list(watch_choices.HEADS), required=True, **_of("heads"))
        st.selectbox(say("Positions"), **_of("positions", POSITIONS))
        st.selectbox(say("Train"), **_of("compare", _COMPARE))
    with second:
        st.segmented_control(say("Norm"), required=True, **_of("norm", _NORMS))
        st.segmented_control(say("Kind of norm"), required=True, **_of("norm_kind", _NORM_KINDS))
        rates = list(watch_choices.RATES)
        st.select_slider(say("Highest learning rate"), rates, format_func=lambda rate: f"{rate:g}", **_of("rate"))
        st.toggle(say("Warm-up"), **_of("warmup"))
        st.toggle(say("Causal mask"), help=_LEAK, **_of("causal_mask"))
    with third:
        st.slider(say("Epochs"), 1, watch_choices.MOST_EPOCHS, **_of("epochs"))
        st.slider(say("At most so many minutes"), 1, int(MOST_MINUTES), **_of("minutes"))
        st.toggle(say("Residual connections"), **_of("residual"))
        st.toggle(say("Gated feed-forward (SwiGLU)"), **_of("gated"))
        st.toggle(say("Scores divided by the root of a head's width"), **_of("scaled"))
    return _chosen()


_LEAK: Final = say(
    "Without the mask, the decoder sees the tokens that it has to predict while it learns. The loss nears 0, and the "
    "output is worthless."
)


def _of(name: str, called: Mapping[Any, str] | None = None) -> dict[str, Any]:
    """The common arguments of all widgets of the form, and of those in which something with a name is chosen."""
    among = {} if called is None else {"options": list(called), "format_func": called.__getitem__}
    return {"key": f"{_KEY}{name}", "persist_state": KEEP, **among}


def _pairs() -> Pairs | None:
    """Draw the box for the user's own pairs; None if there are none yet, or they are invalid."""
    st.text_area(
        say("Pairs, one per line"),
        key=TEXT,
        height=160,
        persist_state=KEEP,
        placeholder=say("source {arrow} target", arrow=watch_choices.ARROW),
        help=say(
            "A source and its target, with a tab or “{arrow}” between them. At most {lines:,} pairs, each side with "
            "at most {characters:,} characters.",
            arrow=watch_choices.ARROW,
            lines=LIMITS.lines,
            characters=LIMITS.characters,
        ),
    )
    if server_options.mode() != "off":
        said = say("Or upload a text file, which replaces the typed text")
        st.file_uploader(said, type=["txt", "tsv"], key=FILE, max_upload_size=_MEGABYTES)
    if not (st.session_state.get(TEXT) or st.session_state.get(FILE)):
        return None
    return attempt(_read)


def _read() -> Pairs:
    """The given pairs. Raises `DataError`: they are invalid."""
    file = st.session_state.get(FILE)
    if file is not None:
        return watch_choices.read_pairs(file.getvalue(), label=say("The file {name}", name=file.name))
    return watch_choices.read_pairs(st.session_state.get(TEXT) or "", label=say("What was typed"))


def _said_before(chosen: Choices, pairs: Pairs | None) -> bool:
    """Show the model's size and the commands; returns whether the training may start."""
    plan = attempt(lambda: watch_choices.plan(chosen, pairs))
    if plan is None:
        return False
    n = watch_choices.n_parameters(plan)
    st.caption(say("The model will have {n:,} parameters, of at most {most:,}.", n=n, most=MOST_PARAMETERS))
    _commands(plan)
    return True


def _busy() -> None:
    """Show who is training now."""
    running = session_trainings.trainings().seconds_left()
    if running is not None:
        said = say(
            "Another training is running. It began {ago} ago and has at most {left} left; yours will wait.",
            ago=time_of(running[0]),
            left=time_of(running[1]),
        )
        st.info(said, icon=":material/hourglass_top:")


def _start(card: Choices | None = None) -> None:
    """Callback: start the selected training, or a card's, which becomes selected."""
    if card is not None:
        st.session_state.update({f"{_KEY}{name}": value for name, value in vars(card).items()})
    chosen = _chosen()
    st.session_state[FROM_CARD] = card is not None
    st.session_state.pop(PROBLEM, None)
    try:
        session_trainings.check_none_goes_on()
        plan = watch_choices.plan(chosen, _read() if chosen.task == OWN else None)
        st.session_state[CURRENT] = session_trainings.keep(session_trainings.trainings().begin(plan))
        st.session_state[FORM] = False
    except (GlassformerError, BusyError) as error:
        st.session_state[PROBLEM] = error.sentence


# ------------------------------------------------------------------------------------------------ what goes on


def _follow(name: str, was_under_way: bool) -> None:
    """Draw a training's progress; reruns while it runs."""
    training = session_trainings.find(name)
    if training is None:
        st.rerun()
    seen = session_trainings.trainings().look(training)
    _choose(training, name)
    if was_under_way and not seen.is_under_way:
        st.rerun()  # the page once more, which then looks no longer
    now = training.progress()
    _where(training, seen, now)
    if not global_params.guidance().follows:  # in a room only its teacher may stop it
        _steer(training, seen, name)
    if len(training.outs) > 1:
        _side_by_side(watch_pictures.compared(training))
        _commands(training.plan)
        return
    draw_below(watch_pictures.Watched(training, seen.is_under_way))
    scene = watch_pictures.growing(training)
    if scene is not None:
        newest = watch_pictures.latest(training)
        draw = [partial(_loss, scene), *([partial(_newest_map, newest)] if newest is not None else [])]
        drawing.beside(*draw, widths=(3, 2)[: len(draw)])
    _commands(training.plan)


def _side_by_side(scene: watch_pictures.ModelComparison) -> None:
    """Draw the models of a comparison: their losses so far, and how they do by length."""
    told = joined(" ", watch_pictures.compared_said(scene))
    st.caption(drawing.plain(told))

    def draw(chart: Spec, name: str, how_to_read: str) -> None:
        drawing.chart(chart, key=f"{COMPARED}_{name}", alt=told, how_to_read=how_to_read, of_sentence=False)

    if scene.losses:
        draw(watch_pictures.compared_losses(scene), "loss", watch_pictures.HOW_TO_READ_LOSSES)
    if scene.lengths:
        exact, loss = (watch_pictures.compared_lengths(scene, exact=one) for one in (True, False))
        read = watch_pictures.HOW_TO_READ_LENGTHS
        drawing.beside(partial(draw, exact, "exact", read), partial(draw, loss, "lengths", read))


def _commands(plan: Plan) -> None:
    with st.expander(say("Commands of the training")):
        st.code("\n".join(watch_choices.shown(plan.commands)), language="shell")


def _loss(scene: watch_pictures.GrowingCurve) -> None:
    told = joined(" ", watch_pictures.told(scene))
    chart = watch_pictures.losses(scene)
    drawing.chart(chart, key=CHART, alt=told, how_to_read=watch_pictures.HOW_TO_READ, of_sentence=False)
    st.caption(drawing.plain(told))


def _newest_map(newest: watch_pictures.LatestRun) -> None:
    """Draw what the newest snapshot makes of a sentence, beside the loss."""
    alt = say(
        "At step {step:,} the newest snapshot makes “{output}” of “{source}”; the map shows one of its heads.",
        step=newest.step, output=newest.output, source=newest.source,
    )  # fmt: skip
    chart = watch_pictures.latest_map(newest)
    drawing.chart(chart, key=LATEST, alt=alt, how_to_read=watch_pictures.HOW_TO_READ_LATEST, of_sentence=False)


def _choose(training: Training, name: str) -> None:
    """Select this model in the sidebar, once, as soon as it exists."""
    met: tuple[str, ...] = st.session_state.get(CHOSEN, ())
    if name in met or not training.has_model or session_trainings.at(name) is None:
        return
    st.session_state[CHOSEN] = (*met, name)
    if session_trainings.find(st.session_state.get(session.MODEL) or "") is not training:
        st.session_state[ARRIVED] = name
        st.rerun()


def _where(training: Training, seen: JobStatus, now: TrainingProgress) -> None:
    if seen.state == "waiting":
        ahead = session_trainings.trainings().before(training)
        said = say_n("{n} training is ahead of this one.", "{n} trainings are ahead of this one.", ahead)
        st.progress(0.0, text=drawing.plain(said))
    elif seen.state == "running" and not now.step:
        st.progress(0.0, text=say("The data and the model are being made ready."))
    elif seen.state == "running":
        rate = say("{n:,.0f} tokens a second", n=now.tokens_a_second)
        left = say("about {time} left", time=time_of(now.left))
        st.progress(min(now.step / max(now.steps, 1), 1.0), text=drawing.plain(joined(" · ", [_at(now), rate, left])))
    elif seen.state == "done":
        said = say("The training is done.")
        if now.step < now.steps:
            said = say("The time was up; the training ended before its last step.")
        st.success(drawing.plain(joined(" ", [said, _at(now)])), icon=":material/check_circle:")
    elif seen.state == "cancelled":
        st.info(drawing.with_code(joined(" ", [say("The training was stopped."), *[_at(now)] * bool(now.step)])))
    else:
        st.error(drawing.with_code(seen.problem or say("The training failed.")))
    if len(training.outs) > 1:
        n = [*training.outs].index(training.now.name) + 1
        st.caption(say("Model {n} of {total}; each that has begun is in the sidebar.", n=n, total=len(training.outs)))
    elif training.has_model:
        n = len(snapshots.steps(training.out))
        told = [say_n("{n} snapshot so far.", "{n} snapshots so far.", n)] if n else []
        where = say(
            "The model is the checkpoint in the sidebar. On every page, the slider there goes through its snapshots."
        )
        st.caption(joined(" ", [*told, where]))


def _at(now: TrainingProgress) -> Sentence:
    return say("Step {step:,} of {steps:,}, epoch {epoch}", step=now.step, steps=now.steps, epoch=now.epoch)


def _steer(training: Training, seen: JobStatus, name: str) -> None:
    """Draw the training's buttons."""
    with st.container(horizontal=True, gap="small"):
        if seen.is_under_way:
            _button(say("Stop the training"), "stop", "stop", _stop, name)
            return
        if seen.state != "done" or _is_cut(training):
            more = MOST_MINUTES if seen.state == "done" else None
            _button(say("Go on with the training"), "resume", "play_arrow", _go_on, name, more)
        if training.has_model:
            st.download_button(
                say("Save the checkpoint (zip)"),
                partial(watch_choices.packed, training, here(watch_choices.about(training))),
                file_name=f"{training.plan.name}.zip",
                mime="application/zip",
                key=f"{_KEY}save",
                on_click="ignore",
                icon=":material/download:",
            )
        _button(say("Train another model"), "new", "add", _show_form, True)
        _button(say("Delete"), "delete", "delete", _delete, name)
    if (problem := st.session_state.get(PROBLEM)) is not None:
        st.error(drawing.with_code(problem))


def _button(label: str, name: str, icon: str, do: Callable[..., None], *args: object) -> None:
    st.button(label, key=f"{_KEY}{name}", icon=f":material/{icon}:", on_click=do, args=args)


def _is_cut(training: Training) -> bool:
    """Whether the time limit ended it, and may be raised."""
    now = training.progress()
    return len(training.outs) == 1 and now.step < now.steps and training.plan.minutes < MOST_MINUTES


def _stop(name: str) -> None:
    training = session_trainings.find(name)
    if training is not None:
        session_trainings.trainings().cancel(training)


def _go_on(name: str, minutes: float | None) -> None:
    training = session_trainings.find(name)
    st.session_state.pop(PROBLEM, None)
    try:
        if training is not None:
            session_trainings.trainings().resume(training, minutes=minutes)
    except BusyError as error:
        st.session_state[PROBLEM] = error.sentence


def _show_form(is_shown: bool) -> None:
    st.session_state[FORM] = is_shown


def _delete(name: str) -> None:
    session_trainings.forget(name)
    if session_trainings.is_name(st.session_state.get(session.MODEL) or ""):
        st.session_state[session.MODEL] = None
        session.change_model()
    st.session_state.pop(CURRENT, None)
