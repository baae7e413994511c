//! A process of the network. Its output goes to files, so that no reader can hold it up.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rondel_testkit::LIMIT;

/// A participant, which may live several times.
pub struct Participant {
    name: &'static str,
    folder: PathBuf,
    command: Command,
    child: Option<Child>,
    lives: usize,
    /// The largest memory of all lives so far, in KiB.
    memory: u64,
}

impl Participant {
    /// A participant that is not yet started.
    pub fn new(name: &'static str, folder: &Path, command: Command) -> Participant {
        Participant { name, folder: folder.to_owned(), command, child: None, lives: 0, memory: 0 }
    }

    /// Whether it has this name.
    pub fn is(&self, name: &str) -> bool {
        self.name == name
    }

    /// Starts it, again after [`Participant::kill`].
    pub fn start(&mut self) {
        self.lives += 1;
        let stream = |what| File::create(self.stream(what, self.lives)).unwrap();
        let (out, err) = (stream("out"), stream("err"));
        let child = self.command.stdin(Stdio::piped()).stdout(out).stderr(err).spawn();
        self.child = Some(child.unwrap_or_else(|error| panic!("{:?}: {error}", self.command)));
    }

    /// Starts it and waits until one of its streams contains `text`.
    pub fn start_until(&mut self, text: &str) {
        self.start();
        let deadline = Instant::now() + LIMIT;
        while !["out", "err"].iter().any(|what| self.text(what).contains(text)) {
            assert!(Instant::now() < deadline, "{}: no {text:?} in\n{}", self.name, self.text("err"));
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The standard input of the present life.
    pub fn take_input(&mut self) -> ChildStdin {
        self.child.as_mut().and_then(|child| child.stdin.take()).expect("it has just been started")
    }

    /// Sends a signal.
    pub fn signal(&mut self, name: &str) {
        self.measure();
        let Some(child) = &self.child else { return };
        let status = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status();
        assert!(status.unwrap().success(), "kill -{name} {}", self.name);
    }

    /// Ends it with SIGKILL.
    pub fn kill(&mut self) {
        self.measure();
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Waits for its end, so long.
    pub fn wait(&mut self, time: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + time;
        loop {
            if let Some(status) = self.child.as_mut()?.try_wait().unwrap() {
                self.child = None;
                return Some(status);
            }
            if Instant::now() >= deadline {
                return None;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Looks at the largest memory of the present life.
    fn measure(&mut self) {
        let Some(child) = &self.child else { return };
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|text| text.trim().strip_suffix(" kB")?.parse().ok());
        self.memory = self.memory.max(kib.unwrap_or(0));
    }

    /// The largest resident memory, in MiB.
    pub fn memory_mib(&self) -> u64 {
        self.memory.div_ceil(1024)
    }

    fn stream(&self, what: &str, life: usize) -> PathBuf {
        self.folder.join(format!("{}.{life}.{what}", self.name))
    }

    /// The standard output of each life.
    pub fn outputs(&self) -> Vec<PathBuf> {
        (1..=self.lives).map(|life| self.stream("out", life)).collect()
    }

    /// Bytes of standard output so far.
    pub fn printed(&self) -> u64 {
        self.outputs().iter().filter_map(|path| Some(fs::metadata(path).ok()?.len())).sum()
    }

    /// A stream of the last life, `out` or `err`.
    pub fn text(&self, what: &str) -> String {
        let bytes = fs::read(self.stream(what, self.lives)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Drop for Participant {
    fn drop(&mut self) {
        self.kill();
    }
}
