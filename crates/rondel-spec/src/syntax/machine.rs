//! Parser of state machines.

use super::ast::{
    Attribute, Body, ErrorState, Machine, MachineVariable, Name, NodeId, NodeKind, PropertySource, Transition,
};
use super::parser::{Mark, Parsed, Parser};
use super::topic::value_type;
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::suggest::did_you_mean;

/// Keywords that start a machine statement, unless `->` follows.
pub(super) const STATEMENTS: [&str; 5] = ["initial", "state", "var", "error", "final"];

/// Keywords that start a clause of a transition.
pub(super) const CLAUSES: [&str; 4] = ["when", "within", "after", "do"];

impl Parser<'_> {
    pub(super) fn machine(&mut self, attributes: Vec<Attribute>) -> Parsed<()> {
        let start = self.place();
        self.advance();
        let name = self.name("a machine")?;
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
        let mut error = ErrorState { states: self.states()?, condition: None, lasting: None };
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
                return Err(self.report(Diagnostic::new(Code::UnexpectedToken, self.span(), message).help(
                    "write `var n: int = 0`; the types are bool, int, float, string, time and duration",
                )));
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

    /// Parses `in(machine, state, …)`.
    pub(super) fn in_state(&mut self, start: Span) -> Parsed<NodeId> {
        self.advance();
        self.advance();
        let machine = self.name("a machine")?;
        let mut states = Vec::new();
        while self.eat(",") {
            states.push(self.name("a state")?);
        }
        if states.is_empty() {
            let help = format!("write `in({}, state)`", machine.text);
            let reported = self.expected("`,` and the name of a state");
            self.help_last(help);
            return Err(reported);
        }
        self.expect(")")?;
        let whole = start.to(self.last_span());
        Ok(self.node(NodeKind::In(machine, states), whole))
    }
}
