// @ts-check

import { changed, momentAt } from "../../../glassformer/components/common/frames.js";
import { equal, test } from "./harness.js";

test("a change makes of some JSON another: by keys, by places, or as a whole", () => {
  equal(changed({ a: 1, b: [1, 2], c: { d: 3 } }, { a: [2], b: { 1: [7] }, c: { d: [] } }), { a: 2, b: [1, 7], c: {} });
  equal(changed([1, 2], [[3]]), [3]);
  equal(changed({ a: 1 }, null), { a: 1 });
  equal(changed({}, { a: [[]], b: [null] }), { a: [], b: null });
});

test("the first step is left as it is, whatever is made of it", () => {
  const moment = { alt: "", height: 1, caption: "", file: "", about: [], figure: { data: [[1]] } };
  const frames = { first: moment, changes: [null, { figure: { data: { 0: { 0: [2] } } } }] };
  const figures = [1, 0, 1].map((step) => momentAt(/** @type {any} */ (frames), step).figure);
  equal(figures, [{ data: [[2]] }, { data: [[1]] }, { data: [[2]] }]);
});
