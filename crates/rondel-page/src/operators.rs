//! Actions of operators: acknowledging and silencing, by the functions of `rondel ack` and `rondel silence`.

use rondel_event::terminal::is_obeyed;
use rondel_sinks::sqlite::{Acknowledgement, Action, NewSilence};
use serde_json::{Value, json};

use crate::answer::{Problem, nanos, seconds};
use crate::api::{Answer, member};
use crate::page::Page;

/// Longest name of an operator, and longest comment, in characters.
const LONGEST_NAME: usize = 200;
const LONGEST_COMMENT: usize = 2000;

impl Page {
    /// Refuses actions unless they are allowed.
    fn may_act(&self) -> Result<(), Problem> {
        match self.guard.may_act() {
            true => Ok(()),
            false => Err(Problem::new(
                403,
                "this page only shows: set `actions: true` of `page` to acknowledge and silence",
            )),
        }
    }

    pub(crate) fn acknowledge(&self, id: i64, body: &Value, now: i64) -> Answer {
        self.may_act()?;
        let (by, comment) = operator(body)?;
        let until = until(body, now)?;
        let replaces = body.get("replace").and_then(Value::as_bool).unwrap_or(false);
        let acknowledgement = Acknowledgement { by, comment, at: now, until, replaces };
        let done = self.store.act(|operations| operations.acknowledge(id, &acknowledgement));
        self.acted(done)
    }

    pub(crate) fn silence(&self, body: &Value, now: i64) -> Answer {
        self.may_act()?;
        let (by, comment) = operator(body)?;
        let property = member(body, "property")?;
        let parameters = match body.get("parameters") {
            None | Some(Value::Null) => String::new(),
            Some(value @ Value::Object(_)) => value.to_string(),
            Some(_) => return Err(Problem::wrong("`parameters` is an object")),
        };
        let until = until(body, now)?
            .ok_or_else(|| Problem::wrong("`until` is missing: a silence ends by itself"))?;
        let silence = NewSilence { property, parameters: &parameters, from: now, until, by, comment };
        let done = self.store.act(|operations| operations.silence(&silence));
        self.acted(done)
    }

    pub(crate) fn end_silence(&self, id: i64, body: &Value, now: i64) -> Answer {
        self.may_act()?;
        let (by, _) = operator(body)?;
        let done = self.store.act(|operations| operations.remove_silence(id, by, now));
        self.acted(done)
    }

    fn acted(&self, done: Result<Action, Problem>) -> Answer {
        self.renew();
        let Action { id, kind, at, operator, members, .. } = done?;
        Ok(json!({"id": id, "at": seconds(at), "operator": operator, "kind": kind, "members": members}))
    }
}

/// The name of the operator and the comment.
fn operator(body: &Value) -> Result<(&str, &str), Problem> {
    let name = member(body, "operator")?.trim();
    if name.is_empty() || name.chars().count() > LONGEST_NAME || name.contains(is_obeyed) {
        return Err(Problem::wrong(format!(
            "`operator` is a name of at most {LONGEST_NAME} characters, without control characters"
        )));
    }
    let comment = body.get("comment").and_then(Value::as_str).unwrap_or_default();
    match comment.chars().count() <= LONGEST_COMMENT {
        true => Ok((name, comment)),
        false => Err(Problem::wrong(format!("`comment` has at most {LONGEST_COMMENT} characters"))),
    }
}

/// The time of day at which an action ends.
fn until(body: &Value, now: i64) -> Result<Option<i64>, Problem> {
    let until = match body.get("until") {
        None | Some(Value::Null) => return Ok(None),
        Some(value) => value.as_f64().ok_or_else(|| Problem::wrong("`until` is a time in seconds"))?,
    };
    let until = nanos(until);
    match until > now {
        true => Ok(Some(until)),
        false => Err(Problem::wrong("`until` has passed, by the clock of the server")),
    }
}
