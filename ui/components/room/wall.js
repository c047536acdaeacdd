// @ts-check
// How many are in the room and how many have voted, as it changes, in letters that a class can read.

import { make } from "../common/dom.js";
import { mount } from "../common/mount.js";
import { say, sayN } from "../common/words.js";
import { listen } from "./connection.js";
import { makeTimer } from "./timer.js";

/** @import { Component, RoomCountsPayload } from "../common/payloads.js" */
/** @import { Known, Timer } from "./types.js" */

/**
 * @typedef {{
 *   students: HTMLElement, voted: HTMLElement, timer: Timer, known: Known | null, forget: () => void
 * }} Wall
 */

/** @param {HTMLElement} root */
function create(root) {
  const wall = /** @type {Wall} */ ({ students: make("span", ""), voted: make("span", ""), timer: makeTimer(), known: null });
  root.append(wall.students, wall.voted, wall.timer.element);
  wall.forget = listen((known) => {
    wall.known = known;
    wall.timer.hear(known);
    draw(wall);
  });
  return wall;
}

/** @param {Wall} wall */
function draw({ students, voted, known }) {
  const { counts, state } = known ?? {};
  students.textContent = counts ? sayN("{n} student", "{n} students", counts.students) : "";
  voted.hidden = !counts || !state?.question;
  voted.textContent = counts ? say("{n} of {m} answered", { n: counts.voted, m: counts.expected }) : "";
}

/**
 * @param {Wall} wall
 * @param {Component<RoomCountsPayload>} component
 */
function show(wall, { data: { payload } }) {
  /** @type {HTMLElement | null} */
  const root = wall.students.parentElement;
  root?.classList.toggle("gf-large", payload.large);
  draw(wall);
}

export const component = mount({
  styles: "room", className: "gf-room-wall", create, show, watched: () => [], resized: () => {},
  close: (wall) => {
    wall.forget();
    wall.timer.forget();
  },
});
