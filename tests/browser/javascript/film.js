// @ts-check

import { placeInFilm, planned, wrapFilm } from "../../../glassformer/components/plotly/film.js";
import { close, equal, test } from "./harness.js";

/** Five tiles of two queries and one key, sent in rows of three. */
const film = () => ({
  names: ["a", "b", "c", "d", "e"], queries: ["q1", "q2"], keys: ["k"], columns: 3, share: 1, least: 100,
});

/** A number for each cell: the tile, and the tenth of the query. */
const sheet = [
  [0.1, NaN, 1.1, NaN, 2.1, NaN], [0.2, NaN, 1.2, NaN, 2.2, NaN], Array(6).fill(NaN),
  [3.1, NaN, 4.1, NaN, NaN, NaN], [3.2, NaN, 4.2, NaN, NaN, NaN], Array(6).fill(NaN),
];

const figure = () => ({
  data: [{ meta: "film", z: sheet.map((row) => [...row]) }],
  layout: {
    meta: { film: film() }, xaxis: {}, yaxis: {},
    annotations: film().names.map(() => ({})), shapes: film().names.map(() => ({})),
  },
});

test("as many tiles stand in a row as fit, and rows are alike", () => {
  const of = (/** @type {number} */ count) => ({ ...film(), names: Array(count).fill("") });
  equal([390, 1000, 2000].map((width) => planned(of(12), width).columns), [3, 6, 12]);
  equal(planned(of(24), 390).rows, 8);
  equal(planned(of(1), 120).columns, 1);
});

test("in a large view all tiles are as large as the height allows", () => {
  const small = planned(film(), 1200, 300), high = planned(film(), 1200, 2000);
  equal([small.columns, high.columns], [5, 2]);
  equal([planned(film(), 1200, 100).columns, high.height <= 2000], [5, true]);
});

test("tiles are laid out anew, each with its own cells and names", () => {
  const drawn = figure();
  wrapFilm(drawn, { columns: 2, rows: 3, height: 0 }, 600);
  const [trace] = drawn.data, { z, customdata, x, y } = /** @type {any} */ (trace);
  equal([z[0][0], z[0][2], z[3][0], z[4][2], z[6][0]], [0.1, 1.1, 2.1, 3.2, 4.1]);
  equal([z[6][2], z[0][1], z[2][0]], [null, null, null]);
  equal(customdata[4][2], ["d", "q2", "k"]);
  equal([x.length, y.length], [z[0].length + 1, z.length + 1]);
  equal(drawn.layout.meta.film.columns, 2);
  const { annotations, shapes } = /** @type {any} */ (drawn.layout);
  equal([annotations[3].x, shapes[3].y0], [shapes[3].x0, annotations[3].y]);
  close(shapes[3].x1 - shapes[3].x0, 1);
});

test("the place of a click does not depend on how tiles were laid out", () => {
  for (const columns of [1, 2, 5]) {
    const layout = { meta: { film: { ...film(), columns } } };
    const [row, column] = [Math.floor(3 / columns) * 3 + 1, (3 % columns) * 2];  // the second query of tile d
    equal(placeInFilm(layout, [row, column]), [10, 0]);
  }
  equal([placeInFilm({}, [4, 5]), placeInFilm(undefined, [1])], [[4, 5], [1]]);
});
