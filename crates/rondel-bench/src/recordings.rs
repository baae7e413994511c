//! Recordings in MCAP: `rondel check`, which reads a field of three topics out of ten, beside rosbags, which reads the
//! same, and the `mcap` crate, which only decompresses and iterates.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use crate::child::{Child, Stdout};
use crate::failure::{Result, same};
use crate::file;
use crate::report::Mark;
use crate::say;
use crate::table::{Table, median};
use crate::traces::Folder;

const WRITE: &str = include_str!("recordings/write.py");
const READ: &str = include_str!("recordings/read.py");
const SPECIFICATION: &str = "topic a \"/t0\" : geometry_msgs/msg/TwistStamped\n\
     topic b \"/t1\" : geometry_msgs/msg/TwistStamped\n\
     topic c \"/t2\" : geometry_msgs/msg/TwistStamped\n\
     property slow_a = a.twist.linear.x < 1000\n\
     property slow_b = b.twist.linear.x < 1000\n\
     property slow_c = c.twist.linear.x < 1000\n";
/// The compressions of the recordings, as their folders are named.
const COMPRESSIONS: [&str; 3] = ["none", "lz4", "zstd"];
/// The topics that are written, and those of them that are read.
const TOPICS: (u64, u64) = (10, 3);
/// The time limit for writing the recordings, and for reading one.
const LIMIT: Duration = Duration::from_secs(600);

/// The programs that read.
#[derive(Clone, Debug)]
pub struct Readers {
    /// The measured program.
    pub rondel: PathBuf,
    /// Python with rosbags and mcap.
    pub python: PathBuf,
    /// The program that iterates with the `mcap` crate.
    pub iterate: Option<PathBuf>,
}

/// Times of whole processes in seconds, turn by turn.
#[derive(Clone, Debug, Serialize)]
pub struct Times {
    compression: &'static str,
    bytes: u64,
    rondel: Vec<f64>,
    rosbags: Vec<f64>,
    iterate: Vec<f64>,
}

impl Times {
    /// Returns how many times as fast as this other program Rondel is: the median over the turns.
    fn speed(&self, other: &[f64]) -> f64 {
        median(&other.iter().zip(&self.rondel).map(|(other, own)| other / own).collect::<Vec<_>>())
    }
}

/// Writes recordings of `length` messages, and reads each `repeat` times with every program, by turns.
///
/// # Errors
/// When a program fails, or has read more or fewer messages.
pub fn measure(readers: &Readers, length: u64, repeat: usize) -> Result<Vec<Times>> {
    let folder = Folder::new("recordings")?;
    let specification = folder.write("speeds.rondel", SPECIFICATION.as_bytes())?;
    let (write, read) =
        (folder.write("write.py", WRITE.as_bytes())?, folder.write("read.py", READ.as_bytes())?);
    let root = specification.parent().unwrap_or(Path::new(".")).to_owned();
    run(&readers.python, &[&write, &root, Path::new(&length.to_string())])?;
    let count = length / TOPICS.0 * TOPICS.1;
    let mut rows = Vec::new();
    for compression in COMPRESSIONS {
        let bag = root.join(compression);
        let recording = bag.join(compression).with_extension("mcap");
        let bytes = recording.metadata().map_or(0, |metadata| metadata.len());
        let mut times =
            Times { compression, bytes, rondel: Vec::new(), rosbags: Vec::new(), iterate: Vec::new() };
        for _ in 0..repeat {
            let arguments = [specification.display().to_string()];
            times.rondel.push(file::check(&readers.rondel, &arguments, &recording, count)?.seconds);
            let (seconds, messages) = run(&readers.python, &[&read, &bag])?;
            same(|| "messages read with rosbags".to_owned(), count, messages)?;
            times.rosbags.push(seconds);
            if let Some(iterate) = &readers.iterate {
                let (seconds, messages) = run(iterate, &[&recording])?;
                same(|| "messages iterated".to_owned(), length, messages)?;
                times.iterate.push(seconds);
            }
        }
        say(&format!("{compression}: {:.0} times rosbags", times.speed(&times.rosbags)));
        rows.push(times);
    }
    Ok(rows)
}

/// Runs a program to its end, and returns its seconds and the number before "messages" on its standard error.
fn run(program: &Path, arguments: &[&Path]) -> Result<(f64, u64)> {
    let arguments: Vec<String> = arguments.iter().map(|argument| argument.display().to_string()).collect();
    let child = Child::start("the reader", program, &arguments, Stdout::Nothing)?;
    let ended = child.wait(LIMIT)?.succeeded("the reader")?;
    let number = |line: &String| line.split_once(" messages")?.0.parse().ok();
    Ok((ended.seconds, ended.log.iter().find_map(number).unwrap_or(0)))
}

/// Returns the marks.
pub fn marks(rows: &[Times]) -> Vec<Mark> {
    let mut marks = Vec::new();
    for times in rows {
        let what = |than: &str| format!("{}: speed over that of {than}", times.compression);
        marks.push(Mark::at_least(what("rosbags"), times.speed(&times.rosbags), 20.0, ""));
        if !times.iterate.is_empty() {
            marks.push(Mark::at_least(what("the mcap crate"), times.speed(&times.iterate), 0.8, ""));
        }
    }
    marks
}

/// Returns the table.
pub fn table(rows: &[Times]) -> Table {
    let heads = ["compression", "MB", "rondel check, ms", "mcap crate, ms", "speed", "rosbags, ms", "speed"];
    let mut table = Table::new("Recordings in MCAP", &heads);
    for times in rows {
        let ms = |seconds: &[f64]| format!("{:.1}", median(seconds) * 1e3);
        let iterate = |text: String| if times.iterate.is_empty() { String::new() } else { text };
        table.row(vec![
            times.compression.to_owned(),
            format!("{:.1}", times.bytes as f64 / 1e6),
            ms(&times.rondel),
            iterate(ms(&times.iterate)),
            iterate(format!("{:.1}", times.speed(&times.iterate))),
            ms(&times.rosbags),
            format!("{:.1}", times.speed(&times.rosbags)),
        ]);
    }
    table.note(
        "TwistStamped in CDR on ten topics; rondel and rosbags read a field of three of them, the mcap crate \
         decompresses and iterates all messages. Whole processes, from start to end; medians of the turns.",
    );
    table
}
