// @ts-check
// The line that says in which room one is, on every page: whether the page follows the teacher, or how many are there.

import { make, makeButton } from "../../../../components/common/dom.js";
import { mount } from "../../../../components/common/mount.js";
import { say, sayN } from "../../../../components/common/i18n.js";
import { connect, keep, kept, listen, vote } from "./connection.js";
import { follow, hearDrawn, isUnderWay, stay } from "./following.js";
import { makeTimer } from "./timer.js";

/** @import { Create, RoomPayload, Show } from "../../../../components/common/payloads.js" */
/** @import { Known, RoomState, View } from "./types.js" */

const TEACHER_MS = 3000;
const HANDED = 20;
const LEAVE_MS = 2000;
const LOOK_MS = 200;
const LOOKS = 2;  // between two runs of the script there is a moment of rest
const HEIGHT = "--gf-room";
const reporting = { timer: 0 };
const handing = { timer: 0, code: "", tried: 0 };  // Python is being told that this tab is a teacher's
let followed = "";  // of the teacher's moves, the last that this page heard of
let votes = "";  // how the votes stood that Python has drawn, or that the room has ended
let posted = "";  // the vote that Python was last told of
/** @type {Known | null} */
let latest = null;
/** @type {View | null} the line that was drawn last: one that goes may go after the next has come */
let current = null;

/** @type {Create<View>} */
function create(root, gone) {
  const view = /** @type {View} */ ({
    root, said: make("span", "gf-room-said", "", { role: "status" }), ballot: make("span", "gf-room-ballot"),
    timer: makeTimer(gone), payload: null,
  });
  view.button = makeButton("gf-room-button", "", "", () => toggle(view));
  root.append(view.said, view.ballot, view.timer.element, view.button);
  listen((known) => hear(view, known), gone);
  return view;
}

/** @param {View} view @param {Known} known */
function hear(view, known) {
  latest = known;
  view.timer.hear(known);
  draw(view);
  const { state, code } = known;
  if (view.payload && isGone(known)) redraw(view, JSON.stringify([code, known.standing]), 0);
  if (known.standing === "away" && !state) votes = "away";  // Python may not know the room, either
  if (!state || !view.payload) return;
  const move = `${code} ${state.moves} ${state.own}`;
  // A teacher's tab that Python does not know yet goes nowhere: the room comes to its address.
  if (view.payload.role === "student" && !kept(code, "secret") && move !== followed) {
    followed = move;
    if (!kept(code, "away")) follow(state, view.payload.lesson);
  }
  tellPython(view, state, view.payload.role !== "student" && known.standing === "away");
}

/**
 * Have the page drawn again when the votes stand otherwise: shown, answered, or asked anew. A teacher's is when the
 * room can do nothing, and when it can again: the class then goes where its teacher is.
 * @param {View} view @param {RoomState} state @param {boolean} away
 */
function tellPython(view, { question, round, taken, shown, answered, phase, spread }, away) {
  const now = JSON.stringify([question, round, taken, shown.length, answered, phase, away]);
  if (votes === "" && !question) votes = now;
  redraw(view, now, spread);
}

/**
 * Have Python draw the page again, once for each thing that it has to know.
 * @param {View} view @param {string} now @param {number} spread
 */
function redraw(view, now, spread) {
  if (votes === now) return;
  votes = now;
  clearTimeout(reporting.timer);
  reporting.timer = setTimeout(() => atRest(reporting, () => (current ?? view).report(now)), Math.random() * spread);
}

/**
 * Do something once the page has been drawn: what is told to Python before comes with controls as they were, and
 * would be taken for the reader's.
 * @param {{ timer: number }} waiting
 * @param {() => void} act
 * @param {number} [rested] how often it has been found at rest
 */
function atRest(waiting, act, rested = 0) {
  if (rested >= LOOKS) act();
  else waiting.timer = setTimeout(() => atRest(waiting, act, isUnderWay() ? 0 : rested + 1), LOOK_MS);
}

/** Whether a room was there, and is no more. @param {Known | null} known */
const isGone = (known) => known?.standing === "ended" || known?.standing === "restarted" || known?.standing === "none";

/** @param {View} view */
function toggle(view) {
  const { payload } = view;
  if (!payload) return;
  if (isGone(latest)) {
    leave(view);
    return;
  }
  const away = !kept(payload.code, "away");
  keep(payload.code, "away", away ? "1" : "");
  if (away) stay();
  else if (latest?.state) follow(latest.state, payload.lesson);
  draw(view);
}

/**
 * Leave a room that has ended. What is told while the connection is being made anew is lost, so it is told again.
 * @param {View} view
 */
function leave(view) {
  clearTimeout(reporting.timer);
  if (!view.root.isConnected || !isGone(latest)) return;
  view.leave();
  reporting.timer = setTimeout(() => leave(view), LEAVE_MS);
}

/** @param {View} view */
function draw(view) {
  const { payload, said, button } = view;
  if (!payload) return;
  const known = latest?.code === payload.code ? latest : null;
  const there = known?.standing === "there" && payload.role === "student";
  const away = Boolean(kept(payload.code, "away"));
  const { code } = payload;
  said.textContent = known?.standing === "there" && payload.role === "teacher"
    ? sayN("Room {code}: {n} student present.", "Room {code}: {n} students present.",
      known.counts?.students ?? 0, { code })
    : sayStanding(known, payload, away);
  // A projector has other things to say, as long as all is well.
  view.root.classList.toggle("gf-room-quiet", payload.role === "viewer" && known?.standing === "there");
  const gone = isGone(known) && payload.role !== "viewer";
  button.hidden = !gone && (!there || !known?.state?.page);
  button.textContent = gone ? say("Leave the room") : away ? say("Follow the teacher") : say("Look around by yourself");
  drawBallot(view, there ? known?.state ?? null : null);
}

/**
 * Buttons to vote with on what the teacher asks aloud, or that the vote is in.
 * @param {View} view @param {RoomState | null} state
 */
function drawBallot({ ballot, payload }, state) {
  const open = state?.taken ? state : null;
  ballot.hidden = !open;
  ballot.replaceChildren();
  if (!open || !payload) return;
  if (kept(payload.code, "voted") === String(open.round)) ballot.append(say("Your vote is in."));
  else if (open.aloud) {
    for (let choice = 0; choice < open.choices; choice += 1) {
      const letter = String.fromCharCode("A".charCodeAt(0) + choice);
      const label = say("Vote for {letter}", { letter });
      ballot.append(makeButton("gf-room-button gf-room-choice", letter, label, () => vote(open.round, choice),
        { "aria-label": label }));
    }
    if (open.few) ballot.append(say("Results are shown even when there are few votes, so other people may work out who chose what."));
  } else ballot.append(say("Your teacher asks for your vote."));
}

/** @param {Known | null} known @param {{ code: string }} of @param {boolean} away */
function sayStanding(known, { code }, away) {
  switch (known?.standing) {
    case "restarted": return say("The room has ended because the server restarted.");
    case "ended": return say("The room has ended.");
    case "none": return say("There is no room {code}.", { code });
    case "foreign": return say(
      "Room {code}: the server does not recognise the address of this page as its own. A proxy in front of the "
      + "server must pass on the Host header.", { code });
    case "locked": return say("Room {code} is locked. Ask your teacher to unlock it.", { code });
    case "busy": return say("Room {code}: many people are joining from your network. Please wait.", { code });
    case "full": return say("Room {code} is full.", { code });
    case "lost": return say("Room {code}: connection lost; reconnecting.", { code });
    case "away": return say(
      "Room {code}: the server's store of rooms at {host} does not answer; the room goes on by itself once it does.",
      { code, host: known.away });
    case "there": break;
    default: return say("Room {code}", { code });
  }
  if (!known?.state?.page) return say("Room {code}: the teacher has not opened a page yet.", { code });
  if (away) return say("Room {code}: you are looking around by yourself.", { code });
  return say("Room {code}: your page follows the teacher.", { code });
}

/** @type {Show<View, RoomPayload>} */
function show(view, { data: { payload }, setTriggerValue }) {
  current = view;
  view.payload = payload;
  view.report = (version) => setTriggerValue("votes", version);
  view.leave = () => setTriggerValue("left", true);
  view.teach = (secret) => setTriggerValue("teacher", secret);
  const { code, role, secret, at } = payload;
  hearDrawn(at);
  if (secret) keep(code, "secret", secret);
  if (role !== "student" || handing.code !== code) {
    clearTimeout(handing.timer);
    Object.assign(handing, { code, tried: 0 });
  }
  if (!handing.tried) hand(view);
  begin(view);
  draw(view);
}

/**
 * Tell Python the secret that a teacher's tab has kept: after a reload, or where another server goes on, its session is
 * new, and knows nothing. It is told again until it knows.
 * @param {View} view
 */
function hand(view) {
  const { code, role } = view.payload ?? {};
  const secret = code && role === "student" ? kept(code, "secret") : "";
  if (!code || !secret || current !== view || isGone(latest)) return;
  handing.tried += 1;
  if (handing.tried > HANDED) {
    keep(code, "secret", "");
    begin(view);
    if (latest) hear(view, latest);
    return;
  }
  atRest(handing, () => {
    view.teach(secret);
    handing.timer = setTimeout(() => hand(current ?? view), TEACHER_MS);
  });
}

/** @param {View} view */
function begin({ payload }) {
  if (!payload) return;
  const { code, role, choice } = payload;
  const student = role === "student" && !kept(code, "secret");
  connect({ code, student, counts: !student });
  const mine = JSON.stringify([code, choice]);
  if (choice && mine !== posted) vote(choice.round, choice.choice);
  posted = mine;
}

export const component = mount({
  styles: "room", className: "gf-room", create, show, watched: (view) => [view.root],
  // Nothing shall lie under the line (`shared/page_style.py`).
  resized: ({ root }) =>
    document.documentElement.style.setProperty(HEIGHT, `${Math.ceil(root.getBoundingClientRect().height)}px`),
  close: (view) => {
    if (current !== view) return;
    current = null;
    connect(null);
    document.documentElement.style.removeProperty(HEIGHT);
  },
});
