//! `rondel init`: writes a first specification and deployment for the topics of a network or recording.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use clap::Args;
use rondel_decode::json::quoted;
use rondel_event::terminal::escaped;
use rondel_recording::shown;
use rondel_report::{Judged, Outcome, Recording, Results};
use rondel_runtime::Specification;
use rondel_runtime::survey::{DRAFT_TOPICS, Draft, DraftOptions, declarations, draft};
use rondel_runtime::text::counted;
use rondel_spec::{ParseOptions, Sources};

use super::check::Check;
use super::selecting::can_be_read_again;
use super::topics::{Look, Seen};
use crate::deployment::Deployment;
use crate::live::networks::NetworkArguments;
use crate::output::folder::write_new;
use crate::output::terminal;
use crate::schemas::Schemas;
use crate::{complain, exit, say, warn};

/// Number of topics that are named if none can be written about.
const REASONS: usize = 5;
/// The file of the specification.
const SPECIFICATION: &str = "first.rondel";
/// The file of the deployment.
const DEPLOYMENT: &str = "rondel.yaml";
/// Maximum number of checks of a draft: after one that leaves no property, suggestions become properties, then asserts.
const ROUNDS: usize = 4;

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
        let mut options = DraftOptions {
            origin: seen.origin.clone(),
            specification: SPECIFICATION.to_owned(),
            networks: self.networks(!seen.recordings.is_empty()),
            notes: seen.unreadable.iter().map(|place| unreadable(place)).collect(),
            refuted: None,
        };
        let knows = |name: &str| schemas.lock().unwrap_or_else(PoisonError::into_inner).schema(name).is_ok();
        let compiles = |draft: &Draft| {
            let schemas = schemas.lock().unwrap_or_else(PoisonError::into_inner);
            mistakes(&draft.specification, &schemas).map_or(Ok(()), |mistakes| {
                Err((
                    exit::USAGE,
                    format!(
                        "nothing was written: the draft has mistakes, which is an error of Rondel\n{mistakes}"
                    ),
                ))
            })
        };
        let mut written = draft(&seen.survey, &options, knows).ok_or_else(|| {
            let topics = seen.survey.topics().len() as u64;
            let found = counted(topics, "topic was found", "topics were found");
            let (_, omitted) = declarations(&seen.survey, DRAFT_TOPICS, knows);
            let mut text = format!(
                "nothing to write about: {found}, none with messages that can be decoded, in {}",
                seen.origin
            );
            omitted.iter().take(REASONS).for_each(|reason| text += &format!("\n  {}", escaped(reason)));
            (exit::USAGE, text)
        })?;
        compiles(&written)?;
        let failed = |file: &Path, error: std::io::Error| {
            (exit::TRACE, format!("cannot write {}: {error}", file.display()))
        };
        std::fs::create_dir_all(&self.folder).map_err(|error| failed(&self.folder, error))?;
        let texts = [written.specification.as_str(), written.deployment.as_str()];
        write_new(files.iter().map(PathBuf::as_path).zip(texts))
            .map_err(|(file, error)| failed(file, error))?;
        self.check_deployment(&files, &seen)?;
        for _ in 0..ROUNDS {
            let Some(refuted) = self.refuted(&files, &written, &seen) else { break };
            let holds = refuted.is_empty();
            options.refuted.get_or_insert_default().extend(refuted);
            let again = draft(&seen.survey, &options, knows);
            let is_better =
                |again: &Draft| again.specification != written.specification && compiles(again).is_ok();
            let Some(again) = again.filter(is_better) else { break };
            written = again;
            let replaced = rondel_recording::durable::replace(&files[0], written.specification.as_bytes());
            replaced.map_err(|error| failed(&files[0], error))?;
            if holds {
                break;
            }
        }
        self.report(&files, &written, &seen, &options.refuted.unwrap_or_default());
        Ok(!seen.is_damaged)
    }

    /// Removes the files again if the deployment cannot be used. That of a network was read from there.
    fn check_deployment(&self, files: &[PathBuf; 2], seen: &Seen) -> Result<(), (u8, String)> {
        if seen.recordings.is_empty() || !seen.recordings.iter().all(|file| can_be_read_again(file)) {
            return Ok(());
        }
        let (read, lines) =
            terminal::kept_lines(|| Deployment::for_recordings(&files[1], &seen.recordings).is_ok());
        if read {
            return Ok(());
        }
        for file in files {
            // The message says that they are gone; what cannot be removed is seen beside it.
            let _ = std::fs::remove_file(file);
        }
        lines.iter().for_each(|line| say(line));
        Err((
            exit::USAGE,
            "nothing was written: the deployment has mistakes, which is an error of Rondel".to_owned(),
        ))
    }

    /// Shows what was written, and what was not.
    fn report(&self, files: &[PathBuf; 2], draft: &Draft, seen: &Seen, refuted: &BTreeMap<String, String>) {
        draft.omitted.iter().for_each(|text| say(&format!("left out: {}", escaped(text))));
        for reason in &draft.unaddressed {
            say(&format!("{}: the deployment needs the one of its messages", escaped(reason)));
        }
        draft.outliers.iter().for_each(|text| say(&format!("unlike the rest: {}", escaped(text))));
        for (name, reason) in refuted {
            // Asserts that a topic came are no suggestions.
            let is_suggested = draft.specification.contains(&format!("// property {name} ="));
            say(&format!("{}: {name}: {reason}", if is_suggested { "only suggested" } else { "left out" }));
        }
        let [specification, deployment] = files.each_ref().map(|file| file.display().to_string());
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
            let skips = if seen.unreadable.is_empty() { "" } else { " --on-error skip" };
            format!("next: rondel check{skips}{} {specification}{recordings}", self.look.table_arguments())
        });
    }

    /// The properties of a written draft that do not hold in its recordings, by name, each with the reason as a sentence.
    /// `None` if they are not checked: there is no recording, or `rondel check` cannot read the same messages again.
    fn refuted(&self, files: &[PathBuf; 2], draft: &Draft, seen: &Seen) -> Option<BTreeMap<String, String>> {
        if seen.recordings.is_empty() {
            return None;
        }
        if let Some(once) = seen.recordings.iter().find(|file| !can_be_read_again(file)) {
            warn(&format!("{} is not read again, so the properties are not checked with it", shown(once)));
            return None;
        }
        let lines = seen.recordings.iter().find(|file| rondel_recording::has_lines(file));
        if let Some(lines) = lines.filter(|_| self.look.span() != (None, None)) {
            warn(&format!("{}: a part of JSON lines is not checked by itself", shown(lines)));
            return None;
        }
        let first = &files[usize::from(draft.needs_deployment)];
        let (look, schemas) = (&self.look, &self.schemas);
        let check = Check::of_files(first.clone(), schemas, &seen.recordings, look.tables(), look.span());
        // Warnings about the recordings were shown when they were looked at.
        let (judged, lines) = terminal::kept_lines(|| check.judged());
        let is_read = |recording: &Recording| !recording.properties.is_empty();
        match judged {
            Ok(results) if results.recordings.iter().all(is_read) => {
                // Messages before and behind the chosen part may decide a property, too.
                Some(refuted(&results, seen.is_damaged || look.span() != (None, None)))
            }
            _ => {
                lines.iter().for_each(|line| say(line));
                warn(&format!(
                    "the properties of {} could not be checked with what was read",
                    first.display()
                ));
                None
            }
        }
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
            ("kafka", vec![("brokers", some(&self.look.network.kafka_broker))]),
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

/// The sentence about a line that could not be read, and about checks of its recording.
fn unreadable(place: &str) -> String {
    format!(
        "{place} is no message: the draft is about the other lines. `rondel check` ends there with status 3; with \
         `--on-error skip` it leaves such lines out, and verdicts that depend on them are inconclusive."
    )
}

/// The mistakes of a specification as text; `None` without any.
fn mistakes(text: &str, schemas: &Schemas) -> Option<String> {
    let sources = Sources::alone(SPECIFICATION, text);
    let parsed = rondel_spec::parse_sources(&sources, &ParseOptions::default(), Some(schemas));
    let errors = parsed.diagnostics.iter().filter(|diagnostic| diagnostic.is_error());
    let shown: Vec<String> = errors.map(|diagnostic| diagnostic.render_in(&sources, false)).collect();
    match parsed.spec.filter(|_| shown.is_empty()) {
        Some(spec) => Specification::new(spec).err().map(|error| error.to_string()),
        None => Some(shown.join("\n")),
    }
}

/// The properties that are violated or undecided in a recording, or that none tests, by name, each with the reason as a
/// sentence. If only a part of the recordings was read, undecided properties are not refuted.
fn refuted(results: &Results, is_part: bool) -> BTreeMap<String, String> {
    let mut refuted = BTreeMap::new();
    for (position, claim) in results.properties.iter().enumerate() {
        // A recording without messages decides nothing.
        let recordings = results.recordings.iter().filter(|recording| recording.events > 0);
        let all: Vec<(&Recording, &Judged)> = recordings
            .filter_map(|recording| Some((recording, recording.properties.get(position)?)))
            .collect();
        let is_several = results.recordings.len() > 1;
        let violated = all.iter().find(|(_, judged)| judged.outcome == Outcome::Violated);
        if let Some((recording, judged)) = violated {
            refuted.insert(claim.name.clone(), violation(recording, judged, is_several));
            continue;
        }
        let is_undecided = |(recording, judged): &&(&Recording, &Judged)| {
            judged.outcome == Outcome::Inconclusive && recording.problem.is_none() && !is_part
        };
        if let Some((_, judged)) = all.iter().find(is_undecided) {
            let remark = Some(&judged.remark).filter(|remark| !remark.is_empty());
            let remark = remark.map_or_else(String::new, |remark| format!(": {remark}"));
            refuted.insert(claim.name.clone(), format!("Not decided{remark}."));
        } else if !all.is_empty() && all.iter().all(|(_, judged)| judged.outcome == Outcome::Vacuous) {
            let reason = all.iter().find_map(|(_, judged)| judged.vacuous.first());
            let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
            refuted.insert(claim.name.clone(), format!("What was recorded does not test it{reason}."));
        }
    }
    refuted
}

/// Describes the violations of a property in a recording.
fn violation(recording: &Recording, judged: &Judged, is_several: bool) -> String {
    let times = counted(judged.count, "time", "times");
    let place = if is_several { recording.name.as_str() } else { "the recording" };
    let first = judged.changes.iter().find(|change| change.verdict == Outcome::Violated);
    let at = first.zip(recording.begin).map(|(change, begin)| {
        let seconds = (i128::from(change.time_ns) - i128::from(begin)) as f64 / 1e9;
        let seconds = format!("{seconds:.3}");
        format!(", first at +{} s", seconds.trim_end_matches('0').trim_end_matches('.'))
    });
    format!("Violated {times} in {place}{}.", at.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rondel_report::{Change, Claim};

    fn judged(outcome: Outcome) -> Judged {
        let vacuous = match outcome {
            Outcome::Vacuous => vec!["its premise was never true".to_owned()],
            _ => Vec::new(),
        };
        let changes = vec![Change { time_ns: 3_500_000_000, verdict: outcome }];
        Judged { outcome, vacuous, changes, count: 2, ..Judged::default() }
    }

    fn reason(outcomes: &[Outcome], is_part: bool) -> Option<String> {
        let claim = Claim { name: "p".to_owned(), ..Claim::default() };
        let mut results = Results::new("first.rondel", vec![claim]);
        results.recordings = (0..)
            .zip(outcomes)
            .map(|(number, outcome)| Recording {
                name: format!("{number}.jsonl"),
                events: 1,
                begin: Some(1_000_000_000),
                properties: vec![judged(*outcome)],
                ..Recording::default()
            })
            .collect();
        refuted(&results, is_part).remove("p")
    }

    #[test]
    fn mistakes_of_a_draft_are_found() {
        let schemas = Schemas::read(&[]).unwrap();
        assert_eq!(mistakes("topic a { x: int } property p = a.x < 3", &schemas), None);
        let shown = mistakes("topic a { x: int } property p = a.y < 3", &schemas).unwrap();
        assert!(shown.contains("unknown field 'y' in topic 'a'"), "{shown}");
        assert!(mistakes("topic a { x: int } property p = once[0, 1 s", &schemas).is_some());
    }

    #[test]
    fn properties_that_do_not_hold_in_every_recording_are_refuted() {
        use Outcome::{Inconclusive, Satisfied, Vacuous, Violated};
        for (outcomes, expected) in [
            (&[Satisfied][..], None),
            (&[Satisfied, Vacuous], None),
            (&[Violated], Some("Violated 2 times in the recording, first at +2.5 s.")),
            (&[Satisfied, Violated], Some("Violated 2 times in 1.jsonl, first at +2.5 s.")),
            (&[Vacuous, Vacuous], Some("What was recorded does not test it: its premise was never true.")),
            (&[Satisfied, Inconclusive], Some("Not decided.")),
        ] {
            assert_eq!(reason(outcomes, false).as_deref(), expected, "{outcomes:?}");
        }
        // The part that was not read may decide it.
        assert_eq!(reason(&[Inconclusive], true), None);
        assert!(reason(&[Violated], true).is_some());
    }
}
