//! The page of a run, a store or a checked recording: its API and its assets.
//!
//! A [`Page`] answers requests over a store of verdicts, which every run with a page has, and over what a run adds to
//! it: the text of the specification ([`Described`]) and the present figures ([`Live`]). It opens no socket: [`router`]
//! is served by the HTTP server of the command, and [`keep`] runs beside it. `docs/reference/openapi.yaml` describes the
//! answers; a test holds them against it.
//!
//! | module | contents |
//! |---|---|
//! | `server` | requests and responses of axum; the headers that every response has |
//! | `request`, `answer` | a request as data; answers and errors |
//! | `guard` | hosts, token, limits of rate and viewers |
//! | `api`, `operators` | from paths to answers; actions of operators |
//! | `store` | queries over the store |
//! | `events` | server-sent events |
//! | `thin` | timelines and bands of values, thinned to a width |
//! | `describe` | the text of a specification, with the fields that its properties read |
//! | `live`, `sampling` | figures of a run; rates; samples of fields while a viewer requests them |
//! | `playground` | specifications of viewers, checked by the program |
//! | `assets` | the files of the page, as bytes |
//! | `foxglove` | a WebSocket server for the Foxglove application, with the feature of this name |

mod answer;
mod api;
mod assets;
mod describe;
mod events;
#[cfg(feature = "foxglove")]
pub mod foxglove;
mod guard;
mod live;
mod operators;
mod page;
mod playground;
mod request;
mod sampling;
mod server;
mod store;
mod thin;

pub use answer::Reply;
pub use describe::{Described, Field, Place, PropertyText};
pub use guard::{Access, MOST_VIEWERS};
pub use live::{Figures, Live, Message, NetworkFigures, SinkFigures, TopicFigures};
pub use page::{Kind, Page, Settings, check_store};
pub use playground::{Checker, Trace, diagnostics_json};
pub use request::Request;
pub use sampling::StoredSignal;
pub use server::{keep, router};
