//! Where verdicts are kept or sent beside networks.
//!
//! A [`Sink`] is a destination: a store, a database, a message broker. Its [`Driver`] gives it a thread and a bounded
//! queue, so that a sink that is slow or down holds nothing else up. The evaluating thread sends verdicts by a [`Feed`];
//! anybody reads the state by a [`Handle`].
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use rondel_event::{Timestamp, TopicId};
//! use rondel_runtime::{Options, PropertyInfo, Session, Stamp, SystemClock};
//! use rondel_sinks::{Begin, Driver, Entry, Failure, PropertyEntry, RunKey, Sink, Written};
//!
//! /// Prints violations.
//! struct Printer;
//!
//! impl Sink for Printer {
//!     fn write(&mut self, entries: &[Entry<'_>], _limit: Duration) -> Result<Written, Failure> {
//!         for entry in entries {
//!             if let Entry::Verdict(verdict) = entry {
//!                 println!("{} {:?} at {}", verdict.property, verdict.verdict, verdict.time);
//!             }
//!         }
//!         Ok(Written { stored: entries.len() as u64, repeated: 0 })
//!     }
//! }
//!
//! let spec = rondel_spec::parse("topic t { x: float } property p = t.x < 3").spec.ok_or("errors")?;
//! let mut session = Session::new(&spec, Options::default())?;
//! let driver = Driver::start("printer", Box::new(Printer), Default::default(), Arc::new(SystemClock))?;
//! let mut feed = driver.feed();
//! let infos = PropertyInfo::all(&spec, None);
//! let properties = infos.iter().map(|info| PropertyEntry::new(info, "")).collect();
//! feed.begin(Begin { run: RunKey(1), series: "demo", properties, ..Begin::default() });
//! session.push(TopicId(0), Stamp::at(Timestamp::from_nanos(5)), br#"{"x": 8.5}"#)?;
//! session.flush();
//! for report in session.reports() {
//!     feed.verdict(&report, Timestamp::from_nanos(7));
//! }
//! feed.send();
//! feed.end(Timestamp::from_nanos(9), "finished");
//! assert_eq!(driver.close(Duration::from_secs(5)).unwritten, 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How a command uses it
//!
//! | when | call |
//! |---|---|
//! | configuration is checked | [`SqliteSink::open`](sqlite::SqliteSink::open): a file that cannot be used is refused before a run begins |
//! | before the first message | [`Driver::start`], [`Driver::feed`], [`Feed::begin`]. Give verdicts ids ([`Options::ids`](rondel_runtime::Options)), or repeated ones cannot be recognised. The name of the series is that of the deployment on its machine; it must differ between deployments that run at the same time |
//! | after each call of the session | [`Feed::verdict`] for every report, then [`Feed::send`] once |
//! | a message is late or lost | [`Feed::loss`], from the notices and omissions of the session |
//! | a sink [notifies people](Sink::notifies) | It skips verdicts with [`VerdictEntry::because_of`], and those that [`Silences`](sqlite::Silences) silence. Reports of [`Session::unmuted`](rondel_runtime::Session::unmuted) go to such sinks only |
//! | statistics, readiness | [`Handle::status`] |
//! | a snapshot is taken, and messages are acknowledged upstream | [`Handle::flush`]: a verdict that a snapshot has behind it must be acknowledged first |
//! | the end | [`Feed::end`], [`Driver::close`] with the time limit of networks |
//!
//! A spool for messages of networks keeps entries as well, since an entry is bytes. Its publisher is a few lines over a
//! driver whose options have [`hands_back`](Options::hands_back):
//!
//! | method of a publisher | call |
//! |---|---|
//! | `offer(payload, limit)` | [`Handle::offer`]; [`Refused::Full`] is "too slow", [`Refused::Closed`] is "closed" |
//! | `publish(payload)` | the same with the largest limit |
//! | `unconfirmed()`, `unconfirmed_payloads(visit)` | [`Handle::unconfirmed`], [`Handle::visit_unconfirmed`] |
//! | `flush(limit)`, `settle(limit)` | [`Handle::flush`] |
//!
//! Then [`Feed::take`] replaces [`Feed::send`], and passes each entry to the queue of that publisher.
//!
//! A run with several sinks encodes its reports once, with an [`Encoder`], and passes them on by [`Feed::encoded`].
//!
//! # A further sink
//!
//! A database or broker implements [`Sink`] in a folder of its own, behind a feature. [`Sink::write`] connects, writes all
//! entries within its limit and waits for the acknowledgement; the driver does the rest. A sink with a request for each
//! verdict implements [`Sink::write_some`], so that those before a failure are not repeated. Brokers set
//! [`Sink::wants_json`] and pass the id of a verdict on (`Nats-Msg-Id`, the key of a Kafka record, the id of a CloudEvent),
//! so that repeated verdicts are recognised there.

mod driver;
mod entry;
mod feed;
#[cfg(feature = "http")]
mod http;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod operate;
#[cfg(any(feature = "nats", feature = "kafka"))]
mod outgoing;
mod queue;
mod shared;
mod sink;
mod status;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod tables;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod violation;
mod worker;

pub use driver::{Closed, Driver, Handle, Options, SlowConsumer};
pub use entry::{
    Begin, DecodeEntryError, End, Entry, Loss, PropertyEntry, Reached, RunKey, RunKind, Truth, VerdictEntry,
};
pub use feed::{Encoder, Feed, object};
pub use queue::Bounds;
pub use shared::Refused;
pub use sink::{Failure, FailureKind, Progress, Sink, Written};
pub use status::{Condition, Dropped, Reason, Status};

#[cfg(feature = "webhook")]
pub mod alertmanager;
#[cfg(feature = "connector")]
pub mod connector;
#[cfg(feature = "kafka")]
pub mod kafka;
#[cfg(feature = "nats")]
pub mod nats;
#[cfg(feature = "otlp")]
pub mod otlp;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "sqlite")]
pub mod sqlite;
#[cfg(feature = "tls")]
pub mod tls;
#[cfg(feature = "webhook")]
pub mod webhook;
