// A report: the views of the page over the data in its document.

import { useSource } from "../page/api.js";
import { el, fill, plain, setAttribute } from "../page/dom.js";
import { losses } from "../page/losses.js";
import { overview } from "../page/overview.js";
import { problem } from "../page/parts.js";
import { property } from "../page/property.js";
import { go, onRoute } from "../page/route.js";
import { start } from "../page/shell.js";
import { specification } from "../page/specification.js";
import { rename } from "../page/verdicts.js";
import { about, addressOf } from "./about.js";
import { chosen, embedded, named, report } from "./embedded.js";
import { printPages } from "./printed.js";

/** A select of the recordings, in all views. */
function recordingChoice() {
  const choice = el("select", { id: "recording", "aria-label": "Recording", onchange: () => go(addressOf(Number(choice.value))) },
    report.recordings.map((recording, i) => el("option", { value: i }, plain(recording.name.length > 60 ? `…${recording.name.slice(-58)}` : recording.name, 80))));
  const update = () => {
    choice.value = String(chosen());
    setAttribute(choice, "title", plain(report.recordings[chosen()]?.name ?? "", 400));
  };
  update();
  onRoute(update);
  return choice;
}

/** A message above all views if the report does not have the recording that the address names. */
function recordingProblem() {
  const place = el("div", {});
  const update = () => fill(place, named() === chosen() ? null : problem(new Error(`the report does not have the recording of this address; this is \`${plain(report.recordings[0]?.name ?? "", 80)}\``)));
  update();
  onRoute(update);
  return place;
}

rename("none", "vacuous", "nothing in timelines: the property holds, but about nothing");
useSource(embedded);
const several = report.recordings.length > 1;
document.getElementById("banner").after(recordingProblem());
if (several) document.getElementById("connection").before(recordingChoice());
if (several && !location.hash) go("#/recordings", true);
const views = [["overview", "Overview", overview], ["losses", "Losses", losses], ["specification", "Specification", specification], ["recordings", several ? "Recordings" : "About", about]];
printPages();
start(several ? [views.pop(), ...views] : views, { property });
