//! Messages in XML, from an archive and from a broker to which it is replayed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

use crate::support;

use rondel_testkit::Broker;
use support::{Folder, rondel, start_rondel};

fn example(name: &str) -> String {
    format!("{}/../../examples/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn replayed_messages_have_the_verdicts_of_the_archive() {
    let name = "replayed_messages_have_the_verdicts_of_the_archive";
    let Some(broker) = Broker::start(name) else { return };
    let at = format!("127.0.0.1:{}", broker.port);
    let folder = Folder::new();
    let deployment = folder.file(
        "rondel.yaml",
        format!(
            "specification: {}\nmqtt: {{ broker: \"{at}\" }}\ntopics:\n  sfdps: {{ source: mqtt:sfdps, encoding: xml }}\n\
             verdicts: {{ emit: violations, to: [stdout] }}\n",
            example("sfdps.rondel")
        ),
    );
    let mut run = start_rondel(["run", "--count", "9", &deployment]);
    run.wait_stderr("ready");
    let archive = example("sfdps.xml.gz");
    rondel(["replay", "--to", "mqtt", "--as-fast-as-possible", "--mqtt-broker", &at, &archive])
        .expect_status(0);
    let finished = run.finish();
    let of = |property: &str| finished.stdout.lines().filter(|line| line.contains(property)).count();
    assert_eq!((of("sequence_order"), of("altitude")), (2, 1), "{}{}", finished.stdout, finished.stderr);
}

#[test]
fn an_archive_is_surveyed_and_drafted() {
    let (folder, archive) = (Folder::new(), example("sfdps.xml.gz"));
    let listed = rondel(["topics", &archive]);
    listed.expect_status(0);
    assert!(listed.stdout.contains("sfdps") && listed.stdout.contains("xml"), "{}", listed.stdout);
    let drafted = folder.path("drafted");
    rondel(["init", &archive, "--folder", &drafted]).expect_status(0);
    let deployment = std::fs::read_to_string(format!("{drafted}/rondel.yaml")).unwrap();
    assert!(deployment.contains("encoding: xml"), "{deployment}");
    rondel(["validate", &format!("{drafted}/rondel.yaml")]).expect_status(0);
}

#[test]
fn malformed_messages_are_counted_and_are_no_text() {
    let folder = Folder::new();
    let feed = b"<f><m time='1'><v>1</v></m><m time='2'><v>\xff</v></m><m time='3'><v>2</w></m></f>";
    let archive = folder.file("feed.xml", feed);
    let drafted = folder.path("drafted");
    rondel(["init", &archive, "--folder", &drafted]).expect_status(0);
    let specification = std::fs::read_to_string(format!("{drafted}/first.rondel")).unwrap();
    assert!(specification.contains("2 messages were not of this type"), "{specification}");
    assert!(!specification.contains("value: string"), "{specification}");
    let deployment = std::fs::read_to_string(format!("{drafted}/rondel.yaml")).unwrap();
    assert!(deployment.contains("encoding: xml"), "{deployment}");
    let bad = folder.file("bad.xml", "<f><m><v>1</w></m></f>");
    rondel(["init", &bad, "--folder", &folder.path("none")])
        .expect_status(2)
        .expect_stderr(&["none with messages that can be decoded"]);
}

#[test]
fn the_user_names_topic_and_time() {
    let folder = Folder::new();
    let feed =
        "<feed><m at='1'><v>1</v></m><m at='2.5'><v>9</v></m><m at='3'><v/></m><m at='4'><v>x</v></m></feed>";
    let archive = folder.file("feed.xml", feed);
    let spec = folder.file(
        "spec.rondel",
        "topic a { at: time, v: float }\ntopic b { v: float }\n\n@time(points)\nproperty low = a.v < 5\n",
    );
    let checked = rondel(["check", "--topic", "a", "--time-field", "at", &spec, &archive]);
    checked.expect_status(1);
    assert!(checked.stdout.contains("violated      low"), "{}", checked.stdout);
    assert!(checked.stdout.contains("time 2.5 s"), "{}", checked.stdout);
    let named = "1 value on a has another type than the specification reads; the first at 4 s: `v` has another type than `float`";
    assert!(checked.stdout.contains(&format!("{named} ({archive}:1:81)")), "{}", checked.stdout);
}

#[test]
fn an_archive_that_is_cut_off_is_checked_up_to_there() {
    let folder = Folder::new();
    let archive = folder.file("sfdps.xml", "<feed><m><v>1</v></m><m><v>9</v></m><m><v>1</v>");
    let spec = folder.file("spec.rondel", "topic sfdps { v: float }\nproperty low = sfdps.v < 5\n");
    let checked = rondel(["check", &spec, &archive]);
    checked.expect_status(3).expect_stderr(&["cut off at byte 36", "an element is not closed"]);
    assert!(checked.stdout.contains("violated      low"), "{}", checked.stdout);
    let undecodable = folder.file("sfdps.xml", "<feed><m><v>1</v></m><m><v a='1' a='2'>1</v></m></feed>");
    let checked = rondel(["check", &spec, &undecodable]);
    checked.expect_stderr(&["field `v`", "the element has an attribute twice"]);
}

#[test]
fn without_times_nothing_over_time_is_satisfied() {
    let folder = Folder::new();
    let message = "<m><v>1</v></m>";
    let archive = folder.file("a.xml", format!("<c>{message}{message}</c>"));
    let spec =
        folder.file("spec.rondel", "topic a { v: float }\nproperty fresh = once on(a) -> age(a) <= 3 s\n");
    let checked = rondel(["check", &spec, &archive]);
    assert!(
        checked.expect_status(4).stdout.contains("no message on `a` carried a time"),
        "{}",
        checked.stdout
    );
    // One that cannot be read ends reading, unless it is skipped and counted.
    let archive = folder.file("a.xml", "<c><m time='1'><v>1</v></m><m time='x'><v>1</v></m></c>");
    rondel(["check", &spec, &archive])
        .expect_status(3)
        .expect_stderr(&["the time 'x' of a message is no time"]);
    let skipped = rondel(["check", "--on-error", "skip", &spec, &archive]);
    assert!(!skipped.stdout.contains("2 events"), "{}", skipped.stdout);
}
