//! The page of a run, a store or a checked recording.
//!
//! | module | contents |
//! |---|---|
//! | `playground` | checks of specifications that viewers edit, in processes of their own |
//! | `served` | the page on its HTTP server |
//! | `source` | figures and messages of a run, copied for the page |
//! | [`temporary`] | the store of a run or a check that keeps none |

#[cfg(feature = "page")]
mod playground;
#[cfg(feature = "page")]
mod served;
#[cfg(feature = "page")]
mod source;
pub mod temporary;

#[cfg(feature = "page")]
pub use playground::Playground;
#[cfg(feature = "page")]
pub use served::{PageServer, Subject};

/// Whether this program can serve pages.
pub const IS_AVAILABLE: bool = cfg!(feature = "page");
/// Why it cannot.
pub const UNAVAILABLE: &str =
    "this Rondel is built without the page: build it with the feature `page`, or leave `page` out";

/// The page of a build without it: it cannot be served.
#[cfg(not(feature = "page"))]
pub struct PageServer(std::convert::Infallible);

#[cfg(not(feature = "page"))]
impl PageServer {
    /// Returns the copies of messages for viewers.
    pub fn tap(&self) -> std::sync::Arc<super::tap::Tap> {
        match self.0 {}
    }

    /// Shows a run.
    pub fn watch(&self, _: &super::running::Running, _: &crate::deployment::Deployment) {
        match self.0 {}
    }
}
