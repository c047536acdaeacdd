// @ts-check

import { eachText, finder, formsOf } from "../../../glassformer/components/glossary/matching.js";
import { make } from "../../../glassformer/components/common/dom.js";
import { equal, test } from "./harness.js";

const term = (/** @type {string} */ name, /** @type {object} */ more = {}) => ({ id: name, name, text: `${name}.`, ...more });

const TERMS = [
  term("piece"), term("vocabulary"), term("attention"), term("self-attention"), term("head"), term("key"), term("query"),
  term("value", { among: "key|query" }), term("matrix", { also: "matrices" }), term("batch"), term("NaN"),
  term("output projection (W_O)"), term("end mark", { also: "</s>" }),
];

/**
 * What is found in a text: ids, and the words that they stand for.
 * @param {string} text
 * @param {import("../../../glassformer/components/common/payloads.js").GlossaryTerm[]} [terms]
 */
function found(text, terms = TERMS) {
  return finder(terms, "arrow keys|output layer")(text, () => text).map(({ id, start, end }) => [id, text.slice(start, end)]);
}

/** Why something is found in a text, or nothing. @type {Record<string, [text: string, found: string[][]][]>} */
const FOUND = {
  "a term is found in either number and case": [
    ["Pieces of both vocabularies, in batches", [["piece", "Pieces"], ["vocabulary", "vocabularies"], ["batch", "batches"]]],
    ["Two matrices and a NaN", [["matrix", "matrices"], ["NaN", "NaN"]]],
  ],
  "a term is a whole word": [["A headline, a masterpiece, ▁head, two-headed, key_bias, keyed, piece-wise", []]],
  "a word of a name in code is no term": [
    ["head.weight, torch.nn.Matrix, batch.query.key; the query. A key", [["query", "query"], ["key", "key"]]],
  ],
  "the longest term comes first": [
    ["Self-attention and attention", [["self-attention", "Self-attention"], ["attention", "attention"]]],
  ],
  "what stands in brackets is another name": [
    ["through W_O, until </s>", [["output projection (W_O)", "W_O"], ["end mark", "</s>"]]],
  ],
  "an everyday word is a term only in company": [
    ["The largest value is 3.", []], ["Each key has a value.", [["key", "key"], ["value", "value"]]],
  ],
  "a word may mean something else in a phrase": [["The arrow keys move; a key is found.", [["key", "key"]]]],
  "what somebody typed is data": [["“the key” reads ‘piece’, the head", [["head", "head"]]]],
};

test("a term is found as a word that stands for it", () => {
  for (const [why, texts] of Object.entries(FOUND)) {
    equal([why, ...texts.map(([text]) => found(text))], [why, ...texts.map(([, there]) => there)]);
  }
  equal(formsOf(term("output projection (W_O)")), ["output projection", "w_o"]);
});

test("chinese terms need no edges, but a word that holds a term's character is none", () => {
  const long = [term("query", { name: "查询" }), term("logit", { name: "logit（未归一化得分）" })];
  equal(found("每个查询的logit相加", long), [["query", "查询"], ["logit", "logit"]]);
  const terms = [term("key", { name: "键" }), term("head", { name: "头" }), term("layer", { name: "层" })];
  const here = (/** @type {string} */ text) => finder(terms, "键盘|方向键|开头|输出层")(text, () => text).map(({ start }) => start);
  equal(here("键盘的方向键、句子开头、输出层"), []);
  equal(here("开头的头，输出层的层，键盘上的键"), [3, 9, 15]);
});

test("only our own words are walked, shadow trees included", () => {
  const root = make("div");
  const host = make("div");
  host.attachShadow({ mode: "open" }).append(make("p", "", "inside"), make("p", "gf-text", "output"));
  const paragraph = make("p", "", "a ");
  paragraph.append(make("bdi", "", "piece"), make("code", "", "key"), " b");
  root.append(paragraph, make("button", "", "press"), host, make("td", "", "cell"), make("p", "", " "));
  root.append(make("div", "st-key-lesson_choices", "A. <s>"));  // one of a question's choices would stand out
  /** @type {string[]} */
  const texts = [];
  eachText(root, (text) => texts.push(text.data));
  equal(texts, ["a ", " b", "inside"]);
});
