// The recordings of a report, and its origin: command, program, specification.

import { el, fill, plain, shape } from "../page/dom.js";
import { table } from "../page/parts.js";
import { link } from "../page/route.js";
import { count, counted, duration, stamp } from "../page/time.js";
import { VERDICTS, WORDS, verdictOf } from "../page/verdicts.js";
import { chosen, report, spanOf } from "./embedded.js";

/** Number of properties of a verdict; an assert decides instead of the property that it judges. */
const numberOf = (recording, verdict) => recording.properties.filter((judged) => verdictOf(judged.outcome) === verdict && !judged.is_asserted).length;

/** The address of a recording's overview. */
export const addressOf = (number) => link("overview", null, { recording: number || null, from: null, until: null, range: null });

function results(recording) {
  const numbers = VERDICTS.map((verdict) => [verdict, numberOf(recording, verdict)]).filter(([, number]) => number);
  return numbers.map(([verdict, number]) => [el("span", { class: `badge is-${verdict}` }, shape(verdict), `${count(number)} ${WORDS[verdict]}`), " "]);
}

function row(recording, number) {
  const [begin, end] = spanOf(recording);
  const name = el("a", { href: addressOf(number), class: "name", "aria-current": number === chosen() ? "true" : null }, plain(recording.name));
  return [
    [name, recording.problem ? el("div", { class: "bad" }, `Not read to its end: ${plain(recording.problem, 400)}`) : null, recording.remarks.map((text) => el("div", { class: "note" }, plain(text, 400)))],
    results(recording), counted(recording.events, "message"), recording.begin === null ? "no message" : `from ${stamp(begin)}, ${duration(end - begin)}`,
  ];
}

/** The origin of the report, as a list. */
export function environment() {
  const facts = [["Specification", plain(report.specification)], ["Command", report.command && el("code", {}, plain(report.command, 2000))], ["Program", `Rondel ${plain(report.version, 40)}`],
    ["Properties", count(report.properties.length)], ["Shortened", report.shortened && plain(report.shortened, 1000)]];
  return el("dl", { class: "environment" }, facts.filter(([, value]) => value).map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

/** The recordings as a table. */
export const recordings = () => table(["recording", "properties", "messages", "time"], report.recordings.map(row), "Recordings");

export function about(main) {
  const show = () => {
    fill(main, el("h1", {}, "Recordings"), recordings(), el("h2", {}, "About this report"), environment());
  };
  show();
  return { update: show, redraw: show };
}
