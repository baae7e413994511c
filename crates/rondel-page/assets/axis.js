// The time axis above lanes: ticks, and zoom by dragging, wheel and double click.

import { el } from "./dom.js";
import { followLive, range, setRange, zoom } from "./route.js";
import { clock, ticks } from "./time.js";
import { colours, drawBlind } from "./verdicts.js";

/** An axis of the present range. `draw()` draws it again. */
export function timeAxis() {
  const canvas = el("canvas", { class: "axis", "aria-hidden": "true" });
  const draw = () => {
    const width = canvas.clientWidth;
    const height = canvas.clientHeight;
    if (!width) return;
    const scale = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    const context = canvas.getContext("2d");
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    const c = colours();
    const { from, until } = range();
    for (const [time, label] of ticks(from, until, width)) {
      const x = ((time - from) / (until - from)) * width;
      context.fillStyle = c.grid;
      context.fillRect(Math.round(x), 0, 1, height);
      const size = context.measureText(label).width;
      context.fillStyle = c.muted;
      if (x + 4 + size < width) context.fillText(label, x + 4, height / 2);
    }
  };
  return { element: canvas, draw };
}

/** Intervals within a range, those that overlap as one. */
export function merged(intervals, { from, until }) {
  const list = intervals.map((i) => ({ from: Math.max(i.from, from), until: Math.min(i.until, until) })).filter((i) => i.until >= i.from);
  list.sort((a, b) => a.from - b.from);
  const result = [];
  for (const next of list) {
    const last = result.at(-1);
    if (last && next.from <= last.until) last.until = Math.max(last.until, next.until);
    else result.push(next);
  }
  return result;
}

/** Draws the grid of a lane and the shading of blind intervals, which are `merged`. Returns the place of a time. */
export function drawLane(context, box, losses, { from, until }) {
  const c = colours();
  const x = (time) => ((time - from) / (until - from)) * box.width;
  context.fillStyle = c.grid;
  for (const [time] of ticks(from, until, box.width)) context.fillRect(Math.round(x(time)), box.top - 5, 1, box.height + 10);
  for (const loss of losses) drawBlind(context, x(loss.from), x(loss.until) - x(loss.from), box.top - 5, box.height + 10);
  return x;
}

const LEAST_DRAG = 5; // pixels

/** Zooms by dragging over an element; `lane()` gives left and width of the time axis in it. */
export function dragToZoom(element, lane) {
  const band = el("div", { class: "drag", hidden: true });
  element.append(band);
  let begin = null;
  const at = (event) => {
    const box = lane();
    const x = event.clientX - element.getBoundingClientRect().left - box.left;
    return { x, box, isInside: x >= 0 && x <= box.width };
  };
  const time = (x, box) => {
    const { from, until } = range();
    return from + (Math.min(Math.max(x, 0), box.width) / box.width) * (until - from);
  };
  element.addEventListener("pointerdown", (event) => {
    const point = at(event);
    if (event.button !== 0 || event.pointerType === "touch" || !point.isInside) return;
    begin = { ...point, first: time(point.x, point.box) };
    event.preventDefault();
  });
  element.addEventListener("pointermove", (event) => {
    if (!begin) return;
    if (!(event.buttons & 1)) return stop();
    const { x, box } = at(event);
    const left = Math.max(0, Math.min(x, begin.x));
    const right = Math.min(box.width, Math.max(x, begin.x));
    band.hidden = right - left < LEAST_DRAG;
    if (!band.hidden && !element.hasPointerCapture(event.pointerId)) element.setPointerCapture(event.pointerId);
    band.style.left = `${box.left + left}px`;
    band.style.width = `${right - left}px`;
  });
  const stop = () => {
    begin = null;
    band.hidden = true;
  };
  element.addEventListener("pointercancel", stop);
  element.addEventListener("pointerup", (event) => {
    if (!begin) return;
    const { x, box } = at(event);
    const second = time(x, box);
    const { first, x: start } = begin;
    stop();
    if (Math.abs(x - start) < LEAST_DRAG) return;
    setRange(Math.min(first, second), Math.max(first, second));
    element.dataset.dragged = "true";
    setTimeout(() => delete element.dataset.dragged, 0);
  });
  element.addEventListener("click", (event) => {
    if (element.dataset.dragged) event.stopPropagation();
  }, true);
  element.addEventListener("wheel", (event) => {
    const point = at(event);
    if (!event.ctrlKey || !point.isInside) return;
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.25 : 0.8, time(point.x, point.box));
  }, { passive: false });
  element.addEventListener("dblclick", (event) => at(event).isInside && followLive());
}

/** The present range as words, for labels. */
export function rangeText() {
  const { from, until } = range();
  return `${clock(from, { fraction: false })} to ${clock(until, { fraction: false })}`;
}
