// @ts-check
// The line that says in which room one is, on every page: whether the page follows the teacher, or how many are there.

import { make, makeButton } from "../common/dom.js";
import { mount } from "../common/mount.js";
import { say, sayN } from "../common/words.js";
import { connect, keep, kept, listen } from "./connection.js";
import { follow, stay } from "./following.js";

/** @import { Component, RoomPayload } from "../common/payloads.js" */
/** @import { Known, View } from "./types.js" */

const TEACHER_MS = 3000;
let followed = "";  // of the teacher's moves, the last that this page heard of

/** @param {HTMLElement} root */
function create(root) {
  const view = /** @type {View} */ ({ said: make("span", "gf-room-said"), payload: null });
  view.said.setAttribute("role", "status");
  view.button = makeButton("gf-room-button", "", "", () => toggle(view));
  root.append(view.said, view.button);
  view.forget = listen((known) => hear(view, known));
  return view;
}

/** @type {Known | null} */
let latest = null;

/**
 * @param {View} view
 * @param {Known} known
 */
function hear(view, known) {
  latest = known;
  draw(view);
  const { state, code } = known;
  const move = `${code} ${state?.moves}`;
  if (!state || view.payload?.role !== "student" || move === followed) return;
  followed = move;
  if (!kept(code, "away")) follow(state);
}

/** @param {View} view */
function toggle(view) {
  const { payload } = view;
  if (!payload) return;
  const away = !kept(payload.code, "away");
  keep(payload.code, "away", away ? "1" : "");
  if (away) stay();
  else if (latest?.state) follow(latest.state);
  draw(view);
}

/** @param {View} view */
function draw(view) {
  const { payload, said, button } = view;
  if (!payload) return;
  const known = latest?.code === payload.code ? latest : null;
  const there = known?.standing === "there" && payload.role === "student";
  const away = Boolean(kept(payload.code, "away"));
  said.textContent = known && payload.role === "teacher" ? sayTeacher(known) : sayStanding(known, payload, away);
  button.hidden = !there || !known?.state?.page;
  button.textContent = away ? say("Follow the teacher") : say("Look around by yourself");
}

/** @param {Known} known */
function sayTeacher(known) {
  if (known.standing !== "there") return sayStanding(known, { code: known.code, role: "teacher" }, false);
  const n = known.counts?.students ?? 0;
  return sayN("Room {code}: {n} student is here.", "Room {code}: {n} students are here.", n, { code: known.code });
}

/**
 * @param {Known | null} known
 * @param {Pick<RoomPayload, "code" | "role">} payload
 * @param {boolean} away
 */
function sayStanding(known, { code }, away) {
  switch (known?.standing) {
    case "restarted": return say("The room has ended: the server was started anew.");
    case "ended": return say("The room has ended.");
    case "none": return say("There is no room {code}.", { code });
    case "full": return say("Room {code} is full.", { code });
    case "lost": return say("Room {code}: the connection is lost, and tried again.", { code });
    case "there": break;
    default: return say("Room {code}", { code });
  }
  if (!known?.state?.page) return say("Room {code}: the teacher has opened no page yet.", { code });
  if (away) return say("Room {code}: you look around by yourself.", { code });
  return say("Room {code}: your page follows the teacher.", { code });
}

/**
 * @param {View} view
 * @param {Component<RoomPayload>} component
 */
function show(view, { data: { payload }, setTriggerValue }) {
  view.payload = payload;
  const { code, role, secret } = payload;
  if (secret) keep(code, "secret", secret);
  const unheard = role === "student" && kept(code, "secret");
  if (unheard) {
    // After a reload: the teacher's tab knows what the new session does not.
    setTriggerValue("teacher", unheard);
    keep(code, "secret", "");
    setTimeout(() => begin(view), TEACHER_MS);  // unless it is known by then
  } else begin(view);
  draw(view);
}

/** @param {View} view */
function begin({ payload }) {
  if (!payload) return;
  const { code, role } = payload;
  connect({ code, student: role === "student", counts: role !== "student" });
}

export const component = mount({
  styles: "room", className: "gf-room", create, show, watched: () => [], resized: () => {},
  close: (view) => {
    view.forget();
    connect(null);
  },
});
