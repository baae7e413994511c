//! Sessions: decode, align, evaluate, report.

pub mod align;
