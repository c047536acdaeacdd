// @ts-check
// Every text of ours that a reader can see or hear goes through here, in the language of the page.
//
// English stands in the code. For another language a payload brings `lang` and `words`, a table from the English
// template to the translated one. Whoever collects templates finds them as literals in calls of `say`, `sayN` and
// `sayNodes`; values are named, so that a translation may order them as it likes.

/** @import { Spoken, Words } from "./payloads.js" */

let language = "en";
/** @type {Words} */
let table = {};

/**
 * Take the language of a payload; components may each bring only their own words.
 * @param {Spoken} payload
 */
export function speak({ lang = "en", words = {} }) {
  if (lang !== language) table = {};
  language = lang;
  Object.assign(table, words);
}

/** The language spoken now, as a tag such as "en". */
export function spoken() {
  return language;
}

/**
 * A whole sentence with its named values.
 * @param {string} template @param {Record<string, string | number>} [values]
 */
export function say(template, values = {}) {
  return filled([table[template] ?? template].flat()[0], values);
}

/**
 * The form of a sentence that `{n}` asks for.
 * @param {string} one @param {string} many @param {number} n @param {Record<string, string | number>} [values]
 */
export function sayN(one, many, n, values = {}) {
  const forms = table[one];
  const [known, lang] = Array.isArray(forms) ? [forms, language] : [[one, many], "en"];
  return filled(known[formOf(n, lang, known.length)], { n: asNumber(n), ...values });
}

/**
 * A sentence some of whose values are elements.
 * @param {string} template @param {Record<string, string | Node>} values @returns {(string | Node)[]}
 */
export function sayNodes(template, values) {
  const parts = say(template).split(/\{(\w+)\}/);
  return parts.map((part, place) => (place % 2 ? values[part] ?? `{${part}}` : part)).filter((part) => part !== "");
}

/**
 * Whole sentences, one behind the other; Chinese has no space between them.
 * @param {string[]} sentences
 */
export function inARow(sentences) {
  return sentences.join(language.startsWith("zh") ? "" : " ");
}

/** A number with the separators of the language. @param {number} value */
export function asNumber(value) {
  return value.toLocaleString(language);
}

/** @param {string} template @param {Record<string, string | number>} values */
function filled(template, values) {
  return template.replace(/\{(\w+)\}/g, (whole, name) => String(values[name] ?? whole));
}

const CATEGORIES = ["zero", "one", "two", "few", "many", "other"];

/**
 * Which of a catalogue's plural forms a number takes. Catalogues count only the forms of whole numbers below a
 * million, so what is beyond their last form takes the last.
 * @param {number} n @param {string} lang @param {number} forms
 */
function formOf(n, lang, forms) {
  const rules = new Intl.PluralRules(lang);
  const known = new Set(rules.resolvedOptions().pluralCategories);
  const ordered = CATEGORIES.filter((category) => known.has(/** @type {Intl.LDMLPluralRule} */ (category)));
  return Math.min(ordered.indexOf(rules.select(n)), forms - 1);
}
