//! Reading recordings piece by piece.

#![allow(clippy::unwrap_used)]

#[test]
fn a_byte_order_mark_is_skipped() {
    let folder = std::env::temp_dir().join(format!("rondel-lines-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("bom.jsonl");
    std::fs::write(&path, b"\xef\xbb\xbf{\"b\":true}").unwrap();
    let mut reader = rondel_recording::TraceReader::open(&path).unwrap();
    let piece = reader.lines().unwrap().unwrap();
    assert_eq!(&piece.text[piece.start..piece.end], b"{\"b\":true}\n");
    let end = piece.end;
    reader.used(end);
    assert!(reader.lines().unwrap().is_none());
    std::fs::remove_dir_all(&folder).unwrap();
}
