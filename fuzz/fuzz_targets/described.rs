//! Descriptions of types by nodes of ROS 2. No bytes cause a panic, and what is accepted can be added again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rondel_decode::schema::Library;

fuzz_target!(|answer: &[u8]| {
    let mut library = Library::new();
    let Ok(name) = library.add_description(answer) else {
        assert_eq!(library.names().count(), 0);
        return;
    };
    assert_eq!(library.add_description(answer).as_ref(), Ok(&name));
    let _ = library.schema(&name).map(|schema| schema.rihs01());
});
