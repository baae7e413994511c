//! Options that say how tables are read.

use clap::Args;
use rondel_recording::{TableOptions, check_time_format};

/// How the rows of tables are read.
#[derive(Args, Clone, Debug, Default)]
pub struct TableArguments {
    /// The names of the columns of a table (.csv) that has no line with them, with commas between them
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub columns: Vec<String>,
    /// How the times of a table (.csv) are written, such as "%d.%m.%Y %H:%M:%S%.f"
    #[arg(long, value_name = "FORMAT", value_parser = time_format)]
    pub time_format: Option<String>,
}

fn time_format(text: &str) -> Result<String, String> {
    check_time_format(text).map(|()| text.to_owned())
}

/// How the rows of tables are read, and their times.
#[derive(Args, Clone, Debug, Default)]
pub struct TableReading {
    /// The column of a table (.csv) that has the times, or two such as Date,Time
    #[arg(long, value_name = "COLUMN")]
    pub time_field: Option<String>,
    #[command(flatten)]
    pub table: TableArguments,
}

impl TableReading {
    /// The options for a table.
    pub fn options(&self) -> TableOptions<'_> {
        TableOptions {
            time: self.time_field.as_deref(),
            columns: &self.table.columns,
            time_format: self.table.time_format.as_deref(),
            ..TableOptions::default()
        }
    }
}
