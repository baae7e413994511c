//! Actions of operators in an audit file: by their own process, or by the run that holds the file.

use serde_json::Value;

use super::file::AuditFile;
use super::{Audit, AuditSettings, Opened};

impl Opened {
    /// Opens and locks a file, and checks its last lines; `None` if another process writes it.
    ///
    /// # Errors
    /// The reason why the file cannot be used.
    pub fn open_unless_locked(settings: AuditSettings) -> Result<Option<Opened>, String> {
        let opened = AuditFile::open_unless_locked(&settings.file)?;
        Ok(opened.map(|(file, end)| Opened::of(settings, file, end)))
    }

    /// Appends one record, of a process that writes no others, and makes it durable.
    ///
    /// # Errors
    /// The line cannot be written.
    pub fn append(mut self, kind: &str, members: &Value) -> Result<(), String> {
        self.write_first(kind, members).map(|_| ())
    }
}

impl Audit {
    /// Records an action if there is room, and returns whether there was: otherwise the caller keeps it.
    pub fn try_record(&self, kind: &str, members: &Value) -> bool {
        let has_room = self.shared.queue().has_room();
        if has_room {
            self.record(kind, members);
        }
        has_room
    }
}
