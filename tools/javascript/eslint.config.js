// What eslint looks for, besides its own recommended list. Types are checked by tsc (tsconfig.json).

import js from "@eslint/js";
import globals from "globals";

const MARKUP = "Text goes into a browser as text, never as markup.";
const unsafe = ["innerHTML", "outerHTML", "insertAdjacentHTML"].map((property) => ({ property, message: MARKUP }));

export default [
  { linterOptions: { reportUnusedDisableDirectives: "error" } },
  js.configs.recommended,
  {
    languageOptions: { ecmaVersion: 2024, sourceType: "module", globals: globals.browser },
    rules: {
      curly: ["error", "multi-line"],
      eqeqeq: "error",
      "max-lines": ["error", 320],
      "max-lines-per-function": ["error", { max: 60, skipComments: false, skipBlankLines: false }],
      "no-eval": "error",
      "no-implied-eval": "error",
      "no-restricted-properties": ["error", ...unsafe, { object: "document", property: "write", message: MARKUP }],
      "no-shadow": "error",
      "no-unused-vars": ["error", { args: "all", argsIgnorePattern: "^_" }],
      "no-var": "error",
      "object-shorthand": "error",
      "prefer-const": "error",
      "prefer-template": "error",
    },
  },
];
