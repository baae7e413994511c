//! The terminal: taken at the start, given back at the end, on signals and on a panic, taken again after a stop.

use std::io::{self, Stdout, stdout};
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::event::{self, Event, KeyEvent};
use ratatui::crossterm::execute;
use ratatui::crossterm::style::force_color_output;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::draw::{Look, draw};
use super::model::Model;
use super::watch::Loaded;

/// Whether the terminal is taken.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// A reason to draw again, or to end.
#[derive(Debug)]
pub enum Message {
    /// A key.
    Key(KeyEvent),
    /// The terminal has another size.
    Resized,
    /// The command goes on after a stop.
    Continued,
    /// An answer.
    Loaded(Box<Loaded>),
    /// There is no answer, for this reason.
    Failed(String),
    /// The server sends events.
    Began,
    /// The run has ended.
    Ended,
    /// A signal requests the end.
    Stop,
    /// The terminal cannot be read.
    Broken(io::Error),
}

/// The terminal, until it is dropped.
pub struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    look: Look,
}

fn take() -> io::Result<()> {
    IS_TAKEN.store(true, Ordering::SeqCst);
    enable_raw_mode()?;
    execute!(stdout(), EnterAlternateScreen, Hide)
}

/// Gives the terminal back, once.
fn give_back() {
    if IS_TAKEN.swap(false, Ordering::SeqCst) {
        // A terminal that is gone needs nothing back.
        let _ = disable_raw_mode();
        let _ = execute!(stdout(), LeaveAlternateScreen, Show);
    }
}

impl Screen {
    /// Takes the terminal.
    ///
    /// # Errors
    /// The system refuses.
    pub fn open(look: Look) -> io::Result<Screen> {
        // `--color always` is stronger than NO_COLOR.
        force_color_output(look.colour);
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            give_back();
            before(panic);
        }));
        let taken = take().and_then(|()| Terminal::new(CrosstermBackend::new(stdout())));
        match taken {
            Ok(terminal) => Ok(Screen { terminal, look }),
            Err(error) => {
                give_back();
                Err(error)
            }
        }
    }

    /// Whether a panic, also of another thread, has given the terminal back.
    pub fn is_lost(&self) -> bool {
        !IS_TAKEN.load(Ordering::SeqCst)
    }

    /// Draws what has changed.
    ///
    /// # Errors
    /// The terminal cannot be written.
    pub fn draw(&mut self, model: &mut Model) -> io::Result<()> {
        let look = self.look;
        self.terminal.draw(|frame| draw(model, frame.buffer_mut(), Instant::now(), look))?;
        Ok(())
    }

    /// Takes the terminal again after a stop, and draws everything with the next call.
    ///
    /// # Errors
    /// The terminal cannot be written.
    pub fn take_again(&mut self) -> io::Result<()> {
        take()?;
        let size = self.terminal.size()?;
        self.terminal.resize(size.into())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Sends keys and signals.
///
/// # Errors
/// The system refuses handlers or a thread.
pub fn listen(messages: &mpsc::Sender<Message>) -> io::Result<()> {
    let sender = messages.clone();
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM, SIGCONT])?;
    thread::Builder::new().name("signals".into()).spawn(move || {
        let mut is_stopping = false;
        for signal in signals.forever() {
            if signal == SIGCONT {
                // The end of the command is noticed by others.
                let _ = sender.send(Message::Continued);
                continue;
            }
            if is_stopping {
                // The terminal does not take what is written.
                let _ = disable_raw_mode();
                std::process::exit(128 + signal);
            }
            is_stopping = true;
            let _ = sender.send(Message::Stop);
        }
    })?;
    let sender = messages.clone();
    thread::Builder::new().name("keys".into()).spawn(move || {
        loop {
            let message = match event::read() {
                Ok(Event::Key(key)) => Message::Key(key),
                Ok(Event::Resize(..)) => Message::Resized,
                Ok(_) => continue,
                Err(error) => Message::Broken(error),
            };
            let is_over = matches!(message, Message::Broken(_));
            if sender.send(message).is_err() || is_over {
                return;
            }
        }
    })?;
    Ok(())
}
