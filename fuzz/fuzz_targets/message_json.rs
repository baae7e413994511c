//! Messages of every encoding as JSON: what is written is JSON, within its limit, and nothing is left of what is refused.

#![no_main]

use std::sync::{Arc, OnceLock};

use libfuzzer_sys::fuzz_target;
use rondel_decode::flatbuffers::BinarySchema;
use rondel_decode::json::JsonForm;
use rondel_decode::protobuf::Descriptors;
use rondel_decode::schema::Library;
use rondel_decode::{Encoding, MessageType, MessageWriter};
use serde::de::IgnoredAny;

const PROTOBUF: &[u8] = include_bytes!("../seeds/protobuf/types");
const FLATBUFFERS: &[u8] = include_bytes!("../../crates/rondel-decode/tests/flatbuffers/types.bfbs");
const IDL: &str = "module a {
    enum Color { RED, GREEN };
    @bit_bound(8) bitmask Flags { A, B };
    union Shape switch (Color) { case RED: float radius; default: Flags flags; };
    @final struct Inner { string name; octet raw[2][3]; wchar letter; boolean b; double d; };
    @appendable struct Base { sequence<Inner> inner; wstring text; };
    @mutable struct Outer { @optional Shape shape; sequence<sequence<long, 4>> rows; unsigned long long large; Base base; };
    @mutable union Part switch (short) { case 1: string text; case 2: @id(9) double number; };
    struct Whole { sequence<Part> parts; };
};";

fn types() -> Vec<(Encoding, Option<Arc<MessageType>>)> {
    let mut library = Library::ros().unwrap();
    library.add_idl(IDL, &|_| None).unwrap();
    let own: Vec<String> =
        library.names().filter(|name| !name.contains("::msg::")).map(str::to_owned).collect();
    let known = ["nav_msgs/msg/Odometry", "sensor_msgs/msg/LaserScan", "diagnostic_msgs/msg/DiagnosticArray"];
    let cdr = own.iter().map(String::as_str).chain(known).filter_map(|name| library.schema(name).ok());
    let mut types: Vec<MessageType> = cdr.map(MessageType::Cdr).collect();
    types.push(MessageType::Protobuf(Descriptors::from_bytes(PROTOBUF).unwrap().message("Root").unwrap()));
    types.push(MessageType::Flatbuffers(BinarySchema::from_bytes(FLATBUFFERS).unwrap().root().unwrap()));
    let typed = types.into_iter().map(|of| (of.encoding(), Some(Arc::new(of))));
    typed
        .chain([Encoding::Cbor, Encoding::Msgpack, Encoding::Json].map(|encoding| (encoding, None)))
        .collect()
}

fuzz_target!(|payload: &[u8]| {
    static TYPES: OnceLock<Vec<(Encoding, Option<Arc<MessageType>>)>> = OnceLock::new();
    for (encoding, message_type) in TYPES.get_or_init(types) {
        for form in [JsonForm::READABLE, JsonForm::EXACT] {
            let writer = MessageWriter::new(*encoding, message_type.clone(), form).unwrap();
            let mut out = b"before".to_vec();
            match writer.write(payload, 100_000, &mut out) {
                Err(error) => {
                    assert!(error.offset() <= payload.len());
                    assert_eq!(out, b"before");
                }
                Ok(()) if *encoding == Encoding::Json => assert_eq!(&out[6..], payload),
                Ok(()) => {
                    let json = &out[6..];
                    assert!(json.len() <= 100_000);
                    let is_deep =
                        |error: &serde_json::Error| error.to_string().starts_with("recursion limit");
                    if !json.windows(5).any(|part| part == b"1e999")
                        && let Err(error) = serde_json::from_slice::<IgnoredAny>(json)
                    {
                        assert!(is_deep(&error), "{error}: {}", String::from_utf8_lossy(json));
                    }
                }
            }
        }
    }
});
