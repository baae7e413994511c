//! Hosts of their own for the participants on DDS, whose packets no relay can follow: network namespaces, each with a
//! wire to one switch. A wire that is cut loses all packets, without notice to either end.

use std::ffi::OsStr;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// A switch, and hosts with the addresses 10.77.0.1, 10.77.0.2 …
pub struct Switch {
    name: String,
    hosts: usize,
}

impl Switch {
    /// Makes a switch with so many hosts; nothing where that is not permitted.
    pub fn new(hosts: usize) -> Option<Switch> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let switch = Switch { name: format!("rondel-{}-{number}", std::process::id()), hosts };
        let made = ip(&format!("netns add {}", switch.name))
            && switch.here("link add switch type bridge mcast_snooping 0")
            && switch.here("link set switch up")
            && (0..hosts).all(|host| switch.attach(host));
        made.then_some(switch)
    }

    fn attach(&self, host: usize) -> bool {
        let (name, own) = (self.host(host), format!("10.77.0.{}/24", host + 1));
        ip(&format!("netns add {name}"))
            && self.here(&format!("link add wire{host} type veth peer name eth0 netns {name}"))
            && self.here(&format!("link set wire{host} master switch up"))
            && ip(&format!("-n {name} address add {own} dev eth0"))
            && ip(&format!("-n {name} link set eth0 up"))
            && ip(&format!("-n {name} link set lo up"))
            && ip(&format!("-n {name} route add 224.0.0.0/4 dev eth0"))
    }

    fn host(&self, host: usize) -> String {
        format!("{}-{host}", self.name)
    }

    /// Runs `ip` for the switch.
    fn here(&self, arguments: &str) -> bool {
        ip(&format!("-n {} {arguments}", self.name))
    }

    /// A command that runs on a host, on the interface `eth0`.
    pub fn on(&self, host: usize, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.host(host)]).arg(program);
        command
    }

    /// Cuts the wire of a host, or mends it.
    pub fn cut(&self, host: usize, cut: bool) {
        let what = if cut { "nomaster" } else { "master switch" };
        assert!(self.here(&format!("link set wire{host} {what}")));
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        for host in 0..self.hosts {
            ip(&format!("netns delete {}", self.host(host)));
        }
        ip(&format!("netns delete {}", self.name));
    }
}

fn ip(arguments: &str) -> bool {
    Command::new("ip").args(arguments.split(' ')).output().is_ok_and(|output| output.status.success())
}
