//! Documents that can be laid out on one line or on several.

/// The maximum width of a line.
const WIDTH: usize = 100;

/// The width of an indentation level.
const STEP: usize = 4;

#[derive(Clone, Debug)]
pub(super) enum Doc {
    Text(String),
    /// A space, or a line break if the enclosing group is broken.
    Line,
    /// Nothing, or a line break if the enclosing group is broken.
    Soft,
    /// A line break.
    Hard,
    /// A line break and an empty line.
    Blank,
    /// A comment at the end of the current line.
    Suffix(String),
    /// A comment on its own line, or at the end of the current line.
    Comment(String),
    All(Vec<Doc>),
    Indent(Box<Doc>),
    /// A document on one line, if it fits and contains no forced line break.
    Group(Box<Doc>, bool),
}

pub(super) fn text(text: impl Into<String>) -> Doc {
    Doc::Text(text.into())
}

pub(super) fn all(parts: Vec<Doc>) -> Doc {
    Doc::All(parts)
}

pub(super) fn indent(doc: Doc) -> Doc {
    Doc::Indent(Box::new(doc))
}

pub(super) fn group(doc: Doc) -> Doc {
    let broken = doc.is_broken();
    Doc::Group(Box::new(doc), broken)
}

impl Doc {
    /// Returns whether the document contains a forced line break.
    fn is_broken(&self) -> bool {
        match self {
            Doc::Hard | Doc::Blank | Doc::Suffix(_) | Doc::Comment(_) => true,
            Doc::Text(_) | Doc::Line | Doc::Soft => false,
            Doc::All(parts) => parts.iter().any(Doc::is_broken),
            Doc::Indent(inner) => inner.is_broken(),
            Doc::Group(_, broken) => *broken,
        }
    }

    pub(super) fn is_nothing(&self) -> bool {
        matches!(self, Doc::All(parts) if parts.iter().all(Doc::is_nothing))
    }

    /// Returns the text, with a final line break.
    pub(super) fn print(&self) -> String {
        let mut printer = Printer::default();
        let mut open = vec![(0, false, self)];
        while let Some((indent, flat, doc)) = open.pop() {
            match doc {
                Doc::Text(text) => printer.write(text, indent),
                Doc::Line if flat => printer.write(" ", indent),
                Doc::Soft if flat => {}
                Doc::Line | Doc::Soft | Doc::Hard => printer.new_line(),
                Doc::Blank => {
                    printer.new_line();
                    printer.blank = true;
                }
                Doc::Suffix(comment) => printer.suffixes.push(comment.clone()),
                Doc::Comment(comment) if printer.column > 0 => printer.suffixes.push(comment.clone()),
                Doc::Comment(comment) => {
                    printer.write(comment, indent);
                    printer.new_line();
                }
                Doc::All(parts) => open.extend(parts.iter().rev().map(|part| (indent, flat, part))),
                Doc::Indent(inner) => open.push((indent + STEP, flat, &**inner)),
                Doc::Group(inner, broken) => {
                    let column = printer.column.max(indent);
                    let fits = !broken && (flat || fits(inner, &open, WIDTH.saturating_sub(column)));
                    open.push((indent, fits, &**inner));
                }
            }
        }
        printer.new_line();
        printer.out
    }
}

/// Returns whether a document and its successors up to the next line break fit into the rest of the line.
fn fits(doc: &Doc, after: &[(usize, bool, &Doc)], mut room: usize) -> bool {
    let mut after = after.iter().rev();
    let mut open = vec![(true, doc)];
    loop {
        let (flat, doc) = match open.pop() {
            Some(next) => next,
            None => match after.next() {
                Some((_, flat, doc)) => (*flat, *doc),
                None => return true,
            },
        };
        match doc {
            Doc::Text(text) => match room.checked_sub(width(text)) {
                Some(rest) => room = rest,
                None => return false,
            },
            Doc::Line if flat => match room.checked_sub(1) {
                Some(rest) => room = rest,
                None => return false,
            },
            Doc::Soft if flat => {}
            Doc::Line | Doc::Soft | Doc::Hard | Doc::Blank => return true,
            Doc::Suffix(_) | Doc::Comment(_) => {}
            Doc::All(parts) => open.extend(parts.iter().rev().map(|part| (flat, part))),
            Doc::Indent(inner) => open.push((flat, inner)),
            Doc::Group(inner, broken) => open.push((flat && !broken, inner)),
        }
    }
}

pub(super) fn width(text: &str) -> usize {
    text.chars().count()
}

#[derive(Default)]
struct Printer {
    out: String,
    /// The start of the current line in `out`.
    line: usize,
    column: usize,
    /// Whether to write an empty line before the next text.
    blank: bool,
    suffixes: Vec<String>,
}

impl Printer {
    fn write(&mut self, text: &str, indent: usize) {
        if self.column == 0 {
            if text.trim().is_empty() {
                return;
            }
            if std::mem::take(&mut self.blank) && !self.out.is_empty() {
                self.out.push('\n');
                self.line = self.out.len();
            }
            self.out.push_str(&" ".repeat(indent));
            self.column = indent;
        }
        self.out.push_str(text);
        self.column = match text.rfind('\n') {
            Some(at) => width(&text[at + 1..]),
            None => self.column + width(text),
        };
    }

    /// Ends the current line, unless it is empty.
    fn new_line(&mut self) {
        let written = self.out[self.line..].trim_end().len();
        self.out.truncate(self.line + written);
        for comment in std::mem::take(&mut self.suffixes) {
            if self.out.len() > self.line {
                self.out.push_str("  ");
            }
            self.out.push_str(&comment);
            self.out.push('\n');
            self.line = self.out.len();
        }
        if self.out.len() > self.line {
            self.out.push('\n');
        }
        self.line = self.out.len();
        self.column = 0;
    }
}
