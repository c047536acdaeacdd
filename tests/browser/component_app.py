"""A small app around our components, with made-up data, for tests of components."""

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from glassformer import charts
from glassformer.charts.heatmap import follow_steps
from glassformer.charts.theme import figure_in
from glassformer.components.plotly_component import plotly_view
from glassformer.components.stepper_view import SourceChip, StepperRun, TargetChip, stepper
from glassformer.step.step_pictures import MEASURES, unsure_curve
from tests.browser import flow_app
from tests.browser.figures import all_figures

HOSTILE = (
    "<s>", "</s>", "<br>", "<b>x</b>", "&lt;", "&amp;", "$x^2$", "_a_", "`b`", "%{x}", "%{customdata[0]}",
    "<a href='https://example.org'>go</a>", "<img src=x onerror=alert(1)>", "{y}", "&#60;", "▁", "שלום",
)  # fmt: skip
PLAIN = tuple(f"▁w{place}" for place in range(24))
OTHER = ("▁one", "▁two", "▁two", "</s>")


def example(name: str, shift: int) -> StepperRun:
    pieces = {"plain": PLAIN, "other": OTHER, "hostile": HOSTILE, "nothing": ()}[name]
    source = [SourceChip(piece, 10 + place) for place, piece in enumerate(pieces)]
    target = [TargetChip(piece, 100 + place, 0.83, forced=place == 2) for place, piece in enumerate(pieces)]
    texts = tuple("".join(pieces[: place + 1]).replace("▁", " ").strip() for place in range(len(pieces)))
    weights = np.roll(np.eye(len(pieces)), shift, axis=1)
    return StepperRun(name, tuple(source), tuple(target), "<s>", texts, weights, f"head {shift}", "It ended.")


def draw_charts(run: StepperRun, step: int) -> None:
    if not run.target:
        return
    pieces = [chip.piece for chip in run.target]
    sources = [chip.piece for chip in run.source]
    weights = np.roll(run.shading, step, axis=0)
    names = {"query_axis": "Query", "key_axis": "Key", "allowed": None}
    title = "A map of <b>tokens</b>"
    figure = charts.heatmap_spec(weights, queries=pieces, keys=sources, title=title, colour="source", **names)
    follow_steps(figure, range(len(pieces)), n_rows=len(pieces), n_columns=len(sources))
    click = plotly_view(figure, key="map", alt="An attention map.", height=420, on_click=lambda: None)
    if click:
        st.session_state.clicks = [*st.session_state.get("clicks", []), click.index]
    st.text(f"clicks: {st.session_state.get('clicks', [])}")
    allowed = np.tril(np.ones_like(weights, dtype=bool))
    causal = allowed / allowed.sum(axis=1, keepdims=True)
    masked = charts.heatmap(
        causal, queries=pieces, keys=sources, title="Masked", allowed=allowed, mask_reason="too late"
    )
    plotly_view(masked, key="masked", alt="A causal map.", height=420, on_click=lambda: None)
    shares = np.linspace(0.5, 0.01, min(8, len(pieces)))
    bars = charts.candidates(pieces[:8], shares, ids=list(range(100, 100 + len(shares))), chosen=1)
    picked = plotly_view(bars, key="bars", alt="Likeliest tokens.", height=340, on_click=lambda: None)
    st.text(f"picked: {picked.customdata if picked else None}")
    labels = [f"reads x → predicts {piece}" for piece in pieces]
    curve = unsure_curve(np.linspace(0, 3, len(pieces)), labels, step, MEASURES["entropy"])
    plotly_view(figure_in(curve["spec"], "en"), key="curve", alt="Entropy.", height=280)


def step_page() -> None:
    """The stepper, and charts that follow it."""
    draw_charts(*player_page())
    plotly_view(go.Figure(), key="empty", alt="Nothing.", height=100)


def player_page() -> tuple[StepperRun, int]:
    """The stepper alone."""
    st.title("Components")
    name = st.sidebar.radio("run", ["plain", "other", "hostile", "nothing"])
    shift = st.sidebar.number_input("shift", 0, 5, 0)
    guess = st.sidebar.toggle("guess")
    st.sidebar.text_input("typing")
    if st.sidebar.button("open dialog"):
        st.dialog("A dialog")(lambda: st.text("inside"))()
    if st.sidebar.button("jump to step 2"):
        st.session_state.revision = st.session_state.get("revision", 0) + 1
        st.session_state.wanted = 1
    run = example(name, shift)
    step = stepper(run, key="stepper", step=st.session_state.get("wanted", 0),
                   step_revision=st.session_state.get("revision", 0), covered=guess)  # fmt: skip
    st.session_state.runs = st.session_state.get("runs", 0) + 1
    st.text(f"python: {name} step {step}")
    st.text(f"runs: {st.session_state.runs}")
    return run, step


def other_page() -> None:
    st.title("Elsewhere")
    st.text(f"python: steps {st.session_state.get('stepper')}")


def figures_page() -> None:
    """Every kind of chart with hostile labels; the last click on the one with several panels."""
    for name, figure in all_figures().items():
        height = figure["layout"]["height"]
        click = plotly_view(
            figure, key=name, alt=name, height=height, caption="How to read this.", on_click=lambda: None
        )
        if click:
            st.text(f"{name}: curve {click.curve}, index {click.index}")


st.navigation([
    st.Page(other_page, title="Elsewhere", url_path="elsewhere", default=True),
    st.Page(step_page, title="Step", url_path="step"),
    st.Page(player_page, title="Player", url_path="player"),
    st.Page(figures_page, title="Figures", url_path="figures"),
    st.Page(flow_app.draw, title="Flow", url_path="flow"),
]).run()  # fmt: skip
