// The specification, with the present verdict of each property beside its declaration.

import { get } from "./api.js";
import { el, fill, plain, setText } from "./dom.js";
import { model } from "./model.js";
import { badge, problem, propertyLink } from "./parts.js";
import { link, setQuery } from "./route.js";
import { codeLine } from "./source.js";

export function specification(main, route) {
  let current = route;
  let signs = [];
  const problems = el("div");
  const body = el("div", { class: "source", role: "region", "aria-label": "Text of the specification", tabindex: 0 });
  const outline = el("nav", { class: "outline", "aria-label": "Declarations" });
  const search = el("input", { type: "search", placeholder: "Search declarations", "aria-label": "Search declarations", oninput: () => filter() });
  const note = el("p", { class: "note", role: "status" });
  fill(main, el("h1", { class: "hidden" }, "Specification"), problems, el("div", { class: "split spec" }, el("div", { class: "side" }, search, outline, note), body));

  const filter = () => {
    const needle = search.value.trim().toLowerCase();
    let shown = 0;
    for (const item of outline.querySelectorAll("li")) {
      item.hidden = !item.dataset.name.includes(needle);
      shown += !item.hidden;
    }
    setText(note, needle ? `${shown} found` : "");
  };
  const select = () => {
    const line = current.query.get("line");
    for (const row of body.querySelectorAll(".is-target")) row.classList.remove("is-target");
    const target = line && body.querySelector(`[data-line="${Number(line)}"]`);
    if (!target) return;
    target.classList.add("is-target");
    target.scrollIntoView({ block: "center" });
  };
  const showVerdicts = () => {
    for (const [name, sign] of signs) sign.set(model.properties.get(name)?.verdict);
  };
  const show = (spec) => {
    signs = [];
    const byLine = new Map(spec.properties.map((p) => [p.line, p]));
    fill(body, spec.text.split("\n").map((text, i) => {
      const place = byLine.get(i + 1);
      let sign = null;
      if (place) {
        sign = badge();
        signs.push([place.name, sign]);
      }
      return el("div", { class: "code-row", "data-line": i + 1 }, el("span", { class: "line-number" }, i + 1), el("span", { class: "line-sign" }, sign?.element), el("code", {}, codeLine(text)));
    }));
    const entry = (place, kind, element) => el("li", { "data-name": place.name.toLowerCase() }, element, el("a", { href: link("specification", null, { line: place.line }), class: "line", onclick: (event) => {
      event.preventDefault();
      setQuery({ line: place.line });
      select();
    }, "aria-label": `Line ${place.line}, ${kind} ${plain(place.name)}` }, `:${place.line}`));
    fill(outline, el("h2", {}, "Properties"), el("ul", {}, spec.properties.map((p) => entry(p, "property", propertyLink(p.name)))), spec.topics.length ? [el("h2", {}, "Topics"),
      el("ul", {}, spec.topics.map((t) => entry(t, "topic", el("a", { href: link("topics", t.name), class: "name" }, plain(t.name)))))] : null);
    filter();
    showVerdicts();
    select();
  };
  const load = () => get("specification").then((spec) => {
    fill(problems);
    show(spec);
  }, (error) => fill(problems, problem(error)));
  load();
  return {
    search,
    update(next) {
      current = next;
      select();
    },
    change: showVerdicts,
    reset: load,
  };
}
