// @ts-check
// Unpacks what `embedding.py` put into a file, in its order: Plotly's script, data, and a module, which shows it.

(async () => {
  const LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%:()*+-;,=.?@^_`{|}~";
  const digits = new Map([...LETTERS].map((letter, value) => [letter, value]));

  /** Five digits are four bytes; the last group may be shorter. @param {string} text */
  const bytesOf = (text) => {
    const bytes = new DataView(new ArrayBuffer(Math.ceil(text.length / 5) * 4));
    for (let at = 0; at < text.length; at += 5) {
      let word = 0;
      for (const letter of text.slice(at, at + 5).padEnd(5, "~")) word = word * 85 + (digits.get(letter) ?? 0);
      bytes.setUint32(at / 5 * 4, word);
    }
    return new Uint8Array(bytes.buffer, 0, Math.floor(text.length / 5 * 4));
  };

  for (const part of document.querySelectorAll("script.packed")) {
    const bytes = bytesOf(part.textContent ?? "");
    const text = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
    if (part.id === "run") {
      const { value, parts } = JSON.parse(text);
      /** With its parts put in, each time a copy, as charts change theirs. @param {any} one @returns {any} */
      const whole = (one) => {
        if (Array.isArray(one)) return one.map(whole);
        if (one === null || typeof one !== "object") return one;
        if ("=" in one) return whole(parts[one["="]]);
        return Object.fromEntries(Object.entries(one).map(([name, each]) => [name, whole(each)]));
      };
      window.glassformerRun = whole(value);
      continue;
    }
    const type = part.id === "plotly" ? "text/javascript" : "module";
    document.body.append(Object.assign(document.createElement("script"), { type, textContent: text }));
  }
})().catch((error) => { document.body.append(`This file could not be shown: ${error}`); });
