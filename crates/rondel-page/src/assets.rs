//! The files of the page, as bytes. A request finds them by its whole path in a table: no path is opened.

use std::borrow::Cow;
use std::io::Write as _;
use std::sync::OnceLock;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::answer::Reply;
use crate::request::Request;

/// A file of the page.
struct Asset {
    path: &'static str,
    content_type: &'static str,
    bytes: &'static [u8],
}

/// All files of the page, which `build.rs` lists.
const ASSETS: &[Asset] = include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// Content that was compressed once.
struct Compressed {
    bytes: Vec<u8>,
    tag: String,
}

/// The compressed files, in the order of the table.
static COMPRESSED: [OnceLock<Compressed>; ASSETS.len()] = [const { OnceLock::new() }; ASSETS.len()];

/// The answer to a request for a file; `None` if there is none of its path.
pub(crate) fn answer(request: &Request) -> Option<Reply> {
    let at = ASSETS.iter().position(|asset| asset.path == request.path)?;
    let (asset, compressed) = (ASSETS.get(at)?, COMPRESSED.get(at)?.get_or_init(|| compress(ASSETS.get(at))));
    let mut reply = Reply::of(200, asset.content_type, asset.bytes);
    if request.known_tag.as_deref() == Some(&compressed.tag) {
        (reply.status, reply.body) = (304, Cow::Borrowed(&[]));
    } else if request.accepts_gzip && !compressed.bytes.is_empty() {
        (reply.body, reply.is_gzip) = (Cow::Borrowed(&compressed.bytes), true);
    }
    reply.tag = Some(compressed.tag.clone());
    Some(reply)
}

fn compress(asset: Option<&Asset>) -> Compressed {
    let bytes = asset.map_or(&[][..], |asset| asset.bytes);
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    // Writing to memory does not fail; a file that was not compressed is sent as it is.
    let compressed = encoder.write_all(bytes).and_then(|()| encoder.finish()).unwrap_or_default();
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    Compressed { bytes: compressed, tag: format!("\"{hash:016x}\"") }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn files_are_sent_as_they_are_or_compressed() {
        for asset in ASSETS {
            let request = Request::get(asset.path);
            let plain = answer(&request).unwrap();
            assert_eq!((plain.status, &*plain.body), (200, asset.bytes), "{}", asset.path);
            let reply = answer(&Request { accepts_gzip: true, ..request.clone() }).unwrap();
            let mut content = Vec::new();
            flate2::read::GzDecoder::new(&*reply.body).read_to_end(&mut content).unwrap();
            assert!(reply.is_gzip && content == asset.bytes, "{}", asset.path);
            let known = answer(&Request { known_tag: reply.tag, ..request }).unwrap();
            assert_eq!((known.status, known.body.len()), (304, 0));
        }
    }

    #[test]
    fn other_paths_are_not_opened() {
        for path in
            ["/../Cargo.toml", "/%2e%2e/Cargo.toml", "//etc/passwd", "/index.html/..", "", "/src/lib.rs"]
        {
            assert_eq!(answer(&Request::get(path)), None, "{path}");
        }
    }
}
