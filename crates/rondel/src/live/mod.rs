//! Everything that joins networks.
//!
//! | module | contents |
//! |---|---|
//! | [`networks`], [`discover`] | options and joining; types that publishers describe |
//! | [`listener`], [`reader`] | subscriptions, types, the end and the account of what is missing; the command that reads |
//! | [`running`], [`publishers`] | a run of a deployment: its start, sinks, subscriptions, end and summary |
//! | [`pipeline`] | messages of the networks into a session, reports to their sinks |
//! | [`standby`] | groups of runs, of which one publishes its verdicts |
//! | [`gate`] | gates, which pass messages on while properties hold |
//! | [`group`] | the partitions of a member of a consumer group, each with its state |
//! | [`outgoing`] | messages from a file to networks, by a schedule |
//! | [`metrics`] | metrics for Prometheus, and probes of the health of a run |
//! | [`page`], [`tap`] | the page of a run; copies of messages while a viewer watches |
//! | [`foxglove`] | the server for the Foxglove application, with copies of verdicts and messages while a client has subscribed |
//! | `http` | the HTTP server of metrics, of the page and for Foxglove |
//! | [`service`] | notifications to a service manager, such as systemd |
//! | [`losses`], [`health`], [`watchdog`] | losses, the state of a run, and stalls of the evaluating thread |
//! | [`resume`], [`signals`] | snapshots in files; the end by a signal |
//! | [`reload`] | an edited specification and deployment for a run |
//! | [`acting`] | the start of actions on verdicts |
//! | [`audited`] | the start and the end of a run in its audit file |

pub mod acting;
pub mod audited;
pub mod discover;
pub mod foxglove;
pub mod gate;
pub mod group;
pub mod health;
#[cfg(any(feature = "metrics", feature = "page"))] // `foxglove` contains `page`
pub mod http;
pub mod listener;
pub mod losses;
pub mod metrics;
pub mod networks;
pub mod outgoing;
pub mod page;
pub mod pipeline;
pub mod publishers;
pub mod reader;
pub mod reload;
pub mod resume;
pub mod running;
pub mod service;
pub mod signals;
pub mod standby;
pub mod subscriptions;
pub mod tap;
pub mod watchdog;
