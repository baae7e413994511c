//! Notices: facts about the messages that are no verdicts.

use pyo3::prelude::*;

use crate::time::seconds;

/// A notice: messages whose times step back, that were refused, or that need more than a limit allows.
#[pyclass(frozen, module = "rondel")]
pub(crate) struct Notice {
    kind: &'static str,
    topic: Option<String>,
    text: String,
    json: String,
}

impl Notice {
    /// Copies a notice.
    pub(crate) fn of(notice: rondel_runtime::Notice) -> Notice {
        Notice {
            kind: notice.kind,
            text: notice.text(&mut |time| format!("{} s", seconds(time))),
            json: notice.json().to_string(),
            topic: notice.topic_name,
        }
    }
}

#[pymethods]
impl Notice {
    /// The kind in one word, such as `"backwards"` or `"undecodable"`.
    #[getter]
    fn kind(&self) -> &'static str {
        self.kind
    }

    /// The name of the topic; `None` if it is about no single one.
    #[getter]
    fn topic(&self) -> Option<&str> {
        self.topic.as_deref()
    }

    /// The notice as networks publish it.
    fn json(&self) -> &str {
        &self.json
    }

    fn __str__(&self) -> String {
        match &self.topic {
            Some(topic) => format!("{topic}: {}", self.text),
            None => self.text.clone(),
        }
    }

    fn __repr__(&self) -> String {
        format!("<Notice {}>", self.json)
    }
}
