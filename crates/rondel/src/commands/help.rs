//! `rondel help`: help of the command and its subcommands, and the language reference.

use std::io::{self, IsTerminal};

use clap::{Args, CommandFactory};

use super::Arguments;
use crate::output::Output;
use crate::{complain, exit};

/// The pages of the language reference, in reading order.
const LANGUAGE: [&str; 22] = [
    include_str!("../../language/README.md"),
    include_str!("../../language/operators.md"),
    include_str!("../../language/files.md"),
    include_str!("../../language/time.md"),
    include_str!("../../language/verdicts.md"),
    include_str!("../../language/declarations.md"),
    include_str!("../../language/attributes.md"),
    include_str!("../../language/instances.md"),
    include_str!("../../language/machines.md"),
    include_str!("../../language/chains.md"),
    include_str!("../../language/tests.md"),
    include_str!("../../language/values.md"),
    include_str!("../../language/logic.md"),
    include_str!("../../language/past.md"),
    include_str!("../../language/future.md"),
    include_str!("../../language/windows.md"),
    include_str!("../../language/timing.md"),
    include_str!("../../language/robustness.md"),
    include_str!("../../language/quantifiers.md"),
    include_str!("../../language/formulas.md"),
    include_str!("../../language/evaluation.md"),
    include_str!("../../language/grammar.md"),
];

/// Print the help of a subcommand, or the language reference
#[derive(Debug, Args)]
pub struct Help {
    /// The name of a subcommand, or `language`
    #[arg(value_name = "WHAT")]
    what: Option<String>,
}

impl Help {
    /// Prints the help and returns the exit status.
    pub fn run(self) -> u8 {
        let mut command = Arguments::command();
        command.build();
        let help = match self.what.as_deref() {
            Some("language") => LANGUAGE.join("\n"),
            None => styled(command.render_long_help()),
            Some(name) => match command.find_subcommand_mut(name) {
                Some(subcommand) => styled(subcommand.render_long_help()),
                None => {
                    complain(&format!("unknown subcommand '{name}'; see `rondel help`"));
                    return exit::USAGE;
                }
            },
        };
        let mut out = Output::new(io::stdout());
        out.write(help.as_bytes());
        let closed = out.is_closed();
        match out.finish() {
            Err(error) if !closed => {
                complain(&format!("cannot write the help: {error}"));
                exit::TRACE
            }
            _ => exit::SATISFIED,
        }
    }
}

fn styled(help: clap::builder::StyledStr) -> String {
    if io::stdout().is_terminal() { help.ansi().to_string() } else { help.to_string() }
}
