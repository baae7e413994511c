// The state that the stream keeps up to date: properties, the run, losses, and whether the page is connected at all.

import { ApiError, get, readEvents } from "./api.js";
import { getReached, head, range, setReached, setWholeRange } from "./route.js";
import { lastServerTime } from "./time.js";
import { BY_NUMBER, verdictOf } from "./verdicts.js";

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

/** Whether the monitor answers. */
export const isConnected = () => model.connection.state === "live";

/** Whether the page sees the present state: verdicts that it does not see are drawn without their colours. */
export const isSeen = () => isConnected() && behindSince() === null;

/** Since when verdicts are missing in the store that the page shows; `null` while it has all. */
export const behindSince = () => model.state?.behind_since ?? null;

/** Since when the page has not seen the present state; `null` while it does, and if it never has. */
export const unseenSince = () => (isConnected() ? behindSince() : model.connection.since);

function setConnection(state, problem = null) {
  const before = model.connection;
  if (before.state === state && before.problem === problem) return;
  const since = before.state === "live" ? lastServerTime() : before.since;
  model.connection = { state, problem, since };
  emit("connection");
}

const PAGE = 1000;
const MOST = 20_000; // properties
const LONGEST = 604_800; // seconds of a timeline
const MOST_WIDTH = 4096;
const TIMELINE_WIDTH = 240;

let loading = null;

/** Loads all properties with their timelines in the present range, and the losses in it. */
export function loadOverview() {
  loading ??= loadAll().finally(() => {
    loading = null;
  });
  return loading;
}

async function loadAll() {
  // Timelines of the API end at the last event: those of an earlier range are longer, and finer.
  const { from, until } = range();
  const seconds = Math.min(Math.max(1, Math.ceil(head() - from)), LONGEST);
  const width = Math.min(MOST_WIDTH, Math.ceil((TIMELINE_WIDTH * seconds) / Math.max(until - from, 1)));
  return loadRows({ seconds, width }, (row) => row);
}

/** Loads all rows; `take(row, before)` gives the row to keep. */
async function loadRows(query, take) {
  const rows = new Map();
  let first = null;
  for (let offset = 0; offset < MOST; offset += PAGE) {
    const page = await get("overview", { ...query, limit: PAGE, offset, sort: "name" });
    first ??= page;
    for (const row of page.properties) rows.set(row.name, take(row, model.properties.get(row.name)));
    if (offset + PAGE >= page.total || !page.properties.length) break;
  }
  setReached(first.reached);
  model.overview = { ...first, properties: null };
  model.properties = rows;
  wholeAt = performance.now();
  emit("properties");
  return first.event;
}

const WHOLE = 30_000; // milliseconds, after which an owner, a silence or a cause may have changed without a verdict
const MOST_NAMES = 6000; // characters in an address
const changed = new Set(); // names of properties with changes since the last load
let wholeAt = -Infinity;
let refreshing = null;

/** Loads the present rows of changed properties without timelines, at most once in a while. */
function refresh() {
  refreshing ??= new Promise((resolve) => setTimeout(resolve, model.properties.size > 200 ? 3000 : 700))
    .then(() => loading)
    .then(loadChanged)
    .catch(() => {
      wholeAt = -Infinity; // The next change, or the connection, brings all of it up again.
    })
    .finally(() => {
      refreshing = null;
      if (changed.size) refresh();
    });
}

async function loadChanged() {
  const names = JSON.stringify([...changed]);
  changed.clear();
  if (performance.now() - wholeAt > WHOLE || encodeURIComponent(names).length > MOST_NAMES) return loadRows({ width: 0 }, keepTimeline);
  const page = await get("overview", { width: 0, limit: PAGE, properties: names });
  setReached(page.reached);
  model.overview = { ...page, properties: null };
  for (const row of page.properties) model.properties.set(row.name, keepTimeline(row, model.properties.get(row.name)));
  emit("properties");
  return null;
}

/** A row with the timeline of the one before. */
function keepTimeline(row, before) {
  if (before?.timeline && row.verdict !== before.verdict) extend(before.timeline, row.verdict, row.since);
  return { ...row, timeline: before?.timeline ?? null };
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
  const before = behindSince();
  model.state = state;
  setReached(state.reached);
  emit("state");
  if (behindSince() !== before) emit("connection");
}

/** Takes changes of instances. A violation counts for its property at once; what else an instance says of it, the API knows. */
function takeChanges(changes) {
  setReached(changes.reached);
  for (const change of changes.changes ?? []) {
    changed.add(change.property);
    const row = model.properties.get(change.property);
    if (!row || row.verdict === change.verdict) continue;
    const isWhole = row.instances.total <= 1 && !Object.keys(change.parameters).length;
    if (!isWhole && change.verdict !== "violated") continue;
    if (row.timeline) extend(row.timeline, change.verdict, change.time);
    model.properties.set(row.name, { ...row, verdict: change.verdict, since: change.time, ...(change.verdict === "violated" ? NO_OWNER : {}) });
  }
  emit("properties");
  refresh();
}

// A violation that has just begun is in the hands of no operator yet.
const NO_OWNER = { acknowledged_by: null, because_of: null };

function extend(timeline, verdict, time) {
  const last = timeline.times.at(-1) ?? -Infinity;
  timeline.times.push(Math.max(time ?? getReached() ?? 0, last));
  timeline.verdicts.push(BY_NUMBER.indexOf(verdictOf(verdict)));
  const surplus = timeline.times.length - MOST_WIDTH;
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
      if (model.connection.state === "ended") attempt = RETRY.length;
      else setConnection("lost", "the monitor has closed the connection");
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

let isFitted = false;

/** Makes the usual range of a recording the whole of it. */
async function fitRecording() {
  if (isFitted) return;
  const { reached, properties } = await get("overview", { seconds: LONGEST, width: MOST_WIDTH, limit: 100 });
  const begins = properties.flatMap(({ timeline }) => timeline.times.filter((_, i) => timeline.verdicts[i] !== 3).slice(0, 1));
  if (begins.length && reached !== null) setWholeRange((reached - Math.min(...begins)) * 1.01);
  isFitted = true;
}

async function session() {
  abort = new AbortController();
  const [after] = await Promise.all([loadOverview(), loadState(), loadLosses()]);
  if (model.state.kind === "check" && !isFitted) {
    await fitRecording();
    await Promise.all([loadOverview(), loadLosses()]);
  }
  const hadBefore = model.connection.state !== "connecting";
  await readEvents({
    after,
    signal: abort.signal,
    onAlive: isAlive,
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
    setReached(data.reached);
  } else if (name === "changes") takeChanges(data);
  else if (name === "state") takeState(data);
  else if (name === "reset") {
    Promise.all([loadOverview(), loadState(), loadLosses()]).then(() => emit("reset"), () => abort?.abort());
  } else if (name === "end") setConnection("ended");
}

const SILENCE = 3; // seconds after which the page requests a sign of life
const NO_ANSWER = 3; // seconds that it waits
let probing = null;

/** Notices silence: a connection on which nothing arrives, and no answer, is lost, whatever the network says. */
function watch() {
  if (model.connection.state !== "live" || lastAlive === null) return;
  const silence = Math.max(performance.now() - lastAlive, Date.now() - lastAliveWall) / 1000;
  if (silence > SILENCE) probing ??= probe();
}

async function probe() {
  try {
    takeState(await get("state", {}, AbortSignal.timeout(NO_ANSWER * 1000)));
    isAlive();
  } catch {
    setConnection("lost", "nothing arrives from the monitor");
    abort?.abort();
  } finally {
    probing = null;
  }
}

function isAlive() {
  lastAlive = performance.now();
  lastAliveWall = Date.now();
}
