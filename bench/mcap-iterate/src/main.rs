//! Decompresses and iterates an MCAP file with the `mcap` crate, and does nothing else.

use std::{env, error::Error, fs::File};

use mcap::read::RawMessageStream;

fn main() -> Result<(), Box<dyn Error>> {
    let path = env::args().nth(1).ok_or("usage: mcap-iterate FILE")?;
    // Nobody else writes to the file.
    let file = unsafe { memmap2::Mmap::map(&File::open(path)?)? };
    let (mut messages, mut bytes) = (0_u64, 0);
    for message in RawMessageStream::new(&file)? {
        messages += 1;
        bytes += message?.data.len();
    }
    eprintln!("{messages} messages, {bytes} bytes");
    Ok(())
}
