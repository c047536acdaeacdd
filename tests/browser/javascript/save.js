// @ts-check

import { visible } from "../../../glassformer/components/common/dom.js";
import { csvCell, csvText } from "../../../glassformer/components/common/save.js";
import { equal, test } from "./harness.js";

test("what a spreadsheet takes for a formula gets an apostrophe", () => {
  const formulas = ["=1+1", "+1", "-x", "@a", "\ta", "＝1", "－1"];
  equal(formulas.map(csvCell), formulas.map((text) => `'${text}`));
});

test("numbers stay numbers", () => {
  equal([-0.5, 3, NaN, Infinity, null, undefined].map(csvCell), ["-0.5", "3", "", "", "", ""]);
});

test("quotes, commas and line ends are quoted", () => {
  equal(['a"b', "a,b", "a\nb", "\rb", "a b"].map(csvCell), ['"a""b"', '"a,b"', '"a\nb"', '"\'\rb"', "a b"]);
});

test("a table has a byte order mark and ends its lines as RFC 4180 says", () => {
  equal(csvText([["a", "b"], [1, "x"]]), "\ufeffa,b\r\n1,x\r\n");
});

test("characters that cannot be seen are named", () => {
  equal(visible("a\u202eb\u0000"), "a⟨U+202E⟩b⟨U+0000⟩");
});
