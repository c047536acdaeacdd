// @ts-check
// What a browser page knows of its room, and where a student's page goes when the teacher has gone somewhere.

import { connect, keep, kept, listen } from "../../../glassformer/extensions/rooms/components/room/connection.js";
import { follow, hearDrawn, stay, stepThere, whereTheTeacherIs } from "../../../glassformer/extensions/rooms/components/room/following.js";
import { comesTo, equal, test, wait } from "./harness.js";

/** @import { RoomState } from "../../../glassformer/extensions/rooms/components/room/types.js" */

const BASE = "https://glass.example/app/";

/**
 * @param {string} page
 * @param {string} query
 * @returns {RoomState}
 */
const at = (page, query, own = false) => ({
  moves: 1, page, query, spread: 0, question: "", choices: 0, aloud: false, round: 0, taken: false, shown: [],
  answered: false, own, few: false, phase: "", left: 0, at: 0,
});

/**
 * Where somebody goes, as text.
 * @param {RoomState} state
 * @param {string} here
 * @param {boolean} inLesson
 */
const there = (state, here, inLesson) =>
  decodeURIComponent(whereTheTeacherIs(state, BASE + here, inLesson).href.slice(BASE.length));

/** Where a student goes, and why. @type {[why: string, teacher: RoomState, here: string, inLesson: boolean, there: string][]} */
const GOES = [
  ["all look at the same, in their own language", at("masks", "src=a&mask=causal"),
    "step?room=K7MPR4&lang=zh&src=b&layer=2", false, "masks?src=a&mask=causal&room=K7MPR4&lang=zh"],
  ["an own sentence stays, and not what belongs to the teacher's run",
    at("attention", "src=a&how=beam&beam=4&forced=5.7&do=x&layer=2", true),
    "step?src=b&room=K7MPR4&seed=3", false, "attention?layer=2&src=b&seed=3&room=K7MPR4"],
  ["a step of a lesson finds in an own sentence what it is about", at("step", "src=a&step=7&layer=2&lesson=one-piece.3", true),
    "step?src=b&how=beam&room=K7MPR4", false, "step?lesson=one-piece.3&src=b&room=K7MPR4"],
  ["from a step on a model of its own one comes back to an own sentence", at("step", "src=a&lesson=looking.3&mine=src%3Da", true),
    "attention?model=reverse&mine=src%3Db&lesson=looking.2", false, "step?lesson=looking.3&model=reverse&mine=src=b"],
  ["a lesson is left with the teacher", at("step", "src=a"), "step?src=a&lesson=one-piece.3", false, "step?src=a&lesson="],
  ["whether the address says so or not", at("step", "src=a"), "step?src=a", true, "step?src=a&lesson="],
  ["or for another one", at("step", "src=a&lesson=masks.1"), "step?lesson=one-piece.3", true, "step?src=a&lesson=masks.1"],
  ["what is covered is covered", at("step", "src=a&cover=candidates"), "step?src=a", false, "step?src=a&cover=candidates"],
  ["what is shown again is shown", at("step", "src=a"), "step?src=a&cover=candidates", false, "step?src=a&cover="],
  ["or something else covered", at("step", "src=a&cover=entropy"), "step?src=a&cover=candidates", false, "step?src=a&cover=entropy"],
];

test("a student goes where the teacher is, with what is their own", () => {
  equal(GOES.map(([why, teacher, here, inLesson]) => [why, there(teacher, here, inLesson)]), GOES.map(([why, , , , to]) => [why, to]));
});

test("a step of the same run is no other address", () => {
  const here = new URL("step?src=a&rev=1&room=K7MPR4", BASE).href;
  equal(stepThere(new URL("step?src=a&step=4&room=K7MPR4", BASE), here), 3);
  equal(stepThere(new URL("step?src=a&room=K7MPR4", BASE), here), 0);
  equal(stepThere(new URL("step?src=b&step=4", BASE), here), null);
  equal(stepThere(new URL("masks?src=a&step=4", BASE), here), null);
  equal(stepThere(new URL("step?src=a&step=4&lesson=one-piece.1", BASE), here), null);
  equal(stepThere(new URL("step?src=a&step=4&lesson=&cover=", BASE), here), 3);
});

test("who is put back where they were goes again, until they are where the teacher is", async () => {
  const home = location.href, app = document.createElement("div");
  Object.assign(app.dataset, { testid: "stApp", testScriptState: "notRunning", testConnectionState: "CONNECTED" });
  document.body.append(app);
  let gone = 0;
  const streamlit = () => {
    gone += 1;
    if (gone > 2) hearDrawn(location.href);
    else setTimeout(() => history.replaceState({}, "", home), 50);  // a run that had begun says its own address
  };
  addEventListener("popstate", streamlit);
  try {
    follow(at("masks", "src=a"), false);
    await comesTo(() => gone, 3);
    await wait(500);
    equal([gone, location.href], [3, new URL("masks?src=a", home).href]);
  } finally {
    stay();
    removeEventListener("popstate", streamlit);
    app.remove();
    history.replaceState({}, "", home);
  }
});

/** Stands for the browser's own: what the server tells is told by hand. */
class Source extends EventTarget {
  /** @type {Source[]} */
  static opened = [];

  constructor() {
    super();
    Source.opened.push(this);
  }

  /** @param {string} kind @param {object} said */
  tell(kind, said) {
    this.dispatchEvent(new MessageEvent(kind, { data: JSON.stringify(said) }));
  }

  close() {}
}

test("a frame of another site, which a browser gives no storage, remembers what is kept while it is there", () => {
  const before = /** @type {PropertyDescriptor} */ (Object.getOwnPropertyDescriptor(window, "sessionStorage"));
  Object.defineProperty(window, "sessionStorage", {
    configurable: true,
    get() { throw new DOMException("Access is denied for this document.", "SecurityError"); },
  });
  try {
    keep("AAAAAA", "token", "one");
    equal([kept("AAAAAA", "token"), kept("BBBBBB", "token")], ["one", ""]);
    keep("AAAAAA", "token", "");
    equal(kept("AAAAAA", "token"), "");
  } finally {
    Object.defineProperty(window, "sessionStorage", before);
  }
});

test("a room that has ended is told from one whose server began anew, and from one that never was", () => {
  const before = window.EventSource, gone = new AbortController();
  Object.assign(window, { EventSource: Source });
  /** @type {string[]} */
  const standings = [];
  listen(({ standing }) => { standings.push(standing); }, gone.signal);
  try {
    for (const [code, hello, ended] of [["AAAAAA", "1", "1"], ["BBBBBB", "1", "2"], ["CCCCCC", "", "2"]]) {
      connect({ code, student: false, counts: false });
      const source = Source.opened[Source.opened.length - 1];
      if (hello) source.tell("hello", { boot: hello });
      equal(kept(code, "boot"), hello);
      source.tell("ended", { boot: ended });
    }
    equal(standings, ["there", "ended", "there", "restarted", "none"]);
  } finally {
    connect(null);
    gone.abort();
    sessionStorage.clear();
    Object.assign(window, { EventSource: before });
  }
});
