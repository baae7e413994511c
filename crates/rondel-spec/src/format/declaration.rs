//! Layout of declarations, and alignment of their columns.

use super::Formatter;
use super::doc::{Doc, all, group, indent, text, width};
use crate::lexer::TokenKind;
use crate::syntax::Mark;

impl Formatter<'_> {
    pub(super) fn file(&mut self) -> Doc {
        let end = self.lexemes.len().saturating_sub(1);
        let starts = self.marked(Mark::Declaration, 0, end);
        let mut out = Vec::new();
        let mut i = 0;
        while i < starts.len() {
            let mut run = 1;
            if self.is_topic(starts[i]) {
                while starts.get(i + run).is_some_and(|at| self.is_topic(*at) && !self.is_apart(*at)) {
                    run += 1;
                }
                let rows: Vec<_> =
                    (i..i + run).map(|n| (starts[n], starts.get(n + 1).copied().unwrap_or(end))).collect();
                self.topics(&rows, &mut out);
            } else {
                let to = starts.get(i + 1).copied().unwrap_or(end);
                self.lead(starts[i], false, &mut out);
                let behind = self.behind(to - 1);
                out.push(self.declaration(starts[i], to));
                out.extend(behind);
                out.push(Doc::Hard);
            }
            i += run;
        }
        self.lead(end, false, &mut out);
        all(out)
    }

    /// The positions with a mark, in order.
    fn marked(&self, mark: Mark, from: usize, to: usize) -> Vec<usize> {
        (from..to).filter(|at| self.mark(*at) == Some(mark)).collect()
    }

    fn is_topic(&self, at: usize) -> bool {
        self.word(at) == "topic"
    }

    /// Returns whether an empty line precedes the lexeme or one of its comments.
    fn is_apart(&self, at: usize) -> bool {
        let lexeme = &self.lexemes[at];
        lexeme.blank || lexeme.before.iter().any(|comment| comment.blank)
    }

    /// Takes the comments after the last lexeme of a line; they do not count towards its width.
    fn behind(&mut self, at: usize) -> Vec<Doc> {
        std::mem::take(&mut self.lexemes[at].behind).into_iter().map(Doc::Suffix).collect()
    }

    /// Adds the comments and empty lines before a line.
    fn lead(&mut self, at: usize, mut first: bool, out: &mut Vec<Doc>) {
        let Some(lexeme) = self.lexemes.get_mut(at) else { return };
        for comment in std::mem::take(&mut lexeme.before) {
            if comment.blank && !first {
                out.push(Doc::Blank);
            }
            first = false;
            out.push(Doc::Comment(comment.text));
        }
        if lexeme.blank && !first {
            out.push(Doc::Blank);
        }
    }

    fn declaration(&mut self, from: usize, to: usize) -> Doc {
        let mut parts = Vec::new();
        let keyword = self.attributes(from, to, &mut parts);
        parts.push(match self.word(keyword) {
            "topic" => self.topic(keyword, to, [0; 2]),
            "const" | "let" | "property" => self.definition(keyword, to),
            "assert" => self.assert(keyword, to),
            "chain" => {
                self.header = true;
                let chain = self.with_parts(keyword, to, None);
                self.header = false;
                chain
            }
            _ => self.block(keyword, to),
        });
        all(parts)
    }

    /// Adds the attributes on their own line; returns the position of the keyword after them.
    fn attributes(&mut self, from: usize, to: usize, out: &mut Vec<Doc>) -> usize {
        let mut at = from;
        let mut attributes = Vec::new();
        while at < to && self.word(at) == "@" {
            let mut end = at + 2;
            if end < to && self.word(end) == "(" {
                end = self.matching(end, to) + 1;
            }
            if !attributes.is_empty() {
                attributes.push(Doc::Line);
            }
            let formula = (self.word(at + 1) == "while" && end > at + 4).then_some(at + 3..end - 1);
            for part in at..end.min(to) {
                match &formula {
                    Some(formula) if part == formula.start => {
                        attributes.push(self.expression(part, formula.end.min(to)));
                    }
                    Some(formula) if formula.contains(&part) => {}
                    _ => {
                        // A number and its unit.
                        if part > at + 3 && self.word(part) != ")" {
                            attributes.push(text(" "));
                        }
                        attributes.push(self.lexeme(part));
                    }
                }
            }
            at = end;
        }
        if !attributes.is_empty() {
            out.push(group(all(attributes)));
            out.push(Doc::Hard);
        }
        at.min(to.saturating_sub(1))
    }

    /// Adds consecutive topics with aligned names and addresses.
    fn topics(&mut self, rows: &[(usize, usize)], out: &mut Vec<Doc>) {
        let mut columns = [0; 2];
        let all: Vec<_> = rows.iter().map(|(from, to)| self.topic_cells(*from, *to)).collect();
        for (i, column) in columns.iter_mut().enumerate() {
            // A cell needs padding only if another cell follows.
            if all.iter().any(|cells| cells[i + 1..].iter().any(|cell| !cell.is_empty())) {
                *column = all.iter().map(|cells| width(&cells[i])).max().unwrap_or(0);
            }
        }
        for (from, to) in rows {
            self.lead(*from, false, out);
            let behind = self.behind(to - 1);
            out.push(self.topic(*from, *to, columns));
            out.extend(behind);
            out.push(Doc::Hard);
        }
    }

    /// Returns the start of the schema of a topic, or `to` if it has none.
    fn schema(&self, from: usize, to: usize) -> usize {
        (from..to).find(|at| self.word(*at) == "{").unwrap_or(to)
    }

    /// Returns the name, the address and the type of a topic, with an opening brace if it has a schema.
    fn topic_cells(&self, from: usize, to: usize) -> [String; 3] {
        let schema = self.schema(from, to);
        let mut cells = [const { String::new() }; 3];
        let mut cell = 0;
        for at in from + 1..schema {
            let lexeme = &self.lexemes[at];
            match lexeme.kind {
                TokenKind::Text(_) if cell == 0 => cell = 1,
                TokenKind::Symbol(":") if cell < 2 => {
                    cells[2].push_str(": ");
                    cell = 2;
                    continue;
                }
                _ => {}
            }
            cells[cell].push_str(lexeme.text);
        }
        if schema < to {
            cells[2].push_str(if cells[2].is_empty() { "{" } else { " {" });
        }
        cells
    }

    fn topic(&mut self, from: usize, to: usize, columns: [usize; 2]) -> Doc {
        let schema = self.schema(from, to);
        let [name, address, rest] = self.topic_cells(from, to);
        let mut line = String::from("topic");
        for (cell, column) in [name, address].into_iter().zip(columns) {
            if !cell.is_empty() || column > 0 {
                line.push(' ');
                line.push_str(&cell);
                line.push_str(&" ".repeat(column.saturating_sub(width(&cell))));
            }
        }
        line.push(' ');
        line.push_str(rest.trim_end_matches('{'));
        let mut parts = Vec::new();
        // Comments inside the head move before or after the line.
        for at in from..schema {
            let comments = std::mem::take(&mut self.lexemes[at].before);
            parts.extend(comments.into_iter().map(|comment| Doc::Comment(comment.text)));
        }
        let behind: Vec<_> = (from..schema).flat_map(|at| self.behind(at)).collect();
        parts.push(text(if schema < to { line } else { line.trim_end().to_owned() }));
        parts.extend(behind);
        if schema < to {
            self.roomy = true;
            parts.push(self.listed(schema, to - 1, Doc::Line));
            self.roomy = false;
        }
        all(parts)
    }

    /// Lays out the head of a property or a machine, up to `=` or `{`.
    fn head(&mut self, from: usize, to: usize) -> Doc {
        let each = self.marked(Mark::ForEach, from, to).first().copied().unwrap_or(to);
        let until = self.marked(Mark::Until, from, to).first().copied().unwrap_or(to);
        let mut parts = vec![self.plain(from, each)];
        if each < to {
            self.header = true;
            let mut keys = Vec::new();
            let mut begin = each;
            for comma in self.commas(each, until) {
                keys.push(self.plain(begin, comma + 1));
                keys.push(Doc::Line);
                begin = comma + 1;
            }
            keys.push(self.plain(begin, until));
            self.header = false;
            parts.push(indent(all(vec![Doc::Line, group(all(keys))])));
        }
        if until < to {
            let keyword = self.lexeme(until);
            let condition = self.expression(until + 1, to);
            parts.push(indent(all(vec![Doc::Line, keyword, text(" "), condition])));
        }
        group(all(parts))
    }

    /// Lays out `const`, `let` and `property`.
    fn definition(&mut self, from: usize, to: usize) -> Doc {
        let formula = self.marked(Mark::Formula, from, to).last().copied().unwrap_or(to);
        if formula >= to || formula == from {
            return self.plain(from, to);
        }
        let head = self.head(from, formula - 1);
        let equals = self.lexeme(formula - 1);
        // Keep a formula on its own line if the author put it there.
        let line = if self.lexemes[formula].new_line { Doc::Hard } else { Doc::Line };
        let formula = self.expression(formula, to);
        group(all(vec![head, text(" "), equals, indent(all(vec![line, formula]))]))
    }

    /// Lays out an `assert`, with its clauses.
    fn assert(&mut self, from: usize, to: usize) -> Doc {
        let clauses = self.marked(Mark::Clause, from, to);
        let first = clauses.first().copied().unwrap_or(to);
        let formula = self.marked(Mark::Formula, from, first).first().copied().unwrap_or(from + 1);
        // `always p`, or `share(p) >= 0.95`, which reads like an expression.
        let begin = if matches!(self.word(from + 1), "always" | "ever") { formula } else { from + 1 };
        let mut parts = vec![self.plain(from, begin), text(" "), self.expression(begin, first)];
        for (i, clause) in clauses.iter().enumerate() {
            let end = clauses.get(i + 1).copied().unwrap_or(to);
            let part = self.part(*clause, end);
            parts.push(indent(all(vec![Doc::Line, part])));
        }
        group(all(parts))
    }

    /// Lays out a machine or a test.
    fn block(&mut self, from: usize, to: usize) -> Doc {
        let Some(body) = self.marked(Mark::Body, from, to).first().copied() else {
            return self.plain(from, to);
        };
        let close = self.matching(body, to);
        let head = self.head(from, body);
        let mut parts = vec![head, text(" "), self.lexeme(body)];
        let starts = self.marked(Mark::Statement, body, close);
        let mut inner = Vec::new();
        let mut i = 0;
        while i < starts.len() {
            let mut run = vec![starts[i]];
            let kind = self.column_kind(starts[i]);
            while let Some(next) = starts.get(i + run.len()).copied().filter(|_| kind.is_some()) {
                if self.column_kind(next) != kind || self.is_apart(next) {
                    break;
                }
                run.push(next);
            }
            let end = |n: usize| starts.get(n).copied().unwrap_or(close);
            let rows: Vec<_> = run.iter().enumerate().map(|(n, at)| (*at, end(i + n + 1))).collect();
            let columns = self.columns(&rows);
            for (n, (at, end)) in rows.into_iter().enumerate() {
                inner.push(Doc::Hard);
                self.lead(at, i + n == 0, &mut inner);
                inner.push(self.statement(at, end, columns));
            }
            i += run.len();
        }
        inner.push(Doc::Hard);
        self.lead(close, starts.is_empty(), &mut inner);
        parts.push(indent(all(inner)));
        parts.push(self.lexeme(close));
        all(parts)
    }

    /// Returns the kind of a statement that is aligned with its neighbours: a transition, or a message of a test.
    fn column_kind(&self, at: usize) -> Option<&'static str> {
        match (self.word(at), self.word(at + 1)) {
            (_, "->") => Some("->"),
            ("at", _) => Some("at"),
            _ => None,
        }
    }

    /// Returns the two columns of a transition or a message, as ranges.
    fn cells(&self, from: usize, to: usize) -> [(usize, usize); 2] {
        if self.word(from + 1) == "->" {
            return [(from, from + 1), (from + 2, (from + 3).min(to))];
        }
        if let Some(event) = self.event(from, to) {
            return [(from + 1, event), (event, self.schema(event, to))];
        }
        let content = self.schema(from, to);
        [(from + 1, content - 1), (content - 1, content)]
    }

    /// Returns the beginning of the event in a line of a test, `missed_deadline(topic)` or `not alive(topic)`; none if it is
    /// a message, or a transition of a machine.
    fn event(&self, from: usize, to: usize) -> Option<usize> {
        if self.word(from + 1) == "->" {
            return None;
        }
        let name = (from..self.schema(from, to)).find(|at| self.word(*at) == "(")?.checked_sub(1)?;
        Some(if self.word(name - 1) == "not" { name - 1 } else { name })
    }

    /// Returns whether a space stands before a lexeme of a cell that begins at `from`.
    fn is_spaced(&self, from: usize, at: usize) -> bool {
        at > from && !matches!(self.word(at - 1), "-" | "(") && !matches!(self.word(at), "(" | ")")
    }

    fn columns(&self, rows: &[(usize, usize)]) -> [usize; 2] {
        let mut columns = [0; 2];
        for (from, to) in rows {
            if self.column_kind(*from).is_none() {
                continue;
            }
            // Nothing stands behind an event without a key.
            let is_last = self.event(*from, *to).is_some() && self.schema(*from, *to) == *to;
            let counted = if is_last { 1 } else { 2 };
            for (column, (begin, end)) in columns.iter_mut().zip(self.cells(*from, *to)).take(counted) {
                *column = (*column).max(self.width_of(begin, end));
            }
        }
        columns
    }

    fn width_of(&self, from: usize, to: usize) -> usize {
        let space = |at| usize::from(self.is_spaced(from, at));
        (from..to).map(|at| width(self.lexemes[at].text) + space(at)).sum()
    }

    fn statement(&mut self, from: usize, to: usize, columns: [usize; 2]) -> Doc {
        let behind = self.behind(to - 1);
        let statement = match self.column_kind(from) {
            Some("->") => self.with_parts(from, to, Some(columns)),
            Some(_) => self.message(from, to, columns),
            None if self.word(from) == "var" => self.definition_of_variable(from, to),
            None => self.with_parts(from, to, None),
        };
        all(vec![statement, all(behind)])
    }

    fn definition_of_variable(&mut self, from: usize, to: usize) -> Doc {
        let value = self.marked(Mark::Formula, from, to).first().copied().unwrap_or(to);
        let head = self.plain(from, value);
        let value = self.expression(value, to);
        group(all(vec![head, text(" "), indent(value)]))
    }

    fn message(&mut self, from: usize, to: usize, columns: [usize; 2]) -> Doc {
        let [time, topic] = self.cells(from, to);
        let mut parts = vec![self.lexeme(from), text(" ")];
        let mut padding = 0;
        for ((begin, end), column) in [time, topic].into_iter().zip(columns) {
            parts.push(text(" ".repeat(padding)));
            padding = column.saturating_sub(self.width_of(begin, end)) + 1;
            for at in begin..end {
                if self.is_spaced(begin, at) {
                    parts.push(text(" "));
                }
                parts.push(self.lexeme(at));
            }
        }
        if topic.1 < to {
            parts.push(text(" ".repeat(padding)));
            self.roomy = true;
            parts.push(self.listed(topic.1, to - 1, Doc::Line));
            self.roomy = false;
        }
        all(parts)
    }

    /// Lays out a transition, an error state or a chain, with its clauses.
    fn with_parts(&mut self, from: usize, to: usize, columns: Option<[usize; 2]>) -> Doc {
        let starts = self.marked(Mark::Clause, from, to);
        let first = starts.first().copied().unwrap_or(to);
        let mut docs = Vec::new();
        match columns {
            Some([left, right]) => {
                docs.push(self.lexeme(from));
                docs.push(text(" ".repeat(left.saturating_sub(width(self.lexemes[from].text)) + 1)));
                docs.push(self.lexeme(from + 1));
                docs.push(text(" "));
                docs.push(self.lexeme(from + 2));
                if first < to {
                    let used = width(self.lexemes[from + 2].text);
                    docs.push(text(" ".repeat(right.saturating_sub(used))));
                }
            }
            None => docs.push(self.plain(from, first)),
        }
        for (i, start) in starts.iter().enumerate() {
            let end = starts.get(i + 1).copied().unwrap_or(to);
            let part = self.part(*start, end);
            docs.push(indent(all(vec![Doc::Line, part])));
        }
        group(all(docs))
    }

    fn part(&mut self, from: usize, to: usize) -> Doc {
        if matches!(self.word(from), "when" | "while") {
            let keyword = self.lexeme(from);
            return all(vec![keyword, text(" "), self.expression(from + 1, to)]);
        }
        if self.word(from) != "do" {
            return self.plain(from, to);
        }
        let mut parts = vec![self.lexeme(from)];
        let mut begin = from + 1;
        let mut ends = self.commas(begin, to);
        ends.push(to);
        for end in ends {
            parts.push(if begin == from + 1 { text(" ") } else { indent(Doc::Line) });
            parts.push(self.lexeme(begin));
            parts.push(text(" "));
            parts.push(self.lexeme(begin + 1));
            parts.push(self.lexeme(begin + 2));
            parts.push(text(" "));
            parts.push(self.expression(begin + 3, end));
            if end < to {
                parts.push(self.lexeme(end));
            }
            begin = end + 1;
        }
        group(all(parts))
    }
}
