//! The subcommands, one file each.

mod check;
mod demo;
mod explain;
mod fmt;
mod help;
mod publish;
mod run;
mod tap;
mod test;
mod validate;

use clap::{Parser, Subcommand};

/// Checks, while a system runs, that what its parts say to each other keeps to what its engineers
/// wrote down.
#[derive(Debug, Parser)]
#[command(name = "rondel", version, about, arg_required_else_help = true,
    disable_help_subcommand = true, after_help = EXIT_STATUS)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const EXIT_STATUS: &str = "\
Exit status:
  0  every property was decided and none violated
  1  a property was violated, or a test did not come as expected
  2  wrong usage, specification or deployment
  3  a trace could not be read, or the output not be written
  4  none was violated, but a property was never decided, or was inconclusive at the end,
     or at some step where a field that is read never came
  5  a network could not be joined (with --exit-on-unreachable), or was left with something undelivered";

#[derive(Debug, Subcommand)]
enum Command {
    Check(check::Check),
    Run(run::Run),
    Test(test::Test),
    Explain(explain::Explain),
    Fmt(fmt::Fmt),
    Validate(validate::Validate),
    Demo(demo::Demo),
    Publish(publish::Publish),
    Tap(tap::Tap),
    Help(help::Help),
}

impl Arguments {
    /// Carries out the command and returns the exit status.
    pub fn run(self) -> u8 {
        match self.command {
            Command::Check(check) => check.run(),
            Command::Run(run) => run.run(),
            Command::Test(test) => test.run(),
            Command::Explain(explain) => explain.run(),
            Command::Fmt(fmt) => fmt.run(),
            Command::Validate(validate) => validate.run(),
            Command::Demo(demo) => demo.run(),
            Command::Publish(publish) => publish.run(),
            Command::Tap(tap) => tap.run(),
            Command::Help(help) => help.run(),
        }
    }
}
