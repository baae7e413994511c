//! `rondel topics` and `rondel init`: what they see on networks and in recordings, and that what they write runs.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

use crate::support;

use std::path::Path;

use rondel_testkit::Process;
use support::network::{
    arguments, dds, dds_domain, free_endpoint, independent, python, zenoh, zenoh_listening,
};
use support::{Folder, rondel, start_rondel};

fn example(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name).to_str().unwrap().to_owned()
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).expect("JSON")
}

/// Publishes so many lines on DDS once somebody subscribes, and stays. It has joined the domain, so that its start takes
/// nothing of the time for looking.
fn publisher(topic: &str, count: u32, more: &[&str], network: &[String]) -> Process {
    let own = ["--log", "info", "publish", "--to", topic, "--wait", "60"];
    let mut publisher = start_rondel(arguments(&[&own[..], more].concat(), network));
    let lines: String = (0..count).map(|i| format!("{{\"speed\": {}.5, \"on\": true}}\n", i % 10)).collect();
    publisher.write(lines.as_bytes());
    publisher.wait_stderr("joined the DDS domain");
    publisher
}

#[test]
fn topics_of_a_recording() {
    let listed = rondel(["topics", &example("vehicle.jsonl")]);
    listed.expect_status(0).expect_stderr(&["3 topics in "]);
    let lines: Vec<&str> = listed.stdout.lines().collect();
    assert!(lines[0].starts_with("topic     type  encoding  messages  rate"), "{}", listed.stdout);
    assert!(lines.len() == 4 && lines[2].starts_with("gear"), "{}", listed.stdout);
    let listed = rondel(["topics", &example("vehicle.jsonl"), "--format", "json", "--limit", "2"]);
    let seen = json(&listed.stdout);
    assert_eq!(seen["topics"].as_array().unwrap().len(), 2);
    assert_eq!(
        (&seen["topics"][0]["encoding"], &seen["topics"][0]["type"]),
        (&"json".into(), &serde_json::Value::Null)
    );
    assert!(seen["unlisted"].as_u64().unwrap() > 0);
    listed.expect_stderr(&["only 2 topics are listed"]);
    rondel(["topics", "nowhere.jsonl"]).expect_status(3);
    rondel(["topics", "a.jsonl", "b.jsonl"]).expect_status(3).expect_stderr(&["a.jsonl"]);
    let two = [example("vehicle.jsonl"), example("flights.jsonl")];
    rondel(["topics", &two[0], &two[1]]).expect_status(0).expect_stderr(&["in 2 recordings"]);
}

/// A recording satisfies the specification that `rondel init` drafts from it: a rule that an outlier violates is a comment.
#[test]
fn drafts_of_recordings_are_satisfied() {
    for name in ["vehicle", "driving_chain", "flights", "mode_manager", "requests", "takeover"] {
        let (folder, trace) = (Folder::new(), example(&format!("{name}.jsonl")));
        let own = folder.path("drafts/new");
        let written = rondel(["init", &trace, "--folder", &own]);
        written.expect_status(0).expect_stderr(&["wrote ", "next: rondel check "]);
        // The silence in one of them is reported, and the rule about it only suggested.
        let is_silent = written.stderr.contains("unlike the rest: odom: one silence");
        assert_eq!(is_silent, name == "takeover", "{}", written.stderr);
        let is_suggested = written.stderr.contains("only suggested: odom_fresh: Violated ");
        assert_eq!(is_suggested, is_silent, "{}", written.stderr);
        let (specification, deployment) =
            (folder.path("drafts/new/first.rondel"), folder.path("drafts/new/rondel.yaml"));
        rondel(["check", &specification, &trace]).expect_status(0);
        rondel(["check", &deployment, &trace]).expect_status(0);
        rondel(["validate", &deployment]).expect_status(0);
        rondel(["fmt", "--check", &specification]).expect_status(0);
        let text = std::fs::read_to_string(&specification).unwrap();
        if text.contains("test \"") {
            rondel(["test", &specification]).expect_status(0);
        }
        let again = rondel(["init", &trace, "--folder", &own]);
        again.expect_status(2).expect_stderr(&["first.rondel exists already"]);
        assert_eq!(std::fs::read_to_string(&specification).unwrap(), text);
    }
}

/// A draft of several recordings is checked with all of them, and unreadable lines show in the status.
#[test]
fn drafts_of_several_recordings_name_all_of_them() {
    let folder = Folder::new();
    let lines = |from: u32| -> String {
        (from..from + 50).map(|i| format!("{{\"topic\":\"t\",\"time\":{i},\"x\":{}}}\n", i % 2)).collect()
    };
    let (first, second) = (folder.file("a.jsonl", lines(0)), folder.file("b.jsonl", lines(100)));
    let own = folder.path("whole");
    let written = rondel(["init", &first, &second, "--folder", &own]);
    written.expect_status(0).expect_stderr(&[&format!("first.rondel {first} {second}")]);
    rondel(["check", &format!("{own}/first.rondel"), &first, &second]).expect_status(0);
    let torn = folder.file("c.jsonl", lines(200) + "no message\n");
    let written = rondel(["init", &first, &torn, "--folder", &folder.path("torn")]);
    written.expect_status(3).expect_stderr(&["1 line could not be read", "wrote ", "next: rondel check "]);
}

/// A draft of a recording that is cut off is about what could be read, and the status says so.
#[test]
fn drafts_of_cut_recordings_end_with_the_status_of_others() {
    let folder = Folder::new();
    let line = |i: u32| format!("{{\"topic\":\"t\",\"time\":{},\"x\":{}}}\n", f64::from(i) / 10.0, i % 2);
    let trace = folder.file("a.jsonl", (0..100).map(line).collect::<String>());
    let whole = folder.path("whole.mcap");
    let spec = folder.file("a.rondel", "topic t { x: int }\nproperty p = t.x < 1\n");
    rondel(["check", "-q", &spec, &trace, "--report", &format!("mcap={whole}")]).expect_status(1);
    rondel(["init", &whole, "--folder", &folder.path("of-whole")]).expect_status(0);
    let bytes = std::fs::read(&whole).unwrap();
    let cut = folder.file("cut.mcap", &bytes[..bytes.len() * 2 / 3]);
    let drafted = rondel(["init", &cut, "--folder", &folder.path("of-cut")]);
    drafted.expect_status(3).expect_stderr(&["cut off", "wrote ", "next: rondel check "]);
    rondel(["topics", &cut]).expect_status(3);
    rondel(["check", "-q", "-f", "x > 0", "--topics", "/rondel/verdicts", &cut]).expect_status(3);
}

#[test]
fn a_draft_finds_the_differences() {
    let folder = Folder::new();
    let line = |i: u32, gear: u32| {
        format!("{{\"topic\": \"gear\", \"time\": {}, \"report\": {gear}}}\n", f64::from(i) / 10.0)
    };
    let trace: String = (0..100).map(|i| line(i, 2 + i % 2)).collect();
    let other: String = (0..50).chain(80..100).map(|i| line(i, if i == 30 { 20 } else { 2 })).collect();
    let (trace, other) = (folder.file("a.jsonl", trace), folder.file("b.jsonl", other));
    rondel(["init", &trace, "--folder", &folder.path("")]).expect_status(0);
    let specification = folder.path("first.rondel");
    rondel(["check", &specification, &trace]).expect_status(0);
    let found = rondel(["check", &specification, &other]);
    found.expect_status(1);
    for property in ["gear_fresh", "gear_rate", "gear_report"] {
        let violated = |line: &str| line.starts_with("violated") && line.contains(property);
        assert!(found.stdout.lines().any(violated), "{property}\n{}", found.stdout);
    }
}

/// A recording of Rondel has its networks, and the silence at its end: `init` writes a deployment that runs, and reports
/// the silence.
#[test]
fn a_draft_of_an_own_recording_has_its_networks_and_its_end() {
    let Some(python) = python("a_draft_of_an_own_recording_has_its_networks_and_its_end") else { return };
    let folder = Folder::new();
    let script = "
import sys
from mcap.writer import Writer
with open(sys.argv[1], 'wb') as file:
    writer = Writer(file)
    writer.start(library='rondel test')
    type = writer.register_schema('demo::Other', 'omgidl', b'module demo { struct Other { unsigned long n; }; };')
    plant = writer.register_channel('plant/7', 'json', 0, {'rondel.address': 'mqtt:plant/7'})
    other = writer.register_channel('other', 'cdr', type, {'rondel.address': 'dds+cdr:other'})
    for i in range(20):
        writer.add_message(plant, i * 100_000_000, b'{\"v\": 1}', i * 100_000_000, i)
        writer.add_message(other, i * 100_000_000, bytes([0, 1, 0, 0, 5, 0, 0, 0]), i * 100_000_000, i)
    writer.add_metadata('rondel', {'until': '6000000000'})
    writer.finish()
";
    let file = folder.path("own.mcap");
    let written = std::process::Command::new(&python).args(["-c", script, &file]).output().unwrap();
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    let draft = folder.path("draft");
    rondel(["init", &file, "--folder", &draft])
        .expect_status(0)
        .expect_stderr(&["mqtt:plant/7: one silence of 4.1 s at +1.9 s to the end, otherwise 100 ms"]);
    let deployment = std::fs::read_to_string(format!("{draft}/rondel.yaml")).unwrap();
    assert!(deployment.contains("\"mqtt:plant/7\"") && deployment.contains("\"dds:other\""), "{deployment}");
    let text = std::fs::read_to_string(format!("{draft}/first.rondel")).unwrap();
    assert!(text.contains("// Only suggested. Violated "), "{text}");
    rondel(["check", &format!("{draft}/first.rondel"), &file]).expect_status(0);
    rondel(["validate", &format!("{draft}/rondel.yaml")]).expect_stderr(&[]);
    // The list of a cut recording is incomplete.
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
    rondel(["topics", &file]).expect_status(3).expect_stderr(&["cut off at byte"]);
    rondel(["topics", &folder.file("no.txt", "no recording\n")]).expect_status(3);
}

#[test]
fn an_empty_search_names_its_topics_and_duration() {
    let endpoint = free_endpoint();
    let listed =
        rondel(arguments(&["topics", "zenoh:a/**", "--for", "1"], &zenoh_listening("router", &endpoint)));
    listed.expect_status(0).expect_stdout("").expect_stderr(&[
        "no topic: no message came, and no publisher is announced; looked at 1 second at zenoh:a/**",
        "no other participant of Zenoh was found",
    ]);
    let folder = Folder::new();
    let empty = folder.file("empty.jsonl", "");
    rondel(["init", &empty, "--folder", &folder.path("x")])
        .expect_status(2)
        .expect_stderr(&["nothing to write about"]);
    assert!(!folder.as_path().join("x").exists());
}

#[test]
fn topics_on_zenoh_become_a_deployment() {
    let (folder, endpoint) = (Folder::new(), free_endpoint());
    // The publisher waits for the router, so that its start takes nothing of the time for looking.
    let own = ["publish", "--to", "zenoh:demo/speed", "--wait", "60"];
    let mut publisher = start_rondel(arguments(&own, &zenoh("client", &endpoint)));
    let lines: String = (0..40).map(|i| format!("{{\"v\": {}.5}}\n", i % 10)).collect();
    publisher.write(lines.as_bytes());
    publisher.close_input();
    publisher.wait_stderr("trying again");
    let own = ["init", "--for", "5", "--folder", &folder.path("")];
    let init = rondel(arguments(&own, &zenoh_listening("router", &endpoint)));
    init.expect_status(0).expect_stderr(&["1 topic", "next: rondel run"]);
    publisher.finish().expect_status(0);
    let deployment = folder.path("rondel.yaml");
    rondel(["validate", &deployment]).expect_status(0);
    rondel(["test", &folder.path("first.rondel")]).expect_status(0);
    let text = std::fs::read_to_string(&deployment).unwrap();
    assert!(text.contains("source: \"zenoh:demo/speed\"") && text.contains(&endpoint), "{text}");
    let text = std::fs::read_to_string(folder.path("first.rondel")).unwrap();
    assert!(text.contains("topic speed \"demo/speed\" { v: float }"), "{text}");
}

#[test]
fn topics_on_dds_have_types_and_publishers() {
    let domain = dds_domain();
    let network = dds(&domain);
    let publisher = publisher("dds:plant/state", 400, &[], &network);
    let by_parameter = ["topics", "dds:{place}/state", "--for", "3", "--format", "json"];
    let mut found = start_rondel(arguments(&by_parameter, &network));
    found.wait_stderr("looking at dds:{place}/state for 3 seconds");
    let listed = rondel(arguments(&["topics", "--for", "4", "--format", "json"], &network));
    listed.expect_status(0).expect_stderr(&["1 topic in 4 seconds at dds:* (domain "]);
    let found = found.finish();
    found.expect_status(0);
    assert_eq!(json(&found.stdout)["topics"][0]["address"], "dds:plant/state", "{}", found.stdout);
    let topic = &json(&listed.stdout)["topics"][0];
    assert_eq!((&topic["address"], &topic["publishers"]), (&"dds:plant/state".into(), &1.into()), "{topic}");
    assert_eq!(topic["type"], "std_msgs::msg::dds_::String_", "{topic}");
    assert!(topic["qos"].as_str().unwrap().starts_with("reliable"), "{topic}");
    publisher.finish().expect_status(0);
}

/// Publishers that come after the start are seen, also when they have gone before the end, and their fields too.
#[test]
fn late_publishers_on_dds_are_drafted_with_their_fields() {
    let Some(python) = python("late_publishers_on_dds_are_drafted_with_their_fields") else { return };
    let (folder, domain) = (Folder::new(), dds_domain());
    let own = ["init", "--for", "15", "--folder", &folder.path("")];
    let mut init = start_rondel(arguments(&own, &dds(&domain)));
    init.wait_stderr("looking at dds:*");
    // The first second is over when a participant of another process is there.
    let options = ["pose", "--kind", "pose", "--domain", &domain];
    let mut publisher = independent(&python, "dds_typed.py", &options);
    publisher.write(b"wait\n");
    publisher.wait_stdout("matched");
    publisher.write(b"write 1 30\n");
    publisher.wait_stdout("wrote");
    init.finish().expect_status(0).expect_stderr(&["1 topic"]);
    publisher.close_input();
    publisher.finish();
    let text = std::fs::read_to_string(folder.path("first.rondel")).unwrap();
    assert!(text.contains("number: int") && text.contains("pose.number == prev(pose.number) + 1"), "{text}");
    rondel(["test", &folder.path("first.rondel")]).expect_status(0);
    let deployment = std::fs::read_to_string(folder.path("rondel.yaml")).unwrap();
    assert!(deployment.contains("source: \"dds:pose\", encoding: cdr"), "{deployment}");
    rondel(["validate", &folder.path("rondel.yaml")]).expect_status(0);
}

/// A node with a publisher on `/battery`, whose type it describes; it is there before the others, and their router.
fn described_node(python: &Path, endpoint: &str) -> Process {
    let network = ["--domain", "9", "--mode", "router", "--listen", endpoint];
    let options = [&["/battery"], &network[..], &["--count", "2000", "--pause", "0.05"]].concat();
    let mut node = independent(python, "ros2_zenoh_described.py", &options);
    node.wait_stdout("ready");
    node
}

/// A type without a public definition is described by the node of its publisher.
#[test]
fn types_of_ros_2_over_zenoh_are_resolved() {
    let Some(python) = python("types_of_ros_2_over_zenoh_are_resolved") else { return };
    let (endpoint, folder) = (free_endpoint(), Folder::new());
    let written = folder.path("new");
    let _node = described_node(&python, &endpoint);
    let own = ["init", "zenoh:9/**", "--for", "4", "--folder", &written];
    rondel(arguments(&own, &zenoh("client", &endpoint))).expect_status(0);
    let text = std::fs::read_to_string(folder.path("new/first.rondel")).unwrap();
    assert!(text.contains("charge: float") && text.contains("battery.charge"), "{text}");
    let deployment = std::fs::read_to_string(folder.path("new/rondel.yaml")).unwrap();
    assert!(deployment.contains("rover_msgs::msg::dds_::Battery_/*\", encoding: cdr"), "{deployment}");
    let mut run = start_rondel(["run", &folder.path("new/rondel.yaml"), "--count", "5"]);
    run.wait_stderr("messages of rover_msgs/msg/Battery, as its publisher describes them");
    // A sixth message may come while it ends.
    run.finish().expect_status(0).expect_stderr(&["undecodable 0, dropped 0"]);
}

#[test]
fn topics_of_ros_2_over_zenoh_have_their_names() {
    let Some(python) = python("topics_of_ros_2_over_zenoh_have_their_names") else { return };
    let endpoint = free_endpoint();
    let folder = Folder::new();
    for command in [&["topics", "--format", "json"][..], &["init", "--folder", &folder.path("")]] {
        // It sends as soon as somebody subscribes.
        let options = ["/fleet/chatter", "--count", "8", "--stay", "--mode", "router", "--listen", &endpoint];
        let mut publisher = independent(&python, "ros2_zenoh_publish.py", &options);
        publisher.wait_stdout("early 0");
        let own = [command, &["--for", "5"]].concat();
        let seen = rondel(arguments(&own, &zenoh("client", &endpoint)));
        seen.expect_status(0);
        publisher.wait_stdout("sent 8");
        publisher.finish().expect_status(0);
        if command[0] == "topics" {
            let topic = &json(&seen.stdout)["topics"][0];
            let texts = [("name", "/fleet/chatter"), ("type", "std_msgs/msg/String"), ("encoding", "cdr")];
            for (name, text) in texts {
                assert_eq!(topic[name], text, "{topic}");
            }
            assert_eq!((&topic["publishers"], &topic["messages"]), (&1.into(), &8.into()), "{topic}");
            assert!(topic["qos"].as_str().unwrap().contains("reliable"), "{topic}");
        }
    }
    let specification = std::fs::read_to_string(folder.path("first.rondel")).unwrap();
    let declared = "topic chatter \"/fleet/chatter\" : std_msgs/msg/String";
    assert!(specification.contains(declared), "{specification}");
    rondel(["validate", &folder.path("rondel.yaml")]).expect_status(0);
}

/// Starts a command in an environment of ROS 2.
fn in_ros2(implementation: &str, domain: &str, own: &[&str], network: &[String]) -> Process {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_rondel"));
    command.args(arguments(own, network));
    command.env("RMW_IMPLEMENTATION", implementation).env("ROS_DOMAIN_ID", domain);
    Process::start(command)
}

#[test]
fn topics_of_ros_2_over_dds_are_found_by_their_names() {
    let (folder, domain) = (Folder::new(), dds_domain());
    let network = ["--dds-interface".to_owned(), "lo".to_owned()];
    // For longer than four commands take that look for three seconds each.
    let _publishers = ["dds:rt/fleet/chatter", "dds:fleet/chatter"]
        .map(|topic| publisher(topic, 2000, &["--rate", "20"], &dds(&domain)));
    let implementation = "rmw_cyclonedds_cpp";
    let own = folder.path("own");
    for (pattern, found) in [("ros2:/**", 1), ("ros2:/fleet/{name}", 1), ("ros2:/*", 0)] {
        let own = ["topics", pattern, "--for", "3", "--format", "json"];
        let listed = in_ros2(implementation, &domain, &own, &network).finish();
        let place = format!("at {pattern} (domain {domain} over dds)");
        listed.expect_status(0).expect_stderr(&[&place]);
        let listed = json(&listed.stdout);
        assert_eq!(listed["topics"].as_array().unwrap().len(), found, "{pattern} {listed}");
        if found > 0 {
            let topic = &listed["topics"][0];
            assert_eq!(
                (&topic["address"], &topic["type"]),
                (&"ros2:/fleet/chatter".into(), &"std_msgs/msg/String".into())
            );
        }
    }
    let init = ["init", "ros2:/**", "--for", "3", "--folder", &own];
    in_ros2(implementation, &domain, &init, &network).finish().expect_status(0);
    let deployment = std::fs::read_to_string(format!("{own}/rondel.yaml")).unwrap();
    assert!(deployment.contains("chatter: { source: \"ros2:/fleet/chatter\""), "{deployment}");
    let validate = ["validate", &format!("{own}/rondel.yaml")];
    in_ros2(implementation, &domain, &validate, &[]).finish().expect_status(0);
    let wrong = in_ros2("rmw_zenoh", &domain, &["topics", "ros2:/**"], &[]).finish();
    wrong
        .expect_status(2)
        .expect_stderr(&["cannot join ROS 2: 'rmw_zenoh' is not a value of RMW_IMPLEMENTATION"]);
}

#[test]
fn topics_of_ros_2_over_zenoh_are_found_by_their_names() {
    let Some(python) = python("topics_of_ros_2_over_zenoh_are_found_by_their_names") else { return };
    let (endpoint, folder) = (free_endpoint(), Folder::new());
    let own = folder.path("own");
    let _node = described_node(&python, &endpoint);
    let init = ["init", "ros2:/**", "--for", "4", "--folder", &own];
    in_ros2("rmw_zenoh_cpp", "9", &init, &zenoh("client", &endpoint)).finish().expect_status(0);
    let deployment = std::fs::read_to_string(format!("{own}/rondel.yaml")).unwrap();
    assert!(deployment.contains("battery: { source: \"ros2:/battery\" }"), "{deployment}");
    let run = ["run", &format!("{own}/rondel.yaml"), "--count", "5"];
    let mut run = in_ros2("rmw_zenoh_cpp", "9", &run, &[]);
    run.wait_stderr("messages of rover_msgs/msg/Battery, as its publisher describes them");
    // A sixth message may come while it ends.
    run.finish().expect_status(0).expect_stderr(&["undecodable 0, dropped 0"]);
}
