//! The setting `workers:` of a deployment, and the division of the evaluation among threads.

use rondel_engine::CompileError;
use rondel_runtime::SessionPlan;

use super::yaml::{Item, Mistakes};
use crate::warn;

/// Maximum number of workers.
const MOST: usize = 64;

/// Reads a number of workers; `auto` is the number of cores.
///
/// # Errors
/// The requirement on the value.
pub fn workers(text: &str) -> Result<usize, &'static str> {
    if text == "auto" {
        return Ok(std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(MOST));
    }
    let number = text.parse().ok().filter(|number| (1..=MOST).contains(number));
    number.ok_or("must be a number from 1 to 64, or auto")
}

/// Reads the setting.
pub(super) fn setting(item: Item<'_>, mistakes: &mut Mistakes) -> Option<usize> {
    let text = item.text("workers", mistakes)?;
    workers(&text).map_err(|error| mistakes.at(item, format!("`workers` {error}"))).ok()
}

/// Divides the evaluation of a plan among workers, or warns of the reason why one thread does it. `set` is the setting or
/// the option.
///
/// # Errors
/// [`CompileError`] when a property cannot be monitored.
pub fn divide(plan: &mut SessionPlan, workers: usize, set: &str) -> Result<(), CompileError> {
    if let Some(reason) = plan.set_workers(workers)? {
        warn(&format!("{set}: one thread evaluates all messages, as {reason}"));
    }
    Ok(())
}
