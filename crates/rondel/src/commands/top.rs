//! `rondel top`: properties and topics of a page in the terminal.

mod answers;
mod client;
mod detail;
mod draw;
mod model;
mod once;
mod screen;
#[cfg(test)]
mod tests;
mod text;
mod watch;

use std::io::{IsTerminal as _, stdin, stdout};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use clap::Args;
use clap::builder::PossibleValuesParser;
use rondel_net::adapter::now;
use rondel_sinks::connector::TlsConnector;
use rondel_sinks::tls::TlsOptions;

use self::client::{Address, Client, Failure, page_place};
use self::draw::Look;
use self::model::{Model, Tab};
use self::screen::{Message, Screen};
use self::watch::Requests;
use crate::deployment::Token;
use crate::output::terminal;
use crate::{complain, exit};

/// Time after which ages are drawn again.
const TICK: Duration = Duration::from_secs(1);

/// Show properties and topics of a run in the terminal
///
/// Shows what a page serves (`rondel run --page`, `page:` of a deployment, `rondel page`): properties with their verdicts,
/// the worst first, topics with rates and losses, explanations of violations. ? lists the keys.
#[derive(Debug, Args)]
#[command(after_help = EXIT_STATUS)]
pub struct Top {
    /// Host and port of the page
    #[arg(value_name = "ADDRESS", default_value = "127.0.0.1:8080", value_parser = page_place)]
    address: Address,
    /// A file with the token of the page
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Trust these authorities for an address with https (PEM; default: those that the system trusts)
    #[arg(long, value_name = "FILE")]
    tls_ca: Option<PathBuf>,
    /// The certificate of this client (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_certificate: Option<PathBuf>,
    /// The key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    tls_key: Option<PathBuf>,
    /// Begin with topics
    #[arg(long)]
    topics: bool,
    /// Show names that contain this text
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    search: String,
    /// Show properties with this verdict
    #[arg(long, value_name = "VERDICT", conflicts_with = "topics",
        value_parser = PossibleValuesParser::new(["violated", "inconclusive", "none", "satisfied"]))]
    verdict: Option<String>,
    /// Order: of properties worst (default), name, since or count; of topics name (default), rate, age or lost
    #[arg(long, value_name = "ORDER", hide_possible_values = true,
        value_parser = PossibleValuesParser::new(["worst", "name", "since", "count", "rate", "age", "lost"]))]
    sort: Option<String>,
    /// Print one table of everything that matches, and end
    #[arg(long)]
    once: bool,
}

const EXIT_STATUS: &str = "\
Exit status:
  0  a key or a signal ended it, or the table is printed
  2  wrong usage, or the page wants another token
  3  the output cannot be written
  5  the page does not answer";

/// Reason to end, and the exit status.
type Refusal = (String, u8);

impl Top {
    /// Shows the page until a key or a signal, and returns the exit status.
    pub fn run(self) -> u8 {
        match self.show() {
            Ok(()) => exit::SATISFIED,
            Err((why, status)) => {
                complain(&why);
                status
            }
        }
    }

    fn show(self) -> Result<(), Refusal> {
        let misused = |why: String| (why, exit::USAGE);
        let model = self.model().map_err(misused)?;
        let is_terminal = stdout().is_terminal() && stdin().is_terminal();
        if !self.once && !is_terminal {
            return Err(misused(
                "standard input and output must be a terminal: --once prints a table".to_owned(),
            ));
        }
        let tls = self.connector().map_err(misused)?;
        let token =
            self.token_file.map(|file| Token::File(file).read("the page")).transpose().map_err(misused)?;
        let mut client = Client::new(self.address.clone(), token.clone(), tls.clone());
        if self.once {
            let table =
                once::table(&mut client, &model).map_err(|failure| refusal(&self.address, &failure))?;
            let unwritten =
                |error: std::io::Error| (format!("cannot write the output: {error}"), exit::TRACE);
            return once::print(&table).map_err(unwritten);
        }
        watch(client, Client::new(self.address.clone(), token, tls), model, &self.address)
    }

    /// Reads the files of TLS, if the address has it.
    fn connector(&self) -> Result<TlsConnector, String> {
        let (ca, certificate, key) =
            (self.tls_ca.clone(), self.tls_certificate.clone(), self.tls_key.clone());
        let options = TlsOptions { ca, certificate, key };
        match self.address.is_encrypted() {
            true => Ok(TlsConnector::new(Some(Arc::new(options.client_config()?)))),
            false if options == TlsOptions::default() => Ok(TlsConnector::new(None)),
            false => Err(format!(
                "the address is one without TLS: write https://{}, or leave --tls-ca, --tls-certificate and --tls-key out",
                self.address.as_str()
            )),
        }
    }

    /// The screen that the options choose.
    fn model(&self) -> Result<Model, String> {
        let mut model = Model::new(self.address.as_str().to_owned());
        if self.topics {
            model.tab = Tab::Topics;
        }
        match model.choose(&self.search, self.verdict.as_deref(), self.sort.as_deref()) {
            true => Ok(model),
            false => Err(match self.topics {
                true => "--sort: topics are ordered by name, rate, age or lost".to_owned(),
                false => "--sort: properties are ordered by worst, name, since or count".to_owned(),
            }),
        }
    }
}

/// The message about a page that does not answer as it should, with the exit status.
fn refusal(address: &Address, failure: &Failure) -> Refusal {
    let hint = match failure {
        Failure::Silent(why) if why.to_ascii_lowercase().contains("certificate") => {
            "; --tls-ca, --tls-certificate and --tls-key name the files of TLS"
        }
        Failure::Silent(_) => "; a run serves its page with `--page`",
        Failure::Refused(401, _) => "; --token-file gives the token",
        Failure::Refused(..) => "",
    };
    let status = match failure {
        Failure::Refused(400..=403, _) => exit::USAGE,
        _ => exit::NETWORK,
    };
    (format!("the page at {}: {failure}{hint}", address.as_str()), status)
}

/// Shows the page until a key or a signal.
fn watch(mut client: Client, events: Client, mut model: Model, address: &Address) -> Result<(), Refusal> {
    // A wrong address or token ends the command before the terminal is taken.
    let loaded = watch::load(&mut client, model.wanted()).map_err(|failure| refusal(address, &failure))?;
    model.load(loaded, Instant::now(), now().as_nanos());
    let unusable = |error: std::io::Error| (format!("cannot use the terminal: {error}"), exit::TRACE);
    let (sender, messages) = mpsc::channel();
    let requests = Arc::new(Requests::default());
    let mut screen = Screen::open(look()).map_err(unusable)?;
    screen::listen(&sender).map_err(unusable)?;
    watch::start(client, events, &requests, &sender).map_err(unusable)?;
    loop {
        screen.draw(&mut model).map_err(unusable)?;
        requests.want(&model.wanted());
        let first = match messages.recv_timeout(TICK) {
            Ok(message) => Some(message),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        };
        if screen.is_lost() {
            return Err(("a thread has panicked".to_owned(), exit::TRACE));
        }
        for message in first.into_iter().chain(messages.try_iter()) {
            match message {
                Message::Key(key) => {
                    if model.key(key) {
                        return Ok(());
                    }
                }
                Message::Resized => {}
                Message::Continued => screen.take_again().map_err(unusable)?,
                Message::Loaded(loaded) => model.load(*loaded, Instant::now(), now().as_nanos()),
                Message::Failed(why) => model.fail(why),
                Message::Began => model.has_ended = false,
                Message::Ended => model.has_ended = true,
                Message::Stop => return Ok(()),
                Message::Broken(error) => return Err(unusable(error)),
            }
        }
    }
}

/// Abilities of the terminal, by `--color`, NO_COLOR and the locale.
fn look() -> Look {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
    let unicode = locale.is_some_and(|locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    });
    Look { colour: terminal::colours_stdout(), unicode }
}
