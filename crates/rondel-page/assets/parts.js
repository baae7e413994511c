// Parts that several views use: badges of verdicts, parameters, the control of the time range, messages about problems.

import { el, fill, plain, setAttribute, setShape, setText, shape } from "./dom.js";
import { RANGES, followLive, head, isRecorded, link, pan, range, zoom } from "./route.js";
import { clock, duration, isRelative, number, stamp, zoneName } from "./time.js";
import { WORDS, verdictOf } from "./verdicts.js";

/** A verdict as shape and word. `set(verdict)` changes it. */
export function badge(verdict = null) {
  const sign = shape("none");
  const word = el("span", { class: "word" });
  const element = el("span", { class: "badge" }, sign, word);
  const set = (next) => {
    const name = verdictOf(next);
    setShape(sign, name);
    setText(word, WORDS[name]);
    setAttribute(element, "class", `badge is-${name}`);
  };
  set(verdict);
  return { element, set };
}

/** Parameters of an instance in one line: `robot=7, zone="a"`; those of a checked recording are a text already. */
export function parametersText(parameters, limit = 160) {
  if (typeof parameters === "string") return plain(parameters, limit);
  return plain(Object.entries(parameters ?? {}).map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`).join(", "), limit);
}

/** A value that is a text for people already, such as a duration. */
export class Written {
  constructor(text) {
    this.text = text;
  }
}

/** A value of a message in one line. */
export function valueText(value, limit = 80) {
  if (value === null || value === undefined) return "unknown";
  if (typeof value === "number") return number(value);
  if (typeof value === "string") return `"${plain(value, limit)}"`;
  if (typeof value === "boolean") return String(value);
  if (value instanceof Written) return plain(value.text, limit);
  return plain(JSON.stringify(value), limit);
}

/** The time that has passed since an event time, on the server's clock; of recordings, to their end. */
export function age(time) {
  return Number.isFinite(time) ? duration(Math.max(0, head() - time)) : "–";
}

/** An element with a time, and date and zone as its title. */
export function timeOf(time, options) {
  return el("time", { title: stamp(time), datetime: Number.isFinite(time) && !isRelative(time) && Math.abs(time) < 8e12 ? new Date(time * 1000).toISOString() : null }, clock(time, options));
}

/** A message about a request that failed. */
export function problem(error) {
  const text = error?.message ?? String(error);
  return el("p", { class: "problem", role: "alert" }, shape("inconclusive"), ` ${text.charAt(0).toUpperCase()}${plain(text.slice(1), 400)}`);
}

export function empty(...text) {
  return el("p", { class: "empty" }, text);
}

/** A link to the view of a property. */
export function propertyLink(name, query = {}) {
  return el("a", { href: link("property", name, query), class: "name" }, plain(name));
}

const NAMES = new Map([[60, "1 min"], [300, "5 min"], [600, "10 min"], [1800, "30 min"], [3600, "1 h"], [21_600, "6 h"], [86_400, "1 d"], [604_800, "7 d"]]);

/** The control of the time range. `update()` shows the present one. */
export function rangeControl() {
  const choice = el("select", { "aria-label": "Length of the time range", onchange: () => choice.value && followLive(Number(choice.value)) });
  const live = el("button", { type: "button", class: "live", onclick: () => followLive() }, "Live");
  const text = el("span", { class: "range-text" });
  const button = (label, title, act) => el("button", { type: "button", class: "icon", title, "aria-label": title, onclick: act }, label);
  const element = el("div", { class: "range", role: "group", "aria-label": "Time range" },
    button("‹", "Earlier (left arrow)", () => pan(-0.5)), button("−", "Zoom out (-)", () => zoom(2)), choice,
    button("+", "Zoom in (+)", () => zoom(0.5)), button("›", "Later (right arrow)", () => pan(0.5)), live, text);
  const update = () => {
    const { from, until, follows } = range();
    const length = Number((until - from).toPrecision(6));
    const known = NAMES.has(length) && follows;
    const options = `${length} ${follows}`;
    if (choice.dataset.options !== options) {
      choice.dataset.options = options;
      fill(choice, known ? null : el("option", { value: "" }, duration(length)), RANGES.map((seconds) => el("option", { value: seconds }, NAMES.get(seconds))));
      choice.value = known ? String(length) : "";
    }
    setAttribute(live, "aria-pressed", String(follows));
    setText(live, isRecorded() ? "All" : isRelative(until) ? "End" : "Live");
    text.classList.toggle("is-fixed", !follows);
    setText(text, follows ? (isRelative(until) ? "" : zoneName()) : `${clock(from, { fraction: length < 60 })} – ${clock(until, { fraction: length < 60 })}`);
  };
  update();
  return { element, update };
}

/** A select of texts, with an entry for all of them. */
export function choiceOf(label, all, onchange) {
  const element = el("select", { "aria-label": label, onchange: () => onchange(element.value) });
  let shown = null;
  const update = (values, value) => {
    const list = value && !values.includes(value) ? [...values, value] : values;
    const key = JSON.stringify(list);
    if (key !== shown) {
      shown = key;
      fill(element, el("option", { value: "" }, all), list.map((v) => el("option", { value: v }, plain(typeof v === "string" ? v : String(v), 60))));
    }
    if (element.value !== (value ?? "")) element.value = value ?? "";
    element.hidden = !list.length;
  };
  return { element, update };
}

/** A table; `rows` are lists of cells. */
export function table(heads, rows, caption = null) {
  return el("div", { class: "table", tabindex: 0, role: "region", "aria-label": caption ?? "Table" }, el("table", {}, el("thead", {}, el("tr", {}, heads.map((h) => el("th", { scope: "col" }, h)))),
    el("tbody", {}, rows.map((cells) => el("tr", {}, cells.map((c) => el("td", {}, c)))))));
}
