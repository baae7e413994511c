//! Message types of the tests.

use prost_reflect::DescriptorPool;
use protox::file::{ChainFileResolver, File, FileResolver, GoogleFileResolver};
use rondel_decode::protobuf::{Descriptors, ProtobufType};

pub(crate) const NEW: &str = r#"
syntax = "proto3";
package demo.v1;
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
import "old.proto";
enum Gear { option allow_alias = true; PARK = 0; ZERO = 0; DRIVE = 4; BACK = -1; }
message Point {
  double x = 1; float y = 2; optional double z = 3; Gear gear = 4; string name = 200; repeated sint32 l = 5;
  oneof p { int64 i = 6; Point inner = 7; }
}
message Stamp { int64 sec = 1; uint32 nanosec = 2; }
message Root {
  double d = 1; float f = 2; int32 i32 = 3; int64 i64 = 4; uint32 u32 = 5; uint64 u64 = 6; sint32 s32 = 7;
  sint64 s64 = 8; fixed32 x32 = 9; fixed64 x64 = 10; sfixed32 y32 = 11; sfixed64 y64 = 12; bool b = 13;
  string s = 14; bytes y = 15; Gear e = 16; Point m = 17;
  optional int32 oi = 31; optional string os = 32; optional Gear oe = 33; optional bool ob = 1000;
  repeated double rd = 41; repeated int32 ri = 42; repeated bool rb = 43; repeated string rs = 44;
  repeated Point rm = 45; repeated Gear re = 46; repeated uint64 ru = 47 [packed = false];
  repeated fixed32 rf = 48;
  oneof o { int32 ch_i = 51; string ch_s = 52; Point ch_m = 53; bool ch_b = 54; }
  oneof q { Stamp q_t = 55; double q_d = 56; }
  map<string, int32> ms = 61; map<int32, Point> mi = 62; map<bool, string> mb = 63; map<uint64, double> mu = 64;
  google.protobuf.Timestamp t = 71; google.protobuf.Duration g = 72; Stamp k = 73;
  demo.v1.Old old = 81;
}
"#;

pub(crate) const OLD: &str = r#"
syntax = "proto2";
package demo.v1;
message Old {
  enum Color { RED = 1; GREEN = 2; }
  optional int32 a = 1 [default = 7]; required string b = 2; repeated int32 c = 3; optional Color e = 4;
  optional group G = 5 { optional int32 n = 1; }
  repeated group H = 6 { optional string n = 1; }
  optional Old again = 7;
}
"#;

/// Files by name, without a disk.
struct Files;

impl FileResolver for Files {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        match name {
            "new.proto" => File::from_source(name, NEW),
            "old.proto" => File::from_source(name, OLD),
            _ => Err(protox::Error::file_not_found(name)),
        }
    }
}

/// Returns the descriptor set as written by other programs.
pub(crate) fn set(has_imports: bool) -> Vec<u8> {
    let mut resolver = ChainFileResolver::new();
    resolver.add(Files);
    resolver.add(GoogleFileResolver::new());
    let mut compiler = protox::Compiler::with_file_resolver(resolver);
    compiler.include_imports(has_imports).open_file("new.proto").unwrap();
    compiler.encode_file_descriptor_set()
}

pub(crate) fn root() -> ProtobufType {
    Descriptors::from_bytes(&set(true)).unwrap().message("demo.v1.Root").unwrap()
}

pub(crate) fn pool() -> DescriptorPool {
    DescriptorPool::decode(&set(true)[..]).unwrap()
}

#[cfg(feature = "proto")]
#[test]
fn files_are_compiled_and_their_errors_are_reported() {
    let file = |name: &str| match name {
        "new.proto" => Some(NEW.to_owned()),
        "old.proto" => Some(OLD.to_owned()),
        "bad.proto" => Some("message X {".to_owned()),
        _ => None,
    };
    let names = |descriptors: &Descriptors| -> Vec<String> {
        descriptors.message_names().map(str::to_owned).collect()
    };
    let compiled = Descriptors::from_proto(&["new.proto"], file).unwrap();
    assert_eq!(names(&compiled), names(&Descriptors::from_bytes(&set(true)).unwrap()));
    let error = Descriptors::from_proto(&["bad.proto"], file).unwrap_err();
    assert!(error.to_string().contains("bad.proto"), "{error}");
    assert!(Descriptors::from_proto(&["none.proto"], file).is_err());
}
