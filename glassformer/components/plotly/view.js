// @ts-check
// Draws one Plotly figure and keeps its node, its zoom and its place while the data change.

import { make } from "../common/dom.js";
import { openInPlace } from "../common/streamlit-page.js";
import { mount } from "../common/mount.js";
import { fittedHeight, isPresenting, typeScale, whatMakesRoom } from "../common/present.js";
import { DARK_COLORS } from "../common/served.js";
import { ask } from "../common/step.js";
import { say } from "../common/i18n.js";
import { leaveRoom, makeEdges } from "./edges.js";
import { placeInFilm, planned, wrapFilm } from "./film.js";
import { fitAllTicks, fitHeads, fitTitle } from "./fit.js";
import { makeKeyboard } from "./keyboard.js";
import { loadPlotly } from "./load.js";
import { follow, listen, markStep, moveMark, showMoment, steady, watch } from "./step-display.js";
import { decoded, parsedFigure, restoreGrid } from "./numbers.js";
import { paint, recolour, themeOf } from "./paint.js";
import { addTools, askedRanges, refreshTools } from "./tools.js";

/** @import { Create, PlotlyPayload, Show } from "../common/payloads.js" */
/** @import { Figure, Film, Plot, Plotly, Trace, View } from "./types.js" */

const PRESENTED_PART = 0.6;  // of the window, for a picture that fits itself to it
const MOST_GROWN = 1.3;
const SCROLL_BAR = 14, LEAST = 64;  // pixels; in less Plotly places its titles at infinity
const NO_TABLE = "none";  // as in `saved_run.py`
const CONFIG = { displaylogo: false, displayModeBar: false, showTips: false, responsive: false, showLink: false };

// ---------------------------------------------------------------- drawing

/**
 * Say a sentence instead of drawing.
 * @param {View} view @param {string} sentence
 */
function note(view, sentence) {
  view.note.textContent = sentence;
  view.note.hidden = false;
  delete view.root.dataset.waits;
  view.sheet.hidden = true;
  view.edges.point();
  refreshTools(view, false);
}

/**
 * Rebuild the pieces shown on hover, which Python does not send for every cell, and take logarithms for colours.
 * @param {Trace} trace @param {{ rows: string[], columns: string[], floor?: number } | undefined} cells
 */
function restoreCells(trace, cells) {
  if (trace.meta !== "cells" || !cells) return;
  const floor = trace.colorbar ? cells.floor : undefined;
  /** @type {ArrayLike<number>[] | null} */
  const numbers = floor ? decoded(trace.z) : null;
  trace.customdata = cells.rows.map((row, i) =>
    cells.columns.map((column, j) => (numbers ? [row, column, numbers[i][j]] : [row, column])));
  if (numbers) trace.z = numbers.map((line) => Array.from(line, (value) => Math.log10(Math.max(value, floor ?? 0))));
}

/**
 * The figure as it is drawn now: in the theme's colours, fitted to the room.
 * @param {View} view @param {Figure} sent @returns {Figure}
 */
function prepared(view, { data, layout }) {
  const theme = themeOf(view.root);
  const { scale } = view;
  // A picture whose parts have a width of their own is not squeezed: it scrolls, above a bar that takes some height.
  const width = Math.max(view.width, (layout.meta?.least_width ?? 0) / scale);
  const scrolls = width > view.width;
  const height = view.height - (scrolls ? SCROLL_BAR / scale : 0);
  view.root.style.overflow = scrolls ? "auto hidden" : "";
  const figure = theme.dark ? recolour({ data, layout }, DARK_COLORS) : { data, layout };
  for (const trace of figure.data) {
    restoreCells(trace, layout.meta?.cells);
    restoreGrid(trace, layout.meta?.grid);
  }
  view.ranges = askedRanges(layout);
  paint(figure.layout, theme, scale);
  markStep(view, figure.layout);
  Object.assign(figure.layout, { width, height, autosize: false });
  Object.assign(view.sheet.style, { width: `${width}px`, height: `${height}px`, transform: scale > 1 ? `scale(${scale})` : "" });
  if (layout.meta?.film) wrapFilm(figure, filmPlan(view, layout.meta.film), height);
  fitTitle(figure.layout, width, view.under.isLarge());
  fitHeads(figure.layout, width);
  leaveRoom(figure.layout);
  steady(view, figure.layout);
  // A finger that drags means to scroll the page, not to zoom the chart.
  if (matchMedia("(pointer: coarse)").matches) figure.layout.dragmode = false;
  view.ticks = layout.meta?.ticks;
  view.links = layout.meta?.links;
  view.labelled = fitAllTicks(figure.layout, view.ticks, view.plot, width, height);
  return figure;
}

/**
 * @param {View} view
 * @param {any} event Plotly's
 */
function report(view, event) {
  const point = event.points?.[0];
  if (!point || !view.data.clickable) return;
  const elsewhere = view.links?.[point.customdata];
  if (elsewhere) return openInPlace(elsewhere);
  view.clicks += 1;
  const index = point.pointNumber ?? point.pointIndex ?? [];
  view.setTriggerValue("click", {
    curve: point.curveNumber,
    index: placeInFilm(view.plot.layout, Array.isArray(index) ? index : [index]),
    customdata: typeof point.data.meta === "string" ? null : point.customdata ?? null,
    count: view.clicks,
    step: view.at,
  });
}

/**
 * Have Plotly look anew for what is clicked when the button is let go. It looks once in 50 ms, and a look while a button
 * is down finds nothing: soon after such a look a click would be lost.
 * @param {View} view
 */
function pressed(view) {
  const look = () => { if (view.listening && !view.gone) view.plotly?.Fx.unhover(view.plot); };
  addEventListener("pointerup", look, { capture: true, once: true });
}

/**
 * Whether another number of labels fits now, after a zoom or once the margins are known.
 * @param {View} view
 */
function labelsChanged(view) {
  if (!view.ticks || !view.plot._fullLayout) return false;
  const probe = Object.fromEntries(Object.keys(view.ticks).map((name) => [name, {}]));
  return fitAllTicks(probe, view.ticks, view.plot, 0, 0) !== view.labelled;
}

/**
 * Draw the newest data. One drawing at a time: Plotly breaks when a second starts before the first has ended.
 * @param {View} view
 */
async function draw(view) {
  view.wanted = true;
  if (view.drawing) return;
  view.drawing = true;
  while (view.wanted && !view.gone) {
    view.wanted = false;
    await drawOnce(view);
  }
  view.drawing = false;
  if (view.gone) view.plotly?.purge(view.plot);
  else moveMark(view);
}

/** @param {View} view */
async function drawOnce(view) {
  const scale = view.scale = typeScale(view.under.isLarge());
  view.room = roomOf(view);
  Object.assign(view, { width: Math.floor(view.root.clientWidth / scale), height: Math.floor(heightOf(view) / scale) });
  if (view.root.clientWidth < LEAST) return;  // closed, or a page that is still being laid out: the size observer calls again
  const figure = parsedFigure(view.data.figure);
  if (!figure.data?.length) return note(view, say("Nothing to draw yet."));
  try {
    view.plotly = await loadPlotly();
  } catch (error) {
    console.error(error);
    return note(view, say(
      "The chart could not be drawn because its script did not load. Reload the page to try again."));
  }
  if (view.gone || view.wanted) return;
  try {
    await react(view, view.plotly, figure);
    // The first drawing had to guess the margins.
    if (labelsChanged(view) && !view.wanted) await react(view, view.plotly, parsedFigure(view.data.figure));
  } catch (error) {
    console.error(error);
    note(view, say("This chart could not be drawn."));
  }
}

/** @param {View} view @param {Plotly} plotly @param {Figure} figure */
async function react(view, plotly, figure) {
  view.note.hidden = true;
  delete view.root.dataset.waits;
  view.sheet.hidden = false;
  const { data, layout } = prepared(view, figure);
  await plotly.react(view.plot, data, layout, CONFIG);
  view.kept = { sent: view.sent, room: view.room };
  view.plot.classList.toggle("gf-grounded", Boolean(layout.meta?.grounded));
  refreshTools(view, true);
  view.mapByKeyboard();
  view.edges.point();
  // A label that was open when the data changed would stay for good.
  if (!view.plot.matches(":hover")) plotly.Fx.unhover(view.plot);
  if (view.listening) return;
  view.listening = true;
  view.plot.on("plotly_click", (event) => report(view, event));
  view.plot.on("plotly_hover", (event) => view.edges.point(event.points?.[0]?.pointNumber));
  view.plot.on("plotly_unhover", () => view.edges.point());
  view.plot.on("plotly_relayout", () => {
    if (view.drawing) return;
    view.edges.point();
    refreshTools(view, true);
    if (labelsChanged(view)) draw(view);
  });
}

// ---------------------------------------------------------------- room

/**
 * The height of a chart: its own, which Python says, grown with the letters, or what the window has; in the large
 * view all there is.
 * @param {View} view
 */
function heightOf(view) {
  const { data, plot, root, under } = view, film = filmOf(view);
  if (film && root.clientWidth) return Math.round(filmPlan(view, film).height * typeScale(under.isLarge()));
  const own = Math.round(data.height * typeScale(under.isLarge()));
  if (!under.isLarge()) {
    if (!data.fit) return own;
    const shown = isPresenting() ? Math.ceil(PRESENTED_PART * window.innerHeight) : 0;  // the last row sees it as well
    const most = Math.max(shown, Math.round(own * MOST_GROWN));
    return Math.max(shown, fittedHeight(root, { own, least: data.fit, most }));
  }
  // A picture whose parts have a size of their own is not squeezed: it scrolls.
  const least = plot.layout?.meta?.fixed_height ? own : 200;
  return Math.max(least, Math.floor(root.clientHeight));
}

/** What a chart is drawn for. @param {View} view */
const roomOf = (view) => JSON.stringify([view.root.clientWidth, heightOf(view), typeScale(view.under.isLarge())]);

/** The film of the figure at hand, which decides its height. @param {View} view */
function filmOf(view) {
  const { figure } = view.data;
  if (view.film?.figure !== figure) {
    view.film = { figure, film: figure.includes('"film":') ? JSON.parse(figure).layout.meta?.film : undefined };
  }
  return view.film.film;
}

/** @param {View} view @param {Film} film */
function filmPlan({ root, under }, film) {
  const isLarge = under.isLarge(), scale = typeScale(isLarge);
  return planned(film, Math.floor(root.clientWidth / scale), isLarge ? root.clientHeight / scale : 0);
}

/** @param {View} view */
function placed(view) {
  view.root.style.height = view.under.isLarge() ? "" : `${heightOf(view)}px`;
  draw(view);
}

/** @param {View} view */
function resized(view) {
  requestAnimationFrame(() => {
    if (!view.gone && roomOf(view) !== view.room) placed(view);
  });
}

// ---------------------------------------------------------------- life

/** @type {Create<View>} */
function create(frame, gone) {
  const root = make("div", "gf-chart");
  const plot = /** @type {Plot} */ (/** @type {HTMLElement} */ (make("div", "gf-plot", "", { role: "img" })));
  const view = /** @type {View} */ (/** @type {Partial<View>} */ ({
    frame, root, plot, sheet: make("div", "gf-chart-sheet"), note: make("div", "gf-chart-note"),
    clicks: 0, follows: "", frames: null, kept: {}, at: null, inSight: true, wanted: false, drawing: false, gone: false, listening: false, ranges: {},
  }));
  view.sheet.append(plot);
  root.append(view.sheet, view.note);
  plot.addEventListener("pointerdown", () => pressed(view), true);
  view.edges = makeEdges(view);
  view.mapByKeyboard = makeKeyboard(view, (event) => report(view, event));
  addTools(view, () => placed(view));
  refreshTools(view, false);
  view.note.hidden = true;
  root.dataset.waits = say("Loading the chart…");
  watch(view, gone, placed);
  return view;
}

/** @type {Show<View, PlotlyPayload>} */
function show(view, { data: { payload }, setTriggerValue }) {
  Object.assign(view, { sent: payload, setTriggerValue });
  view.root.dataset.clickable = String(payload.clickable);
  view.under.table.hidden = payload.table === NO_TABLE;
  listen(view, payload, placed);
  showMoment(view, placed);
}

/** @param {View} view */
function close(view) {
  view.gone = true;
  ask(view, "", false);
  if (!view.drawing) view.plotly?.purge(view.plot);  // else once it is drawn: Plotly is never purged while it draws
}

export const component = mount({
  styles: "plotly", className: "gf-chart-frame", create, show, resized, close,
  watched: ({ root }) => [root, ...whatMakesRoom()], stepped: (view) => follow(view, placed), scaled: placed,
});
