//! ROS 2 as a source and a sink, over both middlewares, among programs that are not ours.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

use crate::support;

use rondel_testkit::Process;
use serde_json::Value;
use support::network::{dds_domain, free_endpoint, independent, python};
use support::{Folder, rondel, start_rondel};

const SPECIFICATION: &str = "topic chatter \"/fleet/chatter\" : std_msgs/msg/String\n\
     property short = chatter.data != \"n 4\"\n";

/// A folder with the specification and a deployment of it.
fn folder(sections: &str) -> (Folder, String) {
    let folder = Folder::new();
    folder.file("chatter.rondel", SPECIFICATION);
    let deployment = folder.file("rondel.yaml", format!("specification: chatter.rondel\n{sections}"));
    (folder, deployment)
}

#[test]
fn deployment_reads_and_writes_ros2_over_zenoh() {
    let Some(python) = python("ros2: zenoh") else { return };
    let endpoint = free_endpoint();
    let (_folder, deployment) = folder(&format!(
        "ros2: {{ middleware: zenoh, domain: 7, node: /fleet/rondel }}\nzenoh: {{ mode: router, listen: {endpoint} }}\n\
         topics:\n  chatter: ros2:/fleet/chatter\nverdicts: {{ to: \"ros2+json:/fleet/verdict\" }}\n"
    ));
    rondel(["validate", &deployment]).expect_status(0);
    let network = ["--domain", "7", "--connect", &endpoint];
    let mut run = start_rondel(["run", &deployment, "--count", "6", "--wait-subscribers", "60"]);
    let mut subscriber = independent(
        &python,
        "ros2_zenoh_subscribe.py",
        &[&["/fleet/verdict", "--count", "3"], &network[..]].concat(),
    );
    subscriber.wait_stdout("ready");
    run.wait_stderr("ready");
    let options = ["/fleet/chatter", "--count", "8", "--lose", "3", "4"];
    let publisher = independent(&python, "ros2_zenoh_publish.py", &[&options, &network[..]].concat());
    publisher.finish().expect_status(0);
    let summary = run.finish();
    // Messages are missing, so the run does not end with success.
    let lost = "chatter: 2 messages lost between";
    summary.expect_status(5).expect_stderr(&["received 6, checked 6, undecodable 0", lost]);
    let verdicts = subscriber.finish();
    verdicts.expect_status(0);
    let verdict = |line: &str| -> (Value, Value) {
        let line: Value = serde_json::from_str(line).unwrap();
        let verdict: Value = serde_json::from_str(line["data"].as_str().unwrap()).unwrap();
        (line["number"].clone(), verdict["verdict"].clone())
    };
    let verdicts: Vec<_> =
        verdicts.stdout.lines().filter(|line| line.starts_with('{')).map(verdict).collect();
    let expected = [(1, "satisfied"), (2, "violated"), (3, "satisfied")];
    assert_eq!(verdicts, expected.map(|(number, verdict)| (number.into(), verdict.into())));
}

/// The lines of JSON that a subscriber of ROS 2 prints.
fn lines(printed: &str) -> Vec<Value> {
    let lines = printed.lines().filter(|line| line.starts_with('{'));
    lines.map(|line| serde_json::from_str(&line.replace("NaN", "null")).unwrap()).collect()
}

#[test]
fn verdicts_and_diagnostics_over_zenoh() {
    let Some(python) = python("ros2: verdicts_and_diagnostics_over_zenoh") else { return };
    let endpoint = free_endpoint();
    let (_folder, deployment) = folder(&format!(
        "ros2: {{ middleware: zenoh, domain: 8 }}\nzenoh: {{ mode: router, listen: {endpoint} }}\n\
         topics:\n  chatter: ros2:/fleet/chatter\nverdicts: {{ to: [\"ros2:/rondel/verdicts\", \"ros2:/diagnostics\"] }}\n"
    ));
    rondel(["validate", &deployment]).expect_status(0);
    let network = ["--domain", "8", "--connect", &endpoint];
    let mut run = start_rondel(["run", &deployment]);
    run.wait_stderr("ready");
    let options = ["/diagnostics", "--count", "3", "--type", "diagnostic_msgs/msg/DiagnosticArray"];
    let mut diagnostics = independent(&python, "ros2_zenoh_subscribe.py", &[&options, &network[..]].concat());
    diagnostics.wait_stdout("ready");
    // Once a second, although nothing comes.
    diagnostics.wait_stdout("no verdict yet");
    let options = ["/fleet/chatter", "--count", "6"];
    independent(&python, "ros2_zenoh_publish.py", &[&options, &network[..]].concat())
        .finish()
        .expect_status(0);
    let arrays = diagnostics.finish();
    arrays.expect_status(0);
    // It comes afterwards, and reads what was kept.
    let definition = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/ros2/rondel_msgs/msg/Verdict.msg");
    let options = ["/rondel/verdicts", "--count", "3", "--keep", "10", "--type", "rondel_msgs/msg/Verdict"];
    let own = ["--definition", definition];
    let verdicts =
        independent(&python, "ros2_zenoh_subscribe.py", &[&options, &own[..], &network[..]].concat())
            .finish();
    verdicts.expect_status(0);
    let verdicts: Vec<_> = lines(&verdicts.stdout)
        .iter()
        .map(|line| (line["property"].clone(), line["verdict"].clone(), line["step"].clone()))
        .collect();
    let expected = [(0, 0), (1, 4), (0, 5)];
    assert_eq!(verdicts, expected.map(|(verdict, step)| ("short".into(), verdict.into(), step.into())));
    run.terminate();
    run.finish().expect_status(0);
}

#[test]
fn deployment_reads_and_writes_ros2_over_dds() {
    let Some(python) = python("ros2: dds") else { return };
    let domain = dds_domain().to_string();
    let folder = Folder::new();
    let deployment = folder.file(
        "rondel.yaml",
        format!(
            "formula: n != 4\nros2: {{ middleware: dds, domain: {domain} }}\ndds: {{ interface: lo, domain: {domain} }}\n\
             topics: {{ trace: {{ source: ros2:/fleet/chatter, encoding: json }} }}\nverdicts: {{ to: \"ros2+json:/fleet/verdict\" }}\n"
        ),
    );
    let options = ["rt/fleet/verdict", "--domain", &domain, "--count", "2", "--print", "--quiet", "30"];
    let mut subscriber = independent(&python, "dds_subscribe.py", &options);
    subscriber.wait_stdout("ready");
    let mut run = start_rondel(["run", &deployment, "--count", "5", "--wait-subscribers", "60"]);
    run.wait_stderr("ready");
    let options = ["rt/fleet/chatter", "--domain", &domain, "--count", "5"];
    independent(&python, "dds_publish.py", &options).finish().expect_status(0);
    run.finish().expect_status(0).expect_stderr(&["received 5, checked 5"]);
    let verdicts = subscriber.finish();
    verdicts.expect_status(0);
    assert!(verdicts.stdout.contains("\"step\":4,\"verdict\":\"violated\""), "{}", verdicts.stdout);
}

#[test]
fn verdicts_and_diagnostics_over_dds() {
    let Some(python) = python("ros2: verdicts_and_diagnostics_over_dds") else { return };
    let domain = dds_domain().to_string();
    let (folder, deployment) = folder(&format!(
        "ros2: {{ middleware: dds, domain: {domain} }}\ndds: {{ interface: lo, domain: {domain} }}\n\
         topics:\n  chatter: ros2:/fleet/chatter\nverdicts: {{ to: [\"ros2:/rondel/verdicts\", \"ros2:/diagnostics\"] }}\n"
    ));
    folder.file("texts", "n 0\nn 4\nn 1\n");
    let mut run = start_rondel(["run", &deployment]);
    run.wait_stderr("ready");
    let options = ["--domain", &domain, "--count", "3"];
    let mut reader = independent(&python, "dds_verdicts.py", &options);
    // Once a second, although nothing comes.
    reader.wait_stdout("no verdict yet");
    let file = folder.path("texts");
    let options = ["rt/fleet/chatter", "--domain", &domain, "--file", &file];
    independent(&python, "dds_publish.py", &options).finish().expect_status(0);
    reader.wait_stdout("level 2: rondel: short: ");
    // The last array says that it has ended.
    run.terminate();
    run.finish().expect_status(0);
    reader.close_input();
    let reader = reader.finish();
    reader.expect_status(0);
    let verdicts: Vec<&str> = reader.stdout.lines().filter(|line| line.starts_with("short")).collect();
    assert_eq!(
        verdicts,
        ["short 0 at step 0", "short 1 at step 1", "short 0 at step 2"],
        "{}",
        reader.stdout
    );
    assert!(reader.stdout.contains("level 3: rondel: checking of 1 property has ended"), "{}", reader.stdout);
}

#[test]
fn dds_by_the_definition_of_a_type() {
    let Some(python) = python("ros2: dds_by_the_definition_of_a_type") else { return };
    let domain = dds_domain().to_string();
    let (folder, deployment) = folder(&format!(
        "ros2: {{ middleware: dds, domain: {domain} }}\ndds: {{ interface: lo, domain: {domain} }}\n\
         topics:\n  chatter: ros2:/fleet/chatter\n"
    ));
    folder.file("texts", "n 0\nn 1\nn 4\n");
    let mut run = start_rondel(["run", &deployment, "--count", "3"]);
    run.wait_stderr("ready");
    let file = folder.path("texts");
    let options = ["rt/fleet/chatter", "--domain", &domain, "--file", &file];
    independent(&python, "dds_publish.py", &options).finish().expect_status(0);
    let violated = "short: violated 1 time, first at step 2";
    run.finish().expect_status(0).expect_stderr(&["received 3, checked 3, undecodable 0", violated]);
}

#[test]
fn mistakes() {
    let refused = |sections: &str, said: &str| {
        let (_folder, deployment) = folder(sections);
        rondel(["validate", &deployment]).expect_status(2).expect_stderr(&[said]);
    };
    let topics = "topics:\n  chatter: ros2:/fleet/chatter\n";
    let blind = "verdicts: { emit: violations, to: \"ros2:/diagnostics\" }\n";
    refused(&format!("{topics}{blind}"), "write `emit: change`");
    refused(
        "ros2: { middleware: zeno }\n",
        "'zeno' is not a middleware: the names are: dds, zenoh, rmw_fastrtps_cpp, rmw_fastrtps_dynamic_cpp, \
         rmw_cyclonedds_cpp, rmw_connextdds, rmw_gurumdds_cpp, rmw_zenoh_cpp; did you mean 'zenoh'?",
    );
    refused("ros2: { rmw: zenoh }\n", "write `middleware`, such as `middleware: rmw_cyclonedds_cpp`");
    refused("ros2: { node: my-node }\n", "did you mean 'my_node'?");
    refused("topics:\n  chatter: ros2:/fleet/chat-ter\n", "did you mean '/fleet/chat_ter'?");
    refused(&format!("ros2: {{ domain: 233 }}\n{topics}"), "domain");
    refused(
        &format!("ros2: {{ middleware: dds, domain: 1 }}\ndds: {{ domain: 2 }}\n{topics}"),
        "rondel.yaml:2:7: ROS 2 is on the domain 1, and DDS on the domain 2",
    );
}

/// Two monitors that read `/diagnostics` and show their verdicts there: each reads what the other one publishes, and leaves out
/// its own.
#[test]
fn diagnostics_are_read_where_they_are_published() {
    let endpoint = free_endpoint();
    for networks in [
        [
            format!(
                "ros2: {{ middleware: zenoh, domain: 8 }}\nzenoh: {{ mode: router, listen: {endpoint} }}\n"
            ),
            format!(
                "ros2: {{ middleware: zenoh, domain: 8 }}\nzenoh: {{ mode: client, connect: {endpoint} }}\n"
            ),
        ],
        std::array::from_fn(|_| "dds: { interface: lo }\n".to_owned()),
    ] {
        let (folder, domain) = (Folder::new(), dds_domain());
        let specification = "topic diagnostics \"/diagnostics\" : diagnostic_msgs/msg/DiagnosticArray\n\
             property NAME = not (any s in diagnostics.status: s.name == \"rondel: NAME\")\n";
        let start = |name: &str, network: &str| {
            folder.file(&format!("{name}.rondel"), specification.replace("NAME", name));
            let text = format!(
                "specification: {name}.rondel\n{network}topics: {{ diagnostics: ros2:/diagnostics }}\n\
                 verdicts: {{ emit: every, to: [stdout, ros2:/diagnostics] }}\n"
            );
            let deployment = folder.file(&format!("{name}.yaml"), text);
            let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_rondel"));
            command.args(["run", &deployment]);
            let is_dds = network.starts_with("dds");
            command.env("ROS_DOMAIN_ID", if is_dds { &*domain } else { "8" });
            let mut run = Process::start(command);
            run.wait_stderr("ready");
            run
        };
        let (mut one, mut two) = (start("first", &networks[0]), start("second", &networks[1]));
        for run in [&mut one, &mut two] {
            // Each has a message about once a second.
            assert_eq!(run.take_stdout(4).len(), 4);
        }
        for run in [one, two] {
            run.terminate();
            let finished = run.finish();
            finished.expect_status(0);
            assert!(!finished.stderr.contains("violated "), "{}", finished.stderr);
        }
    }
}

/// Requests of services are topics over DDS: one that is never answered is found.
#[test]
fn a_service_over_dds_that_never_answers() {
    let (folder, domain) = (Folder::new(), dds_domain());
    let specification = "topic request \"rq/arm/homeRequest\"\ntopic reply \"rr/arm/homeReply\"\n\
         property answered = on(request) -> eventually[0, 2 s] on(reply)\n";
    folder.file("service.rondel", specification);
    let deployment = folder.file(
        "rondel.yaml",
        format!(
            "specification: service.rondel\ndds: {{ interface: lo, domain: {domain} }}\ntopics:\n  \
             request: {{ source: \"dds:rq/arm/homeRequest\", encoding: cdr }}\n  \
             reply: {{ source: \"dds:rr/arm/homeReply\", encoding: cdr }}\n"
        ),
    );
    let mut run = start_rondel(["run", &deployment]);
    run.wait_stderr("ready");
    let own = ["publish", "--to", "dds:rq/arm/homeRequest", "--wait", "60"];
    let network = ["--dds-domain", &domain, "--dds-interface", "lo"];
    let mut request = start_rondel([&own[..], &network].concat());
    request.write(b"{\"a\": 1}\n");
    request.close_input();
    run.wait_stdout("violated      answered");
    request.finish().expect_status(0);
    run.terminate();
    run.finish().expect_status(0);
}

/// The domain of DDS is that of ROS 2: of the deployment or, without one, of the environment.
#[test]
fn the_domain_of_dds_follows_ros_2() {
    let topics = "topics:\n  chatter: ros2:/fleet/chatter\n";
    let validated = |sections: &str, domain: &str| {
        let (_folder, deployment) = folder(&format!("{sections}{topics}"));
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_rondel"));
        command.args(["validate", &deployment]).env("ROS_DOMAIN_ID", domain);
        support::finish(&mut command, b"")
    };
    for (sections, domain, shown) in [
        ("dds: { interface: lo }\n", "9", "domain 9"),
        ("ros2: { domain: 7 }\ndds: { interface: lo }\n", "9", "domain 7"),
        ("ros2: { middleware: rmw_cyclonedds_cpp }\ndds: { interface: lo, domain: 9 }\n", "9", "domain 9"),
        ("ros2: { middleware: rmw_fastrtps_cpp }\n", "9", "domain 9"),
    ] {
        let said = validated(sections, domain);
        said.expect_status(0);
        assert!(said.stdout.contains(shown), "{sections}{}", said.stdout);
    }
    let said = validated("ros2: { middleware: rmw_zenoh_cpp }\n", "9");
    said.expect_status(0);
    assert!(said.stdout.contains("zenoh peer"), "{}", said.stdout);
    validated("dds: { interface: lo }\n", "x")
        .expect_status(2)
        .expect_stderr(&["'x' is not a domain of ROS 2"]);
    validated("dds: { domain: 2 }\n", "9").expect_status(2).expect_stderr(&["ROS 2 is on the domain 9"]);
}

/// Rondel is a node in the graph that nodes of ROS 2 share over DDS, with the ids of its readers and writers.
#[test]
fn a_node_over_dds() {
    let Some(python) = python("ros2: a_node_over_dds") else { return };
    let domain = dds_domain().to_string();
    let (folder, deployment) = folder(&format!(
        "ros2: {{ middleware: dds, domain: {domain}, node: /fleet/rondel }}\ndds: {{ interface: lo, domain: {domain} }}\n\
         topics:\n  chatter: ros2:/fleet/chatter\nverdicts: {{ to: \"ros2:/rondel/verdicts\" }}\n"
    ));
    folder.file("texts", "n 0\n");
    let mut run = start_rondel(["run", &deployment]);
    run.wait_stderr("ready");
    // A participant that joins later receives the graph.
    let mut graph = independent(&python, "dds_graph.py", &["--domain", &domain]);
    graph.wait_stdout("ready");
    let mut nodes = graph.take_stdout(2);
    nodes.sort();
    let sinks = "{\"node\": \"/fleet/rondel_sinks\", \"readers\": [], \"writers\": [\"rt/rondel/verdicts\"]}";
    assert_eq!(nodes, ["{\"node\": \"/fleet/rondel\", \"readers\": [], \"writers\": []}", sinks]);
    // The reader begins with the first publisher.
    let file = folder.path("texts");
    let options = ["rt/fleet/chatter", "--domain", &domain, "--file", &file];
    independent(&python, "dds_publish.py", &options).finish().expect_status(0);
    graph.wait_stdout("{\"node\": \"/fleet/rondel\", \"readers\": [\"rt/fleet/chatter\"], \"writers\": []}");
    run.terminate();
    run.finish().expect_status(0);
    graph.close_input();
    graph.finish().expect_status(0);
}

const BATTERY: &str = "topic battery \"/battery\" : rover_msgs/msg/Battery\n\
     property charged = battery.charge < 0.35 and battery.cells[0].volts > 3 and battery.codes[1] == 2\n";

/// A node that publishes a type without a public definition, and a deployment that reads it.
fn unknown_type(python: &std::path::Path, answer: &str, count: &str) -> (Folder, String, Process) {
    let endpoint = free_endpoint();
    let folder = Folder::new();
    folder.file("battery.rondel", BATTERY);
    let deployment = folder.file(
        "rondel.yaml",
        format!(
            "specification: battery.rondel\nros2: {{ middleware: zenoh, domain: 9 }}\n\
             zenoh: {{ mode: client, connect: {endpoint} }}\ntopics: {{ battery: ros2:/battery }}\n"
        ),
    );
    let options =
        ["/battery", "--domain", "9", "--mode", "router", "--listen", &endpoint, "--answer", answer];
    let mut node =
        independent(python, "ros2_zenoh_described.py", &[&options[..], &["--count", count]].concat());
    node.wait_stdout("ready");
    (folder, deployment, node)
}

#[test]
fn a_node_over_zenoh_describes_its_type() {
    let Some(python) = python("ros2: a_node_over_zenoh_describes_its_type") else { return };
    let (_folder, deployment, mut node) = unknown_type(&python, "right", "5");
    let said = rondel(["validate", &deployment]);
    said.expect_status(0);
    assert!(
        said.stdout.contains("cdr of rover_msgs/msg/Battery, as its publisher describes it"),
        "{}",
        said.stdout
    );
    let run = start_rondel(["run", &deployment, "--count", "5"]);
    node.wait_stdout("queried rover_msgs/msg/Battery True");
    let summary = run.finish();
    summary.expect_status(0).expect_stderr(&[
        "ros2:/battery: messages of rover_msgs/msg/Battery, as its publisher describes them",
        "received 5, checked 5, undecodable 0",
        "charged: violated 1 time, first at step 3",
    ]);
    node.close_input();
    node.finish().expect_status(0);
}

#[test]
fn a_type_that_no_node_describes() {
    let Some(python) = python("ros2: a_type_that_no_node_describes") else { return };
    for (answer, said) in [
        ("none", "its node /independent does not offer the service ~/get_type_description"),
        ("failure", "cannot be used: the node does not describe it: it is a secret"),
        ("other", "by the node /independent cannot be used: it has the hash RIHS01_"),
    ] {
        let (_folder, deployment, _node) = unknown_type(&python, answer, "0");
        let then = "name its definition with `schemas:`";
        rondel(["run", &deployment]).expect_status(2).expect_stderr(&[said, then]);
    }
}

/// A deployment that declares another version of the type than the publisher has.
fn older_version(networks: &str) -> (Folder, String) {
    let folder = Folder::new();
    let specification =
        "topic battery \"/battery\" : rover_msgs/msg/Battery property charged = battery.charge < 0.35";
    folder.file("battery.rondel", specification);
    folder.file("msgs/rover_msgs/msg/Battery.msg", "int32 cycles\nfloat64 charge\n");
    let deployment = format!(
        "specification: battery.rondel\nschemas: msgs\n{networks}topics: {{ battery: ros2:/battery }}\n"
    );
    let deployment = folder.file("rondel.yaml", deployment);
    (folder, deployment)
}

const DIFFERENT: &str = "publishers have different types; each is read as its own: ";

#[test]
fn a_node_over_zenoh_of_another_version_is_read_by_its_own_type() {
    let Some(python) = python("ros2: a_node_over_zenoh_of_another_version_is_read_by_its_own_type") else {
        return;
    };
    let run_with = |answer: &str| {
        let endpoint = free_endpoint();
        let networks = format!(
            "ros2: {{ middleware: zenoh, domain: 9 }}\nzenoh: {{ mode: client, connect: {endpoint} }}\n"
        );
        let (folder, deployment) = older_version(&networks);
        let place = ["/battery", "--domain", "9", "--mode", "router", "--listen", &endpoint];
        let options = ["--wait-for-input", "--count", "5", "--answer", answer];
        let mut node = independent(&python, "ros2_zenoh_described.py", &[&place[..], &options].concat());
        node.wait_stdout("ready");
        let run = start_rondel(["run", &deployment, "--strict", "--count", "5"]);
        (folder, node, run)
    };
    let (_folder, mut node, mut run) = run_with("right");
    let said = run.wait_stderr(DIFFERENT);
    assert!(
        said.contains("field `cycles` is missing in rover_msgs/msg/Battery of node /independent"),
        "{said}"
    );
    node.write(b"send\n");
    run.finish().expect_status(1).expect_stderr(&["received 5, checked 5", "charged: violated 1 time"]);
    node.close_input();
    node.finish();

    // The type is not described: messages are counted, and nothing is satisfied.
    let (_folder, mut node, mut run) = run_with("none");
    run.wait_stderr("ready");
    node.write(b"send\n");
    run.finish().expect_status(4).expect_stderr(&["5 messages on battery", "another type"]);
    node.close_input();
    node.finish();
}

#[test]
fn a_publisher_over_dds_of_another_version_is_read_by_its_own_type() {
    let Some(python) = python("ros2: a_publisher_over_dds_of_another_version_is_read_by_its_own_type") else {
        return;
    };
    let domain = dds_domain();
    let networks = format!(
        "ros2: {{ middleware: dds, domain: {domain} }}\ndds: {{ interface: lo, domain: {domain} }}\n"
    );
    let (_folder, deployment) = older_version(&networks);
    let mut run = start_rondel(["run", &deployment, "--count", "5"]);
    run.wait_stderr("ready");
    let options = ["rt/battery", "--kind", "battery", "--domain", &domain];
    let mut publisher = independent(&python, "dds_typed.py", &options);
    publisher.write(b"wait\n");
    let said = run.wait_stderr(DIFFERENT);
    assert!(said.contains("field `cycles` is missing"), "{said}");
    publisher.wait_stdout("matched");
    publisher.write(b"write 1 5\n");
    run.finish().expect_status(0).expect_stderr(&["received 5, checked 5", "charged: violated 1 time"]);
    publisher.close_input();
    publisher.finish();
}

#[test]
fn a_publisher_of_ros_2_over_dds_describes_its_type() {
    let Some(python) = python("ros2: a_publisher_of_ros_2_over_dds_describes_its_type") else { return };
    let domain = dds_domain();
    let folder = Folder::new();
    folder.file(
        "battery.rondel",
        "topic battery \"/battery\" : rover_msgs/msg/Battery property charged = battery.charge < 0.35",
    );
    let deployment = folder.file(
        "rondel.yaml",
        format!(
            "specification: battery.rondel\nros2: {{ middleware: dds, domain: {domain} }}\n\
             dds: {{ interface: lo, domain: {domain} }}\ntopics: {{ battery: ros2:/battery }}\n"
        ),
    );
    let mut run = start_rondel(["run", &deployment, "--count", "5"]);
    run.wait_stderr("waiting for a publisher of ros2:/battery, to resolve its type");
    let options = ["rt/battery", "--kind", "battery", "--domain", &domain];
    let mut publisher = independent(&python, "dds_typed.py", &options);
    publisher.write(b"wait\n");
    run.wait_stderr("ros2:/battery: messages of ");
    publisher.wait_stdout("matched");
    publisher.write(b"write 1 5\n");
    run.finish().expect_status(0).expect_stderr(&["received 5, checked 5", "charged: violated 1 time"]);
    publisher.close_input();
    publisher.finish();
}
