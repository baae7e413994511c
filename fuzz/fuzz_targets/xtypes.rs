//! Type objects of DDS. No bytes cause a panic, and what is accepted can be added again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rondel_decode::schema::Library;

fuzz_target!(|mapping: &[u8]| {
    let mut library = Library::new();
    if library.add_xtypes(mapping).is_err() {
        assert_eq!(library.names().count(), 0);
        return;
    }
    assert_eq!(library.add_xtypes(mapping), Ok(()));
    let names: Vec<String> = library.names().map(str::to_owned).collect();
    for name in names {
        let _ = library.schema(&name);
    }
});
