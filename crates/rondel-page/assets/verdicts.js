// Verdicts: names, order, colours and shapes. A verdict is never shown by a colour alone.

import { colour } from "./dom.js";

/** Verdicts, worst first. `none`: no verdict yet. */
export const VERDICTS = ["violated", "inconclusive", "none", "satisfied"];
export const SEVERITIES = ["critical", "error", "warning", "info"];

const RANK = { violated: 0, inconclusive: 1, none: 2, satisfied: 3 };
const SEVERITY_RANK = { critical: 0, error: 1, warning: 2, info: 3 };

/** A verdict of the API as a name: `none` for null. */
export function verdictOf(verdict) {
  return Object.hasOwn(RANK, verdict) ? verdict : "none";
}

/** Verdicts by their numbers in timelines. */
export const BY_NUMBER = ["satisfied", "violated", "inconclusive", "none"];

/** The words for a verdict. */
export const WORDS = { violated: "violated", inconclusive: "inconclusive", none: "no verdict", satisfied: "satisfied" };

/** The explanations of signs. */
export const MEANINGS = {
  violated: "a full block in timelines",
  inconclusive: "a striped block: not known, such as after lost messages",
  none: "nothing in timelines: no verdict yet",
  satisfied: "a line at the bottom of timelines",
};

/** Replaces the word and the explanation of a verdict. */
export function rename(verdict, word, meaning) {
  WORDS[verdict] = word;
  MEANINGS[verdict] = meaning;
}

export function severityRank(text) {
  return Object.hasOwn(SEVERITY_RANK, text) ? SEVERITY_RANK[text] : 2;
}

/** Order of the overview: violations without an owner first, then by severity, then the newest. */
export function worstFirst(a, b) {
  return (
    RANK[verdictOf(a.verdict)] - RANK[verdictOf(b.verdict)] ||
    isQuiet(a) - isQuiet(b) ||
    severityRank(a.severity) - severityRank(b.severity) ||
    (b.since ?? 0) - (a.since ?? 0) ||
    (a.name < b.name ? -1 : a.name > b.name ? 1 : 0)
  );
}

const isQuiet = (row) => Number(Boolean(row.acknowledged_by || row.silenced_until || row.because_of));

let palette = null;

/** The colours of a canvas, read from the style sheet once for each change of theme or connection. */
export function colours() {
  palette ??= {
    satisfied: colour("--satisfied-fill"),
    violated: colour("--violated-fill"),
    inconclusive: colour("--inconclusive-fill"),
    none: colour("--none-fill"),
    blind: colour("--blind"),
    grid: colour("--grid"),
    text: colour("--text"),
    muted: colour("--muted"),
    surface: colour("--surface"),
    accent: colour("--accent"),
    signal: colour("--signal"),
    band: colour("--band"),
  };
  return palette;
}

/** Makes `colours` read the style sheet again. */
export function forgetColours() {
  palette = null;
  hatches.clear();
}

const hatches = new Map();

/** A pattern of diagonal lines, for intervals in which the monitor was blind. */
export function hatch(context, lines) {
  if (hatches.has(lines)) return hatches.get(lines);
  const tile = document.createElement("canvas");
  tile.width = tile.height = 8;
  const c = tile.getContext("2d");
  c.strokeStyle = lines;
  c.lineWidth = 1.5;
  c.beginPath();
  for (const offset of [-8, 0, 8]) {
    c.moveTo(offset, 8);
    c.lineTo(offset + 8, 0);
  }
  c.stroke();
  const pattern = context.createPattern(tile, "repeat");
  hatches.set(lines, pattern);
  return pattern;
}

// Height and place of a bar in its lane, as fractions: violated is a full block, satisfied a line at the bottom, so that they
// differ without colours.
const BARS = { violated: [0, 1], inconclusive: [0.3, 0.7], satisfied: [0.72, 0.28] };

/** Draws an interval of a verdict in a lane. */
export function drawBar(context, verdict, x, width, top, height) {
  const bar = BARS[verdict];
  if (!bar) return;
  const c = colours();
  const y = top + bar[0] * height;
  const h = bar[1] * height;
  context.fillStyle = c[verdict];
  context.fillRect(x, y, Math.max(width, 1), h);
  if (verdict === "inconclusive") {
    context.fillStyle = hatch(context, c.surface);
    context.fillRect(x, y, Math.max(width, 1), h);
  }
}

/** Shades an interval in which the monitor was blind. */
export function drawBlind(context, x, width, top, height) {
  const c = colours();
  context.save();
  context.globalAlpha = 0.16;
  context.fillStyle = c.blind;
  context.fillRect(x, top, Math.max(width, 2), height);
  context.globalAlpha = 0.75;
  context.fillStyle = hatch(context, c.blind);
  context.fillRect(x, top, Math.max(width, 2), height);
  context.restore();
}
