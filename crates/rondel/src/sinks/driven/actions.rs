//! Actions of operators in a store, for the audit of the run that writes it.

use std::sync::Arc;

use rondel_event::Timestamp;
use rondel_sinks::sqlite::Action;
use serde_json::{Value, json};

use super::Destinations;
use crate::sinks::audit::Audit;
use crate::sinks::audit::line::time_text;

impl Destinations {
    /// Records actions of operators in the audit of the run, once the thread of a store sees them: each at least once.
    pub fn record_actions(&self, audit: &Arc<Audit>) {
        for place in self.0.iter().filter_map(|destination| destination.operators.actions.as_ref()) {
            let audit = Arc::clone(audit);
            let record = move |action: &Action| audit.try_record("operator", &action_members(action));
            place.record_by(Box::new(record));
        }
    }
}

/// Returns the members of the record of an action in an audit file.
pub fn action_members(action: &Action) -> Value {
    let mut members = json!({
        "action": action.kind,
        "number": action.id,
        "operator": action.operator,
        "at": time_text(Timestamp::from_nanos(action.at)),
    });
    if let (Value::Object(members), Value::Object(own)) = (&mut members, &action.members) {
        members.extend(own.iter().map(|(name, value)| (name.clone(), value.clone())));
    }
    members
}
