// @ts-check
// How long a class may still vote, or talk, counted down by the browser between what it hears from the room.

import { make } from "../../../../components/common/dom.js";
import { say } from "../../../../components/common/i18n.js";

/** @import { Known } from "./types.js" */

const SECOND_MS = 1000;

/** The time as on a clock, such as 1:05. @param {number} ms */
export function clock(ms) {
  const seconds = Math.max(0, Math.ceil(ms / SECOND_MS));
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}

/** @param {Known | null} known */
function told(known) {
  const phase = known?.standing === "there" ? known.state?.phase : "";
  if (!known || !phase) return "";
  const time = clock(known.until - performance.now());
  return phase === "vote" ? say("Vote: {time}", { time }) : say("Discuss with your neighbours: {time}", { time });
}

/**
 * A line that counts down; it is drawn anew each second, while something is timed.
 * @param {AbortSignal} gone
 */
export function makeTimer(gone) {
  const element = make("span", "gf-room-timer", "", { role: "timer", hidden: "" });
  /** @type {Known | null} */
  let latest = null;
  let again = 0;
  const draw = () => {
    clearTimeout(again);
    const text = told(latest);
    element.hidden = !text;
    if (element.textContent !== text) element.textContent = text;
    if (text && latest) again = setTimeout(draw, Math.max(50, (latest.until - performance.now()) % SECOND_MS));
  };
  const hear = (/** @type {Known | null} */ known) => {
    latest = known;
    draw();
  };
  gone.addEventListener("abort", () => clearTimeout(again));
  return { element, hear };
}
