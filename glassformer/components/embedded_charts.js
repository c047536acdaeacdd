// @ts-check
// Draws each chart of a page, with Plotly's script, which stands in the same file.

const plotly = /** @type {any} */ (globalThis).Plotly;
for (const place of document.querySelectorAll(".chart")) {
  const drawn = document.createElement("div");
  place.append(drawn);
  plotly.newPlot(drawn, JSON.parse(place.querySelector("script")?.textContent ?? "{}"));
}
