// The frame of the page: views by address, the connection, keys, colours.

import { el, fill, perFrame, plain, setAttribute, setText, shape } from "./dom.js";
import { helpContent, usesKeys } from "./help.js";
import { behindSince, connect, isSeen, model, onChange, retryNow } from "./model.js";
import { problem } from "./parts.js";
import { keep, recall } from "./preferences.js";
import { current, followLive, go, link, onRoute, pan, zoom } from "./route.js";
import { clock, duration, getZone, now, setZone, stamp, zoneName } from "./time.js";
import { hasToken, setToken } from "./token.js";
import { forgetColours } from "./verdicts.js";

const byId = (id) => document.getElementById(id);
const main = byId("main");
let views = {};
let titles = new Map(); // of the views with a link in the navigation
let anchors = new Map();
let view = null;
let shown = null; // view and name

/** The view of an address that names none. */
function unknown(main, route) {
  fill(main, problem(new Error(`there is no view \`${plain(route.view, 80)}\` here`)), el("p", {}, el("a", { href: link("overview") }, "Overview")));
  return { update: () => {} };
}

function show(route) {
  const name = Object.hasOwn(views, route.view) ? route.view : "unknown";
  const key = JSON.stringify([route.view, route.name]);
  if (key !== shown) {
    view?.destroy?.();
    // The element with the focus goes away with its view.
    if (shown !== null && main.contains(document.activeElement)) main.focus({ preventScroll: true });
    shown = key;
    main.className = `view-${name}`;
    view = (views[name] ?? unknown)(main, route);
    scrollTo(0, 0);
  } else view.update(route);
  for (const [target, anchor] of anchors) {
    setAttribute(anchor, "href", link(target));
    setAttribute(anchor, "aria-current", target === name || (target === "overview" && name === "property") ? "page" : null);
  }
  const title = name === "property" ? plain(route.name ?? "", 80) : titles.get(name) ?? "Unknown view";
  document.title = `${title} – Rondel`;
}

/** Shows the number of violations without an owner beside the link to the incidents. */
function showNumbers() {
  const element = byId("open-incidents");
  if (!element) return;
  let open = 0;
  for (const row of model.properties.values()) if (row.verdict === "violated" && !row.acknowledged_by && !row.silenced_until && !row.because_of) open += 1;
  element.hidden = !open;
  setText(element, String(open));
}

// --- the connection

const SIGNS = { connecting: "none", live: "satisfied", lost: "violated", denied: "inconclusive", ended: "none" };

function showConnection() {
  // Runs have none.
  if (anchors.has("playground")) anchors.get("playground").hidden = !model.state?.has_playground;
  const { state, since, problem } = model.connection;
  const kind = model.state?.kind;
  const isOld = !isSeen();
  if (document.documentElement.classList.contains("unseen") !== isOld) {
    document.documentElement.classList.toggle("unseen", isOld);
    forgetColours();
  }
  const words = { connecting: "connecting…", lost: "connection lost", denied: "token needed", ended: "run ended" };
  const text = words[state] ?? ({ store: "store", check: "recording", report: "report" }[kind] ?? (model.state && !model.state.is_ready ? "not ready" : "live"));
  const element = byId("connection");
  const key = `${state} ${text}`;
  if (element.dataset.key !== key) {
    element.dataset.key = key;
    fill(element, shape(state === "live" && text === "not ready" ? "inconclusive" : SIGNS[state]), el("span", {}, text));
    setAttribute(element, "class", `connection is-${state}`);
  }
  setAttribute(element, "title", model.state ? `${plain(model.state.name)}; Rondel ${plain(model.state.build.version, 40)}${kind === "report" ? "" : `; the server's time is ${clock(now(), { fraction: false })}`}` : null);
  showBanner(state, since, problem);
}

function showBanner(state, since, problem) {
  const banner = byId("banner");
  const reasons = state === "live" && model.state && !model.state.is_ready ? model.state.reasons : [];
  const behind = state === "live" ? behindSince() : null;
  const key = `${state} ${since} ${problem} ${behind} ${reasons.join()} ${getZone()}`;
  if (banner.dataset.key !== key) {
    banner.dataset.key = key;
    fill(banner, bannerContent(state, since, problem, { behind, reasons }));
    banner.hidden = !banner.firstChild;
    banner.className = `banner is-${state}`;
  }
  const age = banner.querySelector(".age");
  if (age && since !== null) setText(age, duration(Math.floor(Math.max(0, now() - since))));
}

function bannerContent(state, since, problem, { behind, reasons }) {
  if (state === "denied") return tokenForm(problem);
  if (state === "lost") {
    return [shape("violated"), since === null ? el("span", {}, el("b", {}, "No connection to the monitor."), ` ${sentence(problem)}.`)
      : el("span", {}, el("b", {}, "Connection lost since ", el("time", {}, stamp(since))), " (", el("span", { class: "age", "aria-hidden": "true" }), `): all verdicts are from before. ${sentence(problem)}.`),
    el("button", { type: "button", onclick: retryNow }, "Connect now")];
  }
  if (state === "ended") return [shape("none"), el("span", {}, el("b", {}, "The run has ended."), ` All verdicts are from before ${since === null ? "its end" : stamp(since)}.`)];
  if (behind !== null) return [shape("violated"), el("span", {}, el("b", {}, "The page lags behind since ", el("time", {}, stamp(behind))), `: all verdicts are from before. ${sentence(reasons.join("; "))}.`)];
  if (reasons.length) return [shape("inconclusive"), el("span", {}, el("b", {}, "The monitor is not ready: "), plain(reasons.join("; "), 400))];
  return null;
}

const sentence = (text) => plain(`${(text ?? "the monitor does not answer").charAt(0).toUpperCase()}${(text ?? "the monitor does not answer").slice(1)}`.replace(/\.$/, ""), 300);

function tokenForm(problem) {
  const input = el("input", { type: "password", "aria-label": "Token", autocomplete: "off", required: true });
  return el("form", { class: "token", onsubmit: (event) => {
    event.preventDefault();
    setToken(input.value);
    retryNow();
  } }, shape("inconclusive"), el("span", {}, el("b", {}, "A token is needed."), hasToken() ? ` ${sentence(problem)}.` : null), input, el("button", {}, "Connect"));
}

// --- colours, zone, keys, printing

function showTools() {
  const theme = document.documentElement.dataset.theme ?? "auto";
  fill(byId("theme"), el("span", { "aria-hidden": "true" }, { auto: "◐", light: "☀", dark: "☾" }[theme]), el("span", { class: "hidden" }, `Colours: ${theme}`));
  setAttribute(byId("theme"), "title", `Colours: ${theme} (t)`);
  setText(byId("zone"), zoneName());
  setAttribute(byId("zone"), "title", "Local time or UTC (u)");
}

function setTheme(theme) {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  forgetColours();
  showTools();
  view?.redraw?.();
  view?.change?.("theme");
}

function nextTheme() {
  const order = ["auto", "light", "dark"];
  const next = order[(order.indexOf(document.documentElement.dataset.theme ?? "auto") + 1) % order.length];
  keep("theme", next);
  setTheme(next);
}

function nextZone() {
  setZone(getZone() === "utc" ? "local" : "utc");
  showTools();
  showConnection();
  view?.redraw?.();
  view?.update(current());
}

function showHelp() {
  fill(byId("help"), helpContent(() => byId("help").close(), [...titles.values()]));
  byId("help").showModal();
}

const KEYS = {
  "/": () => view?.search?.focus(),
  "?": showHelp,
  "+": () => zoom(0.5),
  "=": () => zoom(0.5),
  "-": () => zoom(2),
  0: () => followLive(),
  ArrowLeft: () => pan(-0.25),
  ArrowRight: () => pan(0.25),
  t: nextTheme,
  u: nextZone,
};

/** Follows the link of a view by its number. */
function goTo(number) {
  const [target, anchor] = [...anchors][number - 1] ?? [];
  if (anchor && !anchor.hidden) go(link(target));
}

window.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.key === "Escape" && event.target.matches("input[type=search]")) return event.target.blur();
  if (event.target.closest("input, select, textarea") || !usesKeys()) return;
  if (Object.hasOwn(KEYS, event.key)) KEYS[event.key]();
  else if (/^[1-9]$/.test(event.key)) goTo(Number(event.key));
  else return;
  event.preventDefault();
});

let beforePrint = null;
window.addEventListener("beforeprint", () => {
  if (document.documentElement.classList.contains("printing")) return;
  beforePrint = document.documentElement.dataset.theme ?? "auto";
  document.documentElement.classList.add("printing");
  setTheme("light");
  view?.grid?.setPrinting(true);
});
window.addEventListener("afterprint", () => {
  document.documentElement.classList.remove("printing");
  view?.grid?.setPrinting(false);
  setTheme(beforePrint ?? recall("theme") ?? "auto");
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => setTheme(document.documentElement.dataset.theme ?? "auto"));

byId("theme").addEventListener("click", nextTheme);
byId("zone").addEventListener("click", nextZone);
byId("help-button").addEventListener("click", showHelp);
byId("skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});

const changed = perFrame(() => {
  showNumbers();
  view?.change?.("state");
});
onChange((kind) => {
  if (kind === "connection" || kind === "state") showConnection();
  if (kind === "connection") view?.redraw?.();
  if (kind === "reset") view?.reset?.();
  changed();
});

/**
 * Shows the page. `navigation` lists views with a link, as `[target, text, view]`; `further` has those without, by their targets.
 * A view is a function of the element and the address.
 */
export function start(navigation, further) {
  views = { ...further, ...Object.fromEntries(navigation.map(([target, , make]) => [target, make])) };
  titles = new Map(navigation.map(([target, text]) => [target, text]));
  anchors = new Map(navigation.map(([target, text]) => [target, el("a", {}, text, target === "incidents" ? el("span", { class: "number", id: "open-incidents", hidden: true }) : null)]));
  fill(byId("views"), ...anchors.values());
  let seconds = 0;
  setInterval(() => {
    seconds += 1;
    showConnection();
    if (!document.hidden) view?.tick?.(seconds);
  }, 1000);
  showTools();
  showConnection();
  onRoute((route) => {
    show(route);
    showNumbers();
  });
  // The first answers are on their way while the view is built.
  connect();
  show(current());
}
