// @ts-check

import { make } from "../../../glassformer/components/common/dom.js";
import { mount } from "../../../glassformer/components/common/mount.js";
import { tellStep } from "../../../glassformer/components/common/step.js";
import { say } from "../../../glassformer/components/common/i18n.js";
import { equal, test, wait } from "./harness.js";

/** @import { Spoken } from "../../../glassformer/components/common/payloads.js" */

/** A component that notes what happens to it, and a place for it. */
function staged() {
  /** @type {string[]} */
  const seen = [];
  const parent = make("div");
  document.body.append(parent);
  const component = mount({
    styles: "flow", className: "gf-test",
    create: (root) => {
      seen.push("create");
      root.append(say("Close"));
      return root;
    },
    show: () => { seen.push("show"); },
    stepped: () => { seen.push("stepped"); }, close: () => { seen.push("close"); },
  });
  const call = (/** @type {Spoken} */ payload) =>
    component({ data: { payload }, parentElement: parent, setStateValue: () => {}, setTriggerValue: () => {} });
  return { seen, parent, call };
}

test("a component is made once and shown at every call", () => {
  const { seen, parent, call } = staged();
  call({});
  call({});
  equal([seen, parent.children.length, parent.textContent], [["create", "show", "show"], 1, "Close"]);
  equal([parent.firstElementChild?.className, parent.querySelector("[data-theme]") !== null], ["gf-root gf-test", true]);
  parent.remove();
});

test("another language makes it anew, in its words", () => {
  const { seen, parent, call } = staged();
  call({});
  call({ lang: "de", words: { Close: "Schließen" } });
  equal([seen, parent.children.length], [["create", "show", "close", "create", "show"], 1]);
  equal(parent.textContent, "Schließen");
  call({});
  equal(parent.textContent, "Close");
  parent.remove();
});

test("it is taken down when it has left the page, and not before", async () => {
  const { seen, parent, call } = staged();
  const overtaken = call({});
  const last = call({});
  last();  // still on the page
  await wait();
  equal(seen.includes("close"), false);
  parent.remove();
  overtaken();
  await wait();
  equal(seen.includes("close"), false);
  last();
  await wait();
  equal([seen.at(-1), parent.children.length], ["close", 0]);
});

test("where the place has left the page before, nothing is made", async () => {
  const { seen, parent, call } = staged();
  parent.remove();
  call({})();
  await wait();
  equal([seen, parent.children.length], [[], 0]);
  document.body.append(parent);
  call({});
  equal(seen, ["create", "show"]);
  parent.remove();
});

test("it hears of steps as long as it lives", async () => {
  const { seen, parent, call } = staged();
  const end = call({});
  tellStep(3);
  tellStep(3);
  parent.remove();
  end();
  await wait();
  tellStep(null);
  equal(seen, ["create", "show", "stepped", "close"]);
});

test("its styles reach where it lives, once", () => {
  const { parent, call } = staged();
  const before = document.adoptedStyleSheets.length;
  call({});
  const again = staged();
  again.call({});
  equal(document.adoptedStyleSheets.length - before <= 2, true);
  equal(getComputedStyle(/** @type {Element} */ (parent.firstElementChild)).getPropertyValue("--gf-source"), "#0072b2");
  parent.remove();
  again.parent.remove();
});
