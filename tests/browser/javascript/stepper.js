// @ts-check

import {
  byStep, commonStart, filler, formatProbability, saidProbability, unpacked,
} from "../../../glassformer/components/stepper/numbers.js";
import { base64, equal, test } from "./harness.js";

test("a probability is never written as 0.00 or 1.00 when it is neither", () => {
  const texts = [0, 1, 0.0004, 0.004, 0.25, 0.9999].map(formatProbability);
  equal(texts, ["0.00", "1.00", "<0.001", "0.004", "0.25", ">0.99"]);
  equal([0.25, 0.9999, 0.0004].map(saidProbability), ["p = 0.25", "p > 0.99", "p < 0.001"]);
});

test("a filler is as wide as its piece and does not give it away", () => {
  equal([filler("a b"), filler("汤姆"), filler("")], ["n n", "国国", ""]);
});

test("texts have a common start, whole letters only", () => {
  equal([commonStart("ab", "abc"), commonStart("🙂", "🙃"), commonStart("", "x")], ["ab", "", ""]);
  equal(commonStart("abc", "ab"), "ab");
});

test("a run's texts are put together from what each step changed", () => {
  const run = unpacked({
    run_id: "r", source: [{ piece: "x", id: 1 }], target: [], start_piece: "<s>", shading_label: "", stop_reason: "", cut: false, still: false,
    texts: [[0, "🙂"], [2, " b"], [0, "c"]],
    shading: { levels: 255, count: 3, filled: null, steps: base64(Uint8Array.of(0, 255, 51)) },
  });
  equal([run.texts, run.shading?.steps, run.shading?.levels], [["🙂", "🙂 b", "c"], [0, 255, 51], 255]);
});

test("a part of the text is cut into what each step wrote of it", () => {
  const starts = [0, 1, 2, 6, 10];  // the last step writes nothing
  equal(byStep("J'aime", 0, starts.slice(0, 3)), [[0, "J"], [1, "'"], [2, "aime"]]);
  equal(byStep("e thé", 5, starts), [[2, "e"], [3, " thé"]]);
  equal(byStep("abc", 0, [0, 2, 1]), [[0, "a"], [2, "bc"]]);
  equal([byStep("", 3, starts), byStep("abc", 0, [])], [[], []]);
});

test("a run may be without shading", () => {
  const run = unpacked({ run_id: "r", source: [], target: [], start_piece: "", shading_label: "", stop_reason: "", cut: false, still: false,
    texts: [], shading: null });
  equal([run.texts, run.shading], [[], null]);
});
