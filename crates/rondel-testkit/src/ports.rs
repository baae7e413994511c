//! Ports and domains of networks that no other test uses.

use std::fs::File;
use std::net::TcpListener;
use std::ops::RangeInclusive;
use std::sync::Mutex;

/// First and last DDS domain of tests. Lower ones are those of people; the ports of domains above 100 are also given to
/// sockets without a port of their own.
const DOMAINS: RangeInclusive<u32> = 10..=99;

/// First and last TCP port of tests, below those that the system gives to sockets without a port of their own: a server
/// that starts late, or again, finds its port free.
const PORTS: RangeInclusive<u32> = 20_000..=27_999;

/// Reserves a TCP port of loopback on which nothing listens for the rest of the process: no other call has it, in this
/// or another process of tests.
pub fn free_port() -> u16 {
    let port = |number| u16::try_from(number).expect("a port of the range");
    port(reserve("ports", PORTS, |number| TcpListener::bind(("127.0.0.1", port(number))).is_ok()))
}

/// Returns an endpoint of Zenoh on a TCP port of loopback, reserved as by [`free_port`].
pub fn free_endpoint() -> String {
    format!("tcp/127.0.0.1:{}", free_port())
}

/// Reserves a DDS domain for the rest of the process: no other call has it, in this or another process of tests.
pub fn dds_domain() -> u32 {
    reserve("domains", DOMAINS, |_| true)
}

/// Reserves a number of `range` that `is_free` accepts, by a file of the folder of `kind`.
fn reserve(kind: &str, range: RangeInclusive<u32>, is_free: impl Fn(u32) -> bool) -> u32 {
    static RESERVED: Mutex<Vec<File>> = Mutex::new(Vec::new());
    let mut reserved = RESERVED.lock().unwrap();
    let folder = std::env::temp_dir().join(format!("rondel-test-{kind}"));
    std::fs::create_dir_all(&folder).unwrap();
    let count = range.end() - range.start() + 1;
    // Not in order, so that a number is reused as late as possible: participants that ended are known for a while.
    let clock = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().subsec_micros();
    let first = std::process::id().wrapping_add(clock);
    for i in 0..count {
        let number = range.start() + first.wrapping_add(i) % count;
        let lock = File::options().create(true).append(true).open(folder.join(number.to_string()));
        // The lock is released when the process ends, however it ends.
        if let Ok(lock) = lock
            && lock.try_lock().is_ok()
            && is_free(number)
        {
            reserved.push(lock);
            return number;
        }
    }
    panic!("all {kind} from {} to {} are reserved by tests", range.start(), range.end());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_differ() {
        let some: std::collections::BTreeSet<u32> = (0..8).map(|_| dds_domain()).collect();
        assert_eq!(some.len(), 8);
        assert!(some.iter().all(|domain| DOMAINS.contains(domain)));
    }

    #[test]
    fn a_reserved_port_is_not_given_again_before_anything_listens() {
        let some: std::collections::BTreeSet<u16> = (0..64).map(|_| free_port()).collect();
        assert_eq!(some.len(), 64);
        assert!(some.iter().all(|port| PORTS.contains(&u32::from(*port))));
    }
}
