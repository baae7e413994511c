//! Account of messages (published, checked, delivered, lost, reported), and the marks that a case has to reach.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::case::{Case, FAULTS, Fault, LOADS, NETWORKS, Network, PARTS, Part, Promise, SECONDS, name};

/// Tolerance for waits on a busy machine, in seconds.
const MARGIN: f64 = 1.0;
/// Time limit for the end of a monitor, in seconds.
const ENDS: f64 = 5.0;
/// The largest resident memory of the monitor, in MiB: half of what the documents advise for its container.
pub const MEMORY: u64 = 128;
/// The least throughput while a consumer is stopped, as a part of that before.
const THROUGHPUT: f64 = 0.9;

/// Time before the fault at which every consumer is connected to all others, in seconds.
const CONNECTED: f64 = 0.25;

/// A verdict at its consumer: the number of its message, and the time of arrival in seconds since 1970.
pub struct Arrival {
    pub n: u64,
    pub at: f64,
}

/// The verdicts in the output of a monitor or consumer. What a process could not finish to print is left out.
pub fn read(outputs: &[PathBuf]) -> Vec<Arrival> {
    let mut arrivals = Vec::new();
    let mut line = Vec::new();
    for path in outputs {
        let Ok(file) = File::open(path) else { continue };
        let mut reader = BufReader::with_capacity(1 << 20, file);
        loop {
            line.clear();
            match reader.read_until(b'\n', &mut line) {
                Ok(1..) => arrivals.extend(arrival(&line)),
                _ => break,
            }
        }
    }
    arrivals
}

/// Parses a line. Only its two ends matter, which may be far apart: `TIME {"property"…,"time":N,"step":…}`, the same without
/// a time, or `{"topic"…,"arrival":TIME,…,"data":{…}}`.
fn arrival(line: &[u8]) -> Option<Arrival> {
    let text = |bytes| std::str::from_utf8(bytes).unwrap_or_default();
    if !line.ends_with(b"}\n") && !line.ends_with(b"}}\n") {
        return None;
    }
    let (begin, end) = (text(&line[..line.len().min(160)]), text(&line[line.len().saturating_sub(120)..]));
    let number = |text: &str| -> Option<f64> {
        let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
        text[..end].parse().ok()
    };
    let at = begin.split_once("\"arrival\":").map_or(begin, |(_, rest)| rest);
    let (_, n) = end.rsplit_once("\"time\":")?;
    Some(Arrival { n: number(n)? as u64, at: number(at).unwrap_or(0.0) })
}

/// Measurements of a case.
pub struct Course {
    /// Numbers from 0 to this were written to publishers, and the first number of each publisher.
    pub written: u64,
    pub begins: Vec<u64>,
    /// Messages that the publisher could not publish, by its own count.
    pub failed: u64,
    /// Messages that it names as dropped or not confirmed.
    pub unconfirmed: u64,
    /// The verdicts that the monitor printed, and those that arrived at the consumers.
    pub checked: Vec<Arrival>,
    pub consumer: Vec<Arrival>,
    pub healthy: Vec<Arrival>,
    /// The summary of the monitor, if there is one, and its exit status.
    pub summary: Option<Value>,
    pub status: Option<i32>,
    /// The begin of the fault and the end of writing, in seconds since 1970.
    pub fault: f64,
    pub stopped: f64,
    /// Messages checked per second of the fault, as a part of those before it.
    pub throughput: f64,
    /// Time from the end of the fault until verdicts came without gaps, in seconds.
    pub goes_on: Option<f64>,
    /// Time that the monitor took to end, if it did, in seconds.
    pub ended: Option<f64>,
    pub memory_mib: u64,
}

/// Outcomes of the published messages. Each message is in one of the parts, or the balance does not add up.
struct Balance {
    published: u64,
    /// Checked, and not fetched again.
    received: u64,
    recovered: u64,
    /// By the numbers of publishers.
    lost: u64,
    /// Known otherwise: by the network of the monitor, by the publisher, or as they cannot be decoded.
    dropped: u64,
    /// Missing, but in none of these numbers.
    rest: u64,
    /// More than are missing.
    excess: u64,
}

impl Balance {
    fn new(published: u64, checked: u64, recovered: u64, lost: u64, dropped: u64) -> Balance {
        // A message may be received and recovered.
        let recovered = recovered.min(checked);
        let (missing, named) = (published.saturating_sub(checked), lost + dropped);
        let (rest, excess) = (missing.saturating_sub(named), named.saturating_sub(missing));
        Balance { published, received: checked - recovered, recovered, lost, dropped, rest, excess }
    }

    /// The equation, with the reason for messages that no number names.
    fn text(&self, reason: &str) -> String {
        let Balance { published, received, recovered, lost, dropped, rest, excess } = self;
        let mut text = format!(
            "published {published} = received {received} + recovered {recovered} + lost {lost} + dropped {dropped}"
        );
        if *rest > 0 {
            let reason = if reason.is_empty() { "NOT REPORTED" } else { reason };
            text.push_str(&format!(" + {rest} ({reason})"));
        }
        if *excess > 0 {
            text.push_str(&format!(" - {excess} (REPORTED, BUT NOT MISSING)"));
        }
        text
    }
}

/// Figures of a case that marks depend on.
struct Figures<'r> {
    checked: &'r HashSet<u64>,
    balance: &'r Balance,
    /// Reason for messages that no number names.
    reason: &'r str,
    missing: u64,
    lost: u64,
    /// Longest time without a verdict, in seconds.
    hold_up: f64,
    healthy_missing: u64,
    consumer_missing: u64,
    undelivered: u64,
}

impl Course {
    /// The result of a case: the figures of the table, and the marks that were missed.
    pub fn result(&self, case: &Case) -> Value {
        let checked: HashSet<u64> = self.checked.iter().map(|arrival| arrival.n).collect();
        let published = self.published(case, &checked);
        let missing = published.saturating_sub(checked.len() as u64);
        let none = Value::Null;
        let summary = self.summary.as_ref().unwrap_or(&none);
        let count = |value: &Value| value.as_u64().unwrap_or(0);
        let undelivered: u64 =
            summary["undelivered"].as_array().into_iter().flatten().map(|sink| count(&sink["count"])).sum();
        let topic = &summary["topics"][0];
        let recovered = count(&topic["recovered"]);
        let numbered = count(&topic["lost"]);
        // Zenoh may spoil a message of a connection that it closes.
        let dropped = self.failed
            + count(&summary["dropped"]).saturating_sub(undelivered)
            + count(&topic["undecodable"]);
        let lost = numbered + dropped;
        let outages = summary["outages"].as_array().map_or(0, Vec::len) as u64 + count(&summary["breaks"]);
        let delivered = self.delivered(&self.consumer);
        let healthy = self.delivered(&self.healthy);
        let hold_up = self.hold_up();
        let balance = Balance::new(published, checked.len() as u64, recovered, numbered, dropped);
        let reason = match case.promise() {
            _ if balance.rest == 0 => "",
            Promise::Unnoticed(why) => why,
            Promise::Kept => "the broker still keeps them",
            Promise::Noticed if outages > 0 => "in a reported outage",
            _ if case.seconds.is_none() => "on their way",
            _ if self.unconfirmed >= balance.rest => "reported by the publisher",
            _ => "",
        };
        let figures = Figures {
            checked: &checked,
            balance: &balance,
            reason,
            missing,
            lost,
            hold_up,
            healthy_missing: healthy.1,
            consumer_missing: delivered.1,
            undelivered,
        };
        let missed = self.missed(case, &figures);
        json!({
            "network": name(&NETWORKS, &case.network),
            "participant": name(&PARTS, &case.part),
            "fault": name(&FAULTS, &case.fault),
            "seconds": name(&SECONDS, &case.seconds),
            "load": name(&LOADS, &case.load),
            "rate": case.rate(),
            "published": published,
            "checked": checked.len(),
            "twice": self.checked.len() - checked.len(),
            "received": balance.received,
            "recovered": balance.recovered,
            "lost": balance.lost,
            "dropped": balance.dropped,
            "rest": balance.rest,
            "reason": reason,
            "balance": balance.text(reason),
            "outages": outages,
            "consumer_missing": delivered.1,
            "healthy_missing": healthy.1,
            "undelivered": undelivered,
            "hold_up": hold_up,
            "throughput": self.throughput,
            "goes_on": self.goes_on,
            "ended": self.ended,
            "status": self.status,
            "memory_mib": self.memory_mib,
            "missed": missed,
        })
    }

    /// The marks that a case has to reach and did not.
    fn missed(&self, case: &Case, figures: &Figures<'_>) -> Vec<String> {
        let mut missed = Vec::new();
        let mut mark = |reached: bool, what: &str| {
            if !reached {
                missed.push(what.to_owned());
            }
        };
        mark(self.ended.is_some_and(|seconds| seconds <= ENDS), "end");
        mark(self.summary.is_some(), "summary");
        mark(self.memory_mib <= MEMORY, "memory");
        // While the fault lasts, what is on its way is in neither count.
        if case.seconds.is_some() {
            let accounted = match case.promise() {
                Promise::All => figures.missing == 0 && figures.lost == 0,
                Promise::Counted | Promise::Noticed | Promise::Unnoticed(_) => {
                    figures.balance.excess == 0 && (figures.balance.rest == 0 || !figures.reason.is_empty())
                }
                Promise::Kept => {
                    let checked = figures.checked;
                    figures.lost == 0
                        && checked.iter().max().is_none_or(|last| last + 1 == checked.len() as u64)
                }
            };
            mark(accounted, "account");
            match case.part {
                Part::Consumer => {
                    mark(figures.hold_up <= case.network.wait() + MARGIN, "hold-up");
                    let stalled =
                        case.fault == Fault::Pause && case.seconds.is_some_and(|seconds| seconds >= 15);
                    mark(!stalled || self.throughput >= THROUGHPUT, "throughput");
                    let Figures { healthy_missing, consumer_missing, undelivered, .. } = *figures;
                    let adds_up = self.verdicts_add_up(case, healthy_missing, consumer_missing, undelivered);
                    mark(adds_up, "verdicts");
                }
                _ => mark(self.goes_on.is_some_and(|seconds| seconds <= case.goes_on_within()), "goes on"),
            }
        }
        missed
    }

    /// The number of published messages: what a publisher that was killed had not published does not count, which is
    /// what lies between its last message that came and the first one of the next publisher.
    fn published(&self, case: &Case, checked: &HashSet<u64>) -> u64 {
        if (case.part, case.fault) != (Part::Publisher, Fault::Kill) {
            return self.written;
        }
        let second = self.begins.get(1).copied().unwrap_or(self.written);
        let last = (0..second).rev().find(|n| checked.contains(n)).map_or(0, |n| n + 1);
        last + (self.written - second)
    }

    /// Numbers of verdicts that a consumer got, and that it missed since the first one that came just before the fault or
    /// later. A plain subscriber of Zenoh may miss some while other peers still connect.
    fn delivered(&self, arrivals: &[Arrival]) -> (u64, u64) {
        let got: HashSet<u64> = arrivals.iter().map(|arrival| arrival.n).collect();
        let connected = arrivals.iter().filter(|arrival| arrival.at >= self.fault - CONNECTED);
        let Some(first) = connected.map(|arrival| arrival.n).min() else {
            return (got.len() as u64, self.checked.len() as u64);
        };
        let due: HashSet<u64> =
            self.checked.iter().map(|arrival| arrival.n).filter(|n| *n >= first).collect();
        (got.len() as u64, due.difference(&got).count() as u64)
    }

    /// Whether the verdicts that consumers did not get were reported, as far as the documents promise it.
    fn verdicts_add_up(&self, case: &Case, healthy_missing: u64, missing: u64, undelivered: u64) -> bool {
        let healthy = match case.network {
            // All subscribers of a topic lose the same verdicts.
            Network::Dds => healthy_missing == undelivered,
            _ => healthy_missing == 0,
        };
        let faulty = match (case.network, case.fault) {
            // A consumer that is gone, and one behind a router, is not known to the monitor.
            (_, Fault::Kill) | (Network::ZenohClient, _) => true,
            // Its lease of 10 s expires.
            (Network::Dds, _) => missing >= undelivered,
            // The sender does not know the content of the connection's buffers.
            (Network::ZenohPeer | Network::ZenohRouter, _) => {
                undelivered <= missing && (missing == 0 || undelivered > 0)
            }
            (Network::Mqtt1, _) => missing == 0,
            // The broker still keeps the last ones, as after a fault of the monitor.
            (Network::Mqtt2, _) => missing == 0 || self.got_the_first(),
        };
        healthy && faulty
    }

    /// Whether the consumer got all verdicts up to its last one.
    fn got_the_first(&self) -> bool {
        let got: HashSet<u64> = self.consumer.iter().map(|arrival| arrival.n).collect();
        let (first, last) = (got.iter().min().copied(), got.iter().max().copied());
        first.zip(last).is_some_and(|(first, last)| last - first + 1 == got.len() as u64)
    }

    /// The longest time without a verdict at the healthy consumer, from the fault to the end of writing.
    fn hold_up(&self) -> f64 {
        let mut last = self.fault;
        let mut longest = 0.0f64;
        for arrival in self.healthy.iter().filter(|arrival| arrival.at >= self.fault) {
            longest = longest.max(arrival.at.min(self.stopped) - last);
            last = arrival.at.max(last);
        }
        longest.max(self.stopped - last)
    }
}

#[test]
fn row_adds_up_only_if_every_message_is_named_once() {
    let balance = |checked, recovered, lost, dropped| Balance::new(10, checked, recovered, lost, dropped);
    let whole = balance(7, 2, 2, 1);
    assert_eq!((whole.rest, whole.excess), (0, 0));
    assert_eq!(whole.text(""), "published 10 = received 5 + recovered 2 + lost 2 + dropped 1");
    let ends = |balance: Balance, reason, end: &str| assert!(balance.text(reason).ends_with(end));
    ends(balance(7, 2, 1, 0), "", " + dropped 0 + 2 (NOT REPORTED)");
    ends(balance(7, 2, 1, 0), "kept", " + dropped 0 + 2 (kept)");
    ends(balance(9, 0, 2, 0), "", " + dropped 0 - 1 (REPORTED, BUT NOT MISSING)");
}
