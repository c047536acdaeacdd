// @ts-check
// How many are in the room and how many have voted, as it changes, in letters that a class can read.

import { make } from "../../../../components/common/dom.js";
import { mount } from "../../../../components/common/mount.js";
import { say, sayN } from "../../../../components/common/i18n.js";
import { listen } from "./connection.js";
import { makeTimer } from "./timer.js";

/** @import { Create, RoomCountsPayload, Show } from "../../../../components/common/payloads.js" */
/** @import { Known } from "./types.js" */

/** @typedef {{ root: HTMLElement, students: HTMLElement, voted: HTMLElement, known: Known | null }} Wall */

/** @type {Create<Wall>} */
function create(root, gone) {
  /** @type {Wall} */
  const wall = { root, students: make("span"), voted: make("span"), known: null };
  const timer = makeTimer(gone);
  root.append(wall.students, wall.voted, timer.element);
  listen((known) => {
    wall.known = known;
    timer.hear(known);
    draw(wall);
  }, gone);
  return wall;
}

/** @param {Wall} wall */
function draw({ students, voted, known }) {
  const { counts, state } = known ?? {};
  students.textContent = counts ? sayN("{n} student", "{n} students", counts.students) : "";
  voted.hidden = !counts || !state?.question;
  voted.textContent = counts ? say("{n} of {m} answered", { n: counts.voted, m: counts.expected }) : "";
}

/** @type {Show<Wall, RoomCountsPayload>} */
function show(wall, { data: { payload } }) {
  wall.root.classList.toggle("gf-large", payload.large);
  draw(wall);
}

export const component = mount({ styles: "room", className: "gf-room-wall", create, show });
