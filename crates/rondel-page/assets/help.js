// The dialog with keys and signs.

import { el, shape } from "./dom.js";
import { keep, recall } from "./preferences.js";
import { isRecorded } from "./route.js";
import { MEANINGS, VERDICTS, WORDS } from "./verdicts.js";

let uses = recall("keys") !== "off";

/** Whether single keys are commands. */
export function usesKeys() {
  return uses;
}

const keys = (views) => [["/", "search"], ["↑ ↓, Enter", "choose a row, open it"], [`1 … ${views.length}`, views.join(", ")], ["+ −", "zoom in, zoom out"], ["← →", "earlier, later"],
  ["0", isRecorded() ? "the whole recording" : "follow live"], ["t", "colours: as the system, light, dark"], ["u", "local time or UTC"], ["?", "this dialog"]];

/** Content of the dialog; `views` are the names of the views with a number. */
export function helpContent(close, views) {
  const box = el("input", { type: "checkbox", onchange: () => {
    uses = box.checked;
    keep("keys", uses ? "on" : "off");
  } });
  box.checked = uses;
  return [
    el("h2", { id: "help-title" }, "Keys and signs"),
    el("dl", { class: "signs" }, VERDICTS.map((v) => [el("dt", { class: `badge is-${v}` }, shape(v), WORDS[v]), el("dd", {}, MEANINGS[v])]), el("dt", {}, shape("blind"), "shaded"), el("dd", {}, "the monitor was blind: messages were lost, or the page had no connection")),
    el("dl", { class: "keys" }, keys(views).map(([key, text]) => [el("dt", {}, el("kbd", {}, key)), el("dd", {}, text)])),
    el("p", {}, `Drag over a timeline to zoom into it; Ctrl and the wheel zoom around the pointer; a double click on a chart shows the ${isRecorded() ? "whole recording" : "present"} again.`),
    el("label", {}, box, " Use single keys"),
    el("form", { method: "dialog" }, el("button", { onclick: close, type: "button", autofocus: true }, "Close")),
  ];
}
