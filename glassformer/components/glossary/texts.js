// @ts-check
// Walks the texts of a page in which terms may be marked: sentences, labels and titles, and no data.

import { PAGE } from "../common/streamlit-page.js";

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
