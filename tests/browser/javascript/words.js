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

test("a table replaces the words and may order the values anew; without one, and what it lacks, is English", () => {
  speak({});
  equal([spoken(), say("Step {n} of {all}", { n: 2, all: 9 })], ["en", "Step 2 of 9"]);
  equal(say("{piece}, id {id}", { piece: "{id} $& {x}", id: 1 }), "{id} $& {x}, id 1");  // a value is no template
  speak({ lang: "de", words: { "{piece}, id {id}": "Nr. {id}: {piece}", Close: "Schließen" } });
  equal([say("{piece}, id {id}", { piece: "▁a", id: 7 }), say("Close"), say("Expand")], ["Nr. 7: ▁a", "Schließen", "Expand"]);
  speak({ lang: "de", words: { Expand: "Vergrößern" } });  // of another component
  equal([say("Close"), say("Expand")], ["Schließen", "Vergrößern"]);
  speak({});
  equal([say("Close"), say("Expand")], ["Close", "Expand"]);
});

test("a language has as many forms of a number as it needs, and what has none in the table is English", () => {
  const said = (/** @type {number[]} */ numbers) => numbers.map((n) => sayN("{n} piece", "{n} pieces", n));
  speak({});
  equal(said([0, 1, 2]), ["0 pieces", "1 piece", "2 pieces"]);
  equal(sayN("{n} piece of {all}", "{n} pieces of {all}", 1234, { all: "2,000" }), "1,234 pieces of 2,000");
  speak({ lang: "ru", words: { "{n} piece": ["{n} кусок", "{n} куска", "{n} кусков"] } });
  equal(said([1, 3, 5, 21]), ["1 кусок", "3 куска", "5 кусков", "21 кусок"]);
  speak({ lang: "fr", words: { "{n} piece": ["{n} morceau", "{n} morceaux"] } });
  equal(said([0, 1, 2]), ["0 morceau", "1 morceau", "2 morceaux"]);
  speak({ lang: "zh", words: { "{n} piece": ["{n} 个"] } });
  equal(said([1, 2]), ["1 个", "2 个"]);
  speak({ lang: "fr", words: {} });
  equal(said([0, 1]), ["0 pieces", "1 piece"]);
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
