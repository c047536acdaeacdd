// @ts-check
// Draws the charts of a handout, with Plotly's own script, which stands in the same file.

const plotly = /** @type {any} */ (globalThis).Plotly;
for (const place of document.querySelectorAll(".chart")) {
  const figure = JSON.parse(place.querySelector("script")?.textContent ?? "{}");
  const drawn = document.createElement("div");
  place.append(drawn);
  plotly.newPlot(drawn, figure.data, figure.layout, { displayModeBar: false, responsive: true });
}
