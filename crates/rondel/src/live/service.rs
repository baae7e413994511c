//! Notifications to a service manager, such as systemd, that has set `NOTIFY_SOCKET`.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use rondel_event::terminal::escaped;

use crate::live::metrics::RunState;
use crate::warn;

/// Interval of looking at the run.
const LOOK: Duration = Duration::from_millis(200);
/// Minimum interval of descriptions.
const DESCRIBE: Duration = Duration::from_secs(5);
/// Time limit for the service manager to accept a notification.
const LIMIT: Duration = Duration::from_millis(500);
/// Maximum length of a description in bytes.
const LONGEST: usize = 400;

/// The service manager that started this process.
pub struct Manager {
    socket: Socket,
    /// Maximum interval of keep-alive notifications, if it expects them.
    watchdog: Option<Duration>,
}

impl Manager {
    /// Returns the service manager of the environment, if there is one. Reports a socket that cannot be used.
    pub fn from_environment() -> Option<Manager> {
        let name = std::env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty())?;
        let socket = match Socket::open(&name) {
            Ok(socket) => socket,
            Err(error) => {
                warn(&format!("NOTIFY_SOCKET={}: {error}; the run continues", name.to_string_lossy()));
                return None;
            }
        };
        let [interval, process] = ["WATCHDOG_USEC", "WATCHDOG_PID"].map(|name| std::env::var(name).ok());
        let watchdog = watchdog(interval.as_deref(), process.as_deref(), std::process::id());
        if let Err(why) = &watchdog {
            warn(&format!("{why}; the run continues without keep-alive notifications"));
        }
        Some(Manager { socket, watchdog: watchdog.unwrap_or_default() })
    }

    /// Starts to inform the service manager about a run. Reports a thread that cannot be started.
    pub fn inform(self, state: Arc<RunState>) -> Option<Service> {
        let (sender, orders) = mpsc::channel();
        let Manager { mut socket, watchdog } = self;
        let inform = move || inform(&state, &mut socket, watchdog, &orders);
        match thread::Builder::new().name("service".into()).spawn(inform) {
            Ok(thread) => Some(Service { orders: Some(sender), thread: Some(thread) }),
            Err(error) => {
                warn(&format!("cannot start a thread for the service manager: {error}; the run continues"));
                None
            }
        }
    }
}

/// The thread that informs the service manager. When dropped, it announces the end unless it has done so.
pub struct Service {
    /// Sends orders, and ends the thread by being dropped.
    orders: Option<mpsc::Sender<Order>>,
    thread: Option<JoinHandle<()>>,
}

/// An announcement to the service manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// A reload begins.
    Reloading,
    /// It is done, or refused.
    Reloaded,
    /// The run ends.
    Stopping,
}

impl Service {
    /// Announces the end of the run.
    pub fn stopping(&self) {
        self.order(Order::Stopping);
    }

    /// Announces that a reload begins, or that it has ended.
    pub fn reloading(&self, is_over: bool) {
        self.order(if is_over { Order::Reloaded } else { Order::Reloading });
    }

    fn order(&self, order: Order) {
        if let Some(orders) = &self.orders {
            // The receiver is gone only after a panic, which has been reported.
            _ = orders.send(order);
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        drop(self.orders.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been reported.
            let _ = thread.join();
        }
    }
}

/// Informs the service manager until the sender of `orders` is dropped.
fn inform(state: &RunState, socket: &mut Socket, watchdog: Option<Duration>, orders: &mpsc::Receiver<Order>) {
    // Half of the interval, as sd_watchdog_enabled(3) recommends.
    let every = watchdog.map(|interval| interval / 2);
    let (mut is_ready, mut is_stopping) = (false, false);
    let mut next = Instant::now();
    let (mut described, mut description) = (None::<Instant>, String::new());
    loop {
        let now = Instant::now();
        // A stalled thread is looked at again soon, so that the first notification after the stall is not late.
        if let Some(every) = every
            && now >= next
            && state.alive().is_ok()
        {
            socket.send("WATCHDOG=1");
            next = now + every;
        }
        if !is_stopping {
            let becomes_ready = !is_ready && state.is_connected();
            if becomes_ready || described.is_none_or(|at| now.duration_since(at) >= DESCRIBE) {
                let current = one_line(&state.describe());
                if becomes_ready {
                    socket.send(&format!("READY=1\nSTATUS={current}"));
                } else if current != description {
                    socket.send(&format!("STATUS={current}"));
                }
                is_ready |= becomes_ready;
                (described, description) = (Some(now), current);
            }
        }
        let wait = match every {
            Some(_) => match next.saturating_duration_since(Instant::now()) {
                Duration::ZERO => LOOK,
                left => left.min(LOOK),
            },
            None => LOOK,
        };
        match orders.recv_timeout(wait) {
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Ok(Order::Reloading) if is_ready && !is_stopping => socket.send(&reloading()),
            Ok(Order::Reloaded) if is_ready && !is_stopping => socket.send("READY=1"),
            Ok(Order::Reloading | Order::Reloaded) => {}
            order => {
                if !is_stopping {
                    socket.send("STOPPING=1\nSTATUS=checking the last messages");
                    is_stopping = true;
                }
                if order.is_err() {
                    break;
                }
            }
        }
    }
}

/// The notification that a reload begins, with the time that `Type=notify-reload` expects.
fn reloading() -> String {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Duration::ZERO, Duration::from);
    format!("RELOADING=1\nMONOTONIC_USEC={}", time.as_micros())
}

/// Returns the interval of keep-alive notifications that the variables of systemd define for the process `own`.
///
/// # Errors
/// The interval is not a number of microseconds.
fn watchdog(interval: Option<&str>, process: Option<&str>, own: u32) -> Result<Option<Duration>, String> {
    let Some(interval) = interval.filter(|interval| !interval.is_empty()) else { return Ok(None) };
    // The variables may have been inherited from a parent that they are meant for.
    if process.is_some_and(|process| process.parse::<u32>() != Ok(own)) {
        return Ok(None);
    }
    match interval.parse::<u64>() {
        Ok(0) | Err(_) => Err(format!("WATCHDOG_USEC={interval} is not a number of microseconds")),
        // An interval below one that can be kept would keep the processor busy.
        Ok(micros) => Ok(Some(Duration::from_micros(micros).max(Duration::from_millis(2)))),
    }
}

/// Returns the text without line breaks, which would begin another variable, and shortened to [`LONGEST`].
fn one_line(text: &str) -> String {
    let mut line = escaped(text).into_owned();
    if line.len() > LONGEST {
        let end = (0..=LONGEST).rev().find(|&end| line.is_char_boundary(end));
        line.truncate(end.unwrap_or(0));
        line.push('…');
    }
    line
}

/// The socket of the service manager.
struct Socket {
    own: UnixDatagram,
    address: SocketAddr,
    /// The name of the address, for messages.
    name: String,
    /// Whether a failure has been reported.
    is_reported: bool,
}

impl Socket {
    /// Opens a socket that sends to this address: a path, or `@` and an abstract name.
    ///
    /// # Errors
    /// The address is of another kind, or no socket can be opened.
    fn open(name: &OsStr) -> io::Result<Socket> {
        let address = address(name)?;
        let own = UnixDatagram::unbound()?;
        own.set_write_timeout(Some(LIMIT))?;
        Ok(Socket { own, address, name: name.to_string_lossy().into_owned(), is_reported: false })
    }

    /// Sends a notification. Reports the first failure, and tries again with the next notification.
    fn send(&mut self, notification: &str) {
        if let Err(error) = self.own.send_to_addr(notification.as_bytes(), &self.address)
            && !self.is_reported
        {
            self.is_reported = true;
            let name = &self.name;
            warn(&format!("cannot inform the service manager on {name}: {error}; the run continues"));
        }
    }
}

/// Returns the address of a socket: a path, or `@` and an abstract name.
fn address(name: &OsStr) -> io::Result<SocketAddr> {
    match name.as_bytes() {
        [b'/', ..] => SocketAddr::from_pathname(name),
        #[cfg(target_os = "linux")]
        [b'@', name @ ..] => {
            use std::os::linux::net::SocketAddrExt as _;
            SocketAddr::from_abstract_name(name)
        }
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "neither an absolute path nor an abstract name (@NAME)",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watchdog_is_for_this_process_only() {
        let second = Some(Duration::from_secs(1));
        assert_eq!(watchdog(None, None, 7), Ok(None));
        assert_eq!(watchdog(Some(""), None, 7), Ok(None));
        assert_eq!(watchdog(Some("1000000"), None, 7), Ok(second));
        assert_eq!(watchdog(Some("1000000"), Some("7"), 7), Ok(second));
        assert_eq!(watchdog(Some("1000000"), Some("8"), 7), Ok(None));
        assert_eq!(watchdog(Some("1000000"), Some("x"), 7), Ok(None));
        assert_eq!(watchdog(Some("1"), None, 7), Ok(Some(Duration::from_millis(2))));
        for wrong in ["0", "-1", "1 s", "99999999999999999999"] {
            assert!(watchdog(Some(wrong), None, 7).is_err(), "{wrong}");
        }
    }

    #[test]
    fn address_is_a_path_or_an_abstract_name() {
        let path = address(OsStr::new("/run/systemd/notify")).unwrap();
        assert_eq!(path.as_pathname(), Some(std::path::Path::new("/run/systemd/notify")));
        for wrong in ["", "relative", "vsock:2:9"] {
            assert!(address(OsStr::new(wrong)).is_err(), "{wrong}");
        }
        let long = format!("/{}", "x".repeat(200));
        assert!(address(OsStr::new(&long)).is_err());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn abstract_address_has_no_path() {
        use std::os::linux::net::SocketAddrExt as _;
        let address = address(OsStr::new("@rondel")).unwrap();
        assert_eq!(address.as_abstract_name(), Some(&b"rondel"[..]));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn stalled_thread_sends_no_keep_alive_notifications() {
        use std::os::linux::net::SocketAddrExt as _;
        use std::sync::Weak;

        use crate::live::losses::Undelivered;
        use crate::live::metrics::{Observed, Shown};
        use crate::live::pipeline::Pipeline;
        use crate::live::subscriptions::Subscriptions;
        use crate::live::watchdog::Stall;
        use crate::sinks::spool::Spools;

        let name = format!("rondel-service-{}", std::process::id());
        let manager =
            UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name.as_bytes()).unwrap()).unwrap();
        manager.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        let receive = || {
            let mut bytes = [0; 1000];
            manager.recv(&mut bytes).ok().map(|length| String::from_utf8_lossy(&bytes[..length]).into_owned())
        };
        let state = Arc::new(RunState::new(None));
        let stall = Stall::default();
        state.begin(Observed {
            pipeline: Weak::<Pipeline>::new(),
            networks: Weak::new(),
            topics: Vec::new(),
            slots: Vec::new(),
            properties: Arc::from([]),
            reloads: Default::default(),
            undelivered: Undelivered::default(),
            spools: Spools::default(),
            queues: Vec::new(),
            publishers: Vec::new(),
            driven: Vec::new(),
            audit: None,
            actions: None,
            subscriptions: Subscriptions::default(),
            subscribed: 0,
            stall: stall.clone(),
            standby: None,
            shown: Shown::default(),
        });
        let socket = Socket::open(OsStr::new(&format!("@{name}"))).unwrap();
        let manager = Manager { socket, watchdog: Some(Duration::from_millis(40)) };
        let service = manager.inform(Arc::clone(&state)).unwrap();
        let keep_alive = |text: &Option<String>| text.as_deref() == Some("WATCHDOG=1");
        for _ in 0..4 {
            while !keep_alive(&receive()) {}
        }
        stall.set(Some((Duration::from_secs(1), "evaluating".to_owned())));
        // Notifications that were under way.
        while receive().is_some() {}
        assert_eq!(receive(), None);
        stall.set(None);
        assert!(keep_alive(&receive()));
        service.stopping();
        drop(service);
        let rest: Vec<String> = std::iter::from_fn(receive).collect();
        assert_eq!(rest.iter().filter(|text| text.starts_with("STOPPING=1")).count(), 1, "{rest:?}");
        assert!(!rest.iter().any(|text| text.contains("READY=1")), "{rest:?}");
    }

    #[test]
    fn description_is_one_short_line() {
        assert_eq!(one_line("a\nREADY=1"), "a\\nREADY=1");
        let long = one_line(&"ä".repeat(1000));
        assert!(long.len() <= LONGEST + '…'.len_utf8() && long.ends_with("ä…"), "{long}");
    }
}
