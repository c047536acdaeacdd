// @ts-check
// Gives a figure the colours and fonts of the app's theme.

import { cssVariable, isDark } from "../common/dom.js";
import { PLAIN_TYPE } from "../common/present.js";

/** @import { Layout } from "./types.js" */

export const TRANSPARENT = "rgba(0,0,0,0)";

/** @param {Element} root */
export function themeOf(root) {
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
 * @param {any} value @param {Record<string, string>} palette @returns {any}
 */
export function recolour(value, palette) {
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
export function axisNames(layout) {
  return Object.keys(layout).filter((name) => /^[xy]axis\d*$/.test(name));
}

/** @param {Layout} layout @param {ReturnType<typeof themeOf>} theme @param {number} scale by which it is shown larger */
export function paint(layout, theme, scale) {
  layout.font = { size: PLAIN_TYPE, ...layout.font, family: theme.font, color: theme.text };
  layout.paper_bgcolor = TRANSPARENT;
  layout.plot_bgcolor = TRANSPARENT;
  layout.xaxis ??= {};
  layout.yaxis ??= {};
  for (const name of axisNames(layout)) {
    for (const part of ["gridcolor", "linecolor", "zerolinecolor", "tickcolor"]) layout[name][part] ??= theme.border;
    const { tickfont } = layout[name];
    if (scale > 1 && tickfont?.size) tickfont.size = Math.max(tickfont.size, PLAIN_TYPE);  // smaller ones were for phones
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
