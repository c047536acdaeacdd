// The small buttons under a chart: reset the zoom, show the chart large, save its data and its picture.

// ---------------------------------------------------------------- saving

/** The figure as Python sent it, with the maps whole that Plotly could not read. */
function figureOf(view) {
  const figure = JSON.parse(view.data.figure);
  for (const trace of figure.data) if (trace.z?.there !== undefined) trace.z = decoded(trace.z);
  return figure;
}

/** A name for a file: the chart's key and its title, in letters and numbers of any script. */
function fileName(view) {
  const title = rawText(figureOf(view).layout.title?.text).toLowerCase().normalize("NFC");
  const words = title.replace(/[^\p{L}\p{M}\p{N}]+/gu, "-").replace(/^-|-$/g, "");
  return [view.data.name, Array.from(words).slice(0, 60).join("")].filter(Boolean).join("_");
}

function saveTable(view) {
  const { columns, rows } = tableOf(figureOf(view));
  saveFile(`${fileName(view)}.csv`, csvText([columns, ...rows]), "text/csv;charset=utf-8");
}

function savePicture(view, format) {
  const layout = structuredClone(view.plot.layout);
  layout.paper_bgcolor = themeOf(view.root).background;  // text in the theme's colour needs the theme's background
  const { offsetWidth: width, offsetHeight: height } = view.plot;
  const figure = { data: view.plot.data, layout };
  const scale = format === "png" ? 2 : 1;
  view.plotly.downloadImage(figure, { format, width, height, scale, filename: fileName(view) });
}

// ---------------------------------------------------------------- zoom

/** The range of each axis that Python asked for; null where Plotly chooses. Copies, as Plotly writes into its own. */
function askedRanges(layout) {
  const free = axisNames(layout).filter((name) => !layout[name].fixedrange);
  return Object.fromEntries(free.map((name) => [name, layout[name].range?.slice() ?? null]));
}

function isZoomed(view) {
  return Object.entries(view.ranges ?? {}).some(([name, asked]) => {
    const axis = view.plot._fullLayout?.[name];
    if (!axis?.range || axis.type === "category") return false;
    if (!asked) return axis.autorange === false;
    return axis.range.some((end, place) => Math.abs(end - asked[place]) > 1e-6 * Math.abs(asked[1] - asked[0]));
  });
}

function resetZoom(view) {
  const whole = Object.entries(view.ranges).map(([name, asked]) =>
    (asked ? [`${name}.range`, [...asked]] : [`${name}.autorange`, true]));
  view.plotly.relayout(view.plot, Object.fromEntries(whole));
}

// ---------------------------------------------------------------- the large view

function expand(view) {
  const { frame, root, foot, dialog } = view;
  if (dialog.open) return;
  frame.style.height = `${frame.offsetHeight}px`;  // the page behind keeps its place
  dialog.append(root, foot);
  dialog.showModal();
  placed(view);
}

/** Back into the page; called for Escape, the button and a click beside the dialog alike. */
function shrink(view) {
  const { frame, root, foot } = view;
  frame.prepend(root, foot);
  frame.style.height = "";
  placed(view);
  view.tools.expand.focus();  // where the reader came from
}

/** The height of a chart: what Python says, or all there is in the large view. */
function heightOf(view) {
  if (!view.dialog.open) return view.data.height;
  // A picture whose parts have a size of their own is not squeezed: it scrolls.
  const least = view.plot?.layout?.meta?.fixed_height ? view.data.height : 200;
  return Math.max(least, Math.floor(view.root.clientHeight));
}

function placed(view) {
  view.root.style.height = view.dialog.open ? "" : `${view.data.height}px`;
  view.tools.expand.hidden = view.dialog.open;
  draw(view);
}

function makeDialog(view) {
  const dialog = make("dialog", "gf-chart-dialog");
  const close = make("button", "gf-close", "✕");
  close.type = "button";
  close.title = "Close (Esc)";
  close.setAttribute("aria-label", "Close");
  close.onclick = () => dialog.close();
  dialog.append(close);
  dialog.onclick = (event) => event.target === dialog && dialog.close();
  dialog.addEventListener("close", () => shrink(view));
  return dialog;
}

// ---------------------------------------------------------------- the buttons

const TOOLS = {
  reset: ["Reset zoom", "Show the whole chart again", resetZoom],
  expand: ["Expand", "Show this chart large", expand],
  csv: ["CSV", "Download the data as CSV", saveTable],
  svg: ["SVG", "Download the picture as SVG", (view) => savePicture(view, "svg")],
  png: ["PNG", "Download the picture as PNG", (view) => savePicture(view, "png")],
};

/** The buttons by name, in a group of their own: `{group, reset, expand, ...}`. */
function makeTools(view) {
  const group = make("div", "gf-tools");
  group.setAttribute("role", "group");
  const made = Object.entries(TOOLS).map(([name, [label, title, act]]) => {
    const button = make("button", "gf-tool", label);
    button.type = "button";
    button.title = title;
    button.setAttribute("aria-label", title);
    button.onclick = () => act(view);
    group.append(button);
    return [name, button];
  });
  return { group, ...Object.fromEntries(made) };
}

/** Show what can be done now: nothing without a drawing, and a reset only after a zoom. */
function refreshTools(view, drawn) {
  view.tools.group.hidden = !drawn;
  view.tools.reset.hidden = !drawn || !isZoomed(view);
}
