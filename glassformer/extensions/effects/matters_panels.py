"""Panels of What matters: token credit, occlusion, integrated gradients, logit parts, depths, ladder, path graph."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final

from glassformer.charts.theme import capitalised
from glassformer.extensions.effects import ablation_pictures, path_pictures
from glassformer.extensions.effects import attribution_pictures as pictures
from glassformer.extensions.effects.attribution.gradients import Integrated, integrating
from glassformer.extensions.effects.attribution.occlusion import OcclusionEffects, hiding
from glassformer.extensions.effects.attribution.target import AttentionCredit, ask, ask_each
from glassformer.extensions.effects.effects_look import EffectsLook
from glassformer.extensions.effects.parts_of_logit import Grid, rival_of, sums, what_it_is
from glassformer.extensions.effects.path_pictures import Cutting, open_paths
from glassformer.extensions.what_if.what_if_panels import BLOCKS
from glassformer.frame.decoding import hidden_while_guessing
from glassformer.frame.sentence_stepper import sentence
from glassformer.runs.error_boundary import attempt
from glassformer.runs.hidden_pieces import gap_of, hidden_place
from glassformer.runs.measurement_jobs import measured
from glassformer.runs.open_run import OpenRun
from glassformer.runs.run_address import address
from glassformer.runs.show import ask_first, choose_part, show
from glassformer.shared import controls, cover_box, drawing, menu
from glassformer.shared.i18n import st
from glassformer.state import session
from transformer.i18n import say
from transformer.model.anatomy import anatomy


def lead_on() -> None:
    """Lead an old address of the part Heads on to the table of the page Attention, which has its numbers now."""
    asked = {name: st.query_params.get_all(name) for name in st.query_params}
    if asked.pop("matters", None) == ["heads"]:
        table = {"panel": ["table"], "measure": asked.pop("effect", ["log_prob"])}
        st.switch_page("pages/explore/attention.py", query_params=asked | table)


def draw(run: OpenRun) -> None:
    """Draw the sentence and the chosen part, which adds its own controls to the row of parts."""
    sentence(run, compact=True)
    row = controls.bar(run.slot)
    with row:
        choose_part(pictures.MATTERS, run.slot)
        heads = address(run.checkpoint, run.link, panel="table", measure="log_prob")
        menu.link("attention", say("What heads do"), heads, icon=":material/table_chart:")
    pictures.MATTERS.entry(run).draw(run, row)


WRITES_NOTHING: Final = say("This encoder-only model generates no output, so there are no steps to explain.")
HIDING: Final = "matters_hiding"
INTEGRATING: Final = "matters_integrating"
_PRODUCTS_A_SECOND: Final = 1.5e10  # multiplications of one thread, about
_POINTS: Final = 100  # of all lines together until the error is small, about


def pieces(run: OpenRun, row: Any) -> None:
    """Draw the part Pieces, with its controls in `row`."""
    _part(run, row, "pieces", lambda run: pictures.Owed(run, pictures.weighed_of(run)), _credit, choices=_choices)


def _part(
    run: OpenRun,
    row: Any,
    name: str,
    opens: Callable[[OpenRun], Any],
    draws: Callable[[OpenRun, Any], object],
    *,
    choices: Callable[[OpenRun], object] = lambda run: None,
    why_not: str = WRITES_NOTHING,
    there: bool | None = None,
) -> None:
    """Draw the scene of a part of models that write, or that is `there`, covered while its step is to be guessed."""
    there = anatomy(run.checkpoint.config).writes if there is None else there

    def uncovered() -> None:
        if not there:
            st.info(why_not)
        elif run.visible.covered:
            ask_first(run, say("This chart would give the answer away."), key=f"matters_{name}_reveal")
        elif (scene := attempt(lambda: opens(run))) is not None:
            draws(run, scene)

    if there:
        with row:
            choices(run)
    cover_box.part(uncovered)


def _credit(run: OpenRun, scene: pictures.Owed) -> None:
    place = st.container()  # the chart comes first; what takes long is offered under it
    hidden, gradient = _hiding(run), attempt(lambda: pictures.gradient_of(run))
    integrated = _integrated(run)
    with place:
        show(pictures.pieces, replace(scene, hiding=hidden, gradient=gradient, integrated=integrated))
        told = [] if hidden is None else _compared(run, scene.weighed, hidden)
        told += [] if integrated is None else [pictures.completeness(integrated, run.view.of(EffectsLook).begin)]
        if told:
            drawing.explain(*map(drawing.plain, told))


# ---------------------------------------------------------------- what may take long is measured when it is asked for


def _hiding(run: OpenRun) -> OcclusionEffects | None:
    """What hiding each piece does to each step; None as long as nobody has asked for it, where it takes long."""
    checkpoint, trace = run.checkpoint, run.trace
    key = pictures.key_of(run, "hiding", trace.tgt_ids)
    return measured(
        key,
        lambda: hiding(ask_each(checkpoint, trace)),
        seconds=_seconds(run, trace.n_tokens("encoder") or len(trace.read_ids)),
        wish=key,
        widget=run.key(HIDING),
        label=say("Hide each token in turn"),
    )


def _integrated(run: OpenRun) -> Integrated | None:
    """Integrated gradients of this step; None as long as nobody has asked for them, where they take long."""
    checkpoint, trace, step, baseline = run.checkpoint, run.trace, run.view.step, run.view.of(EffectsLook).begin
    return measured(
        pictures.key_of(run, "integrated", step, trace.tgt_ids[step], baseline),
        lambda: integrating(ask(checkpoint, trace, step), baseline=baseline),
        seconds=_seconds(run, _POINTS),
        wish=pictures.key_of(run, "integrated"),
        widget=run.key(INTEGRATING),
        label=say("Integrate gradients"),
    )


def _seconds(run: OpenRun, rows: int) -> float:
    """How long it takes to read the run so many times, about: one product for each parameter of a layer and token."""
    config = run.checkpoint.config
    tables = (config.src_vocab_size + (0 if config.shared_vocab else config.tgt_vocab_size)) * config.d_model
    n_tokens = run.trace.n_tokens("encoder") + len(run.trace.read_ids)
    return max(config.count_parameters() - tables, 0) * n_tokens * rows / _PRODUCTS_A_SECOND


# ---------------------------------------------------------------- do attention and hiding agree?


def _compared(run: OpenRun, weighed: AttentionCredit, hidden: OcclusionEffects) -> list[str]:
    """Whether attention and hiding name the same piece, at this step and at all that may be seen, in sentences."""
    view, whole = run.visible.view, "encoder" in run.trace.kinds
    own = weighed.attention(view.layer, view.head)
    here = pictures.StepView.of(pictures.pieces_of(run), own, hidden, run.view.step)
    weights, first = run.visible.weights(), run.trace.first_row
    steps = []
    for step in range(run.visible.n_steps):
        pieces = run.trace.src_tokens[: weights.shape[1]] if whole else run.trace.read_tokens[: first + step + 1]
        steps.append(pictures.StepView.of(pieces, weights[first + step, : len(pieces)], hidden, step))
    said = pictures.in_words(here, run.trace.tgt_tokens[run.view.step])
    whose = say("{whose}.", whose=capitalised(run.visible.whose()))
    return [said, whose, pictures.in_all_steps(steps)]


def _choices(run: OpenRun) -> None:
    """Whose weights, and where the line of integrated gradients begins."""
    n_layers, n_heads = run.trace.maps(run.visible.kind).shape[:2]
    controls.let_go(run.slot, n_layers, n_heads)
    layer = controls.menu_of_layers(controls.field(run.slot, "layer"), n_layers)
    controls.menu_of_heads(controls.field(run.slot, "head"), n_heads, disabled=layer is None)
    begin = controls.field(run.slot, "begin")
    controls.menu(begin, say("Integrated gradients"), pictures.BASELINES, bare=True, width=280)


N_RIVALS: Final = 10


def draw_logit(run: OpenRun, row: Any) -> None:
    """Draw the part Logit, with its controls in `row`."""
    _part(run, row, "logit", pictures.open_logit, _logit, choices=choose_rival, why_not=_why_not(run))


def draw_depths(run: OpenRun, row: Any) -> None:
    """Draw the part Gradients."""
    _part(run, row, "depths", ablation_pictures.depths, lambda run, scene: show(ablation_pictures.gradients, scene))


def draw_ladder(run: OpenRun, row: Any) -> None:
    """Draw the part From minimal to complete; of a large model once it is asked for."""
    cover_box.part(partial(_ladder, run))


def _ladder(run: OpenRun) -> None:
    scene = attempt(lambda: ablation_pictures.climbed(run))
    if scene is not None:
        show(ablation_pictures.ladder, scene)
    elif not hidden_while_guessing(run.view.guess) and not run.view.of(EffectsLook).climb:
        begin = partial(session.replace, run.slot, climb=True)
        st.button(
            say("Switch the parts on"), key=run.key("matters_climb"), icon=":material/play_arrow:", on_click=begin
        )


def choose_rival(run: OpenRun) -> None:
    """The other piece that a logit is compared with: one of the step's candidates, or one that was."""
    if run.visible.covered:
        return
    trace, kept = run.trace, rival_of(run)
    ids = [one.id for one in trace.step(run.view.step, top_k=N_RIVALS).candidates if not one.chosen]
    ids += [kept] if kept is not None and kept not in ids else []
    options: dict[int | None, str] = {None: say("Its logit")}
    options |= {i: say("Minus the logit of “{piece}”", piece=trace.vocabulary[i]) for i in ids}
    controls.menu(controls.field(run.slot, "rival"), say("Compared with"), options, bare=True, width=280)


def _logit(run: OpenRun, scene: pictures.Logit) -> None:
    """Draw what each part of the decoder adds to the logit of the piece that was written."""
    drawing.beside(partial(show, pictures.parts, scene), partial(show, pictures.bars, scene), widths=(3, 2))
    _chosen(run, scene.grid)
    drawing.explain(drawing.plain(sums(run, scene.found, scene.values)), drawing.plain(what_it_is(run)))


def _why_not(run: OpenRun) -> str:
    if anatomy(run.checkpoint.config).fills:
        return say(
            "This encoder-only model generates no output. The MLM head between its stream and its logits is not "
            "linear, so a logit is not a sum of contributions."
        )
    return say("This encoder-only model generates no output, so it has no logits to break down.")


def _chosen(run: OpenRun, grid: Grid) -> None:
    """Offer actions for the selected head."""
    view = run.view
    cell = grid.cell_of(view.kind, view.layer, view.head)
    if cell is None or view.layer is None or view.head is None:
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(
            drawing.plain(say("{part}: {value:+.3f}.", part=grid.names[cell[0]][cell[1]], value=grid.values[cell])),
            width="content",
        )
        menu.link(
            "attention",
            say("Open its map"),
            address(run.checkpoint, run.link, kind=view.kind, layer=view.layer, head=view.head, panel="head"),
            icon=":material/grid_on:",
        )
    BLOCKS.for_head(run, view.kind, view.layer, view.head)


SHARES: Final = {"50": say("50 % of the paths"), "80": say("80 % of the paths"), "90": say("90 % of the paths")}
MOST_LISTED: Final = 40


def paths(run: OpenRun, row: Any) -> None:
    """Draw the part "Why this token", with its controls in `row`: the graph of a logit, and an edge to cut."""
    config = run.checkpoint.config
    why_not = say("This encoder-only model generates no output and fills no gaps, so it has no logits to explain.")
    there = anatomy(config).writes or gap_of(run) is not None
    _part(run, row, "paths", open_paths, _path_graph, choices=_path_choices, why_not=why_not, there=there)


def _path_choices(run: OpenRun) -> None:
    if anatomy(run.checkpoint.config).writes:
        choose_rival(run)
    else:
        kept = controls.field(run.slot, "hidden")
        pieces = controls.labelled(run.trace.src_tokens)
        controls.menu(kept, say("Hidden token"), pieces, otherwise=hidden_place(run), bare=True, width=200)
    controls.choose(controls.field(run.slot, "explained"), say("Edges shown"), SHARES, bare=True)


def _path_graph(run: OpenRun, scene: path_pictures.Paths) -> None:
    show(path_pictures.graph, scene)
    options: dict[Cutting, str] = {(): say("No edge is cut")}
    listed = [edge for edge in scene.edges.tolist() if scene.graph.source[edge]][:MOST_LISTED]  # none from the biases
    listed += [] if scene.chosen is None else [scene.chosen]
    options |= {scene.cutting(edge): scene.in_words(edge) for edge in listed}
    controls.menu(controls.field(run.slot, "cut"), say("Cut an edge"), options)
    if said := attempt(lambda: path_pictures.effect(scene)):
        st.markdown(drawing.plain(said))
    attempt(lambda: show(path_pictures.score, scene))
    drawing.explain(drawing.plain(path_pictures.WHAT_IT_IS))
