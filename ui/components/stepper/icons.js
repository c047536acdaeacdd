// @ts-check
// The signs on the buttons.

const SVG = "http://www.w3.org/2000/svg";

const PATHS = {
  first: "M6 5h2.2v14H6zM19 5v14l-9.5-7z",
  back: "M17 5v14L6.5 12z",
  play: "M8 4.5v15l11.5-7.5z",
  pause: "M7 5h3.6v14H7zM13.4 5H17v14h-3.6z",
  next: "M7 5v14l10.5-7z",
  last: "M15.8 5H18v14h-2.2zM5 5v14l9.5-7z",
};

/** @typedef {keyof typeof PATHS} Icon */

/** @param {Icon} name */
export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", PATHS[name]);
  svg.append(path);
  return svg;
}
