//! Loading from a page, on threads of their own: when something has changed, when something else is to be shown, and every
//! two seconds.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use super::answers::{Overview, RunState, TopicRow, list};
use super::client::{Client, Failure, encoded};
use super::detail::{self, DetailLine};
use super::screen::Message;

/// Minimum time between two loads.
const SOONEST: Duration = Duration::from_millis(200);
/// Maximum time between two loads.
const LATEST: Duration = Duration::from_secs(2);
/// Time after which a broken connection is opened again.
const AGAIN: Duration = Duration::from_secs(1);
/// The same for events that the server refuses, as with too many viewers: properties are then loaded every two seconds.
const REFUSED: Duration = Duration::from_secs(10);
/// Properties of a load: those shown, and some before and after them.
pub const WINDOW: usize = 400;
/// Maximum number of topics.
const TOPICS: usize = 10_000;
/// Maximum number of entries of an answer of the API.
pub const PART: usize = 1000;

/// Properties to load.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OverviewQuery {
    /// Part of a name.
    pub search: String,
    /// Name of a verdict, or empty.
    pub verdict: &'static str,
    /// Name of an order.
    pub sort: &'static str,
    /// Position of the first one.
    pub offset: usize,
}

/// A property or a topic that is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A property, by its name.
    Property(String),
    /// A topic.
    Topic(String),
}

/// Everything to load.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The properties.
    pub overview: OverviewQuery,
    /// The part of a name of topics, if they are shown.
    pub topics: Option<String>,
    /// The open subject.
    pub open: Option<Subject>,
}

/// Result of a load.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Loaded {
    /// The request.
    pub wanted: Wanted,
    /// The state of the run.
    pub state: RunState,
    /// The properties.
    pub overview: Overview,
    /// The topics, or why there are none.
    pub topics: Option<Result<Vec<TopicRow>, String>>,
    /// The open subject, or why it cannot be shown.
    pub open: Option<Result<Vec<DetailLine>, String>>,
}

/// Requests of the screen to the thread that loads.
#[derive(Debug, Default)]
pub struct Requests {
    state: Mutex<(Wanted, bool)>,
    changed: Condvar,
}

impl OverviewQuery {
    /// The path with its parameters.
    pub fn target(&self, limit: usize) -> String {
        let OverviewQuery { search, verdict, sort, offset } = self;
        format!(
            "/api/v1/overview?search={}&verdict={verdict}&sort={sort}&offset={offset}&limit={limit}",
            encoded(search)
        )
    }
}

impl Requests {
    fn lock(&self) -> MutexGuard<'_, (Wanted, bool)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests a load if it differs from the last one.
    pub fn want(&self, wanted: &Wanted) {
        let mut state = self.lock();
        if state.0 != *wanted {
            *state = (wanted.clone(), true);
            self.changed.notify_one();
        }
    }

    /// Requests a load of the same.
    fn refresh(&self) {
        self.lock().1 = true;
        self.changed.notify_one();
    }

    /// Waits for a request, at most until the next load is due.
    fn next(&self) -> Wanted {
        let state = self.lock();
        let waited = self.changed.wait_timeout_while(state, LATEST, |(_, is_due)| !*is_due);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.1 = false;
        state.0.clone()
    }
}

/// Loads all topics that match.
pub fn topics(client: &mut Client, search: &str) -> Result<Vec<TopicRow>, Failure> {
    let mut all = Vec::new();
    loop {
        let target = format!("/api/v1/topics?search={}&offset={}&limit={PART}", encoded(search), all.len());
        let mut part = list(&client.get(&target)?, "topics", TopicRow::of);
        let is_last = part.len() < PART;
        all.append(&mut part);
        if is_last || all.len() >= TOPICS {
            return Ok(all);
        }
    }
}

/// Loads an open property or topic.
fn open(client: &mut Client, subject: &Subject) -> Result<Vec<DetailLine>, Failure> {
    match subject {
        Subject::Property(name) => {
            let name = encoded(name);
            let property = client.get(&format!("/api/v1/properties/{name}"))?;
            let instances = client.get(&format!("/api/v1/properties/{name}/instances?limit=20"))?;
            let violations = client.get(&format!("/api/v1/violations?property={name}&limit=5"))?;
            Ok(detail::property(&property, &instances, &violations))
        }
        Subject::Topic(name) => Ok(detail::topic(&client.get(&format!("/api/v1/topics/{}", encoded(name)))?)),
    }
}

/// Separates a refusal, which concerns a part of the screen, from a server that does not answer.
fn part<T>(result: Result<T, Failure>) -> Result<Result<T, String>, Failure> {
    match result {
        Ok(value) => Ok(Ok(value)),
        Err(Failure::Refused(_, why)) => Ok(Err(why)),
        Err(failure) => Err(failure),
    }
}

/// Loads.
///
/// # Errors
/// The server does not answer, or refuses the present verdicts.
pub fn load(client: &mut Client, wanted: Wanted) -> Result<Loaded, Failure> {
    let state = RunState::of(&client.get("/api/v1/state")?);
    let overview = Overview::of(&client.get(&wanted.overview.target(WINDOW))?);
    let topics = wanted.topics.as_ref().map(|search| part(topics(client, search))).transpose()?;
    let open = wanted.open.as_ref().map(|subject| part(open(client, subject))).transpose()?;
    Ok(Loaded { wanted, state, overview, topics, open })
}

/// Starts to load, and to watch for changes.
///
/// # Errors
/// The system refuses a thread.
pub fn start(
    mut client: Client,
    events: Client,
    requests: &Arc<Requests>,
    messages: &mpsc::Sender<Message>,
) -> io::Result<()> {
    let (own, sender) = (Arc::clone(requests), messages.clone());
    // Both threads end with the process.
    thread::Builder::new().name("load".into()).spawn(move || {
        loop {
            let began = Instant::now();
            let message = match load(&mut client, own.next()) {
                Ok(loaded) => Message::Loaded(Box::new(loaded)),
                Err(failure) => Message::Failed(failure.to_string()),
            };
            let has_failed = matches!(message, Message::Failed(_));
            if sender.send(message).is_err() {
                return;
            }
            if has_failed {
                thread::sleep(AGAIN);
                own.refresh();
            } else {
                thread::sleep(SOONEST.saturating_sub(began.elapsed()));
            }
        }
    })?;
    let (own, sender) = (Arc::clone(requests), messages.clone());
    thread::Builder::new().name("events".into()).spawn(move || {
        loop {
            let pause = match events.events() {
                Ok(mut stream) => {
                    while let Ok(Some(name)) = stream.next_name() {
                        let message = match name.as_str() {
                            "hello" => Some(Message::Began),
                            "end" => Some(Message::Ended),
                            _ => None,
                        };
                        if message.is_some_and(|message| sender.send(message).is_err()) {
                            return;
                        }
                        own.refresh();
                    }
                    AGAIN
                }
                Err(Failure::Refused(..)) => REFUSED,
                Err(Failure::Silent(_)) => AGAIN,
            };
            thread::sleep(pause);
        }
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_is_encoded() {
        let query =
            OverviewQuery { search: "a&b c".to_owned(), verdict: "violated", sort: "worst", offset: 7 };
        assert_eq!(
            query.target(5),
            "/api/v1/overview?search=a%26b%20c&verdict=violated&sort=worst&offset=7&limit=5"
        );
    }

    #[test]
    fn other_request_is_due_at_once() {
        let requests = Requests::default();
        let wanted = Wanted { topics: Some("x".to_owned()), ..Wanted::default() };
        requests.want(&wanted);
        let began = Instant::now();
        assert_eq!(requests.next(), wanted);
        requests.refresh();
        assert_eq!(requests.next(), wanted);
        assert!(began.elapsed() < LATEST);
        requests.want(&wanted);
        assert_eq!(requests.next(), wanted, "the same is loaded when it is due");
        assert!(began.elapsed() >= LATEST);
    }
}
