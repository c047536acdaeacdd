// @ts-check
// What a reader takes along, made here: a table as CSV (RFC 4180), a picture as SVG or PNG.

import { make, pen } from "./dom.js";

/** @typedef {string | number | null | undefined} Cell */

// Spreadsheets take a text that begins so for a formula, the wide forms where text is written with them.
const FORMULA = /^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;
const LARGEST = 16_000;  // pixels along a side that every browser can paint
const KEPT_MS = 10_000;

/**
 * One cell: a number as it is; a text quoted where it must be, with an apostrophe before what would be a formula.
 * @param {Cell} value
 */
export function csvCell(value) {
  if (typeof value === "number") return Number.isFinite(value) ? String(value) : "";
  const text = String(value ?? "");
  const safe = FORMULA.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/**
 * Rows of cells as CSV with a byte order mark, without which spreadsheets guess the wrong letters.
 * @param {Cell[][]} rows
 */
export function csvText(rows) {
  return `\ufeff${rows.map((row) => row.map(csvCell).join(",")).join("\r\n")}\r\n`;
}

/**
 * Press the button by which Python saves a table: what is drawn may be rounded, or a part.
 * @param {string} selector
 */
export function press(selector) {
  const button = document.querySelector(selector);
  if (button instanceof HTMLElement) button.click();
}

/** @param {string} name @param {Cell[][]} rows */
export function saveTable(name, rows) {
  saveFile(`${name}.csv`, new Blob([csvText(rows)], { type: "text/csv;charset=utf-8" }));
}

/** @param {string} name @param {"svg" | "png"} format @param {string} svg */
export async function savePicture(name, format, svg) {
  const drawn = new Blob([format === "svg" ? svg : await withFonts(svg)], { type: "image/svg+xml" });
  saveFile(`${name}.${format}`, format === "svg" ? drawn : await painted(drawn));
}

/** A drawing as pixels, two for each of its own. @param {Blob} drawing */
async function painted(drawing) {
  const image = new Image();
  image.src = URL.createObjectURL(drawing);
  await new Promise((resolve, reject) => Object.assign(image, { onload: resolve, onerror: reject }));
  const scale = Math.min(2, LARGEST / Math.max(image.width, image.height));
  const canvas = new OffscreenCanvas(Math.round(image.width * scale), Math.round(image.height * scale));
  pen(canvas).drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(image.src);
  return canvas.convertToBlob({ type: "image/png" });
}

/** @param {string} name @param {Blob} content */
function saveFile(name, content) {
  const link = make("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), KEPT_MS);
}

// A picture stands alone and sees no font of the page, and another font's letters are wider than the room that was
// left for them: so the page's fonts are put inside.

/** @type {Map<string, Promise<string>>} */
const FETCHED = new Map();

/** The drawing with those fonts of the page that it names. @param {string} svg */
async function withFonts(svg) {
  const rules = await Promise.all(faces().filter((rule) => isNamed(rule, svg)).map(embedded));
  const style = rules.join("").replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  return svg.replace(/<svg[^>]*>/, (start) => `${start}<style>${style}</style>`);
}

/** @returns {CSSFontFaceRule[]} */
function faces() {
  return Array.from(document.styleSheets).flatMap((sheet) => {
    try {
      return Array.from(sheet.cssRules).filter((rule) => rule instanceof CSSFontFaceRule);
    } catch {
      return [];  // a sheet of another machine, of a browser's extension
    }
  });
}

/** @param {CSSFontFaceRule} rule @param {string} svg */
function isNamed(rule, svg) {
  const family = rule.style.getPropertyValue("font-family").replace(/["']/g, "");
  const slanted = rule.style.getPropertyValue("font-style") === "italic";
  return Boolean(family) && svg.includes(family) && (!slanted || svg.includes("italic"));
}

/** @param {CSSFontFaceRule} rule */
async function embedded(rule) {
  const address = rule.style.getPropertyValue("src").match(/url\(["']?([^"')]+)["']?\)/)?.[1];
  if (!address) return "";
  const whole = new URL(address, rule.parentStyleSheet?.href ?? document.baseURI).href;
  if (!FETCHED.has(whole)) FETCHED.set(whole, asData(whole));
  const data = await FETCHED.get(whole);
  const named = ["font-family", "font-style", "font-weight"].map((name) => `${name}:${rule.style.getPropertyValue(name)};`);
  return data ? `@font-face{${named.join("")}src:url(${data})}` : "";
}

/**
 * A file as a data address; empty if it cannot be had.
 * @param {string} address @returns {Promise<string>}
 */
async function asData(address) {
  try {
    const content = await (await fetch(address)).blob();
    return await new Promise((resolve, reject) => {
      const reader = new FileReader();
      reader.onload = () => resolve(String(reader.result));
      reader.onerror = reject;
      reader.readAsDataURL(content);
    });
  } catch {
    return "";  // the picture then has the machine's own letters
  }
}
