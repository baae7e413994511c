//! Results of checks as files: for CI systems, for programs, and for people.
//!
//! A [`Collector`] gathers the verdicts of one recording while it is checked. [`Results`] holds those of all
//! recordings; each module writes it in one form. A verdict that is not certain never looks like success: in every
//! form that knows only success and failure, inconclusive and vacuous properties are failures of their own kind.

mod collect;
pub mod github;
pub mod html;
pub mod junit;
mod matrix;
mod plot;
mod results;
pub mod sarif;
pub mod svg;
pub mod tap;
pub mod time_text;

pub use collect::Collector;
pub use matrix::{Cell, Check, Matrix, Row};
pub use results::{
    Change, Claim, EvidencePoint, Judged, Loss, Outcome, Place, Recording, Results, Signal, SignalKind,
    UnknownFormat, Violation,
};
