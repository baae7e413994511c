//! The server for Foxglove: the verdicts, states and signals of a run for the Foxglove application.
//!
//! | module | contents |
//! |---|---|
//! | [`copies`] | verdicts and messages, copied by the evaluating thread while a client has subscribed |
//! | `channels` | the channels of a specification, with their schemas |
//! | `signals` | the fields that properties read, decoded from copied messages |
//! | `feed` | from copies to messages of channels, on a thread of its own |
//! | `served` | the server on its port |

#[cfg(feature = "foxglove")]
mod channels;
pub mod copies;
#[cfg(feature = "foxglove")]
mod feed;
#[cfg(feature = "foxglove")]
mod served;
#[cfg(feature = "foxglove")]
mod signals;

#[cfg(feature = "foxglove")]
pub use served::FoxgloveServer;

/// Whether this program can serve Foxglove.
pub const IS_AVAILABLE: bool = cfg!(feature = "foxglove");
/// Why it cannot.
pub const UNAVAILABLE: &str = "this Rondel is built without the server for Foxglove: build it with the feature `foxglove`, or leave `foxglove` out";

/// The server of a build without it: it cannot be served.
#[cfg(not(feature = "foxglove"))]
pub struct FoxgloveServer(std::convert::Infallible);

#[cfg(not(feature = "foxglove"))]
impl FoxgloveServer {
    /// Returns the copies for clients.
    pub fn copies(&self) -> std::sync::Arc<copies::Copies> {
        match self.0 {}
    }

    /// Shows a run.
    pub fn watch(&self, _: &super::running::Running, _: &crate::deployment::Deployment) {
        match self.0 {}
    }
}
