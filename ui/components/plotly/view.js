// Draws one Plotly figure and keeps its node, its zoom and its place while the data change.
//
// Streamlit calls the default export again for every change of data or theme, and calls the function returned by the
// LAST call when the component leaves the page. But when a call is overtaken by the next one, the function it returned
// is called at once, on a page that still shows us; so a cleanup first looks whether we are really gone.

const VIEWS = new WeakMap();
const LOAD_FAILED = "The chart could not be drawn because its script did not load. Reload the page to try again.";
const DRAW_FAILED = "This chart could not be drawn.";
const CONFIG = { displaylogo: false, displayModeBar: false, showTips: false, responsive: false, showLink: false };
const NOTHING = "Nothing to draw yet.";

// ---------------------------------------------------------------- drawing

function say(view, sentence) {
  view.note.textContent = sentence;
  view.note.hidden = false;
  view.plot.style.display = "none";
  refreshTools(view, false);
}

function byFinger() {
  return matchMedia("(pointer: coarse)").matches;
}

/** Rebuild the pieces shown on hover, which Python does not send for every cell, and take logarithms for colours. */
function restoreCells(trace, cells) {
  if (trace.meta !== "cells" || !cells) return;
  const numbers = cells.floor && trace.colorbar ? decoded(trace.z) : null;
  trace.customdata = cells.rows.map((row, i) =>
    cells.columns.map((column, j) => (numbers ? [row, column, numbers[i][j]] : [row, column])));
  if (numbers) trace.z = numbers.map((line) => Array.from(line, (value) => Math.log10(Math.max(value, cells.floor))));
}

/** The figure as it is drawn now: in the theme's colours, fitted to the room. */
function prepared(view, { data, layout }) {
  const theme = themeOf(view.root);
  const { width, height } = view;
  const figure = theme.dark ? recolour({ data, layout }, DARK_COLORS) : { data, layout };
  for (const trace of figure.data) {
    restoreCells(trace, layout.meta?.cells);
    restoreGrid(trace, layout.meta?.grid);
  }
  view.ranges = askedRanges(layout);
  markStep(view, figure.layout);
  paint(figure.layout, theme);
  Object.assign(figure.layout, { width, height, autosize: false });
  fitTitle(figure.layout, width, view.dialog.open);
  // A finger that drags means to scroll the page, not to zoom the chart.
  if (byFinger()) figure.layout.dragmode = false;
  view.ticks = layout.meta?.ticks;
  view.labelled = fitAllTicks(figure.layout, view.ticks, view.plot, width, height);
  return figure;
}

function report(view, event) {
  const point = event.points?.[0];
  if (!point || !view.data.clickable) return;
  view.clicks += 1;
  const index = point.pointNumber ?? point.pointIndex ?? [];
  view.setTriggerValue("click", {
    curve: point.curveNumber,
    x: point.x,
    y: point.y,
    index: Array.isArray(index) ? index : [index],
    customdata: typeof point.data.meta === "string" ? null : point.customdata ?? null,
    count: view.clicks,
  });
}

/** Whether another number of labels fits now, after a zoom or once the margins are known. */
function labelsChanged(view) {
  if (!view.ticks || !view.plot._fullLayout) return false;
  const probe = Object.fromEntries(Object.keys(view.ticks).map((name) => [name, {}]));
  return fitAllTicks(probe, view.ticks, view.plot, 0, 0) !== view.labelled;
}

/** Draw the newest data. One drawing at a time: Plotly breaks when a second starts before the first has ended. */
async function draw(view) {
  view.wanted = true;
  if (view.drawing) return;
  view.drawing = true;
  while (view.wanted && !view.gone) {
    view.wanted = false;
    await drawOnce(view);
  }
  view.drawing = false;
  if (view.gone) discard(view);
  else moveMark(view);
}

async function drawOnce(view) {
  view.width = Math.floor(view.root.clientWidth);
  view.height = heightOf(view);
  if (!view.width) return;  // in a closed tab or expander: the size observer calls again when it opens
  const figure = figureOf(view);
  if (!figure.data?.length) return say(view, NOTHING);
  try {
    view.plotly = await loadPlotly(view.data.script);
  } catch (error) {
    console.error(error);
    return say(view, LOAD_FAILED);
  }
  if (view.gone || view.wanted) return;
  try {
    await react(view, figure);
    if (labelsChanged(view) && !view.wanted) await react(view, figureOf(view));  // the first drawing had to guess the margins
  } catch (error) {
    console.error(error);
    say(view, DRAW_FAILED);
  }
}

async function react(view, figure) {
  view.note.hidden = true;
  view.plot.style.display = "";
  const { data, layout } = prepared(view, figure);
  await view.plotly.react(view.plot, data, layout, CONFIG);
  refreshTools(view, true);
  // A label that was open when the data changed would stay for good.
  if (!view.plot.matches(":hover")) view.plotly.Fx.unhover(view.plot);
  if (view.listening) return;
  view.listening = true;
  view.plot.on("plotly_click", (event) => report(view, event));
  view.plot.on("plotly_relayout", () => {
    if (view.drawing) return;
    refreshTools(view, true);
    if (labelsChanged(view)) draw(view);
  });
}

// ---------------------------------------------------------------- life

function create(parentElement) {
  dress(parentElement);
  const frame = make("div", "gf-root gf-chart-frame");
  const root = make("div", "gf-chart");
  const plot = make("div", "gf-plot");
  const note = make("div", "gf-chart-note");
  const foot = make("div", "gf-chart-foot");
  const caption = make("p", "gf-chart-caption");
  const view = { frame, root, plot, note, foot, caption, clicks: 0, generation: 0 };
  view.tools = makeTools(view);
  view.dialog = makeDialog(view);
  root.append(plot, note);
  foot.append(view.tools.group, caption);
  frame.append(root, foot, view.dialog);
  parentElement.append(frame);
  refreshTools(view, false);
  note.hidden = true;
  plot.setAttribute("role", "img");
  view.sizes = new ResizeObserver(() => requestAnimationFrame(() => {
    if (!view.gone && (Math.floor(root.clientWidth) !== view.width || heightOf(view) !== view.height)) draw(view);
  }));
  view.sizes.observe(root);
  view.onStep = () => moveMark(view);
  document.addEventListener(STEP_EVENT, view.onStep);
  return view;
}

/** Take the view down, unless it is still on the page or was drawn again since. */
function destroy(view, parentElement, generation) {
  if (parentElement.isConnected || generation !== view.generation) return;
  view.gone = true;
  view.sizes.disconnect();
  document.removeEventListener(STEP_EVENT, view.onStep);
  view.frame.remove();
  VIEWS.delete(parentElement);
  if (!view.drawing) discard(view);
}

/** Free what Plotly holds; never while it draws. */
function discard(view) {
  if (view.plotly) view.plotly.purge(view.plot);
}

export default function ({ data: { payload: data }, parentElement, setTriggerValue }) {
  if (!VIEWS.has(parentElement)) VIEWS.set(parentElement, create(parentElement));
  const view = VIEWS.get(parentElement);
  const generation = (view.generation += 1);
  Object.assign(view, { data, setTriggerValue });
  view.root.dataset.clickable = data.clickable;
  view.caption.textContent = data.caption;
  view.caption.hidden = !data.caption;
  view.plot.setAttribute("aria-label", data.alt);
  for (const element of [view.dialog, view.tools.group]) element.setAttribute("aria-label", data.alt);
  markTheme(view.frame);
  placed(view);
  return () => setTimeout(() => destroy(view, parentElement, generation));
}
