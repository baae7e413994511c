// The API over HTTP, and its stream of events: the data source of the served page.

import { ApiError } from "./api.js";
import { setServerTime } from "./time.js";
import { authorization } from "./token.js";

const BASE = "api/v1/";

/** `path` with percent-encoded parts and a query; values null, undefined and empty are left out. */
function address(path, query = {}) {
  const pairs = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const text = new URLSearchParams(pairs).toString();
  return BASE + [path].flat().map(encodeURIComponent).join("/") + (text ? `?${text}` : "");
}

const headers = (more = {}) => ({ ...authorization(), ...more });

const PATIENCE = 20_000; // milliseconds, for an answer with its body

async function request(url, { signal, ...options }, patience = PATIENCE) {
  const signals = [signal, patience ? AbortSignal.timeout(patience) : null].filter(Boolean);
  let response;
  try {
    // Not `omit`: the browser would withhold the certificate of the client, too. The server reads no cookies.
    response = await fetch(url, { cache: "no-store", credentials: "same-origin", signal: AbortSignal.any(signals), ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "the monitor does not answer");
  }
  if (!response.ok) throw new ApiError(response.status, await problem(response));
  return response;
}

async function problem(response) {
  try {
    return String((await response.json()).error);
  } catch {
    return `the monitor answers with status ${response.status}`;
  }
}

async function answer(response) {
  let body;
  try {
    body = await response.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "the answer was cut off");
  }
  if (Number.isFinite(body?.now)) setServerTime(body.now);
  return body;
}

async function get(path, query, signal) {
  return answer(await request(address(path, query), { signal, headers: headers() }));
}

async function post(path, body) {
  const options = { method: "POST", headers: headers({ "Content-Type": "application/json" }), body: JSON.stringify(body) };
  return answer(await request(address(path), options));
}

const MOST_WAITING = 4 << 20; // characters of one event

async function readEvents({ after, signal, onEvent, onAlive }) {
  const response = await request(address("events", { after }), { signal, headers: headers({ Accept: "text/event-stream" }) }, 0);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    onAlive();
    rest += value;
    const events = rest.split(/\r?\n\r?\n/);
    rest = events.pop();
    if (rest.length > MOST_WAITING) throw new ApiError(0, "an event is too long");
    for (const event of events) dispatch(event, onEvent);
  }
}

function dispatch(text, onEvent) {
  let name = "message";
  let id = null;
  const data = [];
  for (const line of text.split(/\r?\n/)) {
    const colon = line.indexOf(":");
    if (colon <= 0) continue;
    const value = line.slice(colon + 1).replace(/^ /, "");
    if (line.startsWith("event:")) name = value;
    else if (line.startsWith("data:")) data.push(value);
    else if (line.startsWith("id:")) id = value;
  }
  if (!data.length && id === null) return;
  let body = {};
  try {
    body = JSON.parse(data.join("\n") || "{}");
  } catch {
    return; // An event that is no JSON says nothing; silence is noticed by its age.
  }
  if (Number.isFinite(body?.now)) setServerTime(body.now);
  onEvent(name, body, id);
}

export const live = { get, post, readEvents };
