// @ts-check
// The page's fonts inside a drawing: as a picture it stands alone and sees no font of the page, and another font's
// letters are wider than the room that was left for them.

/** @type {Map<string, Promise<string>>} */
const FETCHED = new Map();

/**
 * The drawing with those fonts of the page that it names.
 * @param {string} svg
 */
export async function withFonts(svg) {
  const rules = await Promise.all(faces().filter((rule) => isNamed(rule, svg)).map(embedded));
  const style = rules.join("").replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  return svg.replace(/<svg[^>]*>/, (start) => `${start}<style>${style}</style>`);
}

/** @returns {CSSFontFaceRule[]} */
function faces() {
  return Array.from(document.styleSheets).flatMap((sheet) => {
    try {
      return Array.from(sheet.cssRules).filter((rule) => rule instanceof CSSFontFaceRule);
    } catch {
      return [];  // a sheet of another machine, of a browser's extension
    }
  });
}

/**
 * @param {CSSFontFaceRule} rule
 * @param {string} svg
 */
function isNamed(rule, svg) {
  const family = rule.style.getPropertyValue("font-family").replace(/["']/g, "");
  const slanted = rule.style.getPropertyValue("font-style") === "italic";
  return Boolean(family) && svg.includes(family) && (!slanted || svg.includes("italic"));
}

/** @param {CSSFontFaceRule} rule */
async function embedded(rule) {
  const address = rule.style.getPropertyValue("src").match(/url\(["']?([^"')]+)["']?\)/)?.[1];
  if (!address) return "";
  const whole = new URL(address, rule.parentStyleSheet?.href ?? document.baseURI).href;
  if (!FETCHED.has(whole)) FETCHED.set(whole, asData(whole));
  const data = await FETCHED.get(whole);
  const named = ["font-family", "font-style", "font-weight"].map((name) => `${name}:${rule.style.getPropertyValue(name)};`);
  return data ? `@font-face{${named.join("")}src:url(${data})}` : "";
}

/**
 * A file as a data address; empty if it cannot be had.
 * @param {string} address
 * @returns {Promise<string>}
 */
async function asData(address) {
  try {
    const content = await (await fetch(address)).blob();
    return await new Promise((resolve, reject) => {
      const reader = new FileReader();
      reader.onload = () => resolve(String(reader.result));
      reader.onerror = reject;
      reader.readAsDataURL(content);
    });
  } catch {
    return "";  // the picture then has the machine's own letters
  }
}
