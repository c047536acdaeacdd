const modules = {};

modules["components/common/words.js"] = (() => {
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
function speak({ lang = "en", words = {} }) {
  if (lang !== language) table = {};
  language = lang;
  Object.assign(table, words);
}

/** The language spoken now, as a tag such as "en". */
function spoken() {
  return language;
}

/**
 * A whole sentence with its named values.
 * @param {string} template
 * @param {Record<string, string | number>} [values]
 */
function say(template, values = {}) {
  return filled([table[template] ?? template].flat()[0], values);
}

/**
 * The form of a sentence that `{n}` asks for.
 * @param {string} one
 * @param {string} many
 * @param {number} n
 * @param {Record<string, string | number>} [values]
 */
function sayN(one, many, n, values = {}) {
  const forms = table[one];
  const [known, lang] = Array.isArray(forms) ? [forms, language] : [[one, many], "en"];
  return filled(known[formOf(n, lang, known.length)], { n: asNumber(n), ...values });
}

/**
 * A sentence some of whose values are elements.
 * @param {string} template
 * @param {Record<string, string | Node>} values
 * @returns {(string | Node)[]}
 */
function sayNodes(template, values) {
  const parts = say(template).split(/\{(\w+)\}/);
  return parts.map((part, place) => (place % 2 ? values[part] ?? `{${part}}` : part)).filter((part) => part !== "");
}

/**
 * Whole sentences, one behind the other; Chinese has no space between them.
 * @param {string[]} sentences
 */
function inARow(sentences) {
  return sentences.join(language.startsWith("zh") ? "" : " ");
}

/**
 * A number with the separators of the language.
 * @param {number} value
 */
function asNumber(value) {
  return value.toLocaleString(language);
}

/**
 * @param {string} template
 * @param {Record<string, string | number>} values
 */
function filled(template, values) {
  return template.replace(/\{(\w+)\}/g, (whole, name) => String(values[name] ?? whole));
}

const CATEGORIES = ["zero", "one", "two", "few", "many", "other"];

/**
 * Which of a catalogue's plural forms a number takes. Catalogues count only the forms of whole numbers below a
 * million, so what is beyond their last form takes the last.
 * @param {number} n
 * @param {string} lang
 * @param {number} forms
 */
function formOf(n, lang, forms) {
  const rules = new Intl.PluralRules(lang);
  const known = new Set(rules.resolvedOptions().pluralCategories);
  const ordered = CATEGORIES.filter((category) => known.has(/** @type {Intl.LDMLPluralRule} */ (category)));
  return Math.min(ordered.indexOf(rules.select(n)), forms - 1);
}

return { speak, spoken, say, sayN, sayNodes, inARow, asNumber };
})();

modules["components/common/folds.js"] = (() => {
// @ts-check
// Groups of the menu that a reader folds or unfolds stay so while the page is shown, though every step draws the menu anew.

const MENU = ".st-key-menu";

/** @type {Map<string, boolean>} whether each group that was pressed is open, by its name */
const pressed = new Map();
let page = "";

/** @param {Event} event */
function remember({ target }) {
  const summary = target instanceof Element ? target.closest(`${MENU} summary`) : null;
  const group = summary?.parentElement;
  // The click opens or closes it after we have heard of it.
  if (group instanceof HTMLDetailsElement) pressed.set(summary?.textContent ?? "", !group.open);
}

function restore() {
  if (location.pathname !== page) {
    page = location.pathname;
    pressed.clear();  // the page's own group is open, and no other
  }
  for (const group of document.querySelectorAll(`${MENU} details`)) {
    const open = pressed.get(group.querySelector("summary")?.textContent ?? "");
    if (group instanceof HTMLDetailsElement && open !== undefined && group.open !== open) group.open = open;
  }
}

/** @param {AbortSignal} signal ends it */
function keepFolds(signal) {
  page = location.pathname;
  const watching = new MutationObserver((changes) => {
    if (changes.some(({ target }) => target instanceof Element && target.closest(MENU))) restore();
  });
  watching.observe(document.body, { childList: true, subtree: true });
  document.addEventListener("click", remember, { capture: true, signal });
  signal.addEventListener("abort", () => watching.disconnect());
}

return { keepFolds };
})();

modules["components/common/frames.js"] = (() => {
// @ts-check
// What pictures show at each step of a run, fetched once; see `ui/runs/frames.py`.

/** @import { Frames, Moment } from "./payloads.js" */

const MOST_KEPT = 60;
const IDLE_MS = 1000;
const PATIENCE_MS = 2000;
/** @type {Map<string, Promise<Frames | null>>} */
const fetched = new Map();

/**
 * Have frames that need not be fetched, by their names.
 * @param {Record<string, Frames>} given
 */
function giveFrames(given) {
  for (const [name, frames] of Object.entries(given)) fetched.set(name, Promise.resolve(frames));
}

/**
 * The frames under a name; null if there are none, or they did not come.
 * @param {string} name
 */
function framesOf(name) {
  const known = fetched.get(name);
  if (known) return known;
  const coming = get(name);
  fetched.set(name, coming);
  coming.then((found) => { if (!found) fetched.delete(name); });
  for (const old of Array.from(fetched.keys()).slice(0, -MOST_KEPT)) fetched.delete(old);
  return coming;
}

/** Who waits until frames are wanted. @type {Set<(nothing?: unknown) => void>} */
const waiting = new Set();

/** Somebody is about to step: those of all pictures are fetched now. */
function wantFrames() {
  for (const go of waiting) go();
  waiting.clear();
}

/** Wait until somebody is about to step, or has looked at a page for a while: who only passes by costs nothing. */
function whenWanted() {
  return new Promise((resolve) => {
    waiting.add(resolve);
    setTimeout(() => whenIdle().then(() => { if (waiting.delete(resolve)) resolve(undefined); }), PATIENCE_MS);
  });
}

/** Wait until the browser has nothing to do, or for a moment. */
function whenIdle() {
  return new Promise((resolve) => {
    if ("requestIdleCallback" in window) requestIdleCallback(resolve, { timeout: IDLE_MS });
    else setTimeout(resolve, IDLE_MS / 4);
  });
}

/**
 * @param {string} name
 * @returns {Promise<Frames | null>}
 */
async function get(name) {
  try {
    const answer = await fetch(new URL(`frames/${name}`, location.href.replace(/\/+(?=[?#]|$)/, "")));
    return answer.status === 200 ? await answer.json() : null;
  } catch (error) {
    console.warn(error);
    return null;
  }
}

/**
 * The picture at a step.
 * @param {Frames} frames
 * @param {number} step
 * @returns {Moment}
 */
function momentAt({ first, changes }, step) {
  return changed(structuredClone(first), structuredClone(changes[step]));
}

/**
 * Make of some JSON another one, by what `frames.py` calls its change.
 * @param {any} before
 * @param {any} change
 */
function changed(before, change) {
  if (change === null || change === undefined) return before;
  if (Array.isArray(change)) return change[0];
  for (const [key, one] of Object.entries(change)) {
    if (Array.isArray(one) && !one.length) delete before[key];
    else before[key] = changed(before[key], one);
  }
  return before;
}

return { giveFrames, framesOf, wantFrames, whenWanted, whenIdle, momentAt, changed };
})();

modules["components/common/keys.js"] = (() => {
// @ts-check
// Keys and clicks, as all components take them.

/**
 * Whether an event comes without a key that gives it another meaning.
 * @param {KeyboardEvent | MouseEvent} event
 */
function isPlain({ ctrlKey, altKey, metaKey }) {
  return !ctrlKey && !altKey && !metaKey;
}

/**
 * The place that is wanted, or the last one that there is that way.
 * @param {number} wanted
 * @param {number} count of the places, which are counted from 0
 */
function clamped(wanted, count) {
  return Math.max(0, Math.min(wanted, count - 1));
}

return { isPlain, clamped };
})();

modules["components/common/present.js"] = (() => {
// @ts-check
// Large type: for all of the app while it is presented, and for a chart that is shown as large as the window.
//
// That the app is presented stands on <html>, as a class for the rules of `ui/shared/page_style.py`, and in the address, so
// that it outlives a reload and can be bookmarked. Python leaves this parameter alone: it writes addresses without, and
// we add it again.

const PRESENT_EVENT = "glassformer-present";
const PLAIN_TYPE = 13;  // pixels of a label in a chart, as Python lays charts out
const CLASS = "gf-present";
const PARAMETER = "present";
const SPOKEN = "lang";
const PLAIN_PAGE = 16;

/**
 * How many pixels large letters have in a window: 24 in one of 1920 × 1080, never much smaller than usual.
 * @param {number} width
 * @param {number} height
 */
function largeType(width, height) {
  return Math.round(Math.max(Math.min(18, 12 + width / 200), Math.min(width / 80, height / 36)));
}

/** The pixels of large letters in this window. */
function largeHere() {
  return largeType(window.innerWidth, window.innerHeight);
}

function isPresenting() {
  return document.documentElement.classList.contains(CLASS);
}

/**
 * By how much everything in a chart is larger than Python laid it out.
 * @param {boolean} isLarge whether it is shown as large as the window
 */
function typeScale(isLarge) {
  return isLarge || isPresenting() ? largeHere() / PLAIN_TYPE : 1;
}

/**
 * An address that says whether the app is presented, and all else as it did.
 * @param {string} address
 * @param {boolean} presented
 */
function presentedAddress(address, presented) {
  const changed = new URL(address);
  if ((changed.searchParams.get(PARAMETER) === "1") === presented) return address;
  if (presented) changed.searchParams.set(PARAMETER, "1");
  else changed.searchParams.delete(PARAMETER);
  return changed.href;
}

/**
 * Name a language in the address, in place: going back shall lead to what was looked at before.
 * @param {string} language
 */
function speakInAddress(language) {
  const changed = new URL(location.href);
  if (changed.searchParams.get(SPOKEN) === language) return;
  changed.searchParams.set(SPOKEN, language);
  history.replaceState(history.state, "", changed.href);
}

function keepAddress() {
  const wanted = presentedAddress(location.href, isPresenting());
  if (wanted !== location.href) history.replaceState(history.state, "", wanted);
}

function setType() {
  const { style } = document.documentElement;
  // Streamlit measures all but borders in this size.
  style.fontSize = isPresenting() ? `${Math.max(PLAIN_PAGE, largeHere())}px` : "";
  document.dispatchEvent(new CustomEvent(PRESENT_EVENT));
}

/**
 * Begin or end the presentation.
 * @param {boolean} presented
 */
function present(presented) {
  document.documentElement.classList.toggle(CLASS, presented);
  keepAddress();
  setType();
}

// What opens with "present=1" begins so before the first chart is drawn.
if (new URLSearchParams(location.search).get(PARAMETER) === "1") present(true);
window.addEventListener("resize", () => { if (isPresenting()) setType(); });
// A browser without this knows the address only until Streamlit writes the next one.
window.navigation?.addEventListener("currententrychange", keepAddress);

return { PRESENT_EVENT, PLAIN_TYPE, largeType, largeHere, isPresenting, typeScale, presentedAddress, speakInAddress, present };
})();

modules["components/common/served.js"] = (() => {
const DARK_COLORS = {"#0072B2": "#56B4E9", "#D55E00": "#F0A35E", "#6B5FA0": "#B3A9E6", "#A9CFE5": "#2C5873", "#F0C3A0": "#6E4826", "#E4E6EA": "#2B3037", "#A9B0BA": "#646C78", "#1F2933": "#F4F6F8", "#8A919B": "#8E96A1", "#F3F8FC": "#17222C", "#B8D8EB": "#1E4560", "#69AED6": "#2E78A6", "#1C7FB8": "#57B4E8", "#00446F": "#CDE9FA", "#FCF5EF": "#2A1F16", "#F6CFB0": "#5C3A1B", "#EA9A62": "#A3662B", "#CF5B04": "#EFA25D", "#7A3400": "#FBE3CA", "#F7F6FA": "#201D2C", "#D0CBE0": "#3E3760", "#9F96C4": "#6C62A2", "#6C609F": "#A89FDC", "#372C63": "#E6E1FA", "#0F4A33": "#D3F3E4", "#3F8766": "#74BF9F", "#7FB79C": "#3D7A62", "#C2DFD2": "#1F4437"};
const PLOTLY_FILE = "plotly-7.1.0.min.js";
const SELECTORS = {"skeleton": "[data-testid=\"stAppSkeleton\"]", "skip": "[data-testid=\"stSkipToContent\"]", "header": "[data-testid=\"stHeader\"]", "main-menu": "[data-testid=\"stMainMenu\"]", "unfold": "[data-testid=\"stExpandSidebarButton\"]", "sidebar": "[data-testid=\"stSidebar\"]", "sidebar-content": "[data-testid=\"stSidebarContent\"]", "fold": "[data-testid=\"stSidebarCollapseButton\"]", "main": "[data-testid=\"stMain\"]", "main-block": "[data-testid=\"stMainBlockContainer\"]", "dialog": "[data-testid=\"stDialog\"]", "layout": "[data-testid=\"stLayoutWrapper\"]", "vertical": "[data-testid=\"stVerticalBlock\"]", "horizontal": "[data-testid=\"stHorizontalBlock\"]", "column": "[data-testid=\"stColumn\"]", "element": "[data-testid=\"stElementContainer\"]", "waiting": "[data-testid=\"stSkeleton\"]", "alert": "[data-testid=\"stAlert\"]", "exception": "[data-testid=\"stException\"]", "expander": "[data-testid=\"stExpander\"]", "markdown": "[data-testid=\"stMarkdownContainer\"]", "caption": "[data-testid=\"stCaptionContainer\"]", "code": "[data-testid=\"stCode\"]", "icon": "[data-testid=\"stIconMaterial\"]", "hint": "[data-testid=\"stTooltipIcon\"]", "table": "[data-testid=\"stDataFrame\"]", "metric": "[data-testid=\"stMetricValue\"]", "metric-label": "[data-testid=\"stMetricLabel\"]", "label": "[data-testid=\"stWidgetLabel\"]", "primary": "[data-testid=\"stBaseButton-primary\"]", "primary-submit": "[data-testid=\"stBaseButton-primaryFormSubmit\"]", "popover-button": "[data-testid=\"stPopoverButton\"]", "checkbox": "[data-testid=\"stCheckbox\"]", "radio": "[data-testid=\"stRadio\"]", "select": "[data-testid=\"stSelectbox\"]", "tags": "[data-testid=\"stMultiSelectTagsContainer\"]", "slider": "[data-testid=\"stSlider\"]", "slider-value": "[data-testid=\"stSliderThumbValue\"]", "sized": "[data-testid=\"stElementContainer\"][width$=\"px\"]", "list": "[role=\"listbox\"][data-testid]", "app": ".stApp", "component": ".stBidiComponent", "badge": ".stMarkdownBadge", "number": ".stNumberInput", "text": ".stTextInput", "folded": "[data-collapsed=\"true\"]", "unfolded": "[data-collapsed=\"false\"]", "known": "[data-test-script-state][data-test-connection-state]", "runs": "[data-test-script-state=\"running\"]", "rests": "[data-test-script-state=\"notRunning\"]", "connected": "[data-test-connection-state=\"CONNECTED\"]"};
const STYLES = {"common": "/* The two colours of the whole app, source and target, and what is derived from them. Defined once, for light\n   and dark; `markTheme` in dom.js sets data-theme from the darkness of Streamlit's own background.\n   The *-text values are darker (or lighter) where the plain colour would fall under 4.5:1 on the background. */\n.gf-root {\n  --gf-source: #0072b2;\n  --gf-source-text: #00629a;\n  --gf-target: #d55e00;\n  --gf-target-text: #a84a00;\n  --gf-text: var(--st-text-color, #31333f);\n  --gf-background: var(--st-background-color, #ffffff);\n  --gf-dim: color-mix(in srgb, var(--gf-text) 72%, var(--gf-background));\n  --gf-faint: color-mix(in srgb, var(--gf-text) 22%, var(--gf-background));\n  --gf-line: color-mix(in srgb, var(--gf-text) 14%, var(--gf-background));\n  --gf-radius: var(--st-base-radius, 0.5rem);\n  color: var(--gf-text);\n  font-family: var(--st-font, sans-serif);\n}\n.gf-root:focus-visible, .gf-root :focus-visible { outline: 2px solid var(--gf-source); outline-offset: 1px; }\n.gf-root [hidden] { display: none; }\n\n/* What a dialog says of the step; its letters are as large as the dialog says. */\n.gf-status { flex: none; margin: 0; padding-right: 3rem; font-size: var(--gf-rem, 1rem); line-height: 1.4; }\n.gf-status:empty { display: none; }\n.gf-status .gf-quoted { font-family: var(--st-code-font, monospace); unicode-bidi: isolate; white-space: pre-wrap; }\n.gf-status .gf-said { white-space: nowrap; }\n.gf-status .gf-stop { color: var(--gf-dim); }\n\n/* Under a picture: the buttons at the end of the first line of the sentence that says how to read it. */\n.gf-foot { display: flow-root; margin-top: 0.35rem; font-family: var(--st-font); font-size: calc(0.875 * var(--gf-rem, 1rem)); line-height: 1.45; }\n.gf-told { display: flow-root; margin: 0; font: inherit; color: var(--gf-dim); white-space: pre-line; }\n.gf-tools { position: relative; z-index: 1; float: right; display: flex; gap: 0.125rem; margin: -0.2rem 0 0 0.75rem; }\n.gf-tool, .gf-close, .gf-more, .gf-menu-entry {\n  margin: 0; color: var(--gf-dim); background: none; border: 1px solid transparent; border-radius: var(--gf-radius);\n  font: inherit; cursor: pointer;\n}\n.gf-tool, .gf-close { min-width: 32px; min-height: 28px; padding: 0 0.375rem; }\n.gf-menu-button { font-size: 1.3em; line-height: 1; }\n.gf-more { padding: 0; color: var(--gf-source-text); border-radius: 2px; }\n.gf-more:hover { text-decoration: underline; }\n.gf-tool:hover, .gf-close:hover { color: var(--gf-text); border-color: var(--gf-line); }\n.gf-close { position: absolute; top: 0.5rem; right: 0.5rem; z-index: 2; min-height: 32px; font-size: 1rem; }\n.gf-menu {\n  position: fixed; inset: auto; margin: 0; padding: 0.25rem; max-width: calc(100vw - 1rem); box-sizing: border-box;\n  color: var(--gf-text); background: var(--gf-background); border: 1px solid var(--gf-line); border-radius: var(--gf-radius);\n  box-shadow: 0 4px 16px rgb(0 0 0 / 16%);\n}\n.gf-menu-entry { display: block; width: 100%; min-height: 32px; padding: 0 0.75rem; color: var(--gf-text); text-align: start; }\n.gf-menu-entry:hover, .gf-menu-entry:focus { background: var(--gf-line); }\n@media (pointer: coarse) { .gf-tool { min-height: 36px; min-width: 40px; } .gf-menu-entry { min-height: 44px; } .gf-more { padding: 0.25rem 0; } }\n\n/* What is said of the moment next to a picture: as the page's own lines and tables. */\n.gf-lines { margin: 0 0 0.6rem; font: calc(var(--gf-rem, 1rem))/1.6 var(--st-font); }\n.gf-lines .gf-pale { color: var(--gf-dim); font-size: 0.875em; }\n.gf-lines-under { margin: 0.6rem 0 0; }\n.gf-lines, .gf-lines p { max-width: 54rem; }\n.gf-lines p { margin: 0.6rem 0 0; }\n.gf-lines div { overflow-x: auto; }\n.gf-lines table { border-collapse: collapse; font-size: 0.875rem; line-height: 1.45; font-variant-numeric: tabular-nums; }\n.gf-lines :is(th, td) { padding: 0.25rem 0.5rem; border: 1px solid var(--gf-line); text-align: start; }\n.gf-lines td:first-child { min-width: 4.5em; }\n.gf-lines th { color: var(--gf-dim); font-weight: 400; }\n.gf-lines .gf-number { text-align: end; }\n.gf-lines td.gf-number { white-space: nowrap; }\n.gf-lines details { padding: 0 0.75rem; border: 1px solid var(--gf-line); border-radius: var(--gf-radius); font-size: 0.875em; }\n.gf-lines details[open] { padding-bottom: 0.75rem; }\n.gf-lines details > div { max-height: 20rem; overflow: auto; }\n.gf-lines summary { padding: 0.5rem 0; cursor: pointer; }\n\n.gf-root[data-theme=\"dark\"] {\n  --gf-source: #56b4e9;\n  --gf-source-text: #7cc5f0;\n  --gf-target: #f0a35e;\n  --gf-target-text: #f3b37a;\n}\n\n/* Terms of the glossary, where they first stand on a page; painted over the text, also inside components. */\n::highlight(gf-term) {\n  text-decoration: underline dotted color-mix(in srgb, currentcolor 60%, transparent) 1px; text-underline-offset: 0.22em;\n}\n::highlight(gf-term-open) { background-color: color-mix(in srgb, currentcolor 16%, transparent); }\n", "flow": ".gf-flow { font-size: calc(0.875 * var(--gf-rem, 1rem)); }\n.gf-flow[data-theme=\"dark\"] { color-scheme: dark; }\n.gf-flow p { margin: 0; }\n.gf-flow-body { display: flex; flex-direction: column; gap: 0.55rem; }\n\n.gf-flow-title {\n  padding: 0 1rem; font-family: var(--st-heading-font, serif); font-size: calc(1.0625 * var(--gf-rem, 1rem)); line-height: 1.2; text-align: center;\n}\n.gf-flow-button {\n  min-height: 30px; padding: 0 0.6rem; color: var(--gf-dim); background: transparent; font: inherit; font-size: calc(0.8 * var(--gf-rem, 1rem));\n  border: 1px solid var(--gf-line); border-radius: var(--gf-radius); cursor: pointer;\n}\n.gf-flow-button:hover { color: var(--gf-text); border-color: var(--gf-dim); }\n.gf-flow-follow[aria-pressed=\"true\"] {\n  color: var(--gf-target-text); border-color: var(--gf-target); font-weight: 600;\n  background: color-mix(in srgb, var(--gf-target) 12%, transparent);\n}\n\n.gf-flow-tools { display: flex; flex-wrap: wrap; align-items: center; justify-content: space-between; gap: 0.4rem 1rem; }\n.gf-flow-heads { display: flex; flex-wrap: wrap; align-items: center; gap: 0.3rem; }\n.gf-flow-chips { display: flex; flex-wrap: wrap; gap: 0.3rem; }\n.gf-flow-label { margin-right: 0.25rem; font-size: calc(0.8 * var(--gf-rem, 1rem)); font-weight: 600; color: var(--gf-dim); white-space: nowrap; }\n.gf-flow-chip {\n  display: inline-flex; align-items: center; gap: 0.35rem; min-height: 30px; padding: 0 0.5rem; cursor: pointer;\n  color: var(--gf-text); background: color-mix(in srgb, var(--head) 14%, transparent); font: inherit; font-size: calc(0.85 * var(--gf-rem, 1rem));\n  font-variant-numeric: tabular-nums; border: 1px solid var(--head); border-radius: var(--gf-radius);\n  touch-action: manipulation; user-select: none;\n}\n.gf-flow-swatch { display: inline-block; flex: none; width: 11px; height: 11px; border-radius: 2px; background: var(--head); }\n.gf-flow-next-group { margin-inline-start: 0.6rem; }\n.gf-flow-output { box-shadow: 0 -2px 0 var(--gf-dim); }\n.gf-flow-chip[aria-pressed=\"false\"] { color: var(--gf-dim); background: transparent; border-color: var(--gf-line); border-style: dashed; }\n.gf-flow-chip[aria-pressed=\"false\"] .gf-flow-swatch { background: transparent; box-shadow: inset 0 0 0 1.5px var(--head); }\n.gf-flow-threshold { display: inline-flex; align-items: center; gap: 0.4rem; }\n.gf-flow-slider { width: 84px; height: 30px; margin: 0; accent-color: var(--gf-text); cursor: pointer; }\n.gf-flow-cut { min-width: 2.2em; font-variant-numeric: tabular-nums; }\n\n/* Two lines are kept free, so that the picture does not move under the mouse while it reads aloud. */\n.gf-flow-readout {\n  display: flex; flex-wrap: wrap; align-content: flex-start; column-gap: 1.1em; height: 3.1em; overflow: hidden;\n  font-size: calc(0.875 * var(--gf-rem, 1rem)); line-height: 1.55; color: var(--gf-text);\n}\n.gf-flow-item { display: inline-flex; align-items: center; gap: 0.35em; white-space: nowrap; font-variant-numeric: tabular-nums; }\n.gf-flow-item b { font-weight: 600; }\n.gf-flow-piece, .gf-flow-quoted { font-family: var(--st-code-font, monospace); unicode-bidi: isolate; white-space: pre; }\n.gf-flow-quoted { display: inline-block; max-width: 15em; overflow: hidden; text-overflow: ellipsis; vertical-align: bottom; }\n.gf-flow-begin .gf-flow-quoted { margin-right: 0.3em; font-weight: 600; }\n.gf-flow-presented .gf-flow-readout { order: 1; } .gf-flow-presented .gf-flow-tools { order: 2; }\n\n.gf-flow-axes, .gf-flow-stage { display: grid; grid-template-columns: var(--columns); }\n.gf-flow-axes { align-items: end; padding-bottom: 0.35rem; border-bottom: 1px solid var(--gf-line); }\n.gf-flow-axis { font-size: calc(0.8 * var(--gf-rem, 1rem)); font-weight: 600; line-height: 1.3; }\n.gf-flow-axis:first-child { text-align: right; }\n.gf-flow-scroll { position: relative; overflow: hidden auto; overscroll-behavior: auto; }\n.gf-flow-stage { position: relative; }\n.gf-flow-canvas { position: sticky; top: 0; display: block; }\n.gf-flow-column { position: relative; min-width: 0; }\n[data-side=\"source\"] { --side: var(--gf-source); --side-text: var(--gf-source-text); }\n[data-side=\"target\"] { --side: var(--gf-target); --side-text: var(--gf-target-text); }\n[data-side=\"neutral\"] { --side: var(--gf-dim); --side-text: var(--gf-text); }\n.gf-flow-axis { color: var(--side-text); }\n\n.gf-flow-token {\n  position: absolute; left: 0; right: 0; display: flex; align-items: center; gap: 0.4rem; box-sizing: border-box;\n  padding: 0 0.35rem; font-size: var(--size); line-height: 1; cursor: pointer; border-radius: 3px;\n  background: color-mix(in srgb, var(--side) calc(var(--weight, 0) * 48%), transparent);\n}\n.gf-flow-query .gf-flow-token { flex-direction: row-reverse; }\n.gf-flow-query .gf-flow-value { margin-right: auto; }\n.gf-flow-key .gf-flow-value { margin-left: auto; }\n.gf-flow-piece { color: var(--side-text); min-width: 0; overflow: hidden; text-overflow: ellipsis; line-height: 1.35; }\n.gf-flow-value { flex: none; font-size: 0.92em; font-variant-numeric: tabular-nums; }\n.gf-flow-token:hover { box-shadow: inset 0 0 0 1px color-mix(in srgb, var(--side) 45%, transparent); }\n.gf-flow-focus { background: color-mix(in srgb, var(--side) 16%, transparent); font-weight: 600; }\n.gf-flow-pinned { box-shadow: inset 0 0 0 1.5px var(--side) !important; }\n.gf-flow-closed .gf-flow-piece { opacity: 0.45; }\n.gf-flow-closed .gf-flow-value { color: var(--gf-dim); }\n.gf-flow-now .gf-flow-piece { font-weight: 700; color: var(--gf-target-text); }\n.gf-flow-now::after { content: \"\"; position: absolute; right: -1px; top: 1px; bottom: 1px; width: 3px; border-radius: 2px; background: var(--gf-target); }\n\n.gf-flow-count { font-size: calc(0.8 * var(--gf-rem, 1rem)); line-height: 1.45; color: var(--gf-dim); }\n.gf-flow-dialog {\n  width: calc(100vw - 32px); max-width: none; height: calc(100vh - 32px); max-height: none; box-sizing: border-box;\n  padding: 1rem; overflow: auto; color: var(--gf-text); background: var(--gf-background);\n  border: 1px solid var(--gf-line); border-radius: var(--gf-radius);\n}\n.gf-flow-dialog::backdrop { background: rgb(0 0 0 / 55%); }\n@media (max-width: 640px) { .gf-flow-title { grid-row: 1; grid-column: 1 / -1; padding-bottom: 0.35rem; } }\n@media (max-width: 480px) {\n  .gf-flow-tools { gap: 0.5rem; }\n  .gf-flow-readout { height: 4.7em; font-size: calc(0.8125 * var(--gf-rem, 1rem)); }\n  .gf-flow-readout { column-gap: 0.8em; }\n  .gf-flow-button, .gf-flow-chip { min-height: 36px; }\n}\n", "glossary": ".gf-term-stop { position: absolute; width: 1px; height: 1px; overflow: hidden; outline: none; }\n.gf-term-tip {\n  position: fixed; inset: auto; box-sizing: border-box; width: max-content; max-width: min(22rem, 100vw - 16px);\n  margin: 0; padding: 0.5rem 0.7rem; color: var(--gf-text); background: var(--gf-background); font-size: 0.875rem;\n  line-height: 1.45; border: 1px solid var(--gf-faint); border-radius: var(--gf-radius);\n  box-shadow: 0 4px 16px rgb(0 0 0 / 18%);\n}\n.gf-term-tip b { display: block; }\n\n/* How wide the window is says little: the sidebar may be open. */\n.gf-glossary { font-size: 0.9375rem; line-height: 1.5; container-type: inline-size; }\n.gf-glossary[data-theme=\"dark\"] { color-scheme: dark; }\n.gf-glossary-tools { display: flex; flex-wrap: wrap; align-items: center; gap: 0.5rem 1rem; margin-bottom: 0.75rem; }\n.gf-glossary-search {\n  box-sizing: border-box; width: min(22rem, 100%); height: 2.5rem; padding: 0 0.75rem; color: var(--gf-text); font: inherit;\n  background: var(--st-secondary-background-color, transparent); border: 1px solid var(--gf-faint);\n  border-radius: var(--gf-radius);\n}\n.gf-glossary-count { color: var(--gf-dim); font-size: 0.875rem; }\n.gf-glossary-list { margin: 0; }\n.gf-glossary-entry {\n  display: grid; grid-template-columns: 13rem minmax(0, 1fr) 15rem; gap: 0 1.5rem; max-width: 72rem; margin: 0;\n  padding: 0.4rem 0.5rem; border-top: 1px solid var(--gf-line); scroll-margin: 5rem;\n}\n.gf-glossary-entry[aria-current=\"true\"] { background: color-mix(in srgb, var(--gf-source) 12%, transparent); }\n.gf-glossary-entry dt { font-weight: 600; overflow-wrap: anywhere; }\n.gf-glossary-entry dd { margin: 0; }\n.gf-glossary-entry a { color: var(--gf-source-text); text-decoration: none; }\n.gf-glossary-entry a:hover { text-decoration: underline; }\n.gf-glossary-entry dt a { color: inherit; }\n@container (max-width: 46rem) { .gf-glossary-entry { grid-template-columns: minmax(0, 1fr); } }\n", "plotly": ".gf-chart-frame { width: 100%; }\n/* Beside a chart there is room for words where there is for two charts. */\n@media (min-width: 961px) {\n  .gf-chart-frame.gf-has-beside { display: grid; grid-template-columns: minmax(0, 3fr) minmax(0, 2fr); column-gap: 4rem; align-content: start; }\n  .gf-has-beside > .gf-lines-under { grid-area: 1 / 2 / span 2; margin: 0; }\n}\n.gf-chart { position: relative; width: 100%; }\n/* Until Plotly's script is there, which is the largest of all: not at once, as most often it is. */\n.gf-chart[data-waits]::before {\n  content: attr(data-waits); position: absolute; inset: 0.5rem; padding: 0.5rem 0.75rem; color: var(--gf-dim);\n  background: color-mix(in srgb, var(--gf-text) 6%, transparent); border-radius: var(--gf-radius);\n  animation: gf-waits 0.3s 0.3s backwards;\n}\n@keyframes gf-waits { from { opacity: 0; } }\n.gf-chart-note {\n  display: flex; align-items: center; justify-content: center; height: 100%; padding: 1rem; box-sizing: border-box;\n  text-align: center; color: var(--gf-dim); border: 1px dashed var(--gf-line); border-radius: var(--gf-radius);\n}\n.gf-chart[data-clickable=\"true\"] .nsewdrag { cursor: pointer !important; }\n/* Names stand beside the tiles, between them and the numbers of layers and heads. */\n.gf-edges { position: absolute; inset: 0; pointer-events: none; overflow: hidden; }\n.gf-edge {\n  position: absolute; padding: 0 2px; box-sizing: border-box; overflow: hidden; text-overflow: ellipsis;\n  font: 0.7rem/1.1 var(--st-code-font, monospace); white-space: pre; color: var(--gf-dim);\n}\n.gf-edge-query { transform: translate(-100%, -50%); }\n.gf-edge-key { padding: 2px 0; writing-mode: vertical-rl; transform: translate(-50%, 0) rotate(180deg); }\n.gf-edge-at { font-weight: 700; color: var(--gf-text); }\n\n/* Letters on a ground of their own, so that no line or mark runs through them. */\n.gf-grounded .scatterlayer .textpoint text { paint-order: stroke; stroke: var(--gf-background); stroke-width: 4px; stroke-linejoin: round; }\n\n/* What the keyboard moves over lies on a map and leaves the mouse to it; its words are for who listens. */\n.gf-grid { position: absolute; inset: 0; pointer-events: none; outline: none; overflow: hidden; }\n.gf-root .gf-grid:focus-visible { outline-offset: 2px; }\n.gf-grid-cell {\n  position: absolute; box-sizing: border-box; opacity: 0;\n}\n.gf-grid:focus-visible .gf-grid-cell { opacity: 1; border: 3px solid var(--gf-text); box-shadow: 0 0 0 1px var(--gf-background); }\n.gf-grid-said { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }\n\n.gf-chart-dialog {\n  width: 96vw; height: 94vh; max-width: none; max-height: none; padding: 0.75rem 1rem; box-sizing: border-box;\n  color: var(--gf-text); background: var(--gf-background); border: 1px solid var(--gf-line);\n  border-radius: var(--gf-radius); overflow: hidden;\n}\n.gf-chart-dialog[open] { display: flex; flex-direction: column; }\n.gf-chart-dialog::backdrop { background: rgb(0 0 0 / 50%); }\n.gf-chart-dialog .gf-chart { flex: 1 1 0; min-height: 0; overflow: hidden auto; }\n.gf-chart-dialog :is(.gf-foot, .gf-lines) { flex: none; max-height: 40%; overflow: auto; }\n", "stepper": "/* Two rows of pieces and a bar that steps. Rows of pieces have one height each, so that nothing is cut in the middle\n   where there are too many of them, and nothing moves while a sentence grows. */\n.gf-stepper {\n  --row: 1.9rem; --gap: 0.25rem;\n  display: grid; grid-template-columns: minmax(0, 1fr); gap: 0.5rem; padding: 2px; position: relative; container-type: inline-size;\n  background: var(--gf-background); border-radius: var(--gf-radius);\n}\n.gf-stepper[data-theme=\"dark\"] { color-scheme: dark; }\n.gf-empty :is(.gf-controls, .gf-target) { display: none; }\n.gf-still :is(.gf-controls, .gf-caption), .gf-still .gf-note:empty { display: none; }\n.gf-empty.gf-still .gf-caption { display: block; }\n.gf-empty.gf-compact .gf-bar { display: none; }\n.gf-compact .gf-text { display: none; }\n\n.gf-side { display: grid; grid-template: auto 1fr / 6.2rem minmax(0, 1fr); align-items: start; }\n.gf-show-all {\n  justify-self: start; min-height: 1.5rem; margin-block: -0.2rem; padding: 0; border: 0; background: none; cursor: pointer;\n  color: var(--gf-dim); font: 0.8rem var(--st-font, sans-serif); text-decoration: underline;\n}\n.gf-all .gf-pieces.gf-pieces { flex-wrap: wrap; height: auto !important; max-height: none; mask-image: none; }\n.gf-heading { margin: 0; padding: 0; font: 600 0.82rem/1.9rem var(--st-font, sans-serif); letter-spacing: 0.03em; }\n.gf-source:has(.gf-pieces:empty) { display: none; }\n.gf-source .gf-heading { color: var(--gf-source-text); }\n.gf-target .gf-heading { color: var(--gf-target-text); }\n.gf-target { --row: 2.5rem; }\n.gf-inside { grid-area: 1 / 2 / span 2; min-width: 0; }\n\n.gf-pieces {\n  display: flex; flex-wrap: wrap; gap: var(--gap); margin: -2px; padding: 2px; list-style: none;\n  max-height: calc(2 * var(--row) + var(--gap)); overflow-y: auto; scrollbar-width: thin;\n  scroll-snap-type: y mandatory; scroll-padding: 2px;\n}\n.gf-chip {\n  position: relative; display: flex; flex-direction: column; align-items: center; justify-content: center;\n  box-sizing: border-box; height: var(--row); min-width: 1.9rem; max-width: 16rem; padding: 0 0.45rem; overflow: hidden;\n  border: 1px solid var(--gf-line); border-radius: var(--gf-radius); line-height: 1.25; scroll-snap-align: start;\n  transition: background-color 120ms ease-out, border-color 120ms ease-out;\n}\n.gf-piece, .gf-quoted { font-family: var(--st-code-font, monospace); unicode-bidi: isolate; white-space: pre; }\n.gf-quoted { white-space: pre-wrap; overflow-wrap: anywhere; }\n.gf-piece { font-size: 0.95rem; max-width: 100%; overflow: hidden; text-overflow: ellipsis; }\n.gf-probability { font-size: 0.7rem; line-height: 1.1; color: var(--gf-dim); font-variant-numeric: tabular-nums; }\n.gf-special .gf-piece { color: var(--gf-dim); font-style: italic; }\n\n/* Source: the shade and the bar under the piece both grow with the weight; a full bar is 1. An output piece is shaded\n   likewise by how much its step looks at a source piece that was picked. */\n.gf-source .gf-chip, .gf-picking .gf-target .gf-chip {\n  background: color-mix(in srgb, var(--gf-source) calc(var(--weight, 0) * 48%), transparent);\n  border-color: color-mix(in srgb, var(--gf-source) 35%, var(--gf-line));\n}\n.gf-source .gf-chip::after, .gf-picking .gf-target .gf-chip::after {\n  content: \"\"; position: absolute; left: 0; bottom: 0; height: 3px; width: calc(var(--weight, 0) * 100%);\n  background: var(--gf-source); transition: width 120ms ease-out;\n}\n.gf-source .gf-special .gf-piece { color: var(--gf-text); }\n.gf-source .gf-chip[role=\"button\"] { cursor: pointer; }\n.gf-source .gf-picked { border-color: var(--gf-source); box-shadow: inset 0 0 0 1px var(--gf-source); }\n.gf-picked .gf-piece { font-weight: 600; }\n.gf-unknown { border-style: dashed !important; }\n\n/* Output: what is there, what was just chosen, what is still to come. */\n.gf-target .gf-chip { min-width: 2.6rem; cursor: pointer; }\n.gf-target .gf-piece { line-height: 1.38; }  /* the sign of a space, \u2581, stands at the foot of its line */\n.gf-target .gf-start { cursor: default; border-style: dotted; }\n.gf-target .gf-shown { border-color: color-mix(in srgb, var(--gf-target) 45%, var(--gf-line)); }\n.gf-target .gf-now {\n  border-color: var(--gf-target); box-shadow: inset 0 0 0 1px var(--gf-target);\n  background: color-mix(in srgb, var(--gf-target) 16%, transparent);\n}\n.gf-picking .gf-target .gf-now { border-color: var(--gf-target); }\n.gf-target .gf-now .gf-piece { font-weight: 600; }\n.gf-target .gf-now .gf-probability { color: var(--gf-text); font-weight: 600; }\n.gf-target .gf-forced { border-style: dashed; }\n.gf-forced .gf-probability::after { content: \" \" attr(data-forced); font-style: italic; }\n.gf-forced:lang(zh) .gf-probability::after { font-style: normal; }  /* Chinese has no slanted letters */\n.gf-target .gf-future:not(.gf-picking *) { border-color: transparent; }\n.gf-future .gf-piece { color: var(--gf-faint); font-weight: 700; }\n/* A piece that is not shown keeps its width, so that nothing moves when it appears. */\n.gf-future::before, .gf-hidden::before {\n  content: attr(data-filler); height: 0; overflow: hidden; visibility: hidden; white-space: pre;\n  font-family: var(--st-code-font, monospace); font-size: 0.95rem;\n}\n.gf-hidden .gf-piece { color: var(--gf-target-text); font-weight: 700; }\n\n.gf-text {\n  margin: 0 0 0.3rem; font: 1.35rem/1.3 var(--st-heading-font, serif); overflow-wrap: anywhere; white-space: pre-wrap;\n  unicode-bidi: isolate; max-height: 2.6em; overflow-y: auto; scrollbar-width: thin;\n}\n.gf-target .gf-inside { position: relative; }\n.gf-probe { position: absolute; width: 100%; visibility: hidden; }\n.gf-new {\n  color: var(--gf-target-text);\n  text-decoration: underline; text-decoration-thickness: 2px; text-underline-offset: 0.18em;\n}\n.gf-question { padding: 0 0.35em; margin-inline-start: 0.25em; text-decoration: none; border: 2px dashed var(--gf-target); border-radius: var(--gf-radius); }\n\n.gf-bar { display: flex; align-items: center; gap: 0.5rem 1.25rem; padding: 2px 0 4px; border-bottom: 1px solid var(--gf-line); }\n.gf-still .gf-bar, .gf-empty .gf-bar { border-bottom: 0; padding: 0; }\n.gf-still .gf-note { padding-inline-start: 6.2rem; }\n/* A sentence of two lines takes the room of what the shades are: beside the controls, no line moves the page. */\n.gf-says { flex: 1 1 50%; min-width: 0; max-height: 2.6rem; overflow: hidden; }\n.gf-caption, .gf-note { margin: 0; min-height: 1.3em; }\n.gf-caption { font-size: 0.95rem; line-height: 1.3; }\n.gf-caption b { font-weight: 600; }\n.gf-note { font-size: 0.8rem; line-height: 1.3; color: var(--gf-dim); }\n.gf-note, .gf-note .gf-quoted { white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }\n.gf-said { white-space: nowrap; }\n.gf-cut { color: var(--gf-text); }\n.gf-stop { color: var(--gf-dim); }\n\n.gf-controls { flex: 1 1 50%; display: flex; align-items: center; gap: 0.5rem 0.75rem; min-width: 0; }\n.gf-buttons { display: flex; flex: none; gap: 0.25rem; }\n.gf-button, .gf-speed {\n  min-width: 2.4rem; height: 2.4rem; box-sizing: border-box; padding: 0; color: var(--gf-text); cursor: pointer;\n  background: transparent; border: 1px solid var(--gf-line); border-radius: var(--gf-radius); font: inherit;\n}\n.gf-button { display: inline-flex; align-items: center; justify-content: center; }\n.gf-button svg { width: 1.35rem; height: 1.35rem; fill: currentColor; }\n.gf-button:hover, .gf-speed:hover { border-color: var(--gf-dim); }\n.gf-button[aria-disabled=\"true\"] { color: var(--gf-faint); cursor: default; border-color: var(--gf-line); }\n.gf-play { min-width: 3rem; color: var(--gf-background); background: var(--gf-text); border-color: var(--gf-text); }\n.gf-speed { flex: none; padding: 0 0.25rem; font-size: 0.9rem; background: var(--gf-background); }\n.gf-slider {\n  flex: 1 1 6rem; min-width: 6rem; height: 2.4rem; margin: 0; background: transparent; cursor: pointer;\n  -webkit-appearance: none; appearance: none;\n}\n.gf-slider::-webkit-slider-runnable-track {\n  height: 4px; border-radius: 2px;\n  background: linear-gradient(to right, var(--gf-target) calc(var(--done) * 100%), var(--gf-line) 0);\n}\n.gf-slider::-moz-range-track { height: 4px; border-radius: 2px; background: var(--gf-line); }\n.gf-slider::-moz-range-progress { height: 4px; border-radius: 2px; background: var(--gf-target); }\n.gf-slider::-webkit-slider-thumb {\n  -webkit-appearance: none; width: 20px; height: 20px; margin-top: -8px; border-radius: 50%; border: 0;\n  background: var(--gf-target);\n}\n.gf-slider::-moz-range-thumb { width: 20px; height: 20px; border-radius: 50%; border: 0; background: var(--gf-target); }\n\n/* The room is that of the stepper, which a closed sidebar widens. */\n@container (max-width: 44rem) {\n  .gf-bar { flex-direction: column; align-items: stretch; }\n  .gf-says, .gf-controls { flex: none; max-height: none; }\n  .gf-note, .gf-note .gf-quoted { white-space: normal; }\n}\n@container (max-width: 36rem) {\n  .gf-side { grid-template: auto / minmax(0, 1fr) auto; }\n  .gf-inside { grid-area: 2 / 1 / auto / span 2; }\n  .gf-heading { line-height: 1.5; }\n  .gf-still .gf-note { padding-inline-start: 0; }\n}\n/* On a telephone all is smaller, pieces are one row that slides, and so are the controls, at the foot of the window\n   where the page says so. */\n@media (max-width: 640px) {\n  .gf-stepper { --row: 1.65rem; gap: 0.3rem; }\n  .gf-target { --row: 2.1rem; }\n  .gf-pieces {\n    flex-wrap: nowrap; overflow: auto hidden; max-height: none; scrollbar-width: none; scroll-snap-type: none;\n    padding-inline-end: 1.5rem; mask-image: linear-gradient(to left, transparent, #000 1.5rem);\n  }\n  .gf-chip { flex: none; }\n  .gf-heading { font-size: 0.75rem; line-height: 1.35; }\n  .gf-piece, .gf-future::before, .gf-hidden::before { font-size: 0.875rem; }\n  .gf-text { font-size: 1.15rem; }\n  .gf-bar { padding: 0; gap: 0; border-bottom: 0; }\n  .gf-caption { font-size: 0.875rem; min-height: 2.6em; }\n  .gf-note { font-size: 0.75rem; }\n  .gf-controls {\n    position: var(--gf-foot, static); z-index: 24; inset: auto 0 var(--gf-under, 0px); gap: 0.35rem;\n    padding: 0.3rem var(--gf-side, 0px); background: var(--gf-background);\n  }\n  .gf-buttons { gap: 2px; }\n  .gf-button, .gf-play { min-width: 2.5rem; }\n  .gf-speed { width: 2.75rem; padding: 0; }\n  .gf-button, .gf-speed, .gf-slider { height: 2.6rem; }\n  .gf-slider { min-width: var(--gf-slider, 4rem); }\n}\n@media (prefers-reduced-motion: reduce) {\n  .gf-chip, .gf-source .gf-chip::after, .gf-target .gf-chip::after { transition: none; }\n}\n"};

return { DARK_COLORS, PLOTLY_FILE, SELECTORS, STYLES };
})();

modules["components/common/step.js"] = (() => {
// @ts-check
// The step that the reader looks at, known to all parts of a page before Python has heard of it. A page may show two
// runs beside each other, and each has a step of its own.

const STEP_EVENT = "glassformer-step";

/**
 * The run that a component is about: the name "b-stepper" says that it is "b", a bare name the page's own, "".
 * @param {string} name
 */
const runOf = (name) => (name.includes("-") ? name.split("-")[0] : "");

/**
 * Where the step of a component's run is kept.
 * @param {string} name
 * @returns {`glassformerStep${string}`}
 */
const stepKey = (name) => `glassformerStep${runOf(name)}`;

/**
 * The step of a component's run, from 0; null where nothing is stepped through.
 * @param {string} [name]
 */
function currentStep(name = "") {
  return document[stepKey(name)] ?? null;
}

/** @typedef {{ run_id: string, step_revision: number, step: number, when: number, written?: string }} Report */
/** @typedef {(report: Report, before: number) => void} Tell with the step where the reader rested before */

/** @type {Map<string, Tell>} */
const rests = new Map();

/**
 * Offer to hear where the reader rests, where nothing has to be drawn for that; ends by the function that comes back.
 * @param {string} name
 * @param {Tell} tell
 */
function offerRest(name, tell) {
  const run = runOf(name);
  rests.set(run, tell);
  return () => { if (rests.get(run) === tell) rests.delete(run); };
}

/** Who has to be drawn anew by Python for a step, each with its run. @type {Map<object, string>} */
const asking = new Map();

/**
 * Say whether something of a page has to be drawn anew by Python for each step.
 * @param {object} who
 * @param {string} name
 * @param {boolean} asks
 */
function ask(who, name, asks) {
  if (asks) asking.set(who, runOf(name));
  else asking.delete(who);
}

/**
 * Who hears of a step of a component's run alone; null if something asks for it.
 * @param {string} name
 */
function restOf(name) {
  const run = runOf(name);
  return Array.from(asking.values()).includes(run) ? null : rests.get(run) ?? null;
}

/**
 * What a stepper offers: an element in which it says what its step reads and predicts, and to be moved to a step, of
 * which Python is told so many milliseconds later than usual, or not where that is seen to.
 * @typedef {{
 *   name: () => string | undefined, said: HTMLElement, move: (step: number, after: number, quiet?: boolean) => void
 * }} Stepper
 */

/** @type {Set<Stepper>} */
const steppers = new Set();

/**
 * Offer a stepper, until it is gone.
 * @param {Stepper} stepper
 * @param {AbortSignal} gone
 */
function offerStepper(stepper, gone) {
  steppers.add(stepper);
  gone.addEventListener("abort", () => steppers.delete(stepper));
}

/** @param {string} run */
const stepperOf = (run) => Array.from(steppers).findLast((one) => runOf(one.name() ?? "") === run);

/**
 * Show what the stepper of a component's run says, now and at every step, until the function is called that comes back.
 * @param {string} name
 * @param {HTMLElement} shown
 */
function followStatus(name, shown) {
  const told = stepperOf(runOf(name));
  const copy = () => shown.replaceChildren(...Array.from(told?.said.childNodes ?? [], (node) => node.cloneNode(true)));
  const watcher = new MutationObserver(copy);
  if (told) watcher.observe(told.said, { childList: true, characterData: true, subtree: true });
  copy();
  return () => watcher.disconnect();
}

/**
 * Move the stepper of the page's own run, from outside; whether there is one.
 * @param {number} step from 0
 * @param {number} after
 * @param {boolean} [quiet] Whether somebody else tells Python.
 */
function moveStep(step, after, quiet = false) {
  const stepper = stepperOf("");
  stepper?.move(step, after, quiet);
  return stepper !== undefined;
}

/**
 * Have every chart of a stepper's run mark a step.
 * @param {number | null} step
 * @param {string} [name]
 */
function tellStep(step, name = "") {
  if (step === currentStep(name)) return;
  document[stepKey(name)] = step;
  document.dispatchEvent(new CustomEvent(STEP_EVENT));
}

/**
 * The row of the current step, where rows belong to steps.
 * @param {(number | null)[] | undefined} rows
 * @param {string} [name] Of the component that has the rows.
 */
function rowOfStep(rows, name = "") {
  const step = currentStep(name);
  return step === null ? null : rows?.[step] ?? null;
}

return { STEP_EVENT, runOf, currentStep, offerRest, ask, restOf, offerStepper, followStatus, moveStep, tellStep, rowOfStep };
})();

modules["components/common/unpack.js"] = (() => {
// @ts-check
// Numbers as `packing.py` packs them: bytes as base64 text, and a bit for each place that has one.

/** @import { Packed } from "./payloads.js" */

/** @param {string} text */
function bytesOf(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

/**
 * A test of bits, highest bit first; without bits every place passes.
 * @param {string | null | undefined} text
 * @returns {(place: number) => boolean}
 */
function bitsOf(text) {
  if (!text) return () => true;
  const bits = bytesOf(text);
  return (place) => Boolean(bits[place >> 3] & (128 >> (place & 7)));
}

/**
 * What was packed, as whole steps of 1 / levels.
 * @param {Packed} packed
 * @returns {Uint8Array | Uint16Array}
 */
function unpackSteps({ levels, count, steps, filled }) {
  const raw = bytesOf(steps);
  const sent = levels > 255 ? new Uint16Array(raw.buffer) : raw;
  if (filled === null) return sent;
  const has = bitsOf(filled);
  const all = levels > 255 ? new Uint16Array(count) : new Uint8Array(count);
  let place = 0;
  for (let i = 0; i < count; i += 1) if (has(i)) all[i] = sent[place++];
  return all;
}

return { bytesOf, bitsOf, unpackSteps };
})();

modules["components/glossary/matching.js"] = (() => {
// @ts-check
// Finds terms of the glossary in a text: whole words, in either number and case, the longest first.

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
function finder(terms, apart) {
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
function formsOf({ name, also }) {
  const names = name.split(/\s*[(（]([^)）]+)[)）]/);
  return [...names, ...(also ?? "").split("|")].map((form) => form.trim().toLowerCase()).filter(Boolean);
}

/**
 * An English form in both numbers; other words simply never end so.
 * @param {string} form
 */
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

return { finder, formsOf };
})();

modules["components/common/dom.js"] = (() => {
// @ts-check
// Small things around elements: colours of the theme, and text that goes in as text.

const { say } = modules["components/common/words.js"];

/**
 * Read one CSS custom property as it applies to an element.
 * @param {Element} element
 * @param {string} name
 * @param {string} fallback
 */
function cssVariable(element, name, fallback) {
  return getComputedStyle(element).getPropertyValue(name).trim() || fallback;
}

/** @type {OffscreenCanvasRenderingContext2D | null} */
let paper = null;

/**
 * Turn any CSS colour into [red, green, blue], 0..255, by letting the browser paint it.
 * @param {string} colour
 */
function toRgb(colour) {
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
function isDark(element) {
  const [red, green, blue] = toRgb(cssVariable(element, "--st-background-color", "#ffffff"));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue < 128;
}

/**
 * Set data-theme on a root, which picks the light or dark values in tokens.css.
 * @param {HTMLElement} root
 */
function markTheme(root) {
  root.dataset.theme = isDark(root) ? "dark" : "light";
}

/**
 * What draws on a canvas; every browser that runs this has it.
 * @template {HTMLCanvasElement | OffscreenCanvas} Canvas
 * @param {Canvas} canvas
 * @param {CanvasRenderingContext2DSettings} [options]
 * @returns {Canvas extends HTMLCanvasElement ? CanvasRenderingContext2D : OffscreenCanvasRenderingContext2D}
 */
function pen(canvas, options) {
  return /** @type {any} */ (canvas.getContext("2d", options));
}

/** @typedef {Record<string, string | number | boolean>} Attributes */

/**
 * Give an element attributes.
 * @template {Element} Some
 * @param {Some} element
 * @param {Attributes} attributes
 */
function set(element, attributes) {
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
function make(tag, className = "", text = "", attributes = {}) {
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
function makeButton(className, text, title, act, attributes = {}) {
  const button = make("button", className, text, { type: "button", title, ...attributes });
  button.addEventListener("click", act);
  return button;
}

/**
 * Make a part of a drawing.
 * @param {string} tag
 * @param {Attributes} attributes
 * @param {string} [text]
 */
function makeSvg(tag, attributes, text = "") {
  const element = set(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes);
  if (text) element.textContent = text;
  return element;
}

/**
 * The sign on a button.
 * @param {string} path in a square of 24
 */
function icon(path) {
  const svg = makeSvg("svg", { viewBox: "0 0 24 24", "aria-hidden": true });
  svg.append(makeSvg("path", { d: path }));
  return svg;
}

/**
 * Name the characters that cannot be seen, among them those that turn the writing direction.
 * @param {string} text
 */
function visible(text) {
  return text.replace(/[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029\ufeff]/gu,
    (letter) => `⟨U+${(letter.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

/**
 * A piece whose ▁ says what it is, isolated so that its writing direction cannot reorder what stands around it.
 * @param {string} piece
 * @param {string} [className]
 */
function pieceText(piece, className = "gf-piece") {
  const element = make("bdi", className);
  element.dir = "auto";
  for (const part of visible(piece).split(/(▁)/)) {
    if (part === "▁") {
      const space = make("span", "gf-space", part);
      space.title = say("▁ marks a space before the piece.");
      element.append(space);
    } else if (part) element.append(part);
  }
  return element;
}

return { cssVariable, toRgb, isDark, markTheme, pen, set, make, makeButton, makeSvg, icon, visible, pieceText };
})();

modules["components/plotly/fit.js"] = (() => {
// @ts-check
// Fits a figure to the room it has: lines of the title, and how many pieces an axis can name.

const { PLAIN_TYPE } = modules["components/common/present.js"];
const { say } = modules["components/common/words.js"];

/** @import { Layout, Plot, Ticks } from "./types.js" */

const PIXELS_PER_LABEL = 14;  // as `ROW_PIXELS` of charts/theme.py
const CLOSE_BUTTON = 48;
const AXIS_TITLE = 14;
const BESIDE_AXIS = 60;  // a title may be a little longer than its axis
const HOVER_WIDTH = 420;
const ORDINAL = new Intl.PluralRules("en", { type: "ordinal" });

// Chinese has no spaces: a line may break beside any character, but none begins with a mark that closes or ends with one
// that opens (W3C, "Requirements for Chinese Text Layout", section 3.1.3).
const WIDE = "\\u2e80-\\u9fff\\uf900-\\ufaff\\uff00-\\uff60";
const [OPENING, CLOSING] = ["（《“‘「【", "，。；：？！、）》”’」】…"];
const PART = new RegExp(`( *)([${OPENING}]*(?:[${WIDE}]|[^ ${WIDE}]+)[${CLOSING}]*)`, "g");
const BESIDE_WIDE = new RegExp(` (?=[${WIDE}])|(?<=[${WIDE}]) `, "g");
const [WIDE_ONE, LETTER_WIDTH] = [new RegExp(`[${WIDE}]`, "g"), 0.52];

/**
 * How many letters a text is long; a Chinese character is as wide as two, a space beside it half.
 * @param {string} text
 */
function lengthOf(text) {
  const shown = text.replace(/&#?\w+;/g, "x");
  const [wide, narrow] = [WIDE_ONE, BESIDE_WIDE].map((pattern) => shown.match(pattern)?.length ?? 0);
  return shown.length + (1 / LETTER_WIDTH - 1) * wide - narrow / 2;
}

/**
 * @param {string} text
 * @param {number} room letters of a line
 */
function broken(text, room) {
  const lines = [""];
  for (const [whole, , part] of text.matchAll(PART)) {
    const last = lines[lines.length - 1];
    if (last && lengthOf(last) + lengthOf(whole) > room) lines.push(part);
    else lines[lines.length - 1] += last ? whole : part;
  }
  return lines;
}

/**
 * Plotly never wraps a title, so break it at spaces, and between Chinese characters, there into lines of like length, as
 * none shall stand alone; its text is already escaped, so `<br>` is ours alone.
 * @param {string} text
 * @param {number} width
 * @param {number} size
 */
function wrapped(text, width, size) {
  const room = Math.max(12, Math.floor(width / (size * LETTER_WIDTH)));
  const lines = broken(text, room);
  if (text.search(WIDE_ONE) < 0) return lines;
  for (let less = Math.ceil(lengthOf(text) / lines.length); less < room; less += 1) {
    const alike = broken(text, less);
    if (alike.length === lines.length) return alike;
  }
  return lines;
}

/**
 * @param {Layout} layout
 * @param {number} width
 * @param {boolean} isLarge
 * @param {number} [scale] of all letters
 */
function fitTitle(layout, width, isLarge, scale = 1) {
  const title = layout.title;
  if (!title?.text) return;
  const size = title.font.size;
  const lines = wrapped(title.text, width - 16 - (isLarge ? CLOSE_BUTTON : 0), size);
  const note = title.subtitle?.text;
  const below = note ? wrapped(note, width - 16, title.subtitle.font.size) : [];
  title.text = lines.join("<br>");
  if (note) title.subtitle.text = below.join("<br>");
  // Plotly 4.1 places the first of several lines a cap height too high.
  if (lines.length > 1) title.pad = { ...title.pad, t: (title.pad?.t ?? 0) + 0.7 * size };
  const top = (26 + below.length * 18) * scale + lines.length * size * 1.3;
  const own = (layout.margin?.t ?? 0) + (layout.showlegend ? (lines.length - 1) * size * 1.3 : 0);  // a legend is under it
  layout.margin = { ...layout.margin, t: Math.max(own, top) };
}

/**
 * Break the texts that head a band, which begin at the left edge of the chart, where they are wider than it, and those
 * that come on hover.
 * @param {Layout} layout
 * @param {number} width
 */
function fitHeads(layout, width) {
  if (!layout.annotations) return;
  const room = width - (layout.margin?.l ?? 0) - (layout.margin?.r ?? 0);
  layout.annotations = layout.annotations.map((/** @type {any} */ note) => (note.hovertext
    ? { ...note, hovertext: wrapped(note.hovertext, Math.min(room, HOVER_WIDTH), PLAIN_TYPE).join("<br>") }
    : note.x === 0 && note.xref === "paper" && note.yref?.endsWith(" domain")
      ? { ...note, text: wrapped(note.text, room, note.font?.size ?? layout.font?.size ?? 12).join("<br>") } : note));
}

/**
 * The title of an axis that names only every nth piece.
 * @param {string} title
 * @param {number} n
 */
function thinned(title, n) {
  const values = { title, n };
  switch (ORDINAL.select(n)) {
    case "one": return say("{title} (every {n}st labelled)", values);
    case "two": return say("{title} (every {n}nd labelled)", values);
    case "few": return say("{title} (every {n}rd labelled)", values);
    default: return say("{title} (every {n}th labelled)", values);
  }
}

/**
 * Label as many positions as fit the part of the axis in view, and say so when some have no label.
 * @param {Record<string, any>} axis
 * @param {Ticks[string]} ticks
 * @param {number} length
 * @param {number[] | undefined} range
 * @param {number} [scale] of all letters
 */
function fitTicks(axis, ticks, length, range, scale = 1) {
  const [first, last] = range ? [Math.min(...range), Math.max(...range)] : [-0.5, ticks.labels.length - 0.5];
  const room = Math.max(1, Math.floor(length / (PIXELS_PER_LABEL * scale)));
  const step = Math.max(1, Math.ceil((last - first) / room));
  const kept = ticks.labels.map((_, index) => index).filter((index) => index % step === 0);
  axis.tickmode = "array";
  axis.tickvals = kept;
  axis.ticktext = kept.map((index) => ticks.labels[index]);
  const title = step === 1 ? ticks.title : thinned(ticks.title, step);
  axis.title = { ...axis.title, text: wrapped(title, length + BESIDE_AXIS * scale, AXIS_TITLE * scale).join("<br>") };
  return step;
}

/**
 * Label all axes of pieces; what comes back changes only when another number of labels fits.
 * @param {Layout} layout
 * @param {Ticks | undefined} ticks
 * @param {Plot} drawn
 * @param {number} width
 * @param {number} height
 * @param {number} [scale] of all letters
 */
function fitAllTicks(layout, ticks, drawn, width, height, scale = 1) {
  let signature = "";
  for (const [name, spec] of Object.entries(ticks ?? {})) {
    const axis = (layout[name] ??= {});
    const [start, end] = axis.domain ?? [0, 1];
    const guess = ((name[0] === "x" ? width : height) - 150 * scale) * (end - start);
    const known = drawn._fullLayout?.[name];
    signature += `${name}:${fitTicks(axis, spec, known?._length ?? guess, known?.range, scale)};`;
  }
  return signature;
}

return { lengthOf, wrapped, fitTitle, fitHeads, fitTicks, fitAllTicks };
})();

modules["components/common/streamlit-page.js"] = (() => {
// @ts-check
// All that touches private parts of Streamlit's page: what its parts are called (`ui/components/streamlit_page.py`), what
// state it is in, and how it takes something at once. Turned off, and in a saved run, nothing is known of it: then steps
// ask the server, and links load whole pages.

const { SELECTORS } = modules["components/common/served.js"];

const PAGE = SELECTORS;
let warned = false;

/** @param {string} lost */
function warn(lost) {
  if (!warned) console.warn(`Streamlit's page is not as it was: ${lost}.`);
  warned = true;
}

/**
 * Whether the page is in all of these states: runs, rests, connected, or known at all.
 * @param {string[]} states
 */
function isPage(...states) {
  const app = document.querySelector(PAGE.app);
  if (app && !app.matches(PAGE.known)) warn("each step asks the server");
  return app !== null && states.every((state) => app.matches(PAGE[state]));
}

/**
 * Have what is told to Python reach it by itself, ahead of what the reader does next. Streamlit sends what is told in
 * one turn of the browser together, by a timer, and runs what the first asked for alone: so here the timer is up at once.
 * @param {() => void} tell
 */
function atOnce(tell) {
  const later = window.setTimeout;
  let sent = !isPage("known");
  const send = (/** @type {() => void} */ act, /** @type {number} */ ms) => (ms ? later(act, ms) : (sent = true, act()));
  if (!sent) window.setTimeout = /** @type {any} */ (send);
  try {
    tell();
  } finally {
    window.setTimeout = later;
  }
  if (!sent) warn("a click that follows a step may be lost");
}

/**
 * Go to an address of the app in place: Streamlit takes it as it takes what the Back button leads to.
 * @param {string} href
 */
function goTo(href) {
  if (PAGE.app === ":not(*)") return location.assign(href);
  if (href !== location.href) history.pushState({}, "", href);
  dispatchEvent(new PopStateEvent("popstate", { state: {} }));
}

return { PAGE, isPage, atOnce, goTo };
})();

modules["components/plotly/load.js"] = (() => {
// @ts-check
// Loads Plotly's script once for a browser page, whichever chart asks first.

const { PLOTLY_FILE } = modules["components/common/served.js"];

/** @import { Plotly } from "./types.js" */

const ADDRESS = new URL(PLOTLY_FILE, import.meta.url).href;
// Fetched at once, while the page is still being made; run when a chart asks for it. A saved run has it in its file.
if (!window.glassformerRun) document.head.append(Object.assign(document.createElement("link"), { rel: "preload", as: "script", href: ADDRESS }));

/** @returns {Promise<Plotly>} */
function loadPlotly() {
  // On the window: after an update of the server a page may hold two versions of these modules.
  const loaded = (window.__glassformerPlotly ??= new Map());
  const known = loaded.get(ADDRESS) ?? (window.glassformerRun && Promise.resolve(window.Plotly));
  if (known) return known;
  const attempt = addScript(ADDRESS);
  attempt.catch(() => loaded.delete(ADDRESS));  // the next chart may try again
  loaded.set(ADDRESS, attempt);
  return attempt;
}

/**
 * @param {string} address
 * @returns {Promise<Plotly>}
 */
function addScript(address) {
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = address;
    script.async = true;
    // A server may answer an unknown path with its HTML page: that loads, but brings no Plotly.
    script.onload = () => (window.Plotly ? resolve(window.Plotly) : reject(new Error(`no Plotly in ${address}`)));
    script.onerror = () => reject(new Error(`cannot load ${address}`));
    document.head.append(script);
  });
}

return { loadPlotly };
})();

modules["components/flow/choices.js"] = (() => {
// @ts-check
// What the reader chose, as it stands.

const { rowOfStep } = modules["components/common/step.js"];

/** @import { Pin } from "../common/payloads.js" */
/** @import { View } from "./types.js" */

/**
 * On this browser page, also while another page of the app is shown.
 * `shown` is what Python was last told of the heads, or told us.
 * @type {{ threshold: number, hidden: number[], shown: string }}
 */
const KEPT = { threshold: 0.05, hidden: [], shown: "" };

/** @type {{ query: "key", key: "query" }} */
const OTHER = { query: "key", key: "query" };

/** @param {Pick<View, "model">} view */
function everyHead({ model }) {
  return Array.from({ length: model.heads }, (_, head) => head);
}

/**
 * The heads whose lines are drawn; a mean of heads is always one.
 * @param {Pick<View, "model" | "data">} view
 */
function shownHeads({ model, data }) {
  return everyHead({ model }).filter((head) => data.together || !KEPT.hidden.includes(head));
}

/**
 * The row of the current step; null where rows are no steps, or if it is hidden.
 * @param {View} view
 */
function stepRow(view) {
  return rowOfStep(view.data.row_of_step, view.data.name);
}

/**
 * @param {View} view
 * @returns {Pin | null}
 */
function pinned(view) {
  const now = stepRow(view);
  if (view.following && now !== null) return { side: "query", index: now };
  return view.pin;
}

/** @type {(one: Pin | null, other: Pin | null) => boolean} */
const same = (one, other) => one?.side === other?.side && one?.index === other?.index;

return { KEPT, OTHER, everyHead, shownHeads, stepRow, pinned, same };
})();

modules["components/plotly/follow.js"] = (() => {
// @ts-check
// The mark at the row of the current step. It moves here, at once: the map is not sent again for a step.

const { currentStep, rowOfStep } = modules["components/common/step.js"];

/** @import { Follow, Layout, View } from "./types.js" */

/**
 * The marks that belong to the current step: a frame, or pointers on both sides; none where it has no row.
 * @param {Follow} follow
 * @param {string} [name] Of the chart.
 */
function stepMarks(follow, name) {
  const row = rowOfStep(follow.rows, name);
  if (row === null) return [];
  return follow.starts.flatMap((start) => follow.marks.map((mark) => (mark.type === "path"
    ? { ...mark, yanchor: start + row }
    : { ...mark, y0: start + row - 0.5, y1: start + row + 0.5 })));
}

/**
 * Mark the row in a figure that is about to be drawn.
 * @param {View} view
 * @param {Layout} layout
 */
function markStep(view, layout) {
  view.follow = layout.meta?.follow;
  view.shapes = layout.shapes ?? [];
  view.marked = currentStep(view.data.name);
  if (view.follow) layout.shapes = [...stepMarks(view.follow, view.data.name), ...view.shapes];
}

/**
 * Move the mark in a drawn figure; one that is being drawn comes here at its end.
 * @param {View} view
 */
function moveMark(view) {
  const step = currentStep(view.data.name);
  if (!view.follow || !view.listening || view.drawing || view.gone || view.marked === step) return;
  view.marked = step;
  view.plotly?.relayout(view.plot, { shapes: [...stepMarks(view.follow, view.data.name), ...view.shapes] });
}

return { stepMarks, markStep, moveMark };
})();

modules["components/flow/weights.js"] = (() => {
// @ts-check
// The weights of the flow view: decoding them, and choosing the lines that are worth drawing.

const { bitsOf, unpackSteps } = modules["components/common/unpack.js"];

/** @import { FlowPayload, Pin, Side } from "../common/payloads.js" */
/** @import { Line, Model, Pair } from "./types.js" */

const MOST_LINES = 6000;  // more take a second to paint, and nobody can tell them apart
/** @type {Side[]} */
const SIDES = ["query", "key"];

/**
 * The weights as whole steps [head, query, key] of 1 / levels; masked cells are closed in `open` and hold 0.
 * @param {Pick<FlowPayload, "queries" | "keys" | "heads" | "weights" | "open">} data
 */
function decode(data) {
  const [queries, keys, heads] = [data.queries.length, data.keys.length, data.heads];
  const cells = queries * keys;
  const sent = unpackSteps(data.weights);
  const isFree = bitsOf(data.open);
  const open = new Uint8Array(cells);
  const steps = new Uint16Array(heads * cells);
  const many = sent.length / Math.max(1, heads);
  let place = 0;
  for (let cell = 0; cell < cells; cell += 1) {
    if (!isFree(cell)) continue;
    open[cell] = 1;
    for (let head = 0; head < heads; head += 1) steps[head * cells + cell] = sent[head * many + place];
    place += 1;
  }
  return { queries, keys, heads, cells, open, steps, levels: data.weights.levels };
}

/** @type {(model: Model, head: number, pair: Pair) => number} */
const weightOf = ({ steps, cells, keys, levels }, head, { query, key }) =>
  steps[head * cells + query * keys + key] / levels;

/** @type {(model: Model, pair: Pair) => boolean} */
const isOpen = ({ open, keys }, { query, key }) => open[query * keys + key] === 1;

/**
 * A piece with each of the other side.
 * @param {Model} model
 * @param {Pin} focus
 * @returns {Pair[]}
 */
function pairsOf({ queries, keys }, { side, index }) {
  return side === "query"
    ? Array.from({ length: keys }, (_, key) => ({ query: index, key }))
    : Array.from({ length: queries }, (_, query) => ({ query, key: index }));
}

/**
 * Two digits where they say something; a small weight may have been sent as 0, so never "0.00".
 * @param {number} value
 */
function formatWeight(value) {
  if (value === 1) return "1.00";
  if (value < 0.005) return "<0.01";
  return value >= 0.995 ? ">0.99" : value.toFixed(2);
}

/**
 * The cells of which lines are wanted: all, or those of one piece.
 * @param {Model} model
 * @param {Pin | null} focus
 */
function cellsOf(model, focus) {
  const cells = focus
    ? pairsOf(model, focus).map(({ query, key }) => query * model.keys + key)
    : Array.from({ length: model.cells }, (_, cell) => cell);
  return cells.filter((cell) => model.open[cell]);
}

/**
 * How many weights there are of each step, and their sum in steps.
 * @param {Model} model
 * @param {number[]} shown
 * @param {number[]} cells
 */
function tally(model, shown, cells) {
  const counts = new Uint32Array(model.levels + 1);
  let total = 0;
  for (const head of shown) {
    for (const cell of cells) {
      const step = model.steps[head * model.cells + cell];
      counts[step] += 1;
      total += step;
    }
  }
  return { counts, total };
}

/**
 * Which lines to draw, weakest first, and what is left out.
 *
 * `cut` is the least weight drawn: the threshold, or more where more than MOST_LINES would pass it. A weight that is
 * sent as 0 has no line.
 * @param {Model} model
 * @param {number[]} shown heads
 * @param {number} threshold
 * @param {Pin | null} focus
 */
function chooseLines(model, shown, threshold, focus) {
  const cells = cellsOf(model, focus);
  const { counts, total } = tally(model, shown, cells);
  const least = Math.max(1, Math.ceil(threshold * model.levels - 1e-6));
  let [cut, many, held] = [model.levels + 1, 0, 0];
  while (cut > least && (many + counts[cut - 1] <= MOST_LINES || many === 0)) {
    cut -= 1;
    many += counts[cut];
    held += counts[cut] * cut;
  }
  /** @type {Line[]} */
  const lines = [];
  for (const cell of many ? cells : []) {
    for (const head of shown) {
      const step = model.steps[head * model.cells + cell];
      if (step < cut) continue;
      lines.push({ head, query: Math.floor(cell / model.keys), key: cell % model.keys, weight: step / model.levels });
    }
  }
  lines.sort((a, b) => a.weight - b.weight);
  const crowded = cut > least;
  return {
    lines, all: cells.length * shown.length, crowded, share: total ? held / total : 0,
    cut: crowded ? cut / model.levels : threshold,
  };
}

/**
 * For each piece of the other side the mean weight over the shown heads, null where it is masked.
 * @param {Model} model
 * @param {number[]} shown
 * @param {Pin} focus
 */
function meansOf(model, shown, focus) {
  return pairsOf(model, focus).map((pair) => {
    if (!isOpen(model, pair) || !shown.length) return null;
    return shown.reduce((sum, head) => sum + weightOf(model, head, pair), 0) / shown.length;
  });
}

return { MOST_LINES, SIDES, decode, weightOf, isOpen, pairsOf, formatWeight, chooseLines, meansOf };
})();

modules["components/plotly/grid.js"] = (() => {
// @ts-check
// Unpacks a map of maps (`charts/packing.py`): a byte a cell becomes colour, number and names, which are sent once.

const { bytesOf } = modules["components/common/unpack.js"];

/** @import { Grid, Trace } from "./types.js" */

const STEPS = 250;
const CLOSED = 255;

/**
 * The weight that a byte stands for; `least` is the start of a logarithmic scale, 0 for a linear one.
 * @param {number} code
 * @param {number} top
 * @param {number} least
 */
function gridNumber(code, top, least) {
  const share = code / STEPS;
  return code > STEPS ? null : top * (least ? least ** (1 - share) : share);
}

/**
 * Give a grid's trace its cells; the weights and the closed cells are two traces over the same bytes.
 * @param {Trace} trace
 * @param {Grid | undefined} grid
 */
function restoreGrid(trace, grid) {
  if (!grid || !["grid", "grid-closed"].includes(trace.meta)) return;
  const bytes = bytesOf(grid.codes);
  const rows = grid.layers.flatMap((layer) => grid.queries.map((query) => [layer, query]));
  const columns = grid.heads.flatMap((head) => grid.keys.map((key) => [head, key]));
  const closed = trace.meta === "grid-closed";
  /** @type {[z: any[], customdata: any[]]} */
  const [z, names] = [[], []];
  rows.forEach((row, i) => {
    const codes = bytes.subarray(i * columns.length, (i + 1) * columns.length);
    const tops = grid.tops.slice(Math.floor(i / grid.queries.length) * grid.heads.length);
    z.push(Array.from(codes, (code) => {
      if (closed) return code === CLOSED ? 0 : null;
      return code <= STEPS ? code / STEPS : null;
    }));
    names.push(columns.map((column, j) => {
      const top = grid.tops.length === 1 ? grid.tops[0] : tops[Math.floor(j / grid.keys.length)];
      return [row, column, gridNumber(codes[j], top, grid.least)];
    }));
  });
  trace.z = z;
  trace.customdata = names;
}

return { gridNumber, restoreGrid };
})();

modules["components/plotly/numbers.js"] = (() => {
// @ts-check
// Numbers of a figure as Python sent them, and texts as they were before Plotly's markup.

const { bitsOf, bytesOf } = modules["components/common/unpack.js"];

/** @import { Figure, Sent } from "./types.js" */

/** @type {Record<string, (bytes: Uint8Array<ArrayBuffer>) => any>} */
const FORMS = {
  i1: (bytes) => new Int8Array(bytes.buffer),
  u1: (bytes) => bytes,
  i2: (bytes) => new Int16Array(bytes.buffer),
  u2: (bytes) => new Uint16Array(bytes.buffer),
  i4: (bytes) => new Int32Array(bytes.buffer),
  u4: (bytes) => new Uint32Array(bytes.buffer),
  f4: (bytes) => new Float32Array(bytes.buffer),
  f8: (bytes) => new Float64Array(bytes.buffer),
  f2: fromHalf,
  f3: fromThreeBytes,
};

/**
 * Numbers in half precision, which few browsers know; whatever is beyond them was not sent.
 * @param {Uint8Array<ArrayBuffer>} bytes
 */
function fromHalf(bytes) {
  const halves = new Uint16Array(bytes.buffer);
  return Float32Array.from(halves, (half) => {
    const exponent = (half >> 10) & 31, fraction = half & 1023;
    const size = exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -24 * fraction;
    return half >> 15 ? -size : size;
  });
}

/**
 * 32-bit numbers without their lowest byte, which is 0.
 * @param {Uint8Array} bytes
 */
function fromThreeBytes(bytes) {
  const numbers = new Float32Array(bytes.length / 3);
  const whole = new Uint8Array(numbers.buffer);
  for (let i = 0; i < numbers.length; i += 1) whole.set(bytes.subarray(3 * i, 3 * i + 3), 4 * i + 1);
  return numbers;
}

/**
 * Put numbers where the bits say that there is one, elsewhere NaN (0 in whole numbers); a single one stands for all.
 * @param {any} numbers
 * @param {string} there
 * @param {number} count
 */
function spreadOut(numbers, there, count) {
  if (!there && numbers.length === count) return numbers;
  const has = bitsOf(there);
  const values = new numbers.constructor(count).fill(NaN);
  let place = 0;
  for (let i = 0; i < count; i += 1) {
    if (!has(i)) continue;
    values[i] = numbers.length === 1 ? numbers[0] : numbers[place];
    place += 1;
  }
  return values;
}

/**
 * The numbers of a list or of Plotly's base64 form; two-dimensional ones as a list of rows.
 * @param {Sent} sent
 * @returns {any}
 */
function decoded(sent) {
  if (!sent || Array.isArray(sent) || !sent.bdata) return sent ?? [];
  const [rows, columns] = String(sent.shape ?? "").split(",").map(Number);
  const numbers = FORMS[sent.dtype](bytesOf(sent.bdata));
  if (columns === undefined) return numbers;
  const values = sent.there === undefined ? numbers : spreadOut(numbers, sent.there, rows * columns);
  return Array.from({ length: rows }, (_, row) => values.subarray(row * columns, (row + 1) * columns));
}

/**
 * The figure as Python sent it, with the maps whole that Plotly could not read.
 * @param {string} text
 * @returns {Figure}
 */
function parsedFigure(text) {
  const figure = JSON.parse(text);
  for (const trace of figure.data) if (trace.z?.there !== undefined) trace.z = decoded(trace.z);
  return figure;
}

/**
 * A number as short as tells it from its neighbours: 0.1, not 0.10000000149011612, for 32 bits.
 * @param {any} list
 * @param {number} place
 */
function shortest(list, place) {
  const value = list[place];
  if (!(list instanceof Float32Array)) return value;
  for (let digits = 6; digits < 9; digits += 1) {
    const tried = Number(value.toPrecision(digits));
    if (Math.fround(tried) === value) return tried;
  }
  return Number(value.toPrecision(9));
}

/**
 * The text behind what `theme.literal` wrote for Plotly; tags and isolates around it are the charts' own.
 * @param {unknown} written
 */
function rawText(written) {
  return String(written ?? "")
    .replace(/<br>/g, "; ")
    .replace(/<[^>]*>|[\u2068\u2069]/g, "")
    .replace(/⟨U\+([0-9A-F]{4,6})⟩|&#(\d+);/g, (_, hex, decimal) =>
      String.fromCodePoint(hex ? parseInt(hex, 16) : Number(decimal)));
}

return { decoded, parsedFigure, shortest, rawText };
})();

modules["components/stepper/numbers.js"] = (() => {
// @ts-check
// The pure parts of the stepper: a run as it was packed, numbers and texts as they are shown.

const { unpackSteps } = modules["components/common/unpack.js"];

/** @import { SentRun } from "../common/payloads.js" */

/** @param {SentRun} run */
function unpacked(run) {
  let text = "";
  const texts = run.texts.map(([same, added]) => (text = text.slice(0, same) + added));
  const { shading } = run;
  return { ...run, texts, shading: shading && { levels: shading.levels, steps: unpackSteps(shading) } };
}

/**
 * Two digits where they say something; never "0.00" or "1.00" for a number that is neither.
 * @param {number} value
 */
function formatProbability(value) {
  if (value === 0 || value === 1) return value.toFixed(2);
  if (value < 0.001) return "<0.001";
  if (value < 0.01) return value.toFixed(3);
  return value >= 0.995 ? ">0.99" : value.toFixed(2);
}

/**
 * "p = 0.83", "p > 0.99".
 * @param {number} value
 */
function saidProbability(value) {
  const text = formatProbability(value);
  return /^[<>]/.test(text) ? `p ${text[0]} ${text.slice(1)}` : `p = ${text}`;
}

/**
 * Letters of the same width in a fixed-width font: they hold the place of a piece without giving it away.
 * @param {string} text
 */
function filler(text) {
  const wide = (/** @type {string} */ letter) => (letter.codePointAt(0) ?? 0) > 0x2e7f;
  return Array.from(text, (letter) => (wide(letter) ? "国" : /\s/.test(letter) ? " " : "n")).join("");
}

/**
 * @param {string} before
 * @param {string} after
 */
function commonStart(before, after) {
  const [left, right] = [Array.from(before), Array.from(after)];
  let count = 0;
  while (count < left.length && left[count] === right[count]) count += 1;
  return right.slice(0, count).join("");
}

return { unpacked, formatProbability, saidProbability, filler, commonStart };
})();

modules["components/common/said.js"] = (() => {
// @ts-check
// What is said of a moment next to a picture: a line above it, and a table and a line below it, or beside it.

const { make } = modules["components/common/dom.js"];

/** @import { Said } from "./payloads.js" */

const NUMBER = /^[−+-]?[\d.,]*%?$/;

/**
 * @typedef {object} Lines
 * @property {(said: Said | null) => void} tell
 * @property {() => void} place next to the picture and its foot, wherever these are now
 */

/**
 * @param {HTMLElement} shown
 * @param {HTMLElement} foot
 * @returns {Lines}
 */
function makeLines(shown, foot) {
  const [above, under, below] = [make("p", "gf-lines"), make("div", "gf-lines gf-lines-under"), make("p")];
  const [fold, summary, box] = [make("details"), make("summary"), make("div")];
  fold.append(summary);
  under.append(below);
  /** @type {Said | null} */
  let now = null;
  const place = () => {
    if (!now?.above) above.remove();
    else if (above.nextSibling !== shown) shown.before(above);
    if (!now?.table && !now?.below) under.remove();
    else if (foot.nextSibling !== under) foot.after(under);
    foot.parentElement?.classList.toggle("gf-has-beside", Boolean(now?.beside));
  };
  /** @param {Said | null} said */
  const tell = (said) => {
    now = said;
    above.textContent = said?.above ?? "";
    below.textContent = said?.below ?? "";
    below.hidden = !said?.below;
    below.className = said?.pale ? "gf-pale" : "";
    box.replaceChildren(...(said?.table ? tableOf(said.table) : []));
    summary.textContent = said?.table?.fold ?? "";
    if (!summary.textContent) fold.replaceWith(box);
    else if (box.parentElement !== fold) fold.append(box);
    if (under.firstChild === below) under.prepend(summary.textContent ? fold : box);
    place();
  };
  return { tell, place };
}

/**
 * @param {NonNullable<Said["table"]>} said
 * @returns {HTMLElement[]}
 */
function tableOf({ columns, rows, note }) {
  const table = make("table");
  table.createTHead().insertRow().append(...columns.map((name) => make("th", "", name, { scope: "col" })));
  const body = table.createTBody();
  for (const row of rows) body.insertRow().append(...row.map((text) => make("td", "", text)));
  const numbers = columns.map((_, place) => rows.every((row) => NUMBER.test(row[place])));
  for (const { cells } of table.rows) {
    for (const cell of cells) cell.classList.toggle("gf-number", numbers[cell.cellIndex]);
  }
  return note ? [table, make("p", "gf-pale", note)] : [table];
}

return { makeLines };
})();

modules["components/common/save.js"] = (() => {
// @ts-check
// What a reader takes along, made here: a table as CSV (RFC 4180), a picture as SVG or PNG.

const { make, pen } = modules["components/common/dom.js"];

/** @typedef {string | number | null | undefined} Cell */

// Spreadsheets take a text that begins so for a formula, the wide forms where text is written with them.
const FORMULA = /^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;
const LARGEST = 16_000;  // pixels along a side that every browser can paint
const KEPT_MS = 10_000;

/**
 * One cell: a number as it is; a text quoted where it must be, with an apostrophe before what would be a formula.
 * @param {Cell} value
 */
function csvCell(value) {
  if (typeof value === "number") return Number.isFinite(value) ? String(value) : "";
  const text = String(value ?? "");
  const safe = FORMULA.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/**
 * Rows of cells as CSV with a byte order mark, without which spreadsheets guess the wrong letters.
 * @param {Cell[][]} rows
 */
function csvText(rows) {
  return `\ufeff${rows.map((row) => row.map(csvCell).join(",")).join("\r\n")}\r\n`;
}

/**
 * Press the button by which Python saves a table: what is drawn may be rounded, or a part.
 * @param {string} selector
 */
function press(selector) {
  const button = document.querySelector(selector);
  if (button instanceof HTMLElement) button.click();
}

/**
 * @param {string} name
 * @param {Cell[][]} rows
 */
function saveTable(name, rows) {
  saveFile(`${name}.csv`, new Blob([csvText(rows)], { type: "text/csv;charset=utf-8" }));
}

/**
 * @param {string} name
 * @param {"svg" | "png"} format
 * @param {string} svg
 */
async function savePicture(name, format, svg) {
  const drawn = new Blob([format === "svg" ? svg : await withFonts(svg)], { type: "image/svg+xml" });
  saveFile(`${name}.${format}`, format === "svg" ? drawn : await painted(drawn));
}

/**
 * A drawing as pixels, two for each of its own.
 * @param {Blob} drawing
 */
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

/**
 * @param {string} name
 * @param {Blob} content
 */
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

/**
 * The drawing with those fonts of the page that it names.
 * @param {string} svg
 */
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

/**
 * @param {CSSFontFaceRule} rule
 * @param {string} svg
 */
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
 * @param {string} address
 * @returns {Promise<string>}
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

return { csvCell, csvText, press, saveTable, savePicture };
})();

modules["components/glossary/tip.js"] = (() => {
// @ts-check
// The definition of a term beside it, above all else on the page, and when it comes and goes.

const { make } = modules["components/common/dom.js"];

/** @import { Marked, Tip, View } from "./types.js" */

const GAP = 6;
const EDGE = 8;
const LEAVING_MS = 200;  // enough to move the mouse from the term onto its definition

/**
 * Make it, closed.
 * @param {HTMLElement} root
 * @returns {Tip}
 */
function makeTip(root) {
  const element = make("div", "gf-term-tip", "", { id: "gf-term-tip", role: "tooltip", popover: "manual" });
  const [name, text] = [make("b"), make("span")];
  element.append(name, text);
  root.append(element);
  return { element, name, text, shown: null };
}

/**
 * Show what a marked term means.
 * @param {Tip} tip
 * @param {Marked} marked
 */
function showTip(tip, marked) {
  if (tip.shown?.range !== marked.range) {
    tip.name.textContent = marked.term.name;
    tip.text.textContent = marked.term.text;
    tip.shown = marked;
    light(marked.range);
  }
  if (!tip.element.matches(":popover-open")) tip.element.showPopover();
  place(tip);
}

/** @param {Tip} tip */
function hideTip(tip) {
  if (!tip.shown) return;
  tip.shown = null;
  tip.element.hidePopover();
  tip.name.textContent = tip.text.textContent = "";
  light(null);
}

/**
 * Put it under its term, or above where there is no room.
 * @param {Tip} tip
 */
function place(tip) {
  const at = tip.shown?.range.getClientRects()[0];
  if (!at) return hideTip(tip);
  const { width, height } = tip.element.getBoundingClientRect();
  const left = Math.max(EDGE, Math.min(at.left, innerWidth - EDGE - width));
  const isBelow = at.bottom + GAP + height <= innerHeight - EDGE || at.top < GAP + height;
  const top = isBelow ? at.bottom + GAP : at.top - GAP - height;
  Object.assign(tip.element.style, { left: `${left}px`, top: `${top}px` });
}

/** @param {Range | null} range */
function light(range) {
  if (range) CSS.highlights.set("gf-term-open", new Highlight(range));
  else CSS.highlights.delete("gf-term-open");
}

/**
 * Mouse, finger and Escape: which term is meant, and when its definition comes and goes.
 * @param {View} view
 */
function listen(view) {
  const options = { signal: view.gone };
  document.addEventListener("pointermove", (event) => event.pointerType !== "touch" && hover(view, event), options);
  document.addEventListener("click", (event) => tap(view, event), options);
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !view.tip.shown) return;
    event.preventDefault();  // a dialog behind it stays open
    event.stopPropagation();
    hideTip(view.tip);
  }, { ...options, capture: true });
  document.addEventListener("scroll", () => view.tip.shown && place(view.tip), { ...options, capture: true, passive: true });
}

/**
 * @param {View} view
 * @param {PointerEvent} event
 */
function hover(view, event) {
  const at = event.composedPath()[0];
  const marked = pointedAt(view, at, event);
  if (view.pointed && view.pointed !== at) view.pointed.style.cursor = "";
  view.pointed = at instanceof HTMLElement ? at : null;
  if (view.pointed) view.pointed.style.cursor = marked ? "help" : "";
  if (marked || isOn(view, at)) {
    stays(view);
    if (marked) showTip(view.tip, marked);
  } else if (view.tip.shown && !view.leaving && !document.activeElement?.classList.contains("gf-term-stop")) {
    view.leaving = setTimeout(() => {
      view.leaving = undefined;
      hideTip(view.tip);
    }, LEAVING_MS);
  }
}

/** @param {View} view */
function stays(view) {
  clearTimeout(view.leaving);
  view.leaving = undefined;
}

/**
 * @param {View} view
 * @param {MouseEvent} event
 */
function tap(view, event) {
  const at = event.composedPath()[0];
  const marked = pointedAt(view, at, event);
  if (marked) {
    stays(view);
    showTip(view.tip, marked);
    // The control of a label would take the focus, and on a phone open its keyboard.
    if (at instanceof Element && at.closest("label")) event.preventDefault();
  } else if (!isOn(view, at)) {
    hideTip(view.tip);
  }
}

/**
 * The marked term at a point.
 * @param {View} view
 * @param {EventTarget} at
 * @param {MouseEvent} point
 */
function pointedAt(view, at, { clientX: x, clientY: y }) {
  const here = at instanceof Element ? view.marked.get(at) : undefined;
  return here?.find(({ range }) => [...range.getClientRects()].some(({ left, right, top, bottom }) =>
    x >= left && x <= right && y >= top && y <= bottom));
}

/** @type {(view: View, at: EventTarget) => boolean} */
const isOn = ({ tip }, at) => at instanceof Node && tip.element.contains(at);

return { makeTip, showTip, hideTip, listen };
})();

modules["components/plotly/paint.js"] = (() => {
// @ts-check
// Gives a figure the colours and fonts of the app's theme.

const { cssVariable, isDark } = modules["components/common/dom.js"];
const { PLAIN_TYPE } = modules["components/common/present.js"];

/** @import { Layout } from "./types.js" */

const TRANSPARENT = "rgba(0,0,0,0)";

/** @param {Element} root */
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

/**
 * Swap each of the charts' named colours for its dark twin, wherever it stands in the figure.
 * @param {any} value
 * @param {Record<string, string>} palette
 * @returns {any}
 */
function recolour(value, palette) {
  if (typeof value === "string") return palette[value] ?? value;
  if (Array.isArray(value)) {
    // Data columns are long and never hold colours: their first entry tells.
    if (value.length > 64 && typeof value[0] === "number") return value;
    return value.map((entry) => recolour(entry, palette));
  }
  if (ArrayBuffer.isView(value)) return value;
  if (value && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([name, entry]) => [name, recolour(entry, palette)]));
  }
  return value;
}

/** @param {Layout} layout */
function axisNames(layout) {
  return Object.keys(layout).filter((name) => /^[xy]axis\d*$/.test(name));
}

/**
 * @param {Layout} layout
 * @param {ReturnType<typeof themeOf>} theme
 */
function paint(layout, theme) {
  layout.font = { size: PLAIN_TYPE, ...layout.font, family: theme.font, color: theme.text };
  layout.paper_bgcolor = TRANSPARENT;
  layout.plot_bgcolor = TRANSPARENT;
  layout.xaxis ??= {};
  layout.yaxis ??= {};
  for (const name of axisNames(layout)) {
    for (const part of ["gridcolor", "linecolor", "zerolinecolor", "tickcolor"]) layout[name][part] ??= theme.border;
  }
  if (layout.title) layout.title.font = { size: 17, ...layout.title.font, family: theme.headingFont };
  layout.hoverlabel = {
    align: "left",
    ...layout.hoverlabel,
    bgcolor: theme.panel,
    bordercolor: theme.border,
    font: { family: theme.font, color: theme.text, size: PLAIN_TYPE },
  };
}

return { TRANSPARENT, themeOf, recolour, axisNames, paint };
})();

modules["components/common/links.js"] = (() => {
// @ts-check
// Opens a page of the app in place, as one entry of the browser's history; a click on a link of the menu or of a lesson does so.
// Asked of Python, another page with parameters would be two entries.

const { isPlain } = modules["components/common/keys.js"];
const { goTo } = modules["components/common/streamlit-page.js"];

const FOLLOWED = ".st-key-menu a, .gf-ways a, .gf-grown a";

/**
 * Open an address of the app.
 * @param {string} address as a link says it: whole, or what follows the last slash of this one
 * @param {boolean} [again] whether also where the browser is there, as Streamlit may not be
 */
function openInPlace(address, again = false) {
  const { href } = new URL(address, location.href);
  if (href === location.href && !again) return;
  goTo(href);
}

/** @param {MouseEvent} event */
function follow(event) {
  const link = event.target instanceof Element ? event.target.closest(FOLLOWED) : null;
  if (!(link instanceof HTMLAnchorElement) || event.defaultPrevented || event.button) return;
  if (!isPlain(event) || event.shiftKey) return;  // a new tab or window
  event.preventDefault();
  openInPlace(link.href);
}

/** @param {AbortSignal} signal ends it */
function followLinks(signal) {
  document.addEventListener("click", follow, { signal });
}

/**
 * Have the links of the menu, and others that go by the step, lead to a step, from 0, before Python has drawn them so.
 * @param {number} step
 */
function pointMenu(step) {
  for (const link of document.querySelectorAll(".st-key-menu nav a, .gf-at-step a")) {
    link.setAttribute("href", atStep(link.getAttribute("href") ?? "", step));
  }
}

/**
 * An address of the app at a step, from 0.
 * @param {string} address
 * @param {number} step
 */
function atStep(address, step) {
  const [path, query = ""] = address.split("?");
  const parameters = new URLSearchParams(query);
  if (step) parameters.set("step", String(step + 1));
  else parameters.delete("step");
  return parameters.size ? `${path}?${parameters}` : path;
}

return { openInPlace, followLinks, pointMenu, atStep };
})();

modules["components/common/mount.js"] = (() => {
// @ts-check
// The life of a component: made once for its place on a page, shown again for every change of data or theme, taken
// down when it has left the page.
//
// Streamlit calls the default export of a component again for every change, and calls the function returned by the
// LAST call when the component leaves the page. But when a call is overtaken by the next one, the function it
// returned is called at once, on a page that still shows us; so a cleanup first looks whether we are really gone.

const { make, markTheme } = modules["components/common/dom.js"];
const { PRESENT_EVENT } = modules["components/common/present.js"];
const { STYLES } = modules["components/common/served.js"];
const { STEP_EVENT } = modules["components/common/step.js"];
const { PAGE } = modules["components/common/streamlit-page.js"];
const { speak, spoken } = modules["components/common/words.js"];

/** @import { Component, Create, Show, Spoken } from "./payloads.js" */

/**
 * What differs from component to component.
 * @template View
 * @template {Spoken} Payload
 * @typedef {object} Part
 * @property {keyof typeof STYLES} styles
 * @property {string} className of the root
 * @property {Create<View>} create
 * @property {Show<View, Payload>} show
 * @property {(view: View) => HTMLElement[]} [watched] whose size matters
 * @property {(view: View) => void} [resized]
 * @property {(view: View) => void} [fontsCame]
 * @property {(view: View) => void} [stepped]
 * @property {(view: View) => void} [scaled] the presentation began or ended, or its letters have another size
 * @property {(view: View) => void} [close]
 */

/**
 * Say that a component is there: the first sight of a page waits for it. It may live in a shadow root.
 * @param {HTMLElement} parent
 */
function isThere(parent) {
  const { host = parent } = /** @type {any} */ (parent.getRootNode());
  host.closest(PAGE.component)?.toggleAttribute("data-there", true);
}

/**
 * A component as Streamlit wants it.
 * @template View
 * @template {Spoken} Payload
 * @param {Part<View, Payload>} part
 */
function mount(part) {
  /** @type {WeakMap<HTMLElement, Mounted<View>>} */
  const all = new WeakMap();
  /** @param {Component<Payload>} component */
  return (component) => {
    const { data: { payload }, parentElement: parent } = component;
    speak(payload);
    document.documentElement.lang = spoken();
    let mounted = all.get(parent);
    if (!mounted && !parent.isConnected) return () => {};  // it left the page while our script was loading
    if (mounted && mounted.language !== spoken()) {
      mounted.end();  // labels are written once, so another language starts anew
      mounted = undefined;
    }
    if (!mounted) all.set(parent, mounted = start(part, parent));
    const { view, root, end } = mounted;
    const generation = (mounted.generation += 1);
    const current = mounted;
    markTheme(root);
    part.show(view, component);
    isThere(parent);
    return () => setTimeout(() => {
      if (parent.isConnected || generation !== current.generation) return;
      end();
      all.delete(parent);
    });
  };
}

/**
 * @template View
 * @typedef {{ view: View, root: HTMLElement, language: string, generation: number, end: () => void }} Mounted
 */

/**
 * @template View
 * @template {Spoken} Payload
 * @param {Part<View, Payload>} part
 * @param {HTMLElement} parent
 * @returns {Mounted<View>}
 */
function start(part, parent) {
  dress(parent, part.styles);
  const root = make("div", `gf-root ${part.className}`);
  const ends = new AbortController();
  const { signal } = ends;
  const view = part.create(root, signal);
  parent.append(root);
  const sizes = new ResizeObserver(() => part.resized?.(view));
  for (const element of part.watched?.(view) ?? []) sizes.observe(element);
  document.fonts.ready.then(() => signal.aborted || part.fontsCame?.(view));
  document.addEventListener(STEP_EVENT, () => part.stepped?.(view), { signal });
  document.addEventListener(PRESENT_EVENT, () => part.scaled?.(view), { signal });
  const end = () => {
    ends.abort();
    sizes.disconnect();
    root.remove();
    part.close?.(view);
  };
  return { view, root, language: spoken(), generation: 0, end };
}

/** @type {Map<string, CSSStyleSheet>} */
const sheets = new Map();

/**
 * Give the root that an element lives in the component's styles; they survive whatever Streamlit puts in there.
 * @param {HTMLElement} element
 * @param {keyof typeof STYLES} styles
 */
function dress(element, styles) {
  const root = /** @type {Document | ShadowRoot} */ (element.getRootNode());
  for (const name of /** @type {const} */ (["common", styles])) {
    const sheet = sheets.get(name) ?? new CSSStyleSheet();
    if (!sheets.has(name)) sheet.replaceSync(STYLES[name]);
    sheets.set(name, sheet);
    if (!root.adoptedStyleSheets.includes(sheet)) root.adoptedStyleSheets = [...root.adoptedStyleSheets, sheet];
  }
}

return { isThere, mount };
})();

modules["components/common/room.js"] = (() => {
// @ts-check
// How much of the window is left for what a page is about.

const { PAGE } = modules["components/common/streamlit-page.js"];

const BELOW = 8;

/**
 * The height that the window has left under all that stands above an element, before anybody scrolls, and at most
 * `most`; its own where that is too little, as it is for what nobody sees before scrolling.
 * @param {HTMLElement} element
 * @param {{ own: number, least: number, most: number, below?: number }} heights `below` of what shall be seen under it
 */
function fittedHeight(element, { own, least, most, below = BELOW }) {
  const scrolled = element.closest(PAGE.main)?.scrollTop ?? 0;
  const left = Math.floor(window.innerHeight - element.getBoundingClientRect().top - scrolled - below);
  return left < least ? own : Math.min(left, most);
}

/**
 * What changes that height: the window, and whatever stands above.
 * @returns {HTMLElement[]}
 */
function whatMakesRoom() {
  return Array.from(document.querySelectorAll(`${PAGE.main}, ${PAGE["main-block"]}`),
    (found) => /** @type {HTMLElement} */ (found));
}

return { fittedHeight, whatMakesRoom };
})();

modules["components/glossary/texts.js"] = (() => {
// @ts-check
// Walks the texts of a page in which terms may be marked: sentences, labels and titles, and no data.

const { PAGE } = modules["components/common/streamlit-page.js"];

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
 * @param {Node} root
 * @param {(text: Text) => void} visit
 */
function eachText(root, visit) {
  for (const node of root.childNodes) {
    if (node instanceof Text) {
      if (/\S/.test(node.data)) visit(node);
    } else if (node instanceof Element && !node.matches(SKIPPED)) {
      if (node.shadowRoot) eachText(node.shadowRoot, visit);
      eachText(node, visit);
    }
  }
}

/**
 * The paragraph, cell or label that a text is part of.
 * @param {Text} text
 */
function blockOf(text) {
  return text.parentElement?.closest("p, li, td, th, label, h1, h2, h3, h4, h5, h6, div")?.textContent ?? text.data;
}

/**
 * Whether a text can be seen, or could be after scrolling.
 * @param {Text} text
 */
function isShown(text) {
  return Boolean(text.parentElement?.checkVisibility({ visibilityProperty: true }));
}

return { eachText, blockOf, isShown };
})();

modules["components/flow/places.js"] = (() => {
// @ts-check
// Where everything stands in the flow view: the pieces, and the lines and blocks between them.

const { isOpen, pairsOf, SIDES, weightOf } = modules["components/flow/weights.js"];

/** @import { Pin, Side } from "../common/payloads.js" */
/** @import { Line, Model, Rows, Seen } from "./types.js" */

const BLOCK_MOST = 11;

/**
 * Where the pieces stand: the longer column sets the height, the shorter is spread a little and centred.
 *
 * `room` is the height to fill, if rows of at least 15 and at most `widest` pixels can; the 15 grow with the letters.
 * @param {Model} model
 * @param {number} room
 * @param {number} widest
 * @param {number} [scale]
 */
function placeRows(model, room, widest, scale = 1) {
  const most = Math.max(model.queries, model.keys, 1);
  const pitch = Math.min(widest, Math.max(15 * scale, Math.floor(room / most)));
  const height = pitch * most;
  const column = (/** @type {number} */ count) => {
    const own = Math.min(height / Math.max(1, count), pitch * 1.5);
    return { pitch: own, start: (height - own * count) / 2 };
  };
  return { pitch, height, query: column(model.queries), key: column(model.keys) };
}

/** @type {(rows: Rows, side: Side, index: number) => number} */
const rowCentre = (rows, side, index) => rows[side].start + (index + 0.5) * rows[side].pitch;

/**
 * Each head has its own lane in a row, so that lines of several heads between two pieces lie side by side.
 * @param {number} head
 * @param {number} heads
 * @param {number} pitch
 */
function laneOf(head, heads, pitch) {
  const spread = Math.min(pitch * 0.6, heads * 3.2);
  return heads > 1 ? (head / (heads - 1) - 0.5) * spread : 0;
}

/**
 * What stands between the two columns for the given width: lines, and the blocks of the other side.
 * @param {Seen} seen
 * @param {number} width
 * @param {Rows} rows
 */
function scene(seen, width, rows) {
  const { model, focus } = seen;
  const size = Math.max(2, Math.min(BLOCK_MOST, rows.pitch - 5, (width * 0.2) / model.heads));
  const strip = model.heads * size + 10;
  // Blocks stand on the other side of what is looked at; where there are none the lines reach the pieces.
  const [left, right] = SIDES.map((side) => (focus && focus.side !== side ? strip : 5));
  const lines = seen.chosen.lines.map((line) => {
    const lane = laneOf(line.head, model.heads, rows.pitch);
    return {
      ...line,
      x0: left, y0: rowCentre(rows, "query", line.query) + lane,
      x1: width - right, y1: rowCentre(rows, "key", line.key) + lane,
      alpha: alphaOf(seen, line),
    };
  });
  return { lines, blocks: focus ? blocksOf(seen, focus, width, rows, size) : [] };
}

/**
 * All lines together are as opaque as their weight. Of one piece there are few, so the root of the weight is taken:
 * 0.05 could not be seen. Beside a pair that is looked at, the other lines step back.
 * @param {Seen} seen
 * @param {Line} line
 */
function alphaOf({ pair, focus }, line) {
  if (!focus) return line.weight;
  const aside = pair && (pair.query !== line.query || pair.key !== line.key);
  return Math.sqrt(line.weight) * (aside ? 0.4 : 1);
}

/**
 * @param {Seen} seen
 * @param {Pin} focus
 * @param {number} width
 * @param {Rows} rows
 * @param {number} size
 */
function blocksOf({ model, shown }, focus, width, rows, size) {
  const side = focus.side === "query" ? "key" : "query";
  const tall = Math.max(4, Math.min(rows[side].pitch - 5, 16));
  const left = side === "key" ? width - model.heads * size - 4 : 5;
  return pairsOf(model, focus).filter((pair) => isOpen(model, pair)).flatMap((pair) => shown.map((head) => ({
    head, x: left + head * size, y: rowCentre(rows, side, pair[side]) - tall / 2, width: size - 1, height: tall,
    alpha: Math.sqrt(weightOf(model, head, pair)),
  })));
}

return { placeRows, rowCentre, laneOf, scene };
})();

modules["components/flow/readout.js"] = (() => {
// @ts-check
// What the flow view says in words: what is looked at, and what the lines leave out.

const { make, pieceText } = modules["components/common/dom.js"];
const { asNumber, inARow, say, sayN, sayNodes } = modules["components/common/words.js"];
const { OTHER } = modules["components/flow/choices.js"];
const { isOpen, MOST_LINES, SIDES, weightOf } = modules["components/flow/weights.js"];

/** @import { Pin } from "../common/payloads.js" */
/** @import { View } from "./types.js" */

const LISTED = 5;

/**
 * @param {View} view
 * @param {number} head
 */
function colourOf(view, head) {
  const { colours } = view.data;
  return colours[head % colours.length][view.root.dataset.theme === "dark" ? 1 : 0];
}

/** @param {View} view */
const titleOf = ({ data: { kind, layer } }) => say("{kind}, {layer}", { kind, layer });

/** @type {(view: View, place: Pin) => string} */
const pieceAt = ({ data }, { side, index }) => (side === "query" ? data.queries : data.keys)[index];

/** @type {(view: View, place: Pin) => HTMLElement} */
const quoted = (view, place) => pieceText(pieceAt(view, place), "gf-flow-quoted");

/**
 * A head in its colour, and what it gives.
 * @param {View} view
 * @param {number} head
 * @param {...Node} rest
 */
function swatched(view, head, ...rest) {
  const item = make("span", "gf-flow-item");
  const swatch = make("span", "gf-flow-swatch");
  swatch.style.setProperty("--head", colourOf(view, head));
  item.append(swatch, view.data.together ? say("mean") : say("head {n}", { n: head + 1 }), ...rest);
  return item;
}

/** @param {number} weight */
const bold = (weight) => make("b", "", weight.toFixed(3));

/**
 * What is looked at, in words.
 * @param {View} view
 */
function readout(view) {
  const { focus, pair, shown, model } = view;
  if (!focus && !shown.length) return [say("No head is shown. Click a head, or All.")];
  if (!focus) {
    return [inARow([say("Hover over a piece to see only its lines; click it to pin them."),
      say("Keyboard: arrow keys move, Enter pins, Escape unpins.")])];
  }
  const begin = make("span", "gf-flow-begin");
  if (pair) {
    const [query, key] = SIDES.map((side) => quoted(view, { side, index: pair[side] }));
    if (!isOpen(model, pair)) {
      begin.append(...sayNodes("{query} cannot look at {key}", { query, key }));
      return [begin, say("It is masked.")];
    }
    begin.append(...sayNodes("{query} looks at {key}", { query, key }));
    return [begin, ...shown.map((head) => swatched(view, head, bold(weightOf(model, head, pair))))];
  }
  const piece = quoted(view, focus);
  const side = OTHER[focus.side];
  const items = view.chosen.lines.slice(-LISTED).reverse().map((line) =>
    swatched(view, line.head, quoted(view, { side, index: line[side] }), bold(line.weight)));
  const beginning = !items.length
    ? sayNodes("{piece} has no line: all its weights are below the threshold", { piece })
    : side === "key" ? sayNodes("{piece} looks most at", { piece })
    : sayNodes("{piece} gets the most attention from", { piece });
  begin.append(...beginning);
  return [begin, ...items];
}

/** @param {number} share */
function percent(share) {
  if (share > 0 && share < 0.01) return say("under 1%");
  if (share > 0.99 && share < 1) return say("over 99%");
  return say("{n}%", { n: Math.round(share * 100) });
}

/** @param {View} view */
function drawCount(view) {
  const { lines, all, cut, crowded, share } = view.chosen;
  const values = { all: asNumber(all), share: percent(share) };
  const said = [sayN("{n} of {all} lines is drawn; it carries {share} of the total weight.",
    "{n} of {all} lines are drawn; they carry {share} of the total weight.", lines.length, values)];
  if (crowded) {
    said.push(say("More than {many} lines cannot be distinguished, so no lines are drawn for weights below {cut}.",
      { many: asNumber(MOST_LINES), cut: cut.toFixed(4) }));
  } else if (lines.length < all) {
    said.push(cut
      ? say("Weights below {cut} have no line.", { cut: cut.toFixed(2) })
      : say("Weights that round to 0 have no line."));
  }
  view.note = inARow(said);
  if (view.focus) {
    said.push(say("The number next to a piece is its mean weight over the heads shown; each coloured block is one head."));
  }
  if (view.model.levels <= 255) said.push(say("Weights are rounded to {step}.", { step: "1/255" }));
  view.count.textContent = all ? inARow(said) : "";
}

return { colourOf, titleOf, pieceAt, readout, drawCount };
})();

modules["components/plotly/edges.js"] = (() => {
// @ts-check
// A map of maps: beside its tiles stand the queries, under them the keys, all where there is room for each. Else those
// of the first tile do, or of the one that is pointed at; where they are too close there too, some are left out, but
// never the two of the cell that is pointed at.

const { make } = modules["components/common/dom.js"];
const { lengthOf } = modules["components/plotly/fit.js"];
const { rawText } = modules["components/plotly/numbers.js"];

/** @import { Layout, Plot, View } from "./types.js" */

const ROOM = 13;  // pixels that a name takes along its edge
const LETTER = 6.8;
const GAP = 6;
const MARK = 8;  // of a step, at the left of a row
const SHARE = 0.2;  // of a chart's width or height, that names take at most

/**
 * Which places of tiles in a row have a name: all if there is room; else, as far as there is, those of the tile with the
 * place that is pointed at, which always has one.
 * @param {number} count of a tile
 * @param {number} tiles
 * @param {number} size pixels of a place
 * @param {number | undefined} at a place of all; the first if there is none
 */
function namedInTiles(count, tiles, size, at = 0) {
  const apart = Math.ceil(ROOM / size), every = Array.from({ length: count * tiles }, (_, place) => place);
  if (apart <= 1) return every;
  return every.slice(at - (at % count), at - (at % count) + count).filter((place) => (place - at) % apart === 0);
}

/**
 * Leave room for the names: numbers of layers and heads stand off the plot.
 * @param {Layout} layout
 */
function leaveRoom(layout) {
  const grid = layout.meta?.grid;
  if (!grid) return;
  const room = (/** @type {string[]} */ names, /** @type {number} */ whole) =>
    Math.round(GAP + Math.min(LETTER * Math.max(...names.map((name) => lengthOf(rawText(name)))), SHARE * whole));
  (layout.yaxis ??= {}).ticklabelstandoff = room(grid.queries, layout.width) + MARK;
  (layout.xaxis ??= {}).ticklabelstandoff = room(grid.keys, layout.height);
}

/**
 * Give a chart the names beside its tiles.
 * @param {View} view
 * @returns {{ point: (place?: unknown) => void }} a place that is not a cell's is none
 */
function makeEdges(view) {
  const names = make("div", "gf-edges", "", { "aria-hidden": true });  // the numbers are read as a table
  view.root.append(names);
  return { point: (place) => names.replaceChildren(...beside(view, Array.isArray(place) ? place : [])) };
}

/**
 * Where the places of a chart are drawn on its node, in pixels; null as long as there are none.
 * @param {Plot} plot
 */
function pixelsOf({ _fullLayout: { xaxis, yaxis } = {} }) {
  if (!xaxis?.l2p || !yaxis?.l2p) return null;
  /** @type {(axis: any) => (at: number) => number} */
  const along = (axis) => (at) => axis.l2p(at) + axis._offset;
  return { x: along(xaxis), y: along(yaxis) };
}

/**
 * The names beside the tiles that are in sight.
 * @param {View} view
 * @param {number[]} place the cell that is pointed at
 */
function beside({ plot }, [row, column]) {
  const grid = plot.layout?.meta?.grid;
  const pixels = pixelsOf(plot);
  if (!grid || !pixels || plot.style.display === "none") return [];
  const { xaxis, yaxis } = plot._fullLayout ?? {};
  /**
   * @param {string} kind
   * @param {any} axis
   * @param {(at: number) => number} where
   * @param {number | undefined} at
   * @param {string[]} names
   * @param {number} tiles
   * @param {(along: number) => Record<string, string>} style
   */
  const along = (kind, axis, where, at, names, tiles, style) =>
    namedInTiles(names.length, tiles, Math.abs(where(1) - where(0)), at).flatMap((place) => {
      const pixel = where(place);
      if (pixel < axis._offset || pixel > axis._offset + axis._length) return [];  // the chart is zoomed
      const made = make("span", `gf-edge gf-edge-${kind} gf-quoted`, rawText(names[place % names.length]));
      made.classList.toggle("gf-edge-at", place === at);
      Object.assign(made.style, style(pixel));
      return [made];
    });
  return [
    ...along("query", yaxis, pixels.y, row, grid.queries, grid.layers.length, (top) => ({
      top: `${top}px`, left: `${xaxis._offset - MARK}px`, maxWidth: `${yaxis.ticklabelstandoff - MARK}px` })),
    ...along("key", xaxis, pixels.x, column, grid.keys, grid.heads.length, (left) => ({
      left: `${left}px`, top: `${yaxis._offset + yaxis._length}px`, maxHeight: `${xaxis.ticklabelstandoff}px` })),
  ];
}

return { namedInTiles, leaveRoom, makeEdges, pixelsOf };
})();

modules["components/plotly/enlarge.js"] = (() => {
// @ts-check
// Enlarges all that is measured in pixels in a figure: letters, margins, marks and lines. Room that grows as much keeps
// the figure's proportions; where it does not, `fit.js` names fewer places.

const { PLAIN_TYPE } = modules["components/common/present.js"];
const { decoded } = modules["components/plotly/numbers.js"];

/** @import { Figure } from "./types.js" */

const LENGTHS = new Set(["standoff", "startstandoff", "xshift", "yshift", "borderpad", "borderwidth", "thickness",
  "xpad", "ypad", "ticklen", "ticklabelstandoff", "itemwidth"]);
const MEASURED = /font$|^(?:marker|selected|unselected)$/;

/**
 * Enlarge a figure in place. Its own letters must already be said (`paint.js`): what is left to Plotly would stay small.
 * @param {Figure} figure
 * @param {number} scale
 */
function enlarge({ data, layout }, scale) {
  if (scale === 1) return;
  for (const trace of data) {
    for (const name of Object.keys(trace)) {
      if (isRecord(trace[name]) && !("bdata" in trace[name])) grow(trace[name], name, scale);
    }
  }
  const { meta, ...rest } = layout;
  grow(rest, "", scale);
  if (meta?.follow) grow(meta.follow.marks, "", scale);
}

/** @param {unknown} value */
function isRecord(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !ArrayBuffer.isView(value);
}

/**
 * @param {any} part
 * @param {string} named what it is called in the figure
 * @param {number} scale
 */
function grow(part, named, scale) {
  if (Array.isArray(part)) {
    if (typeof part[0] === "object") for (const entry of part) if (entry) grow(entry, named, scale);
    return;
  }
  for (const [name, value] of Object.entries(part)) {
    if (name === "tickfont") value.size = Math.max(value.size ?? 0, PLAIN_TYPE);  // smaller ones were for phones
    if (isLength(part, named, name)) part[name] = times(value, scale);
    else if (typeof value === "object" && value !== null && !ArrayBuffer.isView(value)) grow(value, name, scale);
  }
}

/**
 * @param {any} part
 * @param {string} named
 * @param {string} name
 */
function isLength(part, named, name) {
  if (name === "size") return MEASURED.test(named);
  if (name === "width") return named === "line";
  if (named === "margin" || named === "pad") return "lrtb".includes(name);
  // An arrow may also begin at a place of an axis.
  if (name === "ax" || name === "ay") return !/^[xy]/.test(part[`${name}ref`] ?? "");
  return LENGTHS.has(name);
}

/**
 * @param {any} value a number, a list of numbers, or one as Python packs it
 * @param {number} scale
 */
function times(value, scale) {
  if (typeof value === "number") return value * scale;
  const listed = decoded(value);
  return Array.isArray(listed) || ArrayBuffer.isView(listed)
    ? Array.from(/** @type {any} */ (listed), (each) => each * scale) : value;
}

return { enlarge };
})();

modules["components/plotly/film.js"] = (() => {
// @ts-check
// Lays out the tiles of a film (`film.py` of the charts of trainings) for the room there is: as many in a row as it holds, in rows of like
// length. What Python sends is laid out for a sheet of paper.

const { decoded } = modules["components/plotly/numbers.js"];

/** @import { Figure, Film, Layout, Trace } from "./types.js" */
/** @typedef {{ columns: number, rows: number, height: number }} Plan */

const GAP = 0.08;  // between two tiles of a row, of the width of one
const LABEL = 36;  // pixels of the name above a tile
const FRAME = 96;  // of title and axis
const SIDE = 76;  // beside the tiles: the names of the axis and of the scale

/**
 * How many tiles stand in a row, and how high all of it is; where no more than `most` pixels are to be had, the tiles
 * are as large as fits.
 * @param {Film} film
 * @param {number} width
 * @param {number} [most]
 * @returns {Plan}
 */
function planned({ names, least, share }, width, most = 0) {
  const count = names.length, room = Math.max(least, width - SIDE);
  /** @param {number} columns */
  const height = (columns) => {
    const tall = (room / (columns + GAP * (columns - 1))) * share;
    return Math.round(FRAME + Math.ceil(count / columns) * (tall + LABEL));
  };
  let columns = Math.max(1, Math.min(count, Math.floor(room / least)));
  if (most) {
    columns = 1;
    while (columns < count && height(columns) > most) columns += 1;
  }
  columns = Math.ceil(count / Math.ceil(count / columns));
  return { columns, rows: Math.ceil(count / columns), height: height(columns) };
}

/**
 * Where cells begin and end along a row of tiles, each 1 long, with a gap after it that is one cell.
 * @param {number} tiles
 * @param {number} cells
 * @param {number} gap
 */
function edges(tiles, cells, gap) {
  const found = Array.from({ length: tiles }, (_, tile) =>
    Array.from({ length: cells + 1 }, (_one, cell) => tile * (1 + gap) + cell / cells)).flat();
  return [...found, tiles * (1 + gap)];
}

/**
 * Lay the tiles of a figure out anew.
 * @param {Figure} figure
 * @param {Plan} plan
 * @param {number} height of all of it, in pixels
 * @param {number} scale of all letters
 */
function wrapFilm({ data, layout }, { columns, rows }, height, scale) {
  /** @type {Film} */
  const film = layout.meta.film;
  const gap = LABEL * scale / Math.max(24, (height - FRAME * scale) / rows - LABEL * scale);
  for (const trace of data) if (["film", "film-closed"].includes(trace.meta)) wrapTrace(trace, film, columns, rows, gap);
  layout.xaxis.range = [-0.01, columns * (1 + GAP) - GAP + 0.01];
  layout.yaxis.range = [rows * (1 + gap) - gap + 0.01, -gap];
  film.names.forEach((_, tile) => {
    const [x, y] = [(tile % columns) * (1 + GAP), Math.floor(tile / columns) * (1 + gap)];
    Object.assign(layout.annotations[tile], { x, y });
    Object.assign(layout.shapes[tile], { x0: x, x1: x + 1, y0: y, y1: y + 1 });
  });
  Object.assign(film, { columns });
}

/**
 * @param {Trace} trace
 * @param {Film} film
 * @param {number} columns
 * @param {number} rows
 * @param {number} gap
 */
function wrapTrace(trace, film, columns, rows, gap) {
  const sent = decoded(trace.z), [height, width] = [film.queries.length + 1, film.keys.length + 1];
  /** @type {[z: any[], customdata: any[]]} */
  const [z, names] = [[], []];
  for (let row = 0; row < rows * height; row += 1) {
    const cells = Array.from({ length: columns * width }, (_, column) => {
      const tile = Math.floor(row / height) * columns + Math.floor(column / width);
      const there = tile < film.names.length && row % height < height - 1 && column % width < width - 1;
      if (!there) return { value: null, named: ["", "", ""] };
      const [from, at] = [Math.floor(tile / film.columns) * height, (tile % film.columns) * width];
      const value = sent[from + (row % height)][at + (column % width)];
      const named = [film.names[tile], film.queries[row % height], film.keys[column % width]];
      return { value: Number.isFinite(value) ? value : null, named };
    });
    z.push(cells.map(({ value }) => value));
    names.push(cells.map(({ named }) => named));
  }
  Object.assign(trace, { z, customdata: names, x: edges(columns, width - 1, GAP), y: edges(rows, height - 1, gap) });
}

/**
 * The place of a click as if one tile stood in a row, which is how Python counts.
 * @param {Layout | undefined} layout
 * @param {number[]} place
 */
function placeInFilm(layout, place) {
  /** @type {Film | undefined} */
  const film = layout?.meta?.film;
  if (!film || place.length !== 2) return place;
  const [height, width] = [film.queries.length + 1, film.keys.length + 1];
  const tile = Math.floor(place[0] / height) * film.columns + Math.floor(place[1] / width);
  return [tile * height + (place[0] % height), place[1] % width];
}

return { planned, wrapFilm, placeInFilm };
})();

modules["components/stepper/chips.js"] = (() => {
// @ts-check
// The pieces of source and output: made once for each run, changed at each step. And what is said of a source piece
// that was picked: who looks at it, and at which step.

const { make, pieceText, set } = modules["components/common/dom.js"];
const { say, sayNodes } = modules["components/common/words.js"];
const { filler, formatProbability } = modules["components/stepper/numbers.js"];

/** @import { SourceChip } from "../common/payloads.js" */
/** @import { View } from "./types.js" */

/** @param {SourceChip} chip */
function sourceChip(chip) {
  const item = make("li", "gf-chip");
  if (chip.special) item.classList.add("gf-special");
  if (chip.unknown) item.classList.add("gf-unknown");
  item.append(pieceText(chip.piece));
  return item;
}

/** @param {string} piece */
function startChip(piece) {
  const item = make("li", "gf-chip gf-start gf-special");
  item.title = say("The model reads this piece first; it is not part of the output.");
  item.append(pieceText(piece), make("span", "gf-probability", say("start")));
  return item;
}

/**
 * Make the chips of a run.
 * @param {View} view
 * @param {(index: number) => void} choose called with an output piece that was clicked
 */
function buildChips(view, choose) {
  const { source, target, start_piece: start } = view.run;
  view.sourceChips = source.map(sourceChip);
  view.sourceList.replaceChildren(...view.sourceChips);
  view.targetChips = target.map((_, index) => {
    const item = make("li", "gf-chip");
    item.addEventListener("click", () => choose(index));
    return item;
  });
  view.targetList.replaceChildren(startChip(start), ...view.targetChips);
}

/**
 * @param {View} view
 * @param {number} index
 * @param {boolean} hidden
 */
function fillTarget(view, index, hidden) {
  const chip = view.run.target[index];
  const item = view.targetChips[index];
  const { still } = view.run;
  const state = index > view.step && !still ? "future" : hidden ? "hidden" : "shown";
  item.className = `gf-chip gf-${state}`;
  item.classList.toggle("gf-now", index === view.step && !still);
  item.classList.toggle("gf-special", Boolean(chip.special) && state === "shown");
  item.classList.toggle("gf-forced", Boolean(chip.forced) && state === "shown");
  item.dataset.filler = filler(chip.piece);
  if (item.dataset.state === state) return;
  item.dataset.state = state;
  if (state !== "shown") {
    const isNext = state === "hidden";
    item.title = isNext ? say("What comes next? Guess first.") : say("Step {n}, not reached yet", { n: index + 1 });
    item.replaceChildren(make("bdi", "gf-piece", isNext ? "?" : "·"), make("span", "gf-probability", "\u00a0"));
    return;
  }
  const values = { piece: chip.piece, id: chip.id };
  item.title = chip.forced
    ? say("{piece}, id {id}: chosen by you, not by the model. Click to go to its step.", values)
    : chip.probability === null ? say("{piece}, id {id}. Click to go to its step.", values)
    : say("{piece}, id {id}. The number below is the probability that the model gave this piece. Click to go to its step.", values);
  const shown = chip.probability === null ? "\u00a0" : formatProbability(chip.probability);
  const probability = make("span", "gf-probability", shown);
  probability.dataset.forced = say("yours");
  item.replaceChildren(pieceText(chip.piece), probability);
}

/**
 * How much a step looks at a source piece, 0 to 1; null if there is no shading.
 * @param {View} view
 * @param {number} step
 * @param {number} index
 */
function weightAt({ run: { source, shading, still } }, step, index) {
  return shading ? shading.steps[(still ? 0 : step) * source.length + index] / shading.levels : null;
}

/** @param {View} view */
function drawSource(view) {
  const { source, shading } = view.run;
  view.sourceChips.forEach((item, index) => {
    const weight = weightAt(view, view.step, index);
    const chip = source[index];
    item.style.setProperty("--weight", String(weight ?? 0));
    item.title = sourceTitle(chip, weight === null ? null : weight.toFixed((shading?.levels ?? 0) > 255 ? 3 : 2));
  });
}

/**
 * @param {SourceChip} chip
 * @param {string | null} weight
 */
function sourceTitle({ piece, id, unknown }, weight) {
  const values = { piece, id, weight: weight ?? "" };
  if (weight === null && unknown) return say("{piece} (not in the vocabulary), id {id}", values);
  if (weight === null) return say("{piece}, id {id}", values);
  if (unknown) return say("{piece} (not in the vocabulary), id {id}, weight {weight} at this step", values);
  return say("{piece}, id {id}, weight {weight} at this step", values);
}

/**
 * The source piece with the largest weight at this step; none if there is no shading.
 * @param {View} view
 */
function strongestSource(view) {
  const weights = view.sourceChips.map((_, index) => weightAt(view, view.step, index) ?? 0);
  return view.run.shading ? view.sourceChips[weights.indexOf(Math.max(...weights))] ?? null : null;
}

/**
 * Whether source pieces can be picked: only where each step has weights of its own, or Python wants to know.
 * @param {View} view
 */
function canPick({ run, data }) {
  return data.choosable || Boolean(run.shading && !run.still && run.target.length);
}

/**
 * Mark the picked piece, and shade each output piece by how much its step looks at it. In guess mode steps that are
 * still to come give nothing away.
 * @param {View} view
 */
function drawPicked(view) {
  const can = canPick(view);
  const picked = view.data.choosable ? view.data.chosen : view.picked;
  view.root.classList.toggle("gf-picking", view.picked !== null);
  set(view.sourceList, { role: can ? "group" : "list" }); // of buttons, or of pieces
  view.sourceChips.forEach((chip, index) => {
    chip.classList.toggle("gf-picked", index === picked);
    if (!can) return chip.removeAttribute("role");
    set(chip, { role: "button", "aria-pressed": index === picked, tabindex: index === (picked ?? 0) ? 0 : -1 });
  });
  view.targetChips.forEach((chip, step) => {
    const weight = picked === null || step > lastSeen(view) ? 0 : weightAt(view, step, picked);
    chip.style.setProperty("--weight", String(weight ?? 0));
  });
}

/** @param {View} view */
function lastSeen(view) {
  return view.data.covered ? view.step : view.run.target.length - 1;
}

/**
 * Under what the step says: what the shades are, or who looks most at the picked piece.
 * @param {View} view
 */
function drawNote(view) {
  const { picked, run } = view;
  if (picked === null) {
    const cut = run.cut ? [make("span", "gf-cut", run.stop_reason), " "] : [];
    return view.note.replaceChildren(...cut, run.shading_label);
  }
  const weights = run.target.slice(0, lastSeen(view) + 1).map((_, step) => weightAt(view, step, picked) ?? 0);
  const most = weights.indexOf(Math.max(...weights));
  const piece = pieceText(run.source[picked].piece, "gf-quoted");
  const values = { piece, n: String(most + 1), weight: formatProbability(weights[most]) };
  const said = sayNodes("The output is shaded by its attention to ‘{piece}’, which is strongest at step {n} ({weight})", values);
  view.note.replaceChildren(...said);
}

return { buildChips, fillTarget, weightAt, drawSource, strongestSource, canPick, drawPicked, drawNote };
})();

modules["components/common/under.js"] = (() => {
// @ts-check
// What stands under a picture: one button with all that can be done with it, and how to read it, of which the rest
// comes when it is asked for.
//
// In the large view both move into a dialog as large as the window, and come back. Its letters are large, and it says
// what the step reads and predicts, since arrow keys go on stepping; the stepper is behind it.

const { make, makeButton, set } = modules["components/common/dom.js"];
const { largeHere } = modules["components/common/present.js"];
const { makeLines } = modules["components/common/said.js"];
const { followStatus } = modules["components/common/step.js"];
const { say } = modules["components/common/words.js"];

/**
 * @typedef {object} Foot
 * @property {HTMLElement} foot
 * @property {HTMLElement} tools the buttons; hidden as long as there is no picture
 * @property {HTMLButtonElement} button opens the menu
 * @property {HTMLButtonElement} expand its first entry
 * @property {HTMLButtonElement} table its second
 * @property {(text: string) => void} tell what is said under the picture
 */

/**
 * @typedef {Foot & {
 *   dialog: HTMLDialogElement, isLarge: () => boolean, write: import("./said.js").Lines["tell"]
 * }} Under
 */

/** About a line of a chart in half a page; a Chinese letter is as wide as two. */
const SHOWN = 110;
const HEIGHT = 190;  // of the menu, at most
const WIDE = /[\u2e80-\uffee]/gu;
const BETWEEN = /(?<=[.!?]["”’)]?)\s+(?=["“‘(]?[\p{Lu}\u2e80-\uffee])|(?<=[。！？]["”’）]?)/u;

/**
 * A text in two: the first sentence, and what else goes into a line; all that follows.
 * @param {string} text
 * @returns {[first: string, rest: string]}
 */
function shortened(text) {
  const sentences = text.split(BETWEEN);
  let end = sentences[0].length;
  for (const sentence of sentences.slice(1)) {
    const next = text.indexOf(sentence, end) + sentence.length;
    const shown = text.slice(0, next);
    if (shown.length + (shown.match(WIDE)?.length ?? 0) > SHOWN) break;
    end = next;
  }
  return [text.slice(0, end), text.slice(end)];
}

/**
 * @param {{ open: () => void, data: () => void, picture: (format: "svg" | "png") => void }} acts
 * @returns {Foot}
 */
function makeFoot({ open, data, picture }) {
  const [foot, tools] = [make("div", "gf-foot"), make("div", "gf-tools", "", { role: "group" })];
  const title = say("Chart: expand, download…");
  const list = make("div", "gf-menu", "", { role: "menu", "aria-label": title });
  const button = makeButton("gf-tool gf-menu-button", "⋯", title, () => {},
    { "aria-label": title, "aria-haspopup": "menu" });
  /** @type {(label: string, act: () => void) => HTMLButtonElement} */
  const entry = (label, act) => {
    const made = makeButton("gf-menu-entry", label, "", () => {
      list.hidePopover();
      button.focus({ preventScroll: true });
      act();
    }, { role: "menuitem" });
    list.append(made);
    return made;
  };
  const expand = entry(say("Show this chart large"), open);
  const table = entry(say("Download the data as CSV"), data);
  entry(say("Download the picture as SVG"), () => picture("svg"));
  entry(say("Download the picture as PNG"), () => picture("png"));
  opens(button, list);
  const [told, tell] = makeTold();
  tools.append(button, list);
  foot.append(tools, told);
  return { foot, tools, button, expand, table, tell };
}

/**
 * Have a button open a list, and the keyboard move in it.
 * @param {HTMLButtonElement} button
 * @param {HTMLElement} list
 */
function opens(button, list) {
  list.popover = "auto";
  button.popoverTargetElement = list;
  const entries = () => Array.from(list.querySelectorAll("button")).filter((entry) => !entry.hidden);
  let stood = 0;  // where the button was when the list came: a scroll of before, or of another box, moves nothing
  const away = () => {
    if (list.isConnected && Math.abs(button.getBoundingClientRect().top - stood) > 1) list.hidePopover();
  };
  list.addEventListener("beforetoggle", (event) => {
    const isOpen = /** @type {ToggleEvent} */ (event).newState === "open";
    set(button, { "aria-expanded": isOpen });
    window[isOpen ? "addEventListener" : "removeEventListener"]("scroll", away, true);
    // The browser gives the focus to the first that is not hidden; else they ask for it nowhere, as in the large view.
    for (const entry of entries()) entry.autofocus = isOpen;
    if (!isOpen) return;
    const { right, top, bottom } = button.getBoundingClientRect();
    stood = top;
    const above = bottom + HEIGHT > innerHeight;
    Object.assign(list.style, {
      right: `${document.documentElement.clientWidth - right}px`,
      top: above ? "auto" : `${bottom}px`, bottom: above ? `${innerHeight - top}px` : "auto",
    });
  });
  list.addEventListener("keydown", (event) => {
    event.stopPropagation();  // Escape closes this, and nothing around it
    const all = entries();
    const at = all.findIndex((entry) => entry.matches(":focus"));
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    all.at(to % all.length)?.focus();
  });
}

/** @returns {[told: HTMLElement, tell: (text: string) => void]} */
function makeTold() {
  const [told, first, rest] = [make("p", "gf-told"), make("span"), make("span")];
  const more = makeButton("gf-more", "", "", () => unfold(rest.hidden === true));
  /** @param {boolean} isOpen */
  const unfold = (isOpen) => {
    rest.hidden = !isOpen;
    more.textContent = isOpen ? say("Less") : say("More");
    set(more, { "aria-expanded": isOpen });
  };
  unfold(false);
  told.append(first, rest, " ", more);
  return [told, (text) => {
    [first.textContent, rest.textContent] = shortened(text);
    told.hidden = !text;
    more.hidden = !rest.textContent;
  }];
}

/**
 * Give a picture what stands under it, and its large view.
 * @param {HTMLElement} home where both stand on the page, before all else
 * @param {HTMLElement} shown
 * @param {{
 *   className: string, name: () => string, changed: () => void,
 *   data: () => void, picture: (format: "svg" | "png") => void,
 * }} options `className` is the dialog's, `name` the component's, which says its run; `changed` is called once the
 *   picture has moved
 * @returns {Under}
 */
function makeUnder(home, shown, { className, name, changed, data, picture }) {
  const [dialog, status] = [make("dialog", className), make("p", "gf-status", "", { "aria-live": "polite" })];
  let unfollow = () => {};
  const setType = () => dialog.style.setProperty("--gf-rem", `${largeHere()}px`);
  const open = () => {
    if (dialog.open) return;
    home.style.height = `${home.offsetHeight}px`;  // the page behind keeps its place
    setType();
    window.addEventListener("resize", setType);
    unfollow = followStatus(name(), status);
    dialog.append(shown, foot.foot);
    lines.place();
    dialog.showModal();
    moved();
  };
  const foot = makeFoot({ open, data, picture });
  const lines = makeLines(shown, foot.foot);
  const moved = () => {
    foot.expand.hidden = dialog.open;
    changed();
  };
  const close = () => dialog.close();
  dialog.append(status, makeButton("gf-close", "✕", say("Close (Esc)"), close, { "aria-label": say("Close") }));
  home.append(shown, foot.foot, dialog);
  dialog.addEventListener("click", (event) => event.target === dialog && isBeside(dialog, event) && close());
  // For Escape, the button and a click beside the dialog alike.
  dialog.addEventListener("close", () => {
    unfollow();
    window.removeEventListener("resize", setType);
    home.prepend(shown, foot.foot);
    lines.place();
    home.style.height = "";
    moved();
    foot.button.focus();
  });
  return { ...foot, dialog, isLarge: () => dialog.open, write: lines.tell };
}

/**
 * @param {HTMLElement} dialog
 * @param {MouseEvent} event
 */
function isBeside(dialog, { clientX: x, clientY: y }) {
  const { left, right, top, bottom } = dialog.getBoundingClientRect();
  return x < left || x > right || y < top || y > bottom;
}

return { shortened, makeFoot, makeUnder };
})();

modules["components/glossary/stops.js"] = (() => {
// @ts-check
// Where the Tab key stops: one empty element for each marked term, behind the part of the page it stands in.

const { make } = modules["components/common/dom.js"];
const { PAGE } = modules["components/common/streamlit-page.js"];
const { hideTip, showTip } = modules["components/glossary/tip.js"];

/** @import { Marked, View } from "./types.js" */

/**
 * Have a stop for each marked term, and no other, in the order of the page. Stops that are right stay: one of them may
 * have the focus.
 * @param {View} view
 * @param {Map<string, Marked>} found
 */
function renewStops(view, found) {
  /** @type {Map<Element, HTMLElement[]>} */
  const wanted = new Map();
  for (const [id, { range }] of found) {
    const home = homeOf(range);
    if (!home) continue;
    const stop = view.stops.get(id) ?? makeStop(view, id);
    view.stops.set(id, stop);
    wanted.set(home, [...wanted.get(home) ?? [], stop]);
  }
  const kept = new Set([...wanted.values()].flat());
  for (const [id, stop] of view.stops) {
    if (kept.has(stop)) continue;
    stop.remove();
    view.stops.delete(id);
  }
  for (const [home, stops] of wanted) {
    const last = [...home.children].slice(-stops.length);
    if (stops.some((stop, place) => stop !== last[place])) home.append(...stops);
  }
}

/**
 * The part of the page that a text stands in. It is Streamlit's, and takes no harm from one more element at its end.
 * @param {Range} range
 */
function homeOf(range) {
  const root = range.startContainer.getRootNode();
  const element = root instanceof ShadowRoot ? root.host : range.startContainer.parentElement;
  return element?.closest(PAGE.element) ?? null;
}

/**
 * Scroll a term to the middle, unless it is well in the window already: what sticks to its top would cover it there.
 * @param {Range} range
 */
function bringIntoView(range) {
  const { top, bottom } = range.getBoundingClientRect();
  if (top < innerHeight * 0.4 || bottom > innerHeight) {
    range.startContainer.parentElement?.scrollIntoView({ block: "center" });
  }
}

/**
 * @param {View} view
 * @param {string} id
 */
function makeStop(view, id) {
  const stop = make("span", "gf-term-stop", "", {
    role: "note", tabindex: 0, "aria-label": view.terms.get(id)?.name ?? "", "aria-describedby": view.tip.element.id,
  });
  stop.addEventListener("focus", () => {
    const marked = [...view.marked.values()].flat().find(({ term }) => term.id === id);
    if (!marked) return;
    bringIntoView(marked.range);
    showTip(view.tip, marked);
  });
  stop.addEventListener("blur", () => hideTip(view.tip));
  return stop;
}

return { renewStops };
})();

modules["components/plotly/moments.js"] = (() => {
// @ts-check
// A chart at the step that is looked at: what Python sent, or what it shows at another step, once its frames are here.

const { set } = modules["components/common/dom.js"];
const { framesOf, momentAt, whenIdle, whenWanted } = modules["components/common/frames.js"];
const { ask, currentStep } = modules["components/common/step.js"];
const { moveMark } = modules["components/plotly/follow.js"];
const { axisNames } = modules["components/plotly/paint.js"];

/** @import { PlotlyPayload } from "../common/payloads.js" */
/** @import { Layout, View } from "./types.js" */

/**
 * Show what was sent, or the picture at the step that is looked at, where its frames are here.
 * @param {View} view
 * @param {(view: View) => void} draw
 */
function showMoment(view, draw) {
  const { frames, sent } = view;
  const step = currentStep(sent.name);
  const moves = frames !== null && step !== null && step !== sent.step && step < frames.changes.length;
  const moment = moves ? momentAt(frames, step) : null;
  view.at = moves ? step : sent.step;
  view.data = moment ? { ...sent, ...moment, figure: JSON.stringify(moment.figure) } : sent;
  view.under.tell(view.data.caption);
  view.under.write(view.data.said);
  for (const named of [view.plot, view.under.dialog, view.under.tools]) set(named, { "aria-label": view.data.alt });
  draw(view);
}

/**
 * Fetch what the picture shows at other steps, if it has that; until it is here Python draws each step.
 * @param {View} view
 * @param {PlotlyPayload} payload
 * @param {(view: View) => void} draw
 */
function listen(view, { follows, name }, draw) {
  if (follows === view.follows) return;
  Object.assign(view, { follows, frames: null });
  ask(view, name, follows !== "still");
  if (follows === "still" || follows === "server") return;
  const isOver = () => view.gone || view.follows !== follows;
  whenWanted().then(() => (isOver() ? null : framesOf(follows))).then((frames) => {
    if (isOver() || !frames) return;
    view.frames = frames;
    ask(view, name, false);
    follow(view, draw);
  });
}

/**
 * Follow the step: at once where it is seen, else when there is nothing else to do.
 * @param {View} view
 * @param {(view: View) => void} draw
 */
function follow(view, draw) {
  if (view.gone) return;
  if (!view.frames || currentStep(view.sent.name) === view.at) moveMark(view);
  else if (view.inSight) showMoment(view, draw);
  else whenIdle().then(() => view.inSight || view.gone || showMoment(view, draw));
}

const HIDDEN_LABEL = ":is(.xtick, .ytick) > text[style*='display: none']";

/**
 * Keep the left margin of the picture of another step of the same chart, so that it stands still: else Plotly draws
 * twice where labels are longer or shorter. And where each label fitted, Plotly need not measure all of them again.
 * @param {View} view
 * @param {Layout} layout
 */
function steady({ plot, sent, kept, frames, width, height, scale }, layout) {
  const drawn = plot._fullLayout?._size;
  if (!frames || !drawn || JSON.stringify([width, height, scale]) !== kept.room || kept.sent !== sent) return;
  layout.margin = { ...layout.margin, l: Math.max(layout.margin?.l ?? 0, drawn.l) };
  if (plot.querySelector(HIDDEN_LABEL)) return;
  for (const name of axisNames(layout)) layout[name].ticklabeloverflow = "allow";
}

/**
 * Know whether a chart is in sight; one that comes into sight shows the step.
 * @param {View} view
 * @param {AbortSignal} gone
 * @param {(view: View) => void} draw
 */
function watch(view, gone, draw) {
  const sight = new IntersectionObserver((entries) => {
    view.inSight = entries[entries.length - 1].isIntersecting;
    if (view.inSight && view.frames) follow(view, draw);
  });
  sight.observe(view.root);
  gone.addEventListener("abort", () => sight.disconnect());
}

return { showMoment, listen, follow, steady, watch };
})();

modules["components/plotly/table.js"] = (() => {
// @ts-check
// What a chart draws as a table, out of the figure that Python sent.
//
// A map is one row a cell, any other chart one row a mark. Columns are named by the axes. A figure for which that
// does not fit says its table itself: `layout.meta.table = {columns, rows}`, in plain text and numbers. A trace whose
// hover ends in a reason in italics holds the places that have no number. Traces that only draw a mark, or only catch
// the mouse, are no data: they have neither hover nor name, or no colour. The table of a map of maps is Python's.

const { say } = modules["components/common/words.js"];
const { decoded, rawText, shortest } = modules["components/plotly/numbers.js"];
const { TRANSPARENT } = modules["components/plotly/paint.js"];

/** @import { Cell } from "../common/save.js" */
/** @import { Figure, Layout, Table, Trace } from "./types.js" */

/** @typedef {{ titles: string[], at: (place: any) => Cell[] }} Columns */

/** @param {Trace} trace */
function isData(trace) {
  const unnamed = trace.hoverinfo === "skip" && !trace.name;
  return !unnamed && trace.visible !== false && trace.marker?.color !== TRANSPARENT;
}

/**
 * Why the places of a trace are closed; undefined for a trace with numbers.
 * @param {Trace} trace
 */
function reasonOf(trace) {
  const template = typeof trace.hovertemplate === "string" ? trace.hovertemplate : "";
  const found = template.match(/<i>([^<%]*)<\/i>(<extra><\/extra>)?$/);
  return found ? rawText(found[1]) : undefined;
}

/**
 * Whether labels only count, like positions: then they are numbers, and need no other number beside them.
 * @param {string[]} labels
 */
function counts(labels) {
  return labels.every((label, place) => label === String(place + Number(labels[0])));
}

/**
 * What an axis calls a place: its number and piece, or the value itself.
 * @param {Layout} layout
 * @param {string} id
 * @param {ArrayLike<any>} shown the places of the data
 * @returns {Columns}
 */
function axisColumns(layout, id, shown) {
  const name = `${id[0]}axis${id.slice(1)}`;
  const axis = layout[name] ?? {};
  const ticks = layout.meta?.ticks?.[name];
  const title = rawText(ticks?.title ?? axis.title?.text) || id[0];
  if (ticks) {
    /** @type {string[]} */
    const labels = ticks.labels;
    const pieces = labels.map((label, place) => rawText(ticks.whole?.[place] ?? label));
    if (counts(pieces)) return { titles: [title], at: (place) => [Number(pieces[place])] };
    return { titles: [say("{title} number", { title }), title], at: (place) => [place + 1, pieces[place]] };
  }
  const named = new Map(Array.from(decoded(axis.tickvals), (place, index) => [place, axis.ticktext?.[index]]));
  if (axis.ticktext && Array.from(shown).every((place) => named.has(place))) {
    return { titles: [say("{title} place", { title }), title], at: (place) => [place, rawText(named.get(place))] };
  }
  return { titles: [title], at: (value) => [typeof value === "string" ? rawText(value) : value] };
}

/** @type {(one: Trace, other: Trace) => boolean} */
const sameAxes = (one, other) =>
  (one.xaxis ?? "x") === (other.xaxis ?? "x") && (one.yaxis ?? "y") === (other.yaxis ?? "y");

/**
 * Places along a side of a map.
 * @param {any} given
 * @param {number | undefined} first
 * @param {number | undefined} step
 * @param {number} count
 * @returns {any}
 */
function places(given, first, step, count) {
  const list = decoded(given);
  return list.length ? list : Array.from({ length: count }, (_, place) => (first ?? 0) + place * (step ?? 1));
}

/**
 * @param {Trace} trace
 * @param {Layout} layout
 * @param {Trace[]} closed
 * @returns {Table}
 */
function mapTable(trace, layout, closed) {
  /** @type {number[][]} */
  const z = decoded(trace.z);
  const reasons = closed.map((other) => ({ cells: decoded(other.z), why: reasonOf(other) }));
  const xs = places(trace.x, trace.x0, trace.dx, z[0]?.length ?? 0);
  const ys = places(trace.y, trace.y0, trace.dy, z.length);
  const x = axisColumns(layout, trace.xaxis ?? "x", xs);
  const y = axisColumns(layout, trace.yaxis ?? "y", ys);
  const value = rawText(trace.name ?? trace.colorbar?.title?.text) || say("value");
  /** @type {Cell[][]} */
  const rows = [];
  z.forEach((line, i) => line.forEach((_, j) => {
    const why = reasons.find(({ cells }) => Number.isFinite(cells[i][j]))?.why;
    rows.push([...y.at(ys[i]), ...x.at(xs[j]), why ? null : shortest(line, j), why ?? ""]);
  }));
  return { columns: [...y.titles, ...x.titles, value, say("note")], rows };
}

/**
 * @param {Trace} trace
 * @param {Layout} layout
 * @param {Trace[]} closed
 * @returns {Table}
 */
function markTable(trace, layout, closed) {
  const [given, across] = [decoded(trace.x), decoded(trace.y)];
  const count = Math.max(given.length, across.length);
  /** @type {any[]} */
  const [xs, ys] = [given, across].map((list) => (list.length ? list : Array.from({ length: count }, (_, i) => i)));
  const x = axisColumns(layout, trace.xaxis ?? "x", xs);
  const y = axisColumns(layout, trace.yaxis ?? "y", ys);
  const flat = trace.orientation === "h";
  const reasons = new Map(closed.flatMap((other) =>
    Array.from(decoded(flat ? other.y : other.x), (place) => [place, reasonOf(other)])));
  const texts = [trace.hovertext ?? trace.text ?? []].flat().map(rawText);
  const rows = Array.from({ length: count }, (_, i) => {
    const why = reasons.get((flat ? ys : xs)[i]);
    const [left, right] = [x.at(shortest(xs, i)), y.at(shortest(ys, i))];
    return [...left, ...(why ? right.map(() => null) : right), texts[i] ?? "", why ?? ""];
  });
  return { columns: [...x.titles, ...y.titles, say("text"), say("note")], rows };
}

/**
 * One table out of several: their columns side by side, and which trace a row is from.
 * @param {Table[]} tables
 * @param {string[]} names
 * @returns {Table}
 */
function joined(tables, names) {
  const series = say("series");
  const columns = [...new Set([series, ...tables.flatMap((table) => table.columns)])];
  const rows = tables.flatMap((table, index) => table.rows.map((row) => {
    const cells = new Map(table.columns.map((column, place) => [column, row[place]]));
    return columns.map((column) => (column === series ? names[index] : cells.get(column)));
  }));
  return { columns, rows };
}

/**
 * Drop a column of remarks that says nothing, or only repeats the piece beside it.
 * @param {Table} table
 * @returns {Table}
 */
function tidied({ columns, rows }) {
  const remarks = [say("text"), say("note")];
  /** @type {(row: Cell[], place: number) => boolean} */
  const says = (row, place) => Boolean(row[place]) && !row.some((cell, at) => at !== place
    && typeof cell === "string" && cell === String(row[place]).replace(/^\d+: /, ""));
  const kept = columns.map((_, place) => place).filter((place) =>
    !remarks.includes(columns[place]) || rows.some((row) => says(row, place)));
  return { columns: kept.map((place) => columns[place]), rows: rows.map((row) => kept.map((place) => row[place])) };
}

/** @param {string[]} columns */
function numbered(columns) {
  return columns.map((name, place) => {
    const before = columns.slice(0, place).filter((other) => other === name).length;
    return before ? `${name} ${before + 1}` : name;
  });
}

/**
 * The table of a figure as Python sent it.
 * @param {Figure} figure
 * @returns {Table}
 */
function tableOf({ data, layout }) {
  if (layout.meta?.table) return layout.meta.table;
  const drawn = data.filter(isData);
  const traces = drawn.filter((trace) => reasonOf(trace) === undefined);
  const tables = traces.map((trace) => {
    const closed = drawn.filter((other) => reasonOf(other) !== undefined && sameAxes(trace, other));
    const table = trace.z ? mapTable(trace, layout, closed) : markTable(trace, layout, closed);
    return { columns: numbered(table.columns), rows: table.rows };
  });
  const names = traces.map((trace, index) => rawText(trace.name) || say("series {n}", { n: index + 1 }));
  return tidied(tables.length === 1 ? tables[0] : joined(tables, names));
}

return { numbered, tableOf };
})();

modules["components/glossary/list.js"] = (() => {
// @ts-check
// All terms of the glossary, with a field to search in and a link to where each is seen.

const { make, set } = modules["components/common/dom.js"];
const { isPlain } = modules["components/common/keys.js"];
const { openInPlace } = modules["components/common/links.js"];
const { mount } = modules["components/common/mount.js"];
const { sayN, say, spoken } = modules["components/common/words.js"];

/** @import { Component, Create, GlossaryListPayload, ListedTerm, Show } from "../common/payloads.js" */

/**
 * @typedef {object} View
 * @property {HTMLInputElement} search
 * @property {HTMLElement} count
 * @property {HTMLElement} list
 * @property {Map<string, HTMLElement>} entries
 * @property {string} said
 * @property {string | null} chosen
 * @property {Component<GlossaryListPayload>} [component]
 */

/** @type {Create<View>} */
function create(root) {
  const [tools, list] = [make("div", "gf-glossary-tools"), make("dl", "gf-glossary-list")];
  const what = say("Find a term");
  const search = make("input", "gf-glossary-search", "", { type: "search", placeholder: what, "aria-label": what });
  const count = make("span", "gf-glossary-count", "", { "aria-live": "polite" });
  tools.append(search, count);
  root.append(tools, list);
  /** @type {View} */
  const view = { search, count, list, entries: new Map(), said: "", chosen: null };
  search.addEventListener("input", () => sift(view));
  return view;
}

/**
 * A link that this page follows itself; opened in another tab it leads to the same.
 * @param {string} text
 * @param {string} address
 * @param {() => void} follow
 */
function link(text, address, follow) {
  const element = make("a", "", text);
  element.href = address;
  element.addEventListener("click", (event) => {
    if (!isPlain(event) || event.shiftKey) return;
    event.preventDefault();
    follow();
  });
  return element;
}

/**
 * @param {View} view
 * @param {ListedTerm} term
 */
function entry(view, { id, name, text, also, place, address }) {
  const row = make("div", "gf-glossary-entry");
  row.dataset.found = [name, also, text, place].join(" ").toLocaleLowerCase();
  const [title, where] = [make("dt"), make("dd")];
  title.append(link(name, `?term=${encodeURIComponent(id)}`, () => view.component?.setStateValue("term", id)));
  if (place && address) where.append(link(place, address, () => openInPlace(address)));
  row.append(title, make("dd", "", text), where);
  return row;
}

/**
 * Show the entries that hold what is searched for: in a name, the definition, or where it is seen.
 * @param {View} view
 */
function sift({ search, entries, count }) {
  const wanted = search.value.trim().toLocaleLowerCase();
  let n = 0;
  for (const row of entries.values()) {
    row.hidden = !row.dataset.found?.includes(wanted);
    n += Number(!row.hidden);
  }
  count.textContent = sayN("{n} term", "{n} terms", n);
}

/** @type {Show<View, GlossaryListPayload>} */
function show(view, component) {
  const { terms, chosen } = component.data.payload;
  view.component = component;
  const said = JSON.stringify(terms);
  if (said !== view.said) {
    const order = new Intl.Collator(spoken());
    const sorted = terms.toSorted((one, other) => order.compare(one.name, other.name));
    view.entries = new Map(sorted.map((term) => [term.id, entry(view, term)]));
    view.list.replaceChildren(...view.entries.values());
    view.said = said;
    view.chosen = null;
    sift(view);
  }
  if (chosen !== view.chosen) choose(view, chosen);
}

/**
 * @param {View} view
 * @param {string} chosen
 */
function choose(view, chosen) {
  view.chosen = chosen;
  for (const [id, row] of view.entries) set(row, { "aria-current": id === chosen });
  const row = view.entries.get(chosen);
  if (!row) return;
  if (row.hidden) {
    view.search.value = "";
    sift(view);
  }
  row.scrollIntoView({ block: "nearest" });
}

const component = mount({ styles: "glossary", className: "gf-glossary", create, show });

return { component };
})();

modules["components/stepper/rest.js"] = (() => {
// @ts-check
// Where the reader rests while nothing on the page has to be drawn for a step. Shows nothing. The address and the menu
// say it at once; Python hears of it as soon as the reader does anything but step, so a walk of many steps asks nobody.

const { pointMenu } = modules["components/common/links.js"];
const { isThere } = modules["components/common/mount.js"];
const { moveStep, offerRest, runOf } = modules["components/common/step.js"];
const { atOnce, isPage } = modules["components/common/streamlit-page.js"];

/** @import { Component, RestPayload } from "../common/payloads.js" */
/** @import { Report } from "../common/step.js" */

const SETTLE_MS = 200;
const DOING = ["pointerdown", "click", "input", "change", "drop"];

/** What Python has not heard of: of the page's own run, as no other has an address. @type {Report | null} */
let untold = null;
/** How Python is told of it. @type {(report: Report) => void} */
let tell = () => {};
/** The step of each address that the browser has been at since Python heard last. @type {Map<string, number>} */
const steps = new Map();

/** Tell Python now where the reader rests, ahead of what the reader does next. */
function tellRest() {
  const report = untold;
  forget();
  if (report) atOnce(() => tell(report));
}

/**
 * Where the reader stays when Python, which has not heard of it, says another step, as a server that has begun anew
 * does; then it will hear. Null if it has.
 * @param {string} run
 * @param {{ step: number, step_revision: number }} drawn
 */
function stays(run, drawn) {
  if (untold?.run_id !== run) return null;
  const news = drawn.step_revision !== untold.step_revision;  // else a stepper that is put up again, as drawn before
  if (news && drawn.step !== untold.step) setTimeout(tellRest, SETTLE_MS);
  untold.step_revision = drawn.step_revision;
  return untold.step;
}

function forget() {
  untold = null;
  steps.clear();
}

/**
 * Have the address say a step, as an entry of the browser's history; whether it does.
 * @param {[string, string]} addresses
 * @param {number} step
 * @param {number} before what it says now
 */
function write([first, second], step, before) {
  if (steps.get(location.search) === step) return true;
  const query = step ? second.replace(/(^|&)step=2(?=&|$)/, `$1step=${step + 1}`) : first;
  try {
    steps.set(location.search, before);
    history.pushState({}, "", query ? `?${query}` : location.pathname);
    steps.set(location.search, step);
  } catch (error) {  // Safari allows a hundred in half a minute
    console.warn(error);
    return false;
  }
  return true;
}

/** @param {Event} event */
function onDoing(event) {
  const stepping = event.composedPath().some((at) => at instanceof Element && at.matches(".gf-controls, .gf-target"));
  if (!stepping) tellRest();
}

/**
 * Whoever goes to another address is at its step: Streamlit has asked Python for that page. But an address that Python
 * was at last is no news to it, so the stepper goes there by itself.
 */
function onPop() {
  const step = steps.get(location.search);
  forget();
  if (step === undefined) return;
  pointMenu(step);
  moveStep(step, 0, true);
}

addEventListener("popstate", onPop);
for (const name of DOING) document.addEventListener(name, onDoing, { capture: true });

/** @param {Component<RestPayload>} component */
function component({ data: { payload: { name, addresses } }, parentElement, setStateValue }) {
  isThere(parentElement);
  const own = !runOf(name);
  /** @param {Report} report */
  const now = (report) => setStateValue("step", report);
  if (own) tell = now;
  const end = offerRest(name, (report, before) => {
    if (own) pointMenu(report.step);
    if (!own || !addresses || !isPage("rests") || !write(addresses, report.step, before)) {
      if (own) forget();
      else tellRest();
      return now(report);
    }
    untold = { ...report, written: location.search.slice(1) };
  });
  return () => setTimeout(() => {
    if (parentElement.isConnected) return;
    end();
    if (tell === now) tell = () => {};
  });
}

return { SETTLE_MS, tellRest, stays, component };
})();

modules["components/flow/drawing.js"] = (() => {
// @ts-check
// Draws what has changed: lines, marks on the pieces, and what is said about them.

const { cssVariable, pen, set } = modules["components/common/dom.js"];
const { say } = modules["components/common/words.js"];
const { everyHead, KEPT, pinned, same, shownHeads, stepRow } = modules["components/flow/choices.js"];
const { rowCentre, scene } = modules["components/flow/places.js"];
const { colourOf, drawCount, pieceAt, readout } = modules["components/flow/readout.js"];
const { chooseLines, formatWeight, meansOf, SIDES } = modules["components/flow/weights.js"];

/** @import { Side } from "../common/payloads.js" */
/** @import { Look, Scene, View } from "./types.js" */

/** @param {View} view */
function update(view) {
  if (!view.rows) return;
  const started = performance.now();
  view.shown = shownHeads(view);
  look(view);
  view.chosen = chooseLines(view.model, view.shown, KEPT.threshold, view.focus);
  view.painted = scene(view, view.spans.middle, view.rows);
  drawChips(view);
  for (const side of SIDES) drawTokens(view, side);
  markStep(view);
  view.readout.replaceChildren(...readout(view));
  drawCount(view);
  paint(view);
  const { dataset } = view.root;
  const pin = pinned(view);
  dataset.lines = String(view.chosen.lines.length);
  dataset.focus = view.focus ? `${view.focus.side} ${view.focus.index}` : "";
  dataset.pinned = pin ? `${pin.side} ${pin.index}` : "";
  dataset.heads = view.shown.map((head) => head + 1).join(" ");
  dataset.drawMs = (performance.now() - started).toFixed(1);
}

/**
 * Which piece's lines are drawn, and which pair is looked at beside a pinned piece.
 * @param {View} view
 */
function look(view) {
  const pin = pinned(view);
  const { pointed } = view;
  const beside = pin && pointed && pointed.side !== pin.side;
  view.focus = beside ? pin : pointed ?? pin;
  view.pair = null;
  if (!beside) return;
  const [query, key] = pin.side === "query" ? [pin.index, pointed.index] : [pointed.index, pin.index];
  view.pair = { query, key };
}

/** @param {View} view */
function drawChips(view) {
  view.heads.hidden = view.data.together;
  Array.from(view.chips.children).forEach((chip, head) => {
    if (chip instanceof HTMLElement) chip.style.setProperty("--head", colourOf(view, head));
    set(chip, { "aria-pressed": view.shown.includes(head), "aria-label": say("Head {n}", { n: head + 1 }) });
  });
  const weight = KEPT.threshold.toFixed(2);
  view.slider.value = String(KEPT.threshold);
  view.cutText.textContent = weight;
  set(view.slider, { "aria-valuetext": say("weight {weight}", { weight }) });
  const stepped = view.data.row_of_step.length > 0;
  view.follow.hidden = !stepped;
  set(view.follow, { "aria-pressed": view.following && stepped });
}

/** @param {View} view */
function markStep(view) {
  const now = stepRow(view);
  view.tokens.query.forEach((made, index) => made.classList.toggle("gf-flow-now", index === now));
}

/**
 * @param {View} view
 * @param {Side} side
 */
function drawTokens(view, side) {
  const { focus, shown } = view;
  const means = focus && focus.side !== side ? meansOf(view.model, shown, focus) : null;
  const pin = pinned(view);
  view.tokens[side].forEach((made, index) => {
    const mean = means?.[index] ?? null;
    const closed = means !== null && mean === null && shown.length > 0;
    const isPinned = same(pin, { side, index });
    made.classList.toggle("gf-flow-focus", same(focus, { side, index }));
    made.classList.toggle("gf-flow-pinned", isPinned);
    made.classList.toggle("gf-flow-closed", closed);
    made.style.setProperty("--weight", Math.sqrt(mean ?? 0).toFixed(3));
    const value = made.lastElementChild;
    if (value) value.textContent = closed ? say("masked") : mean === null ? "" : formatWeight(mean);
    set(made, { "aria-selected": isPinned });
    const piece = pieceAt(view, { side, index });
    made.title = closed ? say("{piece} (masked: attention not allowed)", { piece }) : piece;
  });
}

/** @param {View} view */
function appearance(view) {
  const plain = cssVariable(view.root, "--st-text-color", "#31333f");
  const sideOf = (/** @type {string} */ name) =>
    (name === "neutral" ? plain : cssVariable(view.root, `--gf-${name}-text`, "#333333"));
  return {
    colours: everyHead(view).map((head) => colourOf(view, head)),
    faint: view.root.dataset.theme === "dark" ? "#27313d" : "#ebe8df",
    background: cssVariable(view.root, "--st-background-color", "#ffffff"),
    text: plain, query: sideOf(view.data.query_side), key: sideOf(view.data.key_side),
    line: (view.focus ? 2.2 : 1.6) * view.scale, size: view.textSize,
  };
}

/**
 * Only what is in view is painted: a canvas as tall as 512 rows would take a hundred megabytes.
 * @param {View} view
 */
function paint(view) {
  if (!view.painted || !view.rows) return;
  const height = Math.min(view.rows.height, view.scroll.clientHeight);
  const [width, scale] = [view.spans.middle, Math.min(2, window.devicePixelRatio || 1)];
  const { canvas } = view;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = pen(canvas);
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  paintCanvas(context, view.painted, appearance(view), view.scroll.scrollTop, height);
}

/**
 * Paint what is in view: `top` is how far it is scrolled, `height` what is seen.
 * @param {CanvasRenderingContext2D} context
 * @param {Scene} drawn
 * @param {Look} how
 * @param {number} top
 * @param {number} height
 */
function paintCanvas(context, drawn, how, top, height) {
  context.lineWidth = how.line;
  context.lineCap = "butt";
  for (const line of drawn.lines) {
    const [y0, y1] = [line.y0 - top, line.y1 - top];
    if ((y0 < 0 && y1 < 0) || (y0 > height && y1 > height)) continue;
    const bend = (line.x1 - line.x0) * 0.4;
    context.globalAlpha = line.alpha;
    context.strokeStyle = how.colours[line.head];
    context.beginPath();
    context.moveTo(line.x0, y0);
    context.bezierCurveTo(line.x0 + bend, y0, line.x1 - bend, y1, line.x1, y1);
    context.stroke();
  }
  for (const block of drawn.blocks) {
    const y = block.y - top;
    if (y + block.height < 0 || y > height) continue;
    context.globalAlpha = 1;
    context.fillStyle = how.faint;
    context.fillRect(block.x, y, block.width, block.height);
    context.globalAlpha = block.alpha;
    context.fillStyle = how.colours[block.head];
    context.fillRect(block.x, y, block.width, block.height);
  }
  context.globalAlpha = 1;
}

/**
 * Bring the row of the current step into view when the step changes.
 * @param {View} view
 */
function reveal(view) {
  const now = stepRow(view);
  if (!view.rows || now === null || now === view.revealed) return;
  view.revealed = now;
  const y = rowCentre(view.rows, "query", now);
  const { scrollTop: top, clientHeight: height } = view.scroll;
  if (y < top + 20 || y > top + height - 20) view.scroll.scrollTop = y - height / 2;
}

return { update, markStep, appearance, paint, reveal };
})();

modules["components/plotly/keyboard.js"] = (() => {
// @ts-check
// A map by keyboard: it takes the focus as a grid, arrows move over its rows and columns, and a live region says the
// cell. Enter looks at the cell, as a click does; Escape leaves.
//
// Only the cell at hand is in the grid: its row and column are numbered, as ARIA allows for a grid of which a part is
// in the document. The keys reach the stepper only where they mean nothing here.

const { make, set } = modules["components/common/dom.js"];
const { clamped } = modules["components/common/keys.js"];
const { say } = modules["components/common/words.js"];
const { pixelsOf } = modules["components/plotly/edges.js"];
const { decoded, rawText } = modules["components/plotly/numbers.js"];

/** @import { Plot, Trace, View } from "./types.js" */
/** @typedef {{ row: number, column: number }} Place */

/**
 * Where the next key leads from a cell; null for a key that means nothing.
 * @param {string} key
 * @param {boolean} far whether Control is held: Home and End then go to the corners
 * @param {Place} at
 * @param {{ rows: number, columns: number }} of
 */
function moved(key, far, { row, column }, { rows, columns }) {
  const last = { row: rows - 1, column: columns - 1 };
  const there = {
    ArrowUp: { row: row - 1, column }, ArrowDown: { row: row + 1, column },
    ArrowLeft: { row, column: column - 1 }, ArrowRight: { row, column: column + 1 },
    Home: { row: far ? 0 : row, column: 0 }, End: { row: far ? last.row : row, column: last.column },
  }[key];
  if (!there) return null;
  return { row: clamped(there.row, rows), column: clamped(there.column, columns) };
}

/**
 * The number of a cell as it is drawn, with the trace that draws it; a cell that is closed has a trace and no number.
 * @param {Trace[]} traces
 * @param {number} row
 * @param {number} column
 */
function cellOf(traces, row, column) {
  for (const [curve, trace] of traces.entries()) {
    if (trace.meta !== "cells") continue;
    const drawn = decoded(trace.z)?.[row]?.[column];
    if (drawn === null || drawn === undefined || !Number.isFinite(drawn)) continue;
    const open = trace.colorbar !== undefined;
    const sent = trace.customdata?.[row]?.[column]?.[2];
    return { curve, value: open ? Number(sent ?? drawn) : null };
  }
  return null;
}

/**
 * What is said of a cell; one without a number is closed in a map of weights, and elsewhere speaks for itself.
 * @param {{ rows: string[], columns: string[], weights?: boolean }} cells
 * @param {Place} at
 * @param {number | null} value
 */
function sentenceOf(cells, { row, column }, value) {
  const [query, key] = [rawText(cells.rows[row]), rawText(cells.columns[column])];
  if (value === null) {
    if (cells.weights) return say("Query {query} cannot read key {key}", { query, key });
    return say("Row {query}, column {key}", { query, key });
  }
  const number = Math.abs(value) < 0.005 && value !== 0 ? value.toExponential(1) : value.toFixed(2);
  if (cells.weights) return say("Query {query} reads key {key}: {value}", { query, key, value: number });
  return say("Row {query}, column {key}: {value}", { query, key, value: number });
}

/**
 * Give a chart its grid, which shows itself once the figure is a map.
 * @param {View} view
 * @param {(event: object) => void} click
 * @returns {() => void} to be called after each drawing
 */
function makeKeyboard(view, click) {
  const grid = make("div", "gf-grid", "", { role: "grid", tabindex: 0, hidden: "" });
  const row = make("div", "gf-grid-row", "", { role: "row" });
  const cell = make("div", "gf-grid-cell", "", { role: "gridcell" });
  const live = make("div", "gf-grid-said", "", { "aria-live": "polite" });
  row.append(cell);
  grid.append(row);
  view.root.append(grid, live);
  const at = { row: 0, column: 0 };
  const look = () => {
    const cells = cellsOf(view);
    if (!cells) return;
    Object.assign(at, { row: clamped(at.row, cells.rows.length), column: clamped(at.column, cells.columns.length) });
    const said = sentenceOf(cells, at, cellOf(view.plot.data, at.row, at.column)?.value ?? null);
    set(row, { "aria-rowindex": at.row + 1 });
    set(cell, { "aria-colindex": at.column + 1, "aria-label": said });
    live.textContent = grid.matches(":focus") ? said : "";
    frame(view.plot, cell, at);
  };
  grid.addEventListener("focus", look);
  grid.addEventListener("blur", () => { live.textContent = ""; });
  grid.addEventListener("keydown", (event) => {
    if (event.key === "Escape") return grid.blur();
    if (event.key === "Enter") clickOn(view, at, click);
    const cells = cellsOf(view);
    if (!cells || event.altKey || event.metaKey) return;
    const there = moved(event.key, event.ctrlKey, at, { rows: cells.rows.length, columns: cells.columns.length });
    if (!there) return;
    event.preventDefault();
    Object.assign(at, there);
    look();
  });
  return () => {
    const cells = cellsOf(view);
    grid.hidden = !cells;
    if (!cells) return;
    const { rows, columns } = cells;
    set(grid, { "aria-label": view.data.alt, "aria-rowcount": rows.length, "aria-colcount": columns.length });
    look();
  };
}

/**
 * The names of a map's rows and columns; null where the figure is none.
 * @param {View} view
 */
function cellsOf({ plot }) {
  return plot.data?.some((trace) => trace.meta === "cells") ? plot.layout?.meta?.cells ?? null : null;
}

/**
 * What a click on a cell does.
 * @param {View} view
 * @param {Place} at
 * @param {(event: object) => void} click
 */
function clickOn({ plot }, { row, column }, click) {
  const found = cellOf(plot.data, row, column);
  if (!found) return;
  const data = plot.data[found.curve];
  click({ points: [{ curveNumber: found.curve, pointNumber: [row, column], customdata: null, data }] });
}

/**
 * Put the frame of a cell where Plotly draws it.
 * @param {Plot} plot
 * @param {HTMLElement} cell
 * @param {Place} at
 */
function frame(plot, cell, { row, column }) {
  const pixels = pixelsOf(plot);
  if (!pixels) return;
  const [left, right] = [column - 0.5, column + 0.5].map(pixels.x).sort((a, b) => a - b);
  const [top, bottom] = [row - 0.5, row + 0.5].map(pixels.y).sort((a, b) => a - b);
  const [width, height] = [right - left, bottom - top];
  Object.assign(cell.style, { left: `${left}px`, top: `${top}px`, width: `${width}px`, height: `${height}px` });
}

return { moved, cellOf, sentenceOf, makeKeyboard };
})();

modules["components/stepper/drawing.js"] = (() => {
// @ts-check
// Draws one step.

const { make, pieceText, set } = modules["components/common/dom.js"];
const { tellStep } = modules["components/common/step.js"];
const { say, sayNodes } = modules["components/common/words.js"];
const { drawNote, drawPicked, drawSource, fillTarget, strongestSource } = modules["components/stepper/chips.js"];
const { commonStart, saidProbability } = modules["components/stepper/numbers.js"];

/** @import { TargetChip } from "../common/payloads.js" */
/** @import { View } from "./types.js" */

const FADES = 24;  // pixels at the end of a row that slides

/** @param {View} view */
function render(view) {
  const { target, still, stop_reason: reason } = view.run;
  view.root.classList.toggle("gf-empty", !target.length);
  tellStep(stepOf(view), view.data.name);
  if (!target.length) {
    view.text.replaceChildren();
    view.caption.replaceChildren(reason || say("Nothing was produced."));
    if (still || view.data.choosable) drawSource(view);
    drawPicked(view);
    drawNote(view);
    return;
  }
  const covered = isCovered(view);
  drawSource(view);
  view.targetChips.forEach((_, index) => fillTarget(view, index, covered && index === view.step));
  drawText(view, covered);
  drawPicked(view);
  drawNote(view);
  view.caption.replaceChildren(...caption(view, covered));
  drawControls(view);
  view.root.dataset.step = String(view.step);
  requestAnimationFrame(() => follow(view));  // now the page would be laid out once more, only to look
}

/** @param {View} view */
function follow(view) {
  keepInView(view.targetList, view.targetChips[view.step]);
  const strongest = strongestSource(view);
  if (strongest) keepInView(view.sourceList, strongest);
  view.text.scrollTop = view.text.scrollHeight;
}

/**
 * Whether the step's piece is hidden until somebody guesses it.
 * @param {View} view
 */
function isCovered({ data, step }) {
  return data.covered && data.revealed_step !== step;
}

/**
 * The step that a stepper shows; null if there is none.
 * @param {View | undefined} view
 */
function stepOf(view) {
  return view?.run?.target.length ? view.step : null;
}

/**
 * @param {View} view
 * @param {boolean} covered
 */
function drawText(view, covered) {
  const { texts } = view.run;
  const before = texts[view.step - 1] ?? "";
  const after = covered ? before : texts[view.step] ?? "";
  const same = covered ? before : commonStart(before, after);
  const newest = covered ? make("span", "gf-new gf-question", "?") : make("span", "gf-new", after.slice(same.length));
  view.text.replaceChildren(same, newest);
}

/**
 * Keep the height that the finished output needs, so that the controls never move under a finger. What the first run
 * of a sentence needed stays for its branches: what is longer scrolls, and the page below stands still.
 * @param {View} view
 */
function reserve(view) {
  if (!view.run) return;
  const { width } = view.root.getBoundingClientRect();
  const about = JSON.stringify([view.run.source, view.run.still, view.data.compact, width]);
  if (view.run.target.length && view.kept !== about) {
    view.kept = about;
    view.targetList.style.height = "";
    view.text.style.height = `${finishedHeight(view)}px`;
    view.targetList.style.height = getComputedStyle(view.targetList).height;
  }
  for (const side of view.root.querySelectorAll(".gf-side")) offerAll(side);
  if (view.run.target.length) follow(view);
}

/**
 * Offer to show all pieces of a side, where some are out of sight. What slides is a stop of the Tab key, unless there is
 * one in it.
 * @param {Element} side
 * @param {boolean} [all] that is done
 */
function offerAll(side, all = side.classList.contains("gf-all")) {
  const more = /** @type {HTMLElement} */ (side.querySelector(".gf-show-all"));
  for (const part of /** @type {NodeListOf<HTMLElement>} */ (side.querySelectorAll(".gf-text, .gf-pieces"))) {
    const slides = part.scrollHeight > part.clientHeight + 2 || part.scrollWidth > part.clientWidth + 2;
    part.tabIndex = slides && !part.querySelector("[role='button']") ? 0 : -1;
    if (part.matches(".gf-text")) continue;
    more.hidden = !all && !slides;
    more.textContent = all ? say("Show fewer") : say("Show all {n}", { n: part.children.length });
  }
}

/**
 * The height of the whole text; its style has a limit.
 * @param {View} view
 */
function finishedHeight(view) {
  const probe = make("p", "gf-text gf-probe", `${view.run.texts.at(-1) ?? ""} ?`);
  probe.dir = "auto";
  view.text.before(probe);
  const height = Math.ceil(probe.getBoundingClientRect().height);
  probe.remove();
  return height;
}

/**
 * What the step reads and predicts, in words.
 * @param {View} view
 * @param {boolean} covered
 */
function caption(view, covered) {
  const { target, start_piece: start, stop_reason: reason, cut } = view.run;
  const chip = target[view.step];
  const step = make("b", "", say("Step {n} of {all}", { n: view.step + 1, all: target.length }));
  const read = pieceText(view.step ? target[view.step - 1].piece : start, "gf-quoted");
  if (covered) {
    const asked = sayNodes("{step}: reads ‘{read}’, predicts a hidden piece", { step, read });
    return view.halted === view.step ? [...asked, make("span", "gf-stop", say(". Playback waits for your guess."))] : asked;
  }
  const piece = pieceText(chip.piece, "gf-quoted");
  const said = predicted(chip, { step, read, piece });
  const isLast = view.step === target.length - 1;
  return isLast && reason && !cut ? [...said, make("span", "gf-stop", say(". {reason}", { reason }))] : said;
}

/**
 * What a step predicts, with its probability if that may be seen.
 * @param {TargetChip} chip
 * @param {{ step: Node, read: Node, piece: Node }} values
 */
function predicted({ probability, forced }, values) {
  if (probability === null) {
    return forced
      ? sayNodes("{step}: reads ‘{read}’, you chose ‘{piece}’", values)
      : sayNodes("{step}: reads ‘{read}’, predicts ‘{piece}’", values);
  }
  const p = make("span", "gf-said", saidProbability(probability));
  return forced
    ? sayNodes("{step}: reads ‘{read}’, you chose ‘{piece}’ (the model gave it a probability of {p})", { ...values, p })
    : sayNodes("{step}: reads ‘{read}’, predicts ‘{piece}’ ({p})", { ...values, p });
}

/** @param {View} view */
function drawControls(view) {
  const end = view.run.target.length - 1;
  // aria-disabled instead of disabled: a button that is disabled under the focus would lose it.
  for (const element of [view.first, view.back]) set(element, { "aria-disabled": view.step === 0 });
  for (const element of [view.next, view.last]) set(element, { "aria-disabled": view.step === end });
  view.slider.value = String(view.step + 1);
  set(view.slider, { "aria-valuetext": say("Step {n} of {all}", { n: view.step + 1, all: end + 1 }) });
  view.slider.style.setProperty("--done", String(end > 0 ? view.step / end : 1));
}

/**
 * Scroll a list, and nothing around it, so that an entry is seen: with its row on top, or amid a single row.
 * @param {HTMLElement} list
 * @param {HTMLElement} item
 */
function keepInView(list, item) {
  const [frame, place] = [list.getBoundingClientRect(), item.getBoundingClientRect()];
  if (place.top < frame.top || place.bottom > frame.bottom) list.scrollTop += place.top - frame.top;
  if (place.left >= frame.left && place.right <= frame.right - FADES) return;
  list.scrollLeft += (place.left + place.right - frame.left - frame.right) / 2;
}

return { render, isCovered, stepOf, reserve, offerAll };
})();

modules["components/glossary/marks.js"] = (() => {
// @ts-check
// Underlines each term of the glossary where it first stands on a page, and shows what it means.
//
// Most texts are Streamlit's, that is React's, and React breaks when others change its nodes. So nothing is changed: the
// underline is a highlight (CSS.highlights), which is painted over ranges of text; what the mouse points at is looked
// up among these ranges; and for the keyboard an empty element of ours is added behind the part of the page that a
// term stands in. A browser without highlights shows none of it; the page Glossary has it all.

const { mount } = modules["components/common/mount.js"];
const { PAGE } = modules["components/common/streamlit-page.js"];
const { finder } = modules["components/glossary/matching.js"];
const { renewStops } = modules["components/glossary/stops.js"];
const { blockOf, eachText, isShown } = modules["components/glossary/texts.js"];
const { hideTip, listen, makeTip } = modules["components/glossary/tip.js"];

/** @import { Create, GlossaryMarksPayload, Show } from "../common/payloads.js" */
/** @import { Marked, View } from "./types.js" */

const QUIET_MS = 250;
// What is looked at comes before what stands beside it.
const PARTS = [
  PAGE.main, `${PAGE.sidebar} h3`, `${PAGE.sidebar} ${PAGE.label}:not(${PAGE.checkbox} *)`,
];

/**
 * Mark anew, once the page has been quiet for a moment and the browser has nothing better to do.
 * @param {View} view
 */
function soon(view) {
  clearTimeout(view.timer);
  const idle = globalThis.requestIdleCallback ?? setTimeout;
  view.timer = setTimeout(() => idle(() => view.gone.aborted || mark(view)), QUIET_MS);
}

/** @param {View} view */
function mark(view) {
  if (!view.find || !globalThis.Highlight) return;
  /** @type {Map<string, Marked>} */
  const found = new Map();
  for (const part of PARTS) {
    for (const root of document.querySelectorAll(part)) eachText(root, (text) => search(view, text, found));
  }
  view.marked = new Map();
  for (const marked of found.values()) {
    const at = /** @type {Element} */ (marked.range.startContainer.parentElement);
    view.marked.set(at, [...view.marked.get(at) ?? [], marked]);
  }
  CSS.highlights.set("gf-term", new Highlight(...[...found.values()].map(({ range }) => range)));
  renewStops(view, found);
  const shown = view.tip.shown;
  if (shown && !shown.range.startContainer.isConnected) hideTip(view.tip);
  view.observer.takeRecords();  // our own doing
}

/**
 * Take the terms of a text that have not been found before.
 * @param {View} view
 * @param {Text} text
 * @param {Map<string, Marked>} found
 */
function search(view, text, found) {
  watch(view, text.getRootNode());
  for (const { id, start, end } of view.find?.(text.data, () => blockOf(text)) ?? []) {
    const term = view.terms.get(id);
    if (!term || found.has(id) || !isShown(text)) continue;
    const range = new Range();
    range.setStart(text, start);
    range.setEnd(text, end);
    found.set(id, { term, range });
  }
}

/**
 * Changes inside a shadow tree are told to who watches that tree.
 * @param {View} view
 * @param {Node} root
 */
function watch(view, root) {
  if (view.watched.has(root)) return;
  view.watched.add(root);
  view.observer.observe(root, { childList: true, characterData: true, subtree: true });
}

/** @type {Create<View>} */
function create(root, gone) {
  /** @type {View} */
  const view = {
    tip: makeTip(root), terms: new Map(), find: null, said: "", marked: new Map(), stops: new Map(),
    observer: new MutationObserver(() => soon(view)), watched: new WeakSet(), gone,
  };
  watch(view, document);
  listen(view);
  return view;
}

/** @type {Show<View, GlossaryMarksPayload>} */
function show(view, { data: { payload: { terms, apart } } }) {
  const said = JSON.stringify([terms, apart]);
  if (said !== view.said) {
    view.terms = new Map(terms.map((term) => [term.id, term]));
    view.find = finder(terms, apart);
    view.said = said;
  }
  soon(view);
}

/** @param {View} view */
function close(view) {
  clearTimeout(view.timer);
  view.observer.disconnect();
  view.stops.forEach((stop) => stop.remove());
  CSS.highlights?.delete("gf-term");
}

const component = mount({
  styles: "glossary", className: "gf-glossary-marks", create, show, close,
});

return { component };
})();

modules["components/plotly/tools.js"] = (() => {
// @ts-check
// What can be done with a chart: reset the zoom, show it large, save its data and its picture.

const { makeButton } = modules["components/common/dom.js"];
const { press, savePicture, saveTable } = modules["components/common/save.js"];
const { makeUnder } = modules["components/common/under.js"];
const { say } = modules["components/common/words.js"];
const { parsedFigure } = modules["components/plotly/numbers.js"];
const { axisNames, themeOf } = modules["components/plotly/paint.js"];
const { numbered, tableOf } = modules["components/plotly/table.js"];

/** @import { Layout, View } from "./types.js" */

/** @param {View} view */
function saveData(view) {
  const { file, about, table, figure } = view.data;
  if (table) return press(table);
  const { columns, rows } = tableOf(parsedFigure(figure));
  const values = about.map(([, value]) => value);
  const names = numbered([...about.map(([name]) => name), ...columns]);
  saveTable(file, [names, ...rows.map((row) => [...values, ...row])]);
}

/**
 * @param {View} view
 * @param {"svg" | "png"} format
 */
async function saveDrawing(view, format) {
  if (!view.plotly) return;
  const layout = structuredClone(view.plot.layout);
  layout.paper_bgcolor = themeOf(view.root).background;  // text in the theme's colour needs the theme's background
  const { offsetWidth: width, offsetHeight: height } = view.plot;
  const figure = { data: view.plot.data, layout };
  const svg = await view.plotly.toImage(figure, { format: "svg", width, height, imageDataOnly: true });
  await savePicture(view.data.file, format, svg);
}

/**
 * What stands under the chart.
 * @param {View} view
 * @param {() => void} changed called once the chart has moved into its large view, or back
 */
function addTools(view, changed) {
  view.under = makeUnder(view.frame, view.root, {
    className: "gf-chart-dialog", name: () => view.data.name, changed,
    data: () => saveData(view), picture: (format) => saveDrawing(view, format),
  });
  view.reset = makeButton("gf-tool", say("Reset zoom"), say("Show the whole chart again"), () => resetZoom(view));
  view.under.tools.prepend(view.reset);
}

/**
 * Show what can be done now: nothing without a drawing, and a reset only after a zoom.
 * @param {View} view
 * @param {boolean} drawn
 */
function refreshTools(view, drawn) {
  view.under.tools.hidden = !drawn;
  view.reset.hidden = !drawn || !isZoomed(view);
}

/**
 * The range of each axis that Python asked for; null where Plotly chooses. Copies, as Plotly writes into its own.
 * @param {Layout} layout
 * @returns {Record<string, number[] | null>}
 */
function askedRanges(layout) {
  const free = axisNames(layout).filter((name) => !layout[name].fixedrange);
  return Object.fromEntries(free.map((name) => [name, layout[name].range?.slice() ?? null]));
}

/** @param {View} view */
function isZoomed(view) {
  return Object.entries(view.ranges).some(([name, asked]) => {
    const axis = view.plot._fullLayout?.[name];
    if (!axis?.range || axis.type === "category") return false;
    if (!asked) return axis.autorange === false;
    const close = 1e-6 * Math.abs(asked[1] - asked[0]);
    return asked.some((end, place) => Math.abs(axis.range[place] - end) > close);
  });
}

/** @param {View} view */
function resetZoom(view) {
  const whole = Object.entries(view.ranges).map(([name, asked]) =>
    (asked ? [`${name}.range`, [...asked]] : [`${name}.autorange`, true]));
  view.plotly?.relayout(view.plot, Object.fromEntries(whole));
}

return { addTools, refreshTools, askedRanges };
})();

modules["components/flow/acts.js"] = (() => {
// @ts-check
// What the reader does: pointing, pinning, hiding heads. Python is told what an address keeps.

const { everyHead, KEPT, pinned, same, shownHeads } = modules["components/flow/choices.js"];
const { update } = modules["components/flow/drawing.js"];

/** @import { Pin, Side } from "../common/payloads.js" */
/** @import { View } from "./types.js" */

/**
 * @param {View} view
 * @param {number[]} heads
 */
function hide(view, heads) {
  KEPT.hidden = heads;
  chosen(view);
}

/**
 * @param {View} view
 * @param {number} head
 * @param {boolean} alone
 */
function toggleHead(view, head, alone) {
  if (alone) return hide(view, everyHead(view).filter((other) => other !== head));
  const hidden = new Set(KEPT.hidden);
  if (!hidden.delete(head)) hidden.add(head);
  hide(view, [...hidden]);
}

/**
 * What is pointed at, by mouse or by keyboard; nothing in one of the columns leaves what is pointed at in the other.
 * @param {View} view
 * @param {Side} side
 * @param {Pin | null} place
 */
function point(view, side, place) {
  if (!place && view.pointed?.side !== side) return;
  if (same(view.pointed, place)) return;
  view.pointed = place;
  update(view);
}

/**
 * @param {View} view
 * @param {Pin} place
 */
function togglePin(view, place) {
  const letsGo = same(pinned(view), place);
  if (letsGo) view.pointed = null;
  chosen(view, { following: false, pin: letsGo ? null : place });
}

/** @param {View} view */
function letGo(view) {
  chosen(view, { following: false, pin: null });
}

/** @param {View} view */
function toggleFollowing(view) {
  chosen(view, { following: !view.following, pin: view.following ? view.pin : null });
}

/**
 * Draw what is chosen, and tell Python, which says in the next data what it has heard. No head at all is said as all
 * of them: an address that shows nothing would help nobody.
 * @param {View} view
 * @param {Partial<View>} [choice]
 */
function chosen(view, choice = {}) {
  Object.assign(view, choice);
  update(view);
  const shown = shownHeads(view);
  const some = shown.length < view.model.heads && !view.data.together ? shown : [];
  if (!view.data.together) KEPT.shown = some.join(" ");
  if (!view.data.reports) return;
  view.sent += 1;
  view.stamp = `${view.mount} ${view.sent}`;
  const { side = null, index = null } = view.pin ?? {};
  view.setStateValue("pin", { side, index, shown: some, following: view.following, stamp: view.stamp });
}

return { hide, toggleHead, point, togglePin, letGo, toggleFollowing };
})();

modules["components/flow/layout.js"] = (() => {
// @ts-check
// Gives columns, rows and letters their sizes for the room there is.

const { cssVariable, pen } = modules["components/common/dom.js"];
const { isPresenting, typeScale } = modules["components/common/present.js"];
const { fittedHeight } = modules["components/common/room.js"];
const { update } = modules["components/flow/drawing.js"];
const { placeRows, rowCentre } = modules["components/flow/places.js"];
const { SIDES } = modules["components/flow/weights.js"];

/** @import { View } from "./types.js" */

const ROOM = 560;
const LEAST_ROOM = 240;
/** Letters fit rows of at least so many pixels. */
const SIZES = [[40, 17], [26, 14], [20, 13], [17, 12], [0, 11]];

/**
 * The height for the lines: what the window has left, so that all of them are seen at once.
 * @param {View} view
 */
function roomOf(view) {
  const isLarge = view.under.isLarge(), own = Math.round(ROOM * typeScale(isLarge));
  if (isLarge) return Math.max(LEAST_ROOM, window.innerHeight - 180 * typeScale(isLarge));
  const below = view.body.getBoundingClientRect().bottom - view.scroll.getBoundingClientRect().bottom;
  const heights = { own, least: LEAST_ROOM, most: own };
  const withTools = isPresenting() ? fittedHeight(view.scroll, { ...heights, below }) : own;
  return withTools < own ? withTools : fittedHeight(view.scroll, heights);
}

/** @param {View} view */
function layOut(view) {
  view.body.classList.toggle("gf-flow-presented", isPresenting());
  view.width = view.scroll.clientWidth;
  if (!view.width) return;  // in a closed tab: the size observer calls again when it opens
  const isLarge = view.under.isLarge();
  const scale = view.scale = typeScale(isLarge);
  const room = view.room = roomOf(view);
  // On a wide page few rows would be a flat band of nearly level lines.
  const widest = scale * (isLarge ? 56 : Math.max(36, Math.min(52, Math.round(view.width / 26 / scale))));
  const rows = view.rows = placeRows(view.model, room, widest, scale);
  view.textSize = Math.round(scale * (SIZES.find(([least]) => rows.pitch >= least * scale) ?? [0, 11])[1]);
  const [left, right] = columnWidths(view);
  view.spans = { left, right, middle: view.width - left - right };
  view.body.style.setProperty("--columns", `${left}px minmax(0, 1fr) ${right}px`);
  view.body.style.setProperty("--size", `${view.textSize}px`);
  view.stage.style.height = `${rows.height}px`;
  view.scroll.style.maxHeight = `${Math.max(room, isLarge ? 0 : 600 * scale)}px`;
  for (const side of SIDES) {
    const tall = Math.min(rows[side].pitch, view.textSize + 16 * scale) - 1;
    view.tokens[side].forEach((made, index) => {
      made.style.top = `${rowCentre(rows, side, index) - tall / 2}px`;
      made.style.height = `${tall}px`;
    });
  }
  update(view);
}

/** @param {View} view */
function columnWidths({ axes, canvas, data, root, scale, textSize, width }) {
  const context = pen(canvas);
  context.font = `${textSize}px ${cssVariable(root, "--st-code-font", "monospace")}`;
  const most = Math.floor(width * (width < 480 ? 0.34 : 0.32));
  return SIDES.map((side) => {
    const texts = side === "query" ? data.queries : data.keys;
    const needed = Math.ceil(Math.max(0, ...texts.map((text) => context.measureText(text).width))) + 66 * scale;
    const heading = Math.min(150, (axes[side].textContent ?? "").length * 7) * scale;
    return Math.min(most, Math.max(needed, heading));
  });
}

return { roomOf, layOut };
})();

modules["components/flow/svg.js"] = (() => {
// @ts-check
// The flow view as a picture of its own.

const { makeSvg, pen, visible } = modules["components/common/dom.js"];
const { savePicture } = modules["components/common/save.js"];
const { say } = modules["components/common/words.js"];
const { appearance, update } = modules["components/flow/drawing.js"];
const { rowCentre, scene } = modules["components/flow/places.js"];
const { titleOf } = modules["components/flow/readout.js"];

/** @import { Pin, Side } from "../common/payloads.js" */
/** @import { Both, Look, Rows, Scene, View } from "./types.js" */

/**
 * @typedef {object} Picture
 * @property {string} title
 * @property {string} note
 * @property {Both<string>} axes
 * @property {Both<string[]>} texts
 * @property {{ left: number, middle: number, right: number }} spans
 * @property {Rows} rows
 * @property {Scene} scene for the span in the middle
 * @property {number[]} shown
 * @property {Pin | null} focus
 * @property {Look} look
 */

const ANCHORS = { query: "end", key: "start" };
const MIDDLE = 460;

/** @param {number} number */
const rounded = (number) => Math.round(number * 100) / 100;

/**
 * @param {Scene} drawn
 * @param {Look} look
 */
function svgLines(drawn, look) {
  const group = makeSvg("g", { fill: "none", "stroke-width": look.line });
  for (const line of drawn.lines) {
    const bend = (line.x1 - line.x0) * 0.4;
    const [x0, y0, x1, y1] = [line.x0, line.y0, line.x1, line.y1].map(rounded);
    const path = `M${x0} ${y0}C${rounded(x0 + bend)} ${y0} ${rounded(x1 - bend)} ${y1} ${x1} ${y1}`;
    const stroke = { stroke: look.colours[line.head], "stroke-opacity": rounded(line.alpha) };
    group.append(makeSvg("path", { d: path, ...stroke }));
  }
  for (const block of drawn.blocks) {
    const box = { x: rounded(block.x), y: rounded(block.y), width: rounded(block.width), height: block.height };
    group.append(makeSvg("rect", { ...box, fill: look.faint }));
    group.append(makeSvg("rect", { ...box, fill: look.colours[block.head], "fill-opacity": rounded(block.alpha) }));
  }
  return group;
}

/**
 * @param {Picture} picture
 * @param {Side} side
 * @param {number} x
 */
function svgColumn({ rows, focus, look, texts }, side, x) {
  const font = { "font-family": "monospace", "font-size": look.size };
  const group = makeSvg("g", { fill: look[side], "text-anchor": ANCHORS[side], ...font });
  texts[side].forEach((text, index) => {
    const y = rowCentre(rows, side, index) + look.size * 0.35;
    const weight = focus?.side === side && focus.index === index ? "bold" : "normal";
    group.append(makeSvg("text", { x, y: rounded(y), "font-weight": weight, "xml:space": "preserve" }, text));
  });
  return group;
}

/**
 * Lay the names of the shown heads out under the title, as many a line as fit.
 * @param {number[]} shown
 * @param {Look} look
 * @param {number} width
 */
function svgLegend(shown, look, width) {
  const group = makeSvg("g", { "font-size": 12, fill: look.text });
  const each = Math.max(1, Math.floor((width - 16) / 74));
  shown.forEach((head, place) => {
    const [x, y] = [16 + (place % each) * 74, 50 + Math.floor(place / each) * 18];
    group.append(makeSvg("rect", { x, y: y - 10, width: 11, height: 11, rx: 2, fill: look.colours[head] }));
    group.append(makeSvg("text", { x: x + 16, y }, say("head {n}", { n: head + 1 })));
  });
  return { group, height: Math.ceil(shown.length / each) * 18 };
}

/**
 * The picture with its title, its heads and its columns, as a file of its own.
 * @param {Picture} picture
 */
function svgPicture(picture) {
  const { look, rows, spans } = picture;
  const width = spans.left + spans.middle + spans.right + 32;
  const legend = svgLegend(picture.shown, look, width);
  const top = 88 + legend.height;
  const height = top + rows.height + 34;
  const [end, begin] = [16 + spans.left, 16 + spans.left + spans.middle];
  const title = { x: 16, y: 26, "font-size": 17, "font-weight": 600, fill: look.text };
  const root = makeSvg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "font-family": "sans-serif" });
  root.append(makeSvg("rect", { width, height, fill: look.background }), makeSvg("text", title, picture.title));
  root.append(legend.group);
  for (const [side, x] of /** @type {[Side, number][]} */ ([["query", end], ["key", begin]])) {
    const heading = { x, y: top - 14, "font-size": 12, "font-weight": 600, fill: look[side] };
    root.append(makeSvg("text", { ...heading, "text-anchor": ANCHORS[side] }, picture.axes[side]));
  }
  const stage = makeSvg("g", { transform: `translate(${end} ${top})` });
  stage.append(svgLines(picture.scene, look));
  stage.append(svgColumn(picture, "query", -6), svgColumn(picture, "key", spans.middle + 6));
  root.append(stage, makeSvg("text", { x: 16, y: height - 12, "font-size": 11, fill: look.text }, picture.note));
  return new XMLSerializer().serializeToString(root);
}

/**
 * Save what stays: the pinned piece, not the one that the mouse happens to be on.
 * @param {View} view
 * @param {"svg" | "png"} format
 */
function saveDrawing(view, format) {
  const { pointed } = view;
  view.pointed = null;
  update(view);
  savePicture(view.data.file, format, pictureOf(view));
  view.pointed = pointed;
  update(view);
}

/** @param {string} text */
function cut(text) {
  const letters = Array.from(visible(text));
  return letters.length > 28 ? `${letters.slice(0, 27).join("")}…` : letters.join("");
}

/** @param {View} view */
function pictureOf(view) {
  const { data, rows } = view;
  if (!rows) return "";
  const context = pen(view.canvas);
  context.font = `${view.textSize}px monospace`;
  const texts = { query: data.queries.map(cut), key: data.keys.map(cut) };
  /** @type {(column: string[], axis: string) => number} */
  const widest = (column, axis) =>
    Math.ceil(Math.max(axis.length * 7, ...column.map((text) => context.measureText(text).width))) + 10;
  return svgPicture({
    title: titleOf(view), note: view.note, axes: { query: data.query_axis, key: data.key_axis }, texts,
    spans: { left: widest(texts.query, data.query_axis), middle: MIDDLE, right: widest(texts.key, data.key_axis) },
    rows, scene: scene(view, MIDDLE, rows), shown: view.shown, focus: view.focus, look: appearance(view),
  });
}

return { svgPicture, saveDrawing };
})();

modules["components/stepper/moving.js"] = (() => {
// @ts-check
// Moves from step to step, by buttons, a slider and the clock. Every step is taken here, at once; Python is told only
// where the reader came to rest.

const { icon, make, makeButton, set } = modules["components/common/dom.js"];
const { clamped } = modules["components/common/keys.js"];
const { wantFrames } = modules["components/common/frames.js"];
const { restOf } = modules["components/common/step.js"];
const { isPage } = modules["components/common/streamlit-page.js"];
const { say } = modules["components/common/words.js"];
const { isCovered, render } = modules["components/stepper/drawing.js"];
const { SETTLE_MS } = modules["components/stepper/rest.js"];

/** @import { View } from "./types.js" */

const APART_MS = 120;  // of what two fragments hear: of two that wait Streamlit runs one
const PLAY_MS = 900;
const SPEEDS = [0.5, 1, 2, 4];
/** The signs on the buttons. */
const SIGNS = {
  first: "M6 5h2.2v14H6zM19 5v14l-9.5-7z",
  back: "M17 5v14L6.5 12z",
  play: "M8 4.5v15l11.5-7.5z",
  pause: "M7 5h3.6v14H7zM13.4 5H17v14h-3.6z",
  next: "M7 5v14l10.5-7z",
  last: "M15.8 5H18v14h-2.2zM5 5v14l9.5-7z",
};

/** On this browser page, the one used last at the end: it gets the keys. @type {View[]} */
const steppers = [];

/**
 * The one that goes with another, where two runs are stepped through together.
 * @param {View} view
 */
const partner = (view) => steppers.find(({ data }) => data?.name === view.data.moves);

/**
 * The one that has the buttons, and so the keys, where two go together.
 * @param {View} view
 */
const leading = (view) => (view.data.led && partner(view)) || view;

/**
 * @param {View} view
 * @param {number} wanted
 * @param {number} [after] milliseconds by which Python is told later than usual
 */
function go(view, wanted, after = 0) {
  if (!moved(view, wanted)) return;
  const other = partner(view);
  if (other) moved(other, view.step);
  clearTimeout(other?.settling);
  clearTimeout(view.settling);
  view.settling = setTimeout(() => settle(view, other), SETTLE_MS + after);
}

/**
 * @param {View} view
 * @param {number} wanted
 */
function moved(view, wanted) {
  const step = clamped(wanted, view.run.target.length);
  if (step === view.step) return false;
  wantFrames();
  view.step = step;
  view.halted = null;
  render(view);
  return true;
}

/**
 * Do something once Python has run what it was asked for; where nothing runs, as in a saved file, at once.
 * @param {() => void} act
 */
function whenRan(act) {
  if (isPage("runs")) setTimeout(() => whenRan(act), APART_MS);
  else act();
}

/**
 * Tell Python where the reader rests; where it has to draw something, it moves the other stepper itself.
 * @param {View} view
 * @param {View} [other]
 */
function settle(view, other) {
  const both = other ? [other, view] : [view];
  const tells = both.map(({ data }) => (data.asks ? null : restOf(data.name)));
  const drawn = tells.includes(null);
  both.forEach((one, place) => {
    if (one.step === one.settled) return;
    const before = one.settled;
    one.settled = one.step;
    const report = { run_id: one.run.run_id, step_revision: one.revision, step: one.step, when: Date.now() };
    const tell = () => tells[place]?.(report, before);
    if (drawn) { if (one === view) one.setStateValue("step", report); }
    else if (place) setTimeout(() => whenRan(tell), APART_MS);
    else tell();
  });
}

/**
 * @param {View} view
 * @param {boolean} playing
 */
function showPlaying(view, playing) {
  const label = playing ? say("Pause") : say("Play");
  view.play.replaceChildren(icon(playing ? SIGNS.pause : SIGNS.play));
  set(view.play, { "aria-label": label, title: label });
  // A caption that is read aloud several times a second helps nobody.
  set(view.caption, { "aria-live": playing ? "off" : "polite" });
}

/** @param {View} view */
function pause(view) {
  clearInterval(view.timer ?? undefined);
  view.timer = null;
  showPlaying(view, false);
}

/**
 * In guess mode Play stops at a step that nobody has guessed yet, and the stepper says so; keys may go on.
 * @param {View} view
 */
function halts(view) {
  if (!isCovered(view)) return false;
  pause(view);
  view.halted = view.step;
  render(view);
  return true;
}

/** @param {View} view */
function play(view) {
  clearInterval(view.timer ?? undefined);
  const end = view.run.target.length - 1;
  if (view.step >= end && !isCovered(view)) go(view, 0);
  if (halts(view)) return;
  view.timer = setInterval(() => {
    go(view, view.step + 1);
    if (!halts(view) && view.step >= view.run.target.length - 1) pause(view);
  }, PLAY_MS / view.speed);
  showPlaying(view, true);
}

/** @param {View} view */
function togglePlay(view) {
  if (view.timer) pause(view);
  else play(view);
}

/**
 * @param {keyof typeof SIGNS} name
 * @param {string} label
 * @param {() => void} act
 */
function button(name, label, act) {
  const made = makeButton(`gf-button gf-${name}`, "", label, act, { "aria-label": label });
  made.append(icon(SIGNS[name]));
  return made;
}

/** @param {View} view */
function makeControls(view) {
  const bar = make("div", "gf-controls");
  const buttons = make("div", "gf-buttons");
  view.first = button("first", say("First step"), () => go(view, 0));
  view.back = button("back", say("Back one step"), () => go(view, view.step - 1));
  view.play = button("play", say("Play"), () => togglePlay(view));
  view.next = button("next", say("Next step"), () => go(view, view.step + 1));
  view.last = button("last", say("Last step"), () => go(view, view.run.target.length - 1));
  view.slider = make("input", "gf-slider", "", { type: "range", min: 1, step: 1, "aria-label": say("Step") });
  view.slider.addEventListener("input", () => go(view, Number(view.slider.value) - 1));
  buttons.append(view.first, view.back, view.play, view.next, view.last);
  bar.append(buttons, view.slider, speeds(view));
  return bar;
}

/** @param {View} view */
function speeds(view) {
  const select = make("select", "gf-speed", "", { "aria-label": say("Playing speed") });
  select.append(...SPEEDS.map((speed) => new Option(`${speed}×`, String(speed), false, speed === 1)));
  select.addEventListener("change", () => {
    view.speed = Number(select.value);
    if (view.timer) play(view);
  });
  return select;
}

return { steppers, leading, go, pause, play, togglePlay, makeControls };
})();

modules["components/plotly/view.js"] = (() => {
// @ts-check
// Draws one Plotly figure and keeps its node, its zoom and its place while the data change.

const { make } = modules["components/common/dom.js"];
const { openInPlace } = modules["components/common/links.js"];
const { mount } = modules["components/common/mount.js"];
const { typeScale } = modules["components/common/present.js"];
const { fittedHeight, whatMakesRoom } = modules["components/common/room.js"];
const { DARK_COLORS } = modules["components/common/served.js"];
const { ask } = modules["components/common/step.js"];
const { say } = modules["components/common/words.js"];
const { leaveRoom, makeEdges } = modules["components/plotly/edges.js"];
const { enlarge } = modules["components/plotly/enlarge.js"];
const { placeInFilm, planned, wrapFilm } = modules["components/plotly/film.js"];
const { fitAllTicks, fitHeads, fitTitle } = modules["components/plotly/fit.js"];
const { markStep, moveMark } = modules["components/plotly/follow.js"];
const { restoreGrid } = modules["components/plotly/grid.js"];
const { makeKeyboard } = modules["components/plotly/keyboard.js"];
const { loadPlotly } = modules["components/plotly/load.js"];
const { follow, listen, showMoment, steady, watch } = modules["components/plotly/moments.js"];
const { decoded, parsedFigure } = modules["components/plotly/numbers.js"];
const { paint, recolour, themeOf } = modules["components/plotly/paint.js"];
const { addTools, askedRanges, refreshTools } = modules["components/plotly/tools.js"];

/** @import { Create, PlotlyPayload, Show } from "../common/payloads.js" */
/** @import { Figure, Film, Plot, Plotly, Trace, View } from "./types.js" */

const MOST_GROWN = 1.3;
const SCROLL_BAR = 14, LEAST = 64;  // pixels; in less Plotly places its titles at infinity
const NO_TABLE = "none";  // as in `saved_pages.py`
const CONFIG = { displaylogo: false, displayModeBar: false, showTips: false, responsive: false, showLink: false };

// ---------------------------------------------------------------- drawing

/**
 * Say a sentence instead of drawing.
 * @param {View} view
 * @param {string} sentence
 */
function note(view, sentence) {
  view.note.textContent = sentence;
  view.note.hidden = false;
  delete view.root.dataset.waits;
  view.plot.style.display = "none";
  view.edges.point();
  refreshTools(view, false);
}

/**
 * Rebuild the pieces shown on hover, which Python does not send for every cell, and take logarithms for colours.
 * @param {Trace} trace
 * @param {{ rows: string[], columns: string[], floor?: number } | undefined} cells
 */
function restoreCells(trace, cells) {
  if (trace.meta !== "cells" || !cells) return;
  const floor = trace.colorbar ? cells.floor : undefined;
  /** @type {ArrayLike<number>[] | null} */
  const numbers = floor ? decoded(trace.z) : null;
  trace.customdata = cells.rows.map((row, i) =>
    cells.columns.map((column, j) => (numbers ? [row, column, numbers[i][j]] : [row, column])));
  if (numbers) trace.z = numbers.map((line) => Array.from(line, (value) => Math.log10(Math.max(value, floor ?? 0))));
}

/**
 * The figure as it is drawn now: in the theme's colours, fitted to the room.
 * @param {View} view
 * @param {Figure} sent
 * @returns {Figure}
 */
function prepared(view, { data, layout }) {
  const theme = themeOf(view.root);
  const { scale } = view;
  // A picture whose parts have a width of their own is not squeezed: it scrolls, above a bar that takes some height.
  const width = Math.max(view.width, layout.meta?.least_width ?? 0);
  const scrolls = width > view.width;
  const height = view.height - (scrolls ? SCROLL_BAR : 0);
  view.root.style.overflow = scrolls ? "auto hidden" : "";
  const figure = theme.dark ? recolour({ data, layout }, DARK_COLORS) : { data, layout };
  for (const trace of figure.data) {
    restoreCells(trace, layout.meta?.cells);
    restoreGrid(trace, layout.meta?.grid);
  }
  view.ranges = askedRanges(layout);
  paint(figure.layout, theme);
  enlarge(figure, scale);
  markStep(view, figure.layout);
  Object.assign(figure.layout, { width, height, autosize: false });
  if (layout.meta?.film) wrapFilm(figure, filmPlan(view, layout.meta.film), height, scale);
  fitTitle(figure.layout, width, view.under.isLarge(), scale);
  fitHeads(figure.layout, width);
  leaveRoom(figure.layout);
  steady(view, figure.layout);
  // A finger that drags means to scroll the page, not to zoom the chart.
  if (matchMedia("(pointer: coarse)").matches) figure.layout.dragmode = false;
  view.ticks = layout.meta?.ticks;
  view.links = layout.meta?.links;
  view.labelled = fitAllTicks(figure.layout, view.ticks, view.plot, width, height, scale);
  return figure;
}

/**
 * @param {View} view
 * @param {any} event Plotly's
 */
function report(view, event) {
  const point = event.points?.[0];
  if (!point || !view.data.clickable) return;
  const elsewhere = view.links?.[point.customdata];
  if (elsewhere) return openInPlace(elsewhere);
  view.clicks += 1;
  const index = point.pointNumber ?? point.pointIndex ?? [];
  view.setTriggerValue("click", {
    curve: point.curveNumber,
    index: placeInFilm(view.plot.layout, Array.isArray(index) ? index : [index]),
    customdata: typeof point.data.meta === "string" ? null : point.customdata ?? null,
    count: view.clicks,
    step: view.at,
  });
}

/**
 * Whether another number of labels fits now, after a zoom or once the margins are known.
 * @param {View} view
 */
function labelsChanged(view) {
  if (!view.ticks || !view.plot._fullLayout) return false;
  const probe = Object.fromEntries(Object.keys(view.ticks).map((name) => [name, {}]));
  return fitAllTicks(probe, view.ticks, view.plot, 0, 0, view.scale) !== view.labelled;
}

/**
 * Draw the newest data. One drawing at a time: Plotly breaks when a second starts before the first has ended.
 * @param {View} view
 */
async function draw(view) {
  view.wanted = true;
  if (view.drawing) return;
  view.drawing = true;
  while (view.wanted && !view.gone) {
    view.wanted = false;
    await drawOnce(view);
  }
  view.drawing = false;
  if (view.gone) view.plotly?.purge(view.plot);
  else moveMark(view);
}

/** @param {View} view */
async function drawOnce(view) {
  view.width = Math.floor(view.root.clientWidth);
  view.scale = typeScale(view.under.isLarge());
  view.height = heightOf(view);
  if (view.width < LEAST) return;  // closed, or a page that is still being laid out: the size observer calls again
  const figure = parsedFigure(view.data.figure);
  if (!figure.data?.length) return note(view, say("Nothing to draw yet."));
  try {
    view.plotly = await loadPlotly();
  } catch (error) {
    console.error(error);
    return note(view, say(
      "The chart could not be drawn because its script did not load. Reload the page to try again."));
  }
  if (view.gone || view.wanted) return;
  try {
    await react(view, view.plotly, figure);
    // The first drawing had to guess the margins.
    if (labelsChanged(view) && !view.wanted) await react(view, view.plotly, parsedFigure(view.data.figure));
  } catch (error) {
    console.error(error);
    note(view, say("This chart could not be drawn."));
  }
}

/**
 * @param {View} view
 * @param {Plotly} plotly
 * @param {Figure} figure
 */
async function react(view, plotly, figure) {
  view.note.hidden = true;
  delete view.root.dataset.waits;
  view.plot.style.display = "";
  const { data, layout } = prepared(view, figure);
  await plotly.react(view.plot, data, layout, CONFIG);
  view.kept = { sent: view.sent, room: JSON.stringify([view.width, view.height, view.scale]) };
  view.plot.classList.toggle("gf-grounded", Boolean(layout.meta?.grounded));
  refreshTools(view, true);
  view.mapByKeyboard();
  view.edges.point();
  // A label that was open when the data changed would stay for good.
  if (!view.plot.matches(":hover")) plotly.Fx.unhover(view.plot);
  if (view.listening) return;
  view.listening = true;
  view.plot.on("plotly_click", (event) => report(view, event));
  view.plot.on("plotly_hover", (event) => view.edges.point(event.points?.[0]?.pointNumber));
  view.plot.on("plotly_unhover", () => view.edges.point());
  view.plot.on("plotly_relayout", () => {
    if (view.drawing) return;
    view.edges.point();
    refreshTools(view, true);
    if (labelsChanged(view)) draw(view);
  });
}

// ---------------------------------------------------------------- room

/**
 * The height of a chart: its own, which Python says, grown with the letters, or what the window has; in the large
 * view all there is.
 * @param {View} view
 */
function heightOf(view) {
  const { data, plot, root, under } = view, film = filmOf(view);
  if (film && root.clientWidth) return filmPlan(view, film).height;
  const own = Math.round(data.height * typeScale(under.isLarge()));
  if (!under.isLarge()) {
    const fits = { own, least: data.fit, most: Math.round(own * MOST_GROWN) };
    return data.fit ? fittedHeight(root, fits) : own;
  }
  // A picture whose parts have a size of their own is not squeezed: it scrolls.
  const least = plot.layout?.meta?.fixed_height ? own : 200;
  return Math.max(least, Math.floor(root.clientHeight));
}

/**
 * The film of the figure at hand, which decides its height.
 * @param {View} view
 */
function filmOf(view) {
  const { figure } = view.data;
  if (view.film?.figure !== figure) {
    view.film = { figure, film: figure.includes('"film":') ? JSON.parse(figure).layout.meta?.film : undefined };
  }
  return view.film.film;
}

/**
 * @param {View} view
 * @param {Film} film
 */
function filmPlan({ root, under }, film) {
  return planned(film, Math.floor(root.clientWidth), under.isLarge() ? root.clientHeight : 0);
}

/** @param {View} view */
function placed(view) {
  view.root.style.height = view.under.isLarge() ? "" : `${heightOf(view)}px`;
  draw(view);
}

/** @param {View} view */
function resized(view) {
  requestAnimationFrame(() => {
    if (view.gone || (Math.floor(view.root.clientWidth) === view.width && heightOf(view) === view.height)) return;
    placed(view);
  });
}

// ---------------------------------------------------------------- life

/** @type {Create<View>} */
function create(frame, gone) {
  const root = make("div", "gf-chart");
  const plot = /** @type {Plot} */ (/** @type {HTMLElement} */ (make("div", "gf-plot", "", { role: "img" })));
  const view = /** @type {View} */ (/** @type {Partial<View>} */ ({
    frame, root, plot, note: make("div", "gf-chart-note"),
    clicks: 0, follows: "", frames: null, kept: {}, at: null, inSight: true, wanted: false, drawing: false, gone: false, listening: false, ranges: {},
  }));
  root.append(plot, view.note);
  view.edges = makeEdges(view);
  view.mapByKeyboard = makeKeyboard(view, (event) => report(view, event));
  addTools(view, () => placed(view));
  refreshTools(view, false);
  view.note.hidden = true;
  root.dataset.waits = say("Loading the chart…");
  watch(view, gone, placed);
  return view;
}

/** @type {Show<View, PlotlyPayload>} */
function show(view, { data: { payload }, setTriggerValue }) {
  Object.assign(view, { sent: payload, setTriggerValue });
  view.root.dataset.clickable = String(payload.clickable);
  view.under.table.hidden = payload.table === NO_TABLE;
  listen(view, payload, placed);
  showMoment(view, placed);
}

/** @param {View} view */
function close(view) {
  view.gone = true;
  ask(view, "", false);
  if (!view.drawing) view.plotly?.purge(view.plot);  // else once it is drawn: Plotly is never purged while it draws
}

const component = mount({
  styles: "plotly", className: "gf-chart-frame", create, show, resized, close,
  watched: ({ root }) => [root, ...whatMakesRoom()], stepped: (view) => follow(view, placed), scaled: placed,
});

return { component };
})();

modules["components/flow/bars.js"] = (() => {
// @ts-check
// What stands above the lines: heads, the threshold, and following the step.

const { make, makeButton } = modules["components/common/dom.js"];
const { say } = modules["components/common/words.js"];
const { hide, toggleFollowing, toggleHead } = modules["components/flow/acts.js"];
const { everyHead, KEPT } = modules["components/flow/choices.js"];
const { update } = modules["components/flow/drawing.js"];

/** @import { View } from "./types.js" */

/** @param {View} view */
function makeBars(view) {
  view.heads = make("div", "gf-flow-heads", "", { role: "group", "aria-label": say("Heads shown") });
  view.chips = make("div", "gf-flow-chips");
  view.heads.append(make("span", "gf-flow-label", say("Heads")), view.chips,
    makeButton("gf-flow-button gf-flow-all", say("All"), say("Show all heads"), () => hide(view, [])),
    makeButton("gf-flow-button gf-flow-none", say("None"), say("Hide all heads"), () => hide(view, everyHead(view))));
  const about = { type: "range", min: 0, max: 0.5, step: 0.01, "aria-label": say("Hide lines below this weight") };
  view.slider = make("input", "gf-flow-slider", "", about);
  view.slider.addEventListener("input", () => {
    KEPT.threshold = Number(view.slider.value);
    update(view);
  });
  view.cutText = make("span", "gf-flow-cut");
  const threshold = make("label", "gf-flow-threshold");
  threshold.append(make("span", "gf-flow-label", say("Hide below")), view.slider, view.cutText);
  view.follow = makeButton("gf-flow-button gf-flow-follow", say("Follow the step"),
    say("Always pin the row of the current step"), () => toggleFollowing(view));
  const bars = make("div", "gf-flow-tools");
  bars.append(view.heads, threshold, view.follow);
  return bars;
}

/** @param {View} view */
function fillHeads(view) {
  const { group } = view.data;
  if (view.chips.childElementCount === view.model.heads && view.chips.dataset.group === String(group)) return;
  view.chips.dataset.group = String(group);
  view.chips.replaceChildren(...everyHead(view).map((head) => {
    const values = { n: head + 1, group: Math.floor(head / group) + 1 };
    const title = group === 1
      ? say("Head {n}: click to hide or show it, double-click (or Shift+Enter) to show only this head", values)
      : say("Head {n}, key-value head {group}: click to hide or show it, double-click (or Shift+Enter) to show only this head",
        values);
    const chip = makeButton("gf-flow-chip", "", title, (event) => toggleHead(view, head, event.shiftKey));
    chip.classList.toggle("gf-flow-next-group", group > 1 && head > 0 && head % group === 0);
    chip.append(make("span", "gf-flow-swatch"), make("span", "", String(head + 1)));
    chip.addEventListener("dblclick", () => toggleHead(view, head, true));
    return chip;
  }));
}

return { makeBars, fillHeads };
})();

modules["components/flow/columns.js"] = (() => {
// @ts-check
// The two columns of pieces: made once, filled for new data, and moved over by keyboard. One piece of each is reached
// with Tab, the one that had the focus last.

const { make, pieceText } = modules["components/common/dom.js"];
const { clamped, isPlain } = modules["components/common/keys.js"];
const { say } = modules["components/common/words.js"];
const { letGo, point, togglePin } = modules["components/flow/acts.js"];
const { OTHER, pinned } = modules["components/flow/choices.js"];
const { rowCentre } = modules["components/flow/places.js"];
const { SIDES } = modules["components/flow/weights.js"];

/** @import { Pin, Side } from "../common/payloads.js" */
/** @import { View } from "./types.js" */

/**
 * @param {View} view
 * @param {Side} side
 */
function makeColumn(view, side) {
  const list = make("div", `gf-flow-column gf-flow-${side}`, "", { role: "listbox" });
  /** @type {(event: Event) => Pin | null} the piece that an event is about, null beside all pieces */
  const placeOf = ({ target }) => {
    const at = target instanceof Element ? target.closest(".gf-flow-token") : null;
    return at instanceof HTMLElement ? { side, index: Number(at.dataset.index) } : null;
  };
  list.addEventListener("pointerover", (event) => event.pointerType === "mouse" && point(view, side, placeOf(event)));
  list.addEventListener("pointerleave", () => point(view, side, null));
  list.addEventListener("focusin", (event) => {
    const place = placeOf(event);
    if (!place) return;
    view.tokens[side].forEach((made, index) => { made.tabIndex = index === place.index ? 0 : -1; });
    if (event.target instanceof Element && event.target.matches(":focus-visible")) point(view, side, place);
  });
  list.addEventListener("focusout", () => point(view, side, null));
  list.addEventListener("click", (event) => {
    const place = placeOf(event);
    if (place) togglePin(view, place);
  });
  list.addEventListener("keydown", (event) => {
    const place = placeOf(event);
    if (!place || !isPlain(event) || !pressed(view, place, event.key)) return;
    event.preventDefault();
    event.stopPropagation();
  });
  return list;
}

/** @type {Record<string, (index: number) => number>} */
const MOVES = {
  ArrowUp: (index) => index - 1,
  ArrowDown: (index) => index + 1,
  PageUp: (index) => index - 10,
  PageDown: (index) => index + 10,
  Home: () => 0,
  End: () => Infinity,
};

/**
 * What a key does on a piece; whether it means something here, as all arrows do.
 * @param {View} view
 * @param {Pin} place
 * @param {string} key
 */
function pressed(view, place, key) {
  const { side, index } = place;
  if (key === "Enter" || key === " ") togglePin(view, place);
  else if (key === "Escape" && pinned(view)) letGo(view);
  else if (key === (side === "key" ? "ArrowLeft" : "ArrowRight")) focusToken(view, beside(view, place));
  else if (MOVES[key]) focusToken(view, { side, index: MOVES[key](index) });
  else return key.startsWith("Arrow");
  return true;
}

/**
 * The piece of the other column at the same height.
 * @param {View} view
 * @param {Pin} place
 * @returns {Pin}
 */
function beside({ rows }, { side, index }) {
  const other = OTHER[side];
  if (!rows) return { side: other, index };
  const { start, pitch } = rows[other];
  return { side: other, index: Math.round((rowCentre(rows, side, index) - start) / pitch - 0.5) };
}

/**
 * @param {View} view
 * @param {Pin} place
 */
function focusToken(view, { side, index }) {
  const tokens = view.tokens[side];
  tokens[clamped(index, tokens.length)]?.focus();
}

/**
 * @param {string} text
 * @param {number} index
 */
function token(text, index) {
  const made = make("div", "gf-flow-token", "", { role: "option", tabindex: index ? -1 : 0, "data-index": index });
  made.append(pieceText(text, "gf-flow-piece"), make("span", "gf-flow-value"));
  return made;
}

/** @param {View} view */
function fillColumns(view) {
  const { queries, keys, output } = view.data;
  const signature = JSON.stringify([queries, keys, output]);
  if (signature === view.signature) return;
  view.signature = signature;
  const { activeElement: focused } = /** @type {Document | ShadowRoot} */ (view.root.getRootNode());
  const at = focused instanceof HTMLElement && focused.dataset.index !== undefined ? view.pointed : null;
  view.tokens = { query: queries.map(token), key: keys.map(token) };
  for (const side of SIDES) {
    const first = output[side] === null ? undefined : view.tokens[side][output[side]];
    if (first && output[side]) {
      first.classList.add("gf-flow-output");
      first.title = side === "query" ? say("The rows from this one on predict the output") : say("The output begins with this piece");
    }
    view.lists[side].replaceChildren(...view.tokens[side]);
  }
  if (at) focusToken(view, at);
}

return { makeColumn, fillColumns };
})();

modules["components/stepper/keys.js"] = (() => {
// @ts-check
// Keys for the stepper that was used last, wherever the focus is, unless the key belongs to something else. And
// clicks and keys for the source, where a piece is picked, to see who looks at it.

const { clamped, isPlain } = modules["components/common/keys.js"];
const { offerStepper, runOf } = modules["components/common/step.js"];
const { canPick } = modules["components/stepper/chips.js"];
const { render, stepOf } = modules["components/stepper/drawing.js"];
const { go, leading, steppers, togglePlay } = modules["components/stepper/moving.js"];
const { tellRest } = modules["components/stepper/rest.js"];

/** @import { View } from "./types.js" */

const TYPING = "input, textarea, select, [contenteditable]:not([contenteditable='false'])";
const ARROWED = ["slider", "grid", "listbox", "menu", "menubar", "radiogroup", "tablist", "tree", "combobox",
  "textbox", "spinbutton"].map((role) => `[role='${role}']`).join(", ");
const DIALOGS = "[role='dialog'], dialog[open]:not(.gf-chart-dialog)";
const POINTER_MS = 1000;

// A choice that was clicked keeps the focus, but the arrows that follow are meant for the steps; only who came to it
// by keyboard wants to move it. Listening while the event goes down, we are asked before the choice is.
const clicked = new WeakSet();
let pointerAt = -POINTER_MS;
let heard = new AbortController();

/**
 * @param {View} view
 * @param {AbortSignal} gone
 */
function enter(view, gone) {
  view.root.addEventListener("pointerdown", () => prefer(view));
  view.root.addEventListener("focusin", () => prefer(view));
  /** @type {(step: number, after: number, quiet?: boolean) => void} */
  const move = (step, after, quiet) => {
    go(view, step, after);
    if (quiet) view.settled = step;
  };
  offerStepper({ name: () => view.data?.name, said: view.caption, move }, gone);
  steppers.unshift(view);
  if (steppers.length > 1) return;
  heard = new AbortController();
  const options = { capture: true, signal: heard.signal };
  document.addEventListener("keydown", (event) => {
    onKey(event);
    if (!event.defaultPrevented) tellRest();
  }, options);
  document.addEventListener("pointerdown", () => { pointerAt = performance.now(); }, options);
  document.addEventListener("focusin", onFocus, options);
}

/**
 * Forget a stepper; what comes back is the step of the one that is left.
 * @param {View} view
 */
function leave(view) {
  steppers.splice(steppers.indexOf(view), 1);
  if (!steppers.length) heard.abort();
  return stepOf(steppers.filter((other) => runOf(other.data.name) === runOf(view.data.name)).at(-1));
}

/** @param {View} view */
function prefer(view) {
  steppers.splice(steppers.indexOf(view), 1);
  steppers.push(view);
}

/** @param {FocusEvent} event */
function onFocus(event) {
  const at = event.composedPath()[0];
  if (performance.now() - pointerAt < POINTER_MS) clicked.add(at);
  else clicked.delete(at);
}

/** @param {Event} event whether the focus was left behind by a click */
const isLeftOver = (event) => clicked.has(event.composedPath()[0]);

/** @param {Element} element */
const isShown = (element) => Boolean(element.getClientRects().length);

/**
 * Whether the key belongs to something else: a field, a widget that uses arrows itself, or an open dialog.
 * @param {Event} event
 * @param {View} view
 */
function isTaken(event, view) {
  const at = event.composedPath()[0];
  if (at instanceof Element) {
    if (view.sourceList.contains(at)) return !isLeftOver(event);
    if (view.root.contains(at)) return at.matches("select, input");
    const leftover = isLeftOver(event) && at.closest("[role='radiogroup']");
    if (!leftover && (at.closest(TYPING) || at.closest(ARROWED))) return true;
  }
  return Array.from(document.querySelectorAll(DIALOGS)).some(isShown);
}

/** @type {Record<string, (view: View) => number>} */
const MOVES = {
  ArrowLeft: (view) => view.step - 1,
  ArrowRight: (view) => view.step + 1,
  Home: () => 0,
  End: (view) => view.run.target.length - 1,
};

/** @param {KeyboardEvent} event */
function onKey(event) {
  if (event.defaultPrevented || !isPlain(event) || event.shiftKey) return;
  const used = steppers.findLast((candidate) => isShown(candidate.root));
  const view = used?.data && leading(used);
  if (!view?.run?.target.length) return;
  const at = event.composedPath()[0];
  if (event.key === " ") {
    // On a button Space presses it, as everywhere.
    if (at !== view.root && at !== view.slider) return;
    event.preventDefault();
    togglePlay(view);
    return;
  }
  const move = MOVES[event.key];
  if (!move || isTaken(event, view)) return;
  event.preventDefault();
  event.stopPropagation();
  go(view, move(view));
}

/**
 * Pick a piece; the one that was picked already is let go. Where Python does something with the choice, it is told.
 * @param {View} view
 * @param {number | null} index
 */
function pick(view, index) {
  if (view.data.choosable) {
    if (index !== null) view.setTriggerValue("chosen", index);
    return;
  }
  view.picked = index === view.picked ? null : index;
  render(view);
}

/**
 * Have the source answer to clicks and keys. It is one stop of the Tab key; arrows go from piece to piece there, but
 * after a click, which leaves the focus behind, they are meant for the steps.
 * @param {View} view
 */
function watchSource(view) {
  const list = view.sourceList;
  /** @param {Event} event */
  const placeOf = (event) => view.sourceChips.findIndex((chip) => event.composedPath().includes(chip));
  list.addEventListener("click", (event) => {
    const index = placeOf(event);
    if (index >= 0 && canPick(view)) pick(view, index);
  });
  list.addEventListener("keydown", (event) => {
    const index = placeOf(event);
    if (index < 0 || !canPick(view)) return;
    const to = { ArrowLeft: index - 1, ArrowRight: index + 1, Home: 0, End: Infinity }[event.key];
    if (to !== undefined && !isLeftOver(event)) view.sourceChips[clamped(to, view.sourceChips.length)].focus();
    else if (event.key === "Enter" || event.key === " ") pick(view, index);
    else if (event.key === "Escape" && view.picked !== null) pick(view, null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
}

return { enter, leave, watchSource };
})();

modules["components/flow/view.js"] = (() => {
// @ts-check
// Lines from queries to keys, one colour a head. Pointing, pinning, hiding heads and the threshold all happen here;
// Python is told what an address keeps: the pinned piece, the heads that are shown, and following the step.

const { make, set } = modules["components/common/dom.js"];
const { mount } = modules["components/common/mount.js"];
const { whatMakesRoom } = modules["components/common/room.js"];
const { press } = modules["components/common/save.js"];
const { makeUnder } = modules["components/common/under.js"];
const { fillHeads, makeBars } = modules["components/flow/bars.js"];
const { everyHead, KEPT, same } = modules["components/flow/choices.js"];
const { fillColumns, makeColumn } = modules["components/flow/columns.js"];
const { markStep, paint, reveal, update } = modules["components/flow/drawing.js"];
const { layOut, roomOf } = modules["components/flow/layout.js"];
const { titleOf } = modules["components/flow/readout.js"];
const { saveDrawing } = modules["components/flow/svg.js"];
const { decode, SIDES } = modules["components/flow/weights.js"];

/** @import { Create, FlowPayload, Pin, Show } from "../common/payloads.js" */
/** @import { View } from "./types.js" */

/** @param {View} view */
function stage(view) {
  const heads = make("div", "gf-flow-axes");
  view.axes = { query: make("div", "gf-flow-axis"), key: make("div", "gf-flow-axis") };
  heads.append(view.axes.query, view.title, view.axes.key);
  view.lists = { query: makeColumn(view, "query"), key: makeColumn(view, "key") };
  const middle = make("div", "gf-flow-middle");
  middle.append(view.canvas);
  view.stage.append(view.lists.query, middle, view.lists.key);
  view.scroll.append(view.stage);
  view.scroll.addEventListener("scroll", () => paint(view), { passive: true });
  return [heads, view.scroll];
}

/** @type {Create<View>} */
function create(root) {
  const view = /** @type {View} */ (/** @type {Partial<View>} */ ({
    root, mount: Math.random().toString(36).slice(2), sent: 0, pin: null, pointed: null, following: false,
    body: make("div", "gf-flow-body"), title: make("div", "gf-flow-title"),
    readout: make("p", "gf-flow-readout", "", { "aria-live": "polite" }), count: make("p", "gf-flow-count"),
    scroll: make("div", "gf-flow-scroll"), stage: make("div", "gf-flow-stage"),
    canvas: make("canvas", "gf-flow-canvas", "", { role: "img" }),
  }));
  view.under = makeUnder(root, view.body, {
    className: "gf-flow-dialog", name: () => view.data.name, changed: () => layOut(view),
    data: () => press(view.data.table), picture: (format) => saveDrawing(view, format),
  });
  view.body.append(makeBars(view), view.readout, ...stage(view), view.count);
  return view;
}

/**
 * Take what Python says: heads, a pinned piece or following that are news; else the reader's own choice stays.
 * @param {View} view
 * @param {FlowPayload} data
 */
function adopt(view, data) {
  const fresh = !view.data || data.sentence !== view.data.sentence;
  if (fresh) Object.assign(view, { pin: null, pointed: null });
  const heard = view.sent === 0 || data.heard === view.stamp;
  if (fresh || (heard && !same(data.pin, view.data.pin))) {
    view.pin = data.pin;
    if (data.pin) view.following = false;
  }
  if (!view.data || (heard && data.following !== view.data.following)) view.following = data.following && !view.pin;
  Object.assign(view, { data, model: decode(data) });
  const shown = data.shown.join(" ");
  if (heard && !data.together && shown !== KEPT.shown) {
    KEPT.shown = shown;
    KEPT.hidden = data.shown.length ? everyHead(view).filter((head) => !data.shown.includes(head)) : [];
  }
  /** @type {(place: Pin | null) => Pin | null} */
  const kept = (place) =>
    (place && place.index < (place.side === "query" ? data.queries : data.keys).length ? place : null);
  view.pin = kept(view.pin);
  view.pointed = kept(view.pointed);
}

/** @type {Show<View, FlowPayload>} */
function show(view, { data: { payload: data }, setStateValue }) {
  view.setStateValue = setStateValue;
  adopt(view, data);
  view.title.textContent = titleOf(view);
  for (const side of SIDES) {
    view.axes[side].textContent = data[`${side}_axis`];
    view.axes[side].dataset.side = view.lists[side].dataset.side = data[`${side}_side`];
    set(view.lists[side], { "aria-label": data[`${side}_axis`] });
  }
  for (const named of [view.canvas, view.under.tools]) set(named, { "aria-label": data.alt });
  view.under.tell(data.caption);
  view.under.table.hidden = !data.table;
  fillHeads(view);
  fillColumns(view);
  layOut(view);
  reveal(view);
}

/**
 * Follow a step that Python need not hear of to draw it.
 * @param {View} view
 */
function stepped(view) {
  if (!view.rows) return;
  if (view.following) update(view);
  else markStep(view);
  reveal(view);
}

const component = mount({
  styles: "flow", className: "gf-flow", create, show, stepped, scaled: layOut,
  watched: (view) => [view.root, view.scroll, ...whatMakesRoom()],
  resized: (view) => view.root.clientWidth
    && (view.width !== view.scroll.clientWidth || view.room !== roomOf(view)) && layOut(view),
  fontsCame: (view) => view.data && layOut(view),
});

return { component };
})();

modules["components/stepper/view.js"] = (() => {
// @ts-check
// Steps through a finished run.

const { make, set } = modules["components/common/dom.js"];
const { wantFrames } = modules["components/common/frames.js"];
const { clamped } = modules["components/common/keys.js"];
const { mount } = modules["components/common/mount.js"];
const { runOf, tellStep } = modules["components/common/step.js"];
const { PAGE } = modules["components/common/streamlit-page.js"];
const { say } = modules["components/common/words.js"];
const { buildChips } = modules["components/stepper/chips.js"];
const { offerAll, render, reserve } = modules["components/stepper/drawing.js"];
const { enter, leave, watchSource } = modules["components/stepper/keys.js"];
const { go, makeControls, pause } = modules["components/stepper/moving.js"];
const { unpacked } = modules["components/stepper/numbers.js"];
const { stays } = modules["components/stepper/rest.js"];

/** @import { Create, Show, StepperPayload } from "../common/payloads.js" */
/** @import { View } from "./types.js" */

/**
 * One of the two rows: its name, and what is in it.
 * @param {string} className
 * @param {string} heading
 * @param {HTMLElement[]} content
 */
function side(className, heading, ...content) {
  const section = make("section", `gf-side ${className}`);
  const inside = make("div", "gf-inside");
  inside.append(...content);
  const name = make("h2", "gf-heading", heading);
  const more = make("button", "gf-show-all", "", { type: "button" });
  more.addEventListener("click", () => offerAll(section, section.classList.toggle("gf-all")));
  section.append(name, more, inside);
  return { section, name };
}

/** @type {Create<View>} */
function create(root, gone) {
  const label = say("Step through the output. Arrow keys move, Home and End jump, Space plays.");
  set(root, { role: "group", tabindex: 0, "aria-label": label });
  const view = /** @type {View} */ (/** @type {Partial<View>} */ ({
    root, step: 0, speed: 1, timer: null, halted: null, picked: null,
    text: make("p", "gf-text", "", { dir: "auto" }),
    sourceList: make("ol", "gf-pieces"),
    targetList: make("ol", "gf-pieces"),
    caption: make("p", "gf-caption", "", { "aria-live": "polite" }), note: make("p", "gf-note"),
    bar: make("div", "gf-bar"),
  }));
  const says = make("div", "gf-says");
  says.append(view.caption, view.note);
  view.controls = makeControls(view);
  view.bar.append(view.controls, says);
  const target = side("gf-target", say("Output so far"), view.text, view.targetList);
  view.targetName = target.name;
  root.append(side("gf-source", say("Source"), view.sourceList).section, target.section, view.bar);
  watchSource(view);
  for (const near of ["pointerenter", "focusin"]) root.addEventListener(near, wantFrames);
  // Who goes to another address is at its step; a report of the one before would stop the run that draws it.
  addEventListener("popstate", () => clearTimeout(view.settling), { signal: gone });
  enter(view, gone);
  return view;
}

/**
 * Take Python's step when it is news: another run, or a revision we have not seen. Else our own place wins.
 * @param {View} view
 * @param {StepperPayload} data
 */
function adopt(view, data) {
  const run = unpacked(data.run);
  const another = view.run?.run_id !== run.run_id;
  const news = another || view.revision !== data.step_revision;
  const kept = runOf(data.name) ? null : stays(run.run_id, data);
  if (view.run && another) pause(view);
  const shape = JSON.stringify([run.source, run.target, run.start_piece, run.shading_label, run.still]);
  Object.assign(view, { run, data, revision: data.step_revision });
  if (news) {
    clearTimeout(view.settling);
    view.step = view.settled = clamped(kept ?? data.step, run.target.length);
  }
  view.step = clamped(view.step, run.target.length);
  if (shape === view.shape) return;
  view.shape = shape;
  buildChips(view, (index) => go(view, index));
  view.picked = null;
  view.slider.max = String(Math.max(1, run.target.length));
}

/** @type {Show<View, StepperPayload>} */
function show(view, { data: { payload }, setStateValue, setTriggerValue }) {
  Object.assign(view, { setStateValue, setTriggerValue });
  view.root.classList.toggle("gf-compact", payload.compact);
  view.root.classList.toggle("gf-still", payload.run.still);
  if (payload.led) view.controls.remove();
  else if (view.controls.parentElement !== view.bar) view.bar.prepend(view.controls);
  view.targetName.textContent = payload.run.still ? say("Output") : say("Output so far");
  adopt(view, payload);
  render(view);
  resized(view);
}

/**
 * Tell the page how much stands above the controls: so much may scroll away, and they stay in sight.
 * @param {View} view
 */
function stick(view) {
  const root = view.root.getRootNode();
  const place = root instanceof ShadowRoot ? root.host.closest(PAGE.element) : null;
  const above = view.run?.still || !view.run?.target.length ? "200vh" : `${view.bar.offsetTop}px`;
  if (place instanceof HTMLElement) place.style.setProperty("--gf-above", above);
}

/** @param {View} view */
function resized(view) {
  reserve(view);
  stick(view);
}

/** @param {View} view */
function close(view) {
  pause(view);
  clearTimeout(view.settling);
  tellStep(leave(view), view.data.name);
}

/** @param {View} view */
function lettersChanged(view) {
  view.kept = undefined;
  resized(view);
}

const component = mount({
  styles: "stepper", className: "gf-stepper", create, show, close,
  watched: (view) => [view.root], resized,
  fontsCame: lettersChanged, scaled: lettersChanged,
});

return { component };
})();

export const plotly_view = modules["components/plotly/view.js"].component;

export const stepper = modules["components/stepper/view.js"].component;

export const rest = modules["components/stepper/rest.js"].component;

export const flow_view = modules["components/flow/view.js"].component;

export const glossary_marks = modules["components/glossary/marks.js"].component;

export const glossary_list = modules["components/glossary/list.js"].component;
