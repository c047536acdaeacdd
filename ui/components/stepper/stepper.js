// Steps through a finished run. Every step is taken here, at once; Python is told only where the reader came to rest.
//
// Streamlit calls the default export again for every change of data or theme, and calls the function returned by the
// LAST call when the component leaves the page. But when a call is overtaken by the next one, the function it returned
// is called at once, on a page that still shows us; so a cleanup first looks whether we are really gone.

const SETTLE_MS = 200;
const PLAY_MS = 900;
const SPEEDS = [0.5, 1, 2, 4];
// Longer runs do not keep room for what is still to come: the blank would fill the screen. Their controls stand above
// the output instead, where growing text cannot move them.
const LONG_PIECES = 28;
const LONG_TEXT = 160;
const STEPPERS = new WeakMap();
const mounted = [];  // on this browser page, the one used last at the end: it gets the keys

const ICONS = {
  first: "M6 5h2.2v14H6zM19 5v14l-9.5-7z",
  back: "M17 5v14L6.5 12z",
  play: "M8 4.5v15l11.5-7.5z",
  pause: "M7 5h3.6v14H7zM13.4 5H17v14h-3.6z",
  next: "M7 5v14l10.5-7z",
  last: "M15.8 5H18v14h-2.2zM5 5v14l9.5-7z",
};

// ---------------------------------------------------------------- small things

function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", ICONS[name]);
  svg.appendChild(path);
  return svg;
}

function button(name, label, act) {
  const element = make("button", `gf-button gf-${name}`);
  element.type = "button";
  element.setAttribute("aria-label", label);
  element.title = label;
  element.appendChild(icon(name));
  element.addEventListener("click", act);
  return element;
}

/** Two digits where they say something; never "0.00" or "1.00" for a number that is neither. */
function formatProbability(value) {
  if (value === 0 || value === 1) return value.toFixed(2);
  if (value < 0.001) return "<0.001";
  if (value < 0.01) return value.toFixed(3);
  return value >= 0.995 ? ">0.99" : value.toFixed(2);
}

/** "p = 0.83", "p > 0.99". */
function saidProbability(value) {
  const text = formatProbability(value);
  return /^[<>]/.test(text) ? `p ${text[0]} ${text.slice(1)}` : `p = ${text}`;
}

/** Letters of the same width in a fixed-width font: they hold the place of a piece without giving it away. */
function filler(text) {
  return Array.from(text, (letter) => (letter.codePointAt(0) > 0x2e7f ? "国" : /\s/.test(letter) ? " " : "n")).join("");
}

function commonStart(before, after) {
  const [left, right] = [Array.from(before), Array.from(after)];
  let count = 0;
  while (count < left.length && left[count] === right[count]) count += 1;
  return right.slice(0, count).join("");
}

// ---------------------------------------------------------------- the parts, made once

function block(className, heading) {
  const section = make("section", `gf-block ${className}`);
  const head = make("div", "gf-head");
  const note = make("span", "gf-note");
  head.append(make("span", "gf-heading", heading), note);
  section.appendChild(head);
  return { section, note };
}

function controls(view) {
  const bar = make("div", "gf-controls");
  const buttons = make("div", "gf-buttons");
  view.first = button("first", "First step", () => go(view, 0));
  view.back = button("back", "Back one step", () => go(view, view.step - 1));
  view.play = button("play", "Play", () => (view.timer ? pause(view) : play(view)));
  view.next = button("next", "Next step", () => go(view, view.step + 1));
  view.last = button("last", "Last step", () => go(view, view.run.target.length - 1));
  buttons.append(view.first, view.back, view.play, view.next, view.last);
  bar.append(buttons, slider(view), speeds(view));
  return bar;
}

function slider(view) {
  view.slider = make("input", "gf-slider");
  view.slider.type = "range";
  view.slider.min = "1";
  view.slider.step = "1";
  view.slider.setAttribute("aria-label", "Step");
  view.slider.addEventListener("input", () => go(view, Number(view.slider.value) - 1));
  return view.slider;
}

function speeds(view) {
  const select = make("select", "gf-speed");
  select.setAttribute("aria-label", "Playing speed");
  for (const speed of SPEEDS) {
    const option = make("option", "", `${speed}×`);
    option.value = String(speed);
    option.selected = speed === 1;
    select.appendChild(option);
  }
  select.addEventListener("change", () => {
    view.speed = Number(select.value);
    if (view.timer) play(view);
  });
  return select;
}

function create(parentElement) {
  dress(parentElement);
  const root = make("div", "gf-root gf-stepper");
  root.tabIndex = 0;
  root.setAttribute("role", "group");
  root.setAttribute("aria-label", "Step through the translation. Arrow keys move, Home and End jump, Space plays.");
  const source = block("gf-source", "Source");
  const target = block("gf-target", "Output so far");
  const view = { root, parentElement, generation: 0, step: 0, speed: 1, sourceNote: source.note };
  view.targetNote = target.note;
  view.sourceList = make("ol", "gf-pieces");
  view.targetList = make("ol", "gf-pieces");
  view.text = make("p", "gf-text");
  view.text.dir = "auto";
  view.sizes = new ResizeObserver(() => reserve(view));
  view.sizes.observe(root);
  document.fonts.ready.then(() => reserve(view));
  view.caption = make("p", "gf-caption");
  view.caption.setAttribute("aria-live", "polite");
  source.section.append(view.sourceList);
  target.section.append(view.text, view.targetList);
  root.append(source.section, target.section, view.caption, controls(view));
  root.addEventListener("pointerdown", () => prefer(view));
  root.addEventListener("focusin", () => prefer(view));
  parentElement.appendChild(root);
  mounted.unshift(view);
  if (mounted.length === 1) listen(document.addEventListener);
  return view;
}

/** Take the stepper down, unless it is still on the page or was drawn again since. */
function destroy(view, generation) {
  if (view.parentElement.isConnected || generation !== view.generation) return;
  pause(view);
  clearTimeout(view.settling);
  view.sizes.disconnect();
  view.root.remove();
  mounted.splice(mounted.indexOf(view), 1);
  tellStep(stepOf(mounted.filter((other) => stepKey(other.name) === stepKey(view.name)).at(-1)), view.name);
  if (!mounted.length) listen(document.removeEventListener);
  STEPPERS.delete(view.parentElement);
}

// ---------------------------------------------------------------- chips, made once for each run

function sourceChip(chip) {
  const item = make("li", "gf-chip");
  if (chip.special) item.classList.add("gf-special");
  if (chip.unknown) item.classList.add("gf-unknown");
  item.append(pieceText(chip.piece), make("span", "gf-id", String(chip.id)), make("span", "gf-weight"));
  return item;
}

function startChip(piece) {
  const item = make("li", "gf-chip gf-start gf-special");
  item.title = "The model reads this first; it is not part of the output.";
  item.append(pieceText(piece), make("span", "gf-id", "start"));
  return item;
}

function targetChip(view, index) {
  const item = make("li", "gf-chip");
  item.addEventListener("click", () => go(view, index));
  return item;
}

function build(view) {
  const { source, target, start_piece: start, shading_label: label } = view.run;
  view.sourceChips = source.map(sourceChip);
  view.sourceList.replaceChildren(...view.sourceChips);
  view.targetChips = target.map((_, index) => targetChip(view, index));
  view.targetList.replaceChildren(startChip(start), ...view.targetChips);
  const long = Math.max(source.length, target.length) > LONG_PIECES || (view.run.texts.at(-1) ?? "").length > LONG_TEXT;
  view.root.classList.toggle("gf-long", long);
  view.slider.max = String(Math.max(1, target.length));
  view.sourceNote.textContent = label ? `Shaded by ${label}` : "";
  view.targetNote.textContent = "below each piece: its id and its probability";
}

function fillTarget(view, index, hidden) {
  const chip = view.run.target[index];
  const item = view.targetChips[index];
  const state = index > view.step ? "future" : hidden ? "hidden" : "shown";
  item.className = `gf-chip gf-${state}`;
  item.classList.toggle("gf-now", index === view.step);
  item.classList.toggle("gf-special", Boolean(chip.special) && state === "shown");
  item.classList.toggle("gf-forced", Boolean(chip.forced) && state === "shown");
  item.dataset.filler = filler(chip.piece);
  if (item.dataset.state === state) return;
  item.dataset.state = state;
  if (state === "shown") {
    item.title = chip.forced ? "Chosen by you, not by the model. Click to go to this step." : "Go to this step";
    item.replaceChildren(
      pieceText(chip.piece), make("span", "gf-id", String(chip.id)),
      make("span", "gf-probability", formatProbability(chip.probability)),
    );
    return;
  }
  item.title = state === "hidden" ? "What comes here? Guess first." : `Step ${index + 1}, not reached yet`;
  item.replaceChildren(make("bdi", "gf-piece", state === "hidden" ? "?" : "·"), make("span", "gf-id", "\u00a0"),
    make("span", "gf-probability", "\u00a0"));
}

// ---------------------------------------------------------------- drawing one step

function isCovered(view) {
  return view.data.covered && view.data.revealed_step !== view.step;
}

function drawSource(view) {
  const { steps, levels } = view.run.shading ?? {};
  view.sourceChips.forEach((item, index) => {
    const weight = steps ? steps[view.step * view.sourceChips.length + index] / levels : undefined;
    const chip = view.run.source[index];
    item.style.setProperty("--weight", weight ?? 0);
    item.lastElementChild.textContent = weight === undefined ? String(chip.id) : formatProbability(weight);
    const unknown = chip.unknown ? " (not in the vocabulary)" : "";
    item.title = `${chip.piece}${unknown}, id ${chip.id}` +
      (weight === undefined ? "" : `, weight ${weight.toFixed(levels > 255 ? 3 : 2)} at this step`);
  });
}

function drawText(view, covered) {
  const { texts } = view.run;
  const before = texts[view.step - 1] ?? "";
  const after = covered ? before : texts[view.step] ?? "";
  const same = covered ? before : commonStart(before, after);
  const newest = covered ? make("span", "gf-new gf-question", "?") : make("span", "gf-new", after.slice(same.length));
  view.text.replaceChildren(document.createTextNode(same), newest);
}

/** Keep the height the finished text will need, so that the controls never move under a finger. */
function reserve(view) {
  view.text.style.minHeight = "";
  if (!view.run || view.root.classList.contains("gf-long")) return;
  const probe = make("p", "gf-text gf-probe", `${view.run.texts.at(-1) ?? ""} ?`);
  probe.dir = "auto";
  view.text.parentElement.insertBefore(probe, view.text);
  const height = probe.offsetHeight;
  probe.remove();
  view.text.style.minHeight = `${height}px`;
}

function drawCaption(view, covered) {
  const { target, start_piece: start, stop_reason: reason } = view.run;
  const chip = target[view.step];
  const read = view.step ? target[view.step - 1].piece : start;
  const say = [make("b", "", `Step ${view.step + 1} of ${target.length}`), ": reads ‘", pieceText(read, "gf-quoted"), "’, "];
  if (covered) say.push("predicts ?");
  else say.push(chip.forced ? "you chose ‘" : "predicts ‘", pieceText(chip.piece, "gf-quoted"), "’ ");
  const said = saidProbability(chip.probability);
  if (!covered && chip.forced) say.push("(the model gave it ", make("span", "gf-said", `${said})`));
  else if (!covered) say.push(make("span", "gf-said", `(${said})`));
  if (!covered && view.step === target.length - 1 && reason) say.push(make("span", "gf-stop", `. ${reason}`));
  view.caption.replaceChildren(...say);
}

function drawControls(view) {
  const end = view.run.target.length - 1;
  // aria-disabled instead of disabled: a button that is disabled under the focus would lose it.
  for (const element of [view.first, view.back]) element.setAttribute("aria-disabled", String(view.step === 0));
  for (const element of [view.next, view.last]) element.setAttribute("aria-disabled", String(view.step === end));
  view.slider.value = String(view.step + 1);
  view.slider.setAttribute("aria-valuetext", `Step ${view.step + 1} of ${end + 1}`);
  view.slider.style.setProperty("--done", end > 0 ? view.step / end : 1);
}

function stepOf(view) {
  return view?.run?.target.length ? view.step : null;
}

function render(view) {
  view.root.classList.toggle("gf-empty", !view.run.target.length);
  tellStep(stepOf(view), view.name);
  if (!view.run.target.length) {
    view.text.replaceChildren();
    view.caption.replaceChildren(`Nothing was produced. ${view.run.stop_reason}`);
    return;
  }
  const covered = isCovered(view);
  drawSource(view);
  view.targetChips.forEach((_, index) => fillTarget(view, index, covered && index === view.step));
  drawText(view, covered);
  drawCaption(view, covered);
  drawControls(view);
  view.root.dataset.step = String(view.step);
  keepInView(view.targetList, view.targetChips[view.step]);
  const strongest = strongestSource(view);
  if (strongest) keepInView(view.sourceList, strongest);
  view.text.scrollTop = view.text.scrollHeight;
}

/** The source piece with the largest weight at this step; none if there is no shading. */
function strongestSource(view) {
  const { steps } = view.run.shading ?? {};
  if (!steps) return null;
  const first = view.step * view.sourceChips.length;
  let best = 0;
  for (let index = 1; index < view.sourceChips.length; index += 1) {
    if (steps[first + index] > steps[first + best]) best = index;
  }
  return view.sourceChips[best] ?? null;
}

/** Scroll a list, and nothing around it, so that an entry is seen: in the middle of a high list, on top of a low one. */
function keepInView(list, item) {
  const [frame, place] = [list.getBoundingClientRect(), item.getBoundingClientRect()];
  if (place.top >= frame.top && place.bottom <= frame.bottom) return;
  const above = frame.height > 3 * place.height ? (frame.height - place.height) / 2 : 0;
  list.scrollTop += place.top - frame.top - above;
}

// ---------------------------------------------------------------- moving

function clamp(view, step) {
  return Math.max(0, Math.min(step, view.run.target.length - 1));
}

function go(view, wanted) {
  const step = clamp(view, wanted);
  if (step === view.step) return;
  view.step = step;
  render(view);
  clearTimeout(view.settling);
  view.settling = setTimeout(() => settle(view), SETTLE_MS);
}

function settle(view) {
  if (view.step === view.settled) return;
  view.settled = view.step;
  view.setStateValue("step", { run_id: view.run.run_id, step_revision: view.revision, step: view.step });
}

function showPlaying(view, playing) {
  view.play.replaceChildren(icon(playing ? "pause" : "play"));
  view.play.setAttribute("aria-label", playing ? "Pause" : "Play");
  view.play.title = playing ? "Pause" : "Play";
  // A caption that is read aloud several times a second helps nobody.
  view.caption.setAttribute("aria-live", playing ? "off" : "polite");
}

function pause(view) {
  clearInterval(view.timer);
  view.timer = null;
  showPlaying(view, false);
}

function play(view) {
  clearInterval(view.timer);
  const end = view.run.target.length - 1;
  if (view.step >= end) go(view, 0);
  view.timer = setInterval(() => {
    go(view, view.step + 1);
    if (view.step >= view.run.target.length - 1) pause(view);
  }, PLAY_MS / view.speed);
  showPlaying(view, true);
}

// ---------------------------------------------------------------- keys

const TYPING = "input, textarea, select, [contenteditable]:not([contenteditable='false'])";
const ARROWED = ["slider", "grid", "listbox", "menu", "menubar", "radiogroup", "tablist", "tree", "combobox", "textbox",
  "spinbutton"].map((role) => `[role='${role}']`).join(", ");

function prefer(view) {
  mounted.splice(mounted.indexOf(view), 1);
  mounted.push(view);
}

function isShown(element) {
  return Boolean(element.getClientRects().length);
}

// A choice that was clicked keeps the focus, but the arrows that follow are meant for the steps; only who came to it
// by keyboard wants to move it. Listening while the event goes down, we are asked before the choice is.
const POINTER_MS = 1000;
const clicked = new WeakSet();
let pointerAt = -POINTER_MS;

function onPointer() {
  pointerAt = performance.now();
}

function onFocus(event) {
  const at = event.composedPath()[0];
  if (performance.now() - pointerAt < POINTER_MS) clicked.add(at);
  else clicked.delete(at);
}

function listen(change) {
  change.call(document, "keydown", onKey, true);
  change.call(document, "pointerdown", onPointer, true);
  change.call(document, "focusin", onFocus, true);
}

/** Whether the key belongs to something else: a field, a widget that uses arrows itself, or an open dialog. */
function isTaken(event, view) {
  const at = event.composedPath()[0];
  if (at instanceof Element && view.root.contains(at)) return at.matches("select, input");
  const leftover = at instanceof Element && clicked.has(at) && at.closest("[role='radiogroup']");
  if (at instanceof Element && !leftover && (at.closest(TYPING) || at.closest(ARROWED))) return true;
  return Array.from(document.querySelectorAll("[role='dialog'], dialog[open]:not(.gf-chart-dialog)")).some(isShown);
}

function moves(view) {
  return {
    ArrowLeft: () => go(view, view.step - 1),
    ArrowRight: () => go(view, view.step + 1),
    Home: () => go(view, 0),
    End: () => go(view, view.run.target.length - 1),
  };
}

function onKey(event) {
  if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || event.shiftKey) return;
  const view = mounted.findLast((candidate) => isShown(candidate.root));
  if (!view?.run?.target.length) return;
  const at = event.composedPath()[0];
  if (event.key === " ") {
    // On a button Space presses it, as everywhere.
    if (at !== view.root && at !== view.slider) return;
    event.preventDefault();
    if (view.timer) pause(view);
    else play(view);
    return;
  }
  const move = moves(view)[event.key];
  if (!move || isTaken(event, view)) return;
  event.preventDefault();
  event.stopPropagation();
  move();
}

// ---------------------------------------------------------------- life

/** The run with its texts whole and its shading as steps of 1 / levels, [step, source]. */
function unpacked(run) {
  let text = "";
  const texts = run.texts.map(([same, added]) => (text = text.slice(0, same) + added));
  return { ...run, texts, shading: run.shading && { ...run.shading, steps: unpackSteps(run.shading) } };
}

/** Take Python's step when it is news: another run, or a revision we have not seen. Else our own place wins. */
function adopt(view, data) {
  const { step, step_revision: revision } = data;
  const run = unpacked(data.run);
  const news = view.run?.run_id !== run.run_id || view.revision !== revision;
  if (view.run && view.run.run_id !== run.run_id) pause(view);
  const shape = JSON.stringify([run.source, run.target, run.start_piece, run.shading_label]);
  Object.assign(view, { run, revision, data });
  if (news) {
    clearTimeout(view.settling);
    view.step = view.settled = clamp(view, step);
  }
  view.step = clamp(view, view.step);
  if (shape !== view.shape) build(view);
  reserve(view);
  view.shape = shape;
}

export default function ({ data: { payload: data }, parentElement, setStateValue }) {
  if (!STEPPERS.has(parentElement)) STEPPERS.set(parentElement, create(parentElement));
  const view = STEPPERS.get(parentElement);
  const generation = (view.generation += 1);
  view.setStateValue = setStateValue;
  view.name = data.name;
  adopt(view, data);
  markTheme(view.root);
  view.root.classList.toggle("gf-compact", Boolean(data.compact));
  render(view);
  return () => setTimeout(() => destroy(view, generation));
}
