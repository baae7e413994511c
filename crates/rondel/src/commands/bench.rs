//! `rondel bench`: measurements.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::bench::timescales;
use crate::{complain, exit};

/// Measure Rondel on this machine
#[derive(Debug, Args)]
pub struct Bench {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Write the traces of the Timescales benchmark, and their formulas
    Traces(Traces),
}

#[derive(Debug, Args)]
struct Traces {
    /// Where to write NAME.jsonl and NAME.rye
    folder: PathBuf,
    /// Lines in a trace
    #[arg(long, default_value_t = 1_000_000)]
    length: u64,
    /// The seed of the generator
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only this property, such as RespondBQR10
    #[arg(long)]
    only: Option<String>,
}

impl Bench {
    /// Measures, and returns the exit status.
    pub fn run(self) -> u8 {
        let result = match self.what {
            What::Traces(traces) => traces.run(),
        };
        match result {
            Ok(status) => status,
            Err(error) => {
                complain(&error.to_string());
                exit::TRACE
            }
        }
    }
}

impl Traces {
    fn run(&self) -> io::Result<u8> {
        fs::create_dir_all(&self.folder)?;
        for property in timescales::all() {
            let name = property.name();
            if self.only.as_ref().is_some_and(|only| !only.eq_ignore_ascii_case(&name)) {
                continue;
            }
            fs::write(self.folder.join(format!("{name}.rye")), property.formula() + "\n")?;
            let mut out = BufWriter::new(File::create(self.folder.join(format!("{name}.jsonl")))?);
            property.write_trace(self.length, self.seed, &mut out)?;
            out.flush()?;
        }
        Ok(exit::SATISFIED)
    }
}
