//! Definitions of ROS 2 messages. No text causes a panic, and what is accepted has a hash.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rondel_decode::schema::Library;

fuzz_target!(|text: &str| {
    let mut library = Library::new();
    if library.add_msg("a/msg/B", text).is_err() {
        assert_eq!(library.names().count(), 0);
        return;
    }
    // It may be added again.
    assert_eq!(library.add_msg("a/msg/B", text), Ok(()));
    let names: Vec<String> = library.names().map(str::to_owned).collect();
    for name in names {
        if let Ok(schema) = library.schema(&name) {
            assert!(schema.rihs01().is_some());
        }
    }
});
