//! Traces: in memory to be published, in files to be checked.

use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::{Result, io_error};
use crate::timescales::Property;

/// A trace in memory, split into lines.
#[derive(Debug)]
pub struct Trace {
    text: Vec<u8>,
    ends: Vec<u32>,
}

impl Trace {
    /// Splits a text into its lines.
    pub fn new(text: Vec<u8>) -> Trace {
        let ends = memchr::memchr_iter(b'\n', &text).map(|end| end as u32).collect();
        Trace { text, ends }
    }

    /// Returns the trace of a property.
    ///
    /// # Errors
    /// None: memory takes everything.
    pub fn of(property: Property, length: u64, seed: u64) -> Result<Trace> {
        let mut text = Vec::new();
        property.write_trace(length, seed, &mut text).map_err(io_error("trace"))?;
        Ok(Trace::new(text))
    }

    /// Returns the lines, without line breaks.
    pub fn lines(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let line = &self.text[start..end as usize];
            start = end as usize + 1;
            line
        })
    }

    /// Returns the number of lines.
    pub fn len(&self) -> u64 {
        self.ends.len() as u64
    }

    /// Returns the mean length of a line, in bytes.
    pub fn mean_bytes(&self) -> f64 {
        (self.text.len() - self.ends.len()) as f64 / self.ends.len() as f64
    }

    /// Returns the whole text.
    pub fn text(&self) -> &[u8] {
        &self.text
    }
}

/// The folder of a measurement. Dropping it removes it.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// Makes a temporary folder.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn new(name: &str) -> Result<Folder> {
        let path = std::env::temp_dir().join(format!("rondel-bench-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).map_err(io_error(path.display().to_string()))?;
        Ok(Folder(path))
    }

    /// Writes a file into it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, name: &str, text: &[u8]) -> Result<PathBuf> {
        let path = self.0.join(name);
        fs::write(&path, text).map_err(io_error(path.display().to_string()))?;
        Ok(path)
    }

    /// Removes a file from it.
    pub fn remove(&self, path: &Path) {
        // A file that is left goes with the folder.
        let _ = fs::remove_file(path);
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_has_lines() {
        let trace = Trace::new(b"ab\ncdef\n".to_vec());
        assert_eq!(trace.lines().collect::<Vec<_>>(), [b"ab".as_slice(), b"cdef"]);
        assert_eq!((trace.len(), trace.mean_bytes()), (2, 3.0));
    }
}
