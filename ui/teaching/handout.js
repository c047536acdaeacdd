// @ts-nocheck runs in a handout, beside Plotly's own script
for (const place of document.querySelectorAll(".chart")) {
  const figure = JSON.parse(place.querySelector("script").textContent);
  const drawn = document.createElement("div");
  place.append(drawn);
  Plotly.newPlot(drawn, figure.data, figure.layout, { displayModeBar: false, responsive: true });
}
