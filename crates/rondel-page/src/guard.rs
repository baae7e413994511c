//! Access: hosts, the token, limits of rate and viewers.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::answer::Problem;
use crate::playground;
use crate::request::Request;

/// Maximum number of viewers that receive events at once.
pub const MOST_VIEWERS: usize = 200;
/// Requests per second, and at once after a pause.
const RATE: f64 = 500.0;
const BURST: f64 = 1000.0;
/// The same for requests without the token, so that it cannot be guessed.
const WRONG_RATE: f64 = 5.0;
const WRONG_BURST: f64 = 20.0;

/// Access to the page: who may read, and whether operators may act.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The address of the server.
    pub listen: SocketAddr,
    /// The token that requests carry, if they need one.
    pub token: Option<String>,
    /// Names of the machine that requests may use, beside `localhost` and IP addresses.
    pub hosts: Vec<String>,
    /// Whether operators may acknowledge violations and silence properties.
    pub actions: bool,
}

/// Checks of requests, with their limits.
#[derive(Debug)]
pub(crate) struct Guard {
    access: Access,
    requests: Bucket,
    refused: Bucket,
    attempts: Bucket,
    viewers: Arc<AtomicUsize>,
}

impl Access {
    /// Access from this machine only, without a token, and without actions.
    pub fn local(listen: SocketAddr) -> Access {
        Access { listen, token: None, hosts: Vec::new(), actions: false }
    }

    /// Whether requests may name this host. A page of another site that has made its name point to this machine would
    /// send that name.
    pub(crate) fn permits_host(&self, host: &str) -> bool {
        let name = without_port(host);
        let name = name.strip_suffix('.').unwrap_or(name);
        name.eq_ignore_ascii_case("localhost")
            || name.parse::<IpAddr>().is_ok()
            || self.hosts.iter().any(|own| own.eq_ignore_ascii_case(name))
    }

    fn check_token(&self, authorization: Option<&str>) -> Result<(), Problem> {
        self.token.as_ref().map_or(Ok(()), |token| Access::check_secret(token, authorization))
    }

    /// Compares a token with the one of a header `Authorization`.
    pub(crate) fn check_secret(token: &str, authorization: Option<&str>) -> Result<(), Problem> {
        let Some(authorization) = authorization else {
            return Err(Problem::new(
                401,
                "this server needs a token: send the header `Authorization: Bearer TOKEN`",
            ));
        };
        let (scheme, sent) = authorization.split_once(' ').unwrap_or_default();
        match scheme.eq_ignore_ascii_case("bearer") && is_same(token.as_bytes(), sent.trim().as_bytes()) {
            true => Ok(()),
            false => Err(Problem::new(401, "the token is wrong")),
        }
    }
}

/// The name or address of a host, without its port and the brackets of an IPv6 address.
pub(crate) fn without_port(host: &str) -> &str {
    match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    }
}

/// Compares two secrets in a time that depends on the length alone.
fn is_same(own: &[u8], sent: &[u8]) -> bool {
    own.len() == sent.len() && own.iter().zip(sent).fold(0, |different, (a, b)| different | (a ^ b)) == 0
}

impl Guard {
    pub(crate) fn new(access: Access) -> Guard {
        Guard {
            access,
            requests: Bucket::new(RATE, BURST),
            refused: Bucket::new(WRONG_RATE, WRONG_BURST),
            attempts: Bucket::new(playground::RATE, playground::BURST),
            viewers: Arc::default(),
        }
    }

    pub(crate) fn may_act(&self) -> bool {
        self.access.actions
    }

    /// Checks a request at this time of day, in nanoseconds.
    pub(crate) fn admit(&self, request: &Request, now: i64) -> Result<(), Problem> {
        let host = request.host.as_deref().unwrap_or_default();
        if !self.access.permits_host(host) {
            return Err(Problem::new(
                403,
                format!(
                    "this page is not served as `{}`: use its IP address or `localhost`, or add the name to `hosts` of `page`",
                    host.chars().take(100).collect::<String>()
                ),
            ));
        }
        let is_own =
            |origin: &str| origin.split_once("://").is_some_and(|(_, own)| own.eq_ignore_ascii_case(host));
        if request.origin.as_deref().is_some_and(|origin| !is_own(origin)) {
            return Err(Problem::new(
                403,
                "a page of another site has sent this request; open the page of this server",
            ));
        }
        if request.is_api() {
            self.access.check_token(request.authorization.as_deref()).map_err(|problem| {
                match self.refused.take(now) {
                    true => problem,
                    false => Problem::new(429, "too many requests without the token: wait a second"),
                }
            })?;
        }
        match self.requests.take(now) {
            true => Ok(()),
            false => Err(Problem::new(429, "too many requests: wait a second")),
        }
    }

    /// Admits a check or a save of the playground.
    pub(crate) fn attempt(&self, now: i64) -> Result<(), Problem> {
        match self.attempts.take(now) {
            true => Ok(()),
            false => Err(Problem::new(429, "too many checks: wait a second")),
        }
    }

    /// Admits a viewer of events, who is counted until the result is dropped.
    pub(crate) fn view(&self) -> Result<Viewing, Problem> {
        let before = self.viewers.fetch_add(1, Ordering::Relaxed);
        let viewing = Viewing(Arc::clone(&self.viewers));
        match before < MOST_VIEWERS {
            true => Ok(viewing),
            false => Err(Problem::unavailable(format!(
                "{MOST_VIEWERS} viewers watch this page, and no more are served: close another one, or try again later"
            ))),
        }
    }

    /// Number of viewers.
    pub(crate) fn viewers(&self) -> usize {
        self.viewers.load(Ordering::Relaxed)
    }
}

/// A viewer of events, as long as it exists.
#[derive(Debug)]
pub(crate) struct Viewing(Arc<AtomicUsize>);

impl Drop for Viewing {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A limit of the rate of requests.
#[derive(Debug)]
pub(crate) struct Bucket {
    rate: f64,
    burst: f64,
    /// Requests that are left, and the time of day of that.
    left: Mutex<(f64, i64)>,
}

impl Bucket {
    pub(crate) fn new(rate: f64, burst: f64) -> Bucket {
        Bucket { rate, burst, left: Mutex::new((burst, i64::MIN)) }
    }

    /// Takes a request. Returns whether there was one left.
    pub(crate) fn take(&self, now: i64) -> bool {
        let mut state = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let (left, at) = *state;
        // A clock that steps back adds nothing.
        let passed = now.saturating_sub(at).max(0) as f64 / 1e9;
        let left = (left + passed * self.rate).min(self.burst);
        let is_left = left >= 1.0;
        *state = (if is_left { left - 1.0 } else { left }, now);
        is_left
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn guard(token: Option<&str>) -> Guard {
        let listen = "127.0.0.1:8080".parse().unwrap();
        let token = token.map(str::to_owned);
        Guard::new(Access { token, hosts: vec!["monitor.example".to_owned()], ..Access::local(listen) })
    }

    fn request(path: &str, host: &str, authorization: Option<&str>) -> Request {
        let authorization = authorization.map(str::to_owned);
        Request { host: Some(host.to_owned()), authorization, ..Request::get(path) }
    }

    #[test]
    fn other_names_of_the_machine_are_refused() {
        let guard = guard(None);
        for host in
            ["localhost", "LOCALHOST:8080", "127.0.0.1:8080", "[::1]:8080", "10.0.0.7", "Monitor.Example.:80"]
        {
            assert_eq!(guard.admit(&request("/", host, None), 0), Ok(()), "{host}");
        }
        for host in ["", "attacker.example", "127.0.0.1.attacker.example", "localhost.attacker.example"] {
            assert_eq!(guard.admit(&request("/", host, None), 0).unwrap_err().status, 403, "{host}");
        }
        let foreign =
            Request { origin: Some("http://attacker.example".into()), ..request("/", "localhost", None) };
        assert_eq!(guard.admit(&foreign, 0).unwrap_err().status, 403);
        let own = Request { origin: Some("http://localhost:1".into()), ..request("/", "localhost:1", None) };
        assert_eq!(guard.admit(&own, 0), Ok(()));
    }

    #[test]
    fn api_needs_the_token_and_assets_do_not() {
        let guard = guard(Some("secret"));
        let admit = |path: &str, sent: Option<&str>, now: i64| {
            guard.admit(&request(path, "localhost", sent), now).map_err(|problem| problem.status)
        };
        assert_eq!(admit("/", None, 0), Ok(()));
        assert_eq!(admit("/api/v1/overview", Some("Bearer secret"), 0), Ok(()));
        assert_eq!(admit("/api/v1/overview", Some("bearer  secret "), 0), Ok(()));
        for wrong in
            [None, Some(""), Some("secret"), Some("Bearer"), Some("Bearer secre"), Some("Basic secret")]
        {
            assert_eq!(admit("/api/v1/overview", wrong, 0), Err(401), "{wrong:?}");
        }
        let guesses = (0..100).map(|_| admit("/api/v1/overview", Some("Bearer x"), 1));
        assert_eq!(guesses.filter(|guess| *guess == Err(429)).count(), 86, "further guesses have to wait");
        assert_eq!(admit("/api/v1/overview", Some("Bearer secret"), 1), Ok(()), "others are served");
    }

    #[test]
    fn rate_and_viewers_are_limited() {
        let bucket = Bucket::new(10.0, 5.0);
        assert_eq!((0..9).filter(|_| bucket.take(0)).count(), 5);
        assert!(bucket.take(100_000_000) && !bucket.take(100_000_000), "one in a tenth of a second");
        assert!(!bucket.take(-5), "a clock that steps back adds nothing");
        let guard = guard(None);
        let viewing: Vec<Viewing> = (0..MOST_VIEWERS).map(|_| guard.view().unwrap()).collect();
        assert_eq!(guard.view().unwrap_err().status, 503);
        assert_eq!(guard.viewers(), MOST_VIEWERS);
        drop(viewing);
        assert!(guard.view().is_ok());
    }
}
