//! A TCP connection that can be cut without notice to either end.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Interval at which a relay checks whether it is cut.
const TICK: Duration = Duration::from_millis(5);

/// Forwards connections to a port of loopback.
pub struct Relay {
    pub port: u16,
    cut: Arc<AtomicBool>,
}

impl Relay {
    pub fn to(target: u16) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let relay = Relay { port: listener.local_addr().unwrap().port(), cut: Arc::default() };
        let cut = Arc::clone(&relay.cut);
        std::thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                let cut = Arc::clone(&cut);
                std::thread::spawn(move || {
                    // Connecting during the cut waits, as packets would be sent again.
                    wait(&cut);
                    let Ok(far) = TcpStream::connect(("127.0.0.1", target)) else { return };
                    let back = (far.try_clone().unwrap(), near.try_clone().unwrap(), Arc::clone(&cut));
                    std::thread::spawn(move || forward(back.0, back.1, &back.2));
                    forward(near, far, &cut);
                });
            }
        });
        relay
    }

    /// Forwards nothing any more, or everything again: what came meanwhile is not lost, as TCP sends it again.
    pub fn cut(&self, cut: bool) {
        self.cut.store(cut, Ordering::Relaxed);
    }
}

fn wait(cut: &AtomicBool) {
    while cut.load(Ordering::Relaxed) {
        std::thread::sleep(TICK);
    }
}

fn forward(mut from: TcpStream, mut to: TcpStream, cut: &AtomicBool) {
    let _ = to.set_nodelay(true);
    let mut buffer = [0; 65536];
    loop {
        let count = match from.read(&mut buffer) {
            Ok(count @ 1..) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            _ => break,
        };
        wait(cut);
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    // The end of a connection does not pass a cut either.
    wait(cut);
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}
