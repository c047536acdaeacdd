// @ts-check
// A saved run: its stepper and its pictures in a file of their own, without a server (`ui/runs/saved_run.py`).

import { make, makeButton } from "../common/dom.js";
import { giveFrames, wantFrames } from "../common/frames.js";
import { STYLES } from "../common/served.js";
import { currentStep } from "../common/step.js";
import { component as chart } from "../plotly/view.js";
import { component as stepper } from "../stepper/view.js";

/** @import { SavedIn, SavedRun } from "../common/payloads.js" */

const DARK = "(prefers-color-scheme: dark)";
/** What was placed, to be taken away. @type {(() => void)[]} */
let ends = [];

/**
 * @param {(component: any) => () => void} component
 * @param {object} payload
 * @param {string} [className]
 */
function placed(component, payload, className = "") {
  const parentElement = make("div", className);
  // Streamlit calls again for each change of data; here nobody listens, and nothing changes.
  const call = () => component({ data: { payload }, parentElement, setStateValue: () => {}, setTriggerValue: () => {} });
  return { parentElement, begin: () => { ends.push(call()); } };
}

/** @param {SavedIn} said */
function about(said) {
  const section = make("section", "gf-saved-about");
  const list = make("dl");
  for (const [name, text] of said.about) list.append(make("dt", "", name), make("dd", "", text));
  section.append(list);
  if (said.live) section.append(make("a", "", said.live.says, { href: said.live.address }));
  const query = make("details");
  query.append(make("summary", "", said.query.says), make("pre", "", said.query.json));
  section.append(query);
  return section;
}

/**
 * @param {SavedRun} saved
 * @param {number} language
 */
function show(saved, language) {
  const said = saved.languages[language];
  const step = currentStep(said.stepper.name) ?? said.stepper.step;
  for (const end of ends) end();
  ends = [];
  document.title = said.title;
  const head = make("header", "gf-saved-head");
  const other = (language + 1) % saved.languages.length;
  const dark = document.documentElement.dataset.theme === "dark";
  head.append(make("h1", "", said.title), makeButton("gf-saved-theme", dark ? said.light : said.dark, "", () => {
    document.documentElement.dataset.theme = dark ? "light" : "dark";
    show(saved, language);
  }));
  if (other !== language) {
    head.append(makeButton("gf-saved-language", saved.languages[other].name, "", () => show(saved, other)));
  }
  giveFrames(said.frames);
  const steps = placed(stepper, { ...said.stepper, step }, "gf-saved-stepper");
  const charts = said.charts.map((payload) => placed(chart, payload));
  const pictures = make("main", "gf-saved-pictures");
  pictures.append(...charts.map(({ parentElement }) => parentElement));
  document.body.replaceChildren(head, steps.parentElement, pictures, about(said));
  for (const one of [steps, ...charts]) one.begin();
  wantFrames();
}

const saved = window.glassformerRun;
if (saved) {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(STYLES.bundle);
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  document.documentElement.dataset.theme = matchMedia(DARK).matches ? "dark" : "light";
  const [spoken] = navigator.language.split("-");
  show(saved, Math.max(0, saved.languages.findIndex(({ tag }) => tag.startsWith(spoken))));
}
