//! Time to decode a message: run alone, optimised, with `--ignored --nocapture`.

use std::hint::black_box;
use std::time::Instant;

use rondel_decode::cdr::{CdrDecoder, Check, WideForm};
use rondel_decode::schema::{Extensibility, Library};
use rondel_event::{
    Block, Field, Layout, Named, Path, Projection, Read, Segment, Slot, TimeUnit, Timestamp, TopicId, Value,
    ValueType,
};

use crate::random::Tree;
use crate::wire::{Encoding, Wire};
use rondel_testkit::Random;

const TYPES: &str = "
    module b { struct Time { long sec; unsigned long nanosec; }; };
    module s { struct Header { b::Time stamp; string frame_id; }; };
    module g {
        struct Point { double x, y, z; }; struct Quaternion { double x, y, z, w; };
        struct Pose { Point position; Quaternion orientation; };
        struct PoseWithCovariance { Pose pose; double covariance[36]; };
        struct Twist { Point linear, angular; };
        struct TwistWithCovariance { Twist twist; double covariance[36]; };
    };
    struct Velocity { s::Header header; float longitudinal, lateral, heading_rate; };
    struct PointField { string name; unsigned long offset; octet datatype; unsigned long count; };
    struct Cloud { s::Header header; unsigned long height, width; sequence<PointField> fields; boolean big;
        unsigned long point_step, row_step; sequence<octet> data; boolean dense; };
    struct JointState { s::Header header; sequence<string> name; sequence<double> position, velocity, effort; };
    struct Odometry { s::Header header; string child; g::PoseWithCovariance pose; g::TwistWithCovariance twist; };
";

const JOINTS: [&str; 12] = [
    "front_left_hip_joint",
    "front_left_thigh_joint",
    "front_left_calf_joint",
    "front_right_hip_joint",
    "front_right_thigh_joint",
    "front_right_calf_joint",
    "rear_left_hip_joint",
    "rear_left_thigh_joint",
    "rear_left_calf_joint",
    "rear_right_hip_joint",
    "rear_right_thigh_joint",
    "rear_right_calf_joint",
];

/// Parses a path, in which a number is an index, and `name~a` the element whose name in the array `name` is `a`.
fn path_of(text: &str) -> Path {
    let segment = |part: &str| match (part.parse(), part.split_once('~')) {
        (Ok(index), _) => Segment::Index(index),
        (_, Some((key, name))) => {
            Segment::Named(Box::new(Named::new(Path::keys([key]), Value::String(name.into()), true)))
        }
        _ => Segment::Key(part.into()),
    };
    Path(text.split('.').map(segment).collect())
}

fn measure(name: &str, type_name: &str, paths: &[&str], time: Option<&str>) -> String {
    let mut library = Library::new();
    library.add_idl(TYPES, &|_| None).unwrap();
    let schema = library.schema(type_name).unwrap();
    let mut random = Random::new(1);
    let mut members = crate::random::members(&mut random, &schema, schema.root());
    if type_name == "Cloud" {
        members[7] = Some(Tree::List(vec![Tree::Int(1); 1 << 20]));
    }
    if type_name == "JointState" {
        let name = |joint: usize| Tree::Text(JOINTS[joint].into());
        members[1] = Some(Tree::List((0..12).map(name).collect()));
        for member in &mut members[2..] {
            *member = Some(Tree::List((0..12).map(|joint| Tree::Float(f64::from(joint) / 8.0)).collect()));
        }
    }
    // A valid time.
    if let Some(Tree::Struct(header)) = &mut members[0] {
        header[0] = Some(Tree::Struct(vec![Some(Tree::Int(1_700_000_000)), Some(Tree::Int(5))]));
        header[1] = Some(Tree::Text("base_link".into()));
    }
    let encoding =
        Encoding { version: 1, is_big: false, unstated: Extensibility::Final, wide: WideForm::Bytes };
    let message = Wire::message(&schema, encoding, 1, &members);
    let mut layout = Layout { topics: 1, ..Layout::default() };
    let mut fields = Vec::new();
    for path in paths {
        let (value_type, slot) = if path.ends_with("frame_id") {
            layout.strings += 1;
            (ValueType::String, Slot::String(layout.strings as u32 - 1))
        } else {
            layout.floats += 1;
            (ValueType::Float, Slot::Float(layout.floats as u32 - 1))
        };
        fields.push(Field { path: path_of(path), read: Read::Value(value_type), slot, exact: false });
    }
    let time = time.map(|time| Path::keys(time.split('.')));
    let projection = Projection { fields };
    let (topic, unit) = (TopicId(0), TimeUnit::Seconds);
    let mut decoder =
        CdrDecoder::new(topic, &schema, &projection, time.as_ref(), unit, Check::Prefix).unwrap();
    let mut block = Block::new(layout);
    let rounds: u32 = std::env::var("ROUNDS").map_or(200_000, |rounds| rounds.parse().unwrap());
    let mut best = f64::MAX;
    for _ in 0..10 {
        let start = Instant::now();
        for _ in 0..rounds / 64 {
            block.clear();
            for _ in 0..64 {
                decoder.decode(black_box(&message), Timestamp::ZERO, &mut block).unwrap();
            }
            black_box(&block);
        }
        best = best.min(start.elapsed().as_nanos() as f64 / f64::from(rounds / 64 * 64));
    }
    format!("{name}: {best:.1} ns, {} bytes", message.len())
}

#[test]
#[ignore = "a measurement: needs an idle machine and an optimised build"]
fn speed() {
    let pose = ["pose.pose.position.x", "pose.pose.position.y", "pose.pose.orientation.w"];
    let two = ["longitudinal", "heading_rate"];
    for (name, type_name, paths, time) in [
        ("two fields of VelocityReport", "Velocity", &two[..], None),
        ("the same with its time", "Velocity", &two[..], Some("header.stamp")),
        ("header of PointCloud2", "Cloud", &["header.frame_id"][..], Some("header.stamp")),
        ("end of PointCloud2", "Cloud", &["point_step"][..], None),
        ("pose of Odometry", "Odometry", &pose[..], None),
        ("the same with its time", "Odometry", &pose[..], Some("header.stamp")),
        ("joint 7 of JointState by its position", "JointState", &["position.7"][..], None),
        ("the same by its name", "JointState", &["position.name~rear_left_thigh_joint"][..], None),
    ] {
        println!("{}", measure(name, type_name, paths, time));
    }
}
