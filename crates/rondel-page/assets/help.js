// The dialog with keys and signs.

import { el, shape } from "./dom.js";
import { keep, recall } from "./preferences.js";
import { VERDICTS, WORDS } from "./verdicts.js";

let uses = recall("keys") !== "off";

/** Whether single keys are commands. */
export function usesKeys() {
  return uses;
}

const MEANINGS = {
  violated: "a full block in timelines",
  inconclusive: "a striped block: not known, such as after lost messages",
  none: "nothing in timelines: no verdict yet",
  satisfied: "a line at the bottom of timelines",
};

const KEYS = [["/", "search"], ["↑ ↓, Enter", "choose a row, open it"], ["1 … 6", "Overview, Incidents, Topics, Losses, Specification, Playground"], ["+ −", "zoom in, zoom out"], ["← →", "earlier, later"],
  ["0", "follow live"], ["t", "colours: as the system, light, dark"], ["u", "local time or UTC"], ["?", "this dialog"]];

export function helpContent(close) {
  const box = el("input", { type: "checkbox", onchange: () => {
    uses = box.checked;
    keep("keys", uses ? "on" : "off");
  } });
  box.checked = uses;
  return [
    el("h2", { id: "help-title" }, "Keys and signs"),
    el("dl", { class: "signs" }, VERDICTS.map((v) => [el("dt", { class: `badge is-${v}` }, shape(v), WORDS[v]), el("dd", {}, MEANINGS[v])]), el("dt", {}, shape("blind"), "shaded"), el("dd", {}, "the monitor was blind: messages were lost, or the page had no connection")),
    el("dl", { class: "keys" }, KEYS.map(([key, text]) => [el("dt", {}, el("kbd", {}, key)), el("dd", {}, text)])),
    el("p", {}, "Drag over a timeline to zoom into it; Ctrl and the wheel zoom around the pointer; a double click on a chart follows live again."),
    el("label", {}, box, " Use single keys"),
    el("form", { method: "dialog" }, el("button", { onclick: close, type: "button", autofocus: true }, "Close")),
  ];
}
