// @ts-check
// Loads Plotly's script once for a browser page, whichever chart asks first.

import { PLOTLY_FILE } from "../common/served.js";

/** @import { Plotly } from "./types.js" */

const ADDRESS = new URL(PLOTLY_FILE, import.meta.url).href;
// Most pages have a chart: it is run as soon as the browser has nothing to do, while the page is still being made.
if (!window.glassformerRun) (window.requestIdleCallback ?? setTimeout)(() => { loadPlotly().catch(() => {}); });

/** @returns {Promise<Plotly>} */
export function loadPlotly() {
  // On the window: after an update of the server a page may hold two versions of these modules.
  const loaded = (window.__glassformerPlotly ??= new Map());
  const known = loaded.get(ADDRESS) ?? (window.glassformerRun && Promise.resolve(window.Plotly));
  if (known) return known;
  const attempt = addScript(ADDRESS);
  attempt.catch(() => loaded.delete(ADDRESS));  // the next chart may try again
  loaded.set(ADDRESS, attempt);
  return attempt;
}

/** @param {string} address @returns {Promise<Plotly>} */
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
