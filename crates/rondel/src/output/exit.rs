//! The exit statuses of the command, as users may rely on them in scripts.

/// Everything was decided and nothing violated; every test came as expected.
pub const SATISFIED: u8 = 0;
/// At least one property was violated, or a test did not come as expected.
pub const VIOLATED: u8 = 1;
/// Wrong usage: arguments, specification or deployment; no test where tests are to be run.
pub const USAGE: u8 = 2;
/// A trace could not be read, or the output not be written.
pub const TRACE: u8 = 3;
/// Nothing was violated, but at least one property was never decided, was inconclusive at the end, or needs
/// a topic or a field that never came: then a name may be misspelt. With `--strict`, also if a premise was
/// never true, or if the time of a simulation stood at the end.
pub const INCONCLUSIVE: u8 = 4;
/// A network could not be joined, or was left with something undelivered.
pub const NETWORK: u8 = 5;
