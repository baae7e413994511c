//! The members of a group: two processes `rondel run`, with the states that they report.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::child::{Child, Stdout};
use crate::failure::{Failure, Result};
use crate::link::PATIENCE;

/// The name of the group.
pub const GROUP: &str = "bench";
/// The time between two looks at the lines of the members.
const LOOK: Duration = Duration::from_millis(5);
/// Seconds that a member waits for the subscriber to its verdicts.
const SUBSCRIBER: &str = "--wait-subscribers=10";

/// The state of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It is neither active nor a standby.
    Other,
    /// It follows the active member.
    Standby,
    /// It is active in this epoch.
    Active(u64),
}

impl State {
    /// Reads a line on standard error; `None` if it reports no new state.
    pub fn read(line: &str) -> Option<State> {
        let (_, text) = line.split_once(&format!("group '{GROUP}': "))?;
        if let Some(rest) = text.strip_prefix("active in epoch ") {
            let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            return rest[..end].parse().ok().map(State::Active);
        }
        // A member that finds another one active in a later epoch follows it at once.
        if text.starts_with("standby: ") || text.starts_with("fenced: member ") {
            return Some(State::Standby);
        }
        (text.starts_with("fenced: ") || text.starts_with("handed over ")).then_some(State::Other)
    }
}

/// A member.
#[derive(Debug)]
pub struct Member {
    child: Child,
    state: State,
    /// Whether its subscriptions exist.
    is_ready: bool,
}

impl Member {
    fn start(rondel: &Path, deployment: &Path) -> Result<Member> {
        let arguments = ["run", SUBSCRIBER, "--no-control"].map(str::to_owned);
        let mut arguments = arguments.to_vec();
        arguments.push(deployment.display().to_string());
        let child = Child::start("member", rondel, &arguments, Stdout::Nothing)?;
        let mut member = Member { child, state: State::Other, is_ready: false };
        let deadline = Instant::now() + PATIENCE;
        // It may report a state before.
        while !member.is_ready {
            member.look()?;
            if Instant::now() >= deadline {
                return Err(Failure::Late { what: "a member is ready".to_owned(), limit: PATIENCE });
            }
            std::thread::sleep(LOOK);
        }
        Ok(member)
    }

    /// Reads its lines.
    fn look(&mut self) -> Result<State> {
        while let Some(line) = self.child.next_line()? {
            self.state = State::read(&line).unwrap_or(self.state);
            self.is_ready |= line.starts_with("ready");
        }
        Ok(self.state)
    }

    /// Waits for its end, after a signal to end in order.
    fn wait_ended(self) -> Result<()> {
        let ended = self.child.wait(PATIENCE)?;
        // A member that began late has missed messages, and says so with status 5.
        if matches!(ended.status, Some(0 | 5)) { Ok(()) } else { Err(ended.failed("member")) }
    }
}

/// The members of a group. Dropping it kills them, also one that stands still.
#[derive(Debug)]
pub struct Pair {
    rondel: PathBuf,
    deployment: PathBuf,
    members: [Option<Member>; 2],
}

impl Pair {
    /// Starts two members, the second once the first is active.
    ///
    /// # Errors
    /// When a member fails, or does not become what it should.
    pub fn start(rondel: &Path, deployment: &Path, interrupted: &AtomicBool) -> Result<Pair> {
        let members = [Some(Member::start(rondel, deployment)?), None];
        let mut pair = Pair { rondel: rondel.to_owned(), deployment: deployment.to_owned(), members };
        pair.wait("the first member is active", interrupted, |states| {
            matches!(states[0], State::Active(_)).then_some(())
        })?;
        pair.complete()?;
        Ok(pair)
    }

    /// Starts the member that has ended, if one has.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn complete(&mut self) -> Result<()> {
        for member in self.members.iter_mut().filter(|member| member.is_none()) {
            *member = Some(Member::start(&self.rondel, &self.deployment)?);
        }
        Ok(())
    }

    /// Waits until one is active, in this epoch or a later one, and the other one follows. Returns the place of the active
    /// one and its epoch.
    ///
    /// # Errors
    /// When a member fails, or does not become what it should.
    pub fn wait_active(&mut self, least: u64, interrupted: &AtomicBool) -> Result<(usize, u64)> {
        self.wait("one member is active, and the other one follows", interrupted, |states| match *states {
            [State::Active(epoch), State::Standby] if epoch >= least => Some((0, epoch)),
            [State::Standby, State::Active(epoch)] if epoch >= least => Some((1, epoch)),
            _ => None,
        })
    }

    fn wait<T>(
        &mut self,
        what: &str,
        interrupted: &AtomicBool,
        find: impl Fn(&[State; 2]) -> Option<T>,
    ) -> Result<T> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if interrupted.load(Ordering::Relaxed) {
                return Err(Failure::Interrupted);
            }
            let mut states = [State::Other; 2];
            for (state, member) in states.iter_mut().zip(&mut self.members) {
                if let Some(member) = member {
                    *state = member.look()?;
                }
            }
            if let Some(found) = find(&states) {
                return Ok(found);
            }
            if Instant::now() >= deadline {
                return Err(Failure::Late { what: format!("{what} (they are {states:?})"), limit: PATIENCE });
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Sends a signal to a member.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn signal(&self, at: usize, signal: Signal) -> Result<()> {
        self.members[at].as_ref().map_or(Ok(()), |member| member.child.signal(signal))
    }

    /// Waits until a member has ended in order.
    ///
    /// # Errors
    /// When it has not, or with a failure.
    pub fn wait_ended(&mut self, at: usize) -> Result<()> {
        self.members[at].take().map_or(Ok(()), Member::wait_ended)
    }

    /// Waits until a member that was killed is gone.
    ///
    /// # Errors
    /// When it is not.
    pub fn wait_killed(&mut self, at: usize) -> Result<()> {
        self.members[at].take().map_or(Ok(()), |member| member.child.wait(PATIENCE).map(drop))
    }

    /// Hands over to the standby. Returns whether it has taken over: it has not if a member took over by itself meanwhile,
    /// or if it lacks the state of the active one.
    ///
    /// # Errors
    /// When the command fails for another reason.
    pub fn promote(&self) -> Result<bool> {
        let arguments = ["standby", "promote"].map(str::to_owned);
        let mut arguments = arguments.to_vec();
        arguments.push(self.deployment.display().to_string());
        let name = "rondel standby promote";
        let ended = Child::start(name, &self.rondel, &arguments, Stdout::Nothing)?.wait(PATIENCE)?;
        match ended.status {
            Some(0) => Ok(true),
            Some(4) => Ok(false),
            _ => Err(ended.failed(name)),
        }
    }

    /// Ends both members in order.
    ///
    /// # Errors
    /// When one does not end, or with a failure.
    pub fn end(mut self) -> Result<()> {
        for at in 0..self.members.len() {
            self.signal(at, Signal::SIGTERM)?;
        }
        (0..self.members.len()).try_for_each(|at| self.wait_ended(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_read_from_lines() {
        let read = |text: &str| State::read(&format!("group 'bench': {text}"));
        assert_eq!(read("active in epoch 12: no other member is"), Some(State::Active(12)));
        let standby =
            "standby: member 5d1c09aa3e0f7b26 (process 4711) is active in epoch 1; verdicts are withheld";
        assert_eq!(read(standby), Some(State::Standby));
        assert_eq!(read("handed over to member 5d1c09aa3e0f7b26; verdicts are withheld"), Some(State::Other));
        let fenced = "2026-11-30 09:00:00 warning: group 'bench': fenced: this process stood still for 300 ms; verdicts";
        assert_eq!(State::read(fenced), Some(State::Other));
        assert_eq!(
            read("fenced: member 90b3f6c2d1e84a57 is active in epoch 3; verdicts"),
            Some(State::Standby)
        );
        for other in [
            "member 90b3f6c2d1e84a57 (process 4712) stands by",
            "active at the end, in epoch 1; active 1 time",
            "publishes 4 withheld verdicts",
        ] {
            assert_eq!(read(other), None, "{other}");
        }
        assert_eq!(State::read("ready after 12 ms"), None);
        assert_eq!(State::read("group 'other': active in epoch 2: no other member is"), None);
    }
}
