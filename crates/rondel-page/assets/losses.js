// Losses: when the monitor was blind, and what did not reach a sink.

import { el, fill, plain, setText } from "./dom.js";
import { dragToZoom, merged, timeAxis } from "./axis.js";
import { Grid } from "./grid.js";
import { isConnected, loadLosses, model } from "./model.js";
import { drawTimeline, shownRange } from "./overview.js";
import { problem, rangeControl } from "./parts.js";
import { range } from "./route.js";
import { clock, count, counted, duration, stamp } from "./time.js";
import { colours } from "./verdicts.js";

function buildRow() {
  const cells = Object.fromEntries(["title", "reason", "count", "from", "length"].map((key) => [key, el("span")]));
  const update = (loss) => {
    if (!loss) return;
    setText(cells.title, loss.subject === "" ? "all topics" : plain(loss.subject));
    setText(cells.reason, `${plain(loss.reason, 60)}${loss.is_blind ? "" : " (sink)"}`);
    setText(cells.count, count(loss.count));
    setText(cells.from, clock(loss.from));
    cells.from.title = stamp(loss.from);
    setText(cells.length, duration(loss.until - loss.from));
  };
  return { cells: [...Object.entries(cells), ["lane", null]], update };
}

export function losses(main) {
  let rows = [];
  let shown = shownRange();
  const axis = timeAxis();
  const control = rangeControl();
  const problems = el("div");
  const note = el("p", { class: "note", role: "status" });
  const grid = new Grid({
    label: "Losses",
    className: "losses",
    columns: [["title", "topic or sink"], ["reason", "reason"], ["count", "count"], ["from", "from"], ["length", "for"], ["lane", [el("span", { class: "hidden" }, "timeline"), axis.element]]],
    build: buildRow,
    item: (index) => rows[index] ?? null,
    key: (loss) => `${loss.subject} ${loss.from}`,
    draw: drawLoss,
  });
  function drawLoss(context, loss, box) {
    drawTimeline(context, null, box, shown, loss.is_blind ? merged([loss], shown) : []);
    const [part] = loss.is_blind ? [] : merged([loss], shown);
    if (!part) return;
    const scale = box.width / (shown.until - shown.from);
    context.fillStyle = colours().muted;
    context.fillRect((part.from - shown.from) * scale, box.top + box.height / 2 - 2, Math.max(2, (part.until - part.from) * scale), 4);
  }
  dragToZoom(grid.root, () => grid.laneBox ?? { left: 0, width: -1 });
  fill(main, el("h1", {}, "Losses"), el("p", { class: "lead" }, "Messages that did not reach the monitor: verdicts that depend on them are inconclusive, and every timeline is shaded there. Losses of sinks are verdicts that did not reach a consumer."),
    el("div", { class: "controls" }, control.element), problems, grid.root, note);
  const show = () => {
    shown = shownRange();
    rows = [...model.losses].sort((a, b) => b.from - a.from);
    grid.setCount(rows.length);
    const total = rows.reduce((sum, loss) => sum + loss.count, 0);
    setText(note, rows.length ? `${total ? `${counted(total, "loss", "losses")} in ` : ""}${counted(rows.length, "interval")}` : "Nothing was lost in this time range.");
    control.update();
    axis.draw();
    grid.render();
  };
  const load = () => loadLosses().then(() => fill(problems), (error) => error.status && fill(problems, problem(error)));
  let key = JSON.stringify(range().follows || range());
  load();
  show();
  return {
    grid,
    update() {
      const next = JSON.stringify([range().follows || range(), range().until - range().from]);
      if (next !== key) load();
      key = next;
      show();
    },
    change: show,
    tick: (n) => {
      show();
      if (n % 5 === 0 && isConnected()) load();
    },
    destroy: () => grid.destroy(),
  };
}
