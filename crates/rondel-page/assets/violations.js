// Violations of a property with their explanations.

import { el, fill, plain, shape } from "./dom.js";
import { Written, empty, parametersText, timeOf, valueText } from "./parts.js";
import { link, setQuery } from "./route.js";
import { count, duration, number, stamp } from "./time.js";

/** Marks for the chart of a signal: where violations begin, and the values of the selected one's explanation. */
export function marksFor(name, violations, selected) {
  const marks = violations.slice(0, 200).map((v) => ({ time: v.begin, isSelected: v.id === selected?.id }));
  for (const point of name === null ? [] : (selected?.explanation ?? [])) {
    if (!Object.hasOwn(point.values, name)) continue;
    const value = point.values[name];
    const y = typeof value === "boolean" ? Number(value) : typeof value === "number" ? value : null;
    marks.push({ time: point.time, isSelected: true, y, label: valueText(value, 24) });
  }
  return marks;
}

/** A value of the evidence of a check, which is a text: numbers and booleans are marked in charts at their height. */
function valueOf(text) {
  if (text === "true" || text === "false") return text === "true";
  const number = text.trim() === "" ? NaN : Number(text);
  return Number.isFinite(number) ? number : new Written(text);
}

/** A violation of a check in the form of the API. `values` of the violation and its evidence are texts by name. */
export function violationOf(id, v) {
  const values = (texts) => Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, text === null ? null : valueOf(text)]));
  return { id, begin: v.time, certain: v.certain, parameters: v.parameters, values: values(v.values), explanation: v.evidence.map((p) => ({ ...p, values: values(p.values) })) };
}

/** The range that shows a violation with its explanation. */
export function rangeOf(violation) {
  const times = [violation.begin, violation.end ?? violation.last ?? violation.begin, ...violation.explanation.map((p) => p.time)];
  const from = times.reduce((a, b) => Math.min(a, b));
  const until = times.reduce((a, b) => Math.max(a, b));
  const room = Math.max((until - from) * 0.4, 2);
  return [from - room, until + room];
}

const STATUS = { open: ["violated", "open"], stale: ["inconclusive", "stale: its source is gone"], ended: ["none", "ended"] };

export function statusOf(violation) {
  const [sign, text] = STATUS[violation.status] ?? ["none", violation.status];
  return el("span", { class: `badge is-${sign}` }, shape(sign), text);
}

/** The time until a violation was certain, if it was not at once. */
export function certainty(v) {
  return v.certain > v.begin ? el("span", {}, `certain after ${duration(v.certain - v.begin)}`) : null;
}

/** The list; a click selects a violation, in the address. */
export function violationList(answer, selected) {
  if (!answer.violations.length) return [el("h2", {}, "Violations"), empty("No violation in this time range.")];
  const items = answer.violations.map((v) => {
    const isSelected = v.id === selected?.id;
    const button = el("button", { type: "button", class: "violation", "aria-expanded": String(isSelected), onclick: () => select(isSelected ? null : v) },
      v.status ? statusOf(v) : null, el("span", { class: "when" }, timeOf(v.begin)), Number.isFinite(v.seconds) ? el("span", {}, `for ${duration(v.seconds)}`) : certainty(v), el("span", {}, v.count > 1 ? `${count(v.count)}×` : ""), el("span", { class: "params" }, parametersText(v.parameters, 60)),
      v.worst === null || v.worst === undefined ? null : el("span", { class: "params" }, `robustness ${number(v.worst)}`));
    return el("li", {}, button, isSelected ? explanation(v) : null);
  });
  const text = answer.note ?? (answer.total > items.length ? `The latest ${items.length} of ${count(answer.total)}.` : null);
  const more = text ? el("p", { class: "note" }, text) : null;
  return [el("h2", {}, "Violations"), el("ol", { class: "violations" }, items), more];
}

function select(violation) {
  if (!violation) return setQuery({ violation: null });
  const [from, until] = rangeOf(violation);
  setQuery({ violation: violation.id, from: from.toFixed(3), until: until.toFixed(3), range: null }, true);
}

const MOST_POINTS = 100;

/** The explanation of a violation as a table: time points and the values that caused it. */
export function explanation(violation) {
  const notes = [];
  if (violation.acknowledged_by) notes.push(`In the hands of ${plain(violation.acknowledged_by, 60)}${violation.comment ? `: ${plain(violation.comment, 200)}` : ""}.`);
  if (violation.because_of) notes.push(["Muted because of ", el("a", { href: link("property", violation.because_of) }, plain(violation.because_of, 80)), "."]);
  if (violation.silenced_until) notes.push(`Silenced until ${stamp(violation.silenced_until)}.`);
  if (violation.missing) notes.push(`The stamp did not reach ${plain(violation.missing, 80)}.`);
  for (const [name, value] of Object.entries(violation.values ?? {})) notes.push(`${plain(name, 60)} = ${valueText(value)}.`);
  const points = violation.explanation.slice(0, MOST_POINTS);
  const body = points.flatMap((point) => Object.entries(point.values).map(([name, value], i) => el("tr", {}, el("td", {}, i ? "" : [timeOf(point.time), point.after ? " (after)" : ""]), el("td", {}, el("code", {}, plain(name, 80))), el("td", {}, el("b", {}, valueText(value))))));
  const values = points.length ? el("table", { class: "explanation" }, el("thead", {}, el("tr", {}, ["time", "signal", "value"].map((h) => el("th", { scope: "col" }, h)))), el("tbody", {}, body)) : el("p", { class: "note" }, "Without an explanation: it was not recorded.");
  return el("div", { class: "why" }, fill(el("p", {}), notes.map((n) => [n, " "])), values, violation.explanation.length > MOST_POINTS ? el("p", { class: "note" }, `${violation.explanation.length - MOST_POINTS} more time points.`) : null);
}
