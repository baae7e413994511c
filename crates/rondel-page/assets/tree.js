// A value as a tree that is built as far as it is opened.

import { el, plain } from "./dom.js";
import { valueText } from "./parts.js";
import { count } from "./time.js";

const PAGE = 100; // children at once
const LONG = 300; // characters of a text at once
const MOST = 20_000; // characters of a text

/** A member with its name. */
export function tree(name, value, isOpen = false) {
  const label = el("span", { class: "tree-name" }, plain(name, 120));
  if (value === null || typeof value !== "object") return el("div", { class: "tree-leaf" }, label, " ", leaf(value));
  const entries = Array.isArray(value) ? value.map((v, i) => [String(i), v]) : Object.entries(value);
  const size = Array.isArray(value) ? `[${entries.length}]` : `{${entries.length}}`;
  const body = el("div", { class: "tree-body" });
  let shown = 0;
  const more = () => {
    body.lastChild?.matches?.("button") && body.lastChild.remove();
    for (const [key, child] of entries.slice(shown, shown + PAGE)) body.append(tree(key, child));
    shown += PAGE;
    if (shown < entries.length) body.append(el("button", { type: "button", onclick: more }, `${entries.length - shown} more`));
  };
  const details = el("details", { ontoggle: () => details.open && !shown && more() }, el("summary", {}, label, " ", el("span", { class: "tree-size" }, size, isOpen ? "" : preview(value))), body);
  if (isOpen) {
    details.open = true;
    more();
  }
  return details;
}

/** The first members in one line; never the whole of a large value. */
function preview(value) {
  const first = Array.isArray(value) ? value.slice(0, 6) : Object.entries(value).slice(0, 4);
  const text = first.map((entry) => (Array.isArray(value) ? brief(entry) : `${entry[0]}: ${brief(entry[1])}`)).join(", ");
  return ` ${plain(text, 90)}`;
}

const brief = (value) => (value !== null && typeof value === "object" ? (Array.isArray(value) ? "[…]" : "{…}") : valueText(typeof value === "string" ? value.slice(0, 40) : value, 30));

function leaf(value) {
  const kind = value === null ? "null" : typeof value;
  if (kind !== "string" || value.length <= LONG) return el("span", { class: `tree-${kind}` }, valueText(value, LONG));
  const text = el("span", { class: "tree-string" }, valueText(value, LONG));
  const more = el("button", { type: "button", onclick: () => {
    text.textContent = valueText(value, MOST);
    more.remove();
  } }, `${count(value.length)} characters`);
  return [text, " ", more];
}
