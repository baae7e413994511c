// Elements. Every text goes in as a text node, so that nothing in a message or a name is parsed as HTML.

const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes, listeners (`onclick: f`) and children (elements, texts, lists; null is left out). */
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

/** Appends children as `el` does. */
export function append(element, children) {
  for (const child of [children].flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

/** Replaces the children of an element. */
export function fill(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

/** Sets a text only where it changes: unchanged rows cost no layout. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function setAttribute(element, name, value) {
  if (value === null) element.removeAttribute(name);
  else if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

/** A shape of the set in index.html, hidden from assistive technology: a text stands beside it. */
export function shape(name, title = null) {
  const svg = document.createElementNS(SVG, "svg");
  const use = document.createElementNS(SVG, "use");
  use.setAttribute("href", `#shape-${name}`);
  svg.setAttribute("class", `shape shape-${name}`);
  svg.setAttribute("viewBox", "0 0 16 16");
  if (title) {
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", title);
  } else {
    svg.setAttribute("aria-hidden", "true");
  }
  svg.append(use);
  return svg;
}

/** Changes the shape of an element made by `shape`. */
export function setShape(svg, name) {
  setAttribute(svg.firstChild, "href", `#shape-${name}`);
  setAttribute(svg, "class", `shape shape-${name}`);
}

const CONTROL = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** A text of a message or a name for one line: control and direction characters visible, at most `limit` characters. */
export function plain(text, limit = 200) {
  const whole = String(text);
  const shown = whole.length > limit ? whole.slice(0, limit) + "…" : whole;
  return shown.replace(CONTROL, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

let isFrame = false; // while a function runs before a frame

/** Calls `f` before the next frame is drawn, once for all calls until then, with the arguments of the last one. */
export function perFrame(f) {
  let waiting = false;
  let latest = [];
  const call = () => {
    waiting = false;
    f(...latest);
  };
  const callInFrame = () => {
    isFrame = true;
    try {
      call();
    } finally {
      isFrame = false;
    }
  };
  return (...args) => {
    latest = args;
    if (waiting) return;
    waiting = true;
    // Microtasks run before the frame is drawn.
    if (isFrame) queueMicrotask(call);
    else requestAnimationFrame(callInFrame);
  };
}

/** Calls `f` once no call has come for `delay` milliseconds. */
export function debounced(f, delay) {
  let timer = 0;
  return (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => f(...args), delay);
  };
}

/** A colour of the style sheet by its name, such as `--violated`. */
export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
