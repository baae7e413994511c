// The address of the page: view, thing, time range and selection are in its fragment, so that a link shows the same.

import { isRelative, now } from "./time.js";
import { setToken } from "./token.js";

const listeners = new Set();
takeToken();
let route = parse(location.hash);

/** Moves a token from the address into the storage of the session: neither history nor links keep it. */
function takeToken() {
  const given = /[#&?]token=([^&]+)/.exec(location.hash);
  if (!given) return;
  setToken(decode(given[1]));
  const rest = location.hash.replace(given[0], given[0][0] === "&" ? "" : given[0][0]).replace("?&", "?").replace(/\?$/, "");
  history.replaceState(null, "", rest.length > 1 ? rest : "#/overview");
}

/** `#/property/NAME?range=600` as `{ view, name, query }`. */
function parse(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const [view, name = null] = path.split("/").map(decode);
  return { view: view || "overview", name, query: new URLSearchParams(query) };
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function current() {
  return route;
}

const KEPT = ["range", "from", "until", "recording"]; // by every link to another view

/** A link to a view that keeps the time range and the recording. */
export function link(view, name = null, query = {}) {
  const kept = new URLSearchParams();
  for (const key of KEPT) if (route.query.has(key)) kept.set(key, route.query.get(key));
  for (const [key, value] of Object.entries(query)) put(kept, key, value);
  return format(view, name, kept);
}

function put(query, key, value) {
  if (value === null || value === undefined || value === "" || value === false) query.delete(key);
  else query.set(key, String(value));
}

function format(view, name, query) {
  const text = query.toString();
  return `#/${view}${name === null ? "" : "/" + encodeURIComponent(name)}${text ? "?" + text : ""}`;
}

/** Changes members of the query of this address; a further entry of the history only if `push`. */
export function setQuery(changes, push = false) {
  const query = new URLSearchParams(route.query);
  for (const [key, value] of Object.entries(changes)) put(query, key, value);
  const next = format(route.view, route.name, query);
  if (next === format(route.view, route.name, route.query)) return;
  history[push ? "pushState" : "replaceState"](null, "", next);
  follow();
}

/** Shows an address, in place of the present one if `replaces`. */
export function go(address, replaces = false) {
  if (location.hash === address) return;
  history[replaces ? "replaceState" : "pushState"](null, "", address);
  follow();
}

function follow() {
  route = parse(location.hash);
  for (const listener of listeners) listener(route);
}

export function onRoute(listener) {
  listeners.add(listener);
}

window.addEventListener("popstate", follow);
window.addEventListener("hashchange", () => {
  if (format(route.view, route.name, route.query) !== location.hash) follow();
});

// --- the time range

export const RANGES = [60, 300, 600, 1800, 3600, 21_600, 86_400, 604_800];
let usual = 600; // seconds, of an address without a range
let isWhole = false;
const LEAST = 0.001;

/** Makes the range of an address without one that of a whole recording. */
export function setWholeRange(seconds) {
  usual = Math.min(Math.max(1, round(seconds)), 604_800);
  isWhole = true;
}

/** Whether the usual range is a whole recording: no event follows. */
export const isRecorded = () => isWhole;

let reached = null;

/** Takes the latest event time that the server has evaluated. */
export function setReached(time) {
  if (Number.isFinite(time)) reached = time;
}

export function getReached() {
  return reached;
}

/** The present end of timelines: of a live run the server's time, of anything else the last event. */
export function head() {
  if (reached === null) return now();
  if (isWhole) return reached;
  return !isRelative(reached) && Math.abs(now() - reached) < 60 ? Math.max(now(), reached) : reached;
}

/** The time range of this address: `{ from, until, follows }`. It follows new events if the address has no `until`. */
export function range() {
  const from = Number.parseFloat(route.query.get("from"));
  const until = Number.parseFloat(route.query.get("until"));
  if (Number.isFinite(from) && Number.isFinite(until) && until > from) return { from, until, follows: false };
  const length = Number.parseFloat(route.query.get("range"));
  const end = head();
  return { from: end - (length > 0 ? Math.min(length, 604_800) : usual), until: end, follows: true };
}

const round = (time) => Number(time.toFixed(4));

export function setRange(from, until) {
  if (!(until - from >= LEAST)) return;
  setQuery({ from: round(from), until: round(until), range: null });
}

/** Follows new events again, with a range of so many seconds; of a recording, shows its end, or all of it. */
export function followLive(seconds = null) {
  const { from, until } = range();
  const length = seconds ?? (isWhole ? usual : Math.min(Math.max(until - from, 1), 604_800));
  setQuery({ from: null, until: null, range: length === usual ? null : round(length) });
}

/** Makes the range longer (`factor` above 1) or shorter around a time. */
export function zoom(factor, center = null) {
  const { from, until, follows } = range();
  if (follows && center === null) return followLive(Math.max(1, (until - from) * factor));
  const middle = center ?? (from + until) / 2;
  setRange(middle - (middle - from) * factor, middle + (until - middle) * factor);
}

/** Moves the range by a fraction of its length. */
export function pan(fraction) {
  const { from, until } = range();
  const by = (until - from) * fraction;
  if (until + by >= head()) followLive(until - from);
  else setRange(from + by, until + by);
}
