//! CPU time and memory of a container, from its control groups, of version 1 or 2.

use std::fs;
use std::path::{Path, PathBuf};

use crate::child::peak_memory_of;
use crate::failure::{Failure, Result, io_error};

/// The mount point of control groups.
const MOUNT: &str = "/sys/fs/cgroup";

/// The control groups of a container.
#[derive(Debug)]
pub struct ControlGroup {
    /// The first process of the container, by its number on the host.
    first: u32,
    cpu: PathBuf,
    memory: PathBuf,
}

/// The resources that a container has used.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Used {
    /// CPU seconds since the container was created.
    pub cpu_seconds: f64,
    /// Peak of its memory, with that of the kernel and of cached files, in bytes.
    pub bytes: u64,
}

impl ControlGroup {
    /// Returns the control groups of a process, the first one of a container.
    ///
    /// # Errors
    /// When the system does not name them.
    pub fn of(process: u32) -> Result<ControlGroup> {
        let path = format!("/proc/{process}/cgroup");
        let text = fs::read_to_string(&path).map_err(io_error(&path))?;
        let folder = |controller: &str| {
            folder(&text, controller)
                .ok_or_else(|| missing(&path, &format!("no control group of {controller}")))
        };
        Ok(ControlGroup { first: process, cpu: folder("cpuacct")?, memory: folder("memory")? })
    }

    /// Returns the resources that were used so far.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn used(&self) -> Result<Used> {
        // The first name is that of version 1.
        let cpu_seconds = match number(&self.cpu.join("cpuacct.usage")) {
            Some(nanoseconds) => nanoseconds as f64 / 1e9,
            None => microseconds(&self.cpu.join("cpu.stat"))? as f64 / 1e6,
        };
        let bytes = ["memory.max_usage_in_bytes", "memory.peak"];
        let bytes = bytes.iter().find_map(|name| number(&self.memory.join(name)));
        let bytes = bytes.ok_or_else(|| missing(&self.memory.display().to_string(), "no peak of memory"))?;
        Ok(Used { cpu_seconds, bytes })
    }

    /// Returns the peak of the resident memory of the first process, in bytes.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn first_peak(&self) -> Result<u64> {
        peak_memory_of(self.first)
    }

    /// Returns the peaks of the resident memory of all other processes, in bytes, summed.
    pub fn others_peak(&self) -> u64 {
        let processes = fs::read_to_string(self.memory.join("cgroup.procs")).unwrap_or_default();
        let others = processes.lines().filter_map(|line| line.parse().ok()).filter(|&id| id != self.first);
        // A process that has ended has none.
        others.filter_map(|id| peak_memory_of(id).ok()).sum()
    }
}

fn missing(path: &str, what: &str) -> Failure {
    Failure::Io(path.to_owned(), std::io::Error::other(what.to_owned()))
}

/// Returns the folder of a controller, by the contents of `/proc/PID/cgroup`.
fn folder(text: &str, controller: &str) -> Option<PathBuf> {
    let lines = || {
        text.lines().filter_map(|line| {
            let mut parts = line.splitn(3, ':');
            Some((parts.next()?, parts.next()?, parts.next()?.trim_start_matches('/')))
        })
    };
    let first = lines().find(|(_, controllers, _)| controllers.split(',').any(|name| name == controller));
    if let Some((.., path)) = first {
        return Some(Path::new(MOUNT).join(controller).join(path));
    }
    lines().find(|(id, ..)| *id == "0").map(|(.., path)| Path::new(MOUNT).join(path))
}

/// Returns the number in a file.
fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Returns the CPU time in a `cpu.stat`, in microseconds.
fn microseconds(path: &Path) -> Result<u64> {
    let name = path.display().to_string();
    let text = fs::read_to_string(path).map_err(io_error(&name))?;
    let usage = text.lines().find_map(|line| line.strip_prefix("usage_usec ")?.trim().parse().ok());
    usage.ok_or_else(|| missing(&name, "no usage_usec"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traces::Folder;

    #[test]
    fn folders_are_those_of_the_version() {
        let first = "5:memory:/docker/ab\n3:cpu,cpuacct:/docker/ab\n1:name=systemd:/docker/ab\n0::/\n";
        assert_eq!(folder(first, "memory"), Some("/sys/fs/cgroup/memory/docker/ab".into()));
        assert_eq!(folder(first, "cpuacct"), Some("/sys/fs/cgroup/cpuacct/docker/ab".into()));
        let second = "0::/system.slice/docker-ab.scope\n";
        let path = "/sys/fs/cgroup/system.slice/docker-ab.scope";
        assert_eq!(folder(second, "memory"), Some(path.into()));
        assert_eq!(folder("", "memory"), None);
        assert_eq!(folder("0\n", "memory"), None);
    }

    #[test]
    fn used_resources_are_read_from_both_versions() {
        let folder = Folder::new("cgroup").unwrap();
        let stat = folder.write("cpu.stat", b"usage_usec 2500000\nuser_usec 1\n").unwrap();
        let here = stat.parent().unwrap().to_owned();
        let group = ControlGroup { first: std::process::id(), cpu: here.clone(), memory: here };
        assert!(group.used().is_err());
        folder.write("memory.peak", b"4096\n").unwrap();
        assert_eq!(group.used().unwrap(), Used { cpu_seconds: 2.5, bytes: 4096 });
        folder.write("cpuacct.usage", b"1500000000\n").unwrap();
        folder.write("memory.max_usage_in_bytes", b"8192\n").unwrap();
        assert_eq!(group.used().unwrap(), Used { cpu_seconds: 1.5, bytes: 8192 });
        assert_eq!(group.others_peak(), 0);
        folder.write("cgroup.procs", format!("{}\nx\n", std::process::id()).as_bytes()).unwrap();
        assert_eq!(group.others_peak(), 0);
        assert!(group.first_peak().unwrap() > 0);
    }
}
