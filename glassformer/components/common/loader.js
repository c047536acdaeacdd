// @ts-check
// All that Streamlit is given of a component: it loads our script, once a browser page.
//
// It is sent again with every element and every change of data, so it is short, imports nothing, and
// `custom_component.py` leaves its comments out and puts the names for SCRIPT and NAME.

/** @import { Sent } from "./payloads.js" */

/** @type {Promise<any> | undefined} */
let loading;

function load() {
  // Pages live at /step, or at /step/ when someone typed the slash: then the app is one level up.
  loading ??= import(new URL("app/static/SCRIPT", location.href).href)
    .catch(() => import(new URL("../app/static/SCRIPT", location.href).href));
  // The next call may try again.
  loading.catch(() => { loading = undefined; });
  return loading;
}

/** @param {Sent} component */
export default function (component) {
  /** @type {(() => void) | undefined} */
  let cleanup;
  let overtaken = false;
  /** @param {string} sentence */
  const say = (sentence) => String(component.data[0].words?.[sentence] ?? sentence);
  load().then(
    (script) => { if (!overtaken) cleanup = script.NAME(component); },
    () => { component.parentElement.textContent = say("A script did not load. Reload the page to try again."); },
  );
  return () => { overtaken = true; if (cleanup) cleanup(); };
}
