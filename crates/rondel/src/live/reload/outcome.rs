//! The outcome of a reload.

use std::time::Duration;

use rondel_runtime::Notice;
use rondel_runtime::text::counted;
use serde_json::{Value, json};

use super::requests::Cause;

/// Maximum number of properties or topics that a sentence names.
const NAMED: usize = 5;

/// The changes of a reload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// The properties that keep their states.
    pub kept: Vec<String>,
    /// The properties that restart, with the reason.
    pub restarted: Vec<(String, String)>,
    /// New properties.
    pub added: Vec<String>,
    /// Removed properties.
    pub removed: Vec<String>,
    /// The restarted and removed properties that are violated.
    pub violated: Vec<String>,
    /// Topics that are newly subscribed to. One with another address is also among the removed ones.
    pub topics_added: Vec<String>,
    /// Topics that are not subscribed to any more.
    pub topics_removed: Vec<String>,
    /// Messages and events of new topics that were dropped before the exchange.
    pub dropped: u64,
    /// Duration of the whole reload.
    pub lasted: Duration,
    /// The part of it for which messages had to wait.
    pub held: Duration,
}

/// The outcome of a reload: the changes, or the lines about the mistakes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    result: Result<Changes, Vec<String>>,
    /// Warnings about the new specification and deployment.
    warnings: Vec<String>,
}

impl Outcome {
    /// A reload that was done, with warnings about the new files.
    pub fn done(changes: Changes, warnings: Vec<String>) -> Outcome {
        Outcome { result: Ok(changes), warnings }
    }

    /// A reload that was refused for these reasons: the run goes on as before.
    pub fn refused(reasons: Vec<String>) -> Outcome {
        Outcome { result: Err(reasons), warnings: Vec::new() }
    }

    /// Whether the reload was done.
    pub fn is_done(&self) -> bool {
        self.result.is_ok()
    }

    /// All lines about the mistakes or the warnings.
    pub fn lines(&self) -> &[String] {
        match &self.result {
            Ok(_) => &self.warnings,
            Err(reasons) => reasons,
        }
    }

    /// One line about the outcome.
    pub fn sentence(&self) -> String {
        match &self.result {
            Ok(changes) => changes.sentence(),
            Err(reasons) => {
                // Warnings are among them.
                let count = reasons.iter().filter(|line| line.starts_with("error")).count().max(1);
                let mistakes = counted(count as u64, "mistake", "mistakes");
                format!("reload refused, the run goes on as before: {mistakes}")
            }
        }
    }

    /// The members of reports, audit records and answers.
    pub fn members(&self, cause: Cause) -> Vec<(&'static str, Value)> {
        let mut members = vec![("cause", json!(cause.as_str())), ("done", json!(self.is_done()))];
        match &self.result {
            Ok(changes) => members.extend(changes.members()),
            Err(reasons) => members.push(("reasons", json!(reasons))),
        }
        members
    }

    /// The outcome as a report.
    pub fn notice(&self, cause: Cause) -> Notice {
        Notice::reload(self.members(cause), self.sentence())
    }
}

impl Changes {
    fn sentence(&self) -> String {
        let Changes { kept, added, removed, topics_added, topics_removed, dropped, lasted, .. } = self;
        let marked = |name: &String| match self.violated.contains(name) {
            true => format!("{name} (violated)"),
            false => name.clone(),
        };
        let restarted: Vec<String> = self.restarted.iter().map(|(name, _)| marked(name)).collect();
        let removed: Vec<String> = removed.iter().map(marked).collect();
        let mut text = format!(
            "reloaded within {} ms: {} {} state",
            lasted.as_millis(),
            match &kept[..] {
                [one] => format!("`{one}` keeps"),
                several => format!("{} keep", counted(several.len() as u64, "property", "properties")),
            },
            if kept.len() == 1 { "its" } else { "their" }
        );
        let lists = [
            ("restarted", &restarted),
            ("added", added),
            ("removed", &removed),
            ("topics added", topics_added),
            ("topics removed", topics_removed),
        ];
        for (what, names) in lists {
            if !names.is_empty() {
                text += &format!("; {what}: {}", listed(names));
            }
        }
        if *dropped > 0 {
            let messages = counted(*dropped, "message", "messages");
            text += &format!("; {messages} of new topics dropped meanwhile");
        }
        text
    }

    fn members(&self) -> Vec<(&'static str, Value)> {
        let restarted = |(name, why): &(String, String)| json!({"property": name, "reason": why});
        let seconds = |duration: Duration| json!((duration.as_secs_f64() * 1e6).round() / 1e6);
        vec![
            ("kept", json!(self.kept)),
            ("restarted", self.restarted.iter().map(restarted).collect()),
            ("added", json!(self.added)),
            ("removed", json!(self.removed)),
            ("violated", json!(self.violated)),
            ("topics_added", json!(self.topics_added)),
            ("topics_removed", json!(self.topics_removed)),
            ("dropped", json!(self.dropped)),
            ("seconds", seconds(self.lasted)),
            ("held", seconds(self.held)),
        ]
    }
}

/// The first names, and the number of the others.
fn listed(names: &[String]) -> String {
    match names.len().checked_sub(NAMED).filter(|more| *more > 0) {
        None => names.join(", "),
        Some(more) => format!("{} and {more} more", names[..NAMED].join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentence_names_what_changed() {
        let names = |count: usize| (0..count).map(|i| format!("p{i}")).collect::<Vec<_>>();
        let changes = Changes {
            kept: names(1),
            restarted: vec![("q".to_owned(), "its formula has changed".to_owned())],
            added: names(7),
            violated: vec!["q".to_owned()],
            topics_removed: vec!["gear".to_owned()],
            lasted: Duration::from_millis(12),
            ..Changes::default()
        };
        let outcome = Outcome::done(changes, Vec::new());
        assert_eq!(
            outcome.sentence(),
            "reloaded within 12 ms: `p0` keeps its state; restarted: q (violated); added: p0, p1, p2, p3, p4 and 2 more; topics removed: \
             gear"
        );
        let json = outcome.notice(Cause::File).json();
        assert_eq!((&json["report"], &json["done"]), (&json!("reload"), &json!(true)));
        assert_eq!(json["restarted"][0]["property"], "q");
        let lines = ["error: a", "warning: b", "error[E01]: c"].map(str::to_owned).to_vec();
        let refused = Outcome::refused(lines);
        assert_eq!(refused.sentence(), "reload refused, the run goes on as before: 2 mistakes");
    }
}
