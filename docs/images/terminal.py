#!/usr/bin/env python3
"""Draw a picture of a terminal from the output of a command.

    docs/images/terminal.py docs/images/demo.svg target/release/rondel demo --live

Runs the command on a pseudo-terminal and draws its text and colours. Only the port is replaced, because it differs
in every run.
"""

import html
import os
import pty
import re
import sys

WIDTH, LINE, SIZE, MARGIN, BAR = 7.83, 18, 13, 16, 30
COLOURS = {"31": "#ff7b72", "32": "#7ee787", "33": "#e3b341", "34": "#79c0ff", "36": "#76e3ea"}


def capture(command):
    """Return the output of the command on a terminal of 110 columns."""
    pieces = []

    def read(descriptor):
        piece = os.read(descriptor, 1 << 16)
        pieces.append(piece)
        return piece

    os.environ.update(TERM="xterm-256color", COLUMNS="110", LINES="60")
    out = os.open(os.devnull, os.O_WRONLY)
    saved = os.dup(1)
    os.dup2(out, 1)
    try:
        status = pty.spawn(command, read)
    finally:
        os.dup2(saved, 1)
    if status:
        sys.exit(f"{command}: status {status}")
    return b"".join(pieces).decode().replace("\r\n", "\n")


def spans(line):
    """Yield the parts of a line as (style, text)."""
    style, at = {}, 0
    for match in re.finditer(r"\x1b\[([0-9;]*)m", line):
        if match.start() > at:
            yield dict(style), line[at:match.start()]
        at = match.end()
        for code in (match[1] or "0").split(";"):
            if code == "0":
                style = {}
            elif code == "1":
                style["font-weight"] = "bold"
            elif code == "2":
                style["fill"] = "#8b949e"
            elif code in COLOURS:
                style["fill"] = COLOURS[code]
    if at < len(line):
        yield style, line[at:]


def draw(lines, title):
    columns = max(len(re.sub(r"\x1b\[[0-9;]*m", "", line)) for line in lines)
    width, height = round(columns * WIDTH + 2 * MARGIN), BAR + len(lines) * LINE + MARGIN
    yield f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">'
    yield f"<title>{html.escape(title)}</title>"
    yield f'<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>'
    for i, colour in enumerate(("#ff5f56", "#ffbd2e", "#27c93f")):
        yield f'<circle cx="{MARGIN + 4 + 18 * i}" cy="{BAR // 2 + 1}" r="5" fill="{colour}"/>'
    yield (f'<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, DejaVu Sans Mono, monospace" font-size="{SIZE}" '
           'fill="#e6edf3" xml:space="preserve">')
    for row, line in enumerate(lines):
        y, column = BAR + row * LINE + SIZE, 0
        for style, text in spans(line):
            # Every part has a position and a length, so that columns align in every font.
            place = f'x="{MARGIN + column * WIDTH:.1f}" y="{y}" textLength="{len(text) * WIDTH:.1f}"'
            attributes = "".join(f' {name}="{value}"' for name, value in style.items())
            if text.strip():
                yield f"<text {place}{attributes}>{html.escape(text)}</text>"
            column += len(text)
    yield "</g></svg>"


def main():
    target, *command = sys.argv[1:]
    shown = ["$ " + " ".join([os.path.basename(command[0]), *command[1:]])]
    text = re.sub(r"tcp/127\.0\.0\.1:\d+", "tcp/127.0.0.1:7447", capture(command))
    lines = shown + text.rstrip("\n").split("\n")
    with open(target, "w", encoding="utf-8") as file:
        file.write("\n".join(draw(lines, shown[0][2:])) + "\n")


if __name__ == "__main__":
    main()
