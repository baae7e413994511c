//! Definitions in IDL. No text causes a panic, and what is accepted can be added again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rondel_decode::schema::Library;

fuzz_target!(|text: &str| {
    let mut library = Library::new();
    // A file that includes itself.
    let include = |name: &str| (name == "a").then(|| text.to_owned());
    if library.add_idl(text, &include).is_err() {
        assert_eq!(library.names().count(), 0);
        return;
    }
    assert_eq!(library.add_idl(text, &include), Ok(()));
    let names: Vec<String> = library.names().map(str::to_owned).collect();
    for name in names {
        let _ = library.schema(&name);
    }
});
