// The state that the stream keeps up to date: properties, the run, losses, and whether the page is connected at all.

import { ApiError, get, readEvents } from "./api.js";
import { BY_NUMBER } from "./verdicts.js";
import { getReached, range, setReached } from "./route.js";
import { lastServerTime } from "./time.js";

/** Present state. `connection.state`: `connecting`, `live`, `lost`, `ended`, or `denied` (a token is needed). */
export const model = {
  properties: new Map(),
  overview: null, // the last answer, without its properties
  state: null,
  losses: [],
  connection: { state: "connecting", since: null, problem: null },
  version: 0, // advances with each change of properties
};

const listeners = new Set();
/** Calls `listener(kind)`: `properties`, `state`, `losses`, `connection` or `reset`. Returns the removal. */
export function onChange(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function emit(kind) {
  if (kind === "properties") model.version += 1;
  for (const listener of listeners) listener(kind);
}

/** Whether the page sees the present state: verdicts that it does not see are drawn without their colours. */
export const isSeen = () => model.connection.state === "live";

function setConnection(state, problem = null) {
  const before = model.connection;
  if (before.state === state && before.problem === problem) return;
  const since = before.state === "live" ? lastServerTime() : before.since;
  model.connection = { state, problem, since };
  emit("connection");
}

const PAGE = 1000;
const MOST = 20_000; // properties
export const TIMELINE_WIDTH = 240;

let loading = null;

/** Loads all properties with their timelines in the present range, and the losses in it. */
export function loadOverview() {
  loading ??= loadAll().finally(() => {
    loading = null;
  });
  return loading;
}

async function loadAll() {
  const { from, until, follows } = range();
  const seconds = Math.min(Math.max(until - from, 1), 604_800);
  const rows = new Map();
  let first = null;
  for (let offset = 0; offset < MOST; offset += PAGE) {
    const page = await get("overview", { seconds, until: follows ? null : until, width: TIMELINE_WIDTH, limit: PAGE, offset, sort: "name" });
    first ??= page;
    for (const row of page.properties) rows.set(row.name, row);
    if (offset + PAGE >= page.total || !page.properties.length) break;
  }
  setReached(first.reached);
  model.overview = { ...first, properties: null };
  model.properties = rows;
  emit("properties");
  return first.event;
}

/** Loads the losses of the present range. */
export async function loadLosses() {
  const { from, until, follows } = range();
  const answer = await get("losses", { from, until: follows ? null : until, limit: 1000 });
  model.losses = answer.losses;
  emit("losses");
}

export async function loadState() {
  takeState(await get("state"));
}

function takeState(state) {
  model.state = state;
  setReached(state.reached);
  emit("state");
}

function takeChanges(changes) {
  setReached(changes.reached);
  for (const row of changes.properties ?? []) {
    const before = model.properties.get(row.name);
    const timeline = before?.timeline ?? null;
    if (timeline && row.verdict !== before.verdict) extend(timeline, row);
    model.properties.set(row.name, { ...before, ...row, timeline });
  }
  emit("properties");
}

function extend(timeline, row) {
  const last = timeline.times.at(-1) ?? -Infinity;
  timeline.times.push(Math.max(row.since ?? getReached(), last));
  timeline.verdicts.push(Math.max(0, BY_NUMBER.indexOf(row.verdict ?? "none")));
  const surplus = timeline.times.length - 4 * TIMELINE_WIDTH;
  if (surplus > 0) {
    timeline.times.splice(0, surplus);
    timeline.verdicts.splice(0, surplus);
  }
}

let counted = { version: -1, counts: null };

/** Number of properties by verdict. */
export function counts() {
  if (counted.version !== model.version) {
    const numbers = { violated: 0, inconclusive: 0, none: 0, satisfied: 0 };
    for (const row of model.properties.values()) numbers[row.verdict ?? "none"] += 1;
    counted = { version: model.version, counts: numbers };
  }
  return counted.counts;
}

// --- the connection

const RETRY = [0.25, 0.5, 1, 2, 4]; // seconds
let heartbeat = 10;
let attempt = 0;
let abort = null;
let wake = null;
let stopped = false;

/** Connects, and connects again for as long as the page is open. */
export async function connect() {
  setInterval(watch, 500);
  document.addEventListener("visibilitychange", watch);
  window.addEventListener("online", () => retryNow());
  while (!stopped) {
    try {
      await session();
      if (model.connection.state !== "ended") setConnection("lost", "the monitor has closed the connection");
    } catch (error) {
      if (model.connection.state === "ended") attempt = RETRY.length;
      else if (error.name === "AbortError") setConnection("lost", "nothing arrives from the monitor");
      else if (error instanceof ApiError && error.status === 401) setConnection("denied", error.message);
      else setConnection("lost", error.message);
    }
    const delay = RETRY[Math.min(attempt, RETRY.length - 1)];
    attempt += 1;
    await new Promise((resolve) => {
      wake = resolve;
      setTimeout(resolve, model.connection.state === "denied" ? 60_000 : delay * 1000);
    });
  }
}

/** Connects again without waiting. */
export function retryNow() {
  attempt = 0;
  wake?.();
}

async function session() {
  abort = new AbortController();
  const [after] = await Promise.all([loadOverview(), loadState(), loadLosses()]);
  const hadBefore = model.connection.state !== "connecting";
  await readEvents({
    after,
    signal: abort.signal,
    onAlive: () => {
      lastAlive = performance.now();
      lastAliveWall = Date.now();
    },
    onEvent: (name, data) => {
      take(name, data);
      if (model.connection.state !== "live" && name !== "end") {
        attempt = 0;
        setConnection("live");
        if (hadBefore) emit("reset");
      }
    },
  });
}

let lastAlive = null;
let lastAliveWall = null;

function take(name, data) {
  if (name === "hello") {
    heartbeat = Number.isFinite(data.heartbeat) && data.heartbeat > 0 ? data.heartbeat : 10;
    setReached(data.reached);
  } else if (name === "changes") takeChanges(data);
  else if (name === "state") takeState(data);
  else if (name === "reset") {
    Promise.all([loadOverview(), loadState(), loadLosses()]).then(() => emit("reset"), () => abort?.abort());
  } else if (name === "end") setConnection("ended");
}

/** Notices silence: a connection on which nothing arrives is lost, whatever the network says. */
function watch() {
  if (model.connection.state !== "live" || lastAlive === null) return;
  const silence = Math.max(performance.now() - lastAlive, Date.now() - lastAliveWall) / 1000;
  if (silence > 2.5 * heartbeat + 0.5) {
    setConnection("lost", "nothing arrives from the monitor");
    abort?.abort();
  }
}
