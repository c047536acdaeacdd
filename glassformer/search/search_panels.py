"""The page How tokens are chosen: its row of parts, and the part Sampling: sliders, draws as jobs, table."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from glassformer.frame.decoding import decoding_line, hidden_while_guessing
from glassformer.frame.sentence_stepper import sentence
from glassformer.runs import loading
from glassformer.runs.error_boundary import attempt
from glassformer.runs.measurement_jobs import takes_about
from glassformer.runs.open_run import OpenRun
from glassformer.runs.run_address import address, publish
from glassformer.runs.show import choose_part, show
from glassformer.search import MOST_DRAWS, SearchLook, sampling_pictures
from glassformer.search.sampling_pictures import COUNTS, QUICK_SECONDS, USUAL_COUNT, Outputs, looked_at, run_draws
from glassformer.search.tree_pictures import NO_TEXT, SEARCH, seconds_of
from glassformer.server.jobs import ROWS, Job, JobRegistry, JobStatus
from glassformer.server.model_runner import BusyError, ModelRunner, cost_of
from glassformer.shared import controls, cover_box, drawing, menu
from glassformer.shared.controls import ControlBinding
from glassformer.shared.i18n import frame, here, st
from glassformer.state import session
from glassformer.state.link import Link
from glassformer.state.view import MAIN, Slot
from transformer.analysis.sampled_outputs import Draw, Outcome, draws
from transformer.i18n import joined, say, say_n
from transformer.i18n.sentence import chance
from transformer.model.anatomy import anatomy
from transformer.runs.query import MAX_SEED, Query, Sampling

if TYPE_CHECKING:
    from transformer.checkpoint.load import Checkpoint


TAKE, BACK = "search_take", "search_back"
NOT_TRIED: Final[dict[str, Any]] = {"try_temperature": None, "try_k": None, "try_p": None}
_KS: Final = (1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 40, 50, 100, 200, 500, 1000, 2000, 5000)
_ALL: Final = 0


def draw(run: OpenRun) -> None:
    """Draw the sentence and the chosen part, which adds its own controls to the row of parts."""
    sentence(run, compact=True)
    if not anatomy(run.checkpoint.config).writes:
        said = say("This encoder-only model generates no output, so there is no choice of tokens to show.")
        st.info(said, icon=":material/info:")
        return
    if run.slot == MAIN:
        decoding_line(run.checkpoint, short=True)
    row = controls.bar(run.slot)
    with row:
        choose_part(SEARCH, run.slot, SEARCH.offered(run))
    cover_box.part(lambda: attempt(lambda: SEARCH.entry(run).draw(run, row)))


# ------------------------------------------------------------------------------------------------ the settings


def sliders(run: OpenRun) -> None:
    """Draw the sliders, and under them the ways to the run's settings and from them."""
    how = looked_at(run)
    columns = st.columns(3, gap="medium")
    with columns[0]:
        kept = _kept(run.slot, "try_temperature", how.temperature)
        controls.slider(
            kept,
            say("Temperature"),
            0.05,
            5.0,
            step=0.05,
            help=say("Values below 1 sharpen the distribution; values above 1 flatten it."),
        )
    with columns[1]:
        options = _top_k_options(len(run.trace.vocabulary), how.top_k)
        kept = _kept(run.slot, "try_k", how.top_k)
        help = say("At the right end of the slider, all tokens are kept.")
        controls.scale(kept, say("Top-k"), options, otherwise=_ALL, help=help)
    with columns[2]:
        kept = _kept(run.slot, "try_p", how.top_p)
        controls.slider(kept, say("Top-p"), 0.01, 1.0, step=0.01, help=say("1 keeps all tokens."))
    _ways(run, how)


def _kept(slot: Slot, name: str, value: object) -> ControlBinding:
    return replace(controls.field(slot, name), value=value)


def _top_k_options(n_pieces: int, own: int) -> dict[int, str]:
    """The values along the line, all pieces at its end; the run's own is one of them, if it leaves any out."""
    values = sorted({k for k in (*_KS, own) if 0 < k < n_pieces})
    return {k: f"{k:,}" for k in values} | {_ALL: f"{n_pieces:,}"}


def _ways(run: OpenRun, how: Sampling) -> None:
    """Draw the buttons from the selected settings to those of the run, where they differ."""
    samples = isinstance(run.trace.query.decoding, Sampling)
    if samples and how == run_draws(run):
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        if how != run_draws(run):
            st.caption(say("This is only a preview: the run itself uses different settings."))
            st.button(
                say("Back to the run's settings") if samples else say("Back to temperature 1, without top-k or top-p"),
                key=run.key(BACK),
                on_click=partial(session.replace, run.slot, **NOT_TRIED),
                icon=":material/undo:",
            )
        st.button(say("Use these settings"), key=run.key(TAKE), on_click=partial(take, how), icon=":material/casino:")


def take(how: Sampling) -> None:
    """Callback: the run samples with these settings; its seed stays."""
    state = st.session_state
    state[session.HOW] = "sampling"
    state[session.TEMPERATURE], state[session.TOP_K], state[session.TOP_P] = how.temperature, how.top_k, how.top_p
    session.new_run()
    for slot in session.SLOTS:
        session.replace(slot, **NOT_TRIED)


# ------------------------------------------------------------------------------------------------ the part


def sampled(run: OpenRun, row: Any) -> None:
    """Draw one step before its draw, and then many draws of the whole output."""
    if run.visible.covered:
        said = say("This part would give the answer away. Reveal the step on the page Translate first.")
        st.info(said, icon=":material/visibility_off:")
        return
    sliders(run)
    scene = sampling_pictures.before(run)
    if scene is not None:
        show(sampling_pictures.shares, scene)
    _many(run, row)


MOST_KEPT = 64  # of 200 draws each about 100 kB
AT_ONCE = 4


@dataclass(frozen=True)
class SamplingRequest:
    """A request for draws; equal requests share one job."""

    visitor: Hashable  # who asks: users cancel their own draws only
    query: Query  # A query that samples, with seed 0
    n: int  # how many draws
    first_seed: int  # of the first draw; the others count up from it


class Draws(JobRegistry[SamplingRequest]):
    """The draws of a server; each job tells those that are there, a tuple of `Draw`."""

    def __init__(self, runner: Callable[[], ModelRunner]) -> None:
        super().__init__(_too_many, most=MOST_KEPT, at_once=AT_ONCE, keeps_stopped=True)
        self._runner = runner

    def start(self, wanted: SamplingRequest, checkpoint: Checkpoint) -> Job:
        """Begin, unless the same is under way or done; raises `BusyError` where too many are under way."""
        return self.ask(wanted, partial(self._drawn, wanted, checkpoint))

    def _drawn(self, wanted: SamplingRequest, checkpoint: Checkpoint, job: Job) -> None:
        seeds = range(wanted.first_seed, wanted.first_seed + wanted.n)
        for start in range(0, wanted.n, ROWS):
            some, runner = seeds[start : start + ROWS], self._runner()
            cost = cost_of(wanted.query) * len(some)
            job.gather(runner, partial(draws, checkpoint, wanted.query, some), cost=cost)


def _too_many(n: int) -> BusyError:
    return BusyError(
        "{n} sets of draws are already waiting or running on this server, which is the limit. Try again in a moment.",
        n=n,
    )


START, CANCEL, FURTHER = "search_draw", "search_cancel", "search_further"
_LOOK_SECONDS: Final = 0.7
_MOST_SEEDS: Final = 12


@st.cache_resource(show_spinner=False)
def jobs() -> Draws:
    """All of the server's."""
    return Draws(loading.runner)  # not the runner itself, which holds all finished runs


def many_draws(run: OpenRun, row: Any) -> None:
    """Draw the draws alone, as old addresses ask for them."""
    sliders(run)
    _many(run, row)


def _many(run: OpenRun, row: Any) -> None:
    if hidden_while_guessing(run.view.guess):
        return
    with row:
        options = {n: say_n("{n} draw", "{n} draws", n) for n in COUNTS}
        controls.choose(
            controls.field(run.slot, "draws"), say("How many draws"), options, otherwise=USUAL_COUNT, bare=True
        )
    wanted = SamplingRequest(loading.visitor(), *sampling_pictures.to_draw(run), run.view.of(SearchLook).first_seed)
    if _begins_by_itself(run, wanted):
        _begin(wanted, run.checkpoint)
    seen = jobs().look(wanted)
    _start(run, wanted, seen)
    if seen is None:
        return
    every = _LOOK_SECONDS if seen.is_under_way else None
    st.fragment(_follow, run_every=every)(wanted, run.slot, run.checkpoint, run.link)


def _begins_by_itself(run: OpenRun, wanted: SamplingRequest) -> bool:
    """Whether the draws that the part opens with are made unasked: where a class would not queue for them."""
    is_tried = any(run.view.get(name) is not None for name in NOT_TRIED)
    as_opened = wanted.n == SearchLook.draws and wanted.first_seed == SearchLook.first_seed and not is_tried
    return as_opened and jobs().find(wanted) is None and seconds_of(run, wanted.n) <= QUICK_SECONDS


def _start(run: OpenRun, wanted: SamplingRequest, seen: JobStatus | None) -> None:
    """Draw the button that begins, and which seeds it takes."""
    first, last = wanted.first_seed, wanted.first_seed + wanted.n - 1
    with st.container(horizontal=True, vertical_alignment="center"):
        if seen is None or seen.state in ("cancelled", "failed"):
            st.button(
                say_n("Draw {n} time", "Draw {n} times", wanted.n),
                key=run.key(START),
                type="primary",
                icon=":material/casino:",
                on_click=partial(_begin, wanted, run.checkpoint),
            )
            if (seconds := seconds_of(run, wanted.n)) > QUICK_SECONDS:
                st.caption(takes_about(seconds), width="content")
        st.caption(
            say("Seeds {first:,} to {last:,}: the same seeds always give the same outputs.", first=first, last=last)
        )
        if seen is not None and not seen.is_under_way:
            further = first + wanted.n if last + MOST_DRAWS < MAX_SEED - MOST_DRAWS else 0
            st.button(
                say("Take other seeds"),
                key=run.key(FURTHER),
                on_click=partial(session.replace, run.slot, first_seed=further, opened_seed=None),
            )


def _begin(wanted: SamplingRequest, checkpoint: Checkpoint) -> None:
    attempt(lambda: jobs().start(wanted, checkpoint))


def _follow(wanted: SamplingRequest, slot: Slot, checkpoint: Checkpoint, link: Link) -> None:
    """How far it is, and what is there; a session keeps what a fragment is given, which must not be the run."""
    seen = jobs().look(wanted)
    if seen is None:
        return
    there: tuple[Draw, ...] = seen.so_far or ()
    running = f"{slot}search_running"
    if seen.is_under_way:
        st.session_state[running] = wanted
        with st.container(horizontal=True, vertical_alignment="bottom"):
            st.progress(len(there) / wanted.n, text=_state(seen, wanted.n))
            stop = partial(jobs().withdraw, wanted)
            st.button(say("Cancel"), key=f"{slot}{CANCEL}", icon=":material/stop:", on_click=stop)
    elif st.session_state.get(running) is not None:
        st.session_state[running] = None
        st.rerun()  # without looking again and again
    elif seen.state != "done":
        st.caption(_state(seen, wanted.n))
    if seen.problem is not None:
        st.error(drawing.with_code(seen.problem))
    if there:
        view = link.view.but(step=0, **NOT_TRIED)
        drawn = replace(link, decoding=wanted.query.decoding, hypothesis=0, view=view)
        _outputs(sampling_pictures.outputs(there, slot, session.view(slot)), checkpoint, drawn)
    if slot == MAIN:  # a click runs this alone again, and not the page around it
        publish(checkpoint, replace(link, view=session.view(slot)))


def _state(seen: JobStatus, n: int) -> str:
    if seen.state == "waiting":
        return say("Waiting for other visitors' draws to finish.")
    done = say("{done} of {n} draws.", done=len(seen.so_far or ()), n=n)
    stopped = seen.state in ("cancelled", "failed")
    return joined(" ", [say("Stopped."), done]) if stopped else done


# ------------------------------------------------------------------------------------------------ what came


def _outputs(scene: Outputs, checkpoint: Checkpoint, link: Link) -> None:
    """Draw the draws that are there; `link` opens one of them elsewhere, but for its seed."""
    show(sampling_pictures.drawn, scene, take=partial(_open, scene.slot))
    drawing.explain(*map(drawing.plain, said_of(scene.every, scene.n)))
    if scene.chosen is not None and scene.seed is not None:
        _opened(scene.every[scene.chosen], scene.seed, scene.slot, checkpoint, link)
    _table(scene)


def said_of(every: Sequence[Outcome], n: int) -> Iterator[str]:
    """What the draws come to, in sentences."""
    together = sum(one.drawn for one in every)
    gave = say_n("{n} draw", "{n} draws", n)
    yield say_n("{draws} gave one output.", "{draws} gave {n} different outputs.", len(every), draws=gave)
    yield say(
        "Together, these outputs have a probability of {p}; the rest belongs to outputs that were not drawn.",
        p=chance(min(together, 1.0)),
    )
    yield from _expected(every, n)
    cut = sum(len(one.seeds) for one in every if not one.ended)
    if cut:
        yield say_n(
            "{n} draw was cut off at the maximum output length.",
            "{n} draws were cut off at the maximum output length.",
            cut,
        )


def _expected(every: Sequence[Outcome], n: int) -> Iterator[str]:
    """How the shares compare with the probabilities; of what is rare only that is listed which chance favoured."""
    common = [one for one in every if one.drawn * n >= 1]
    if common:
        yield say(
            "Outputs expected at least once in this many draws: {k}. For {fit} of them, the actual probability "
            "lies within the 95 % interval estimated from the draws.",
            k=len(common),
            fit=sum(one.fits for one in common),
        )
    if len(common) < len(every):
        yield say(
            "An output with a probability below 1/{n} is listed only if it happened to be drawn, so its share "
            "of the draws is larger than its probability.",
            n=n,
        )


def _open(slot: Slot, seed: int) -> None:
    session.replace(slot, opened_seed=seed)


def _opened(one: Outcome, seed: int, slot: Slot, checkpoint: Checkpoint, link: Link) -> None:
    """Draw the output that was chosen, with the ways to its run."""
    others = [str(other) for other in one.seeds if other != seed]
    with st.container(border=True, key=f"{slot}search_draws_opened"):
        said = [say("**Seed {seed}:** {text}", seed=seed, text=drawing.plain(one.text) or NO_TEXT)]
        if others:
            listed = joined(", ", [*others[:_MOST_SEEDS], *(["…"] * (len(others) > _MOST_SEEDS))])
            said.append(say("Other seeds with the same output: {listed}.", listed=listed))
        st.markdown(joined("  \n", said))
        how = link.decoding
        drawn = replace(how, seed=seed) if isinstance(how, Sampling) else how
        there = address(checkpoint, replace(link, decoding=drawn))
        with st.container(horizontal=True, gap="medium"):
            menu.link("step", say("Step through this draw"), there, icon=":material/play_arrow:")
            menu.link("attention", say("Attention"), there, icon=":material/grid_on:")  # fmt: skip


def _table(scene: Outputs) -> None:
    slot, seeds = scene.slot, [one.seeds[0] for one in scene.every]
    key = f"{slot}search_draws_open"

    columns = _columns(drawing.opening(key, "№", seeds, partial(_open, slot), type="tertiary", width=56))
    rows = [_row(place, one, place == scene.chosen) for place, one in enumerate(scene.every)]
    st.container(key=f"{slot}search_draws_table").dataframe(
        frame(rows, columns=list(columns)),
        hide_index=True,
        height=380 if len(rows) > 9 else "content",
        column_config={here(name): config for name, config in columns.items()},
        alt=say("The outputs that were drawn, with counts, shares and probabilities."),
    )
    st.caption(say("Click an output's number to open one of its draws."))


def _columns(number: Any) -> dict[str, Any]:
    kinds = st.column_config

    def figure(format: str, help: str = "") -> Any:
        return kinds.NumberColumn(width=84, format=format, help=here(help) or None)

    interval = say("The 95 % interval for the output's probability.")
    return {
        say("Output number"): number,
        say("Output"): kinds.TextColumn(width=260),
        say("Draws"): figure("%d"),
        say("Share"): figure("%.3f"),
        say("Drawn from"): figure("%.3g", say("The output's probability in the distribution used for the draws.")),
        say("Model's own"): figure("%.3g", say("The output's probability before temperature, top-k and top-p.")),
        say("From"): figure("%.3f", interval),
        say("To"): figure("%.3f", interval),
        say("Seeds"): kinds.TextColumn(width=120),
    }


def _row(place: int, one: Outcome, is_chosen: bool) -> list[object]:
    seeds = joined(", ", [*map(str, one.seeds[:_MOST_SEEDS]), *(["…"] * (len(one.seeds) > _MOST_SEEDS))])
    number = say("● {n}", n=place + 1) if is_chosen else str(place + 1)
    text = one.text or NO_TEXT
    return [number, text, len(one.seeds), one.frequency, one.drawn, one.own, one.low, one.high, seeds]
