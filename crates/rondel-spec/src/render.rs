//! Diagnostics as text, with the lines of their locations.

use std::fmt::Write as _;

use rondel_event::terminal::{escaped, escaped_lines};

use crate::diagnostic::{Diagnostic, Severity, Span};
use crate::sources::Sources;

impl Diagnostic {
    /// Returns the diagnostic with the source lines it refers to. `text` is the parsed text, `source_name` its name for
    /// the reader; `colour` adds the escape sequences of terminals.
    ///
    /// ```
    /// let text = "property p = )";
    /// let outcome = rondel_spec::parse(text);
    /// let shown = outcome.diagnostics[0].render("p.rondel", text, false);
    /// assert_eq!(shown, "\
    /// error[E0102]: expected an expression, found `)`
    ///  --> p.rondel:1:14
    ///   |
    /// 1 | property p = )
    ///   |              ^
    /// ");
    /// ```
    pub fn render(&self, source_name: &str, text: &str, colour: bool) -> String {
        self.shown(&|_| (source_name, text, 0), colour)
    }

    /// Returns the diagnostic with the source lines it refers to, for a specification of several files. A location in
    /// another file than the first one is shown below a line with `:::` and the name of its file.
    pub fn render_in(&self, sources: &Sources, colour: bool) -> String {
        self.shown(&|offset| sources.file_at(offset), colour)
    }

    /// Returns the diagnostic as [`render_in`](Self::render_in) does, where a part of the text is shown as a text of its
    /// own with this name.
    ///
    /// ```
    /// use rondel_spec::{ParseOptions, Sources, Span, parse_sources};
    /// let sources = Sources::alone("", "topic a { x: int }\nproperty p = a.y > 0");
    /// let outcome = parse_sources(&sources, &ParseOptions::default(), None);
    /// let shown = outcome.diagnostics[0].render_part(&sources, ("formula", Span::new(32, 39)), false);
    /// assert_eq!(shown, "\
    /// error[E0301]: unknown field 'y' in topic 'a'
    ///  --> formula:1:3
    ///   |
    /// 1 | a.y > 0
    ///   |   ^
    ///   |
    ///   = help: fields of topic 'a': 'x'
    /// ");
    /// ```
    pub fn render_part(&self, sources: &Sources, (name, part): (&str, Span), colour: bool) -> String {
        let text = part.of(sources.text());
        let place = |offset| match (part.start..=part.end).contains(&offset) {
            true => (name, text, part.start),
            false => sources.file_at(offset),
        };
        self.shown(&place, colour)
    }

    /// Returns the diagnostic with the source lines it refers to; `file` returns for an offset the name of its file, the
    /// text, and the offset at which it begins.
    fn shown<'a>(&'a self, file: &dyn Fn(usize) -> (&'a str, &'a str, usize), colour: bool) -> String {
        let paint = Paint { colour };
        let heading = match self.severity {
            Severity::Error => ("error", "1;31"),
            Severity::Warning => ("warning", "1;33"),
        };
        let underline = |span: Span, label: &'a str, is_primary: bool| {
            let (name, text, begin) = file(span.start);
            Underline::new(span, label, is_primary, name, text, begin)
        };
        let mut underlines = vec![underline(self.span, "", true)];
        underlines.extend(self.labels.iter().map(|l| underline(l.span, &l.text, false)));
        let Underline { line, column, file: (source_name, mut begin), .. } = underlines[0];
        let margin = underlines.iter().map(|s| s.line.to_string().len()).max().unwrap_or(1);
        // Stable: on its line, the primary location comes first. Its file comes first, too.
        underlines.sort_by_key(|s| (s.file.1 != begin, s.file.1, s.line));

        let mut out = String::new();
        // Writing to a String does not fail.
        let _ = writeln!(
            out,
            "{}{}",
            paint.with(heading.1, &format!("{}[{}]", heading.0, self.code)),
            paint.with("1", &format!(": {}", escaped_lines(&self.message))),
        );
        let bar = paint.with("1;34", &format!("{:margin$} |", ""));
        let _ = writeln!(
            out,
            "{:margin$}{} {}:{line}:{}",
            "",
            paint.with("1;34", "-->"),
            escaped(source_name),
            column + 1
        );
        let _ = writeln!(out, "{bar}");
        let mut previous = None;
        let mut window = Window { from: 0 };
        for underline in &underlines {
            if underline.file.1 != begin {
                begin = underline.file.1;
                let mark = paint.with("1;34", ":::");
                let name = escaped(underline.file.0);
                let place = format!("{name}:{}:{}", underline.line, underline.column + 1);
                let _ = writeln!(out, "{bar}\n{:margin$}{mark} {place}\n{bar}", "");
                previous = None;
            }
            if previous != Some(underline.line) {
                if previous.is_some_and(|p| p + 1 < underline.line) {
                    let _ = writeln!(out, "{}", paint.with("1;34", &format!("{:margin$} ⋮", "")));
                }
                let number = paint.with("1;34", &format!("{:>margin$} |", underline.line));
                window = Window::around(underline);
                let _ =
                    writeln!(out, "{}", format!("{number} {}", window.cut(underline.line_text)).trim_end());
                previous = Some(underline.line);
            }
            let (indent, width) = window.mark(underline);
            let mark = if underline.primary { "^" } else { "-" }.repeat(width);
            let mark = format!("{mark} {}", escaped_lines(underline.label));
            let colour = if underline.primary { heading.1 } else { "1;34" };
            let _ = writeln!(out, "{bar} {:indent$}{}", "", paint.with(colour, mark.trim_end()));
        }
        if let Some(help) = &self.help {
            let _ = writeln!(out, "{bar}");
            for (i, part) in escaped_lines(help).lines().enumerate() {
                let lead = if i == 0 { "= help:" } else { "       " };
                let _ = writeln!(out, "{:margin$} {} {part}", "", paint.with("1;34", lead));
            }
        }
        out
    }
}

/// A location to underline within one line.
struct Underline<'a> {
    /// The name of the file, and the offset at which it begins.
    file: (&'a str, usize),
    line: usize,
    column: usize,
    line_text: &'a str,
    indent: usize,
    width: usize,
    label: &'a str,
    primary: bool,
}

impl<'a> Underline<'a> {
    fn new(
        span: Span,
        label: &'a str,
        primary: bool,
        name: &'a str,
        text: &'a str,
        begin: usize,
    ) -> Underline<'a> {
        let start = floor(text, span.start.saturating_sub(begin));
        let end = floor(text, span.end.saturating_sub(begin)).max(start);
        let before = &text[..start];
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |i| start + i);
        // Only the first line of a location is shown.
        let marked = &text[start..end.min(line_end)];
        Underline {
            file: (name, begin),
            line: before.matches('\n').count() + 1,
            column: text[line_start..start].chars().count(),
            line_text: text[line_start..line_end].trim_end_matches('\r'),
            indent: visible(&text[line_start..start]).chars().count(),
            width: visible(marked.trim_end()).chars().count().max(1),
            label,
            primary,
        }
    }
}

/// The part of a long line that is shown around a location.
struct Window {
    from: usize,
}

impl Window {
    const WIDTH: usize = 240;

    fn around(underline: &Underline<'_>) -> Window {
        let room = Window::WIDTH.saturating_sub(underline.width) / 2;
        let long = visible(underline.line_text).chars().nth(Window::WIDTH).is_some();
        Window { from: if long { underline.indent.saturating_sub(room) } else { 0 } }
    }

    fn cut(&self, line: &str) -> String {
        let line = visible(line);
        let mut rest = line.chars().skip(self.from);
        let mut shown: String = rest.by_ref().take(Window::WIDTH).collect();
        if self.from > 0 {
            // The ellipsis replaces a character, so that the marks stay aligned.
            shown = format!("…{}", shown.chars().skip(1).collect::<String>());
        }
        if rest.next().is_some() {
            shown.push('…');
        }
        shown
    }

    /// Returns the column and the width of a mark in the window.
    fn mark(&self, underline: &Underline<'_>) -> (usize, usize) {
        let indent = underline.indent.saturating_sub(self.from).min(Window::WIDTH);
        let end = (underline.indent + underline.width).saturating_sub(self.from).min(Window::WIDTH);
        (indent, end.saturating_sub(indent).max(1))
    }
}

/// Returns the last character boundary at or before `at`.
fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Returns the text with tabs as spaces, and other characters escaped that a terminal obeys.
fn visible(text: &str) -> String {
    escaped(&text.replace('\t', "    ")).into_owned()
}

struct Paint {
    colour: bool,
}

impl Paint {
    fn with(&self, style: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{style}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::Code;

    #[test]
    fn labels_are_aligned_with_their_spans() {
        let text = "let a = 1\n\n\tlet ä = a\n";
        let d = Diagnostic::new(Code::DuplicateName, Span::new(16, 18), "twice")
            .label(Span::new(4, 5), "first")
            .label(Span::new(21, 22), "used")
            .help("rename\none of them");
        assert_eq!(
            d.render("x", text, false),
            "error[E0204]: twice\n --> x:3:6\n  |\n1 | let a = 1\n  |     - first\n  ⋮\n3 |     let ä = a\n  \
             |         ^\n  |             - used\n  |\n  = help: rename\n          one of them\n"
        );
        assert!(d.render("x", text, true).contains("\x1b[1;31merror[E0204]\x1b[0m"));
    }

    #[test]
    fn obeyed_characters_are_escaped_and_marks_stay_aligned() {
        let text = "a \u{202e}\u{1b}b";
        let d = Diagnostic::new(Code::DuplicateName, Span::new(6, 7), "\u{2066}twice");
        let shown = d.render("s\u{7}.rondel", text, false);
        let lines: Vec<&str> = shown.lines().collect();
        assert!(lines[0].ends_with(": \\u{2066}twice"), "{shown}");
        assert!(lines[1].contains("s\\u{7}.rondel:1:5"), "{shown}");
        assert_eq!(lines[3], "1 | a \\u{202e}\\u{1b}b");
        assert_eq!(lines[4].find('^'), lines[3].rfind('b'), "{shown}");
    }

    #[test]
    fn long_lines_are_truncated_around_the_span() {
        let text = format!("{}here{}", "a".repeat(1000), "b".repeat(1000));
        let d = Diagnostic::new(Code::TooDeep, Span::new(1000, 1004), "m").label(Span::new(0, 2000), "l");
        let shown = d.render("x", &text, false);
        let lines: Vec<_> = shown.lines().collect();
        let place = lines[3].find("here").unwrap() - "…".len() + 1;
        assert_eq!(lines[4].find("^^^^"), Some(place), "{shown}");
        assert!(lines.iter().all(|l| l.chars().count() < 260));
    }

    #[test]
    fn spans_outside_the_text_do_not_panic() {
        for span in [Span::new(9, 2), Span::new(1, 2), Span::new(50, 60), Span::default()] {
            Diagnostic::new(Code::TooDeep, span, "m").label(span, "l").render("x", "ä\r\n\x07", false);
            Diagnostic::new(Code::TooDeep, span, "m").render("x", "", true);
        }
    }
}
