// @ts-check
// The one connection of a browser page to its room: joins it, listens to its events, and comes again when it is lost.
//
// A student's token lives in this tab's session storage: with the tab it is gone, and after a reload it is the same.

/** @import { Counts, Known, RoomState, Standing } from "./types.js" */

const AGAIN_MS = 3000;  // and up to as much more, so that a class does not come at one moment
const TRIED = 5;
const KEPT = "glassformer-room-";

/** @typedef {"token" | "boot" | "secret" | "away" | "voted"} Kept */
/** @typedef {{ code: string, student: boolean, counts: boolean }} Wanted */

/** @typedef {{ wanted: Wanted, known: Known, source: EventSource | null, again: number }} Connection */

/** @type {Connection | null} */
let connection = null;
/** @type {Set<(known: Known) => void>} */
const listeners = new Set();

/**
 * An address of the room's.
 * @param {string} code @param {string} what
 */
function address(code, what) {
  return new URL(`class/${code}/${what}`, location.href.replace(/\/+(?=[?#]|$)/, ""));
}

/** @type {Map<string, string>} */
const memory = new Map();

/**
 * Where this tab keeps things: a frame in a page of another site may have no storage, and keeps them while it is there.
 * @returns {Pick<Storage, "getItem" | "setItem" | "removeItem">}
 */
export function storage() {
  try {
    return sessionStorage;
  } catch {
    return {
      getItem: (key) => memory.get(key) ?? null,
      setItem: (key, value) => void memory.set(key, value),
      removeItem: (key) => void memory.delete(key),
    };
  }
}

/**
 * What this tab keeps of a room.
 * @param {string} code @param {Kept} what
 */
export function kept(code, what) {
  return storage().getItem(`${KEPT}${code}-${what}`) ?? "";
}

/**
 * Have this tab keep something of a room; nothing removes it.
 * @param {string} code @param {Kept} what @param {string} is
 */
export function keep(code, what, is) {
  if (is) storage().setItem(`${KEPT}${code}-${what}`, is);
  else storage().removeItem(`${KEPT}${code}-${what}`);
}

/**
 * Hear of the room that the page is in, now and at every change, until the signal comes.
 * @param {(known: Known) => void} hear @param {AbortSignal} gone
 */
export function listen(hear, gone) {
  listeners.add(hear);
  gone.addEventListener("abort", () => listeners.delete(hear));
  if (connection) hear(connection.known);
}

/** Be in a room, and in no other; nothing happens where it is so. @param {Wanted | null} wanted */
export function connect(wanted) {
  if (JSON.stringify(wanted) === JSON.stringify(connection?.wanted ?? null)) return;
  connection?.source?.close();
  clearTimeout(connection?.again);
  connection = null;
  if (!wanted) return;
  const known = /** @type {Known} */ ({ code: wanted.code, standing: "joining", state: null, counts: null, until: 0, away: "" });
  connection = { wanted, known, source: null, again: 0 };
  open(connection);
}

/** @param {Connection} of @param {Partial<Known>} news */
function tell(of, news) {
  if (of !== connection) return;
  of.known = { ...of.known, ...news };
  for (const hear of listeners) hear(of.known);
}

/**
 * Vote in the room that the page is in, as often as it takes; tells whether it is counted.
 * @param {number} round @param {number} choice
 */
export async function vote(round, choice) {
  const of = connection;
  for (let tried = 0; of && of === connection && tried < TRIED;) {
    const { code } = of.wanted;
    const answer = await post(code, "vote", { token: kept(code, "token"), round, choice });
    if (answer?.status === 204 || answer?.said.why === "voted") {
      keep(code, "voted", String(round));
      tell(of, {});
      return true;
    }
    const away = answer?.said.why === "away";  // for as long as it takes
    if (answer && answer.status !== 429 && !away) return false;
    tried += away ? 0 : 1;
    await new Promise((resolve) => { setTimeout(resolve, AGAIN_MS * (0.5 + Math.random())); });
  }
  return false;
}

/** @param {Connection} of */
function later(of) {
  of.source?.close();
  of.source = null;
  clearTimeout(of.again);
  of.again = setTimeout(() => { if (of === connection) open(of); }, AGAIN_MS * (1 + Math.random()));
}

/**
 * The room is there no more, or never was.
 * @param {Connection} of
 * @param {string} boot of the server that says so
 */
function over(of, boot) {
  of.source?.close();
  const before = kept(of.wanted.code, "boot");
  tell(of, { standing: !before ? "none" : before === boot ? "ended" : "restarted", state: null, counts: null });
}

/** @param {Connection} of */
async function open(of) {
  const { code, student, counts } = of.wanted;
  if (student && !kept(code, "token") && !(await joined(of))) return;
  if (of !== connection) return;
  const asked = address(code, "events");
  if (student) asked.searchParams.set("token", kept(code, "token"));
  if (counts) asked.searchParams.set("counts", "1");
  const source = of.source = new EventSource(asked);
  /** @param {string} kind @param {(said: any) => void} take */
  const on = (kind, take) => source.addEventListener(kind, (event) => take(JSON.parse(event.data)));
  on("hello", ({ boot }) => {
    keep(code, "boot", boot);
    tell(of, { standing: "there" });
  });
  on("room", (/** @type {RoomState} */ state) => tell(of, { state, until: performance.now() + state.left * 1000 }));
  on("counts", (/** @type {Counts} */ told) => tell(of, { counts: told }));
  on("ended", ({ boot }) => over(of, boot));
  on("away", ({ away }) => tell(of, { standing: "away", away }));
  on("refused", ({ why, away }) => refused(of, why, away));
  source.addEventListener("error", () => {
    tell(of, { standing: "lost" });
    if (source.readyState === EventSource.CLOSED) later(of);
  });
}

/** @param {Connection} of @param {string} why @param {string} [away] */
function refused(of, why, away) {
  if (why === "no-token") keep(of.wanted.code, "token", "");  // not seen for long, and dropped for another
  else if (away) tell(of, { standing: "away", away });
  else tell(of, { standing: "full" });
  later(of);
}

/** Ask for a token; whether there is one. @param {Connection} of */
async function joined(of) {
  const { code } = of.wanted;
  const answer = await post(code, "join", {});
  if (answer?.status === 200) {
    keep(code, "token", answer.said.token);
    return true;
  }
  if (answer?.status === 404) over(of, answer.said.boot);
  else if (answer?.said.why === "another-origin") tell(of, { standing: "foreign" });  // a reload tries again
  else {
    const away = answer?.said.away;
    const why = ({ full: "full", locked: "locked", "too-often": "busy" })[/** @type {string} */ (answer?.said.why)];
    tell(of, away ? { standing: "away", away } : { standing: /** @type {Standing} */ (why ?? "lost") });
    later(of);
  }
  return false;
}

/**
 * Post something to a room; null if nothing came back.
 * @param {string} code
 * @param {"join" | "vote"} what
 * @param {object} said
 * @returns {Promise<{ status: number, said: any } | null>}
 */
async function post(code, what, said) {
  try {
    const headers = { "Content-Type": "application/json" };
    const answer = await fetch(address(code, what), { method: "POST", headers, body: JSON.stringify(said) });
    return { status: answer.status, said: answer.status === 204 ? {} : await answer.json() };
  } catch {
    return null;
  }
}
