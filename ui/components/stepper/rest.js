// @ts-check
// Tells Python where the reader rests while nothing on the page has to be drawn for a step. Shows nothing.

import { pointMenu } from "../common/links.js";
import { offerRest, runOf } from "../common/step.js";

/** @import { Component, RestPayload } from "../common/payloads.js" */

/** @param {Component<RestPayload>} component */
export function component({ data: { payload: { name } }, parentElement, setStateValue }) {
  const end = offerRest(name, (report) => {
    if (!runOf(name)) pointMenu(report.step);
    setStateValue("step", report);
  });
  return () => setTimeout(() => { if (!parentElement.isConnected) end(); });
}
