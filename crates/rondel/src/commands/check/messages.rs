//! Recordings of messages as they were on a network.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use clap::ValueEnum;
use indicatif::ProgressBar;
use rondel_event::{Field, NameId, Origin, Read as ReadAs, Timestamp, TopicId, TypeIndex, ValueType};
use rondel_recording::{
    CutOff, End, OpenError, Opened, Progress, RecordedMessage, RecordedTopic, Recording, RecordingError,
    Selection, WantedField, shown,
};
use rondel_runtime::{
    Clock as _, ManualClock, PublisherType, Reason, Session, SessionPlan, Stamp, TimeSource,
};

use super::checking::{Checking, Notices, Read, Stopped};
use super::kept::{Kept, kept_before};
use super::{Check, OnError};
use crate::commands::selecting::{is_named, missing, no_such_topic, span};
use crate::deployment::time_source;
use crate::output::VerdictWriter;
use crate::recorded_types::{encoding, message_type, type_name};
use crate::recorder::{EVENTS, VERDICTS};
use crate::schemas::Schemas;
use crate::specification::is_deployment;
use crate::time_text::TimeText;
use crate::warn;

/// After so many messages time passes for topics that are silent, and the progress is shown.
const STEP: u64 = 64;

/// How often what time alone decides is looked for at the end; each time takes some deadlines.
const POLLS: u32 = 100_000;

/// Which time of a recorded message counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum StampOf {
    /// When it was recorded
    #[default]
    Log,
    /// When it was published
    Publish,
}

/// How the topics of a recording are read.
pub(super) struct Reading {
    /// For each recorded topic the topic of the specification, if it is read.
    topics: Vec<Option<TopicId>>,
    /// For each recorded topic its type among those of the topic of the specification.
    of_types: Vec<TypeIndex>,
    /// The recorded topics that are read and cannot be decoded, with the reason.
    undecodable: BTreeMap<usize, String>,
}

impl Reading {
    /// Finds the topics of the specification in a recording, and sets their encodings and types in the plan.
    ///
    /// # Errors
    /// A sentence, if it is not clear which topic a formula is about.
    pub(super) fn new(
        check: &Check,
        plan: &mut SessionPlan,
        schemas: &Schemas,
        recorded: &[RecordedTopic],
    ) -> Result<Reading, String> {
        let is_chosen = |topic: &RecordedTopic| {
            check.topics.is_empty() || check.topics.iter().any(|name| is_named(name, &topic.name))
        };
        let is_formula = plan.specification().is_formula;
        let is_deployment = check.first.as_deref().is_some_and(is_deployment);
        let is_named_by_deployment =
            is_deployment && recorded.iter().any(|topic| plan.topic_in_recording(&topic.name).is_some());
        let target = |topic: &RecordedTopic| match is_formula {
            // A deployment names the topic of its formula.
            true if is_named_by_deployment => plan.topic_in_recording(&topic.name),
            // Verdicts of the flight recorder are no messages.
            true => (![VERDICTS, EVENTS].contains(&topic.name.as_str())).then_some(TopicId(0)),
            false => plan.topic_in_recording(&topic.name),
        };
        let topics: Vec<Option<TopicId>> =
            recorded.iter().map(|topic| target(topic).filter(|_| is_chosen(topic))).collect();
        if is_formula {
            let all = recorded.iter().zip(&topics).filter(|(_, target)| target.is_some());
            let mut names: Vec<&str> = all.map(|(topic, _)| topic.name.as_str()).collect();
            names.sort_unstable();
            names.dedup();
            if names.len() > 1 {
                let names = names.join(", ");
                return Err(format!("the formula is about one topic: choose it with --topics from {names}"));
            }
        }
        let is_there = |name: &String| recorded.iter().any(|topic| is_named(name, &topic.name));
        let (there, missing): (Vec<&String>, Vec<&String>) =
            check.topics.iter().partition(|name| is_there(name));
        if let Some(name) = missing.first() {
            let sentence = no_such_topic(name, recorded);
            if there.is_empty() {
                return Err(sentence);
            }
            warn(&sentence);
        }
        let left_out =
            recorded.iter().filter(|topic| !is_formula && target(topic).is_some() && !is_chosen(topic));
        let left_out: BTreeSet<&str> = left_out.map(|topic| topic.name.as_str()).collect();
        if !left_out.is_empty() {
            let names = left_out.into_iter().collect::<Vec<_>>().join(", ");
            warn(&format!("--topics leaves out {names}, which the specification reads"));
        }
        let mut reading = Reading {
            of_types: vec![TypeIndex::default(); topics.len()],
            topics,
            undecodable: BTreeMap::new(),
        };
        let mut of_target: BTreeMap<TopicId, Vec<usize>> = BTreeMap::new();
        for (i, target) in reading.topics.iter().enumerate() {
            if let Some(target) = target {
                of_target.entry(*target).or_default().push(i);
            }
        }
        for (target, channels) in of_target {
            reading.describe(plan, schemas, target, (recorded, &channels));
            if let Some(field) = &check.time_field {
                let is_read = channels.iter().all(|channel| recorded[*channel].time_field.is_some());
                plan.set_time(target, if is_read { TimeSource::Source } else { time_source(field) });
            }
        }
        Ok(reading)
    }

    /// Sets the encodings and the types of the messages of a topic, which these channels of the recording have.
    fn describe(
        &mut self,
        plan: &mut SessionPlan,
        schemas: &Schemas,
        target: TopicId,
        (recorded, channels): (&[RecordedTopic], &[usize]),
    ) {
        // Channels that have the same type are read alike.
        let mut types: Vec<(&RecordedTopic, Vec<usize>)> = Vec::new();
        for channel in channels {
            let topic = &recorded[*channel];
            let is_same = |(known, _): &&mut (&RecordedTopic, _)| {
                (&known.encoding, &known.schema) == (&topic.encoding, &topic.schema)
            };
            match types.iter_mut().find(is_same) {
                Some((_, channels)) => channels.push(*channel),
                None => types.push((topic, vec![*channel])),
            }
        }
        let declared = plan.specification().spec.topics.get(target.index());
        let declared = declared.and_then(|topic| topic.type_name.clone());
        let is_alone = types.len() == 1;
        let (mut found, mut of_found) = (Vec::new(), Vec::new());
        for (topic, channels) in types {
            match publisher_type(schemas, declared.as_deref(), topic, is_alone) {
                Ok(of) => {
                    found.push(of);
                    of_found.push(channels);
                }
                Err(reason) => {
                    self.undecodable.extend(channels.into_iter().map(|channel| (channel, reason.clone())));
                }
            }
        }
        for (index, channels) in plan.set_types(target, found).into_iter().zip(of_found) {
            for channel in channels {
                match &index {
                    Ok(index) => self.of_types[channel] = *index,
                    Err(error) => _ = self.undecodable.insert(channel, error.to_string()),
                }
            }
        }
    }
}

/// The encoding and the type of a recorded topic. Where it is not the only one of its topic, the definition in the recording
/// is used even if a file has another one.
fn publisher_type(
    schemas: &Schemas,
    declared: Option<&str>,
    topic: &RecordedTopic,
    is_alone: bool,
) -> Result<PublisherType, String> {
    let encoding = encoding(topic).ok_or_else(|| match topic.encoding.as_str() {
        "" => "the recording does not say how they are encoded".to_owned(),
        other => format!("the encoding '{other}' is not known"),
    })?;
    let publisher = topic.label.clone();
    if !encoding.needs_schema() {
        return Ok(PublisherType { encoding, message_type: None, publisher });
    }
    if let (Some(schema), Some(declared)) = (&topic.schema, declared)
        && type_name(&schema.name) != type_name(declared)
    {
        return Err(format!("they are {}, and the specification declares {declared}", schema.name));
    }
    let found = match (&topic.schema, declared) {
        (Some(schema), _) if !is_alone && !schema.data.is_empty() => message_type(schema, encoding),
        (Some(schema), _) => schemas.recorded(schema, encoding),
        (None, Some(name)) => schemas.message_type(name, encoding),
        (None, None) => Err("the recording has no definition of their type".to_owned()),
    };
    Ok(PublisherType { encoding, message_type: Some(Arc::new(found?)), publisher })
}

/// The fields of a topic that are read, with their types.
fn wanted(plan: &SessionPlan, topic: TopicId) -> Vec<WantedField> {
    let projections = plan.specification().program.projections();
    let fields = projections.get(topic.index()).into_iter().flat_map(|projection| &projection.fields);
    let field = |field: &Field| {
        let kind = match &field.read {
            ReadAs::Value(kind) | ReadAs::Number(kind) => Some(*kind),
            // Of a text; an array is no cell.
            ReadAs::Length => Some(ValueType::String),
            ReadAs::Presence | ReadAs::IsNan | ReadAs::Elements(..) | ReadAs::Witness(..) => None,
        };
        WantedField { path: field.path.clone(), kind }
    };
    let time = plan.input(topic).and_then(|input| input.time.field());
    let time = time.map(|path| WantedField { path: path.clone(), kind: Some(ValueType::Time) });
    fields.map(field).chain(time).collect()
}

/// The sequence numbers of a recorded topic: they count if the second follows the first, until one goes back.
#[derive(Clone, Copy, Debug, Default)]
enum Numbers {
    #[default]
    None,
    First(u32),
    After(u32),
    Unused,
}

impl Numbers {
    /// The number of the message, if it counts.
    #[inline]
    fn see(&mut self, number: u32) -> bool {
        let (next, counts) = match *self {
            Numbers::None => (Numbers::First(number), true),
            Numbers::First(before) if before.checked_add(1) == Some(number) => (Numbers::After(number), true),
            Numbers::After(before) if number > before => (Numbers::After(number), true),
            _ => (Numbers::Unused, false),
        };
        *self = next;
        counts
    }
}

impl Checking<'_> {
    /// Checks a recording of messages.
    pub(super) fn messages(
        &mut self,
        path: &Path,
        mut recording: Box<dyn Recording>,
        restored: Option<Session>,
    ) -> Result<(), Stopped> {
        let name = self.options.name(path);
        let started = Instant::now();
        let stop = |error: &dyn std::fmt::Display| Stopped::because(&format!("{name}: {error}"));
        let misused = |error: &str| Stopped::misused(&format!("{name}: {error}"));
        let schemas = Arc::clone(&self.schemas);
        let reading = Reading::new(self.options, &mut self.plan, &schemas, recording.topics());
        let Reading { topics, of_types, undecodable } = reading.map_err(|error| misused(&error))?;
        for (topic, reason) in &undecodable {
            warn(&format!(
                "{name}: cannot decode the messages on {}: {reason}",
                recording.topics()[*topic].name
            ));
        }
        let selection = self.selection(&*recording, &topics).map_err(|error| misused(&error))?;
        let (first, last) = (selection.from, selection.until);
        let begins_before = recording.span().is_some_and(|(begin, _)| begin < first);
        let kept = if begins_before { self.kept(path, &selection.topics, first) } else { Ok(Vec::new()) };
        recording.select(selection);
        for (topic, target) in topics.iter().enumerate() {
            if let Some(target) = target {
                recording.want(topic, &wanted(&self.plan, *target));
            }
        }
        // After the last message time passes as in a live run: not where another part follows, or time is simulated.
        let Check { snapshot_to, in_simulated_time, .. } = self.options;
        let passes = restored.is_none() && snapshot_to.is_none() && !in_simulated_time;
        // The times of each recording begin anew.
        let clock = Arc::new(ManualClock::default());
        let mut session = match restored {
            Some(session) => session,
            None => {
                self.plan.set_clock(clock.clone());
                self.plan.start().map_err(|error| stop(&error))?
            }
        };
        if let Some(reports) = &mut self.reports {
            reports.begin();
        }
        let is_aligned = self.plan.alignment().is_needed();
        let publish = self.options.stamp == Some(StampOf::Publish) || self.is_deployment;
        if !publish {
            for name in self.plan.latencies(&TimeSource::Source) {
                warn(&format!(
                    "`latency({name})` is unknown: the time of messages on {name} is that of their recording; choose that of \
                     their publishing with `--stamp publish`, or a field with `--time-field`"
                ));
            }
        }
        let mut writer = VerdictWriter::new(self.plan.properties(), self.options.format, self.colour);
        let (mut reported, mut text) = (Notices::new(), Vec::new());
        let mut numbers = vec![Numbers::default(); topics.len()];
        let names: Vec<Option<NameId>> = recording
            .topics()
            .iter()
            .zip(&topics)
            .map(|(recorded, target)| self.plan.names((*target)?)?.number(&recorded.name))
            .collect();
        let bar = self.progress_bar(recording.progress().size);
        let mut outcome = Ok(());
        let recorded = recording.end();
        let mut cut_offs = CutOffTimes::new(&recorded, recording.topics(), &topics);
        let mut count = 0_u64;
        if begins_before {
            clock.set(first);
            session.begins_at(first);
            let stamp = Stamp { source: Some(first), arrival: Some(first), ..Stamp::default() };
            for Kept { topic, payload } in kept.as_deref().unwrap_or_default() {
                let Some(target) = topics[*topic] else { continue };
                let stamp = Stamp { name: names[*topic], of_type: of_types[*topic], ..stamp };
                match undecodable.get(topic) {
                    Some(reason) => session.push_undecodable(target, stamp, reason),
                    None => drop(session.push(target, stamp, payload)),
                }
            }
            if let Err(error) = &kept {
                session.missing(
                    Reason::Skipped,
                    1,
                    &format!("before {}: {error}", TimeText::default().text(first)),
                );
            }
        }
        loop {
            match recording.next() {
                Ok(Some(RecordedMessage { topic, log_time, publish_time, sequence, payload })) => {
                    let Some(target) = topics[topic] else { continue };
                    let counts = numbers[topic].see(sequence);
                    let origin = Origin { publisher: topic as u64, number: sequence.into() };
                    let stamp = Stamp {
                        source: Some(if publish { publish_time } else { log_time }),
                        arrival: Some(log_time),
                        origin: counts.then_some(origin),
                        name: names[topic],
                        of_type: of_types[topic],
                    };
                    cut_offs.pass(log_time, &clock, &mut session);
                    clock.set(log_time);
                    match undecodable.get(&topic) {
                        Some(reason) => session.push_undecodable(target, stamp, reason),
                        // The session counts what cannot be decoded.
                        None => drop(session.push(target, stamp, payload)),
                    }
                    count += 1;
                    if count.is_multiple_of(STEP) {
                        if is_aligned {
                            session.poll();
                        }
                        if let Some(bar) = &bar {
                            show(bar, recording.progress(), log_time);
                        }
                        if self.has_ended() {
                            break;
                        }
                    }
                }
                Ok(None) => break,
                Err(RecordingError::Row { line, reason, topics: missing, .. })
                    if self.options.on_error == OnError::Skip =>
                {
                    let missing: HashSet<TopicId> =
                        missing.iter().filter_map(|topic| topics[*topic]).collect();
                    let missing = missing.into_iter().collect::<Vec<_>>();
                    session.unreadable(&missing, &format!("line {line}: {reason}"));
                    self.found.skipped += 1;
                }
                Err(error) => {
                    if let Err(stopped) = self.damaged(error, &topics, &mut session, &mut outcome) {
                        outcome = Err(stopped);
                        break;
                    }
                }
            }
            if session.has_reports() || session.has_notices() {
                self.emit(&mut session, &mut writer, &mut reported, &mut text);
            }
        }
        if let Some(bar) = bar {
            bar.finish_and_clear();
        }
        let is_whole = outcome.is_ok() && !self.out.is_closed();
        if let Some(until) = recorded.until {
            cut_offs.pass(until.min(last), &clock, &mut session);
        }
        // Messages that came at the end and are in no file would be taken for a silence.
        let is_told = is_whole && passes && recorded.unwritten == 0;
        if let Some(until) = recorded.until.filter(|_| is_told) {
            // The last messages count at the times at which they came.
            session.flush();
            clock.set(until.min(last));
            for _ in 0..POLLS {
                let due = session.poll();
                self.emit(&mut session, &mut writer, &mut reported, &mut text);
                if due.is_none_or(|due| due > clock.ticks()) {
                    break;
                }
            }
            session.end_now();
        }
        // Where the recording says how many messages it has.
        let all = recording.topics().iter().zip(&topics).filter(|(_, target)| target.is_some());
        let all: Option<u64> = all.map(|(topic, _)| topic.messages).sum();
        if let Some(all) =
            all.filter(|_| is_whole && (self.options.from.is_some() || self.options.to.is_some()))
        {
            session.left_out(all.saturating_sub(count));
        }
        let End { lost, refused, unwritten, unread, .. } = recorded;
        session.missing(Reason::Lost, lost, "on the way to the recorder");
        session.missing(Reason::Dropped, refused.saturating_add(unwritten), "by the recorder");
        session.missing(Reason::OtherType, unread, "topics or publishers that the recorder could not read");
        self.found.parts.extend(&recorded.parts);
        self.end(&mut session, &mut writer, &mut reported, &mut outcome);
        let unread = recording.topics().iter().zip(&topics).filter(|(_, target)| target.is_none());
        let others = unread.map(|(topic, _)| (topic.name.clone(), topic.messages.unwrap_or(0))).collect();
        let remarks = if recorded.is_complete() { Vec::new() } else { vec![missing(&recorded)] };
        let read = Read { remarks, others, is_whole: outcome.is_ok() };
        self.account(&name, (&session, started), "message", read);
        outcome
    }

    /// The messages before a time that publishers keep for later subscribers.
    fn kept(&self, path: &Path, is_read: &[bool], from: Timestamp) -> Result<Vec<Kept>, RecordingError> {
        match self.options.open(path, &self.plan) {
            Ok(Opened::Messages(mut recording)) => kept_before(&mut *recording, is_read, from),
            Err(OpenError::Messages(error)) => Err(error),
            // It could be opened before.
            Ok(Opened::Lines(_)) | Err(OpenError::Lines(_)) => Ok(Vec::new()),
        }
    }

    /// Takes note of a part that cannot be read. With an error, reading ends.
    fn damaged(
        &mut self,
        error: RecordingError,
        topics: &[Option<TopicId>],
        session: &mut Session,
        outcome: &mut Result<(), Stopped>,
    ) -> Result<(), Stopped> {
        let skips = self.options.on_error == OnError::Skip;
        match &error {
            RecordingError::Damage { topics: missing, .. } => {
                let targets: HashSet<TopicId> = missing.iter().filter_map(|topic| topics[*topic]).collect();
                let mut targets: Vec<TopicId> = targets.into_iter().collect();
                targets.sort();
                if skips {
                    warn(&error.to_string());
                    self.found.damaged += 1;
                    session.unreadable(&targets, &error.to_string());
                    return Ok(());
                }
                if targets.is_empty() {
                    // No message is missing, so that all of them are checked.
                    *outcome = Err(Stopped::because(&error.to_string()));
                    return Ok(());
                }
            }
            RecordingError::Cut { path, .. } => {
                let file = path.display().to_string();
                let said = format!("{error}; it is checked up to there");
                if skips {
                    warn(&said);
                    session.missing(Reason::Skipped, 1, &error.to_string());
                    self.found.cut.push(file);
                } else {
                    *outcome = Err(Stopped::because(&said));
                    self.found.unread.push(file);
                }
                // Another of the recordings that are merged may be cut too.
                return Ok(());
            }
            _ => {}
        }
        Err(Stopped::because(&error.to_string()))
    }

    /// The messages to read.
    fn selection(&self, recording: &dyn Recording, topics: &[Option<TopicId>]) -> Result<Selection, String> {
        let mut selection = Selection::of_topics(topics.iter().map(Option::is_some).collect());
        let first = recording.span().map(|(first, _)| first).unwrap_or_default();
        (selection.from, selection.until) = self.options.span(first)?;
        Ok(selection)
    }
}

impl Check {
    /// The times of `--from` and `--to` in a recording that begins at this time.
    ///
    /// # Errors
    /// A sentence if one is no time, or they are in the wrong order.
    fn span(&self, first: Timestamp) -> Result<(Timestamp, Timestamp), String> {
        span([("--from", self.from.as_deref()), ("--to", self.to.as_deref())], first)
    }

    /// Finds what is wrong with the options that choose messages before any recording is checked.
    ///
    /// # Errors
    /// A sentence.
    pub(super) fn check_choice(&self) -> Result<(), String> {
        self.span(Timestamp::default())?;
        let given = [
            (self.merge, "--merge"),
            (self.from.is_some(), "--from"),
            (self.to.is_some(), "--to"),
            (!self.topics.is_empty(), "--topics"),
            (self.topic.is_some(), "--topic"),
        ];
        let Some((_, option)) = given.into_iter().find(|(is_given, _)| *is_given) else { return Ok(()) };
        let lines: Vec<&PathBuf> =
            self.traces.iter().filter(|trace| rondel_recording::has_lines(trace)).collect();
        let Some(first) = lines.first() else { return Ok(()) };
        let more =
            if lines.len() > 1 { format!(", as {} more have", lines.len() - 1) } else { String::new() };
        Err(format!("{option} is for MCAP files, bags and tables, but {} has JSON lines{more}", shown(first)))
    }
}

/// The times in which the recorder was cut off from a network, as reading comes to them.
struct CutOffTimes {
    /// When each begins or ends, by the clock of the recorder: from when on, until when if that is known, and the topics.
    changes: Vec<(Timestamp, Timestamp, Option<Timestamp>, Vec<TopicId>)>,
    next: usize,
}

impl CutOffTimes {
    fn new(recorded: &End, all: &[RecordedTopic], targets: &[Option<TopicId>]) -> CutOffTimes {
        let mut changes = Vec::new();
        for CutOff { from, until, topics } in recorded.cut_offs.all() {
            let is_meant = |topic: &RecordedTopic| topics.is_empty() || topics.contains(&topic.name);
            let meant = all.iter().zip(targets).filter(|(topic, _)| is_meant(topic));
            let mut missed: Vec<TopicId> = meant.filter_map(|(_, target)| *target).collect();
            missed.sort_unstable();
            missed.dedup();
            if !missed.is_empty() {
                changes.push((*from, *from, None, missed.clone()));
                changes.extend(until.map(|until| (until, *from, Some(until), missed)));
            }
        }
        changes.sort_by_key(|(at, ..)| *at);
        CutOffTimes { changes, next: 0 }
    }

    /// Takes those that begin or end before a message of this time into account, as a live run does.
    #[inline]
    fn pass(&mut self, time: Timestamp, clock: &ManualClock, session: &mut Session) {
        while let Some((at, from, until, topics)) = self.changes.get(self.next)
            && *at <= time
        {
            clock.set(*at);
            // What came before is older than what was missed.
            session.note_count();
            session.cut_off(topics, *from, *until);
            self.next += 1;
        }
    }
}

/// Shows where reading is, in bytes and in the time of the recording.
fn show(bar: &ProgressBar, progress: Progress, time: Timestamp) {
    bar.set_position(progress.position);
    bar.set_message(TimeText::default().text(time));
}
