// Lines from queries to keys, one colour a head. Pointing, pinning, hiding heads and the threshold all happen here;
// Python is told only which piece was pinned.
//
// Streamlit calls the default export again for every change of data or theme, and calls the function returned by the
// LAST call when the component leaves the page. But when a call is overtaken by the next one, the function it returned
// is called at once, on a page that still shows us; so a cleanup first looks whether we are really gone.

const FLOWS = new WeakMap();
const KEPT = { threshold: 0.05, hidden: [], head: null };  // on this browser page, also while another page of the app is shown
const ROOM = 560;
const LISTED = 5;
const HINT = "Point at a piece to see its lines alone, click it to pin them. Keys: arrows move, Enter pins, Escape lets go.";
const OTHER = { query: "key", key: "query" };

// ---------------------------------------------------------------- the parts, made once

function textButton(className, text, title, act) {
  const button = make("button", `gf-flow-button ${className}`, text);
  button.type = "button";
  button.title = title;
  button.addEventListener("click", act);
  return button;
}

function headBar(view) {
  const bar = make("div", "gf-flow-heads");
  bar.setAttribute("role", "group");
  bar.setAttribute("aria-label", "Heads shown");
  view.chips = make("div", "gf-flow-chips");
  const all = textButton("gf-flow-all", "All", "Show all heads", () => hide(view, []));
  const none = textButton("gf-flow-none", "None", "Hide all heads", () => hide(view, everyHead(view)));
  bar.append(make("span", "gf-flow-label", "Heads"), view.chips, all, none);
  return bar;
}

function thresholdBar(view) {
  const label = make("label", "gf-flow-threshold");
  view.slider = make("input", "gf-flow-slider");
  Object.assign(view.slider, { type: "range", min: "0", max: "0.5", step: "0.01" });
  view.slider.setAttribute("aria-label", "Hide lines below this weight");
  view.cutText = make("span", "gf-flow-cut");
  view.slider.addEventListener("input", () => {
    KEPT.threshold = Number(view.slider.value);
    update(view);
  });
  label.append(make("span", "gf-flow-label", "Hide below"), view.slider, view.cutText);
  return label;
}

function actionBar(view) {
  const bar = make("div", "gf-flow-actions");
  view.follow = textButton("gf-flow-follow", "Follow the step", "Pin the row of the current step, at every step", () => {
    view.following = !view.following;
    if (view.following) view.pin = null;
    update(view);
    tell(view);
  });
  view.expand = textButton("gf-flow-expand", "Expand", "Show it as large as the window", () => toggleLarge(view));
  bar.append(
    view.follow,
    textButton("", "CSV", "Save the lines that are drawn as a table", () => saveCsv(view)),
    textButton("", "SVG", "Save the picture as SVG", () => saveSvg(view)),
    textButton("", "PNG", "Save the picture as PNG", () => savePng(view)),
    view.expand,
  );
  return bar;
}

function column(view, side) {
  const list = make("div", `gf-flow-column gf-flow-${side}`);
  list.setAttribute("role", "listbox");
  list.addEventListener("pointerover", (event) => event.pointerType === "mouse" && point(view, side, indexOf(event)));
  list.addEventListener("pointerleave", () => point(view, side, null));
  list.addEventListener("focusin", (event) => onFocus(view, side, event));
  list.addEventListener("focusout", () => point(view, side, null));
  list.addEventListener("click", (event) => {
    const index = indexOf(event);
    if (index !== null) togglePin(view, side, index);
  });
  list.addEventListener("keydown", (event) => onKey(view, side, event));
  return list;
}

function stage(view) {
  const heads = make("div", "gf-flow-axes");
  view.axes = { query: make("div", "gf-flow-axis"), key: make("div", "gf-flow-axis") };
  heads.append(view.axes.query, make("div"), view.axes.key);
  view.scroll = make("div", "gf-flow-scroll");
  view.stage = make("div", "gf-flow-stage");
  view.lists = { query: column(view, "query"), key: column(view, "key") };
  view.middle = make("div", "gf-flow-middle");
  view.canvas = make("canvas", "gf-flow-canvas");
  view.canvas.setAttribute("role", "img");
  view.middle.append(view.canvas);
  view.stage.append(view.lists.query, view.middle, view.lists.key);
  view.scroll.append(view.stage);
  view.scroll.addEventListener("scroll", () => paint(view), { passive: true });
  return [heads, view.scroll];
}

function create(parentElement) {
  dress(parentElement);
  const root = make("div", "gf-root gf-flow");
  const view = { root, parentElement, generation: 0, sent: 0, pin: null, pointed: null, following: false };
  view.mount = Math.random().toString(36).slice(2);
  view.body = make("div", "gf-flow-body");
  view.title = make("div", "gf-flow-title");
  view.readout = make("p", "gf-flow-readout");
  view.readout.setAttribute("aria-live", "polite");
  view.count = make("p", "gf-flow-count");
  view.caption = make("p", "gf-flow-caption");
  const head = make("div", "gf-flow-head");
  head.append(view.title, actionBar(view));
  const tools = make("div", "gf-flow-tools");
  tools.append(headBar(view), thresholdBar(view));
  view.body.append(head, tools, view.readout, ...stage(view), view.count);
  view.dialog = make("dialog", "gf-flow-dialog");
  view.dialog.addEventListener("close", () => shrink(view));
  root.append(view.body, view.caption, view.dialog);
  parentElement.appendChild(root);
  view.sizes = new ResizeObserver(() => view.root.clientWidth && view.width !== view.scroll.clientWidth && layOut(view));
  view.sizes.observe(root);
  view.sizes.observe(view.scroll);
  document.fonts.ready.then(() => view.data && layOut(view));
  view.onStep = () => onStep(view);
  document.addEventListener(STEP_EVENT, view.onStep);
  return view;
}

/** Take the view down, unless it is still on the page or was drawn again since. */
function destroy(view, generation) {
  if (view.parentElement.isConnected || generation !== view.generation) return;
  view.sizes.disconnect();
  document.removeEventListener(STEP_EVENT, view.onStep);
  view.root.remove();
  FLOWS.delete(view.parentElement);
}

// ---------------------------------------------------------------- what the reader chose

function everyHead(view) {
  return Array.from({ length: view.model.heads }, (_, head) => head);
}

function hide(view, heads) {
  KEPT.hidden = heads;
  update(view);
}

function toggleHead(view, head, alone) {
  const hidden = new Set(KEPT.hidden);
  if (alone) return hide(view, everyHead(view).filter((other) => other !== head));
  if (hidden.has(head)) hidden.delete(head);
  else hidden.add(head);
  hide(view, [...hidden]);
}

function indexOf(event) {
  const token = event.target.closest(".gf-flow-token");
  return token ? Number(token.dataset.index) : null;
}

/** What is pointed at, by mouse or by keyboard. */
function point(view, side, index) {
  if (index === null && view.pointed?.side !== side) return;
  if (view.pointed?.side === side && view.pointed.index === index) return;
  view.pointed = index === null ? null : { side, index };
  update(view);
}

/** The row of the current step; null where rows are no steps, or if it is hidden. */
function stepRow(view) {
  return view.data.row_of_step[currentStep(view.data.name)] ?? null;
}

/** Follow a step that Python need not hear of to draw it. */
function onStep(view) {
  if (!view.rows) return;
  if (view.following) update(view);
  else markStep(view);
  reveal(view);
}

function pinned(view) {
  const now = stepRow(view);
  if (view.following && now !== null) return { side: "query", index: now };
  return view.pin;
}

function same(one, other) {
  return one?.side === other?.side && one?.index === other?.index;
}

function togglePin(view, side, index) {
  const wanted = { side, index };
  const letGo = same(pinned(view), wanted);
  view.following = false;
  view.pin = letGo ? null : wanted;
  if (letGo) view.pointed = null;
  update(view);
  tell(view);
}

/** Tell Python what is pinned; it says in the next data what it has heard. */
function tell(view) {
  if (!view.data.reports) return;
  view.sent += 1;
  view.stamp = `${view.mount} ${view.sent}`;
  view.setStateValue("pin", { side: view.pin?.side ?? null, index: view.pin?.index ?? null, stamp: view.stamp });
}

/** One piece of each column is reached with Tab, the one that had the focus last. */
function onFocus(view, side, event) {
  const index = indexOf(event);
  if (index === null) return;
  view.tokens[side].forEach((made, place) => { made.tabIndex = place === index ? 0 : -1; });
  if (event.target.matches(":focus-visible")) point(view, side, index);
}

const MOVES = {
  ArrowUp: (index) => index - 1,
  ArrowDown: (index) => index + 1,
  PageUp: (index) => index - 10,
  PageDown: (index) => index + 10,
  Home: () => 0,
  End: () => Infinity,
};

function onKey(view, side, event) {
  const index = indexOf(event);
  if (index === null || event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.key === "Enter" || event.key === " ") togglePin(view, side, index);
  else if (event.key === "Escape" && pinned(view)) letGo(view);
  else if (event.key === "ArrowLeft" && side === "key") focusToken(view, "query", nearest(view, side, index));
  else if (event.key === "ArrowRight" && side === "query") focusToken(view, "key", nearest(view, side, index));
  else if (MOVES[event.key]) focusToken(view, side, MOVES[event.key](index));
  else if (!event.key.startsWith("Arrow")) return;
  event.preventDefault();
  event.stopPropagation();
}

function letGo(view) {
  view.pin = null;
  view.following = false;
  update(view);
  tell(view);
}

function nearest(view, side, index) {
  const other = view.rows[OTHER[side]];
  return Math.round((rowCentre(view.rows, side, index) - other.start) / other.pitch - 0.5);
}

function focusToken(view, side, index) {
  const tokens = view.tokens[side];
  tokens[Math.max(0, Math.min(index, tokens.length - 1))]?.focus();
}

// ---------------------------------------------------------------- building for new data

function buildChips(view) {
  const { heads } = view.model;
  if (view.chips.childElementCount === heads) return;
  view.chips.replaceChildren(...everyHead(view).map((head) => {
    const chip = make("button", "gf-flow-chip");
    chip.type = "button";
    chip.append(make("span", "gf-flow-swatch"), make("span", "", String(head + 1)));
    chip.title = `Head ${head + 1}: click to hide or show it, double-click (or Shift+Enter) to see it alone`;
    chip.addEventListener("click", (event) => toggleHead(view, head, event.shiftKey));
    chip.addEventListener("dblclick", () => toggleHead(view, head, true));
    return chip;
  }));
}

function token(side, text, index) {
  const made = make("div", "gf-flow-token");
  made.setAttribute("role", "option");
  made.tabIndex = index ? -1 : 0;
  made.dataset.index = String(index);
  made.append(pieceText(text, "gf-flow-piece"), make("span", "gf-flow-value"));
  return made;
}

function buildColumns(view) {
  const { data } = view;
  const signature = JSON.stringify([data.queries, data.keys]);
  if (signature === view.signature) return;
  view.signature = signature;
  const focused = view.root.getRootNode().activeElement;
  const at = focused?.dataset?.index !== undefined && view.pointed ? { ...view.pointed } : null;
  view.tokens = {};
  for (const [side, texts] of [["query", data.queries], ["key", data.keys]]) {
    view.tokens[side] = texts.map((text, index) => token(side, text, index));
    view.lists[side].replaceChildren(...view.tokens[side]);
  }
  if (at) focusToken(view, at.side, at.index);
}

/** Take what Python says: a head or a pinned piece that is news; else the reader's own choice stays. */
function adopt(view, data) {
  const fresh = !view.data || data.sentence !== view.data.sentence;
  if (fresh) Object.assign(view, { pin: null, pointed: null });
  const heard = view.sent === 0 || data.heard === view.stamp;
  if (fresh || (heard && !same(data.pin, view.data.pin))) {
    view.pin = data.pin;
    if (data.pin) view.following = false;
  }
  Object.assign(view, { data, model: decode(data) });
  if (data.head !== KEPT.head) {
    KEPT.head = data.head;
    KEPT.hidden = data.head === null ? [] : everyHead(view).filter((head) => head !== data.head);
  }
  const fits = (place) => place && place.index < (place.side === "query" ? data.queries : data.keys).length;
  if (!fits(view.pin)) view.pin = null;
  if (!fits(view.pointed)) view.pointed = null;
}

// ---------------------------------------------------------------- layout

function columnWidths(view, width) {
  const context = view.canvas.getContext("2d");
  context.font = `${view.textSize}px ${cssVariable(view.root, "--st-code-font", "monospace")}`;
  const most = Math.floor(width * (width < 480 ? 0.34 : 0.32));
  const needed = (texts) => Math.ceil(Math.max(0, ...texts.map((text) => context.measureText(text).width))) + 66;
  const { query, key } = view.axes;
  const heading = (axis) => Math.min(150, axis.textContent.length * 7);
  return [[view.data.queries, query], [view.data.keys, key]].map(
    ([texts, axis]) => Math.min(most, Math.max(needed(texts), heading(axis))));
}

function layOut(view) {
  view.width = view.scroll.clientWidth;
  if (!view.width) return;  // in a closed tab: the size observer calls again when it opens
  const room = view.dialog.open ? Math.max(240, window.innerHeight - 240) : ROOM;
  // On a wide page few rows would be a flat band of nearly level lines.
  const widest = view.dialog.open ? 56 : Math.max(36, Math.min(52, Math.round(view.width / 26)));
  view.rows = placeRows(view.model, room, widest);
  view.textSize = view.rows.pitch >= 40 ? 17 : view.rows.pitch >= 26 ? 14 : view.rows.pitch >= 20 ? 13 : view.rows.pitch >= 17 ? 12 : 11;
  const [left, right] = columnWidths(view, view.width);
  view.spans = { left, right, middle: view.width - left - right };
  const template = `${left}px minmax(0, 1fr) ${right}px`;
  view.body.style.setProperty("--columns", template);
  view.body.style.setProperty("--size", `${view.textSize}px`);
  view.stage.style.height = `${view.rows.height}px`;
  view.scroll.style.maxHeight = `${Math.max(room, view.dialog.open ? 0 : 600)}px`;
  for (const side of ["query", "key"]) {
    const tall = Math.min(view.rows[side].pitch, view.textSize + 16) - 1;
    view.tokens[side].forEach((made, index) => {
      made.style.top = `${rowCentre(view.rows, side, index) - tall / 2}px`;
      made.style.height = `${tall}px`;
    });
  }
  update(view);
}

// ---------------------------------------------------------------- drawing

/** Which piece's lines are drawn, and which pair is looked at beside a pinned piece. */
function look(view) {
  const pin = pinned(view);
  const { pointed } = view;
  const beside = pin && pointed && pointed.side !== pin.side;
  view.focus = beside ? pin : pointed ?? pin;
  view.pair = null;
  if (!beside) return;
  view.pair = pin.side === "query" ? { query: pin.index, key: pointed.index } : { query: pointed.index, key: pin.index };
}

function update(view) {
  if (!view.rows) return;
  const started = performance.now();
  const hidden = new Set(KEPT.hidden);
  view.shown = everyHead(view).filter((head) => !hidden.has(head));
  look(view);
  view.chosen = chooseLines(view.model, view.shown, KEPT.threshold, view.focus);
  view.painted = scene(view, view.spans.middle, view.rows);
  drawChips(view, hidden);
  drawTokens(view);
  drawReadout(view);
  drawCount(view);
  paint(view);
  const { dataset } = view.root;
  dataset.lines = String(view.chosen.lines.length);
  dataset.focus = view.focus ? `${view.focus.side} ${view.focus.index}` : "";
  const pin = pinned(view);
  dataset.pinned = pin ? `${pin.side} ${pin.index}` : "";
  dataset.heads = view.shown.map((head) => head + 1).join(" ");
  dataset.drawMs = (performance.now() - started).toFixed(1);
}

function colourOf(view, head) {
  const { colours } = view.data;
  return colours[head % colours.length][view.root.dataset.theme === "dark" ? 1 : 0];
}

function drawChips(view, hidden) {
  Array.from(view.chips.children).forEach((chip, head) => {
    chip.style.setProperty("--head", colourOf(view, head));
    chip.setAttribute("aria-pressed", String(!hidden.has(head)));
    chip.setAttribute("aria-label", `Head ${head + 1}`);
  });
  view.slider.value = String(KEPT.threshold);
  view.cutText.textContent = KEPT.threshold.toFixed(2);
  view.slider.setAttribute("aria-valuetext", `weight ${KEPT.threshold.toFixed(2)}`);
  const stepped = view.data.row_of_step.length > 0;
  view.follow.hidden = !stepped;
  view.follow.setAttribute("aria-pressed", String(view.following && stepped));
}

function markStep(view) {
  const now = stepRow(view);
  view.tokens.query.forEach((made, index) => made.classList.toggle("gf-flow-now", index === now));
}

function drawTokens(view) {
  const { focus } = view;
  const means = focus ? meansOf(view.model, view.shown, focus) : null;
  const pin = pinned(view);
  for (const side of ["query", "key"]) {
    const other = focus && focus.side !== side;
    view.tokens[side].forEach((made, index) => {
      const mean = other ? means[index] : undefined;
      const closed = other && mean === null && view.shown.length > 0;
      const isPinned = pin?.side === side && pin.index === index;
      made.classList.toggle("gf-flow-focus", focus?.side === side && focus.index === index);
      made.classList.toggle("gf-flow-pinned", isPinned);
      made.classList.toggle("gf-flow-closed", Boolean(closed));
      made.style.setProperty("--weight", Math.sqrt(mean ?? 0).toFixed(3));
      made.lastElementChild.textContent = !other || mean === undefined ? "" : closed ? "masked" : mean === null ? "" : formatWeight(mean);
      made.setAttribute("aria-selected", String(isPinned));
      made.title = `${view.data[side === "query" ? "queries" : "keys"][index]}${closed ? " (masked: it may not be looked at)" : ""}`;
    });
  }
  markStep(view);
}

function swatched(view, head, ...rest) {
  const item = make("span", "gf-flow-item");
  const swatch = make("span", "gf-flow-swatch");
  swatch.style.setProperty("--head", colourOf(view, head));
  item.append(swatch, ...rest);
  return item;
}

function pieceOf(view, side, index) {
  return pieceText(view.data[side === "query" ? "queries" : "keys"][index], "gf-flow-quoted");
}

function drawReadout(view) {
  const { focus, pair, shown, model } = view;
  if (!focus) return void view.readout.replaceChildren(shown.length ? HINT : "No head is shown. Press a head, or All.");
  const begin = make("span", "gf-flow-begin");
  if (pair) {
    const closed = !isOpen(model, pair.query, pair.key);
    begin.append(pieceOf(view, "query", pair.query), closed ? " may not look at " : " looks at ", pieceOf(view, "key", pair.key));
    const each = shown.map((head) => swatched(
      view, head, `head ${head + 1}`, make("b", "", weightOf(model, head, pair.query, pair.key).toFixed(3))));
    return void view.readout.replaceChildren(begin, ...(closed ? ["It is masked."] : each));
  }
  const best = view.chosen.lines.slice(-LISTED).reverse();
  const items = best.map((line) => swatched(
    view, line.head, `head ${line.head + 1}`, pieceOf(view, OTHER[focus.side], line[OTHER[focus.side]]),
    make("b", "", line.weight.toFixed(3))));
  const says = focus.side === "query" ? " looks most at" : " is looked at most by";
  begin.append(pieceOf(view, focus.side, focus.index), items.length ? says : " has no line: all its weights are below the threshold");
  view.readout.replaceChildren(begin, ...items);
}

function percent(share) {
  if (share > 0 && share < 0.01) return "under 1%";
  return share > 0.99 && share < 1 ? "over 99%" : `${Math.round(share * 100)}%`;
}

function drawCount(view) {
  const { lines, all, cut, crowded, share } = view.chosen;
  const number = (value) => value.toLocaleString("en");
  const said = [`${number(lines.length)} of ${number(all)} lines drawn; they hold ${percent(share)} of the weight.`];
  if (crowded) said.push(`More than ${number(MOST_LINES)} lines cannot be told apart, so weights below ${cut.toFixed(4)} are left out.`);
  else if (lines.length < all) said.push(cut ? `Weights below ${cut.toFixed(2)} have no line.` : "Weights that round to 0 have no line.");
  if (view.focus) said.push("The number beside a piece is the mean weight of the shown heads, the blocks are the heads.");
  view.note = said.slice(0, 2).join(" ");
  if (view.model.levels <= 255) said.push("Weights are rounded to 1/255.");
  view.count.textContent = all ? said.join(" ") : "";
}

function appearance(view) {
  const dark = view.root.dataset.theme === "dark";
  const side = (name) => cssVariable(view.root, `--gf-${name}-text`, "#333333");
  const plain = cssVariable(view.root, "--st-text-color", "#31333f");
  const sideOf = (name) => (name === "neutral" ? plain : side(name));
  return {
    colours: everyHead(view).map((head) => colourOf(view, head)),
    faint: dark ? "#27313d" : "#ebe8df",
    background: cssVariable(view.root, "--st-background-color", "#ffffff"),
    text: plain, query: sideOf(view.data.query_side), key: sideOf(view.data.key_side),
    line: view.focus ? 2.2 : 1.6, size: view.textSize,
  };
}

/** Only what is in view is painted: a canvas as tall as 512 rows would take a hundred megabytes. */
function paint(view) {
  if (!view.painted) return;
  const height = Math.min(view.rows.height, view.scroll.clientHeight);
  const [width, scale] = [view.spans.middle, Math.min(2, window.devicePixelRatio || 1)];
  const { canvas } = view;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  paintCanvas(context, view.painted, appearance(view), view.scroll.scrollTop, height);
}

/** Bring the row of the current step into view when the step changes. */
function reveal(view) {
  const now = stepRow(view);
  if (now === null || now === view.revealed) return;
  view.revealed = now;
  const y = rowCentre(view.rows, "query", now);
  const { scrollTop: top, clientHeight: height } = view.scroll;
  if (y < top + 20 || y > top + height - 20) view.scroll.scrollTop = y - height / 2;
}

// ---------------------------------------------------------------- saving, and the large view

function titleOf(view) {
  return `${view.data.kind}, ${view.data.layer}`;
}

/** The picture and the table are of what stays: the pinned piece, not the one that the mouse happens to be on. */
function steady(view, act) {
  const pointed = view.pointed;
  view.pointed = null;
  update(view);
  act();
  view.pointed = pointed;
  update(view);
}

function saveCsv(view) {
  const { data } = view;
  const head = ["layer", "head", "query number", "query piece", "key number", "key piece", "weight"];
  steady(view, () => {
    const rows = [...view.chosen.lines].sort((a, b) => a.head - b.head || a.query - b.query || a.key - b.key).map((line) => [
      data.layer, line.head + 1, line.query + 1, data.queries[line.query], line.key + 1, data.keys[line.key],
      Number(line.weight.toFixed(5)),
    ]);
    saveFile(`${data.name}.csv`, csvText([head, ...rows]), "text/csv;charset=utf-8");
  });
}

function picture(view) {
  const cut = (text) => {
    const letters = Array.from(visible(text));
    return letters.length > 28 ? `${letters.slice(0, 27).join("")}…` : letters.join("");
  };
  const context = view.canvas.getContext("2d");
  context.font = `${view.textSize}px monospace`;
  const [queries, keys] = [view.data.queries.map(cut), view.data.keys.map(cut)];
  const widest = (texts, axis) => Math.ceil(Math.max(axis.length * 7, ...texts.map((text) => context.measureText(text).width))) + 10;
  return svgPicture(view, appearance(view), {
    left: widest(queries, view.data.query_axis), right: widest(keys, view.data.key_axis), middle: 460,
    queries, keys, title: titleOf(view), note: view.note,
  });
}

function saveSvg(view) {
  steady(view, () => saveFile(`${view.data.name}.svg`, picture(view), "image/svg+xml"));
}

function savePng(view) {
  steady(view, () => {
    const image = new Image();
    const url = URL.createObjectURL(new Blob([picture(view)], { type: "image/svg+xml" }));
    image.onload = () => {
      const scale = Math.min(2, 16000 / Math.max(image.width, image.height));
      const canvas = new OffscreenCanvas(Math.round(image.width * scale), Math.round(image.height * scale));
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      URL.revokeObjectURL(url);
      canvas.convertToBlob({ type: "image/png" }).then((blob) => saveFile(`${view.data.name}.png`, blob, "image/png"));
    };
    image.src = url;
  });
}

function toggleLarge(view) {
  if (view.dialog.open) return view.dialog.close();
  view.dialog.append(view.body);
  view.dialog.showModal();
  view.expand.textContent = "Close";
  layOut(view);
}

function shrink(view) {
  view.root.prepend(view.body);
  view.expand.textContent = "Expand";
  layOut(view);
}

// ---------------------------------------------------------------- life

export default function ({ data: { payload: data }, parentElement, setStateValue }) {
  if (!FLOWS.has(parentElement)) FLOWS.set(parentElement, create(parentElement));
  const view = FLOWS.get(parentElement);
  const generation = (view.generation += 1);
  view.setStateValue = setStateValue;
  adopt(view, data);
  markTheme(view.root);
  view.title.textContent = titleOf(view);
  for (const side of ["query", "key"]) {
    view.axes[side].textContent = data[`${side}_axis`];
    view.axes[side].dataset.side = view.lists[side].dataset.side = data[`${side}_side`];
    view.lists[side].setAttribute("aria-label", data[`${side}_axis`]);
  }
  view.canvas.setAttribute("aria-label", data.alt);
  view.caption.textContent = data.caption;
  buildChips(view);
  buildColumns(view);
  layOut(view);
  if (view.rows) reveal(view);
  return () => setTimeout(() => destroy(view, generation));
}
