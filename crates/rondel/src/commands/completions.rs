//! `rondel completions` and `rondel man`: completions for shells, and the manual.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::{complain, exit};

/// Print completions for a shell
#[derive(Debug, Args)]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    /// Prints the completions, and returns the exit status.
    pub fn run(self) -> u8 {
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut super::Arguments::command(), "rondel", &mut text);
        print(&text)
    }
}

/// Print the manual page, or write a page for every subcommand
#[derive(Debug, Args)]
pub struct Man {
    /// Write the pages into this folder instead of printing the first
    #[arg(long, value_name = "FOLDER")]
    to: Option<PathBuf>,
}

impl Man {
    /// Prints or writes the pages, and returns the exit status.
    pub fn run(self) -> u8 {
        let command = super::Arguments::command();
        let written = match &self.to {
            Some(folder) => {
                std::fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(command, folder))
            }
            None => {
                let mut text = Vec::new();
                let rendered = clap_mangen::Man::new(command).render(&mut text);
                return match rendered {
                    Ok(()) => print(&text),
                    Err(_) => exit::TRACE,
                };
            }
        };
        match written {
            Ok(()) => exit::SATISFIED,
            Err(error) => {
                complain(&format!("cannot write the manual pages: {error}"));
                exit::TRACE
            }
        }
    }
}

fn print(text: &[u8]) -> u8 {
    match io::stdout().write_all(text) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            complain(&format!("cannot write the output: {error}"));
            exit::TRACE
        }
        _ => exit::SATISFIED,
    }
}
