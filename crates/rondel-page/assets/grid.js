// A list with virtual rows: some 40 elements and one canvas, however many rows there are. The canvas moves with the rows and is
// drawn again only when they change, so that scrolling costs nothing.

import { el, fill, perFrame } from "./dom.js";

const OVERSCAN = 6;
const MOST_PRINTED = 500; // rows; the height of a canvas is limited

/**
 * `options`: `label`; `columns` (texts of the head, the lane's is an element); `build()` returns `{ cells, update(item) }` of a
 * row; `item(index)` (null while it is not loaded); `key(item)`; `draw(context, item, box)` of the lane; `open(item)`.
 */
export class Grid {
  constructor(options) {
    this.options = options;
    this.count = 0;
    this.active = -1;
    this.activeKey = null;
    this.touched = -Infinity;
    this.pool = [];
    this.prints = false;
    this.render = perFrame(() => this.renderNow());
    this.canvas = el("canvas", { "aria-hidden": "true", class: "lanes" });
    this.head = el("div", { role: "row", class: "row head", "aria-rowindex": 1 }, options.columns.map(([name, content]) =>
      el("div", { role: "columnheader", class: `cell ${name}` }, content)));
    this.body = el("div", { role: "rowgroup", class: "rows" }, options.draw ? this.canvas : null);
    this.root = el("div", { role: "grid", class: `grid ${options.className ?? ""}`, tabindex: 0, "aria-label": options.label, onscroll: () => this.render(),
      onkeydown: (event) => this.key(event), onpointermove: () => this.touch(), onfocus: () => this.focus() },
      el("div", { role: "rowgroup", class: "heads" }, this.head), this.body);
    this.prefix = `grid-${Math.random().toString(36).slice(2, 8)}`;
    this.observer = new ResizeObserver(() => this.render());
    this.observer.observe(this.root);
  }

  touch() {
    this.touched = performance.now();
  }

  /** Whether the pointer or a key was used a short time ago: rows must not move then. */
  isInUse() {
    return performance.now() - this.touched < 1500;
  }

  destroy() {
    this.observer.disconnect();
  }

  setCount(count) {
    this.count = count;
    if (this.active >= count) this.active = count - 1;
    this.render();
  }

  /** Finds the active row again after its index may have changed. */
  keepActive(find) {
    if (this.activeKey !== null) this.active = find(this.activeKey);
  }

  rowHeight() {
    return Number.parseFloat(getComputedStyle(this.root).getPropertyValue("--row")) || 36;
  }

  /** First row and number of rows to show. */
  window() {
    if (this.prints) return [0, Math.min(this.count, MOST_PRINTED)];
    const height = this.height;
    const first = Math.max(0, Math.floor(this.root.scrollTop / height) - OVERSCAN);
    return [first, Math.min(this.count - first, Math.ceil(this.root.clientHeight / height) + 2 * OVERSCAN)];
  }

  renderNow() {
    if (!this.root.isConnected) return;
    this.height = this.rowHeight();
    const [first, shown] = this.window();
    const total = this.prints ? shown : this.count;
    this.body.style.height = `${total * this.height}px`;
    this.root.setAttribute("aria-rowcount", this.count + 1);
    while (this.pool.length < shown) this.addRow();
    for (let i = 0; i < this.pool.length; i += 1) {
      const index = first + ((((i - first) % this.pool.length) + this.pool.length) % this.pool.length);
      this.place(this.pool[i], index < first + shown ? index : null);
    }
    if (this.options.draw) this.paint(first, shown);
    const shows = this.active >= first && this.active < first + shown;
    if (shows) this.root.setAttribute("aria-activedescendant", this.rowId(this.active));
    else this.root.removeAttribute("aria-activedescendant");
    this.options.shown?.(first, shown);
  }

  rowId(index) {
    return `${this.prefix}-${index}`;
  }

  addRow() {
    const parts = this.options.build();
    const row = el("div", { role: "row", class: "row" }, parts.cells.map(([name, content]) => el("div", { role: "gridcell", class: `cell ${name}` }, content)));
    const entry = { row, update: parts.update, index: null, lane: row.querySelector(".cell.lane") };
    row.addEventListener("click", (event) => {
      if (event.target.closest("a, button") || entry.index === null || String(getSelection()).trim()) return;
      this.setActive(entry.index);
      this.openActive();
    });
    this.pool.push(entry);
    this.body.append(row);
  }

  place(entry, index) {
    const item = index === null ? null : this.options.item(index);
    entry.index = index;
    entry.row.hidden = index === null;
    if (index === null) {
      entry.row.removeAttribute("id");
      return;
    }
    entry.row.id = this.rowId(index);
    entry.row.setAttribute("aria-rowindex", index + 2);
    entry.row.style.transform = `translateY(${index * this.height}px)`;
    entry.row.classList.toggle("active", index === this.active);
    entry.row.classList.toggle("waiting", item === null);
    if (index === this.active) entry.row.setAttribute("aria-selected", "true");
    else entry.row.removeAttribute("aria-selected");
    entry.update(item);
  }

  paint(first, shown) {
    const sample = this.pool.find((entry) => entry.index !== null);
    const scale = this.prints ? 1 : window.devicePixelRatio || 1;
    const lane = sample?.lane;
    const width = lane?.clientWidth ?? 0;
    const height = shown * this.height;
    this.canvas.hidden = !width;
    if (!width) return;
    const left = lane.offsetLeft;
    const top = lane.offsetTop;
    const tall = lane.offsetHeight;
    this.laneBox = { left, width };
    if (this.canvas.width !== Math.round(width * scale) || this.canvas.height !== Math.round(height * scale)) {
      this.canvas.width = Math.round(width * scale);
      this.canvas.height = Math.round(height * scale);
      this.canvas.style.width = `${width}px`;
      this.canvas.style.height = `${height}px`;
    }
    this.canvas.style.transform = `translate(${left}px, ${first * this.height}px)`;
    const context = this.canvas.getContext("2d");
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    for (let i = 0; i < shown; i += 1) {
      const item = this.options.item(first + i);
      if (item) this.options.draw(context, item, { top: i * this.height + top + 5, height: tall - 10, width });
    }
  }

  setActive(index) {
    this.active = Math.max(-1, Math.min(index, this.count - 1));
    const item = this.active < 0 ? null : this.options.item(this.active);
    this.activeKey = item === null ? null : this.options.key(item);
    this.render();
  }

  focus() {
    if (this.active < 0 && this.count) this.setActive(0);
  }

  openActive() {
    const item = this.active < 0 ? null : this.options.item(this.active);
    if (item) this.options.open?.(item);
  }

  key(event) {
    if (event.target !== this.root || event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(this.root.clientHeight / this.height) - 2);
    const steps = { ArrowDown: this.active + 1, ArrowUp: this.active - 1, PageDown: this.active + page, PageUp: this.active - page, Home: 0, End: this.count - 1 };
    if (event.key === "Enter") this.openActive();
    else if (event.key in steps) {
      this.touch();
      this.setActive(Math.max(0, steps[event.key]));
      this.scrollTo(this.active);
    } else return;
    event.preventDefault();
  }

  scrollTo(index) {
    const top = index * this.height;
    const view = this.root.clientHeight - this.head.offsetHeight;
    if (top < this.root.scrollTop) this.root.scrollTop = top;
    else if (top + this.height > this.root.scrollTop + view) this.root.scrollTop = top + this.height - view;
  }

  /** Shows all rows, up to a limit, for the printer. */
  setPrinting(prints) {
    this.prints = prints;
    this.root.classList.toggle("prints", prints);
    if (this.rest) this.rest.remove();
    if (prints && this.count > MOST_PRINTED) {
      this.rest = el("p", { class: "note" }, `${this.count - MOST_PRINTED} more rows are not printed: narrow the filters.`);
      this.root.after(this.rest);
    }
    this.renderNow();
  }

  /** Replaces the content of a head cell. */
  setHead(name, ...content) {
    const cell = this.head.querySelector(`.cell.${name}`);
    if (cell) fill(cell, ...content);
  }
}
