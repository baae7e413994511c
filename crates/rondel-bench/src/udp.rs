//! An echo of datagrams on loopback: the least that a round trip between two processes costs.

use std::io::ErrorKind;
use std::net::UdpSocket;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::child::{Child, Stdout};
use crate::failure::{Result, io_error, same};
use crate::link::PATIENCE;
use crate::peer::stop_signal;
use crate::{program, say};

/// The time after which the echo looks whether it was stopped.
const LOOK: Duration = Duration::from_millis(100);
/// The size of the largest datagram.
const LARGEST: usize = 65_536;

/// Sends every datagram back, until a signal. Prints its port.
///
/// # Errors
/// When the system refuses the socket.
pub fn echo() -> Result<()> {
    let failed = || io_error("the socket of the echo");
    let stop = stop_signal()?;
    let socket = UdpSocket::bind("127.0.0.1:0").map_err(failed())?;
    socket.set_read_timeout(Some(LOOK)).map_err(failed())?;
    say(&format!("ready: {}", socket.local_addr().map_err(failed())?.port()));
    let mut buffer = vec![0; LARGEST];
    while !stop.load(Ordering::Relaxed) {
        match socket.recv_from(&mut buffer) {
            Ok((length, from)) => {
                socket.send_to(&buffer[..length], from).map_err(failed())?;
            }
            Err(error) if is_silence(&error) => {}
            Err(error) => return Err(failed()(error)),
        }
    }
    Ok(())
}

/// Whether nothing arrived in time, or a signal did.
fn is_silence(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// A child that echoes datagrams, and the socket to it.
pub struct Datagrams {
    child: Child,
    socket: UdpSocket,
    buffer: Vec<u8>,
}

impl Datagrams {
    /// Starts the child.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start() -> Result<Datagrams> {
        let failed = || io_error("the socket to the echo");
        let arguments = ["peer", "udp-echo"].map(str::to_owned);
        let mut child = Child::start("UDP echo", &program::own()?, &arguments, Stdout::Nothing)?;
        let (line, _) = child.wait_for("ready: ", PATIENCE)?;
        let port: Option<u16> = line.strip_prefix("ready: ").and_then(|port| port.trim().parse().ok());
        let port = port.ok_or_else(|| child.failed("no port"))?;
        let socket = UdpSocket::bind("127.0.0.1:0").map_err(failed())?;
        socket.connect(("127.0.0.1", port)).map_err(failed())?;
        socket.set_read_timeout(Some(PATIENCE)).map_err(failed())?;
        Ok(Datagrams { child, socket, buffer: vec![0; LARGEST] })
    }

    /// Sends a datagram and returns the time until it is back, in microseconds.
    ///
    /// # Errors
    /// When it is lost.
    pub fn ping(&mut self, payload: &[u8]) -> Result<f64> {
        let failed = || io_error("the socket to the echo");
        let started = Instant::now();
        self.socket.send(payload).map_err(failed())?;
        let length = self.socket.recv(&mut self.buffer).map_err(failed())?;
        let us = started.elapsed().as_secs_f64() * 1e6;
        same(|| "bytes of the datagram".to_owned(), payload.len() as u64, length as u64)?;
        Ok(us)
    }

    /// Ends the child.
    ///
    /// # Errors
    /// When it failed.
    pub fn end(self) -> Result<()> {
        self.child.end()?.succeeded("UDP echo").map(drop)
    }
}
