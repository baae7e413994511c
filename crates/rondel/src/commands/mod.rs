//! The subcommands, one file each.

mod ack;
mod audit;
mod check;
#[cfg(any(feature = "lsp", feature = "repl"))]
mod completing;
mod completions;
mod demo;
mod explain;
mod fmt;
mod gate_guard;
mod help;
mod init;
mod listen;
#[cfg(feature = "lsp")]
mod lsp;
mod operate;
mod page;
mod plot;
mod publish;
mod query;
mod record;
mod reload;
#[cfg(feature = "repl")]
mod repl;
mod replay;
mod reports;
mod run;
mod selecting;
mod silence;
mod size;
mod standby;
mod table_arguments;
mod tap;
mod test;
#[cfg(feature = "sqlite")]
mod times;
#[cfg(feature = "top")]
mod top;
mod topics;
mod trace;
mod validate;

use clap::{Parser, Subcommand};

use crate::output::terminal::{self, Color, LogLevel};

/// The version with its commit and its features.
#[cfg(not(feature = "dds-security"))]
const VERSION: &str =
    concat!(env!("CARGO_PKG_VERSION"), " (commit ", env!("RONDEL_COMMIT"), "; zenoh, dds, mqtt)");
#[cfg(feature = "dds-security")]
const VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (commit ",
    env!("RONDEL_COMMIT"),
    "; zenoh, dds, mqtt, dds-security)"
);

/// Check live messages and recordings against a written specification
#[derive(Debug, Parser)]
#[command(name = "rondel", version = VERSION, about, arg_required_else_help = true,
    disable_help_subcommand = true, after_help = EXIT_STATUS)]
pub struct Arguments {
    /// Colour the output
    #[arg(long, value_enum, value_name = "WHEN", default_value = "auto", global = true)]
    color: Color,
    /// Log events of the networks from this level on (default: RUST_LOG, or Rondel's own warnings
    /// and all errors)
    #[arg(long, value_enum, value_name = "LEVEL", global = true)]
    log: Option<LogLevel>,
    #[command(subcommand)]
    command: Command,
}

const EXIT_STATUS: &str = "\
Exit status:
  0  every property was decided and none violated
  1  a property was violated, or a test failed
  2  wrong usage, specification or deployment
  3  a recording could not be read, or the output not be written
  4  no property was violated, but one was never decided, was inconclusive at the end, or needs a topic
     or a field that never came (with --strict: or has a premise that was never true); or no message of
     a topic carried its time, or messages are missing in a recording by their numbers
  5  a network could not be joined (with --exit-on-unreachable), or not everything was delivered";

#[derive(Debug, Subcommand)]
enum Command {
    Check(check::Check),
    // Boxed, as it has the most options.
    Run(Box<run::Run>),
    Reload(reload::Reload),
    Test(test::Test),
    Explain(explain::Explain),
    Plot(plot::Plot),
    #[cfg(feature = "repl")]
    Repl(repl::Repl),
    Fmt(fmt::Fmt),
    #[cfg(feature = "lsp")]
    Lsp(lsp::Lsp),
    Validate(validate::Validate),
    Demo(demo::Demo),
    Publish(publish::Publish),
    Tap(tap::Tap),
    Record(record::Record),
    Replay(replay::Replay),
    Audit(audit::AuditCommand),
    GateGuard(gate_guard::GateGuard),
    Standby(standby::Standby),
    Topics(topics::Topics),
    Init(init::Init),
    Trace(trace::Trace),
    Size(size::Size),
    Query(query::Query),
    Page(page::Page),
    #[cfg(feature = "top")]
    Top(top::Top),
    Ack(ack::Ack),
    Silence(silence::Silence),
    Completions(completions::Completions),
    Man(completions::Man),
    Help(help::Help),
}

impl Arguments {
    /// Carries out the command and returns the exit status.
    pub fn run(self) -> u8 {
        terminal::set_color(self.color);
        terminal::log(self.log);
        if matches!(
            self.command,
            Command::Run(_)
                | Command::Tap(_)
                | Command::Record(_)
                | Command::Replay(_)
                | Command::Publish(_)
                | Command::GateGuard(_)
        ) {
            terminal::show_times();
        }
        match self.command {
            Command::Check(check) => check.run(),
            Command::Run(run) => run.run(),
            Command::Reload(reload) => reload.run(),
            Command::Test(test) => test.run(),
            Command::Explain(explain) => explain.run(),
            Command::Plot(plot) => plot.run(),
            #[cfg(feature = "repl")]
            Command::Repl(repl) => repl.run(),
            Command::Fmt(fmt) => fmt.run(),
            #[cfg(feature = "lsp")]
            Command::Lsp(lsp) => lsp.run(),
            Command::Validate(validate) => validate.run(),
            Command::Demo(demo) => demo.run(),
            Command::Publish(publish) => publish.run(),
            Command::Tap(tap) => tap.run(),
            Command::Record(record) => record.run(),
            Command::Replay(replay) => replay.run(),
            Command::Audit(audit) => audit.run(),
            Command::GateGuard(guard) => guard.run(),
            Command::Standby(standby) => standby.run(),
            Command::Topics(topics) => topics.run(),
            Command::Init(init) => init.run(),
            Command::Trace(trace) => trace.run(),
            Command::Size(size) => size.run(),
            Command::Query(query) => query.run(),
            Command::Page(page) => page.run(),
            #[cfg(feature = "top")]
            Command::Top(top) => top.run(),
            Command::Ack(ack) => ack.run(),
            Command::Silence(silence) => silence.run(),
            Command::Completions(completions) => completions.run(),
            Command::Man(man) => man.run(),
            Command::Help(help) => help.run(),
        }
    }
}

/// Refuses options that a deployment file replaces: `given` has the name of each, and whether it was given.
///
/// # Errors
/// Names the options given, and the way out.
fn from_deployment(
    command: &str,
    given: impl IntoIterator<Item = (bool, &'static str)>,
) -> Result<(), String> {
    let names: Vec<&str> = given.into_iter().filter_map(|(given, name)| given.then_some(name)).collect();
    if names.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{} cannot be used with a deployment file: `rondel {command}` takes these settings from the file",
        names.join(", ")
    ))
}
