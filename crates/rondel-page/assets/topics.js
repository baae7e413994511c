// Topics: rates, ages, losses, and the last message of one as a tree.

import { get } from "./api.js";
import { debounced, el, fill, plain, setAttribute, setText } from "./dom.js";
import { Grid } from "./grid.js";
import { isConnected, model } from "./model.js";
import { empty, problem, timeOf } from "./parts.js";
import { go, link, setQuery } from "./route.js";
import { count, counted, duration, now, number } from "./time.js";
import { tree } from "./tree.js";

const PAGE = 1000;

function bytes(n) {
  if (n === null) return "–";
  if (n < 1000) return `${number(Number(n.toPrecision(3)))} B`;
  return n < 1e6 ? `${Number((n / 1e3).toPrecision(3))} kB` : `${Number((n / 1e6).toPrecision(3))} MB`;
}

function buildRow() {
  const name = el("a", { class: "name" });
  const address = el("span", { class: "notes" });
  const cells = Object.fromEntries(["rate", "age", "size", "messages", "late", "lost", "undecodable", "type"].map((key) => [key, el("span")]));
  const update = (topic) => {
    if (!topic) return;
    setText(name, plain(topic.name));
    setAttribute(name, "href", link("topics", topic.name));
    const publishers = topic.publishers === null ? "" : `, ${counted(topic.publishers, "publisher")}`;
    setText(address, plain(`${topic.network}: ${topic.address}`, 120) + publishers);
    const isSilent = topic.age === null;
    setText(cells.rate, topic.rate === null ? "–" : `${number(Number(topic.rate.toPrecision(3)))}/s`);
    setText(cells.age, isSilent ? "never" : `${duration(topic.age)}`);
    setAttribute(cells.age, "class", isSilent ? "bad" : null);
    setText(cells.size, bytes(topic.size));
    setText(cells.messages, count(topic.messages));
    for (const [key, value] of [["late", topic.late], ["lost", topic.lost], ["undecodable", topic.undecodable]]) {
      setText(cells[key], value ? `▲ ${count(value)}` : "0");
      setAttribute(cells[key], "class", value ? "bad" : null);
    }
    setText(cells.type, topic.type === null ? "–" : plain(topic.type, 60));
  };
  return { cells: [["title", [name, address]], ...Object.entries(cells)], update };
}

/** The last message of a topic. */
class Detail {
  constructor() {
    this.root = el("section", { class: "detail", "aria-label": "Last message", hidden: true });
    this.key = null;
  }

  async show(name, isForced = false) {
    this.root.hidden = name === null;
    this.root.parentElement?.classList.toggle("has-detail", name !== null);
    if (name === null) return;
    if (this.name !== name) fill(this.root, el("p", { class: "note" }, "Loading…"));
    const isNew = this.name !== name;
    this.name = name;
    // A tree with an open branch stays; the button loads the next message.
    if (!isNew && !isForced && this.root.querySelector("details details[open], :focus")) return;
    try {
      const answer = await get(["topics", name]);
      if (this.name === name) this.draw(answer);
    } catch (error) {
      if (this.name === name && error.status) fill(this.root, this.head(name), problem(error));
    }
  }

  head(name) {
    return el("div", { class: "title-line" }, el("h2", {}, plain(name)), el("button", { type: "button", onclick: () => this.show(name, true) }, "Next message"), el("button", { type: "button", onclick: () => go(link("topics")) }, "Close"));
  }

  draw({ topic, message }) {
    const facts = message && el("p", { class: "note" }, "Received ", timeOf(message.received, { date: false }), ` (${duration(Math.max(0, now() - message.received))} ago), ${bytes(message.bytes)}`, message.is_cut ? ", shortened" : "");
    fill(this.root, this.head(topic.name), facts, !message ? empty("No message yet.") : message.error ? problem(new Error(message.error)) : el("div", { class: "tree" }, tree(topic.name, message.value, true)));
  }
}

export function topics(main, route) {
  let rows = [];
  let all = [];
  let current = route;
  let isLoading = false;
  const note = el("p", { class: "note", role: "status" });
  const problems = el("div");
  const detail = new Detail();
  const search = el("input", { type: "search", placeholder: "Search topics", "aria-label": "Search topics", value: route.query.get("search") ?? "", oninput: debounced(() => setQuery({ search: search.value }), 80) });
  const grid = new Grid({
    label: "Topics",
    className: "topics",
    columns: [["title", "topic"], ["rate", "rate"], ["age", "age"], ["size", "size"], ["messages", "messages"], ["late", "late"], ["lost", "lost"], ["undecodable", "undecodable"], ["type", "type"]],
    build: buildRow,
    item: (index) => rows[index] ?? null,
    key: (topic) => topic.name,
    open: (topic) => go(link("topics", topic.name)),
  });
  fill(main, el("h1", { class: "hidden" }, "Topics"), el("div", { class: "controls" }, search), problems, el("div", { class: "split" }, grid.root, detail.root), note);

  const show = () => {
    const needle = (current.query.get("search") ?? "").trim().toLowerCase();
    rows = all.filter((t) => !needle || `${t.name} ${t.address} ${t.type ?? ""}`.toLowerCase().includes(needle));
    grid.setCount(rows.length);
    setText(note, all.length ? `${count(rows.length)} of ${counted(all.length, "topic")}` : model.state?.kind === "store" ? "A store keeps no topics." : "");
  };
  const load = async () => {
    if (isLoading) return;
    isLoading = true;
    try {
      const answer = await get("topics", { limit: PAGE });
      all = answer.topics;
      fill(problems);
      show();
    } catch (error) {
      if (error.status) fill(problems, problem(error));
    } finally {
      isLoading = false;
    }
  };
  load();
  let name = route.name;
  detail.show(name);
  return {
    grid,
    search,
    update(next) {
      current = next;
      name = next.name;
      detail.show(name);
      show();
    },
    tick: () => {
      if (!isConnected()) return;
      load();
      if (name !== null) detail.show(name);
    },
    reset: load,
    destroy: () => grid.destroy(),
  };
}
