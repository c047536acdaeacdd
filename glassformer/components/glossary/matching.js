// @ts-check
// Finds terms of the glossary in a text: whole words, in either number and case, the longest first. And walks
// the texts of a page in which terms may be marked: sentences, labels and titles, and no data.

import { PAGE } from "../common/streamlit-page.js";

/** @import { GlossaryTerm } from "../common/payloads.js" */

/** @typedef {{ id: string, start: number, end: number }} Found */
/** @typedef {(text: string, block: () => string) => Found[]} Finder */

const INSIDE_A_WORD = "[A-Za-z0-9_▁\\u00c0-\\u024f-]";
const QUOTED = "“[^”]*”|‘[^’]*’";  // what somebody typed, or the model wrote

/**
 * A finder of terms. An everyday word such as "value" is a term only where its paragraph also has one of the words
 * that it is `among`.
 * @param {GlossaryTerm[]} terms
 * @param {string} apart phrases in which the words of a term mean something else, with "|" between
 * @returns {Finder}
 */
export function finder(terms, apart) {
  /** @type {Map<string, string>} */
  const meant = new Map(apart.split("|").map((phrase) => [phrase.toLowerCase(), ""]));
  for (const term of terms) {
    for (const form of formsOf(term).flatMap(inBothNumbers)) if (!meant.has(form)) meant.set(form, term.id);
  }
  const all = new RegExp(`${QUOTED}|${anyOf([...meant.keys()])}`, "gi");
  const company = new Map(terms.filter((term) => term.among).map((term) =>
    [term.id, new RegExp(anyOf((term.among ?? "").split("|").flatMap(inBothNumbers)), "i")]));
  return (text, block) => {
    /** @type {Found[]} */
    const found = [];
    for (const { 0: form, index } of text.matchAll(all)) {
      const id = meant.get(form.toLowerCase());
      const isOneWord = !/\s/.test(form);
      const needed = isOneWord && id ? company.get(id) : undefined;
      if (id && (!needed || needed.test(block()))) found.push({ id, start: index, end: index + form.length });
    }
    return found;
  };
}

/**
 * What a term is called: "output projection (W_O)" is also "output projection" and "W_O".
 * @param {GlossaryTerm} term
 */
export function formsOf({ name, also }) {
  const names = name.split(/\s*[(（]([^)）]+)[)）]/);
  return [...names, ...(also ?? "").split("|")].map((form) => form.trim().toLowerCase()).filter(Boolean);
}

/** An English form in both numbers; other words simply never end so. @param {string} form */
function inBothNumbers(form) {
  if (!/[a-z]$/i.test(form)) return [form];
  if (/[^aeiou]y$/.test(form)) return [form, `${form.slice(0, -1)}ies`];
  return [form, /(?:s|x|ch|sh)$/.test(form) ? `${form}es` : `${form}s`];
}

/**
 * A pattern of phrases, the longest first. Only letters that make words of spaces need an edge: Chinese has none.
 * @param {string[]} phrases
 */
function anyOf(phrases) {
  const longestFirst = phrases.toSorted((one, other) => other.length - one.length);
  const isWord = (/** @type {string} */ phrase) => /^\w.*\w$|^\w$/.test(phrase);
  const pattern = (/** @type {string[]} */ some) =>
    some.map((phrase) => phrase.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&")).join("|") || "(?!)";
  const [words, others] = [longestFirst.filter(isWord), longestFirst.filter((phrase) => !isWord(phrase))];
  // A word next to a dot without a space is part of a name in code.
  return `(?:${pattern(others)})|(?<!${INSIDE_A_WORD}|\\w\\.)(?:${pattern(words)})(?!${INSIDE_A_WORD}|\\.\\w)`;
}

// What is pressed, typed or drawn, and what is about the reader's own sentence instead of in our words.
const SKIPPED = [
  "button", "a", "input", "textarea", "select", "svg", "canvas", "style", "script", "code", "pre", "bdi", "td", "strong",
  "dialog:not([open])",
  "[hidden]", "[contenteditable]", "[role=radiogroup]", "[role=slider]", "[role=option]", ".katex",
  PAGE.checkbox, PAGE.icon, PAGE.hint, PAGE.table, `${PAGE.slider} ${PAGE["slider-value"]}`,
  ".gf-plot", ".gf-pieces", ".gf-text", ".gf-quoted", ".gf-said", ".gf-flow-readout", ".gf-flow-chips",
  ".gf-glossary", ".gf-glossary-marks", ".gf-wall", ".gf-room", ".st-key-lesson_choices",
].join(", ");

/**
 * Visit every text below a node, in the order of the page, shadow trees included.
 * @param {Node} root @param {(text: Text) => void} visit
 */
export function eachText(root, visit) {
  for (const node of root.childNodes) {
    if (node instanceof Text) {
      if (/\S/.test(node.data)) visit(node);
    } else if (node instanceof Element && !node.matches(SKIPPED)) {
      if (node.shadowRoot) eachText(node.shadowRoot, visit);
      eachText(node, visit);
    }
  }
}

/** The paragraph, cell or label that a text is part of. @param {Text} text */
export function blockOf(text) {
  return text.parentElement?.closest("p, li, td, th, label, h1, h2, h3, h4, h5, h6, div")?.textContent ?? text.data;
}

/** Whether a text can be seen, or could be after scrolling. @param {Text} text */
export function isShown(text) {
  return Boolean(text.parentElement?.checkVisibility({ visibilityProperty: true }));
}
