// @ts-check
// Small things around elements: colours of the theme, text that goes in as text, keys and clicks.

import { say } from "./i18n.js";

/**
 * Read one CSS custom property as it applies to an element.
 * @param {Element} element @param {string} name @param {string} fallback
 */
export function cssVariable(element, name, fallback) {
  return getComputedStyle(element).getPropertyValue(name).trim() || fallback;
}

/** @type {OffscreenCanvasRenderingContext2D | null} */
let paper = null;

/**
 * Turn any CSS colour into [red, green, blue], 0..255, by letting the browser paint it.
 * @param {string} colour
 */
export function toRgb(colour) {
  paper ??= pen(new OffscreenCanvas(1, 1), { willReadFrequently: true });
  for (const layer of ["#ffffff", colour]) {
    paper.fillStyle = layer;
    paper.fillRect(0, 0, 1, 1);
  }
  return Array.from(paper.getImageData(0, 0, 1, 1).data.slice(0, 3));
}

/**
 * Streamlit does not say whether its theme is dark, so look at the background it gives.
 * @param {Element} element
 */
export function isDark(element) {
  const [red, green, blue] = toRgb(cssVariable(element, "--st-background-color", "#ffffff"));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue < 128;
}

/**
 * Set data-theme on a root, which picks the light or dark values in tokens.css.
 * @param {HTMLElement} root
 */
export function markTheme(root) {
  root.dataset.theme = isDark(root) ? "dark" : "light";
}

/**
 * What draws on a canvas; every browser that runs this has it.
 * @template {HTMLCanvasElement | OffscreenCanvas} Canvas
 * @param {Canvas} canvas
 * @param {CanvasRenderingContext2DSettings} [options]
 * @returns {Canvas extends HTMLCanvasElement ? CanvasRenderingContext2D : OffscreenCanvasRenderingContext2D}
 */
export function pen(canvas, options) {
  return /** @type {any} */ (canvas.getContext("2d", options));
}

/** @typedef {Record<string, string | number | boolean>} Attributes */

/**
 * Give an element attributes.
 * @template {Element} Some
 * @param {Some} element
 * @param {Attributes} attributes
 */
export function set(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  return element;
}

/**
 * Make an element; text goes in as text, never as markup.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {string} [className]
 * @param {string} [text]
 * @param {Attributes} [attributes]
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function make(tag, className = "", text = "", attributes = {}) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text) element.textContent = text;
  return set(element, attributes);
}

/**
 * Make a button.
 * @param {string} className
 * @param {string} text
 * @param {string} title
 * @param {(event: MouseEvent) => void} act
 * @param {Attributes} [attributes]
 */
export function makeButton(className, text, title, act, attributes = {}) {
  const button = make("button", className, text, { type: "button", title, ...attributes });
  button.addEventListener("click", act);
  return button;
}

/**
 * Make a part of a drawing.
 * @param {string} tag @param {Attributes} attributes @param {string} [text]
 */
export function makeSvg(tag, attributes, text = "") {
  const element = set(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes);
  if (text) element.textContent = text;
  return element;
}

/**
 * The sign on a button.
 * @param {string} path in a square of 24
 */
export function icon(path) {
  const svg = makeSvg("svg", { viewBox: "0 0 24 24", "aria-hidden": true });
  svg.append(makeSvg("path", { d: path }));
  return svg;
}

/** The signs on buttons that move along something. */
const SIGNS = {
  first: "M6 5h2.2v14H6zM19 5v14l-9.5-7z",
  back: "M17 5v14L6.5 12z",
  play: "M8 4.5v15l11.5-7.5z",
  pause: "M7 5h3.6v14H7zM13.4 5H17v14h-3.6z",
  next: "M7 5v14l10.5-7z",
  last: "M15.8 5H18v14h-2.2zM5 5v14l9.5-7z",
};

/** @param {keyof typeof SIGNS} name @param {string} label @param {() => void} act */
export function signButton(name, label, act) {
  return showSign(makeButton(`gf-button gf-${name}`, "", "", act), name, label);
}

/** @param {HTMLButtonElement} button @param {keyof typeof SIGNS} name @param {string} label */
export function showSign(button, name, label) {
  button.replaceChildren(icon(SIGNS[name]));
  return set(button, { "aria-label": label, title: label });
}

/** @param {HTMLInputElement} slider @param {number} value @param {number} done of its way @param {string} said */
export function moveSlider(slider, value, done, said) {
  slider.value = String(value);
  set(slider, { "aria-valuetext": said }).style.setProperty("--done", String(done));
}

/**
 * Name the characters that cannot be seen, among them those that turn the writing direction.
 * @param {string} text
 */
export function visible(text) {
  return text.replace(/[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029\ufeff]/gu,
    (letter) => `⟨U+${(letter.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

/**
 * A piece whose ▁ says what it is, isolated so that its writing direction cannot reorder what stands around it.
 * @param {string} piece @param {string} [className]
 */
export function pieceText(piece, className = "gf-piece") {
  const element = make("bdi", className);
  element.dir = "auto";
  for (const part of visible(piece).split(/(▁)/)) {
    if (part === "▁") {
      const space = make("span", "gf-space", part);
      space.title = say("▁ marks a space before the token.");
      element.append(space);
    } else if (part) element.append(part);
  }
  return element;
}

/**
 * Whether an event comes without a key that gives it another meaning.
 * @param {KeyboardEvent | MouseEvent} event
 */
export function isPlain({ ctrlKey, altKey, metaKey }) {
  return !ctrlKey && !altKey && !metaKey;
}

/**
 * The place that is wanted, or the last one that there is that way.
 * @param {number} wanted
 * @param {number} count of the places, which are counted from 0
 */
export function clamped(wanted, count) {
  return Math.max(0, Math.min(wanted, count - 1));
}
