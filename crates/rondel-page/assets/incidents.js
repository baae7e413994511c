// Incidents: open violations with their owners, silences, and what operators did.

import { get, post } from "./api.js";
import { debounced, el, fill, plain, setText } from "./dom.js";
import { isConnected } from "./model.js";
import { empty, parametersText, problem, propertyLink, table, timeOf } from "./parts.js";
import { keep, recall } from "./preferences.js";
import { setQuery } from "./route.js";
import { count, duration, now, stamp } from "./time.js";
import { severityRank } from "./verdicts.js";
import { statusOf } from "./violations.js";

const PAGE = 200;
const LENGTHS = [[900, "15 min"], [3600, "1 h"], [7200, "2 h"], [28_800, "8 h"], [86_400, "1 d"], [604_800, "7 d"]];

const lengths = (label, first = null) => el("select", { "aria-label": label }, first && el("option", { value: "" }, first), LENGTHS.map(([value, text]) => el("option", { value }, text)));

/** A dialog that sends one decision; `send(body)` returns the request. */
function decide(title, fields, verb, send) {
  const operator = el("input", { required: true, value: recall("operator") ?? "", autocomplete: "name" });
  const comment = el("input", { autocomplete: "off" });
  const problems = el("div");
  const submit = el("button", { class: "primary" }, verb);
  const dialog = el("dialog", { class: "decision", "aria-label": title, onclose: () => dialog.remove() },
    el("form", { onsubmit: async (event) => {
      event.preventDefault();
      submit.disabled = true;
      try {
        keep("operator", operator.value);
        await send({ operator: operator.value.trim(), comment: comment.value.trim() });
        dialog.close();
      } catch (error) {
        fill(problems, problem(error));
        submit.disabled = false;
      }
    } }, el("h2", {}, title), el("label", {}, "Your name", operator), fields, el("label", {}, "Comment", comment), problems,
    el("div", { class: "buttons" }, submit, el("button", { type: "button", onclick: () => dialog.close() }, "Cancel"))));
  document.body.append(dialog);
  dialog.showModal();
}

/** An open violation; `acts` are what operators may do, or null. */
function incident(v, acts) {
  return el("li", { class: `incident${v.acknowledged_by || v.silenced_until || v.because_of ? " quiet-row" : ""}` },
    el("div", { class: "incident-head" }, statusOf(v), propertyLink(v.property, { violation: v.id, from: (v.begin - 10).toFixed(3), until: ((v.end ?? v.last) + 10).toFixed(3), range: null, ...(Object.keys(v.parameters).length ? { instance: JSON.stringify(v.parameters) } : {}) }),
      el("span", { class: "params" }, parametersText(v.parameters, 80)), v.severity ? el("span", { class: `severity severity-${/^[a-z]+$/.test(v.severity) ? v.severity : "other"}` }, plain(v.severity, 30)) : null),
    el("div", { class: "incident-facts" }, "since ", timeOf(v.begin), `, ${duration(v.seconds)}`, `, ${count(v.count)} violated verdicts`, v.last !== v.begin ? [", last ", timeOf(v.last)] : null),
    el("div", { class: "incident-owner" }, v.acknowledged_by ? [el("b", {}, plain(v.acknowledged_by, 60)), v.acknowledged_at ? [" at ", timeOf(v.acknowledged_at)] : null, v.acknowledged_until ? ` until ${stamp(v.acknowledged_until)}` : "", v.comment ? `: ${plain(v.comment, 200)}` : ""] : el("span", { class: "no-owner" }, "no owner"),
      v.silenced_until ? ` · silenced until ${stamp(v.silenced_until)}` : null, v.because_of ? [" · because of ", propertyLink(v.because_of)] : null),
    acts ? el("div", { class: "buttons" }, el("button", { type: "button", onclick: () => acts.acknowledge(v) }, v.acknowledged_by ? "Take over" : "Acknowledge"), el("button", { type: "button", onclick: () => acts.silence(v) }, "Silence")) : null);
}

export function incidents(main, route) {
  let current = route;
  let isLoading = false;
  let shownKey = null;
  const search = el("input", { type: "search", placeholder: "Search properties and parameters", "aria-label": "Search properties and parameters", value: route.query.get("search") ?? "",
    oninput: debounced(() => setQuery({ search: search.value }), 150) });
  const problems = el("div");
  const list = el("section", { "aria-label": "Open violations" });
  const rest = el("section", {});
  const note = el("p", { class: "note", role: "status" });
  fill(main, el("h1", {}, "Incidents"), el("div", { class: "controls" }, search), problems, list, note, rest);

  const acknowledge = (v) => {
    const length = lengths("Until", "it ends");
    const replace = el("input", { type: "checkbox" });
    decide(`Acknowledge ${plain(v.property, 60)}`, [el("label", {}, "Until", length), v.acknowledged_by ? el("label", { class: "check" }, replace, ` Take over from ${plain(v.acknowledged_by, 40)}`) : null], "Acknowledge", async (body) => {
      await post(["violations", v.id, "acknowledgement"], { ...body, until: length.value ? now() + Number(length.value) : null, replace: replace.checked });
      load();
    });
  };
  const silence = (v) => {
    const length = lengths("For");
    length.value = "7200";
    const isOne = Object.keys(v.parameters).length > 0;
    const only = el("input", { type: "checkbox" });
    only.checked = isOne;
    decide(`Silence ${plain(v.property, 60)}`, [el("label", {}, "For", length), isOne ? el("label", { class: "check" }, only, ` Only ${parametersText(v.parameters, 60)}`) : null], "Silence", async (body) => {
      await post("silences", { ...body, property: v.property, until: now() + Number(length.value), ...(isOne && only.checked ? { parameters: v.parameters } : {}) });
      load();
    });
  };
  const endSilence = (s) => decide(`End the silence of ${plain(s.property, 60)}`, null, "End silence", async (body) => {
    await post(["silences", s.id, "end"], body);
    load();
  });

  const show = (answer) => {
    const { now: _, ...content } = answer;
    const key = JSON.stringify(content);
    if (key === shownKey) return;
    shownKey = key;
    const rank = (v) => [v.acknowledged_by || v.silenced_until || v.because_of ? 1 : 0, severityRank(v.severity), -v.begin];
    const ordered = [...answer.incidents].sort((a, b) => rank(a).map((x, i) => x - rank(b)[i]).find(Boolean) ?? 0);
    fill(list, ordered.length ? el("ol", { class: "incidents" }, ordered.map((v) => incident(v, answer.may_act ? { acknowledge, silence } : null))) : empty(current.query.get("search") ? "No open violation matches." : "No open violations."));
    setText(note, answer.total > ordered.length ? `The first ${ordered.length} of ${count(answer.total)}: narrow the search.` : answer.may_act ? "" : "Read-only: acknowledge with `rondel ack`, silence with `rondel silence`.");
    fill(rest, el("h2", {}, "Silences"), answer.silences.length ? table(["property", "instances", "until", "set by", "comment", el("span", { class: "hidden" }, "action")], answer.silences.map((s) => [propertyLink(s.property), parametersText(s.parameters) || "all", timeOf(s.until), plain(s.set_by, 60), plain(s.comment, 200),
      answer.may_act ? el("button", { type: "button", onclick: () => endSilence(s) }, "End") : ""]), "Silences") : empty("No silence is in force."),
    el("h2", {}, "Actions of operators"), answer.actions.length ? table(["at", "operator", "action", "details"], answer.actions.map((a) => [timeOf(a.at), plain(a.operator, 60), plain(a.kind, 20), parametersText(a.members, 300)]), "Actions of operators") : empty("No actions yet."));
  };

  const load = async () => {
    if (isLoading) return;
    isLoading = true;
    try {
      const answer = await get("incidents", { search: current.query.get("search"), limit: PAGE });
      fill(problems);
      show(answer);
    } catch (error) {
      if (error.status) fill(problems, problem(error));
    } finally {
      isLoading = false;
    }
  };
  load();
  return {
    search,
    update(next) {
      current = next;
      shownKey = null;
      load();
    },
    tick: (n) => isConnected() && n % 2 === 0 && !main.querySelector("button:focus, a:focus") && load(),
    redraw: () => {
      shownKey = null;
      load();
    },
    reset: load,
  };
}
