//! Results of a session: reports, notices, omissions and summaries.

pub(super) mod emitter;
pub(super) mod notices;
pub(super) mod omitted;
pub(super) mod reached;
pub(super) mod remarks;
pub(super) mod standing;
pub(super) mod summary;
