//! `rondel init`: writes a first specification and deployment for the topics of a network or recording.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use clap::Args;
use rondel_decode::json::quoted;
use rondel_runtime::survey::{DraftOptions, draft};
use rondel_runtime::text::counted;

use super::topics::Look;
use crate::live::networks::NetworkArguments;
use crate::schemas::Schemas;
use crate::{complain, exit, say};

/// The file of the specification.
const SPECIFICATION: &str = "first.rondel";
/// The file of the deployment.
const DEPLOYMENT: &str = "rondel.yaml";

/// Write a first specification and deployment for the topics of a network or a recording
#[derive(Debug, Args)]
pub struct Init {
    #[command(flatten)]
    look: Look,
    /// The folder for first.rondel and rondel.yaml, which must not exist in it
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    folder: PathBuf,
    /// Read definitions of message types from this file or folder (may be repeated)
    #[arg(long, value_name = "PATH")]
    schemas: Vec<PathBuf>,
}

impl Init {
    /// Writes the files, and returns the exit status.
    pub fn run(self) -> u8 {
        match self.write() {
            Ok(true) => exit::SATISFIED,
            // The unreadable parts were reported.
            Ok(false) => exit::TRACE,
            Err((status, error)) => {
                if !error.is_empty() {
                    complain(&error);
                }
                status
            }
        }
    }

    /// Returns whether all was read that the draft is about.
    fn write(&self) -> Result<bool, (u8, String)> {
        let files = [SPECIFICATION, DEPLOYMENT].map(|name| self.folder.join(name));
        if let Some(file) = files.iter().find(|file| file.exists()) {
            return Err((
                exit::USAGE,
                format!("{} exists already; name another folder with --folder", file.display()),
            ));
        }
        let schemas = Schemas::read(&self.schemas).map_err(|error| (exit::USAGE, error))?;
        let schemas = schemas.with_recordings(&self.look.recordings());
        let schemas = Arc::new(Mutex::new(schemas));
        let seen = self.look.look(Some(&schemas)).map_err(|status| (status, String::new()))?;
        let options = DraftOptions {
            origin: seen.origin.clone(),
            specification: SPECIFICATION.to_owned(),
            networks: self.networks(!seen.recordings.is_empty()),
        };
        let knows = |name: &str| schemas.lock().unwrap_or_else(PoisonError::into_inner).schema(name).is_ok();
        let draft = draft(&seen.survey, &options, knows).ok_or_else(|| {
            let topics = seen.survey.topics().len() as u64;
            let found = counted(topics, "topic was found", "topics were found");
            (
                exit::USAGE,
                format!(
                    "nothing to write about: {found}, none with messages that can be decoded, in {}",
                    seen.origin
                ),
            )
        })?;
        let failed = |file: &Path, error: std::io::Error| {
            (exit::TRACE, format!("cannot write {}: {error}", file.display()))
        };
        std::fs::create_dir_all(&self.folder).map_err(|error| failed(&self.folder, error))?;
        for (file, text) in files.iter().zip([&draft.specification, &draft.deployment]) {
            let made = std::fs::OpenOptions::new().write(true).create_new(true).open(file);
            made.and_then(|mut made| made.write_all(text.as_bytes())).map_err(|error| failed(file, error))?;
        }
        draft.omitted.iter().for_each(|text| say(&format!("left out: {text}")));
        draft.outliers.iter().for_each(|text| say(&format!("unlike the rest: {text}")));
        let [specification, deployment] = files.map(|file| file.display().to_string());
        let topics = counted(draft.topics as u64, "topic", "topics");
        let properties = counted(draft.properties as u64, "property", "properties");
        let suggested = match draft.suggested {
            0 => String::new(),
            count => format!(", {count} more suggested in comments"),
        };
        say(&format!("wrote {specification} ({topics}, {properties}{suggested}) and {deployment}"));
        say(&if seen.recordings.is_empty() {
            format!("next: rondel run {deployment}")
        } else {
            let specification = if draft.needs_deployment { &deployment } else { &specification };
            let recordings = seen.recordings.iter().map(|file| format!(" {}", file.display()));
            let recordings: String = recordings.collect();
            format!("next: rondel check{} {specification}{recordings}", self.look.table_arguments())
        });
        Ok(!seen.is_damaged)
    }

    /// The networks and the definitions as settings of a deployment.
    fn networks(&self, is_recorded: bool) -> String {
        let path = |path: &PathBuf| {
            quoted(&std::path::absolute(path).unwrap_or_else(|_| path.clone()).display().to_string())
        };
        let list = |items: &[String]| {
            format!("[{}]", items.iter().map(|item| quoted(item)).collect::<Vec<_>>().join(", "))
        };
        let mut text = String::new();
        if !self.schemas.is_empty() {
            let paths: Vec<String> = self.schemas.iter().map(path).collect();
            text.push_str(&format!("schemas: [{}]\n", paths.join(", ")));
        }
        if is_recorded {
            return text;
        }
        let NetworkArguments { zenoh_connect, zenoh_listen, zenoh_mode, zenoh_config, .. } =
            &self.look.network;
        let NetworkArguments { dds_domain, dds_interface, dds_peer, mqtt_broker, mqtt_user, .. } =
            &self.look.network;
        let NetworkArguments { mqtt_password_file, mqtt_password_env, mqtt_ca, .. } = &self.look.network;
        let some = |items: &Vec<String>| (!items.is_empty()).then(|| list(items));
        let quote = |text: &Option<String>| text.as_deref().map(quoted);
        let sections = [
            (
                "zenoh",
                vec![
                    ("mode", zenoh_mode.clone()),
                    ("connect", some(zenoh_connect)),
                    ("listen", some(zenoh_listen)),
                    ("config", zenoh_config.as_ref().map(path)),
                ],
            ),
            (
                "dds",
                vec![
                    ("domain", dds_domain.map(|domain| domain.to_string())),
                    ("interface", quote(dds_interface)),
                    ("peers", some(dds_peer)),
                ],
            ),
            (
                "mqtt",
                vec![
                    ("broker", mqtt_broker.as_ref().map(|broker| quoted(&broker.to_string()))),
                    ("user", quote(mqtt_user)),
                    ("password_file", mqtt_password_file.as_ref().map(path)),
                    ("password_env", quote(mqtt_password_env)),
                    ("tls", mqtt_ca.as_ref().map(|ca| format!("{{ ca: {} }}", path(ca)))),
                ],
            ),
        ];
        for (name, settings) in sections {
            let settings = settings.into_iter().filter_map(|(key, value)| Some(format!("{key}: {}", value?)));
            let settings: Vec<String> = settings.collect();
            if !settings.is_empty() {
                text.push_str(&format!("{name}: {{ {} }}\n", settings.join(", ")));
            }
        }
        text
    }
}
