// Draws one Plotly figure and keeps its node, its zoom and its place while the data change.
//
// Streamlit calls the default export again for every change of data or theme, and calls the function returned by the
// LAST call when the component leaves the page. But when a call is overtaken by the next one, the function it returned
// is called at once, on a page that still shows us; so a cleanup first looks whether we are really gone.

const VIEWS = new WeakMap();
const LOAD_FAILED = "The chart could not be drawn because its script did not load. Reload the page to try again.";
const DRAW_FAILED = "This chart could not be drawn.";
const NOTHING = "Nothing to draw yet.";
const TRANSPARENT = "rgba(0,0,0,0)";
const PIXELS_PER_LABEL = { xaxis: 15, yaxis: 15 };
const TOOLBAR_WIDTH = 100;

// ---------------------------------------------------------------- loading Plotly, once per browser page

function addScript(url) {
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = url;
    script.async = true;
    // A server may answer an unknown path with its HTML page: that loads, but brings no Plotly.
    script.onload = () => (window.Plotly ? resolve(window.Plotly) : reject(new Error(`no Plotly in ${url}`)));
    script.onerror = () => reject(new Error(`cannot load ${url}`));
    document.head.appendChild(script);
  });
}

function loadPlotly(path) {
  const loaded = (window.__glassformerPlotly ??= new Map());
  if (!loaded.has(path)) {
    // Pages live at /step, or at /step/ when someone typed the slash: then the app is one level up.
    const attempt = addScript(new URL(path, location.href).href)
      .catch(() => addScript(new URL(`../${path}`, location.href).href));
    attempt.catch(() => loaded.delete(path));  // the next chart may try again
    loaded.set(path, attempt);
  }
  return loaded.get(path);
}

// ---------------------------------------------------------------- theme

function themeOf(root) {
  return {
    dark: isDark(root),
    text: cssVariable(root, "--st-text-color", "#31333f"),
    background: cssVariable(root, "--st-background-color", "#ffffff"),
    panel: cssVariable(root, "--st-secondary-background-color", "#f0f2f6"),
    border: cssVariable(root, "--st-border-color", "rgba(128,128,128,0.3)"),
    font: cssVariable(root, "--st-font", "sans-serif"),
    headingFont: cssVariable(root, "--st-heading-font", "sans-serif"),
  };
}

/** Swap each of the charts' named colours for its dark twin, wherever it stands in the figure. */
function recolour(value, palette) {
  if (typeof value === "string") return palette[value] ?? value;
  if (Array.isArray(value)) {
    // Data columns are long and never hold colours: their first entry tells.
    if (value.length > 64 && typeof value[0] === "number") return value;
    return value.map((entry) => recolour(entry, palette));
  }
  if (value && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([name, entry]) => [name, recolour(entry, palette)]));
  }
  return value;
}

function paintAxes(layout, theme) {
  for (const name of Object.keys(layout).filter((entry) => /^[xy]axis\d*$/.test(entry))) {
    const axis = layout[name];
    axis.gridcolor ??= theme.border;
    axis.linecolor ??= theme.border;
    axis.zerolinecolor ??= theme.border;
    axis.tickcolor ??= theme.border;
  }
}

function paint(layout, theme) {
  layout.font = { size: 13, ...layout.font, family: theme.font, color: theme.text };
  layout.paper_bgcolor = TRANSPARENT;
  layout.plot_bgcolor = TRANSPARENT;
  layout.xaxis ??= {};
  layout.yaxis ??= {};
  paintAxes(layout, theme);
  if (layout.title) layout.title.font = { size: 17, ...layout.title.font, family: theme.headingFont };
  layout.hoverlabel = {
    align: "left",
    ...layout.hoverlabel,
    bgcolor: theme.panel,
    bordercolor: theme.border,
    font: { family: theme.font, color: theme.text, size: 13 },
  };
  layout.modebar = { bgcolor: TRANSPARENT, color: theme.text, activecolor: theme.text };
}

// ---------------------------------------------------------------- fitting a figure to its width

/** Plotly never wraps a title, so break it at spaces; its text is already escaped, so `<br>` is ours alone. */
function wrapped(text, width, size) {
  const room = Math.max(12, Math.floor(width / (size * 0.52)));
  const lines = [""];
  for (const word of text.split(" ")) {
    const shown = word.replace(/&#?\w+;/g, "x");
    const last = lines[lines.length - 1].replace(/&#?\w+;/g, "x");
    if (last && last.length + 1 + shown.length > room) lines.push(word);
    else lines[lines.length - 1] += (lines[lines.length - 1] ? " " : "") + word;
  }
  return lines;
}

function byFinger() {
  return matchMedia("(pointer: coarse)").matches;
}

function fitTitle(layout, width) {
  const title = layout.title;
  if (!title?.text) return;
  const size = title.font.size;
  // Without a mouse to call for it the toolbar is always there, beside the title.
  const lines = wrapped(title.text, width - 16 - (byFinger() ? TOOLBAR_WIDTH : 0), size);
  const note = title.subtitle?.text;
  const below = note ? wrapped(note, width - 16, 13) : [];
  title.text = lines.join("<br>");
  if (note) title.subtitle.text = below.join("<br>");
  // Plotly 4.1 places the first of several lines a cap height too high.
  if (lines.length > 1) title.pad = { ...title.pad, t: (title.pad?.t ?? 0) + 0.7 * size };
  const top = 26 + lines.length * size * 1.3 + below.length * 18;
  layout.margin = { ...layout.margin, t: Math.max(layout.margin?.t ?? 0, top) };
}

function nth(step) {
  const suffix = step % 100 > 10 && step % 100 < 14 ? "th" : ["th", "st", "nd", "rd"][step % 10] ?? "th";
  return `${step}${suffix}`;
}

/** Label as many positions as fit the part of the axis in view, and say so when some have no label. */
function fitTicks(axis, name, ticks, length, range) {
  const [first, last] = range ? [Math.min(...range), Math.max(...range)] : [-0.5, ticks.labels.length - 0.5];
  const room = Math.max(1, Math.floor(length / PIXELS_PER_LABEL[name]));
  const step = Math.max(1, Math.ceil((last - first) / room));
  const kept = ticks.labels.map((_, index) => index).filter((index) => index % step === 0);
  axis.tickmode = "array";
  axis.tickvals = kept;
  axis.ticktext = kept.map((index) => ticks.labels[index]);
  axis.title = { ...axis.title, text: step === 1 ? ticks.title : `${ticks.title} (every ${nth(step)} labelled)` };
  return step;
}

function fitAllTicks(layout, ticks, drawn, width, height) {
  let signature = "";
  for (const [name, spec] of Object.entries(ticks ?? {})) {
    const length = drawn?._fullLayout?.[name]?._length ?? (name === "xaxis" ? width - 150 : height - 150);
    signature += `${name}:${fitTicks(layout[name], name, spec, length, drawn?._fullLayout?.[name]?.range)};`;
  }
  return signature;
}

/** Rebuild the pieces shown on hover, which Python does not send for every cell. */
function restoreCells(trace, cells) {
  if (trace.meta !== "cells" || !cells) return;
  trace.customdata = cells.rows.map((row) => cells.columns.map((column) => [row, column]));
}

// ---------------------------------------------------------------- toolbar

const DOWN = "M12 3v10.2l3.6-3.6 1.4 1.4-6 6-6-6 1.4-1.4 3.6 3.6V3zM4 19h14v2H4z";

function download(view, format) {
  const theme = themeOf(view.root);
  const layout = structuredClone(view.plot.layout);
  layout.paper_bgcolor = theme.background;  // text in the theme's colour needs the theme's background
  const figure = { data: view.plot.data, layout };
  const { offsetWidth: width, offsetHeight: height } = view.plot;
  view.plotly.downloadImage(figure, { format, width, height, scale: format === "png" ? 2 : 1, filename: view.name });
}

function toolbar(view) {
  const button = (format) => ({
    name: `download-${format}`,
    title: `Download as ${format.toUpperCase()}`,
    icon: format === "png" ? view.plotly.Icons.camera : { width: 24, height: 24, path: DOWN },
    click: () => download(view, format),
  });
  return [["resetScale2d"], [button("svg"), button("png")]];
}

// ---------------------------------------------------------------- drawing

function say(view, sentence) {
  view.note.textContent = sentence;
  view.note.hidden = false;
  view.plot.style.display = "none";
}

function prepared(view, width) {
  const theme = themeOf(view.root);
  const { data, layout } = JSON.parse(view.data.figure);
  const cells = layout.meta?.cells;
  data.forEach((trace) => restoreCells(trace, cells));
  const figure = theme.dark ? recolour({ data, layout }, DARK_COLORS) : { data, layout };
  figure.data.forEach((trace) => restoreGrid(trace, layout.meta?.grid));
  paint(figure.layout, theme);
  Object.assign(figure.layout, { width, height: view.data.height, autosize: false });
  fitTitle(figure.layout, width);
  // A finger that drags means to scroll the page, not to zoom the chart.
  if (byFinger()) figure.layout.dragmode = false;
  view.ticks = layout.meta?.ticks;
  view.labelled = fitAllTicks(figure.layout, view.ticks, view.plot, width, view.data.height);
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
    customdata: ["cells", "grid", "grid-closed"].includes(point.data.meta) ? null : point.customdata ?? null,
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
}

async function drawOnce(view) {
  view.width = Math.floor(view.root.clientWidth);
  if (!view.width) return;  // in a closed tab or expander: the size observer calls again when it opens
  if (!JSON.parse(view.data.figure).data?.length) return say(view, NOTHING);
  try {
    view.plotly = await loadPlotly(view.data.script);
  } catch (error) {
    console.error(error);
    return say(view, LOAD_FAILED);
  }
  if (view.gone || view.wanted) return;
  try {
    await react(view);
    if (labelsChanged(view) && !view.wanted) await react(view);  // the first drawing had to guess the margins
  } catch (error) {
    console.error(error);
    say(view, DRAW_FAILED);
  }
}

async function react(view) {
  view.note.hidden = true;
  view.plot.style.display = "";
  view.buttons ??= toolbar(view);
  const config = {
    displaylogo: false, showTips: false, responsive: false, showLink: false, modeBarButtons: view.buttons,
  };
  const { data, layout } = prepared(view, view.width);
  await view.plotly.react(view.plot, data, layout, config);
  // A label that was open when the data changed would stay for good.
  if (!view.plot.matches(":hover")) view.plotly.Fx.unhover(view.plot);
  if (view.listening) return;
  view.listening = true;
  view.plot.on("plotly_click", (event) => report(view, event));
  view.plot.on("plotly_relayout", () => {
    if (!view.drawing && labelsChanged(view)) draw(view);
  });
}

// ---------------------------------------------------------------- life

function create(parentElement) {
  const root = make("div", "gf-root gf-chart");
  const plot = make("div", "gf-plot");
  const note = make("div", "gf-chart-note");
  note.hidden = true;
  root.append(plot, note);
  const caption = make("p", "gf-caption");
  parentElement.append(root, caption);
  const view = { root, plot, note, caption, clicks: 0, generation: 0 };
  view.sizes = new ResizeObserver(() => {
    if (Math.floor(root.clientWidth) !== view.width) requestAnimationFrame(() => view.gone || draw(view));
  });
  view.sizes.observe(root);
  return view;
}

/** Take the view down, unless it is still on the page or was drawn again since. */
function destroy(view, parentElement, generation) {
  if (parentElement.isConnected || generation !== view.generation) return;
  view.gone = true;
  view.sizes.disconnect();
  view.root.remove();
  view.caption.remove();
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
  Object.assign(view, { data, setTriggerValue, name: data.name });
  view.root.style.height = `${data.height}px`;
  view.root.dataset.clickable = data.clickable;
  view.caption.textContent = data.caption;
  view.caption.hidden = !data.caption;
  view.plot.setAttribute("role", "img");
  view.plot.setAttribute("aria-label", data.alt);
  markTheme(view.root);
  draw(view);
  return () => setTimeout(() => destroy(view, parentElement, generation));
}
