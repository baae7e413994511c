//! The closing summary of a recording, and its exit status.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rondel_net::adapter::{Outage, Problems};
use rondel_runtime::Account;
use rondel_runtime::text::{counted, size};
use serde_json::json;

use crate::exit;
use crate::live::discover::Unread;
use crate::live::losses::{outage_json, outage_text};
use crate::output::time_text::TimeText;
use crate::recorder::Status;

/// Outcome of a recording run.
pub(super) struct Ended {
    pub(super) accounts: Vec<Account>,
    pub(super) problems: Problems,
    pub(super) status: Arc<Status>,
    pub(super) received: u64,
    pub(super) refused: u64,
    /// The topics that patterns found.
    pub(super) topics: usize,
    /// The topics that were not read since the types of their publishers cannot be used.
    pub(super) unread: Vec<Unread>,
    /// The connections that were lost.
    pub(super) outages: Vec<Outage>,
    /// Whether messages may have been missed that no count includes.
    pub(super) was_cut_off: bool,
    /// Whether a network was given up.
    pub(super) is_given_up: bool,
    pub(super) is_done: bool,
}

impl Ended {
    /// Missing messages, by the sequence numbers of their publishers or reported by a network.
    fn lost(&self) -> u64 {
        self.accounts.iter().map(|account| account.lost).sum::<u64>() + self.problems.lost
    }

    /// Messages that were received and are in no file.
    fn unwritten(&self) -> u64 {
        self.status.lost.load(Ordering::Relaxed)
    }

    fn refused(&self) -> u64 {
        self.refused + self.problems.malformed
    }

    pub(super) fn status(&self) -> u8 {
        if self.status.failure().is_some() || !self.is_done || self.unwritten() > 0 {
            exit::TRACE
        } else if self.is_given_up
            || !self.unread.is_empty()
            || self.lost() + self.refused() + self.problems.incompatible > 0
            || self.was_cut_off
        {
            exit::NETWORK
        } else {
            exit::SATISFIED
        }
    }

    pub(super) fn text(&self, names: &[String]) -> String {
        let on = match self.topics {
            0 => String::new(),
            topics => format!(" on {}", counted(topics as u64, "topic of patterns", "topics of patterns")),
        };
        let mut text = format!("received {}{on}", counted(self.received, "message", "messages"));
        text += &format!(", lost {}, refused {}", self.lost(), self.refused());
        if self.problems.incompatible > 0 {
            text += &format!(", publishers that do not match {}", self.problems.incompatible);
        }
        text += &format!("; wrote {}", self.status);
        for (file, count) in self.status.files() {
            let bytes = std::fs::metadata(&file).map_or(0, |metadata| metadata.len() as usize);
            let messages = counted(count, "message", "messages");
            text += &format!("\n  {}: {messages}, {}", file.display(), size(bytes));
        }
        for (name, account) in names.iter().zip(&self.accounts) {
            text += &match account.received {
                0 => format!("\n  {name}: NO MESSAGE"),
                received => format!("\n  {name}: {}", counted(received, "message", "messages")),
            };
        }
        for unread in &self.unread {
            text += &format!("\n  {}", unread.sentence());
        }
        let mut times = TimeText::default();
        for (name, account) in names.iter().zip(&self.accounts) {
            if let Some(sentence) = account.sentence(name, &mut |time| times.text(time)) {
                text += &format!("\n  {sentence}");
            }
        }
        for outage in &self.outages {
            text += &format!("\n  {}", outage_text(outage, &mut times));
        }
        if let Some(reason) = self.status.failure() {
            text += &format!("\n  {reason}");
        }
        if !self.is_done {
            text += "\n  writing did not end in time: the last file may not be finished";
        }
        text
    }

    pub(super) fn json(&self, names: &[String]) -> String {
        let files = self.status.files();
        let file =
            |(file, count): &(PathBuf, u64)| json!({"file": file.display().to_string(), "messages": count});
        let topics = names.iter().zip(&self.accounts).map(|(name, account)| account.json(name));
        json!({
            "received": self.received,
            "lost": self.lost(),
            "refused": self.refused(),
            "incompatible": self.problems.incompatible,
            "written": self.status.written.load(Ordering::Relaxed),
            "unwritten": self.unwritten(),
            "unread": self.unread.iter().map(Unread::json).collect::<Vec<_>>(),
            "files": files.iter().map(file).collect::<Vec<_>>(),
            "topics": topics.collect::<Vec<_>>(),
            "outages": self.outages.iter().map(outage_json).collect::<Vec<_>>(),
            "failure": self.status.failure(),
            "finished": self.is_done,
        })
        .to_string()
    }
}
