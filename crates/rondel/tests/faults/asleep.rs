//! A monitor that was stopped reports no violations for the silence that it caused itself.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;

use crate::stopped::end;
use crate::support::network::{arguments, dds, dds_domain, free_endpoint, zenoh};
use crate::support::{Folder, start_rondel};

const SPECIFICATION: &str = "topic state { n: int }\n\
                             @time(dense) property alive = once[0, 1 s] on(state)\n\
                             property young = age(state) <= 1 s\n";

#[test]
fn a_monitor_that_was_stopped_blames_no_publisher() {
    let (folder, endpoint) = (Folder::new(), free_endpoint());
    folder.file("p.rondel", SPECIFICATION);
    // Once by the times of arrival, once by the times of the messages.
    for (time, is_withheld) in [("", true), (", time: t", false)] {
        let text = format!(
            "specification: p.rondel\nzenoh: {{ mode: peer, listen: {endpoint} }}\n\
             topics:\n  state: {{ source: zenoh:state{time} }}\nverdicts: {{ emit: change, to: [stdout] }}\n"
        );
        let deployment = folder.file("d.yaml", &text);
        let mut run = start_rondel(["run", &deployment, "--format", "json", "--summary", "json"]);
        run.wait_stderr("ready");
        let own = ["publish", "--to", "zenoh:state", "--wait", "60"];
        let mut publisher = start_rondel(arguments(&own, &zenoh("peer", &endpoint)));
        let mut input = publisher.take_input();
        let ended = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&ended);
        let writer = std::thread::spawn(move || {
            while !until.load(Ordering::Relaxed) {
                let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
                let t = now.as_secs_f64();
                input.write_all(format!("{{\"n\":1,\"t\":{t:.6}}}\n").as_bytes()).unwrap();
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        run.wait_stdout("alive");
        run.signal("STOP");
        std::thread::sleep(Duration::from_secs(2));
        run.signal("CONT");
        run.wait_stderr("the monitor did not run for");
        // Withheld verdicts are certain again.
        if is_withheld {
            while !run.wait_stdout("alive").contains("satisfied") {}
        }
        run.terminate();
        ended.store(true, Ordering::Relaxed);
        let finished = run.finish();
        writer.join().unwrap();
        publisher.finish();
        assert_eq!(finished.status, Some(0), "{}", finished.stderr);
        let summary = finished.stderr.lines().rev().find(|line| line.starts_with('{')).unwrap();
        let summary: Value = serde_json::from_str(summary).unwrap();
        let pauses = summary["pauses"].as_array().unwrap();
        let lasted = |pause: &Value| pause["until"].as_f64().unwrap() - pause["from"].as_f64().unwrap();
        assert!(pauses.iter().any(|pause| lasted(pause) > 1.8), "{summary}");
        for property in summary["properties"].as_array().unwrap() {
            assert_eq!(property["violations"], 0, "{summary}");
            assert!(is_withheld || property.get("withheld").is_none(), "{summary}");
        }
    }
}

/// After a stop that is longer than the lease of DDS, the reports about it reach a subscriber that was healthy all the
/// time, and the outage has the span of the stop.
#[test]
fn reports_of_a_long_stop_reach_their_subscriber_on_dds() {
    let (folder, domain) = (Folder::new(), dds_domain());
    folder.file("p.rondel", SPECIFICATION);
    let text = format!(
        "specification: p.rondel\ndds: {{ domain: {domain}, interface: lo }}\n\
         topics: {{ state: dds:state }}\nverdicts: {{ to: stdout }}\nalignment: {{ reports: \"dds:reports\" }}\n"
    );
    let deployment = folder.file("d.yaml", text);
    let mut run = start_rondel(["run", &deployment, "--summary", "json"]);
    run.wait_stderr("ready");
    let mut reports = start_rondel(arguments(&["tap", "dds:reports", "--format", "json"], &dds(&domain)));
    reports.wait_stderr("ready");
    let mut publisher =
        start_rondel(arguments(&["publish", "--to", "dds:state", "--wait", "60"], &dds(&domain)));
    publisher.write(b"{\"n\":1}\n");
    run.wait_stdout("alive");
    run.signal("STOP");
    std::thread::sleep(Duration::from_secs(13));
    run.signal("CONT");
    for kind in ["\"report\":\"paused\"", "\"report\":\"blind\"", "\"report\":\"outage\""] {
        reports.wait_stdout(kind);
    }
    let (_, _, summary) = end(run);
    let outages = summary["outages"].as_array().unwrap();
    let lasted = |outage: &Value| outage["until"].as_f64().unwrap() - outage["from"].as_f64().unwrap();
    assert!(!outages.is_empty() && outages.iter().all(|outage| lasted(outage) > 12.5), "{summary}");
    publisher.finish();
}
