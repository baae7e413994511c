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
    if request.known_tag.as_deref() == Some(compressed.tag.as_str()) {
        reply.status = 304;
        reply.body = Cow::Borrowed(&[]);
    } else if request.accepts_gzip && !compressed.bytes.is_empty() {
        reply.body = Cow::Borrowed(compressed.bytes.as_slice());
        reply.is_gzip = true;
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

    /// The document names three files. A browser has six connections to a server, and takes milliseconds for a file.
    #[test]
    fn first_view_needs_few_bytes() {
        let index = ASSETS.iter().find(|asset| asset.path == "/").unwrap();
        let index = std::str::from_utf8(index.bytes).unwrap();
        let mut size = 0;
        for name in ["", "theme.js", "style.css", "main.js"] {
            assert!(name.is_empty() || index.contains(&format!("=\"{name}\"")), "{name}");
            let reply = answer(&Request { accepts_gzip: true, ..Request::get(&format!("/{name}")) }).unwrap();
            size += reply.body.len();
        }
        assert_eq!((index.matches("<link ").count(), index.matches("<script ").count()), (2, 2));
        assert!(size < 60_000, "{size} bytes");
    }

    #[test]
    fn modules_are_one_script() {
        let scripts = ASSETS.iter().map(|asset| asset.path).filter(|path| path.ends_with(".js"));
        let own: Vec<&str> = scripts.filter(|path| !path.starts_with("/vendor/")).collect();
        assert_eq!(own, ["/main.js", "/theme.js"]);
        let main = answer(&Request::get("/main.js")).unwrap();
        let lines = std::str::from_utf8(&main.body).unwrap().lines();
        let left = lines.filter(|line| line.starts_with("import ") || line.starts_with("export "));
        assert_eq!(left.collect::<Vec<&str>>(), Vec::<&str>::new());
    }

    #[test]
    fn other_paths_are_not_opened() {
        for path in [
            "/../Cargo.toml",
            "/%2e%2e/Cargo.toml",
            "//etc/passwd",
            "/index.html/..",
            "",
            "/src/lib.rs",
            "/dom.js",
        ] {
            assert_eq!(answer(&Request::get(path)), None, "{path}");
        }
    }
}
