// @ts-check
// What a browser page knows of its room, by what the server tells it.

import { connect, keep, kept, listen } from "../../../glassformer/extensions/rooms/components/room/connection.js";
import { equal, test } from "./harness.js";

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
