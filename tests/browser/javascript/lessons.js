// @ts-check
// What a browser remembers of answers.

import { merged, readRows } from "../../../glassformer/extensions/classroom/components/lessons/view.js";
import { equal, test } from "./harness.js";

/** @import { LessonRow } from "../../../glassformer/components/common/payloads.js" */

/**
 * @param {string} step
 * @param {string} choice
 * @returns {LessonRow}
 */
const row = (step, choice, run = "0123abcd") => [step, run, choice, true, "89abcdef"];

test("answers are read as they were written", () => {
  const rows = [row("one-piece.1", "start"), row("one-piece.2", "I")];
  equal(readRows(JSON.stringify(rows)), rows);
});

test("what is stored and is something else is no answer", () => {
  equal(["", "{", "7", "null", '{"a": 1}', '[1, ["x"], null]'].map(readRows), [[], [], [], [], [], []]);
});

test("a newer answer takes the place of an older one of the same step and run alone", () => {
  const older = [row("a.1", "x"), row("a.1", "x", "ffffffff")];
  equal(merged(older, [row("a.1", "y")]), [row("a.1", "y"), row("a.1", "x", "ffffffff")]);
});

test("of too many answers the last ones stay", () => {
  const many = Array.from({ length: 450 }, (_, n) => row(`a.${n}`, "x"));
  equal(merged(many, [row("b.1", "y")]).length, 400);
  equal(merged(many, [row("b.1", "y")]).at(-1), row("b.1", "y"));
});
