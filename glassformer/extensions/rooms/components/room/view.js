// @ts-check
// The line that says in which room one is, on every page: whether the page follows the teacher, or how many are there.

import { make, makeButton } from "../../../../components/common/dom.js";
import { mount } from "../../../../components/common/mount.js";
import { say, sayN } from "../../../../components/common/i18n.js";
import { connect, keep, kept, listen, vote } from "./connection.js";
import { follow, hearDrawn, isUnderWay, stay } from "./following.js";
import { makeTimer } from "./timer.js";

/** @import { Component, RoomPayload } from "../../../../components/common/payloads.js" */
/** @import { Known, RoomState } from "./types.js" */

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
/** @type {RoomLine | null} the line that was drawn last: one that goes may go after the next has come */
let current = null;

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

class RoomLine {
  /** @param {HTMLElement} root @param {AbortSignal} gone */
  constructor(root, gone) {
    this.root = root;
    this.said = make("span", "gf-room-said", "", { role: "status" });
    this.ballot = make("span", "gf-room-ballot");
    this.timer = makeTimer(gone);
    this.button = makeButton("gf-room-button", "", "", () => this.toggle());
    /** @type {RoomPayload | null} */
    this.payload = null;
    this.tell = (/** @type {string} */ _name, /** @type {unknown} */ _value) => {};
    root.append(this.said, this.ballot, this.timer.element, this.button);
    listen((known) => this.hear(known), gone);
  }

  /** @param {Known} known */
  hear(known) {
    latest = known;
    this.timer.hear(known);
    this.draw();
    const { state, code } = known;
    if (this.payload && isGone(known)) this.redraw(JSON.stringify([code, known.standing]), 0);
    if (known.standing === "away" && !state) votes = "away";  // Python may not know the room, either
    if (!state || !this.payload) return;
    const move = `${code} ${state.moves} ${state.own}`;
    // A teacher's tab that Python does not know yet goes nowhere: the room comes to its address.
    if (this.payload.role === "student" && !kept(code, "secret") && move !== followed) {
      followed = move;
      if (!kept(code, "away")) follow(state, this.payload.lesson);
    }
    // The page is drawn again when the votes stand otherwise: shown, answered, or asked anew. A teacher's is when the
    // room can do nothing, and when it can again: the class then goes where its teacher is.
    const { question, round, taken, shown, answered, phase, spread } = state;
    const away = this.payload.role !== "student" && known.standing === "away";
    const now = JSON.stringify([question, round, taken, shown.length, answered, phase, away]);
    if (votes === "" && !question) votes = now;
    this.redraw(now, spread);
  }

  /**
   * Have Python draw the page again, once for each thing that it has to know.
   * @param {string} now @param {number} spread
   */
  redraw(now, spread) {
    if (votes === now) return;
    votes = now;
    clearTimeout(reporting.timer);
    const tell = () => (current ?? this).tell("votes", now);
    reporting.timer = setTimeout(() => atRest(reporting, tell), Math.random() * spread);
  }

  toggle() {
    const { payload } = this;
    if (!payload) return;
    if (isGone(latest)) return this.leave();
    const away = !kept(payload.code, "away");
    keep(payload.code, "away", away ? "1" : "");
    if (away) stay();
    else if (latest?.state) follow(latest.state, payload.lesson);
    this.draw();
  }

  /** Leave a room that has ended. What is told while the connection is being made anew is lost, so it is told again. */
  leave() {
    clearTimeout(reporting.timer);
    if (!this.root.isConnected || !isGone(latest)) return;
    this.tell("left", true);
    reporting.timer = setTimeout(() => this.leave(), LEAVE_MS);
  }

  draw() {
    const { payload, said, button } = this;
    if (!payload) return;
    const { code, role } = payload, known = latest?.code === code ? latest : null, isThere = known?.standing === "there";
    const follows = isThere && role === "student", away = Boolean(kept(code, "away"));
    said.textContent = isThere && role === "teacher"
      ? sayN("Room {code}: {n} student present.", "Room {code}: {n} students present.",
        known.counts?.students ?? 0, { code })
      : sayStanding(known, payload, away);
    // A projector has other things to say, as long as all is well.
    this.root.classList.toggle("gf-room-quiet", role === "viewer" && isThere);
    const gone = isGone(known) && role !== "viewer";
    button.hidden = !gone && (!follows || !known?.state?.page);
    button.textContent = gone ? say("Leave the room") : away ? say("Follow the teacher") : say("Look around by yourself");
    this.drawBallot(follows && known.state?.taken ? known.state : null);
  }

  /** Buttons to vote with on what the teacher asks aloud, or that the vote is in. @param {RoomState | null} open */
  drawBallot(open) {
    const { ballot, payload } = this;
    ballot.hidden = !open;
    ballot.replaceChildren();
    if (!open || !payload) return;
    if (kept(payload.code, "voted") === String(open.round)) ballot.append(say("Your vote is in."));
    else if (open.aloud) {
      ballot.append(say("Your answer:"));
      for (let choice = 0; choice < open.choices; choice += 1) {
        const letter = String.fromCharCode("A".charCodeAt(0) + choice);
        const label = say("Vote for {letter}", { letter });
        ballot.append(makeButton("gf-room-button gf-room-choice", letter, label, () => vote(open.round, choice),
          { "aria-label": label }));
      }
      if (open.few) ballot.append(say("Results are shown even when there are few votes, so other people may work out who chose what."));
    } else ballot.append(say("Your teacher asks for your vote."));
  }

  /** @param {Component<RoomPayload>} component */
  show({ data: { payload }, setTriggerValue }) {
    current = this;
    Object.assign(this, { payload, tell: setTriggerValue });
    const { code, role, secret, at } = payload;
    hearDrawn(at);
    if (secret) keep(code, "secret", secret);
    if (role !== "student" || handing.code !== code) {
      clearTimeout(handing.timer);
      Object.assign(handing, { code, tried: 0 });
    }
    if (!handing.tried) this.hand();
    this.begin();
    this.draw();
  }

  /**
   * Tell Python the secret that a teacher's tab has kept: after a reload, or where another server goes on, its session
   * is new, and knows nothing. It is told again until it knows.
   */
  hand() {
    const { code, role } = this.payload ?? {};
    const secret = code && role === "student" ? kept(code, "secret") : "";
    if (!code || !secret || current !== this || isGone(latest)) return;
    handing.tried += 1;
    if (handing.tried > HANDED) {
      keep(code, "secret", "");
      this.begin();
      if (latest) this.hear(latest);
      return;
    }
    atRest(handing, () => {
      this.tell("teacher", secret);
      handing.timer = setTimeout(() => (current ?? this).hand(), TEACHER_MS);
    });
  }

  begin() {
    if (!this.payload) return;
    const { code, role, choice } = this.payload;
    const student = role === "student" && !kept(code, "secret");
    connect({ code, student, counts: !student });
    const mine = JSON.stringify([code, choice]);
    if (choice && mine !== posted) vote(choice.round, choice.choice);
    posted = mine;
  }

  close() {
    if (current !== this) return;
    current = null;
    connect(null);
    document.documentElement.style.removeProperty(HEIGHT);
  }
}

export const component = mount({
  styles: "room", className: "gf-room", watched: (line) => [line.root],
  create: (root, gone) => new RoomLine(root, gone),
  show: (line, /** @type {Component<RoomPayload>} */ shown) => line.show(shown),
  // Nothing shall lie under the line (`shared/page_style.py`).
  resized: ({ root }) =>
    document.documentElement.style.setProperty(HEIGHT, `${Math.ceil(root.getBoundingClientRect().height)}px`),
  close: (line) => line.close(),
});
