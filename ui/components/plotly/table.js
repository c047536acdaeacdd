// What a chart draws as a table, out of the figure that Python sent.
//
// A map is one row a cell, any other chart one row a mark. Columns are named by the axes. A figure for which that does
// not fit says its table itself: `layout.meta.table = {columns, rows}`, in plain text and numbers. A trace whose hover
// ends in a reason in italics holds the places that have no number. Traces that only draw a mark, or only catch the
// mouse, are no data: they have neither hover nor name, or no colour.

const TYPED = {
  i1: Int8Array, u1: Uint8Array, i2: Int16Array, u2: Uint16Array, i4: Int32Array, u4: Uint32Array,
  f4: Float32Array, f8: Float64Array,
};

// ---------------------------------------------------------------- numbers and text

/** Numbers in half precision, which few browsers know; whatever is beyond them was not sent. */
function fromHalf(bytes) {
  const halves = new Uint16Array(bytes.buffer);
  return Float32Array.from(halves, (half) => {
    const exponent = (half >> 10) & 31, fraction = half & 1023;
    const size = exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -24 * fraction;
    return half >> 15 ? -size : size;
  });
}

/** 32-bit numbers without their lowest byte, which is 0. */
function fromThreeBytes(bytes) {
  const numbers = new Float32Array(bytes.length / 3);
  const whole = new Uint8Array(numbers.buffer);
  for (let i = 0; i < numbers.length; i += 1) whole.set(bytes.subarray(3 * i, 3 * i + 3), 4 * i + 1);
  return numbers;
}

/** Numbers in the forms that JavaScript lacks. */
const SHORT_FORMS = { f2: fromHalf, f3: fromThreeBytes };

/** Put numbers where the bits say that there is one, elsewhere NaN (0 in whole numbers); a single one stands for all. */
function spreadOut(numbers, there, count) {
  if (!there && numbers.length === count) return numbers;
  const bits = there ? bytesOf(there) : null;
  const values = new numbers.constructor(count).fill(NaN);
  let place = 0;
  for (let i = 0; i < count; i += 1) {
    if (bits && !(bits[i >> 3] & (128 >> (i & 7)))) continue;
    values[i] = numbers.length === 1 ? numbers[0] : numbers[place];
    place += 1;
  }
  return values;
}

/** The numbers of a list or of Plotly's base64 form; two-dimensional ones as a list of rows. */
function decoded(sent) {
  if (!sent?.bdata) return sent ?? [];
  const [rows, columns] = String(sent.shape ?? "").split(",").map(Number);
  const bytes = bytesOf(sent.bdata);
  const numbers = SHORT_FORMS[sent.dtype]?.(bytes) ?? new TYPED[sent.dtype](bytes.buffer);
  if (columns === undefined) return numbers;
  const values = sent.there === undefined ? numbers : spreadOut(numbers, sent.there, rows * columns);
  return Array.from({ length: rows }, (_, row) => values.subarray(row * columns, (row + 1) * columns));
}

/** A number as short as tells it from its neighbours: 0.1, not 0.10000000149011612, for 32 bits. */
function shortest(list, place) {
  const value = list[place];
  if (!(list instanceof Float32Array)) return value;
  for (let digits = 6; digits < 9; digits += 1) {
    const tried = Number(value.toPrecision(digits));
    if (Math.fround(tried) === value) return tried;
  }
  return Number(value.toPrecision(9));
}

/** The text behind what `theme.literal` wrote for Plotly; tags and isolates around it are the charts' own. */
function rawText(written) {
  return String(written ?? "")
    .replace(/<br>/g, "; ")
    .replace(/<[^>]*>|[\u2068\u2069]/g, "")
    .replace(/⟨U\+([0-9A-F]{4,6})⟩|&#(\d+);/g, (_, hex, decimal) =>
      String.fromCodePoint(hex ? parseInt(hex, 16) : Number(decimal)));
}

// ---------------------------------------------------------------- from a figure to a table

function isData(trace) {
  const unnamed = trace.hoverinfo === "skip" && !trace.name;
  return !unnamed && trace.visible !== false && trace.marker?.color !== TRANSPARENT;
}

/** Why the places of a trace are closed; undefined for a trace with numbers. */
function reasonOf(trace) {
  const template = typeof trace.hovertemplate === "string" ? trace.hovertemplate : "";
  const found = template.match(/<i>([^<%]*)<\/i>(<extra><\/extra>)?$/);
  return found ? rawText(found[1]) : undefined;
}

/** Whether labels only count, like positions: then they are numbers, and need no other number beside them. */
function counts(labels) {
  return labels.every((label, place) => label === String(place + Number(labels[0])));
}

/** What an axis calls a place: its number and piece, or the value itself. */
function axisColumns(layout, id, places) {
  const name = `${id[0]}axis${id.slice(1)}`;
  const axis = layout[name] ?? {};
  const ticks = layout.meta?.ticks?.[name];
  const title = rawText(ticks?.title ?? axis.title?.text) || id[0];
  if (ticks) {
    const pieces = ticks.labels.map((label, place) => rawText(ticks.whole?.[place] ?? label));
    if (counts(pieces)) return { titles: [title], at: (place) => [Number(pieces[place])] };
    return { titles: [`${title} number`, title], at: (place) => [place + 1, pieces[place]] };
  }
  const named = new Map(Array.from(decoded(axis.tickvals), (place, index) => [place, axis.ticktext?.[index]]));
  if (axis.ticktext && Array.from(places).every((place) => named.has(place))) {
    return { titles: [`${title} place`, title], at: (place) => [place, rawText(named.get(place))] };
  }
  return { titles: [title], at: (value) => [typeof value === "string" ? rawText(value) : value] };
}

function sameAxes(one, other) {
  return (one.xaxis ?? "x") === (other.xaxis ?? "x") && (one.yaxis ?? "y") === (other.yaxis ?? "y");
}

/** Places along a side of a map. */
function places(given, first, step, count) {
  const list = decoded(given);
  return list.length ? list : Array.from({ length: count }, (_, place) => (first ?? 0) + place * (step ?? 1));
}

function mapTable(trace, layout, closed) {
  const z = decoded(trace.z);
  const reasons = closed.map((other) => [decoded(other.z), reasonOf(other)]);
  const xs = places(trace.x, trace.x0, trace.dx, z[0]?.length ?? 0);
  const ys = places(trace.y, trace.y0, trace.dy, z.length);
  const x = axisColumns(layout, trace.xaxis ?? "x", xs);
  const y = axisColumns(layout, trace.yaxis ?? "y", ys);
  const value = rawText(trace.name ?? trace.colorbar?.title?.text) || "value";
  const rows = [];
  z.forEach((line, i) => line.forEach((_, j) => {
    const why = reasons.find(([cells]) => Number.isFinite(cells[i][j]))?.[1];
    rows.push([...y.at(ys[i]), ...x.at(xs[j]), why ? null : shortest(line, j), why ?? ""]);
  }));
  return { columns: [...y.titles, ...x.titles, value, "note"], rows };
}

function markTable(trace, layout, closed) {
  const [given, across] = [decoded(trace.x), decoded(trace.y)];
  const count = Math.max(given.length, across.length);
  const [xs, ys] = [given, across].map((list) => (list.length ? list : Array.from({ length: count }, (_, i) => i)));
  const x = axisColumns(layout, trace.xaxis ?? "x", xs);
  const y = axisColumns(layout, trace.yaxis ?? "y", ys);
  const flat = trace.orientation === "h";
  const reasons = new Map(closed.flatMap((other) =>
    Array.from(decoded(flat ? other.y : other.x), (place) => [place, reasonOf(other)])));
  const texts = [trace.hovertext ?? trace.text ?? []].flat().map(rawText);
  const rows = Array.from({ length: count }, (_, i) => {
    const why = reasons.get((flat ? ys : xs)[i]);
    const [left, right] = [x.at(shortest(xs, i)), y.at(shortest(ys, i))];
    return [...left, ...(why ? right.map(() => null) : right), texts[i] ?? "", why ?? ""];
  });
  return { columns: [...x.titles, ...y.titles, "text", "note"], rows };
}

/** Number and name of what hover writes as `3: <b>name</b>`. */
function numberedName(label) {
  const [, number, name] = rawText(label).match(/^(\d+(?: to \d+)?): ([^]*)$/) ?? [];
  return [/^\d+$/.test(number) ? Number(number) : number, name];
}

/** Every cell of a map of maps; the number is as exact as the byte that was sent. */
function gridTable(packed, data) {
  const trace = { meta: "grid" };
  const named = (side) => packed[side].map((label, place) => packed.whole[side][place] ?? label);
  restoreGrid(trace, { ...packed, queries: named("queries"), keys: named("keys") });
  const reason = data.map(reasonOf).find((why) => why !== undefined) ?? "";
  const codes = atob(packed.codes);
  const rows = trace.customdata.flatMap((line, i) => line.map(([[, query], [, key], number], j) => {
    const layer = Math.floor(i / packed.queries.length), head = Math.floor(j / packed.keys.length);
    const known = trace.z[i][j] !== null;
    const closed = codes.charCodeAt(i * line.length + j) === GRID_CLOSED;
    return [layer + 1, head + 1, ...numberedName(query), ...numberedName(key),
      known ? Number(number.toPrecision(4)) : null, closed ? reason : ""];
  }));
  rows.sort((one, other) => one[0] - other[0] || one[1] - other[1]);  // head by head, not across the picture
  return { columns: ["layer", "head", "query number", "query", "key number", "key", "weight (rounded)", "note"], rows };
}

/** One table out of several: their columns side by side, and which trace a row is from. */
function joined(tables, names) {
  const columns = [...new Set(["series", ...tables.flatMap((table) => table.columns)])];
  const rows = tables.flatMap((table, index) => table.rows.map((row) => {
    const cells = new Map(table.columns.map((column, place) => [column, row[place]]));
    return columns.map((column) => (column === "series" ? names[index] : cells.get(column)));
  }));
  return { columns, rows };
}

/** Drop a column of remarks that says nothing, or only repeats the piece beside it. */
function tidied({ columns, rows }) {
  const says = (row, place) => row[place] && !row.some((cell, at) => at !== place
    && typeof cell === "string" && cell === row[place].replace(/^\d+: /, ""));
  const kept = columns.map((_, place) => place).filter((place) =>
    !["text", "note"].includes(columns[place]) || rows.some((row) => says(row, place)));
  return { columns: kept.map((place) => columns[place]), rows: rows.map((row) => kept.map((place) => row[place])) };
}

function numbered(columns) {
  return columns.map((name, place) => {
    const before = columns.slice(0, place).filter((other) => other === name).length;
    return before ? `${name} ${before + 1}` : name;
  });
}

/** The table of a figure as Python sent it. */
function tableOf({ data, layout }) {
  if (layout.meta?.table) return layout.meta.table;
  if (layout.meta?.grid) return tidied(gridTable(layout.meta.grid, data));
  const drawn = data.filter(isData);
  const traces = drawn.filter((trace) => reasonOf(trace) === undefined);
  const tables = traces.map((trace) => {
    const closed = drawn.filter((other) => reasonOf(other) !== undefined && sameAxes(trace, other));
    const table = trace.z ? mapTable(trace, layout, closed) : markTable(trace, layout, closed);
    return { columns: numbered(table.columns), rows: table.rows };
  });
  const names = traces.map((trace, index) => rawText(trace.name) || `series ${index + 1}`);
  return tidied(tables.length === 1 ? tables[0] : joined(tables, names));
}
