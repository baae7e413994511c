//! The specification language: from text to a checked [`Spec`], with diagnostics.

pub mod spec;

pub use spec::{BinaryOp, Bounds, Expr, ExprId, Property, Schema, SchemaType, Spec, Topic, UnaryOp};
