//! Metrics of a member of a group, and of its actions.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rondel_testkit::LIMIT;

use super::{OPEN_METRICS, get, monitor, parse};
use crate::support::network::{arguments, free_endpoint, zenoh};
use crate::support::{Folder, start_rondel};

/// The name of a series, its labels and its value.
type Series<'a> = (&'a str, &'a [(&'a str, &'a str)], f64);

/// A sign of life with an epoch that no member reaches.
const FORGED: &str = r#"{"group":"g","member":"000000000000003f","number":1,"epoch":9007199254740999,"prefer":0,"state":"standby","ends":false,"process":1,"since":0,"specification":"0","lease":500000000}"#;

#[test]
fn group_and_actions_are_counted() {
    let (folder, endpoint) = (Folder::new(), free_endpoint());
    let more = "group: { name: g, lease: 500 ms }\nmetrics: 127.0.0.1:0\nactions:\n\
                \x20 - { properties: shut, publish: { to: zenoh:alarm, message: open }, limit: { total: 1 } }\n\
                \x20 - { properties: shut, publish: { to: zenoh:alarm, message: still open } }\n";
    let (mut run, address) = monitor(&folder, &endpoint, more);
    run.wait_stderr("active in epoch 1");
    let publish = |topic: &str, lines: &[&str]| {
        let own = ["publish", "--to", topic, "--wait", "60"];
        let mut feed = start_rondel(arguments(&own, &zenoh("client", &endpoint)));
        lines.iter().for_each(|line| feed.write(format!("{line}\n").as_bytes()));
        feed.close_input();
        feed.finish().expect_status(0);
    };
    publish("zenoh:rondel/group/g", &[FORGED]);
    run.wait_stderr("ignores a sign of life of member 000000000000003f");
    publish("zenoh:rondel/group/g", &[r#"{"group":"another"}"#]);
    run.wait_stderr("ignores 1 message on the topic of the group that cannot be read");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let doors = ["a", "b"].map(|id| format!("{{\"t\":{now},\"id\":\"{id}\",\"open\":true}}"));
    publish("zenoh:door", &doors.each_ref().map(String::as_str));
    let of_alarm = |result| [("action", "publish zenoh:alarm"), ("result", result)];
    let [done, limited, failed, dropped] = ["done", "limited", "failed", "dropped"].map(of_alarm);
    let expected: [Series<'_>; 18] = [
        ("rondel_actions_total", &done, 3.0),
        ("rondel_actions_total", &limited, 1.0),
        ("rondel_actions_total", &failed, 0.0),
        ("rondel_actions_total", &dropped, 0.0),
        ("rondel_pending_actions", &[("action", "publish zenoh:alarm")], 0.0),
        ("rondel_standby_state", &[("state", "active")], 1.0),
        ("rondel_standby_state", &[("state", "fenced")], 0.0),
        ("rondel_standby_epoch", &[], 1.0),
        ("rondel_standby_members", &[], 0.0),
        ("rondel_standby_take_overs_total", &[], 1.0),
        ("rondel_standby_fenced_total", &[], 0.0),
        ("rondel_standby_late", &[], 0.0),
        ("rondel_standby_uncertain_topics", &[], 0.0),
        ("rondel_standby_missed_total", &[], 0.0),
        ("rondel_standby_ignored_signs_total", &[("reason", "epoch")], 1.0),
        ("rondel_standby_ignored_signs_total", &[("reason", "lease")], 0.0),
        ("rondel_standby_ignored_signs_total", &[("reason", "unreadable")], 1.0),
        ("rondel_pauses_total", &[("cause", "stopped")], 0.0),
    ];
    let deadline = Instant::now() + LIMIT;
    loop {
        let scrape = parse(&get(&address, "/metrics", OPEN_METRICS).body, true);
        let differs = |(name, labels, value): &&Series<'_>| scrape.value(name, labels) != *value;
        let Some(different) = expected.iter().find(differs) else { break };
        assert!(Instant::now() < deadline, "{different:?}: {:#?}", scrape.samples);
        std::thread::sleep(Duration::from_millis(20));
    }
    run.terminate();
    run.finish().expect_status(0);
}
