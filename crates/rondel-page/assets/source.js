// Texts of specifications: the text of a property with values in the margin, and the whole text with places.

import { el, plain } from "./dom.js";
import { valueText } from "./parts.js";

const TOKEN = /(\/\/[^\n]*)|("(?:[^"\\\n]|\\.)*"?)|(@?[A-Za-z_][\w]*)|(\d[\d_.]*(?:e[+-]?\d+)?)|([^\w\s"@/]+|\/|@)|(\s+)/gi;
const KEYWORDS = new Set(("topic property let const test assert machine chain use for each in as and or not true false since until once historically previously next eventually always " +
  "exists forall over full state when expect final on if then else within after").split(" "));

/** Tokens of a text as `[class, text]`. */
function tokens(text) {
  const list = [];
  for (const match of text.matchAll(TOKEN)) {
    const [all, comment, string, word, number] = match;
    const kind = comment ? "comment" : string ? "string" : word ? (word.startsWith("@") ? "attribute" : KEYWORDS.has(word) ? "keyword" : null) : number ? "number" : null;
    list.push([kind, all]);
  }
  return list;
}

/** A line of code as elements; `marks` are `{ start, end, title, isAtom }` in code units of the line. */
export function codeLine(text, marks = []) {
  const pieces = [];
  let at = 0;
  for (const [kind, token] of tokens(text)) {
    let begin = at;
    const end = at + token.length;
    while (begin < end) {
      const mark = marks.find((m) => m.start <= begin && begin < m.end);
      const next = mark ? Math.min(end, mark.end) : Math.min(end, ...marks.filter((m) => m.start > begin).map((m) => m.start));
      const piece = text.slice(begin, next);
      if (mark) pieces.push(el("mark", { class: "atom", title: mark.title }, piece));
      else pieces.push(kind ? el("span", { class: `code-${kind}` }, piece) : piece);
      begin = next;
    }
    at = end;
  }
  return pieces;
}

const MOST_IN_MARGIN = 4; // values of one line

/** The text of a property, each line with the present values of its atoms beside it. */
export function annotated(property, isSeen) {
  const points = [...property.text]; // spans count code points
  const offset = (n) => points.slice(0, n).join("").length;
  const spans = property.atoms.flatMap((atom) => atom.spans.map(({ start, end }) => ({ start: offset(start), end: offset(end), atom })));
  let begin = property.line;
  let at = 0;
  return el("div", { class: "annotated", role: "table", "aria-label": "Text with present values" }, property.text.split("\n").map((line) => {
    const here = spans.filter((s) => s.start >= at && s.start < at + line.length + 1);
    const marks = here.map((s) => ({ start: s.start - at, end: s.end - at, title: `${s.atom.name} = ${valueText(s.atom.value)}` }));
    const atoms = [...new Set(here.map((s) => s.atom))];
    at += line.length + 1;
    const number = begin === null ? "" : String(begin++);
    return el("div", { role: "row", class: "code-row" }, el("span", { role: "rowheader", class: "line-number" }, number), el("code", { role: "cell" }, codeLine(line, marks)),
      el("span", { role: "cell", class: "margin" }, property.is_live ? atoms.slice(0, MOST_IN_MARGIN).map((atom) => value(atom, isSeen)) : null,
        property.is_live && atoms.length > MOST_IN_MARGIN ? el("span", {}, `+${atoms.length - MOST_IN_MARGIN}`) : null));
  }));
}

function value(atom, isSeen) {
  return el("span", { class: `live-value${isSeen ? "" : " old"}` }, el("span", { class: "atom-name" }, plain(atom.name, 60)), " ", el("b", {}, valueText(atom.value, 40)));
}
