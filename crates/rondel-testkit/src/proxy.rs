//! A TCP proxy that can cut its connections.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// A TCP proxy that counts bytes and can cut its connections.
pub struct Proxy {
    /// TCP port of loopback.
    pub port: u16,
    streams: Arc<Mutex<Vec<TcpStream>>>,
    is_interrupted: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    received: Arc<AtomicU64>,
}

impl Proxy {
    /// Starts a proxy to a port of loopback.
    pub fn to(target: u16) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let proxy = Proxy {
            port,
            streams: Arc::default(),
            is_interrupted: Arc::default(),
            sent: Arc::default(),
            received: Arc::default(),
        };
        let (streams, sent) = (Arc::clone(&proxy.streams), Arc::clone(&proxy.sent));
        let (received, is_interrupted) = (Arc::clone(&proxy.received), Arc::clone(&proxy.is_interrupted));
        std::thread::spawn(move || {
            for near in listener.incoming() {
                let Ok(near) = near else { break };
                if is_interrupted.load(Ordering::SeqCst) {
                    continue;
                }
                let Ok(far) = TcpStream::connect(("127.0.0.1", target)) else { continue };
                for stream in [&near, &far] {
                    stream.set_nodelay(true).unwrap();
                    streams.lock().unwrap().push(stream.try_clone().unwrap());
                }
                forward(near.try_clone().unwrap(), far.try_clone().unwrap(), Arc::clone(&sent));
                forward(far, near, Arc::clone(&received));
            }
        });
        proxy
    }

    /// Returns the number of bytes forwarded from clients to the target.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Returns the number of bytes forwarded from the target to clients.
    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Cuts all connections, and refuses further ones until [`resume`](Proxy::resume).
    pub fn interrupt(&self) {
        self.is_interrupted.store(true, Ordering::SeqCst);
        self.cut();
    }

    /// Accepts connections again.
    pub fn resume(&self) {
        self.is_interrupted.store(false, Ordering::SeqCst);
    }

    /// Cuts all current connections; new ones are accepted.
    pub fn cut(&self) {
        for stream in self.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn forward(mut from: TcpStream, mut to: TcpStream, bytes: Arc<AtomicU64>) {
    std::thread::spawn(move || {
        let mut buffer = [0; 16384];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            if to.write_all(&buffer[..count]).is_err() {
                break;
            }
            bytes.fetch_add(count as u64, Ordering::Relaxed);
        }
        let _ = to.shutdown(Shutdown::Both);
    });
}
