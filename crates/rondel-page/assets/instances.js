// The instances of a property: a list with virtual rows whose pages are loaded when they come into view.

import { get } from "./api.js";
import { debounced, el, plain, setAttribute, setText } from "./dom.js";
import { Grid } from "./grid.js";
import { age, badge, parametersText } from "./parts.js";
import { setQuery } from "./route.js";
import { count, number, stamp } from "./time.js";

const PAGE = 200;
const MOST_PAGES = 40; // kept in memory

function buildRow() {
  const sign = badge();
  const name = el("span", { class: "name" });
  const since = el("span");
  const worst = el("span");
  const owner = el("span");
  const update = (row) => {
    sign.set(row?.verdict ?? null);
    setText(name, row ? parametersText(row.parameters) : "…");
    setText(since, row ? age(row.since) : "");
    setAttribute(since, "title", row ? `since ${stamp(row.since)}` : null);
    setText(worst, row && row.worst !== null ? number(row.worst) : "");
    setText(owner, row?.acknowledged_by ? plain(row.acknowledged_by, 40) : "");
  };
  return { cells: [["verdict", sign.element], ["title", name], ["since", since], ["worst", worst], ["owner", owner]], update };
}

/** The list of a property; `select(parameters)` is called with a chosen instance. */
export class Instances {
  constructor(property, select, onError) {
    this.property = property;
    this.onError = onError;
    this.pages = new Map();
    this.query = {};
    this.generation = 0;
    this.search = el("input", { type: "search", placeholder: "Search parameters", "aria-label": "Search parameters", oninput: debounced(() => setQuery({ isearch: this.search.value }), 120) });
    this.sort = el("select", { "aria-label": "Order of instances", onchange: () => setQuery({ isort: this.sort.value === "worst" ? null : this.sort.value }) },
      [["worst", "worst first"], ["newest", "latest change"], ["name", "by parameters"]].map(([value, text]) => el("option", { value }, text)));
    this.verdict = el("select", { "aria-label": "Verdict of instances", onchange: () => setQuery({ iverdict: this.verdict.value }) },
      [["", "any verdict"], ["violated", "violated"], ["inconclusive", "inconclusive"], ["satisfied", "satisfied"]].map(([value, text]) => el("option", { value }, text)));
    this.note = el("span", { class: "note", role: "status" });
    this.grid = new Grid({
      label: "Instances",
      className: "instance-list",
      columns: [["verdict", "verdict"], ["title", "parameters"], ["since", "for"], ["worst", "robustness"], ["owner", "owner"]],
      build: buildRow,
      item: (index) => this.pages.get(Math.floor(index / PAGE))?.[index % PAGE] ?? null,
      key: (row) => JSON.stringify(row.parameters),
      open: (row) => select(row.parameters),
      shown: (first, shown) => this.ensure(first, shown),
    });
    this.root = el("section", { class: "instances-part" }, el("h2", {}, "Instances"), el("div", { class: "controls" }, this.search, this.verdict, this.sort, this.note), this.grid.root);
  }

  /** Takes search, order and verdict of the address. */
  update(query) {
    this.sort.value = query.get("isort") ?? "worst";
    this.verdict.value = query.get("iverdict") ?? "";
    const next = { search: query.get("isearch"), sort: this.sort.value, verdict: this.verdict.value };
    if (document.activeElement !== this.search) this.search.value = next.search ?? "";
    if (JSON.stringify(next) === JSON.stringify(this.query) && this.generation) return;
    this.query = next;
    this.grid.root.scrollTop = 0;
    this.reload();
  }

  /** Loads the pages in view again; the present rows stay until they are there. */
  reload() {
    this.generation += 1;
    this.requested = new Set();
    this.stale = new Set(this.pages.keys());
    if (!this.pages.size) this.load(0);
    this.grid.render();
  }

  ensure(first, shown) {
    for (let page = Math.floor(first / PAGE); page <= Math.floor((first + Math.max(0, shown - 1)) / PAGE); page += 1) this.load(page);
  }

  async load(page) {
    if (!this.requested || this.requested.has(page) || (this.pages.has(page) && !this.stale.has(page))) return;
    this.requested.add(page);
    const generation = this.generation;
    try {
      const answer = await get(["properties", this.property, "instances"], { ...this.query, offset: page * PAGE, limit: PAGE });
      if (generation !== this.generation) return;
      this.pages.set(page, answer.instances);
      this.stale.delete(page);
      this.forget(page);
      this.show(answer);
    } catch (error) {
      this.requested.delete(page);
      this.onError(error);
    }
  }

  forget(page) {
    const far = [...this.pages.keys()].sort((a, b) => Math.abs(b - page) - Math.abs(a - page));
    for (const key of far.slice(0, Math.max(0, this.pages.size - MOST_PAGES))) {
      this.pages.delete(key);
      this.requested.delete(key);
    }
  }

  show(answer) {
    const { total, violated, inconclusive } = answer.counts;
    const texts = [answer.total === total ? `${count(total)}` : `${count(answer.total)} of ${count(total)}`, `${count(violated)} violated`];
    if (inconclusive) texts.push(`${count(inconclusive)} inconclusive`);
    if (!answer.is_complete) texts.push("further instances are not kept");
    setText(this.note, texts.join(", "));
    this.grid.setCount(answer.total);
  }

  destroy() {
    this.grid.destroy();
  }
}
