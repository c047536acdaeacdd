// What the flow view draws, without the page around it: decoding the weights, choosing the lines, placing the pieces,
// and painting the same picture on a canvas or as SVG. Pure but for the surface it is given.

const MOST_LINES = 6000;  // more take a second to paint, and nobody can tell them apart
const BLOCK_MOST = 11;
const SVG = "http://www.w3.org/2000/svg";

// ---------------------------------------------------------------- weights

/** The weights as whole steps [head, query, key] of 1 / levels; masked cells are closed in `open` and hold 0. */
function decode(data) {
  const [queries, keys, heads] = [data.queries.length, data.keys.length, data.heads];
  const cells = queries * keys;
  const sent = unpackSteps(data.weights);
  const bits = data.open === null ? null : bytesOf(data.open);
  const open = new Uint8Array(cells);
  const steps = new Uint16Array(heads * cells);
  const many = sent.length / Math.max(1, heads);
  let place = 0;
  for (let cell = 0; cell < cells; cell += 1) {
    if (bits && !(bits[cell >> 3] & (128 >> (cell & 7)))) continue;
    open[cell] = 1;
    for (let head = 0; head < heads; head += 1) steps[head * cells + cell] = sent[head * many + place];
    place += 1;
  }
  return { queries, keys, heads, cells, open, steps, levels: data.weights.levels };
}

function weightOf(model, head, query, key) {
  return model.steps[head * model.cells + query * model.keys + key] / model.levels;
}

function isOpen(model, query, key) {
  return model.open[query * model.keys + key] === 1;
}

/** Two digits where they say something; a small weight may have been sent as 0, so never "0.00". */
function formatWeight(value) {
  if (value === 1) return "1.00";
  if (value < 0.005) return "<0.01";
  return value >= 0.995 ? ">0.99" : value.toFixed(2);
}

// ---------------------------------------------------------------- lines

/** The cells of which lines are wanted: all, or those of one piece. */
function cellsOf(model, focus) {
  if (!focus) return Array.from({ length: model.cells }, (_, cell) => cell).filter((cell) => model.open[cell]);
  const count = focus.side === "query" ? model.keys : model.queries;
  const place = (other) => (focus.side === "query" ? focus.index * model.keys + other : other * model.keys + focus.index);
  return Array.from({ length: count }, (_, other) => place(other)).filter((cell) => model.open[cell]);
}

/** How many weights there are of each step, and their sum in steps. */
function count(model, shown, cells) {
  const counts = new Uint32Array(model.levels + 1);
  let total = 0;
  for (const head of shown) {
    for (const cell of cells) {
      const step = model.steps[head * model.cells + cell];
      counts[step] += 1;
      total += step;
    }
  }
  return { counts, total };
}

/**
 * Which lines to draw, weakest first, and what is left out.
 *
 * `cut` is the least weight drawn: the threshold, or more where more than MOST_LINES would pass it. A weight that is
 * sent as 0 has no line.
 */
function chooseLines(model, shown, threshold, focus) {
  const cells = cellsOf(model, focus);
  const { counts, total } = count(model, shown, cells);
  const least = Math.max(1, Math.ceil(threshold * model.levels - 1e-6));
  let [cut, many, held] = [model.levels + 1, 0, 0];
  while (cut > least && (many + counts[cut - 1] <= MOST_LINES || many === 0)) {
    cut -= 1;
    many += counts[cut];
    held += counts[cut] * cut;
  }
  const lines = [];
  for (const cell of many ? cells : []) {
    for (const head of shown) {
      const step = model.steps[head * model.cells + cell];
      if (step < cut) continue;
      lines.push({ head, query: Math.floor(cell / model.keys), key: cell % model.keys, weight: step / model.levels });
    }
  }
  lines.sort((a, b) => a.weight - b.weight);
  const crowded = cut > least;
  return {
    lines, all: cells.length * shown.length, crowded, share: total ? held / total : 0,
    cut: crowded ? cut / model.levels : threshold,
  };
}

/** For each piece of the other side the mean weight over the shown heads, null where it is masked. */
function meansOf(model, shown, focus) {
  const count = focus.side === "query" ? model.keys : model.queries;
  return Array.from({ length: count }, (_, other) => {
    const [query, key] = focus.side === "query" ? [focus.index, other] : [other, focus.index];
    if (!isOpen(model, query, key) || !shown.length) return null;
    return shown.reduce((sum, head) => sum + weightOf(model, head, query, key), 0) / shown.length;
  });
}

// ---------------------------------------------------------------- places

/** Where the pieces stand: the longer column sets the height, the shorter is spread a little and centred.
 *
 * `room` is the height to fill, if rows of at least 15 and at most `widest` pixels can.
 */
function placeRows(model, room, widest) {
  const most = Math.max(model.queries, model.keys, 1);
  const pitch = Math.min(widest, Math.max(15, Math.floor(room / most)));
  const height = pitch * most;
  const column = (count) => {
    const own = Math.min(height / Math.max(1, count), pitch * 1.5);
    return { pitch: own, start: (height - own * count) / 2 };
  };
  return { pitch, height, query: column(model.queries), key: column(model.keys) };
}

function rowCentre(rows, side, index) {
  return rows[side].start + (index + 0.5) * rows[side].pitch;
}

/** Each head has its own lane in a row, so that lines of several heads between two pieces lie side by side. */
function laneOf(head, heads, pitch) {
  const spread = Math.min(pitch * 0.6, heads * 3.2);
  return heads > 1 ? (head / (heads - 1) - 0.5) * spread : 0;
}

function blockSize(width, heads, pitch) {
  return Math.max(2, Math.min(BLOCK_MOST, pitch - 5, (width * 0.2) / heads));
}

/** What stands between the two columns for the given width: lines, and the blocks of the other side. */
function scene(view, width, rows) {
  const { model } = view;
  const size = blockSize(width, model.heads, rows.pitch);
  const strip = model.heads * size + 10;
  // Blocks stand on the other side of what is looked at; where there are none the lines reach the pieces.
  const [left, right] = ["query", "key"].map((side) => (view.focus && view.focus.side !== side ? strip : 5));
  const lines = view.chosen.lines.map((line) => {
    const lane = laneOf(line.head, model.heads, rows.pitch);
    return {
      ...line,
      x0: left, y0: rowCentre(rows, "query", line.query) + lane,
      x1: width - right, y1: rowCentre(rows, "key", line.key) + lane,
      alpha: alphaOf(view, line),
    };
  });
  return { lines, blocks: view.focus ? blocksOf(view, width, rows, size) : [] };
}

/**
 * All lines together are as opaque as their weight. Of one piece there are few, so the root of the weight is taken:
 * 0.05 could not be seen. Beside a pair that is looked at, the other lines step back.
 */
function alphaOf(view, line) {
  const { pair, focus } = view;
  if (!focus) return line.weight;
  const aside = pair && (pair.query !== line.query || pair.key !== line.key);
  return Math.sqrt(line.weight) * (aside ? 0.4 : 1);
}

function blocksOf(view, width, rows, size) {
  const { model, shown, focus } = view;
  const side = focus.side === "query" ? "key" : "query";
  const tall = Math.max(4, Math.min(rows[side].pitch - 5, 16));
  const blocks = [];
  for (let other = 0; other < (side === "key" ? model.keys : model.queries); other += 1) {
    const [query, key] = side === "key" ? [focus.index, other] : [other, focus.index];
    if (!isOpen(model, query, key)) continue;
    const y = rowCentre(rows, side, other) - tall / 2;
    for (const head of shown) {
      const x = side === "key" ? width - model.heads * size - 4 + head * size : 5 + head * size;
      blocks.push({ head, x, y, width: size - 1, height: tall, alpha: Math.sqrt(weightOf(model, head, query, key)) });
    }
  }
  return blocks;
}

// ---------------------------------------------------------------- painting

/** Paint what is in view: `top` is how far it is scrolled, `height` what is seen. */
function paintCanvas(context, drawn, look, top, height) {
  context.lineWidth = look.line;
  context.lineCap = "butt";
  for (const line of drawn.lines) {
    const [y0, y1] = [line.y0 - top, line.y1 - top];
    if ((y0 < 0 && y1 < 0) || (y0 > height && y1 > height)) continue;
    const bend = (line.x1 - line.x0) * 0.4;
    context.globalAlpha = line.alpha;
    context.strokeStyle = look.colours[line.head];
    context.beginPath();
    context.moveTo(line.x0, y0);
    context.bezierCurveTo(line.x0 + bend, y0, line.x1 - bend, y1, line.x1, y1);
    context.stroke();
  }
  for (const block of drawn.blocks) {
    const y = block.y - top;
    if (y + block.height < 0 || y > height) continue;
    context.globalAlpha = 1;
    context.fillStyle = look.faint;
    context.fillRect(block.x, y, block.width, block.height);
    context.globalAlpha = block.alpha;
    context.fillStyle = look.colours[block.head];
    context.fillRect(block.x, y, block.width, block.height);
  }
  context.globalAlpha = 1;
}

function element(tag, attributes, text) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function rounded(number) {
  return Math.round(number * 100) / 100;
}

function svgLines(drawn, look) {
  const group = element("g", { fill: "none", "stroke-width": look.line });
  for (const line of drawn.lines) {
    const bend = (line.x1 - line.x0) * 0.4;
    const [x0, y0, x1, y1] = [line.x0, line.y0, line.x1, line.y1].map(rounded);
    const path = `M${x0} ${y0}C${rounded(x0 + bend)} ${y0} ${rounded(x1 - bend)} ${y1} ${x1} ${y1}`;
    group.append(element("path", { d: path, stroke: look.colours[line.head], "stroke-opacity": rounded(line.alpha) }));
  }
  for (const block of drawn.blocks) {
    const box = { x: rounded(block.x), y: rounded(block.y), width: rounded(block.width), height: block.height };
    group.append(element("rect", { ...box, fill: look.faint }));
    group.append(element("rect", { ...box, fill: look.colours[block.head], "fill-opacity": rounded(block.alpha) }));
  }
  return group;
}

function svgColumn(view, texts, side, anchor, look) {
  const { rows, focus } = view;
  const group = element("g", { fill: look[side], "text-anchor": anchor, "font-family": "monospace", "font-size": look.size });
  texts.forEach((text, index) => {
    const y = rowCentre(rows, side, index) + look.size * 0.35;
    const weight = focus?.side === side && focus.index === index ? "bold" : "normal";
    group.append(element("text", { x: 0, y: rounded(y), "font-weight": weight, "xml:space": "preserve" }, text));
  });
  return group;
}

/** Lay the names of the shown heads out under the title, as many a line as fit. */
function svgLegend(shown, look, width) {
  const group = element("g", { "font-size": 12, fill: look.text });
  const each = Math.max(1, Math.floor((width - 16) / 74));
  shown.forEach((head, place) => {
    const [x, y] = [16 + (place % each) * 74, 50 + Math.floor(place / each) * 18];
    group.append(element("rect", { x, y: y - 10, width: 11, height: 11, rx: 2, fill: look.colours[head] }));
    group.append(element("text", { x: x + 16, y }, `head ${head + 1}`));
  });
  return { group, height: Math.ceil(shown.length / each) * 18 };
}

/** The picture with its title, its heads and its columns, as a file of its own. */
function svgPicture(view, look, sizes) {
  const { data, rows } = view;
  const width = sizes.left + sizes.middle + sizes.right + 32;
  const legend = svgLegend(view.shown, look, width);
  const top = 88 + legend.height;
  const height = top + rows.height + 34;
  const root = element("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "font-family": "sans-serif" });
  root.append(element("rect", { width, height, fill: look.background }));
  root.append(element("text", { x: 16, y: 26, "font-size": 17, "font-weight": 600, fill: look.text }, sizes.title));
  root.append(legend.group);
  const [end, begin] = [16 + sizes.left, 16 + sizes.left + sizes.middle];
  const heading = (x, side, text, anchor) => element(
    "text", { x, y: top - 14, "font-size": 12, "font-weight": 600, fill: look[side], "text-anchor": anchor }, text);
  root.append(heading(end, "query", data.query_axis, "end"), heading(begin, "key", data.key_axis, "start"));
  const moved = (x, child) => {
    const group = element("g", { transform: `translate(${x} ${top})` });
    group.append(child);
    return group;
  };
  root.append(moved(end, svgLines(scene(view, sizes.middle, rows), look)));
  root.append(moved(end - 6, svgColumn(view, sizes.queries, "query", "end", look)));
  root.append(moved(begin + 6, svgColumn(view, sizes.keys, "key", "start", look)));
  root.append(element("text", { x: 16, y: height - 12, "font-size": 11, fill: look.text }, sizes.note));
  return new XMLSerializer().serializeToString(root);
}
