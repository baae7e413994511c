//! Requests to reload, which the main thread carries out.

use std::sync::mpsc;

use super::outcome::Outcome;
use crate::live::pipeline::Stop;

/// Origin of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// SIGHUP.
    Signal,
    /// `rondel reload`.
    Command,
    /// A file has changed.
    File,
}

impl Cause {
    /// Its name in reports and in the audit file.
    pub fn as_str(self) -> &'static str {
        match self {
            Cause::Signal => "signal",
            Cause::Command => "command",
            Cause::File => "file",
        }
    }
}

/// A request to reload.
#[derive(Debug)]
struct Request {
    cause: Cause,
    /// Receives the outcome.
    reply: Option<mpsc::Sender<Outcome>>,
}

/// Makes requests, and wakes the main thread.
#[derive(Clone, Debug)]
pub struct Requester {
    requests: mpsc::Sender<Request>,
    stop: mpsc::Sender<Stop>,
}

/// The requests of a run.
#[derive(Debug)]
pub struct Requests(mpsc::Receiver<Request>);

/// Creates the requests of a run whose main thread waits for `stop`.
pub fn requests(stop: mpsc::Sender<Stop>) -> (Requester, Requests) {
    let (requests, received) = mpsc::channel();
    (Requester { requests, stop }, Requests(received))
}

impl Requester {
    /// Requests a reload.
    pub fn request(&self, cause: Cause) {
        self.send(Request { cause, reply: None });
    }

    /// Requests a reload, and returns the channel of its outcome, which is closed if the run ends before.
    pub fn ask(&self, cause: Cause) -> mpsc::Receiver<Outcome> {
        let (reply, outcome) = mpsc::channel();
        self.send(Request { cause, reply: Some(reply) });
        outcome
    }

    fn send(&self, request: Request) {
        // The receivers are gone when the run has ended.
        _ = self.requests.send(request);
        _ = self.stop.send(Stop::Reload);
    }
}

impl Requests {
    /// Carries out all requests so far with one reload, and answers them. Does nothing if there are none: another reload
    /// has answered them.
    pub fn carry_out(&self, reload: impl FnOnce(Cause) -> Outcome) {
        let waiting: Vec<Request> = self.0.try_iter().collect();
        let Some(first) = waiting.first() else { return };
        let outcome = reload(first.cause);
        for request in &waiting {
            if let Some(reply) = &request.reply {
                // The client may be gone.
                _ = reply.send(outcome.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_at_once_are_one_reload() {
        let (stop, stopped) = mpsc::channel();
        let (requester, requests) = requests(stop);
        let (first, second) = (requester.ask(Cause::Command), requester.ask(Cause::Command));
        requester.request(Cause::Signal);
        assert_eq!(stopped.try_iter().collect::<Vec<_>>(), [Stop::Reload; 3]);
        let mut reloads = 0;
        for _ in 0..3 {
            requests.carry_out(|cause| {
                reloads += 1;
                assert_eq!(cause, Cause::Command);
                Outcome::refused(vec!["no".to_owned()])
            });
        }
        assert_eq!(reloads, 1);
        assert!(!first.recv().unwrap().is_done() && !second.recv().unwrap().is_done());
        drop((requester, requests));
    }
}
