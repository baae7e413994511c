//! Type objects sent by CycloneDDS.

use super::{Definition, Library, Type};

const EXTENDED: &[u8] = include_bytes!("../../../../fuzz/seeds/xtypes/extended");
const NESTED: &[u8] = include_bytes!("../../../../fuzz/seeds/xtypes/nested");

#[test]
fn types_are_read_with_their_names() {
    let mut library = Library::new();
    library.add_xtypes(NESTED).unwrap();
    library.add_xtypes(EXTENDED).unwrap();
    let names: Vec<_> = library.names().collect();
    assert_eq!(
        names,
        [
            "demo::All",
            "demo::Base",
            "demo::Detail",
            "demo::Header",
            "demo::Lamps",
            "demo::Mode",
            "demo::Part",
            "demo::Pose",
            "demo::Row",
            "demo::Stamp",
        ]
    );
    let pose = library.schema("demo::Pose").unwrap();
    let members: Vec<_> = pose.root().members.iter().map(|member| &*member.name).collect();
    assert_eq!(members, ["header", "number", "mode", "position", "covariance"]);
    let all = library.schema("demo::All").unwrap();
    assert_eq!((&*all.root().members[0].name, all.root().members[0].key), ("id", true));
    let Type::Named(mode) = all.root().members[5].member_type else { panic!("the mode is an enumeration") };
    let Definition::Enum(mode) = all.definition(mode) else { panic!("the mode is an enumeration") };
    let constants = [("PARKED".into(), 0), ("DRIVING".into(), 1)];
    assert_eq!((mode.bits, mode.constants.as_slice()), (32, constants.as_slice()));
}

#[test]
fn damaged_types_are_refused() {
    for mapping in [EXTENDED, NESTED] {
        for length in 0..mapping.len() {
            let mut library = Library::new();
            // Bytes after the complete types are not read.
            if library.add_xtypes(&mapping[..length]).is_err() {
                assert_eq!(library.names().count(), 0);
            }
        }
        let mut bytes = mapping.to_vec();
        for at in 0..bytes.len() {
            for other in [0, 1, 0x7f, 0x80, 0xff, bytes[at] ^ 4, 0x60, 0xf2] {
                let before = std::mem::replace(&mut bytes[at], other);
                let mut library = Library::new();
                if library.add_xtypes(&bytes).is_ok() {
                    let names: Vec<String> = library.names().map(str::to_owned).collect();
                    names.iter().for_each(|name| drop(library.schema(name)));
                }
                bytes[at] = before;
            }
        }
    }
    let error = Library::new().add_xtypes(&EXTENDED[..100]).unwrap_err();
    assert!(error.message.starts_with("type object, byte "), "{error}");
}
