// A property: its text with live values, its timeline with robustness and signals on one time axis, violations, instances.

import { ApiError, get } from "./api.js";
import { merged } from "./axis.js";
import { BandChart, TextChart, VerdictChart, loadLibrary } from "./chart.js";
import { debounced, el, fill, perFrame, plain, setText } from "./dom.js";
import { Instances } from "./instances.js";
import { isConnected, isSeen, model } from "./model.js";
import { blindIntervals, shownRange } from "./overview.js";
import { age, badge, parametersText, problem, rangeControl, valueText } from "./parts.js";
import { link, range, setQuery, setReached } from "./route.js";
import { annotated } from "./source.js";
import { clock, stamp } from "./time.js";
import { marksFor, violationList } from "./violations.js";

const MOST_SIGNALS = 12;

class PropertyView {
  constructor(main, route) {
    this.name = route.name ?? "";
    this.route = route;
    this.charts = new Map();
    this.data = {};
    this.control = rangeControl();
    this.badge = badge();
    this.facts = el("span", { class: "facts" });
    this.problems = el("div", {});
    this.text = el("section", { class: "text", "aria-label": "Specification" });
    this.plots = el("div", { class: "plots" });
    this.plotNote = el("p", { class: "note" });
    this.selection = el("div", { class: "selection" });
    this.violations = el("section", { class: "violations-part", "aria-label": "Violations" });
    this.instances = new Instances(this.name, (parameters) => setQuery({ instance: JSON.stringify(parameters), violation: null }, true), (error) => this.fail(error));
    // Hidden until the property is known.
    this.badge.element.hidden = this.instances.root.hidden = true;
    this.grid = this.instances.grid;
    this.search = this.instances.search;
    const copy = el("button", { type: "button", onclick: () => this.copy(copy) }, "Copy link");
    fill(main, el("nav", { class: "crumbs", "aria-label": "Path" }, el("a", { href: link("overview") }, "Overview"), " / "),
      el("div", { class: "title-line" }, el("h1", {}, plain(this.name)), this.badge.element, this.facts, copy), this.problems, this.text,
      el("section", { class: "plots-part", "aria-label": "Timeline" }, el("h2", { class: "hidden" }, "Timeline"), el("div", { class: "controls" }, this.selection, this.control.element), this.plots, this.plotNote), this.violations, this.instances.root);
    this.observer = new ResizeObserver(perFrame(() => this.resize()));
    this.observer.observe(this.plots);
    this.reload = debounced(() => this.load(), 80);
    this.update(route, true);
  }

  update(route, isFirst = false) {
    const before = this.key;
    this.route = route;
    const { from, until, follows } = range();
    this.key = JSON.stringify([follows ? until - from : [from, until], route.query.get("instance")]);
    this.instances.update(route.query);
    this.showSelection();
    this.control.update();
    if (isFirst) this.load();
    else if (before !== this.key) this.reload();
    this.draw();
    this.showViolations();
  }

  async copy(button) {
    const { from, until } = range();
    const query = { ...Object.fromEntries(this.route.query), range: null, from: from.toFixed(3), until: until.toFixed(3) };
    const address = new URL(link("property", this.name, query), location.href).href;
    try {
      await navigator.clipboard.writeText(address);
      setText(button, "Copied");
    } catch {
      setQuery({ range: null, from: query.from, until: query.until });
      setText(button, "See the address");
    }
    setTimeout(() => setText(button, "Copy link"), 2000);
  }

  fail(error) {
    if (error.name === "AbortError" || !(error instanceof ApiError) || error.status === 0) {
      if (!(error instanceof ApiError) && error.name !== "AbortError") throw error;
      return; // The banner says that nothing answers.
    }
    const isGone = error.status === 404 && this.data.property;
    fill(this.problems, problem(isGone ? new Error(`the specification no longer has this property. Below is its state before ${clock(this.data.property.now)}`) : error));
    this.isGone = error.status === 404;
    this.plots.parentElement.classList.toggle("gone", this.isGone);
  }

  async load() {
    this.abort?.abort();
    this.abort = new AbortController();
    const signal = this.abort.signal;
    const { from, until, follows } = range();
    const query = { from, until: follows ? null : until, width: Math.min(2048, Math.max(200, this.plots.clientWidth)), parameters: this.route.query.get("instance") };
    const path = ["properties", this.name];
    try {
      const [property, history, signals, violations] = await Promise.all([get(path, {}, signal), get([...path, "verdicts"], query, signal), get([...path, "signals"], query, signal),
        get("violations", { property: this.name, from: query.from, until: query.until, parameters: query.parameters, limit: 100 }, signal), loadLibrary()]);
      setReached(property.reached);
      this.data = { property, history, signals, violations };
      this.isGone = false;
      fill(this.problems);
      this.plots.parentElement.classList.remove("gone");
      this.show();
    } catch (error) {
      this.fail(error);
    }
  }

  show() {
    const { property } = this.data;
    const attributes = property.attributes.map((a) => `@${plain(a.name, 40)}${a.value ? `(${plain(a.value, 80)})` : ""}`).join(" ");
    const key = JSON.stringify([property.text, property.atoms, isSeen()]);
    if (this.textKey !== key) {
      this.textKey = key;
      fill(this.text, annotated(property, isSeen()), property.definitions.length ? el("details", {}, el("summary", {}, "Definitions"), property.definitions.map((d) => el("pre", {}, d.text))) : null,
        el("p", { class: "note" }, attributes, attributes ? " · " : "", property.line ? el("a", { href: link("specification", null, { line: property.line }) }, `line ${property.line} of the specification`) : null));
    }
    this.instances.root.hidden = !property.parameters.length;
    if (property.parameters.length) this.instances.reload();
    this.showSummary();
    this.showViolations();
    this.draw();
  }

  showSummary() {
    const row = model.properties.get(this.name) ?? this.data.property?.summary;
    if (!row) return;
    this.badge.set(row.verdict);
    this.badge.element.hidden = false;
    const facts = [row.since === null ? null : `for ${age(row.since)}`, row.severity && `severity ${plain(row.severity, 40)}`, row.requirement && plain(row.requirement, 80), row.remark ? plain(row.remark, 400) : row.violations ? `violated ${row.violations}×` : null,
      row.acknowledged_by && `in the hands of ${plain(row.acknowledged_by, 40)}`, row.silenced_until && `silenced until ${stamp(row.silenced_until)}`];
    setText(this.facts, facts.filter(Boolean).join(" · "));
    if (row.because_of) this.facts.append(" · because of ", el("a", { href: link("property", row.because_of) }, plain(row.because_of, 60)));
  }

  showSelection() {
    const text = this.route.query.get("instance");
    let parameters = null;
    try {
      parameters = text === null ? null : JSON.parse(text);
    } catch {
      parameters = { instance: text };
    }
    fill(this.selection, parameters === null ? null : ["Instance ", el("b", {}, parametersText(parameters)), " ", el("button", { type: "button", onclick: () => setQuery({ instance: null }) }, "All instances")]);
  }

  selected() {
    const id = Number(this.route.query.get("violation"));
    return this.data.violations?.violations.find((v) => v.id === id) ?? null;
  }

  showViolations() {
    if (!this.data.violations) return;
    const key = JSON.stringify([this.data.violations.violations, this.data.violations.total, this.selected()?.id]);
    if (this.violationsKey === key) return;
    this.violationsKey = key;
    const focused = document.activeElement?.closest(".violation");
    const index = focused ? [...this.violations.querySelectorAll(".violation")].indexOf(focused) : -1;
    fill(this.violations, violationList(this.data.violations, this.selected()));
    if (index >= 0) this.violations.querySelectorAll(".violation")[index]?.focus();
  }

  /** The signals to show: in a report, of several instances those of the selected violation. */
  signals() {
    const all = this.data.signals.signals;
    const selected = this.selected();
    return selected ? all.filter((signal) => signal.parameters === undefined || signal.parameters === selected.parameters) : all;
  }

  /** The charts of the present data, in order: verdict, robustness, signals. */
  contents() {
    const { history, signals } = this.data;
    const list = [["verdict", () => new VerdictChart(), history.timeline, null]];
    if (history.robustness) list.push(["robustness", () => new BandChart("Robustness", "robustness"), history.robustness, null]);
    for (const signal of this.signals().slice(0, MOST_SIGNALS)) {
      const title = plain(signal.title ?? signal.name);
      const make = () => (signal.kind === "text" ? new TextChart(title) : new BandChart(title, signal.kind));
      list.push([`signal ${signal.kind} ${title}`, make, signal, signal.name]);
    }
    return list;
  }

  draw() {
    if (!this.data.history || typeof uPlot === "undefined") return;
    const shown = shownRange();
    const contents = this.contents();
    const keys = new Set(contents.map(([key]) => key));
    for (const [key, chart] of this.charts) {
      if (keys.has(key)) continue;
      chart.destroy();
      chart.root.remove();
      this.charts.delete(key);
    }
    const blind = this.blind(shown);
    const violations = this.data.violations.violations;
    contents.forEach(([key, make, content, name], i) => {
      let chart = this.charts.get(key);
      if (!chart) {
        chart = make();
        this.charts.set(key, chart);
        chart.resize(this.plots.clientWidth);
        this.plots.append(chart.root);
      }
      chart.losses = blind;
      chart.marks = marksFor(name, violations, this.selected());
      chart.draw(content, shown, i === contents.length - 1);
      setText(chart.value, name === null ? "" : this.valueOf(name));
    });
    const { history, signals } = this.data;
    const notes = [signals.sampled ? "Signals are sampled: values between two samples are not shown." : null, history.is_complete ? null : "Shaded at the begin: from before the history that is kept.",
      this.signals().length > MOST_SIGNALS ? `The first ${MOST_SIGNALS} of ${this.signals().length} signals.` : null, signals.note, blind.length ? "Shaded: the monitor was blind." : null];
    setText(this.plotNote, notes.filter(Boolean).join(" "));
  }

  blind(shown) {
    const { history } = this.data;
    const list = [...blindIntervals(), ...history.losses.filter((loss) => loss.is_blind)];
    const first = history.timeline.times.find((_, i) => history.timeline.verdicts[i] !== 3);
    if (!history.is_complete) list.push({ from: -Infinity, until: first ?? shown.until });
    return merged(list, shown);
  }

  valueOf(name) {
    const atom = this.data.property.is_live && this.data.property.atoms.find((a) => a.name === name);
    return atom ? `now ${valueText(atom.value, 40)}` : "";
  }

  resize() {
    const width = this.plots.clientWidth;
    for (const chart of this.charts.values()) if (chart.width !== width && width) chart.resize(width);
  }

  change() {
    this.showSummary();
  }

  tick(n) {
    this.control.update();
    this.showSummary();
    if (!isConnected() || this.isGone) return this.draw();
    const isLive = this.data.property?.is_live ?? true;
    if (isLive && (range().follows || n % 5 === 0)) this.load();
    else if (range().follows) this.draw();
  }

  redraw() {
    this.textKey = null;
    if (this.data.property) this.show();
    for (const chart of this.charts.values()) chart.redraw();
  }

  reset() {
    this.load();
  }

  destroy() {
    this.abort?.abort();
    this.observer.disconnect();
    this.instances.destroy();
    for (const chart of this.charts.values()) chart.destroy();
  }
}

export function property(main, route) {
  return new PropertyView(main, route);
}
