//! `rondel page`: the page of a store.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use crate::deployment::page_address;

/// Serve the page of a store of verdicts
///
/// Shows verdicts, violations with their explanations, incidents and losses in a browser, also while a run writes the
/// store, and of a store that an earlier release has written. SIGINT and SIGTERM end it.
#[cfg_attr(not(feature = "page"), allow(dead_code))]
#[derive(Debug, Args)]
#[command(after_help = EXIT_STATUS)]
pub struct Page {
    /// The store
    #[arg(value_name = "STORE")]
    store: PathBuf,
    /// The address of the server
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080", value_parser = page_address)]
    listen: SocketAddr,
    /// Show this series of runs (default: that of the latest run)
    #[arg(long, value_name = "NAME")]
    series: Option<String>,
    /// A file with the token that requests carry; needed unless the address is one of this machine alone, or clients
    /// have certificates
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Encrypt with this certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_certificate: Option<PathBuf>,
    /// The key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    tls_key: Option<PathBuf>,
    /// Serve only clients with a certificate of these authorities (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    tls_client_ca: Option<PathBuf>,
    /// A name under which the page is opened, beside localhost and IP addresses (may be repeated)
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
    /// Permit to acknowledge violations and to silence properties, as `rondel ack` and `rondel silence` do
    #[arg(long)]
    actions: bool,
    /// A recording for the playground, in which viewers check specifications that they edit (may be repeated)
    #[arg(long, value_name = "FILE")]
    recording: Vec<PathBuf>,
    /// Permit viewers to save the specification of the playground to this file
    #[arg(long, value_name = "FILE", requires = "recording")]
    save_to: Option<PathBuf>,
}

const EXIT_STATUS: &str = "\
Exit status:
  0  a signal ended it
  2  wrong usage, or the address or a file of TLS cannot be used
  3  the store cannot be read";

#[cfg(not(feature = "page"))]
impl Page {
    /// Refuses, and returns the exit status.
    pub fn run(self) -> u8 {
        crate::complain(crate::live::page::UNAVAILABLE);
        crate::exit::USAGE
    }
}

#[cfg(feature = "page")]
mod serving {
    use rondel_page::{Kind, check_store};

    use super::Page;
    use crate::commands::check::attempt::offer;
    use crate::deployment::{PageSettings, ServerTlsFiles, Token};
    use crate::live::page::{PageServer, Playground, Subject};
    use crate::live::signals::End;
    use crate::{complain, exit};

    impl Page {
        /// Serves the page until a signal, and returns the exit status.
        pub fn run(self) -> u8 {
            match self.serve() {
                Ok(()) => exit::SATISFIED,
                Err((why, status)) => {
                    complain(&why);
                    status
                }
            }
        }

        fn serve(self) -> Result<(), (String, u8)> {
            let misused = |why: String| (why, exit::USAGE);
            let End { stopped, stop: _stop, .. } = End::on_signal().map_err(misused)?;
            let settings = PageSettings {
                token: self.token_file.map(Token::File),
                hosts: self.host,
                actions: self.actions,
                tls: self.tls_certificate.zip(self.tls_key).map(|(certificate, key)| ServerTlsFiles {
                    certificate,
                    key,
                    client_ca: self.tls_client_ca,
                }),
                ..PageSettings::of(self.listen)
            };
            settings.check().map_err(|_| {
                misused(format!(
                    "--listen: others can connect to {}: add a token by --token-file, require certificates of clients \
                     by --tls-client-ca, or listen on 127.0.0.1",
                    settings.listen
                ))
            })?;
            check_store(&self.store, self.series.as_deref()).map_err(|why| (why, exit::TRACE))?;
            let mut playground = Playground::new(self.save_to);
            for recording in &self.recording {
                if let Err(error) = recording.metadata() {
                    let why = format!("--recording: cannot read {}: {error}", recording.display());
                    return Err((why, exit::TRACE));
                }
                offer(&mut playground, recording);
            }
            let subject = Subject {
                kind: Kind::Store,
                store: self.store,
                series: self.series,
                described: None,
                signals: Vec::new(),
                state: None,
                playground: Some(playground).filter(|_| !self.recording.is_empty()),
            };
            let server = PageServer::start(&settings, subject).map_err(misused)?;
            // The sender lives as long as this function.
            let _ = stopped.recv();
            drop(server);
            Ok(())
        }
    }
}
