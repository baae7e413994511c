//! `rondel validate`: reports every mistake of a deployment, without connecting.

use std::path::PathBuf;

use clap::Args;

use rondel_runtime::text::counted;

use crate::deployment::{self, Deployment};
use crate::{exit, say};

/// Find every mistake in a deployment file and its specification, without connecting
#[derive(Debug, Args)]
pub struct Validate {
    /// The deployment
    #[arg(value_name = "FILE", default_value_os_t = deployment::default_file())]
    file: PathBuf,
}

impl Validate {
    /// Checks, and returns the exit status.
    pub fn run(self) -> u8 {
        match Deployment::from_file(&self.file) {
            Ok(deployment) => {
                let program = &deployment.specification.program;
                say(&format!(
                    "{} is valid: {} over {}",
                    self.file.display(),
                    counted(program.properties().len() as u64, "property", "properties"),
                    counted(deployment.sources.len() as u64, "topic", "topics"),
                ));
                exit::SATISFIED
            }
            Err(_) => exit::USAGE,
        }
    }
}
