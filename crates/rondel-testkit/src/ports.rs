//! Ports and domains of networks that no other test uses.

use std::fs::File;
use std::net::TcpListener;
use std::sync::Mutex;

/// First and last DDS domain of tests. Lower ones are those of people; the ports of domains above 100 are also given to
/// sockets without a port of their own.
const DOMAINS: std::ops::RangeInclusive<u32> = 10..=99;

/// Returns a TCP port of loopback that is currently free.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Returns an endpoint of Zenoh on a TCP port of loopback that is currently free.
pub fn free_endpoint() -> String {
    format!("tcp/127.0.0.1:{}", free_port())
}

/// Reserves a DDS domain for the rest of the process: no other call has it, in this or another process of tests.
pub fn dds_domain() -> u32 {
    static RESERVED: Mutex<Vec<File>> = Mutex::new(Vec::new());
    let mut reserved = RESERVED.lock().unwrap();
    let folder = std::env::temp_dir().join("rondel-test-domains");
    std::fs::create_dir_all(&folder).unwrap();
    let count = DOMAINS.end() - DOMAINS.start() + 1;
    // Not in order, so that a domain is reused as late as possible: participants that ended are known for a while.
    let clock = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().subsec_micros();
    let first = std::process::id().wrapping_add(clock);
    for i in 0..count {
        let domain = DOMAINS.start() + first.wrapping_add(i) % count;
        let lock = File::options().create(true).append(true).open(folder.join(domain.to_string()));
        // The lock is released when the process ends, however it ends.
        if let Ok(lock) = lock
            && lock.try_lock().is_ok()
        {
            reserved.push(lock);
            return domain;
        }
    }
    panic!("all DDS domains from {} to {} are reserved by tests", DOMAINS.start(), DOMAINS.end());
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
}
