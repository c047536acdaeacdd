// @ts-check

import { make } from "../../../glassformer/components/common/dom.js";
import { asNumber, inARow, say, sayN, sayNodes, speak, spoken } from "../../../glassformer/components/common/i18n.js";
import { equal, test } from "./harness.js";

/** @param {(string | Node)[]} parts */
function text(parts) {
  const line = make("p");
  line.append(...parts);
  return line.textContent;
}

test("without words a sentence is English", () => {
  speak({});
  equal([spoken(), say("Step {n} of {all}", { n: 2, all: 9 })], ["en", "Step 2 of 9"]);
});

test("a table replaces the words and may order the values anew", () => {
  speak({ lang: "de", words: { "{piece}, id {id}": "Nr. {id}: {piece}", Close: "Schließen" } });
  equal([say("{piece}, id {id}", { piece: "▁a", id: 7 }), say("Close")], ["Nr. 7: ▁a", "Schließen"]);
});

test("what a table lacks stays English", () => {
  speak({ lang: "de", words: { Close: "Schließen" } });
  equal(say("Expand"), "Expand");
});

test("words of several components come together and go with their language", () => {
  speak({ lang: "de", words: { Close: "Schließen" } });
  speak({ lang: "de", words: { Expand: "Vergrößern" } });
  equal([say("Close"), say("Expand")], ["Schließen", "Vergrößern"]);
  speak({});
  equal([say("Close"), say("Expand")], ["Close", "Expand"]);
});

test("a value is no template", () => {
  speak({});
  equal(say("{piece}, id {id}", { piece: "{id} $& {x}", id: 1 }), "{id} $& {x}, id 1");
});

test("English has two forms of a number", () => {
  speak({});
  equal([0, 1, 2].map((n) => sayN("{n} piece", "{n} pieces", n)), ["0 pieces", "1 piece", "2 pieces"]);
  equal(sayN("{n} piece of {all}", "{n} pieces of {all}", 1234, { all: "2,000" }), "1,234 pieces of 2,000");
});

test("a language has as many forms as it needs", () => {
  speak({ lang: "ru", words: { "{n} piece": ["{n} кусок", "{n} куска", "{n} кусков"] } });
  equal([1, 3, 5, 21].map((n) => sayN("{n} piece", "{n} pieces", n)), ["1 кусок", "3 куска", "5 кусков", "21 кусок"]);
  speak({ lang: "fr", words: { "{n} piece": ["{n} morceau", "{n} morceaux"] } });
  equal([0, 1, 2].map((n) => sayN("{n} piece", "{n} pieces", n)), ["0 morceau", "1 morceau", "2 morceaux"]);
  speak({ lang: "zh", words: { "{n} piece": ["{n} 个"] } });
  equal([1, 2].map((n) => sayN("{n} piece", "{n} pieces", n)), ["1 个", "2 个"]);
});

test("a number without a form in the table is English", () => {
  speak({ lang: "fr", words: {} });
  equal([0, 1].map((n) => sayN("{n} piece", "{n} pieces", n)), ["0 pieces", "1 piece"]);
});

test("a number is written alike in English and in Chinese", () => {
  for (const lang of ["en", "zh-CN"]) {
    speak({ lang });
    equal([asNumber(1234.5), asNumber(12345678)], ["1,234.5", "12,345,678"]);
  }
  speak({});
});

test("sentences in a row have a space between them, in Chinese none", () => {
  speak({});
  equal(inARow(["One.", "Two."]), "One. Two.");
  speak({ lang: "zh-CN" });
  equal(inARow(["一。", "二。"]), "一。二。");
  speak({});
});

test("elements stand where their names do, and text stays text", () => {
  speak({});
  const parts = sayNodes("{query} looks at {key}", { query: make("b", "", "<i>"), key: make("b", "", "y") });
  equal([text(parts), parts.length], ["<i> looks at y", 3]);
  speak({ lang: "de", words: { "{query} looks at {key}": "auf {key} schaut {query}" } });
  equal(text(sayNodes("{query} looks at {key}", { query: "x", key: "y" })), "auf y schaut x");
  speak({});
});
