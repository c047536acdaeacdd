// Loads Plotly's script once for a browser page, whichever chart asks first.

function addScript(url) {
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = url;
    script.async = true;
    // A server may answer an unknown path with its HTML page: that loads, but brings no Plotly.
    script.onload = () => (window.Plotly ? resolve(window.Plotly) : reject(new Error(`no Plotly in ${url}`)));
    script.onerror = () => reject(new Error(`cannot load ${url}`));
    document.head.appendChild(script);
  });
}

function loadPlotly(path) {
  const loaded = (window.__glassformerPlotly ??= new Map());
  if (!loaded.has(path)) {
    // Pages live at /step, or at /step/ when someone typed the slash: then the app is one level up.
    const attempt = addScript(new URL(path, location.href).href)
      .catch(() => addScript(new URL(`../${path}`, location.href).href));
    attempt.catch(() => loaded.delete(path));  // the next chart may try again
    loaded.set(path, attempt);
  }
  return loaded.get(path);
}
