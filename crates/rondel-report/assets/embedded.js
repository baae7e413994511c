// The data of a report, from its document, as answers of the API.

import { ApiError } from "../page/api.js";
import { current, onRoute, setReached, setWholeRange } from "../page/route.js";
import { count, isRelative, setServerTime } from "../page/time.js";
import { verdictOf } from "../page/verdicts.js";
import { violationOf } from "../page/violations.js";

/** The report, as rondel-report writes it. Its times are seconds since the beginning of the recording. */
export const report = JSON.parse(document.getElementById("report").textContent);

/** Position in the address of the recording to show. */
export const named = () => Number(current().query.get("recording") ?? 0);

/** Position of the recording that the page shows: the first one if the address names one that the report does not have. */
export function chosen() {
  const number = named();
  return Object.hasOwn(report.recordings, number) ? number : 0;
}

const NO_RECORDING = { name: "", problem: null, remarks: [], events: 0, begin: null, length: 0, losses: [], properties: [], signals: [] };

/** The recording that the page shows. */
export const recording = () => report.recordings[chosen()] ?? NO_RECORDING;

/** Beginning and end of a recording, in seconds. */
export const spanOf = ({ begin, length }) => [begin ?? 0, (begin ?? 0) + length];

/** The reasons for an outcome, as one text. */
function remarkOf(judged) {
  return [judged.is_asserted ? "an assert decides" : "", judged.remark, ...judged.vacuous].filter(Boolean).join("; ");
}

function timelineOf(judged, begin) {
  return { times: judged.times.map((time) => begin + time), verdicts: judged.verdicts };
}

/** A property with its result in the present recording. */
function found(name) {
  const at = report.properties.findIndex((claim) => claim.name === name);
  if (at < 0) throw new ApiError(404, `the report has no property \`${name}\``);
  return [report.properties[at], recording().properties[at] ?? null];
}

function rowOf(claim, judged, begin) {
  return {
    name: claim.name, verdict: verdictOf(judged.outcome), since: null, severity: claim.severity ?? "", requirement: claim.requirements.join(", "),
    violations: judged.count, violated_seconds: judged.violated ?? null, remark: remarkOf(judged), instances: { total: 1, violated: 0, inconclusive: 0 }, networks: [],
    acknowledged_by: null, silenced_until: null, because_of: null, timeline: timelineOf(judged, begin),
  };
}

const distinct = (values) => [...new Set(values)].sort();

function overview({ offset = 0, limit = 1000 }) {
  const { properties } = recording();
  const [begin, end] = spanOf(recording());
  // A recording that could not be read has no results.
  const rows = report.properties.slice(0, properties.length).map((claim, i) => rowOf(claim, properties[i], begin));
  return {
    total: rows.length, reached: end, event: 0, properties: rows.slice(offset, offset + limit), networks: [],
    severities: distinct(report.properties.map((claim) => claim.severity).filter(Boolean)), requirements: distinct(report.properties.flatMap((claim) => claim.requirements)),
  };
}

function state() {
  return { kind: "report", name: report.specification, is_ready: true, reasons: [], reached: spanOf(recording())[1], behind_since: null, has_playground: false, build: { version: report.version } };
}

/** Number of lines before a file in the text of all files. */
function linesBefore(file) {
  let lines = 0;
  for (const own of report.files) {
    if (own.name === file) return lines;
    lines += own.text.replace(/\n$/, "").split("\n").length + 1;
  }
  return null;
}

/** The line of a property in the text of all files. */
function lineOf(claim) {
  const before = claim.line === null ? null : linesBefore(claim.file ?? report.specification);
  return before === null ? null : before + claim.line + (report.files.length > 1 ? 1 : 0);
}

function specification() {
  const several = report.files.length > 1;
  const texts = report.files.map((file) => `${several ? `// ${file.name}\n` : ""}${file.text.replace(/\n$/, "")}`);
  const properties = report.properties.map((claim) => ({ name: claim.name, line: lineOf(claim) })).filter((place) => place.line !== null);
  return { text: texts.join("\n"), properties, topics: [] };
}

function property(name) {
  const [claim, judged] = found(name);
  const attributes = [...claim.requirements.map((value) => ({ name: "requirement", value })), ...(claim.severity ? [{ name: "severity", value: claim.severity }] : [])];
  return {
    reached: spanOf(recording())[1], summary: judged ? rowOf(claim, judged, spanOf(recording())[0]) : null, text: claim.text, line: lineOf(claim), attributes,
    parameters: [], topics: [], definitions: [], atoms: [], is_live: false,
  };
}

function losses({ from = null, until = null }) {
  const [begin] = spanOf(recording());
  const all = recording().losses.map((loss) => ({ reason: "messages missed", subject: `verdicts of ${loss.properties.join(", ")}`, count: null, from: begin + loss.from, until: begin + loss.until, is_blind: true }));
  const shown = all.filter((loss) => (from === null || loss.until >= from) && (until === null || loss.from <= until));
  return { total: shown.length, offset: 0, losses: shown };
}

function verdicts(name) {
  const [, judged] = found(name);
  const [begin, end] = spanOf(recording());
  return { reached: end, timeline: judged ? timelineOf(judged, begin) : { times: [], verdicts: [] }, robustness: null, losses: [], is_complete: true };
}

/** Values within a time range, with the one that holds at its beginning. */
function cut(signal, begin, from, until) {
  const times = signal.times.map((time) => begin + time);
  const first = Math.max(0, times.findLastIndex((time) => time <= (from ?? -Infinity)));
  const end = times.findIndex((time) => time > (until ?? Infinity));
  const part = (list) => list.slice(first, end < 0 ? undefined : end);
  const origin = signal.unit === "time" ? begin : 0;
  const shift = (list) => part(list).map((value) => (value === null ? null : value - origin));
  const values = signal.kind === "text" ? { texts: part(signal.texts) } : { least: shift(signal.least), greatest: shift(signal.greatest ?? signal.least), thresholds: signal.thresholds.map((value) => value - origin) };
  return { kind: signal.kind, name: signal.name, times: part(times), ...values };
}

const UNITS = { time: " (seconds from the beginning)", duration: " (seconds)" };

/** A signal over the whole recording, whose name ends with the parameters of its instance, as one of this instance. */
function ofInstance(signal, judged) {
  const [, name, parameters] = /^(.*?)(\[.*\])$/s.exec(signal.name) ?? [];
  return judged?.violations.some((v) => v.parameters === parameters) ? { ...signal, name, parameters } : signal;
}

/** The signals of a property. Those over the whole recording replace those before violations. */
function signalsOf(claim, judged) {
  const known = judged?.signals ?? [];
  const all = recording().signals;
  if (!all.length) return known;
  const own = all.filter(({ name }) => claim.text.includes(name.split("[")[0]) || known.some((signal) => name.startsWith(signal.name)));
  return own.map((signal) => ofInstance(signal, judged));
}

function signals(name, { from = null, until = null }) {
  const [claim, judged] = found(name);
  const [begin] = spanOf(recording());
  const own = signalsOf(claim, judged);
  const list = own.map((signal) => ({
    ...cut(signal, begin, from, until), title: `${signal.name}${signal.parameters ?? ""}${UNITS[signal.unit] ?? ""}`, ...(signal.parameters ? { parameters: signal.parameters } : {}),
  }));
  return { sampled: false, note: recording().signals.length || !list.length ? null : "Signals are kept up to each violation.", signals: list.filter((signal) => signal.times.length) };
}

/** The violations of a property in the present recording that the report has. */
export function violationsOf(judged) {
  const [begin] = spanOf(recording());
  return judged.violations.map((v, i) => {
    const evidence = v.points.map(([time, after, topic, ...texts]) => ({ time: begin + time, after: Boolean(after), topic, values: Object.fromEntries(v.names.map((name, k) => [name, texts[k] ?? null])) }));
    return { ...violationOf(i + 1, { time: begin + v.time, certain: begin + v.certain, parameters: v.parameters, values: Object.fromEntries(v.values), evidence }), count: 1 };
  });
}

function violations({ property: name, from = null, until = null, limit = 100 }) {
  const [, judged] = found(name);
  const all = judged ? violationsOf(judged) : [];
  const shown = all.filter((v) => (from === null || v.begin >= from) && (until === null || v.begin <= until)).slice(0, limit);
  const total = judged?.count ?? 0;
  const note = total > all.length ? `This report has the first ${all.length} of ${count(total)} violations.` : "";
  const few = shown.length < all.length ? ` ${shown.length} of ${all.length} are in this time range.` : "";
  return { total, offset: 0, violations: shown, note: `${note}${few}`.trim() };
}

const INSTANCES = { total: 0, offset: 0, counts: { total: 0, satisfied: 0, violated: 0, inconclusive: 0 }, instances: [], is_complete: true };

const ANSWERS = {
  overview, state, losses, specification, violations,
  properties: (query, name, part) => ({ verdicts: () => verdicts(name), signals: () => signals(name, query), instances: () => INSTANCES }[part] ?? (() => property(name)))(),
};

async function get(path, query = {}) {
  const [first, ...rest] = [path].flat();
  if (!Object.hasOwn(ANSWERS, first)) throw new ApiError(404, "a report does not have this");
  return ANSWERS[first](query, ...rest);
}

async function post() {
  throw new ApiError(404, "a report cannot be changed");
}

/** Makes the usual range that of the present recording. */
function fit() {
  const [begin, end] = spanOf(recording());
  setReached(end);
  // Times of the day on which the recording ends have no date.
  if (!isRelative(end)) setServerTime(end);
  setWholeRange((end - begin) * 1.01);
}

/** There are no events; another recording is a new beginning. */
function readEvents({ onEvent, signal }) {
  let shown = chosen();
  onRoute(() => {
    if (chosen() === shown || signal.aborted) return;
    shown = chosen();
    fit();
    onEvent("reset", {});
  });
  onEvent("hello", {});
  return new Promise(() => {});
}

fit();
export const embedded = { get, post, readEvents };
