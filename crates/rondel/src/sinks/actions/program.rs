//! Programs of actions: without a shell, with a time limit, in a process group of their own.

use std::ffi::OsString;
use std::io::{self, PipeReader, Read as _};
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;

use super::groups::Groups;

/// Interval of looking whether a program has ended.
const STEP: Duration = Duration::from_millis(20);
/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);
/// The same at the end of the run.
const GRACE_AT_END: Duration = Duration::from_millis(200);
/// Time limit for a killed process to be gone.
const GONE: Duration = Duration::from_millis(500);
/// Bytes of output that are kept.
const KEPT: usize = 4096;
/// Reads of the output after the end of a program; children that it has left behind may go on writing.
const LAST_READS: usize = 16;
/// Variables of the environment that programs have from that of the run.
const INHERITED: [&str; 5] = ["PATH", "HOME", "LANG", "LC_ALL", "TZ"];
/// The path if the environment has none.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The end of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// It has ended by itself.
    Exited(ExitStatus),
    /// It was ended after its time limit.
    TimedOut,
    /// It was ended with the run.
    Stopped,
}

/// A program that has ended.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) how: Ended,
    /// The beginning of its output.
    pub(super) output: String,
}

/// A program with its arguments and variables.
#[derive(Debug)]
pub(super) struct Invocation<'i> {
    pub(super) program: &'i str,
    pub(super) arguments: Vec<String>,
    pub(super) variables: Vec<(String, String)>,
    pub(super) timeout: Duration,
}

impl Invocation<'_> {
    /// Runs the program to its end, and meanwhile has its process group among `groups`. `end` returns the time by which
    /// the run ends, once it is known.
    ///
    /// # Errors
    /// The program cannot be started.
    pub(super) fn run(&self, groups: &Groups, end: impl Fn() -> Option<Instant>) -> io::Result<Finished> {
        let (reader, writer) = io::pipe()?;
        let mut command = Command::new(self.program);
        command
            .args(&self.arguments)
            .env_clear()
            .envs(inherited())
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(writer.try_clone()?)
            .stderr(writer)
            .process_group(0);
        let mut child = command.spawn()?;
        groups.add(&child);
        // It holds the ends of the pipe that the program writes to.
        drop(command);
        let mut output = Output { reader, kept: Vec::new(), is_open: true };
        let deadline = Instant::now() + self.timeout;
        let how = loop {
            if let Some(status) = groups.try_wait(&mut child)? {
                for _ in 0..LAST_READS {
                    output.read(Duration::ZERO);
                }
                break Ended::Exited(status);
            }
            let (ends, now) = (end(), Instant::now());
            if ends.is_some_and(|end| now >= end) {
                terminate(&child, &mut output, GRACE_AT_END, &end);
                break Ended::Stopped;
            }
            if now >= deadline {
                terminate(&child, &mut output, GRACE, &end);
                break Ended::TimedOut;
            }
            output.read(STEP.min(deadline - now));
        };
        if !matches!(how, Ended::Exited(_)) {
            let gone = Instant::now() + GONE;
            while matches!(groups.try_wait(&mut child), Ok(None)) && Instant::now() < gone {
                thread::sleep(STEP);
            }
        }
        Ok(Finished { how, output: String::from_utf8_lossy(&output.kept).trim_end().to_owned() })
    }
}

/// Ends the process group of a program: with SIGTERM, then with SIGKILL after `grace`, or soon after the `end` of the run.
fn terminate(child: &Child, output: &mut Output, grace: Duration, end: &impl Fn() -> Option<Instant>) {
    // The process was not waited for yet, so that its group cannot be another one.
    let group = i32::try_from(child.id()).map(Pid::from_raw);
    let signal = |signal| {
        if let Ok(group) = group {
            // The group may have ended.
            _ = killpg(group, signal);
        }
    };
    signal(Signal::SIGTERM);
    let latest = Instant::now() + grace;
    let limit = || end().map_or(latest, |end| latest.min(end + GRACE_AT_END));
    // The output is closed once nothing of the group is left; a program may also have closed it itself.
    while (output.is_open || !has_ended(child)) && Instant::now() < limit() {
        output.read(STEP);
    }
    signal(Signal::SIGKILL);
}

/// Whether a process has ended, without waiting for it.
fn has_ended(child: &Child) -> bool {
    let Ok(process) = i32::try_from(child.id()) else { return true };
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    !matches!(waitid(Id::Pid(Pid::from_raw(process)), flags), Ok(WaitStatus::StillAlive))
}

/// The output of a program, of which the beginning is kept.
struct Output {
    reader: PipeReader,
    kept: Vec<u8>,
    /// Whether some process may still write.
    is_open: bool,
}

impl Output {
    /// Reads once, and waits up to `limit` for something to read.
    fn read(&mut self, limit: Duration) {
        if !self.is_open {
            thread::sleep(limit);
            return;
        }
        let timeout = PollTimeout::try_from(limit).unwrap_or(PollTimeout::ZERO);
        let mut waited = [PollFd::new(self.reader.as_fd(), PollFlags::POLLIN)];
        match poll(&mut waited, timeout) {
            Ok(0) | Err(nix::errno::Errno::EINTR) => return,
            Ok(_) => {}
            Err(_) => {
                self.is_open = false;
                return;
            }
        }
        let mut part = [0; KEPT];
        match self.reader.read(&mut part) {
            Ok(0) => self.is_open = false,
            Ok(length) => {
                let room = KEPT.saturating_sub(self.kept.len());
                self.kept.extend_from_slice(&part[..length.min(room)]);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => self.is_open = false,
        }
    }
}

/// The variables of the environment of the run that programs have.
fn inherited() -> impl Iterator<Item = (&'static str, OsString)> {
    INHERITED.into_iter().filter_map(|name| {
        let default = || (name == "PATH").then(|| OsString::from(PATH));
        std::env::var_os(name).or_else(default).map(|value| (name, value))
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn shell(text: &str, timeout: Duration) -> Finished {
        let invocation = Invocation {
            program: "sh",
            arguments: ["-c", text].map(str::to_owned).into(),
            variables: vec![("RONDEL_PROPERTY".to_owned(), "gap".to_owned())],
            timeout,
        };
        invocation.run(&Groups::default(), || None).unwrap()
    }

    const LONG: Duration = Duration::from_secs(60);
    const SHORT: Duration = Duration::from_millis(100);

    /// Repeats a case with longer and longer timeouts until it has a result: on a busy machine a shell may not have begun
    /// when a short one is over.
    fn until_begun<T>(case: impl Fn(Duration) -> Option<T>) -> T {
        (0..8).map(|i| SHORT * 2_u32.pow(i)).find_map(case).unwrap()
    }

    fn code(finished: &Finished) -> Option<i32> {
        match finished.how {
            Ended::Exited(status) => status.code(),
            _ => None,
        }
    }

    #[test]
    fn output_and_status_are_those_of_the_program() {
        let finished = shell("echo $RONDEL_PROPERTY; echo b >&2; exit 3", LONG);
        assert_eq!((code(&finished), &*finished.output), (Some(3), "gap\nb"));
        let finished = shell("cat; env | grep -c CARGO", LONG);
        assert_eq!((code(&finished), &*finished.output), (Some(1), "0"));
        let finished = shell("yes | head -c 1000000", LONG);
        assert_eq!((code(&finished), finished.output.len()), (Some(0), KEPT - 1));
    }

    #[test]
    fn program_that_does_not_exist_is_an_error() {
        let (arguments, variables) = (Vec::new(), Vec::new());
        let nothing = Invocation { program: "/nonexistent/program", arguments, variables, timeout: LONG };
        assert_eq!(nothing.run(&Groups::default(), || None).unwrap_err().kind(), io::ErrorKind::NotFound);
        let zero = Invocation { program: "true", arguments: vec!["a\0b".to_owned()], ..nothing };
        assert!(zero.run(&Groups::default(), || None).is_err());
    }

    #[test]
    fn program_that_never_ends_is_killed_with_its_children() {
        let began = Instant::now();
        assert_eq!(shell("sleep 600 & sleep 600", SHORT).how, Ended::TimedOut);
        let process = until_begun(|timeout| {
            let finished = stubborn(timeout).run(&Groups::default(), || None).unwrap();
            assert_eq!(finished.how, Ended::TimedOut);
            finished.output.parse().ok()
        });
        assert!(began.elapsed() < LONG);
        assert!(nix::sys::signal::kill(Pid::from_raw(process), None::<Signal>).is_err());
    }

    #[test]
    fn program_with_closed_output_has_time_to_end() {
        let folder = rondel_testkit::Folder::new();
        let file = folder.as_path().join("cleaned");
        let text = format!(
            "trap 'sleep 0.3; touch {}; exit 0' TERM; exec >&- 2>&-; while true; do sleep 0.05; done",
            file.display()
        );
        until_begun(|timeout| {
            let began = Instant::now();
            assert_eq!(shell(&text, timeout).how, Ended::TimedOut);
            (file.exists() && began.elapsed() < timeout + GRACE).then_some(())
        });
    }

    #[test]
    fn program_is_not_waited_for_beyond_its_own_end() {
        let began = Instant::now();
        // The child keeps the output open.
        let finished = shell("sleep 10 & echo done", LONG);
        assert_eq!((code(&finished), &*finished.output), (Some(0), "done"));
        assert!(began.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn program_ends_with_the_run() {
        let (arguments, variables) = (vec!["600".to_owned()], Vec::new());
        let sleep = Invocation { program: "sleep", arguments, variables, timeout: LONG };
        let end = Instant::now() + SHORT;
        assert_eq!(sleep.run(&Groups::default(), || Some(end)).unwrap().how, Ended::Stopped);
    }

    /// A program that ignores SIGTERM.
    fn stubborn(timeout: Duration) -> Invocation<'static> {
        let text = "trap '' TERM; echo $$; while true; do sleep 1; done";
        let arguments = ["-c", text].map(str::to_owned).into();
        Invocation { program: "sh", arguments, variables: Vec::new(), timeout }
    }

    #[test]
    fn program_beyond_its_timeout_is_killed_with_the_run() {
        let process = until_begun(|timeout| {
            let began = Instant::now();
            let end = began + timeout + 2 * SHORT;
            let finished = stubborn(timeout).run(&Groups::default(), || Some(end)).unwrap();
            let is_killed = finished.how == Ended::TimedOut && began.elapsed() < timeout + GRACE;
            finished.output.parse().ok().filter(|_| is_killed)
        });
        assert!(nix::sys::signal::kill(Pid::from_raw(process), None::<Signal>).is_err());
    }

    #[test]
    fn groups_that_still_run_are_killed() {
        let groups = Groups::default();
        thread::scope(|scope| {
            let run = scope.spawn(|| stubborn(LONG).run(&groups, || None).unwrap());
            let began = Instant::now();
            while groups.is_empty() && began.elapsed() < LONG {
                thread::yield_now();
            }
            groups.end();
            assert_eq!(code(&run.join().unwrap()), None);
        });
        assert!(groups.is_empty());
        // One that begins later, too.
        assert_eq!(code(&stubborn(LONG).run(&groups, || None).unwrap()), None);
    }
}
