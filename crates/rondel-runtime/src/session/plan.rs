//! Plans from which sessions start.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use rondel_engine::CompileError;
use rondel_event::{Field, Projection, SnapshotError, Timestamp, TopicId};
use rondel_spec::Spec;

use super::aligned::Aligned;
use super::decoders::TopicDecoder;
use super::direct::Direct;
use super::edited::Edited;
use super::emitter::Emitter;
use super::events::Deadlines;
use super::jumps::Jumps;
use super::laps::Laps;
use super::numbers::PayloadNumbers;
use super::pause::Heartbeat;
use super::restart::Continued;
use super::synchronized::Synchronized;
use super::watch::Watch;
use super::{Route, Session, Shared, key_writer, value_writer};
use crate::account::{Accounts, RecordedNumbers};
use crate::alignment::{Alignment, TopicAlignment};
use crate::arrival;
use crate::clock::Clock;
use crate::explanation::Explainer;
use crate::missing::{Missing, Needed};
use crate::mixtures;
use crate::names::{NamedTopics, TopicNames};
use crate::notice::Notice;
use crate::omission::Omissions;
use crate::options::{Blind, Input, Options, Reset, ResetPolicy, TimeSource};
use crate::report::PropertyInfo;
use crate::saved::{Saved, StartError};
use crate::sharing::Sharing;
use crate::specification::{Specification, recorded_names};
use crate::statistics::{Counts, TopicStatistics};

/// A specification and options, compiled: sessions start from it.
#[derive(Clone)]
pub struct SessionPlan {
    pub(super) specification: Specification,
    pub(super) options: Options,
    pub(super) fingerprint: u64,
    pub(super) properties: Arc<[PropertyInfo]>,
    pub(super) needed: Arc<Needed>,
    pub(super) explainer: Option<Explainer>,
    pub(super) synchronizes: bool,
    /// For each topic its names, if its address has parameters or its encoding reads them.
    pub(super) names: Arc<[Option<Arc<TopicNames>>]>,
}

impl SessionPlan {
    /// Compiles a specification for sessions with these options.
    ///
    /// # Errors
    /// [`CompileError`] when a property cannot be monitored.
    pub fn new(spec: &Spec, options: Options) -> Result<SessionPlan, CompileError> {
        Ok(SessionPlan::of(Specification::new(spec.clone())?, options))
    }

    /// Creates a plan from a compiled specification.
    pub fn of(mut specification: Specification, mut options: Options) -> SessionPlan {
        let declared = specification.spec.declared().len();
        options.inputs.resize(declared, Input::default());
        let Options { inputs, alignment, .. } = &mut options;
        alignment.topics.truncate(declared);
        let missing = inputs.iter().skip(alignment.topics.len()).map(TopicAlignment::new);
        let missing: Vec<TopicAlignment> = missing.collect();
        alignment.topics.extend(missing);
        for of in &specification.spec.events {
            let input = Input::of_events(&inputs[of.index()]);
            inputs.push(input);
            alignment.topics.push(TopicAlignment::of_events());
        }
        // Before the parts for explanations are added.
        let fingerprint = specification.program.fingerprint();
        let properties = properties(&specification.spec, &options);
        let needed = Arc::new(Needed::new(&specification));
        // With alignment, each group has one of its own.
        let explains = options.explain && !options.alignment.is_needed();
        let explainer =
            explains.then(|| Explainer::new(&mut specification, options.signals, options.courses));
        let topics = specification.spec.topics.iter().zip(&options.inputs);
        let names = topics.map(|(topic, input)| names_of(topic, input));
        SessionPlan {
            names: names.collect(),
            specification,
            options,
            fingerprint,
            properties,
            needed,
            explainer,
            synchronizes: false,
        }
    }

    /// A plan that checks nothing: messages are put in order and handed back ([`Session::released`]), each set
    /// or each message as one JSON object.
    pub fn synchronizer(topics: Specification, options: Options) -> SessionPlan {
        SessionPlan { synchronizes: true, ..SessionPlan::of(topics, options) }
    }

    /// The specification.
    pub fn specification(&self) -> &Specification {
        &self.specification
    }

    /// The properties, in the order of the specification.
    pub fn properties(&self) -> &[PropertyInfo] {
        &self.properties
    }

    /// Returns sentences about topics whose address is a pattern, where properties cannot distinguish the matching
    /// topics.
    pub fn mixtures(&self) -> Vec<String> {
        mixtures::sentences(&self.specification.spec, &self.options.inputs)
    }

    /// Sentences about comparisons that no message can decide, with the setting that helps.
    pub fn undecidable(&self) -> Vec<String> {
        arrival::sentences(&self.specification.spec, &self.options.inputs)
    }

    /// The topics whose `latency` some property reads and whose time has this source, by name.
    pub fn latencies(&self, source: &TimeSource) -> Vec<&str> {
        arrival::latencies(&self.specification.spec, &self.options.inputs, source)
    }

    /// Sentences about topics that the pattern of another topic matches, so that recordings are read differently.
    pub fn overlaps(&self) -> Vec<String> {
        mixtures::overlaps(&self.specification.spec, &self.options.inputs)
    }

    /// The alignment of the sessions.
    pub fn alignment(&self) -> &Alignment {
        &self.options.alignment
    }

    /// Whether verdicts that depend on missed messages are inconclusive.
    pub fn withholds(&self) -> bool {
        self.options.blind == Blind::Inconclusive
    }

    /// Names the recording that sessions from here on read, which every report carries.
    pub fn set_recording(&mut self, recording: Option<&str>) {
        self.options.recording = recording.map(str::to_owned);
        self.properties = properties(&self.specification.spec, &self.options);
    }

    /// Returns the topic that a recording calls so, by its name or address in the specification or its address in the
    /// deployment. A bare formula has one topic, which is not found by a name.
    pub fn topic_in_recording(&self, recorded: &str) -> Option<TopicId> {
        let topics = self.specification.spec.topics.iter().zip(&self.options.inputs);
        let names: Vec<Vec<String>> = topics.map(|(topic, input)| recorded_names(topic, input)).collect();
        let found = rondel_decode::lines::find_topic(names.iter().map(|names| &**names), recorded);
        found.map(|index| TopicId(index as u32))
    }

    /// Returns how the messages of a topic are read.
    pub fn input(&self, topic: TopicId) -> Option<&Input> {
        self.options.inputs.get(topic.index())
    }

    /// Returns the names of a topic whose address has parameters, or whose encoding reads them. Messages on it are pushed
    /// with the number of their name.
    pub fn names(&self, topic: TopicId) -> Option<&Arc<TopicNames>> {
        self.names.get(topic.index())?.as_ref()
    }

    /// Sets where sessions from here on find the times of the messages of a topic.
    pub fn set_time(&mut self, topic: TopicId, time: TimeSource) {
        if let Some(input) = self.options.inputs.get_mut(topic.index()) {
            input.time = time;
        }
    }

    /// Sets the reaction of sessions from here on to times that start over.
    pub fn set_reset(&mut self, policy: ResetPolicy) {
        self.options.reset.policy = policy;
    }

    /// Sets the clock of sessions from here on.
    pub fn set_clock(&mut self, clock: Arc<dyn Clock>) {
        self.options.clock = clock;
    }

    /// Starts a session.
    ///
    /// # Errors
    /// [`StartError::Compile`] when the properties that wait for the same topics cannot be monitored apart.
    pub fn start(&self) -> Result<Session, StartError> {
        self.session(None)
    }

    /// Starts a session that continues from a [snapshot](Session::snapshot) of a session with the same
    /// specification and options. `note` must be that of the snapshot. If messages come live, call
    /// [`Session::resumed`] then.
    ///
    /// If the specification was edited since, unchanged properties continue, and the others begin with the first
    /// message: see [`Session::edited`].
    ///
    /// # Errors
    /// [`StartError`] when the bytes are damaged or belong to something else.
    pub fn restore(&self, bytes: &[u8], note: &str) -> Result<Session, StartError> {
        let saved = Saved::open(bytes, self.options.explain, note)?;
        let is_same = self.synchronizes || saved.known.program == self.fingerprint;
        let (mut session, edited) = match is_same {
            true => (self.session(Some(&saved))?, None),
            false => {
                let (plan, saved, edited) = self.edited(&saved)?;
                (plan.session(Some(&saved))?, Some(edited))
            }
        };
        if let Some(edited) = edited.filter(Edited::is_any) {
            session.shared.notice(Notice::edited(&edited));
            if self.options.live {
                let names = session.properties.iter().map(|property| &property.name);
                session.shared.joining = edited.joining(names);
            }
            session.edited = Some(edited);
        }
        if self.options.live {
            session.forget_events();
        }
        Ok(session)
    }

    /// The fields that messages of a topic have: not the parameters of its address, where their type lists its fields.
    pub(super) fn fields_in<'f>(
        &self,
        topic: TopicId,
        input: &Input,
        fields: &'f Projection,
    ) -> Cow<'f, Projection> {
        let names = self.names(topic).filter(|_| input.encoding.lists_fields());
        let mut own = Cow::Borrowed(fields);
        if let Some(names) = names {
            let is_own = |field: &&Field| !names.has(&field.path) || Some(&field.path) == input.time.field();
            own = Cow::Owned(Projection { fields: fields.fields.iter().filter(is_own).cloned().collect() });
        }
        if input.number_texts { Cow::Owned(own.with_number_texts()) } else { own }
    }

    /// Numbers the names of a topic, if its encoding reads them.
    pub(super) fn read_names(&mut self, topic: TopicId) {
        let known = self.names.get(topic.index()).is_some_and(Option::is_some);
        let topics = &self.specification.spec.topics;
        if let (Some(of), Some(input)) = (topics.get(topic.index()), self.options.inputs.get(topic.index()))
            && !known
            && input.encoding.reads_name()
        {
            let mut names = self.names.to_vec();
            names[topic.index()] = names_of(of, input);
            self.names = names.into();
        }
    }

    /// Writer of the parameters of addresses into blocks with these fields.
    pub(super) fn named_topics(&self, projections: &[Projection]) -> NamedTopics {
        let topics = self.specification.spec.topics.iter().zip(&self.options.inputs);
        let called = topics.map(|(topic, input)| recorded_names(topic, input));
        NamedTopics::new(&self.names, called, projections)
    }

    /// Decoders of all topics for these fields.
    pub(super) fn decoders(&self, projections: &[Projection]) -> Result<Vec<TopicDecoder>, StartError> {
        let topics = self.specification.spec.topics.iter().zip(&self.options.inputs);
        let decoder =
            |(i, ((topic, input), fields)): (usize, ((&rondel_spec::Topic, &Input), &Projection))| {
                let decoder = self.topic_decoder(TopicId(i as u32), input, fields);
                decoder.map_err(|error| StartError::Mismatch(format!("topic '{}': {error}", topic.name)))
            };
        topics.zip(projections).enumerate().map(decoder).collect()
    }

    /// The topics that many publishers may share. A bare formula has no `for each`.
    pub(super) fn sharing(&self) -> Option<Box<Sharing>> {
        if self.specification.is_formula || self.synchronizes {
            return None;
        }
        let topics = self.specification.spec.topics.iter().zip(&self.options.inputs);
        let names = topics.map(|(topic, input)| recorded_names(topic, input)).collect();
        let writer = |topic| value_writer(self.input(topic)?.message_type.as_ref()?);
        Sharing::new(&self.specification.spec, names, writer)
    }

    pub(super) fn session(&self, saved: Option<&Saved>) -> Result<Session, StartError> {
        let spec = &self.specification.spec;
        let mut emitter = Emitter::new(spec, self.options.emit);
        let topics: Vec<TopicStatistics> = spec
            .topics
            .iter()
            .map(|topic| TopicStatistics { name: topic.name.clone(), ..Default::default() })
            .collect();
        if let Some(Saved { known, .. }) = saved {
            let statistics = emitter.statistics.iter_mut().zip(&known.statistics);
            statistics.for_each(|(statistics, saved)| statistics.restore(saved.clone()));
        }
        let route = if self.synchronizes {
            Route::Synchronized(Box::new(Synchronized::new(self, saved)?))
        } else if self.options.alignment.is_needed() {
            Route::Aligned(Box::new(Aligned::new(self, saved)?))
        } else {
            Route::Direct(Box::new(Direct::new(self, saved)?))
        };
        let mut missing = Missing::new(&self.specification, &self.needed, route.projections());
        let mut accounts = Accounts::new(topics.len());
        let mut omissions = Omissions::default();
        // Nothing is judged by a synchronizer.
        let ignored = Reset { policy: ResetPolicy::Ignore, ..self.options.reset };
        let reset = if self.synchronizes { ignored } else { self.options.reset };
        let mut laps = Laps::new(reset, topics.len(), self.options.alignment.longest_wait());
        let lap = saved.map_or(1, |saved| saved.known.lap.max(1));
        let recorded_until = saved.and_then(|saved| saved.known.recorded_until);
        let counted_before = if let Route::Direct(direct) = &route { direct.counted() } else { 0 };
        let withholds = self.options.blind == Blind::Inconclusive;
        // Without properties that measure time, and without waiting messages, arrival times do not matter. Events of
        // topics do: a deadline may be missed during a pause.
        let reads_time = route.measures_time() || !self.specification.spec.events.is_empty();
        let paused_after = self.options.paused_after.filter(|_| reads_time);
        if let Some(Saved { known, .. }) = saved {
            if !known.recorded.iter().all(RecordedNumbers::is_plausible) {
                return Err(SnapshotError::Altered.into());
            }
            missing.restore(&known.missing);
            let names: Vec<String> = topics.iter().map(|topic| topic.name.clone()).collect();
            omissions = Omissions::restored(&known.omissions, &names);
            if known.topics == names {
                laps.restore(&known.latest);
            }
            emitter.reports.begin_lap(lap);
            accounts.restore(&known.numbers)?;
        }
        let mut session = Session {
            route,
            watch: self.options.missing_after.map(Watch::new),
            counts_at: VecDeque::new(),
            mistyped: Vec::new(),
            guessed: Vec::new(),
            cut_off_since: None,
            plan: self.clone(),
            resolved: Vec::new(),
            before: None,
            numbers: PayloadNumbers::new(self, counted_before),
            shared: Shared {
                emitter,
                counts: Counts::default(),
                flushed: 0,
                counted_before,
                checked_before: saved.map_or(0, |saved| saved.known.events),
                accounts,
                topics,
                missing,
                omissions,
                first_mistyped: Vec::new(),
                left_out: vec![0; self.specification.spec.topics.len()],
                laps,
                lap,
                jumps: Jumps::new(self.options.live),
                inputs: self.options.inputs.clone().into(),
                span: None,
                needed: Arc::clone(&self.needed),
                notices: Vec::new(),
                dropped_notices: 0,
                clock: Arc::clone(&self.options.clock),
                largest_message: self.options.largest_message,
                exactly: self.options.exactly,
                attachment: saved.map_or_else(Vec::new, |saved| saved.known.attachment.clone()),
                heartbeat: Heartbeat::new(paused_after, withholds, &*self.options.clock),
                recorded: saved.map_or_else(Vec::new, |saved| {
                    let mut recorded = saved.known.recorded.clone();
                    recorded.iter_mut().for_each(RecordedNumbers::join);
                    recorded
                }),
                continued: saved.map(|saved| Continued::new(&saved.known)),
                is_whole: false,
                seam: recorded_until.map(|time| (Timestamp::from_nanos(time), None)),
                joining: Vec::new(),
            },
            properties: Arc::clone(&self.properties),
            explains: self.options.explain,
            declared: spec.declared().len(),
            events: spec.events.clone(),
            deadlines: Deadlines::of(spec),
            keys: spec.events.iter().map(|of| key_writer(self.input(*of)?.message_type.as_ref()?)).collect(),
            blind: withholds,
            sharing: self.sharing(),
            finished: false,
            fingerprint: self.fingerprint,
            edited: None,
        };
        self.type_notices().for_each(|notice| session.shared.notice(notice));
        Ok(session)
    }
}

/// The names of a topic, if its address has parameters or its encoding reads them.
fn names_of(topic: &rondel_spec::Topic, input: &Input) -> Option<Arc<TopicNames>> {
    TopicNames::of(&recorded_names(topic, input), input.encoding.reads_name()).map(Arc::new)
}

/// The descriptions of all properties.
fn properties(spec: &Spec, options: &Options) -> Arc<[PropertyInfo]> {
    let mut properties = PropertyInfo::all(spec, options.recording.as_deref());
    if options.ids {
        let topics = spec.topics.len();
        let has_own_times = options.inputs.iter().take(topics).all(|input| input.time.field().is_some());
        // Hashes of the meaning of a property, so that an edit elsewhere changes no id.
        let identities = spec.properties.iter().map(|property| spec.identity(property));
        let properties = properties.iter_mut().zip(identities);
        properties.for_each(|(property, identity)| property.identify(identity, has_own_times));
    }
    properties.into()
}
