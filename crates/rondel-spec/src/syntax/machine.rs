//! Parser of state machines.

use rondel_event::ValueType;

use super::ast::{
    Attribute, Body, ErrorState, Machine, MachineVariable, Name, NodeId, NodeKind, PropertySource, Transition,
};
use super::parser::{Mark, Parsed, Parser, Reported};
use super::topic::value_type;
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::lexer::TokenKind;
use crate::modules::Role;
use crate::suggest::did_you_mean;

/// Keywords that start a machine statement, unless `->` follows.
pub(super) const STATEMENTS: [&str; 5] = ["initial", "state", "var", "error", "final"];

/// Keywords that start a clause of a transition.
pub(super) const CLAUSES: [&str; 4] = ["when", "within", "after", "do"];

impl Parser<'_> {
    pub(super) fn machine(&mut self, attributes: Vec<Attribute>) -> Parsed<()> {
        let start = self.place();
        self.advance();
        let name = self.declared_name("a machine")?;
        let index = self.ast.machines.len();
        self.ast.property_sources.push(PropertySource::Machine(index));
        self.ast.machines.push(Machine {
            name,
            attributes,
            each: None,
            initial: None,
            states: Vec::new(),
            variables: Vec::new(),
            transitions: Vec::new(),
            errors: Vec::new(),
            finals: Vec::new(),
            complete: false,
        });
        let body = self.machine_body(index);
        self.before_body = false;
        if body.is_err() {
            return Err(self.leave_body(self.open_braces(start)));
        }
        self.ast.machines[index].complete = true;
        Ok(())
    }

    fn machine_body(&mut self, index: usize) -> Parsed<()> {
        if self.word(0) == "for" {
            self.before_body = true;
            self.ast.machines[index].each = Some(self.each()?);
            self.before_body = false;
        }
        self.mark(Mark::Body);
        self.expect("{")?;
        while !self.eat("}") {
            if !self.eat(";") {
                self.statement(index)?;
            }
        }
        Ok(())
    }

    fn statement(&mut self, machine: usize) -> Parsed<()> {
        self.mark(Mark::Statement);
        let (word, span) = (self.word(0), self.span());
        if self.symbol(1) == "->" && !word.is_empty() {
            let transition = self.transition()?;
            self.ast.machines[machine].transitions.push(transition);
            return Ok(());
        }
        match word {
            "initial" => {
                self.advance();
                let name = self.name("a state")?;
                let first = self.ast.machines[machine].initial.as_ref().map(|first| first.span);
                match first {
                    Some(first) => {
                        let message = "a machine has only one initial state";
                        self.report(
                            Diagnostic::new(Code::InitialState, span.to(name.span), message)
                                .label(first, "first initial state"),
                        );
                    }
                    None => self.ast.machines[machine].initial = Some(name),
                }
            }
            "state" => {
                let states = self.states()?;
                self.ast.machines[machine].states.extend(states);
            }
            "final" => {
                let states = self.states()?;
                self.ast.machines[machine].finals.extend(states);
            }
            "error" => {
                let error = self.error_state()?;
                self.ast.machines[machine].errors.push(error);
            }
            "var" => {
                let variable = self.machine_variable()?;
                self.ast.machines[machine].variables.push(variable);
            }
            _ if !CLAUSES.contains(&word) && self.is_behind_formula() => {
                let known: Vec<_> = STATEMENTS.into_iter().chain(CLAUSES).collect();
                return Err(self.after_expression(&known, "an operator, a machine statement or `}`"));
            }
            _ => {
                let known = STATEMENTS.into_iter().chain(CLAUSES);
                let suggestion = match word {
                    "" => String::new(),
                    "init" | "start" => "; did you mean 'initial'?".to_owned(),
                    _ => did_you_mean(word, known),
                };
                let message =
                    format!("expected a machine statement or `}}`, found {}{suggestion}", self.found());
                let help = match word {
                    "init" | "start" => "declare the initial state with `initial a`",
                    "states" | "transition" | "transitions" => {
                        "transitions declare their states: `a -> b when p`; declare a state without transitions with `state a`"
                    }
                    "if" | "whenever" => "write the condition of a transition after `when`: `a -> b when p`",
                    "on" => "write the condition of a transition after `when`: `a -> b when on(topic)`",
                    "" if self.symbol(0) == ":" => {
                        "write the condition of a transition after `when`: `a -> b when p`"
                    }
                    _ if CLAUSES.contains(&word) => {
                        "a transition takes `when`, `within`, `after` and `do`, each at most once"
                    }
                    _ => {
                        "machine statements are `initial a`, `a -> b when p`, `var n: int = 0`, `error a` and `final a`"
                    }
                };
                return Err(self.report(Diagnostic::new(Code::UnexpectedToken, span, message).help(help)));
            }
        }
        Ok(())
    }

    /// Parses a list of states after a keyword.
    fn states(&mut self) -> Parsed<Vec<Name>> {
        self.advance();
        let mut states = vec![self.name("a state")?];
        while self.eat(",") {
            states.push(self.name("a state")?);
        }
        Ok(states)
    }

    fn error_state(&mut self) -> Parsed<ErrorState> {
        let start = self.place();
        let mut error = ErrorState { states: self.states()?, condition: None, lasting: None };
        if self.word(0) == "when" {
            let (states, span) = (self.written(start), self.span());
            self.advance();
            let formula = self.place();
            error.condition = Some(self.body()?);
            let help = format!("write `{states} while {}`", self.written(formula));
            let diagnostic = Diagnostic::new(Code::UnexpectedToken, span, "expected `while`, found `when`");
            self.report(diagnostic.help(help));
        }
        if self.word(0) == "while" {
            self.mark(Mark::Clause);
            self.advance();
            error.condition = Some(self.body()?);
        }
        if self.word(0) == "for" {
            self.mark(Mark::Clause);
            self.advance();
            error.lasting = Some(self.bound()?);
        }
        Ok(error)
    }

    fn machine_variable(&mut self) -> Parsed<MachineVariable> {
        self.advance();
        let name = self.name("a variable")?;
        let mut declared = None;
        if self.eat(":") {
            let word = self.word(0);
            declared = value_type(word);
            if declared.is_none() {
                let message = format!("expected the type of a variable, found {}", self.found());
                return Err(self
                    .report(Diagnostic::new(Code::UnexpectedToken, self.span(), message).help(
                        "write `var n: int = 0`; the types are bool, int, float, string and duration",
                    )));
            }
            if declared == Some(ValueType::Time) {
                let message = "a variable cannot be a time, as there is no constant time to begin with";
                let help =
                    "write `var d: duration = 0 s`, or measure the time in a state with `after` and `within`";
                let diagnostic = Diagnostic::new(Code::UnexpectedToken, self.span(), message);
                return Err(self.report(diagnostic.help(help)));
            }
            self.advance();
        }
        self.expect("=")?;
        Ok(MachineVariable { name, value_type: declared, initial: self.body()? })
    }

    fn transition(&mut self) -> Parsed<Transition> {
        let (start, place) = (self.span(), self.place());
        let from = self.name("a state")?;
        self.expect("->")?;
        let to = self.name("a state")?;
        let mut transition = Transition {
            from,
            to,
            guard: None,
            within: None,
            after: None,
            assignments: Vec::new(),
            text: String::new(),
            span: start,
        };
        loop {
            // A state can have the name of a keyword.
            if self.symbol(1) == "->" {
                break;
            }
            let taken = match self.word(0) {
                "when" => transition.guard.is_some(),
                "within" => transition.within.is_some(),
                "after" => transition.after.is_some(),
                "do" => !transition.assignments.is_empty(),
                _ => break,
            };
            if taken {
                // A duplicate clause is reported as an invalid statement.
                break;
            }
            let word = self.word(0);
            self.mark(Mark::Clause);
            self.advance();
            match word {
                "when" => transition.guard = Some(self.body()?),
                "within" => transition.within = Some(self.bound()?),
                "after" => transition.after = Some(self.bound()?),
                _ => {
                    transition.assignments.push(self.assignment()?);
                    while self.eat(",") {
                        transition.assignments.push(self.assignment()?);
                    }
                }
            }
        }
        transition.span = start.to(self.last_span());
        transition.text = self.written(place);
        Ok(transition)
    }

    fn assignment(&mut self) -> Parsed<(Name, Body)> {
        let name = self.name("a variable")?;
        if !(self.symbol(0) == ":" && self.symbol(1) == "=") {
            let message = format!("expected `:=`, found {}", self.found());
            return Err(self.report(
                Diagnostic::new(Code::UnexpectedToken, self.span(), message)
                    .help("assign a variable with `do n := n + 1`"),
            ));
        }
        self.advance();
        self.advance();
        Ok((name, self.body()?))
    }

    /// Parses an expression with its own range of nodes.
    pub(super) fn body(&mut self) -> Parsed<Body> {
        self.mark(Mark::Formula);
        let first = self.ast.nodes.len();
        let root = self.expression()?;
        Ok(Body { first, root: Some(root) })
    }

    /// Returns the machine that has a state of this name, declared above or below.
    fn machine_with_state(&self, state: &str) -> Option<String> {
        let words: Vec<&str> = self.tokens().iter().map(|token| token.span.of(self.text)).collect();
        let mut machine = None;
        for (at, word) in words.iter().enumerate() {
            let [before, after] = [at.checked_sub(1), Some(at + 1)].map(|at| at.and_then(|at| words.get(at)));
            if *word == "machine" && words.get(at + 2).is_some_and(|next| matches!(*next, "{" | "for")) {
                machine = after.copied();
            }
            let is_state = before.is_some_and(|word| matches!(*word, "->" | "initial" | "state"))
                || after.is_some_and(|word| *word == "->");
            if *word == state && is_state && machine.is_some_and(|machine| machine != state) {
                return machine.map(str::to_owned);
            }
        }
        None
    }

    /// Reports a clause of a transition that `and` joins to its condition; none for other words.
    pub(super) fn joined_clause(&mut self) -> Option<Reported> {
        let is_clause = matches!(self.word(0), "after" | "within")
            && matches!(self.token(1).kind, TokenKind::Int(_) | TokenKind::Float(_) | TokenKind::Duration);
        if !is_clause || !(self.word_before(1) == "and" || self.symbol_before(1) == "&&") {
            return None;
        }
        let end = self.place();
        let when = (1..=end).find(|back| self.word_before(*back) == "when")?;
        let clause = self.word(0);
        let bound = self.token(1).span.to(match self.token(1).kind {
            TokenKind::Duration => self.token(1).span,
            _ => self.token(2).span,
        });
        let span = self.span();
        self.go_to(end - 1);
        let condition = self.written(end - when);
        self.go_to(end);
        let message = format!("expected a condition, found `{clause}`");
        let diagnostic = Diagnostic::new(Code::UnexpectedToken, span, message);
        Some(self.report(diagnostic.help(format!("write `{condition} {clause} {}`", bound.of(self.text)))))
    }

    /// Parses `in(machine, state, …)`.
    pub(super) fn in_state(&mut self, start: Span) -> Parsed<NodeId> {
        self.advance();
        self.advance();
        let machine = self.used_name("a machine", Role::Property)?;
        let mut states = Vec::new();
        while self.eat(",") {
            states.push(self.name("a state")?);
        }
        if states.is_empty() {
            let help = match self.machine_with_state(&machine.text) {
                Some(owner) => format!("write `in({owner}, {})`", machine.text),
                None => format!("write `in({}, state)`", machine.text),
            };
            let reported = self.expected("`,` and the name of a state");
            self.help_last(help);
            return Err(reported);
        }
        self.expect(")")?;
        let whole = start.to(self.last_span());
        Ok(self.node(NodeKind::In(machine, states), whole))
    }
}
