// Times: seconds, as in the API. The page counts from the server's clock: that of the browser may be a day off.

import { keep, recall } from "./preferences.js";

let zone = recall("zone") === "utc" ? "utc" : "local";
let base = null; // { server (seconds), monotonic, wall (milliseconds) }

/** Takes the server's time of day, seconds since the Unix epoch. */
export function setServerTime(server) {
  base = { server, monotonic: performance.now(), wall: Date.now() };
}

/** Seconds since the server's time was last received. A suspended machine stops the monotonic clock, not the other. */
export function sinceServer() {
  if (!base) return Infinity;
  return Math.max(performance.now() - base.monotonic, Date.now() - base.wall) / 1000;
}

/** The server's present time; before its first answer, the browser's. */
export function now() {
  return base ? base.server + (performance.now() - base.monotonic) / 1000 : Date.now() / 1000;
}

/** The last time that the server gave. */
export function lastServerTime() {
  return base ? base.server : null;
}

export function getZone() {
  return zone;
}

export function setZone(next) {
  zone = next;
  keep("zone", next);
}

const two = (n) => String(n).padStart(2, "0");

function parts(time) {
  const d = new Date(Math.round(time * 1000));
  return zone === "utc"
    ? [d.getUTCFullYear(), d.getUTCMonth() + 1, d.getUTCDate(), d.getUTCHours(), d.getUTCMinutes(), d.getUTCSeconds(), d.getUTCMilliseconds()]
    : [d.getFullYear(), d.getMonth() + 1, d.getDate(), d.getHours(), d.getMinutes(), d.getSeconds(), d.getMilliseconds()];
}

const DAY = 86_400;
// Recordings without dates count from zero: their times are seconds, not days of 1970.
const RELATIVE = 1000 * DAY;
const LAST = 8.64e12;

/** Whether a time is a position in a recording and not a date. */
export function isRelative(time) {
  return Math.abs(time) < RELATIVE;
}

const isTime = (time) => Number.isFinite(time) && Math.abs(time) < LAST;

/** `14:03:22.120`, with the date if it is not today's; `12.5 s` in recordings that count from zero. */
export function clock(time, { date = null, fraction = true } = {}) {
  if (!isTime(time)) return "–";
  if (isRelative(time)) return `${trim(time.toFixed(3))} s`;
  const [year, month, day, h, m, s, f] = parts(time);
  const text = `${two(h)}:${two(m)}:${two(s)}${fraction && f ? "." + String(f).padStart(3, "0") : ""}`;
  const today = parts(now());
  const isToday = year === today[0] && month === today[1] && day === today[2];
  return (date ?? !isToday) ? `${year}-${two(month)}-${two(day)} ${text}` : text;
}

/** Date, time and zone: for titles and tables of one event. */
export function stamp(time) {
  if (!isTime(time)) return "–";
  return isRelative(time) ? clock(time) : `${clock(time, { date: true })} ${zoneName(time)}`;
}

/** `UTC`, or the offset of the local zone at a time, such as `UTC+01:00`. */
export function zoneName(time = now()) {
  if (zone === "utc") return "UTC";
  const offset = -new Date(time * 1000).getTimezoneOffset();
  const size = Math.abs(offset);
  return `UTC${offset < 0 ? "−" : "+"}${two(Math.floor(size / 60))}:${two(size % 60)}`;
}

const trim = (text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);

/** `0.25 s`, `12 s`, `3 min 5 s`, `2 h 10 min`, `4 d 3 h`. */
export function duration(seconds) {
  if (!Number.isFinite(seconds)) return "–";
  const sign = seconds < 0 ? "−" : "";
  const s = Math.abs(seconds);
  if (s < 0.001) return s === 0 ? "0 s" : `${sign}${trim((s * 1000).toFixed(3))} ms`;
  if (s < 1) return `${sign}${trim((s * 1000).toFixed(s < 0.01 ? 1 : 0))} ms`;
  if (s < 60) return `${sign}${trim(s.toFixed(s < 10 ? 1 : 0))} s`;
  const whole = Math.floor(s);
  const [size, unit, less, part] = whole < 3600 ? [60, "min", 1, "s"] : whole < DAY ? [3600, "h", 60, "min"] : [DAY, "d", 3600, "h"];
  const rest = Math.floor((whole % size) / less);
  return `${sign}${Math.floor(whole / size)} ${unit}${rest ? ` ${rest} ${part}` : ""}`;
}

/** Ticks of a time axis: about one for every `spacing` pixels of `width`, as `[time, label]`. */
export function ticks(from, to, width, spacing = 90) {
  const wanted = Math.max(1, width / spacing);
  const step = STEPS.find((s) => (to - from) / s <= wanted) ?? Math.ceil((to - from) / wanted / (365 * DAY)) * 365 * DAY;
  const shift = isRelative(to) || zone === "utc" ? 0 : new Date(from * 1000).getTimezoneOffset() * 60;
  const list = [];
  for (let t = Math.ceil((from - shift) / step) * step + shift; t <= to && list.length < 200; t += step) list.push([t, tickLabel(t, step)]);
  return list;
}

const STEPS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, DAY, 2 * DAY, 7 * DAY, 30 * DAY];

function tickLabel(t, step) {
  if (isRelative(t)) return `${trim(t.toFixed(3))} s`;
  const [, month, day, h, m, s, f] = parts(t);
  if (step >= DAY) return `${two(month)}-${two(day)}`;
  if (step >= 60) return h === 0 && m === 0 ? `${two(month)}-${two(day)}` : `${two(h)}:${two(m)}`;
  if (step >= 1) return `${two(h)}:${two(m)}:${two(s)}`;
  return `:${two(s)}.${String(f).padStart(3, "0")}`;
}

/** A number for people: six significant digits, no trailing zeros. */
export function number(value) {
  if (typeof value !== "number") return value === null || value === undefined ? "–" : String(value);
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "NaN" : value > 0 ? "∞" : "−∞";
  const text = Math.abs(value) >= 1e9 || (value !== 0 && Math.abs(value) < 1e-4) ? value.toExponential(3) : trim(Number(value.toPrecision(6)).toString());
  return text.replace("-", "−");
}

/** `1,234,567`, of a whole number. The formats of the browser would take tens of milliseconds when first used. */
export function count(n) {
  return n === null || n === undefined ? "–" : String(n).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** A number with its noun: `1 property`, `2,000 properties`. */
export function counted(n, one, many = `${one}s`) {
  return `${count(n)} ${n === 1 ? one : many}`;
}
