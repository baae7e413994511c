// Charts on one time axis: verdicts, robustness as a band, signals. uPlot draws them; cursors and zoom are common to all.

import { ApiError } from "./api.js";
import { el, plain } from "./dom.js";
import { followLive, range, setRange } from "./route.js";
import { number, ticks } from "./time.js";
import { BY_NUMBER, colours, drawBar, drawBlind } from "./verdicts.js";

const GUTTER = 84;
const SYNC = "time";

/** Left and right margin of every chart, in pixels. */
export const MARGINS = { left: GUTTER, right: 8 };

let library = null;

/** Loads uPlot with the first view that draws charts, unless the document has it. */
export function loadLibrary() {
  if (typeof uPlot !== "undefined") return Promise.resolve();
  library ??= Promise.all([
    loaded("link", { rel: "stylesheet", href: "vendor/uplot-1.6.32.min.css" }),
    loaded("script", { src: "vendor/uplot-1.6.32.min.js" }),
  ]);
  return library;
}

/** Adds an element that loads a file. */
function loaded(tag, attributes) {
  return new Promise((resolve, reject) => {
    document.head.append(el(tag, { ...attributes, onload: resolve, onerror: () => reject(new ApiError(0, "the charts cannot be loaded")) }));
  });
}

const AXIS_FONT = "12px system-ui, sans-serif";
const CHARACTER = 7; // pixels of a digit of a label, at most

function options(chart, { height, series, scale, axis, hasTimes, paint, bands = [] }) {
  return {
    width: chart.width,
    height,
    pxAlign: 1,
    padding: [6, MARGINS.right, hasTimes ? 0 : 6, 0],
    legend: { show: false },
    cursor: { sync: { key: SYNC, setSeries: false }, drag: { x: true, y: false, setScale: false, dist: 5 }, points: { show: false }, y: false, dataIdx: () => null, focus: { prox: -1 } },
    select: { show: true },
    scales: { x: { time: false, range: () => chart.extent() }, y: scale },
    axes: [
      {
        show: true,
        size: hasTimes ? 26 : 0,
        font: AXIS_FONT,
        stroke: () => colours().muted,
        grid: { stroke: () => colours().grid, width: 1 },
        ticks: { show: false },
        splits: (u) => ticks(...chart.extent(), u.bbox.width / devicePixelRatio).map(([time]) => time),
        values: (u, splits) => {
          const [from, until] = chart.extent();
          const width = u.bbox.width / devicePixelRatio;
          const labels = new Map(hasTimes ? ticks(from, until, width) : []);
          // The end of the chart would cut a label that is centred there.
          const room = (time) => 2 * (((until - time) / (until - from)) * width + MARGINS.right);
          const fits = (time) => (labels.get(time)?.length ?? 0) * CHARACTER <= room(time);
          return splits.map((time) => (fits(time) ? (labels.get(time) ?? "") : ""));
        },
      },
      { size: GUTTER, font: AXIS_FONT, stroke: () => colours().muted, grid: { show: false }, ticks: { show: false }, ...axis },
    ],
    series: [{}, ...series],
    bands,
    hooks: {
      drawClear: [(u) => paint.below?.(u)],
      draw: [(u) => paint.above?.(u)],
      setSelect: [(u) => chart.select(u)],
    },
  };
}

/** One chart; `draw(content)` shows other data. */
class Chart {
  constructor(title, kind, height) {
    this.kind = kind;
    this.height = height;
    this.content = null;
    this.losses = [];
    this.marks = [];
    this.plot = null;
    this.frame = el("div", { class: "plot", role: "img" });
    this.title = el("h3", {}, title);
    this.value = el("span", { class: "plot-value" });
    this.root = el("figure", { class: `chart chart-${kind}` }, el("figcaption", {}, this.title, this.value), this.frame);
    this.frame.addEventListener("dblclick", () => followLive());
    this.frame.addEventListener("wheel", (event) => {
      if (!event.ctrlKey || !this.plot) return;
      event.preventDefault();
      const at = this.plot.posToVal(event.clientX - this.plot.over.getBoundingClientRect().left, "x");
      const [from, until] = this.extent();
      const factor = event.deltaY > 0 ? 1.25 : 0.8;
      setRange(at - (at - from) * factor, at + (until - at) * factor);
    }, { passive: false });
  }

  extent() {
    const { from, until } = this.shown ?? range();
    return [from, until];
  }

  select(u) {
    if (u.select.width < 5) return;
    const from = u.posToVal(u.select.left, "x");
    const until = u.posToVal(u.select.left + u.select.width, "x");
    u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
    setRange(from, until);
  }

  resize(width) {
    this.width = Math.max(160, Math.floor(width));
    this.plot?.setSize({ width: this.width, height: this.height });
  }

  /** Draws content of a time range; `isLast`: with the labels of times. */
  draw(content, shown, isLast) {
    this.content = content;
    this.shown = shown;
    const data = this.data();
    const key = `${isLast} ${this.shape()}`;
    if (!this.plot || this.key !== key) {
      this.plot?.destroy();
      this.key = key;
      this.total = this.height + (isLast ? 22 : 0);
      this.plot = new uPlot({ ...options(this, { ...this.design(), height: this.total, hasTimes: isLast }) }, data, this.frame);
    } else this.plot.setData(data);
    this.frame.setAttribute("aria-label", this.describe());
  }

  redraw() {
    this.plot?.redraw(false, true);
  }

  destroy() {
    this.plot?.destroy();
  }

  shape() {
    return this.kind;
  }

  /** Shades intervals without sight: lost messages, times before the history, times after the last contact. */
  shade(u) {
    const { left, top, width, height } = u.bbox;
    const scale = devicePixelRatio;
    u.ctx.save();
    u.ctx.beginPath();
    u.ctx.rect(left, top, width, height);
    u.ctx.clip();
    u.ctx.scale(scale, scale);
    for (const loss of this.losses) {
      const begin = Math.max(u.valToPos(loss.from, "x") + left / scale, left / scale - 4);
      const end = Math.min(u.valToPos(loss.until, "x") + left / scale, (left + width) / scale + 4);
      if (end >= left / scale && begin <= (left + width) / scale) drawBlind(u.ctx, begin, end - begin, top / scale, height / scale);
    }
    u.ctx.restore();
  }

  /** Lines where violations begin, and dots where an explanation has a value. */
  mark(u) {
    const { ctx, bbox } = u;
    const c = colours();
    const scale = devicePixelRatio;
    ctx.save();
    const [from, until] = this.extent();
    const marks = this.marks.filter((mark) => mark.time >= from && mark.time <= until);
    const dots = marks.filter((mark) => mark.y !== undefined);
    for (const mark of marks) {
      const x = u.valToPos(mark.time, "x", true);
      ctx.strokeStyle = mark.isSelected ? c.text : c.violated;
      ctx.setLineDash(mark.isSelected ? [] : [3 * scale, 3 * scale]);
      ctx.globalAlpha = mark.isSelected ? 0.9 : 0.55;
      ctx.lineWidth = scale;
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      ctx.globalAlpha = 1;
    }
    // The label of a dot stands on the side where no other dot is near.
    dots.sort((a, b) => a.time - b.time);
    dots.forEach((mark, i) => {
      const next = i + 1 < dots.length ? u.valToPos(dots[i + 1].time, "x", true) : Infinity;
      const x = u.valToPos(mark.time, "x", true);
      this.dot(u, x, mark, next - x);
    });
    ctx.restore();
  }

  dot(u, x, mark, room) {
    const { ctx, bbox } = u;
    const c = colours();
    const scale = devicePixelRatio;
    const y = typeof mark.y === "number" ? Math.min(Math.max(u.valToPos(mark.y, "y", true), bbox.top), bbox.top + bbox.height) : bbox.top + bbox.height / 2;
    ctx.setLineDash([]);
    ctx.fillStyle = c.surface;
    ctx.strokeStyle = c.violated;
    ctx.lineWidth = 2 * scale;
    ctx.beginPath();
    ctx.arc(x, y, 4 * scale, 0, 7);
    ctx.fill();
    ctx.stroke();
    ctx.font = `600 ${12 * scale}px system-ui, sans-serif`;
    const label = plain(mark.label, 24);
    const size = ctx.measureText(label).width;
    const needed = size + 16 * scale;
    const isLeft = x + needed > bbox.left + bbox.width || (room < needed && x - needed > bbox.left);
    const tx = isLeft ? x - size - 9 * scale : x + 9 * scale;
    const ty = Math.min(Math.max(y, bbox.top + 9 * scale), bbox.top + bbox.height - 9 * scale);
    ctx.globalAlpha = 0.85;
    ctx.fillRect(tx - 3 * scale, ty - 8 * scale, size + 6 * scale, 16 * scale);
    ctx.globalAlpha = 1;
    ctx.fillStyle = c.text;
    ctx.textBaseline = "middle";
    ctx.textAlign = "left";
    ctx.fillText(label, tx, ty);
  }
}

const NO_SERIES = { show: true, stroke: "transparent", points: { show: false } };

/** The verdicts of a property or an instance. */
export class VerdictChart extends Chart {
  constructor(title = "Verdict") {
    super(title, "verdicts", 46);
  }

  data() {
    return [[...this.extent()], [null, null]];
  }

  describe() {
    const seen = new Set(this.content.verdicts.map((v) => BY_NUMBER[v]));
    return `Verdicts: ${this.content.times.length} intervals, ${[...seen].join(", ") || "none"}`;
  }

  design() {
    return {
      series: [NO_SERIES],
      scale: { range: () => [0, 1] },
      axis: { splits: () => [], values: () => [] },
      paint: { below: (u) => this.shade(u), above: (u) => { this.bars(u); this.mark(u); } },
    };
  }

  bars(u) {
    const { times, verdicts } = this.content;
    const { left, top, width, height } = u.bbox;
    const scale = devicePixelRatio;
    const end = this.extent()[1];
    u.ctx.save();
    u.ctx.beginPath();
    u.ctx.rect(left, top, width, height);
    u.ctx.clip();
    u.ctx.scale(scale, scale);
    for (let i = 0; i < times.length; i += 1) {
      const x = u.valToPos(times[i], "x") + left / scale;
      const next = u.valToPos(i + 1 < times.length ? times[i + 1] : Math.min(this.shown.seen ?? end, end), "x") + left / scale;
      drawBar(u.ctx, BY_NUMBER[verdicts[i]] ?? "none", x, next - x, top / scale + 3, height / scale - 6);
    }
    u.ctx.restore();
  }
}

/** A signal of numbers or booleans, or robustness: least and greatest value of each interval. */
export class BandChart extends Chart {
  constructor(title, kind) {
    super(title, kind, kind === "boolean" ? 56 : 104);
  }

  shape() {
    return this.content.least.every((v, i) => v === this.content.greatest[i]) ? "line" : "band";
  }

  data() {
    const { times, least, greatest } = this.content;
    const end = Math.min(this.shown.seen ?? Infinity, this.extent()[1]);
    const isOpen = times.length && times.at(-1) < end;
    const close = (list) => (isOpen ? [...list, list.at(-1)] : list);
    const all = [isOpen ? [...times, end] : times, close(least)];
    return this.shape() === "line" ? all : [...all, close(greatest)];
  }

  describe() {
    const values = [...this.content.least, ...this.content.greatest].filter((v) => v !== null);
    const least = values.reduce((a, b) => Math.min(a, b), Infinity);
    const greatest = values.reduce((a, b) => Math.max(a, b), -Infinity);
    return `${this.title.textContent}: ${values.length ? `${number(least)} to ${number(greatest)}` : "no values"}`;
  }

  limits() {
    if (this.kind === "boolean") return [-0.25, 1.25];
    const values = [...this.content.least, ...this.content.greatest, ...(this.content.thresholds ?? [])].filter(Number.isFinite);
    if (this.kind === "robustness") values.push(0);
    if (!values.length) return [0, 1];
    const least = values.reduce((a, b) => Math.min(a, b));
    const greatest = values.reduce((a, b) => Math.max(a, b));
    const room = (greatest - least || Math.abs(greatest) || 1) * 0.1;
    return [least - room, greatest + room];
  }

  design() {
    const stepped = uPlot.paths.stepped({ align: 1 });
    const isBand = this.shape() === "band";
    const line = { paths: stepped, width: isBand ? 1 : 1.5, stroke: () => colours()[this.kind === "robustness" ? "accent" : "signal"], points: { show: false } };
    const boolean = { splits: () => [0, 1], values: () => ["false", "true"] };
    return {
      series: isBand ? [line, line] : [line],
      bands: isBand ? [{ series: [2, 1], fill: () => colours().band }] : [],
      scale: { range: () => this.limits() },
      axis: this.kind === "boolean" ? boolean : { space: 28, values: (u, splits) => splits.map(number) },
      paint: { below: (u) => { this.shade(u); this.thresholds(u); }, above: (u) => this.mark(u) },
    };
  }

  thresholds(u) {
    const { ctx, bbox } = u;
    const scale = devicePixelRatio;
    const lines = this.kind === "robustness" ? [0] : this.kind === "number" ? (this.content.thresholds ?? []) : [];
    const y = (value) => u.valToPos(value, "y", true);
    ctx.save();
    if (this.kind === "robustness") {
      ctx.globalAlpha = 0.12;
      ctx.fillStyle = colours().violated;
      const zero = Math.min(Math.max(y(0), bbox.top), bbox.top + bbox.height);
      ctx.fillRect(bbox.left, zero, bbox.width, bbox.top + bbox.height - zero);
      ctx.globalAlpha = 1;
    }
    ctx.setLineDash([6 * scale, 4 * scale]);
    ctx.strokeStyle = colours().violated;
    ctx.lineWidth = scale;
    for (const value of lines) {
      ctx.beginPath();
      ctx.moveTo(bbox.left, y(value));
      ctx.lineTo(bbox.left + bbox.width, y(value));
      ctx.stroke();
    }
    ctx.restore();
  }
}

/** A signal of texts: its value as a block for as long as it lasts. */
export class TextChart extends Chart {
  constructor(title) {
    super(title, "text", 46);
  }

  data() {
    return [[...this.extent()], [null, null]];
  }

  describe() {
    return `${this.title.textContent}: ${plain(this.content.texts.at(-1) ?? "unknown", 80)} at the end`;
  }

  design() {
    return {
      series: [NO_SERIES],
      scale: { range: () => [0, 1] },
      axis: { splits: () => [], values: () => [] },
      paint: { below: (u) => this.shade(u), above: (u) => { this.blocks(u); this.mark(u); } },
    };
  }

  blocks(u) {
    const { ctx, bbox } = u;
    const { times, texts } = this.content;
    const scale = devicePixelRatio;
    const c = colours();
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.font = `${12 * scale}px system-ui, sans-serif`;
    ctx.textBaseline = "middle";
    ctx.textAlign = "left";
    for (let i = 0; i < times.length; i += 1) {
      const x = Math.max(u.valToPos(times[i], "x", true), bbox.left);
      const next = i + 1 < times.length ? u.valToPos(times[i + 1], "x", true) : bbox.left + bbox.width;
      if (texts[i] === null || next < bbox.left) continue;
      ctx.fillStyle = c.band;
      ctx.fillRect(x + scale, bbox.top + 4 * scale, Math.max(next - x - scale, scale), bbox.height - 8 * scale);
      ctx.fillStyle = c.text;
      const label = plain(texts[i], 60);
      if (ctx.measureText(label).width + 8 * scale < next - x) ctx.fillText(label, x + 5 * scale, bbox.top + bbox.height / 2);
    }
    ctx.restore();
  }
}
