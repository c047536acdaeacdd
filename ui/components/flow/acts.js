// @ts-check
// What the reader does: pointing, pinning, hiding heads. Python is told what an address keeps.

import { everyHead, KEPT, pinned, same, shownHeads } from "./choices.js";
import { update } from "./drawing.js";

/** @import { Side } from "../common/payloads.js" */
/** @import { View } from "./types.js" */

/**
 * @param {View} view
 * @param {number[]} heads
 */
export function hide(view, heads) {
  KEPT.hidden = heads;
  update(view);
  tell(view);
}

/**
 * @param {View} view
 * @param {number} head
 * @param {boolean} alone
 */
export function toggleHead(view, head, alone) {
  if (alone) return hide(view, everyHead(view).filter((other) => other !== head));
  const hidden = new Set(KEPT.hidden);
  if (!hidden.delete(head)) hidden.add(head);
  hide(view, [...hidden]);
}

/**
 * What is pointed at, by mouse or by keyboard.
 * @param {View} view
 * @param {Side} side
 * @param {number | null} index
 */
export function point(view, side, index) {
  if (index === null && view.pointed?.side !== side) return;
  if (view.pointed?.side === side && view.pointed.index === index) return;
  view.pointed = index === null ? null : { side, index };
  update(view);
}

/**
 * @param {View} view
 * @param {Side} side
 * @param {number} index
 */
export function togglePin(view, side, index) {
  const wanted = { side, index };
  const letsGo = same(pinned(view), wanted);
  view.following = false;
  view.pin = letsGo ? null : wanted;
  if (letsGo) view.pointed = null;
  update(view);
  tell(view);
}

/** @param {View} view */
export function letGo(view) {
  view.pin = null;
  view.following = false;
  update(view);
  tell(view);
}

/** @param {View} view */
export function toggleFollowing(view) {
  view.following = !view.following;
  if (view.following) view.pin = null;
  update(view);
  tell(view);
}

/**
 * Tell Python what is chosen; it says in the next data what it has heard. No head at all is said as all of them: an
 * address that shows nothing would help nobody.
 * @param {View} view
 */
function tell(view) {
  const shown = shownHeads(view);
  const some = shown.length < view.model.heads && !view.data.together ? shown : [];
  if (!view.data.together) KEPT.shown = some.join(" ");
  if (!view.data.reports) return;
  view.sent += 1;
  view.stamp = `${view.mount} ${view.sent}`;
  view.setStateValue("pin", {
    side: view.pin?.side ?? null, index: view.pin?.index ?? null, shown: some, following: view.following,
    stamp: view.stamp,
  });
}
