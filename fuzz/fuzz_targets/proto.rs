//! Text files of Protobuf. No text causes a panic, and the types of what is accepted can be used.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rondel_decode::protobuf::Descriptors;

fuzz_target!(|text: &str| {
    let own = text.to_owned();
    // A file that can import itself, by two names.
    let file = move |name: &str| matches!(name, "a.proto" | "b.proto").then(|| own.clone());
    let Ok(set) = Descriptors::from_proto(&["a.proto"], file) else { return };
    for name in set.message_names().map(str::to_owned).collect::<Vec<_>>() {
        assert!(set.message(&name).is_ok());
        assert!(set.file(&name).is_some());
    }
});
