//! ROS 2 as a source and a sink, over both middlewares, among programs that are not ours.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

mod support;

use serde_json::Value;
use support::network::{dds_domain, free_endpoint, independent, python};
use support::process::Process;
use support::{Folder, rondel};

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
fn zenoh() {
    let Some(python) = python("ros2: zenoh") else { return };
    let endpoint = free_endpoint();
    let (_folder, deployment) = folder(&format!(
        "ros2: {{ middleware: zenoh, domain: 7, node: /fleet/rondel }}\nzenoh: {{ mode: router, listen: {endpoint} }}\n\
         topics:\n  chatter: ros2:/fleet/chatter\nverdicts: {{ to: ros2:/fleet/verdict }}\n"
    ));
    rondel(["validate", &deployment]).expect_status(0);
    let network = ["--domain", "7", "--connect", &endpoint];
    let mut run = Process::rondel(["run", &deployment, "--count", "6", "--wait-subscribers", "60"]);
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
    // Messages are missing, so that the run is not without a doubt.
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

#[test]
fn dds() {
    let Some(python) = python("ros2: dds") else { return };
    let domain = dds_domain().to_string();
    let folder = Folder::new();
    let deployment = folder.file(
        "rondel.yaml",
        format!(
            "formula: n != 4\nros2: {{ middleware: dds, domain: {domain} }}\ndds: {{ interface: lo, domain: {domain} }}\n\
             topics: {{ trace: {{ source: ros2:/fleet/chatter, encoding: json }} }}\nverdicts: {{ to: ros2:/fleet/verdict }}\n"
        ),
    );
    let options = ["rt/fleet/verdict", "--domain", &domain, "--count", "2", "--print", "--quiet", "30"];
    let mut subscriber = independent(&python, "dds_subscribe.py", &options);
    subscriber.wait_stdout("ready");
    let mut run = Process::rondel(["run", &deployment, "--count", "5", "--wait-subscribers", "60"]);
    run.wait_stderr("ready");
    let options = ["rt/fleet/chatter", "--domain", &domain, "--count", "5"];
    independent(&python, "dds_publish.py", &options).finish().expect_status(0);
    run.finish().expect_status(0).expect_stderr(&["received 5, checked 5"]);
    let verdicts = subscriber.finish();
    verdicts.expect_status(0);
    assert!(verdicts.stdout.contains("\"step\":4,\"verdict\":\"violated\""), "{}", verdicts.stdout);
}

#[test]
fn mistakes() {
    let refused = |sections: &str, said: &str| {
        let (_folder, deployment) = folder(sections);
        rondel(["validate", &deployment]).expect_status(2).expect_stderr(&[said]);
    };
    let topics = "topics:\n  chatter: ros2:/fleet/chatter\n";
    refused(
        "ros2: { middleware: zeno }\n",
        "'zeno' is not a middleware: the names are: dds, zenoh; did you mean 'zenoh'?",
    );
    refused("ros2: { rmw: zenoh }\n", "write `middleware: dds` or `middleware: zenoh`");
    refused("ros2: { node: my-node }\n", "did you mean 'my_node'?");
    refused("topics:\n  chatter: ros2:/fleet/chat-ter\n", "did you mean '/fleet/chat_ter'?");
    refused(&format!("ros2: {{ domain: 233 }}\n{topics}"), "domain");
}
