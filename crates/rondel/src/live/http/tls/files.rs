//! Files of TLS, which are read again and again: certificates expire, and are replaced.

use std::sync::Arc;
use std::time::Duration;

use rondel_event::Timestamp;
use rondel_net::adapter::now;
use rondel_sinks::tls::{ServerTls, ServerTlsOptions};
use tokio::sync::watch;
use tokio::task;
use tokio::time::{MissedTickBehavior, interval};
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::CertificateDer;

use super::Encryption;
use crate::live::http::connection::Places;
use crate::output::time_text::TimeText;
use crate::{say, warn};

/// Content of the files.
pub(super) struct Files {
    pub(super) config: Arc<ServerConfig>,
    /// The certificate of the server, followed by those between it and its root.
    chain: Vec<CertificateDer<'static>>,
    client_ca: Vec<CertificateDer<'static>>,
    validity: Option<(Timestamp, Timestamp)>,
}

impl Files {
    /// Reads the files of a server of HTTP/1.1.
    pub(super) fn read(options: &ServerTlsOptions) -> Result<Files, String> {
        let ServerTls { mut config, chain, client_ca, validity } = options.server()?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Files { config: Arc::new(config), chain, client_ca, validity })
    }

    /// Returns an error if the certificate is not valid at a time.
    fn check(&self, options: &ServerTlsOptions, now: Timestamp) -> Result<(), String> {
        let name = options.certificate.display();
        let text = |time: Timestamp| TimeText::default().text(time);
        match self.validity {
            Some((first, _)) if now < first => Err(format!("{name} is not valid before {}", text(first))),
            Some((_, last)) if now > last => Err(format!("{name} has expired on {}", text(last))),
            _ => Ok(()),
        }
    }
}

/// Reads the files again and again. Those that cannot be used are reported, and change nothing. When the authorities of
/// clients change, all connections are closed, so that their clients are verified again.
pub(super) async fn renew(
    encryption: Encryption,
    config: watch::Sender<Arc<ServerConfig>>,
    places: Arc<Places>,
    what: &'static str,
    every: Duration,
) {
    let Encryption { options, mut files, .. } = encryption;
    let (mut ticks, mut reported) = (interval(every), None);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut is_valid = true;
    loop {
        // The first one is at once.
        ticks.tick().await;
        let present = files.check(&options, now());
        if let Err(why) = present.as_ref()
            && is_valid
        {
            warn(&format!("clients refuse {what}: {why}; replace the file, which is read every minute"));
        }
        is_valid = present.is_ok();
        let own = options.clone();
        // A panic is reported by its thread.
        let Ok(found) = task::spawn_blocking(move || Files::read(&own)).await else { continue };
        let is_new = |found: &Files| found.chain != files.chain || found.client_ca != files.client_ca;
        let found = match found {
            Ok(found) if !is_new(&found) => {
                reported = None;
                continue;
            }
            Ok(found) => found.check(&options, now()).map(|()| found),
            Err(why) => Err(why),
        };
        match found {
            Ok(found) => {
                (reported, is_valid) = (None, true);
                config.send_replace(Arc::clone(&found.config));
                if found.client_ca != files.client_ca {
                    places.close();
                }
                say(&format!("{what} uses the new files of TLS{}", until(&found)));
                files = found;
            }
            Err(why) if reported.as_ref() != Some(&why) => {
                warn(&format!("{what} keeps its certificates of before: {why}"));
                reported = Some(why);
            }
            Err(_) => {}
        }
    }
}

/// The end of the validity, for a message.
fn until(files: &Files) -> String {
    match files.validity {
        Some((_, last)) => format!("; its certificate is valid until {}", TimeText::default().text(last)),
        None => String::new(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use rondel_testkit::Folder;
    use tokio::time::timeout;

    use super::*;

    fn replace(folder: &Folder, years: (i32, i32)) {
        let mut parameters = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        parameters.not_before = rcgen::date_time_ymd(years.0, 1, 1);
        parameters.not_after = rcgen::date_time_ymd(years.1, 1, 1);
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = parameters.self_signed(&key).unwrap();
        folder.file("own.pem", certificate.pem());
        folder.file("own.key", key.serialize_pem());
    }

    #[test]
    fn replaced_files_are_read_again() {
        let folder = Folder::new();
        replace(&folder, (2020, 2100));
        let file = |name: &str| folder.as_path().join(name);
        let options =
            ServerTlsOptions { certificate: file("own.pem"), key: file("own.key"), client_ca: None };
        let encryption = Encryption::new(options.clone(), Arc::default()).unwrap();
        let first = Arc::clone(&encryption.files.config);
        folder.file("own.key", "no key");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (sender, mut config) = watch::channel(Arc::clone(&first));
            let places = Arc::new(Places::new(1));
            tokio::spawn(renew(encryption, sender, places, "the page", Duration::from_millis(10)));
            let unchanged = timeout(Duration::from_millis(200), config.changed()).await;
            assert!(unchanged.is_err(), "files that cannot be used change nothing");
            replace(&folder, (2020, 2021));
            let unchanged = timeout(Duration::from_millis(200), config.changed()).await;
            assert!(unchanged.is_err(), "an expired certificate changes nothing");
            replace(&folder, (2020, 2100));
            timeout(Duration::from_secs(30), config.changed()).await.unwrap().unwrap();
            let renewed = config.borrow().clone();
            assert!(!Arc::ptr_eq(&first, &renewed));
            let unchanged = timeout(Duration::from_millis(200), config.changed()).await;
            assert!(unchanged.is_err(), "the same files are no new ones");
        });
    }

    #[test]
    fn certificates_that_are_not_valid_are_named() {
        let folder = Folder::new();
        let file = |name: &str| folder.as_path().join(name);
        let options =
            ServerTlsOptions { certificate: file("own.pem"), key: file("own.key"), client_ca: None };
        for (years, said) in [((2020, 2021), "has expired on 20"), ((2090, 2100), "is not valid before 20")] {
            replace(&folder, years);
            let why = Files::read(&options).unwrap().check(&options, now()).unwrap_err();
            assert!(why.contains("own.pem") && why.contains(said), "{why}");
        }
    }
}
