//! Containers for the participants of a chain, on a bridge network of their own.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rondel_net::ros2::Middleware;
use serde::Serialize;

use super::cgroup::{ControlGroup, Used};
use crate::child::{Child, Stdout};
use crate::failure::{Failure, Result, io_error};
use crate::link::{PATIENCE, free_port};
use crate::place::Place;

/// The interface of a container on its network.
const INTERFACE: &str = "eth0";
/// This program in a container.
const DRIVER: &str = "/rondel-bench";
/// The folder of the monitor's deployment in its container.
const FOLDER: &str = "/chain";
/// The time limit for a call of the engine that starts nothing.
const CALL: Duration = Duration::from_secs(120);
/// The time from one look whether a call has ended to the next.
const LOOK: Duration = Duration::from_millis(5);
/// The options of every container: no rights, a read-only root.
const CONTAINED: [&str; 7] = [
    "--rm",
    "--read-only",
    "--cap-drop=ALL",
    "--security-opt=no-new-privileges",
    "--pids-limit=4096",
    "--log-driver=none",
    "--label=rondel-bench=chain",
];

/// Distribution of the participants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// Processes of this machine, without containers
    Bare,
    /// All participants in one container
    One,
    /// A container for each participant
    Each,
}

impl Layout {
    /// Returns the name for people.
    pub fn name(self) -> &'static str {
        match self {
            Layout::Bare => "bare",
            Layout::One => "one container",
            Layout::Each => "one container each",
        }
    }
}

/// The containers of a run. Dropping them removes them and their network.
#[derive(Debug)]
pub struct Containers {
    network: String,
    /// The address of this machine on the network.
    gateway: String,
    image: String,
    /// The containers of the participants.
    holders: Vec<Holder>,
    /// The name of the monitor's container.
    monitor: String,
    /// The names of all containers, also of those that did not become ready.
    names: Vec<String>,
}

/// A container whose first process only waits, so that its control groups outlive the participants.
#[derive(Debug)]
struct Holder {
    name: String,
    group: ControlGroup,
    /// The client of the engine: it ends with the container.
    _child: Child,
}

impl Containers {
    /// Starts a number of containers on a network of their own, each limited by an option of `docker run`. They end by
    /// themselves after `limit`.
    ///
    /// # Errors
    /// When the engine refuses.
    pub fn start(image: &str, number: usize, option: Option<&str>, limit: Duration) -> Result<Containers> {
        let prefix = format!("rondel-bench-chain-{}", std::process::id());
        docker(&["network", "create", &prefix])?;
        // From here on dropping removes the network.
        let mut containers = Containers {
            network: prefix.clone(),
            gateway: String::new(),
            image: image.to_owned(),
            holders: Vec::new(),
            monitor: format!("{prefix}-monitor"),
            names: Vec::new(),
        };
        containers.names.push(containers.monitor.clone());
        let gateway = "{{(index .IPAM.Config 0).Gateway}}";
        containers.gateway = docker(&["network", "inspect", "--format", gateway, &prefix])?;
        // The daemon needs the path of the file, which a link of this process is not.
        let driver = std::env::current_exe().map_err(io_error("this program's own file"))?;
        for number in 1..=number {
            containers.hold(format!("{prefix}-{number}"), &driver, option, limit)?;
        }
        Ok(containers)
    }

    fn hold(&mut self, name: String, driver: &Path, option: Option<&str>, limit: Duration) -> Result<()> {
        self.names.push(name.clone());
        let mut arguments = self.run(&name);
        arguments.extend(option.map(str::to_owned));
        arguments.extend([
            format!("--volume={}:{DRIVER}:ro", driver.display()),
            format!("--entrypoint={DRIVER}"),
            self.image.clone(),
        ]);
        arguments.extend(["peer", "hold"].map(str::to_owned));
        arguments.push(format!("--seconds={}", limit.as_secs()));
        let mut child = start("container", &arguments)?;
        child.wait_for("ready", PATIENCE)?;
        let group = group_of(&name)?;
        self.holders.push(Holder { name, group, _child: child });
        Ok(())
    }

    /// Returns the first arguments of `docker` for a new container.
    fn run(&self, name: &str) -> Vec<String> {
        let mut arguments =
            vec!["run".to_owned(), format!("--name={name}"), format!("--network={}", self.network)];
        arguments.extend(CONTAINED.map(str::to_owned));
        arguments
    }

    /// Returns a place on their network.
    ///
    /// # Errors
    /// When there is none.
    pub fn place(&self, middleware: Middleware) -> Result<Place> {
        Ok(match Place::free(middleware)? {
            Place::Dds(domain, _) => Place::Dds(domain, INTERFACE.to_owned()),
            // The router is this process.
            Place::Zenoh(_) | Place::ZenohRouter(_) => {
                Place::Zenoh(format!("tcp/{}:{}", self.gateway, free_port()?))
            }
        })
    }

    /// Starts a participant in the container with this number, from 0, or in the last one.
    ///
    /// # Errors
    /// When the engine cannot be called.
    pub fn start_stage(&self, name: &str, number: usize, stage: Vec<String>) -> Result<Child> {
        let place = number.min(self.holders.len().saturating_sub(1));
        let holder = self.holders.get(place).ok_or_else(|| Failure::Usage("no container".to_owned()))?;
        let mut arguments = vec!["exec".to_owned(), holder.name.clone(), DRIVER.to_owned()];
        arguments.extend(stage);
        start(name, &arguments)
    }

    /// Starts the image's program with a deployment, in a container of its own.
    ///
    /// # Errors
    /// When it does not become ready.
    pub fn start_monitor(&self, deployment: &Path, options: &[String]) -> Result<(Child, ControlGroup)> {
        let (Some(folder), Some(file)) = (deployment.parent(), deployment.file_name()) else {
            return Err(Failure::Usage(format!("{} is no file", deployment.display())));
        };
        let mut arguments = self.run(&self.monitor);
        arguments.extend([format!("--volume={}:{FOLDER}:ro", folder.display()), self.image.clone()]);
        arguments.extend_from_slice(options);
        arguments.push(Path::new(FOLDER).join(file).display().to_string());
        let mut child = start("monitor", &arguments)?;
        child.wait_for("ready", PATIENCE)?;
        let group = group_of(&self.monitor)?;
        Ok((child, group))
    }

    /// Returns the resources that the containers of the participants have used, summed.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn used(&self) -> Result<Used> {
        let mut sum = Used::default();
        for holder in &self.holders {
            let used = holder.group.used()?;
            sum.cpu_seconds += used.cpu_seconds;
            sum.bytes += used.bytes;
        }
        Ok(sum)
    }

    /// Returns the peaks of the resident memory of all participants, in bytes, summed.
    pub fn peak(&self) -> u64 {
        self.holders.iter().map(|holder| holder.group.others_peak()).sum()
    }
}

impl Drop for Containers {
    fn drop(&mut self) {
        let mut arguments = vec!["rm", "--force"];
        arguments.extend(self.names.iter().map(String::as_str));
        // A container that has ended is gone already.
        let _ = docker(&arguments);
        // The engine may still be removing those that ended by themselves.
        for _ in 0..20 {
            // An engine that does not answer is not called again.
            if !matches!(docker(&["network", "rm", &self.network]), Err(Failure::Child { .. })) {
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

fn start(name: &str, arguments: &[String]) -> Result<Child> {
    // A name without a folder is looked up in PATH.
    Child::start(name, Path::new("docker"), arguments, Stdout::Nothing)
}

/// Returns the control groups of a container.
fn group_of(name: &str) -> Result<ControlGroup> {
    let process = docker(&["inspect", "--format", "{{.State.Pid}}", name])?;
    let process =
        process.parse().map_err(|_| Failure::Network(format!("{name} has no process: '{process}'")))?;
    ControlGroup::of(process)
}

/// Calls `docker`; returns its output.
///
/// # Errors
/// When it fails, or takes longer than the limit.
fn docker(arguments: &[&str]) -> Result<String> {
    let name = format!("docker {}", arguments.first().unwrap_or(&""));
    let mut process = Command::new("docker")
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(io_error("docker"))?;
    let deadline = Instant::now() + CALL;
    // Its output is a few names, for which the pipes have room.
    while process.try_wait().map_err(io_error("docker"))?.is_none() {
        if Instant::now() >= deadline {
            // It may have ended just now; then there is nothing to kill.
            let _ = process.kill();
            let _ = process.wait();
            return Err(Failure::Late { what: name, limit: CALL });
        }
        std::thread::sleep(LOOK);
    }
    let output = process.wait_with_output().map_err(io_error("docker"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    Err(Failure::Child {
        name,
        status: output.status.to_string(),
        log: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_container_is_confined() {
        let containers = Containers {
            network: "net".to_owned(),
            gateway: "192.0.2.1".to_owned(),
            image: "image".to_owned(),
            holders: Vec::new(),
            monitor: "monitor".to_owned(),
            names: Vec::new(),
        };
        let arguments = containers.run("a");
        assert_eq!(arguments[..3], ["run", "--name=a", "--network=net"]);
        assert!(arguments.iter().any(|argument| argument == "--cap-drop=ALL"), "{arguments:?}");
        assert!(containers.start_stage("a", 0, Vec::new()).is_err());
        let place = containers.place(Middleware::Zenoh).unwrap();
        assert!(
            matches!(&place, Place::Zenoh(endpoint) if endpoint.starts_with("tcp/192.0.2.1:")),
            "{place:?}"
        );
        let place = containers.place(Middleware::Dds).unwrap();
        assert!(matches!(&place, Place::Dds(_, interface) if interface == INTERFACE), "{place:?}");
        // There is nothing to remove.
        std::mem::forget(containers);
    }
}
