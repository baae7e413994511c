// The overview: all properties, the worst first, with their last minutes.

import { debounced, el, plain, setAttribute, setText, shape } from "./dom.js";
import { dragToZoom, drawLane, merged, timeAxis } from "./axis.js";
import { Grid } from "./grid.js";
import { counts, isConnected, loadLosses, loadOverview, model, unseenSince } from "./model.js";
import { age, badge, choiceOf, propertyLink, rangeControl } from "./parts.js";
import { go, link, range, setQuery } from "./route.js";
import { count, counted, duration, stamp } from "./time.js";
import { BY_NUMBER, VERDICTS, WORDS, drawBar, verdictOf, worstFirst } from "./verdicts.js";

const ORDERS = {
  worst: worstFirst,
  name: (a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0),
  since: (a, b) => (b.since ?? 0) - (a.since ?? 0),
  count: (a, b) => b.violations - a.violations || worstFirst(a, b),
};

/** A row of the list. */
function buildRow() {
  const sign = badge();
  const name = propertyLink("");
  const notes = el("span", { class: "notes" });
  const severity = el("span", { class: "severity" });
  const since = el("span");
  const violations = el("span");
  const instances = el("span");
  const update = (row) => {
    if (!row) return;
    sign.set(row.verdict);
    setText(name, plain(row.name));
    setAttribute(name, "href", link("property", row.name));
    setText(notes, noteOf(row));
    setText(severity, row.severity);
    setAttribute(severity, "class", `severity severity-${/^[a-z]+$/.test(row.severity) ? row.severity : "other"}`);
    setText(since, lengthOf(row));
    setAttribute(since, "title", titleOf(row));
    setText(violations, row.violations ? `${count(row.violations)}×` : "–");
    setAttribute(violations, "title", `violated ${count(row.violations)} times`);
    setText(instances, instancesOf(row.instances));
  };
  return { cells: [["verdict", sign.element], ["title", [name, notes]], ["sev", severity], ["since", since], ["violations", violations], ["instances", instances], ["lane", null]], update };
}

/** For how long the verdict holds; of a checked recording, how long the property was violated in all. */
function lengthOf(row) {
  if (row.violated_seconds !== undefined) return row.violated_seconds ? duration(row.violated_seconds) : "–";
  return row.since === null ? "–" : age(row.since);
}

function titleOf(row) {
  if (row.violated_seconds === null && row.violations) return "not measured: its verdicts do not mark the end of a violation";
  return row.since === null ? null : `since ${stamp(row.since)}`;
}

function noteOf(row) {
  const notes = [];
  if (row.remark && row.verdict !== "violated") notes.push(plain(row.remark, 200));
  if (row.acknowledged_by) notes.push(`in the hands of ${plain(row.acknowledged_by, 40)}`);
  if (row.silenced_until) notes.push("silenced");
  if (row.because_of) notes.push(`because of ${plain(row.because_of, 60)}`);
  if (row.requirement) notes.push(plain(row.requirement, 60));
  return notes.join(" · ");
}

function instancesOf({ total, violated, inconclusive }) {
  if (total <= 1) return "";
  if (violated) return `${count(violated)} of ${count(total)}`;
  return inconclusive ? `${count(inconclusive)} of ${count(total)} open` : count(total);
}

/** Draws the verdicts of a row from `from` until the last time that the page has seen. */
export function drawTimeline(context, timeline, box, shown, losses) {
  const x = drawLane(context, box, losses, shown);
  if (!timeline) return;
  const { times, verdicts } = timeline;
  for (let i = 0; i < times.length; i += 1) {
    const end = i + 1 < times.length ? times[i + 1] : shown.seen;
    if (end < shown.from || times[i] > shown.until) continue;
    const left = Math.max(0, x(times[i]));
    drawBar(context, BY_NUMBER[verdicts[i]] ?? "none", left, Math.min(box.width, x(end)) - left, box.top, box.height);
  }
}

/** The present range, with `seen`: until when the page has seen verdicts. */
export function shownRange() {
  const shown = range();
  const lost = unseenSince() ?? Infinity;
  return { ...shown, seen: Math.min(shown.until, lost) };
}

/** Losses of messages, and the time since the connection was lost or the store lags behind. */
export function blindIntervals() {
  const blind = model.losses.filter((loss) => loss.is_blind);
  const since = unseenSince();
  if (model.connection.state !== "ended" && since !== null) blind.push({ from: since, until: Infinity, reason: isConnected() ? "not stored" : "connection lost" });
  return blind;
}

/** The condition of a query on rows. */
function filterOf(query) {
  const needle = (query.get("search") ?? "").trim().toLowerCase();
  const verdict = query.get("verdict");
  const want = { severity: query.get("severity"), requirement: query.get("requirement"), network: query.get("network") };
  return (row) =>
    (!needle || row.name.toLowerCase().includes(needle) || row.requirement.toLowerCase().includes(needle)) &&
    (!verdict || verdictOf(row.verdict) === verdict) &&
    (!want.severity || row.severity === want.severity) &&
    (!want.requirement || row.requirement.split(",").some((r) => r.trim() === want.requirement)) &&
    (!want.network || row.networks.includes(want.network));
}

function orderOf(query) {
  const sort = query.get("sort");
  return Object.hasOwn(ORDERS, sort) ? ORDERS[sort] : worstFirst;
}

/** Search, filters, order and time range. `update(query)` shows those of a query. */
function filters(route) {
  const control = rangeControl();
  const search = el("input", { type: "search", id: "search", placeholder: "Search names and requirements", "aria-label": "Search names and requirements", value: route.query.get("search") ?? "",
    oninput: debounced(() => setQuery({ search: search.value }), 80) });
  const chips = VERDICTS.map((verdict) => {
    const number = el("b");
    const chip = el("button", { type: "button", class: `chip is-${verdict}`, onclick: () => setQuery({ verdict: chip.getAttribute("aria-pressed") === "true" ? null : verdict }) }, shape(verdict), number, ` ${WORDS[verdict]}`);
    return { chip, number, verdict };
  });
  const severity = choiceOf("Severity", "any severity", (value) => setQuery({ severity: value }));
  const requirement = choiceOf("Requirement", "any requirement", (value) => setQuery({ requirement: value }));
  const network = choiceOf("Network", "any network", (value) => setQuery({ network: value }));
  const order = el("select", { "aria-label": "Order", onchange: () => setQuery({ sort: order.value === "worst" ? null : order.value }) },
    [["worst", "worst first"], ["since", "latest change"], ["count", "most violations"], ["name", "by name"]].map(([value, text]) => el("option", { value }, text)));
  const update = (query) => {
    const numbers = counts();
    for (const { chip, number, verdict } of chips) {
      setText(number, count(numbers[verdict]));
      setAttribute(chip, "aria-pressed", String(query.get("verdict") === verdict));
      setAttribute(chip, "data-empty", numbers[verdict] ? null : "");
    }
    severity.update(model.overview?.severities ?? [], query.get("severity"));
    requirement.update(model.overview?.requirements ?? [], query.get("requirement"));
    network.update(model.overview?.networks ?? [], query.get("network"));
    order.value = Object.hasOwn(ORDERS, query.get("sort")) ? query.get("sort") : "worst";
    if (document.activeElement !== search) search.value = query.get("search") ?? "";
    control.update();
  };
  const elements = [
    el("div", { class: "chips", role: "group", "aria-label": "Filter by verdict" }, chips.map((c) => c.chip)),
    el("div", { class: "controls" }, search, severity.element, requirement.element, network.element, order, control.element),
  ];
  return { elements, search, update };
}

export function overview(main, route) {
  let rows = [];
  let losses = [];
  let shown = shownRange();
  let sorted = { version: -1, key: "", at: -Infinity, size: 0 };
  const axis = timeAxis();
  const bar = filters(route);
  const status = el("p", { class: "note", role: "status" });
  const grid = new Grid({
    label: "Properties",
    className: "properties",
    columns: [["verdict", "verdict"], ["title", "property"], ["sev", "severity"], ["since", "for"], ["violations", "violations"], ["instances", "instances"], ["lane", [el("span", { class: "hidden" }, "timeline"), axis.element]]],
    build: buildRow,
    item: (index) => rows[index] ?? null,
    key: (row) => row.name,
    draw: (context, row, box) => drawTimeline(context, row.timeline, box, shown, losses),
    open: (row) => go(link("property", row.name)),
  });
  dragToZoom(grid.root, () => grid.laneBox ?? { left: 0, width: -1 });
  main.replaceChildren(el("h1", { class: "hidden" }, "Overview"), ...bar.elements, grid.root, status);

  /** Filters and sorts again; rows stay where they are while the list is in use, and otherwise move once a second. */
  const arrange = (query) => {
    const key = ["search", "verdict", "severity", "requirement", "network", "sort"].map((name) => query.get(name)).join("\n");
    const isNewKey = key !== sorted.key;
    const isNew = isNewKey || sorted.size !== model.properties.size;
    if (!isNew && (sorted.version === model.version || grid.isInUse() || performance.now() - sorted.at < 1000)) {
      rows = rows.map((row) => model.properties.get(row.name)).filter(Boolean);
    } else {
      rows = [...model.properties.values()].filter(filterOf(query)).sort(orderOf(query));
      sorted = { version: model.version, key, at: performance.now(), size: model.properties.size };
      grid.keepActive((name) => rows.findIndex((row) => row.name === name));
      if (isNewKey && model.overview) grid.root.scrollTop = 0;
    }
    grid.setCount(rows.length);
  };

  const update = (query) => {
    shown = shownRange();
    losses = merged(blindIntervals(), shown);
    bar.update(query);
    arrange(query);
    const all = model.properties.size;
    setText(status, !model.overview ? "" : all === 0 ? "The specification has no properties." : `${rows.length === all ? "" : `${count(rows.length)} of `}${counted(all, "property", "properties")}`);
    // An axis computes the layout: not before there are rows.
    if (model.overview) axis.draw();
    grid.render();
  };

  let current = route;
  let loaded = rangeKey();
  const reload = debounced(() => Promise.all([loadOverview(), loadLosses()]).catch(() => {}), 120);
  update(route.query);
  return {
    grid,
    search: bar.search,
    update(next) {
      current = next;
      if (rangeKey() !== loaded) reload();
      loaded = rangeKey();
      update(next.query);
    },
    change: () => update(current.query),
    tick: (n) => {
      update(current.query);
      if (n % 15 === 0 && isConnected()) reload();
    },
    destroy: () => grid.destroy(),
  };
}

function rangeKey() {
  const { from, until, follows } = range();
  return follows ? `last ${(until - from).toFixed(3)}` : `${from} ${until}`;
}
