//! The operators against their definitions, for `make mutants`.

mod agreement;
mod definition;
mod dense;
mod points;
mod robustness;
mod windows;
