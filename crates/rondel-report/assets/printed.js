// Pages of a printed overview after its list: the recordings, the origin of the report, and each violation with its cause.

import { el, plain } from "../page/dom.js";
import { parametersText, timeOf } from "../page/parts.js";
import { current } from "../page/route.js";
import { counted } from "../page/time.js";
import { certainty, explanation } from "../page/violations.js";
import { environment, recordings } from "./about.js";
import { recording, report, violationsOf } from "./embedded.js";

const MOST = 500; // violations

function violation(v) {
  return el("div", { class: "printed-violation" }, el("h3", {}, timeOf(v.begin), " ", parametersText(v.parameters, 200), " ", certainty(v)), explanation(v));
}

function pages() {
  let room = MOST;
  const parts = report.properties.slice(0, recording().properties.length).map((claim, i) => {
    const judged = recording().properties[i];
    const shown = violationsOf(judged).slice(0, room);
    room -= shown.length;
    if (!shown.length) return null;
    const rest = judged.count - shown.length;
    return [el("h2", {}, plain(claim.name)), claim.text ? el("pre", {}, claim.text) : null, shown.map(violation), rest > 0 ? el("p", { class: "note" }, counted(rest, "more violation")) : null];
  });
  return el("section", { class: "printed", "aria-label": "Violations" }, el("h2", {}, "Recordings"), recordings(), el("h2", {}, "About this report"), environment(), parts);
}

/** Adds the pages to a printed overview, and removes them afterwards. */
export function printPages() {
  let added = null;
  window.addEventListener("beforeprint", () => {
    if (added || !["overview", ""].includes(current().view)) return;
    added = pages();
    document.getElementById("main").append(added);
  });
  window.addEventListener("afterprint", () => {
    added?.remove();
    added = null;
  });
}
