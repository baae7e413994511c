//! Bags of ROS 1, format 2.0: chunks with messages as in MCAP files, with other records and another index.

mod list;
mod reading;
mod records;

use std::collections::HashMap;
use std::io::Read as _;

use super::chunk::{LARGEST, TRUSTED};
pub(super) use reading::index;
use records::{field, u32_at};

/// The first bytes of a bag of any version; [`VERSION`] those of the supported one.
pub(crate) const ROS1_MAGIC: &[u8] = b"#ROSBAG V";
const VERSION: &[u8] = b"#ROSBAG V2.0\n";

/// Number of each connection, from 0, by its id.
#[derive(Default)]
pub(super) struct Connections {
    of_id: HashMap<u32, u16>,
    /// Numbers of small ids, which recorders choose; [`NONE`] if unused.
    small: Vec<u16>,
}

/// Marks an unused id.
const NONE: u16 = u16::MAX;

impl Connections {
    #[inline]
    fn get(&self, id: u32) -> Option<u16> {
        match self.small.get(id as usize) {
            Some(number) => Some(*number).filter(|number| *number != NONE),
            None => self.of_id.get(&id).copied(),
        }
    }

    fn insert(&mut self, id: u32, number: u16) {
        self.of_id.insert(id, number);
        if let Some(id) = usize::try_from(id).ok().filter(|id| *id < usize::from(NONE)) {
            if self.small.len() <= id {
                let of_id = &self.of_id;
                let begin = self.small.len();
                let number = |id: usize| of_id.get(&(id as u32)).copied().unwrap_or(NONE);
                self.small.extend((begin..=id).map(number));
            }
            self.small[id] = number;
        }
    }

    fn len(&self) -> usize {
        self.of_id.len()
    }
}

/// Writes the records of a chunk to `out`, which is cleared first. `raw` is the whole record of the chunk, which may be
/// cut off.
///
/// # Errors
/// The reason why records are missing; `out` has the others.
pub(super) fn decompress(raw: &[u8], is_cut: bool, out: &mut Vec<u8>) -> Result<(), String> {
    out.clear();
    let cut = || "the header of a chunk is cut off".to_owned();
    let length = u32_at(raw, 0).ok_or_else(cut)? as usize;
    let header = raw.get(4..length.saturating_add(4)).ok_or_else(cut)?;
    let claimed = u32_at(raw, length + 4).ok_or_else(cut)? as usize;
    let data = &raw[length + 8..];
    if claimed > data.len() && !is_cut {
        return Err(format!("a chunk claims {claimed} compressed bytes, and has {}", data.len()));
    }
    let data = &data[..claimed.min(data.len())];
    let size = field(header, "size").and_then(|size| u32_at(size, 0));
    let size = size.ok_or("the header of a chunk does not say its size")? as usize;
    if size as u64 > LARGEST {
        return Err(format!("a chunk claims {size} bytes, and the limit is 1 GiB"));
    }
    let compression = field(header, "compression").unwrap_or_default();
    // The buffer grows beyond this only with the decompressed bytes.
    out.reserve(size.min(TRUSTED.max(data.len().saturating_mul(8))));
    let limit = size as u64 + 1;
    let read = match compression {
        b"none" => {
            out.extend_from_slice(data);
            Ok(0)
        }
        b"bz2" => bzip2::read::BzDecoder::new(data).take(limit).read_to_end(out),
        b"lz4" => lz4::Decoder::new(data).and_then(|decoder| decoder.take(limit).read_to_end(out)),
        other => {
            let name = String::from_utf8_lossy(other);
            return Err(format!("the compression '{name}' of a chunk is not known"));
        }
    };
    read.map_err(|error| format!("a chunk cannot be decompressed: {error}"))?;
    match out.len() {
        length if length < size => Err(format!("a chunk of {size} bytes ends after {length}")),
        length if length > size => Err(format!("a chunk of {size} bytes has more")),
        _ => Ok(()),
    }
}
