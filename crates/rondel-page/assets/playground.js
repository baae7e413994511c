// The playground: a specification that is edited beside a recording, or beside the messages of an example.

import { ApiError, get, post } from "./api.js";
import { BandChart, TextChart, VerdictChart, loadLibrary } from "./chart.js";
import { debounced, el, fill, perFrame, plain, setText, shape } from "./dom.js";
import { Editor } from "./editor.js";
import { problem, timeOf } from "./parts.js";
import { range, setQuery } from "./route.js";
import { count, counted, duration } from "./time.js";
import { certainty, explanation, marksFor, violationOf } from "./violations.js";

const MOST_CHARTS = 12; // of properties, and of signals
const PAUSE = 400; // milliseconds after the last key
const AGAIN = 1000; // milliseconds, if the server checks for another viewer
const SAVES = 10; // attempts to save: a check takes up to 8 seconds

// Texts as they were left, by subject: another view does not take them away.
const drafts = new Map();

const SIGNS = { violated: "violated", inconclusive: "inconclusive", vacuous: "none", satisfied: "satisfied" };

class PlaygroundView {
  constructor(main, route) {
    this.route = route;
    this.charts = new Map();
    this.result = null;
    this.subjects = [];
    this.isChecking = false;
    this.isStale = false;
    this.timer = 0;
    this.check = debounced(() => this.attempt(), PAUSE);
    this.editor = new Editor({ label: "Specification", oninput: () => this.edited() });
    this.messages = el("textarea", { class: "play-messages", "aria-label": "Messages, one in JSON a line", spellcheck: "false", wrap: "off", oninput: () => this.edited() });
    this.choice = el("select", { "aria-label": "Recording or example", onchange: () => setQuery({ on: this.choice.value, property: null, violation: null, from: null, until: null }) });
    this.previous = el("button", { type: "button", onclick: () => this.step(-1) }, "Previous example");
    this.next = el("button", { type: "button", onclick: () => this.step(1) }, "Next example");
    this.undo = el("button", { type: "button", onclick: () => this.reset() }, "Begin again");
    this.save = el("button", { type: "button", hidden: true, onclick: () => this.saveText() }, "Save");
    this.about = el("p", { class: "lead" });
    this.problems = el("div");
    this.note = el("p", { class: "note", role: "status" });
    this.list = el("ol", { class: "judged", "aria-label": "Properties" });
    this.plots = el("div", { class: "plots" });
    this.messagesPart = el("div", { hidden: true }, el("h2", {}, "Messages"), this.messages);
    fill(main, el("h1", {}, "Playground"), el("div", { class: "controls" }, this.choice, this.previous, this.next, this.undo, this.save), this.about, this.problems,
      el("div", { class: "play" }, el("section", { class: "play-text", "aria-label": "Specification" }, this.editor.root, this.editor.list, this.messagesPart),
        el("section", { class: "play-result", "aria-label": "Result" }, el("h2", { class: "hidden" }, "Result"), this.note, this.list, this.plots)));
    this.observer = new ResizeObserver(perFrame(() => this.resize()));
    this.observer.observe(this.plots);
    this.load();
  }

  async load() {
    try {
      const [playground, specification] = await Promise.all([get("playground"), get("specification"), loadLibrary()]);
      if (this.isGone) return;
      const own = playground.recordings.map((name) => ({ key: name, label: name.length > 60 ? `…${name.slice(-58)}` : name, recording: name, specification: specification.text }));
      const examples = playground.examples.map((e) => ({ key: `example ${e.name}`, label: `Example: ${e.name}`, ...e }));
      this.subjects = [...own, ...examples];
      this.examples = examples;
      this.file = playground.file;
      fill(this.choice, this.subjects.map((s) => el("option", { value: s.key }, plain(s.label, 80))));
      this.save.hidden = playground.file === null;
      setText(this.save, `Save to ${plain(playground.file ?? "", 60)}`);
      this.show();
    } catch (error) {
      this.fail(error);
    }
  }

  fail(error) {
    if (error.name !== "AbortError" && !(error instanceof ApiError)) throw error;
    fill(this.problems, problem(error));
  }

  /** The subject of the address. */
  named() {
    return this.subjects.find((s) => s.key === this.route.query.get("on")) ?? this.subjects[0];
  }

  show() {
    const subject = this.named();
    if (!subject || subject === this.subject) return;
    this.subject = subject;
    const draft = drafts.get(subject.key) ?? subject;
    this.choice.value = subject.key;
    this.editor.text = draft.specification;
    this.messages.value = draft.messages ?? "";
    this.messagesPart.hidden = subject.recording !== undefined;
    setText(this.about, subject.about ? plain(subject.about, 600) : "Edit the specification: verdicts and plots of the recording follow. Nothing of the run or the store changes.");
    const at = this.examples.indexOf(subject);
    this.previous.hidden = at < 0;
    this.previous.disabled = at === 0;
    setText(this.next, at < 0 ? "Examples" : "Next example");
    this.next.disabled = at === this.examples.length - 1;
    this.result = null;
    this.attempt();
    this.draw();
  }

  step(by) {
    const next = this.examples[this.examples.indexOf(this.subject) + by];
    if (next) setQuery({ on: next.key, property: null, violation: null, from: null, until: null }, true);
  }

  reset() {
    drafts.delete(this.subject?.key);
    this.subject = null;
    this.show();
  }

  edited() {
    if (!this.subject) return;
    drafts.set(this.subject.key, { specification: this.editor.text, messages: this.messages.value });
    this.markStale(true);
    this.check();
  }

  markStale(isStale) {
    this.plots.classList.toggle("outdated", isStale);
    this.list.classList.toggle("outdated", isStale);
  }

  /** Checks the present text; one check at a time, and another one if the text has changed meanwhile. */
  async attempt() {
    if (this.isGone || !this.subject) return;
    if (this.isChecking) {
      this.isStale = true;
      return;
    }
    this.isChecking = true;
    this.isStale = false;
    clearTimeout(this.timer);
    const subject = this.subject;
    const specification = this.editor.text;
    const messages = subject.recording === undefined ? this.messages.value : undefined;
    setText(this.note, "Checking…");
    try {
      const result = await post("playground", { specification, recording: subject.recording, messages });
      if (!this.isGone && subject === this.subject && specification === this.editor.text) this.take(result);
    } catch (error) {
      if (this.isGone) return;
      if (error.status === 429) this.timer = setTimeout(() => this.attempt(), AGAIN);
      else {
        setText(this.note, "");
        this.fail(error);
      }
    } finally {
      this.isChecking = false;
      if (this.isStale) this.attempt();
    }
  }

  take(result) {
    this.editor.show(result.diagnostics);
    fill(this.problems, result.error ? problem(new Error(result.error)) : null);
    const hasErrors = result.diagnostics.some((d) => d.severity === "error");
    const remarks = result.remarks.slice(0, 5).map((text) => plain(text, 300)).join("; ");
    setText(this.note, hasErrors ? "The specification has errors: below is the result before them." : !result.properties.length ? "The specification has no properties yet."
      : `${counted(result.events, "message")}${result.begin === null ? "" : ` in ${duration(result.end - result.begin)}`} checked. ${remarks}`);
    this.markStale(hasErrors);
    if (hasErrors && this.result) return;
    this.result = result;
    this.draw();
  }

  /** Saves the text; while the server checks, again after pauses. */
  async saveText(specification = this.editor.text, tries = SAVES) {
    // A later text replaces one that waits.
    clearTimeout(this.saving);
    try {
      const { file } = await post(["playground", "file"], { specification });
      fill(this.problems);
      setText(this.note, `Saved to ${plain(file, 200)}.`);
    } catch (error) {
      if (error.status === 429 && tries > 1) {
        setText(this.note, "Saving…");
        this.saving = setTimeout(() => this.saveText(specification, tries - 1), AGAIN);
      } else this.fail(error);
    }
  }

  /** Name of the chosen property: that of the address, otherwise the first that is violated. */
  chosen() {
    const properties = this.result?.properties ?? [];
    const named = properties.find((p) => p.name === this.route.query.get("property"));
    return named ?? properties.find((p) => p.violations.length) ?? properties[0];
  }

  draw() {
    const properties = this.result?.properties ?? [];
    const chosen = this.chosen();
    const violations = (chosen?.violations ?? []).map((v, i) => violationOf(`${chosen.name} ${i}`, v));
    const selected = violations.find((v) => v.id === this.route.query.get("violation")) ?? null;
    const focused = this.list.contains(document.activeElement) ? [...this.list.querySelectorAll("button")].indexOf(document.activeElement) : -1;
    fill(this.list, properties.map((p) => this.item(p, p === chosen, violations, selected)));
    if (focused >= 0) this.list.querySelectorAll("button")[focused]?.focus();
    if (typeof uPlot === "undefined" || !this.result) return this.drawCharts([], null);
    const charts = properties.slice(0, MOST_CHARTS).map((p) => [`property ${p.name}`, () => new VerdictChart(plain(p.name)), p.timeline, p === chosen ? marksFor(null, violations, selected) : []]);
    for (const signal of this.result.signals.slice(0, MOST_CHARTS)) {
      const make = () => (signal.kind === "text" ? new TextChart(plain(signal.name)) : new BandChart(plain(signal.name), signal.kind));
      charts.push([`signal ${signal.kind} ${signal.name}`, make, signal, marksFor(signal.name, violations, selected)]);
    }
    return this.drawCharts(charts, this.shown());
  }

  item(property, isChosen, violations, selected) {
    const sign = SIGNS[property.outcome] ?? "none";
    const choose = el("button", { type: "button", class: "violation", "aria-pressed": String(isChosen), onclick: () => setQuery({ property: property.name, violation: null }) },
      el("span", { class: `badge is-${sign}` }, shape(sign), plain(property.outcome, 20)), el("b", {}, plain(property.name)), property.count ? el("span", { class: "params" }, `violated ${count(property.count)}×`) : null,
      property.remark ? el("span", { class: "params" }, plain(property.remark, 300)) : null);
    const whys = isChosen && violations.length ? el("ol", { class: "violations" }, violations.map((v) => {
      const isSelected = v === selected;
      return el("li", {}, el("button", { type: "button", class: "violation", "aria-expanded": String(isSelected), onclick: () => setQuery({ property: property.name, violation: isSelected ? null : v.id }) },
        el("span", { class: "when" }, timeOf(v.begin)), certainty(v), el("span", { class: "params" }, plain(v.parameters, 60))), isSelected ? explanation(v) : null);
    })) : null;
    return el("li", {}, choose, whys);
  }

  /** The time range: that of the address, otherwise the whole recording. */
  shown() {
    const { begin, end } = this.result;
    const from = begin ?? 0;
    const whole = { from, until: Math.max(end ?? 0, from + 0.001), seen: end ?? 0 };
    return this.route.query.has("from") ? { ...range(), seen: whole.seen } : whole;
  }

  drawCharts(charts, shown) {
    const keys = new Set(charts.map(([key]) => key));
    for (const [key, chart] of this.charts) {
      if (keys.has(key)) continue;
      chart.destroy();
      chart.root.remove();
      this.charts.delete(key);
    }
    charts.forEach(([key, make, content, marks], i) => {
      let chart = this.charts.get(key);
      if (!chart) {
        chart = make();
        this.charts.set(key, chart);
        chart.resize(this.plots.clientWidth);
      }
      if (this.plots.children[i] !== chart.root) this.plots.insertBefore(chart.root, this.plots.children[i] ?? null);
      chart.marks = marks;
      chart.draw(content, shown, i === charts.length - 1);
    });
  }

  update(route) {
    this.route = route;
    this.show();
    this.draw();
  }

  resize() {
    const width = this.plots.clientWidth;
    for (const chart of this.charts.values()) if (chart.width !== width && width) chart.resize(width);
  }

  redraw() {
    for (const chart of this.charts.values()) chart.redraw();
  }

  change(kind) {
    if (kind === "theme") this.redraw();
  }

  destroy() {
    this.isGone = true;
    clearTimeout(this.timer);
    this.observer.disconnect();
    for (const chart of this.charts.values()) chart.destroy();
  }
}

export function playground(main, route) {
  return new PlaygroundView(main, route);
}
