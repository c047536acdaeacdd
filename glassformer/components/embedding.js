// @ts-check
// Unpacks what `embedding.py` put into a file, in its order: Plotly's script, data, and a module, which shows it.

(async () => {
  for (const part of document.querySelectorAll("script.packed")) {
    const bytes = Uint8Array.from(atob(part.textContent ?? ""), (letter) => letter.charCodeAt(0));
    const text = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
    if (part.id === "run") {
      if (text) window.glassformerRun = JSON.parse(text);
      continue;
    }
    const type = part.id === "plotly" ? "text/javascript" : "module";
    document.body.append(Object.assign(document.createElement("script"), { type, textContent: text }));
  }
})().catch((error) => { document.body.append(`This file could not be shown: ${error}`); });
