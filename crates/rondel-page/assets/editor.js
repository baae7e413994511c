// A text to edit, with diagnostics underlined: a plain textarea over a copy of its text that only shows the marks.

import { el, fill, plain, shape } from "./dom.js";

const MOST_MARKS = 200;

export class Editor {
  /** `oninput` is called after each change by the user. */
  constructor({ label, oninput }) {
    this.back = el("pre", { class: "editor-back", "aria-hidden": "true" });
    this.list = el("ol", { class: "diagnostics", id: "diagnostics", "aria-label": "Errors and warnings" });
    this.area = el("textarea", { "aria-label": label, "aria-describedby": "diagnostics", spellcheck: "false", autocomplete: "off", autocapitalize: "off", wrap: "off", oninput: () => {
      this.mark([]); // Places of the text before.
      oninput();
    } });
    this.area.addEventListener("scroll", () => this.follow());
    this.root = el("div", { class: "editor" }, this.back, this.area);
  }

  get text() {
    return this.area.value;
  }

  set text(text) {
    this.area.value = text;
    this.mark([]);
    this.show([]);
  }

  /** Shows the diagnostics of the present text: underlined, and as a list. */
  show(diagnostics) {
    const points = [...this.text]; // Places count code points.
    const offset = (n) => points.slice(0, n).join("").length;
    const marks = diagnostics.slice(0, MOST_MARKS).map((d) => ({ start: offset(d.start), end: offset(Math.max(d.end, d.start + 1)), severity: d.severity }));
    this.mark(marks);
    this.area.setAttribute("aria-invalid", String(diagnostics.some((d) => d.severity === "error")));
    fill(this.list, diagnostics.slice(0, MOST_MARKS).map((d, i) => el("li", {}, el("button", { type: "button", class: "diagnostic", onclick: () => this.select(marks[i]) },
      shape(d.severity === "error" ? "violated" : "inconclusive"), el("span", {}, el("b", {}, `${d.severity} in line ${d.line}`), `: ${plain(d.message, 400)}`, d.help ? el("span", { class: "help-text" }, ` ${plain(d.help, 400)}`) : null)))));
    this.list.hidden = !diagnostics.length;
  }

  mark(marks) {
    const text = this.text;
    const pieces = [];
    let at = 0;
    for (const { start, end, severity } of [...marks].sort((a, b) => a.start - b.start)) {
      if (start < at) continue; // The first of those that overlap.
      // A mark at the end of a line or of the text needs something to underline.
      const marked = text.slice(start, end).replace(/^(?=\n|$)/, " ");
      pieces.push(text.slice(at, start), el("span", { class: `is-wrong is-${severity}` }, marked));
      at = end;
    }
    // The last line break of a block takes no room unless something follows.
    fill(this.back, pieces, text.slice(at), "\n ");
    this.follow();
  }

  select({ start, end }) {
    this.area.focus();
    this.area.setSelectionRange(start, Math.min(end, this.text.length));
  }

  follow() {
    this.back.scrollTop = this.area.scrollTop;
    this.back.scrollLeft = this.area.scrollLeft;
  }
}
