// Helpers every component starts with. Python puts this text in front of each component's own script, so that each is one
// module that needs no other.

/** Read one CSS custom property as it applies to an element. */
function cssVariable(element, name, fallback) {
  return getComputedStyle(element).getPropertyValue(name).trim() || fallback;
}

let colourCanvas;

/** Turn any CSS colour into [red, green, blue], 0..255, by letting the browser paint it. */
function toRgb(colour) {
  colourCanvas ??= new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  colourCanvas.fillStyle = "#ffffff";
  colourCanvas.fillRect(0, 0, 1, 1);
  colourCanvas.fillStyle = colour;
  colourCanvas.fillRect(0, 0, 1, 1);
  return Array.from(colourCanvas.getImageData(0, 0, 1, 1).data.slice(0, 3));
}

/** Streamlit does not say whether its theme is dark, so look at the background it gives. */
function isDark(element) {
  const [red, green, blue] = toRgb(cssVariable(element, "--st-background-color", "#ffffff"));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue < 128;
}

/** Set data-theme on a root, which picks the light or dark values in tokens.css. */
function markTheme(root) {
  root.dataset.theme = isDark(root) ? "dark" : "light";
}

let sheet;

/** Give the root that an element lives in the component's styles; they survive whatever Streamlit puts in there. */
function dress(element) {
  const root = element.getRootNode();
  if (!sheet) {
    sheet = new CSSStyleSheet();
    sheet.replaceSync(STYLES);
  }
  if (!root.adoptedStyleSheets.includes(sheet)) root.adoptedStyleSheets = [...root.adoptedStyleSheets, sheet];
}

/** Make an element; text goes in as text, never as markup. */
function make(tag, className = "", text = "") {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text) element.textContent = text;
  return element;
}

/** Name the characters that cannot be seen, among them those that turn the writing direction. */
function visible(text) {
  return text.replace(/[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029\ufeff]/gu,
    (letter) => `⟨U+${letter.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

/** A piece with its ▁ dimmed, isolated so that its writing direction cannot reorder what stands around it. */
function pieceText(piece, className = "gf-piece") {
  const element = make("bdi", className);
  element.dir = "auto";
  for (const part of visible(piece).split(/(▁)/)) {
    if (part === "▁") element.appendChild(make("span", "gf-space", part));
    else if (part) element.appendChild(document.createTextNode(part));
  }
  return element;
}

function bytesOf(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

/** What packing.py packed, as whole steps of 1 / levels. */
function unpackSteps({ levels, count, steps, filled }) {
  const raw = bytesOf(steps);
  const sent = levels > 255 ? new Uint16Array(raw.buffer) : raw;
  if (filled === null) return sent;
  const bits = bytesOf(filled);
  const all = new sent.constructor(count);
  let place = 0;
  for (let i = 0; i < count; i += 1) {
    if (bits[i >> 3] & (128 >> (i & 7))) all[i] = sent[place++];
  }
  return all;
}

// ---------------------------------------------------------------- the step, known to all parts of a page

const STEP_EVENT = "glassformer-step";

/** Where the step of a component is kept: a name such as "b-stepper" says that it is about a second run, "b". */
function stepKey(name) {
  return `glassformerStep${name.includes("-") ? name.split("-")[0] : ""}`;
}

/** The step that the reader looks at in a component's run, from 0; null where nothing is stepped through. */
function currentStep(name) {
  return document[stepKey(name)] ?? null;
}

/** Have every chart of a stepper's run mark a step, before Python has heard of it. */
function tellStep(step, name) {
  if (step === currentStep(name)) return;
  document[stepKey(name)] = step;
  document.dispatchEvent(new CustomEvent(STEP_EVENT));
}
