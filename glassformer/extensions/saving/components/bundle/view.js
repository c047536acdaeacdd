// @ts-check
// A saved run: its stepper and its pictures in a file of their own, without a server (`extensions/saving/saved_run.py`).

import { make, makeButton } from "../../../../components/common/dom.js";
import { giveFrames, wantFrames } from "../../../../components/common/frames.js";
import { atStep } from "../../../../components/common/streamlit-page.js";
import { STYLES } from "../../../../components/common/served.js";
import { currentStep, STEP_EVENT } from "../../../../components/common/step.js";
import { component as flow } from "../../../../components/flow/view.js";
import { component as chart } from "../../../../components/plotly/view.js";
import { component as stepper } from "../../../../components/stepper/view.js";

/** @import { SavedIn, SavedPage, SavedRun } from "../../../../components/common/payloads.js" */

const DARK = "(prefers-color-scheme: dark)";
/** What was placed, to be taken away. @type {(() => void)[]} */
let ends = [];

/** @param {(component: any) => () => void} component @param {object} payload @param {string} [className] */
function placed(component, payload, className = "") {
  const parentElement = make("div", className);
  // Streamlit calls again for each change of data; here nobody listens, and nothing changes.
  const call = () => component({ data: { payload }, parentElement, setStateValue: () => {}, setTriggerValue: () => {} });
  return { parentElement, begin: () => { ends.push(call()); } };
}

/**
 * A link that opens the same live, at the step that is looked at.
 * @param {SavedIn} said @param {SavedPage} page
 */
function live({ live: says, stepper: { name, step } }, { address }) {
  const link = make("a", "", says);
  const lead = () => { link.href = atStep(address, currentStep(name) ?? step); };
  lead();
  document.addEventListener(STEP_EVENT, lead);
  ends.push(() => document.removeEventListener(STEP_EVENT, lead));
  return link;
}

/** @param {SavedIn} said @param {SavedPage} page */
function about(said, page) {
  const section = make("section", "gf-saved-about");
  const list = make("dl");
  for (const [name, text] of said.about) list.append(make("dt", "", name), make("dd", "", text));
  section.append(list);
  if (page.address) section.append(live(said, page));
  const query = make("details");
  query.append(make("summary", "", said.query.says), make("pre", "", said.query.json));
  section.append(query);
  return section;
}

/**
 * Links to the pages of the file, if there are several.
 * @param {SavedIn} said @param {SavedPage} shown
 */
function pages(said, shown) {
  const nav = make("nav", "gf-saved-pages");
  for (const { path, title } of said.pages.length > 1 ? said.pages : []) {
    nav.append(make("a", "", title, { href: `#${path}`, "aria-current": path === shown.path }));
  }
  return nav;
}

/** One run: its stepper, and its pictures on a page of the file. @param {SavedIn} said */
function side(said) {
  const page = said.pages.find(({ path }) => `#${path}` === location.hash) ?? said.pages[0];
  const step = currentStep(said.stepper.name) ?? said.stepper.step;
  giveFrames(said.frames);
  const steps = placed(stepper, { ...said.stepper, step }, "gf-saved-stepper");
  const charts = page.shows.map((payload) => placed("figure" in payload ? chart : flow, payload));
  const pictures = make("main", "gf-saved-pictures");
  pictures.append(...charts.map(({ parentElement }) => parentElement));
  const section = make("section", "gf-saved-side");
  const missing = make("p", "gf-saved-missing", page.missing);
  section.append(pages(said, page), steps.parentElement, pictures, missing, about(said, page));
  return { section, begin: () => { for (const one of [steps, ...charts]) one.begin(); } };
}

/** In a frame of a notebook: as tall as what it shows, up to a screen, and without what stands there for no scripts. */
function fitFrame() {
  const frame = /** @type {HTMLElement | null} */ (window.frameElement);
  if (frame === null) return;
  if (frame.nextElementSibling?.tagName === "DETAILS") frame.nextElementSibling.removeAttribute("open");
  const most = frame.offsetHeight;
  const fit = () => { frame.style.height = `${Math.min(most, document.documentElement.scrollHeight)}px`; };
  new ResizeObserver(fit).observe(document.body);
}

/** @param {SavedRun} saved @param {number} language */
function show(saved, language) {
  window.onhashchange = () => show(saved, language);
  const runs = saved.languages[language];
  const [said] = runs;
  for (const end of ends) end();
  ends = [];
  document.title = runs.map(({ title }) => title).join(" | ");
  const head = make("header", "gf-saved-head");
  const other = (language + 1) % saved.languages.length;
  const dark = document.documentElement.dataset.theme === "dark";
  head.append(make("h1", "", document.title), makeButton("gf-saved-theme", dark ? said.light : said.dark, "", () => {
    document.documentElement.dataset.theme = dark ? "light" : "dark";
    show(saved, language);
  }));
  if (other !== language) {
    head.append(makeButton("gf-saved-language", saved.languages[other][0].name, "", () => show(saved, other)));
  }
  const sides = runs.map(side);
  const whole = make("div", "gf-saved-sides");
  whole.append(...sides.map(({ section }) => section));
  document.body.replaceChildren(head, whole);
  for (const { begin } of sides) begin();
  wantFrames();
}

const saved = window.glassformerRun;
if (saved) {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(STYLES.bundle);
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  document.documentElement.dataset.theme = matchMedia(DARK).matches ? "dark" : "light";
  const [spoken] = navigator.language.split("-");
  show(saved, Math.max(0, saved.languages.findIndex(([{ tag }]) => tag.startsWith(spoken))));
  fitFrame();
}
