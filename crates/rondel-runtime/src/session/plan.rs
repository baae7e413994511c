//! Plans from which sessions start.

use std::borrow::Cow;
use std::sync::Arc;

use rondel_engine::CompileError;
use rondel_event::{Field, Projection, TopicId};
use rondel_spec::Spec;

use super::events::TopicEvents;
use super::gaps::blind::Outages;
use super::gaps::watch::Watch;
use super::options::{Blind, Options, ResetPolicy};
use super::reading::decoders::TopicDecoder;
use super::reading::numbers::PayloadNumbers;
use super::reading::sharing::Sharing;
use super::reading::types::{ResolvedTypes, value_writer};
use super::route::aligned::Aligned;
use super::route::direct::Direct;
use super::route::synchronized::Synchronized;
use super::snapshot::edited::Edited;
use super::snapshot::saved::{Saved, StartError};
use super::{Route, Session, Shared};
use crate::explanation::Explainer;
use crate::ordering::alignment::{Alignment, TopicAlignment};
use crate::report::PropertyInfo;
use crate::specification::input::{Input, TimeSource};
use crate::specification::mixtures;
use crate::specification::names::{NamedTopics, TopicNames};
use crate::specification::{Specification, recorded_names};
use crate::statistics::missing::Needed;
use crate::time::arrival;
use crate::time::clock::Clock;

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
    /// Number of threads that evaluate messages beside the one that pushes them; 1 if that does.
    pub(super) workers: usize,
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
            workers: 1,
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

    /// Sets the number of threads that evaluate messages in sessions from here on, besides the one that pushes them.
    /// Reports are the same, and may come up to some thousand messages later: [`Session::flush`] or [`Session::collect`]
    /// evaluates all of them, and must precede [`Session::summary`]. Live, few messages before a flush are evaluated by
    /// the thread that pushes them. Where one thread is needed, nothing changes, and the reason is returned.
    ///
    /// # Errors
    /// As [`SessionPlan::new`].
    pub fn set_workers(&mut self, workers: usize) -> Result<Option<&'static str>, CompileError> {
        if workers < 2 {
            return Ok(None);
        }
        if let Some(reason) = self.needs_one_thread() {
            return Ok(Some(reason));
        }
        let specification = self.specification.spread(workers)?;
        let all = 0..specification.spec.properties.len() as u32;
        if all.map(|property| specification.program.stays(property)).all(|stays| stays.is_some()) {
            return Ok(Some("no property can be evaluated by another thread"));
        }
        let (properties, names) = (Arc::clone(&self.properties), Arc::clone(&self.names));
        let plan = SessionPlan::of(specification, self.options.clone());
        *self = SessionPlan { properties, names, workers, ..plan };
        Ok(None)
    }

    /// The reason why the thread that pushes messages evaluates them, if it must.
    pub(super) fn needs_one_thread(&self) -> Option<&'static str> {
        let Options { explain, alignment, live, .. } = &self.options;
        let mutes = self.specification.spec.properties.iter().any(|property| property.because_of().is_some());
        let reasons = [
            (*explain, "explanations follow all values in their order"),
            (alignment.is_needed() || self.synchronizes, "messages wait to be put in order"),
            (mutes, "`@because_of` compares the reports that are taken together"),
            (alignment.limited && !live, "times far from the clock are refused"),
        ];
        reasons.into_iter().find_map(|(applies, reason)| applies.then_some(reason))
    }

    /// Starts a session.
    ///
    /// # Errors
    /// [`StartError::Compile`] when the properties that wait for the same topics cannot be monitored apart.
    pub fn start(&self) -> Result<Session, StartError> {
        self.session(None)
    }

    /// Starts a session that continues from a [snapshot](Session::snapshot) of a session with the same
    /// specification and options. `note` must be that of the snapshot, if it has one. If messages come live, call
    /// [`Session::resumed`] then.
    ///
    /// If the specification was edited since, unchanged properties continue, and the others begin with the first
    /// message: see [`Session::edited`].
    ///
    /// # Errors
    /// [`StartError`] when the bytes are damaged or belong to something else.
    pub fn restore(&self, bytes: &[u8], note: &str) -> Result<Session, StartError> {
        let saved = Saved::open(bytes, self.options.explain, note)?;
        let (mut session, edited) = self.continued(&saved)?;
        if let Some(edited) = edited.filter(Edited::is_any) {
            session.shared.notice(edited.notice());
            if self.options.live {
                let names = session.plan.properties.iter().map(|property| &property.name);
                session.shared.resumption.set_joining(edited.joining(names));
            }
            session.edited = Some(edited);
        }
        if self.options.live {
            session.forget_events();
        }
        Ok(session)
    }

    /// A session that continues from the state of another, and the outcome for the properties if the program differs.
    pub(super) fn continued(&self, saved: &Saved) -> Result<(Session, Option<Edited>), StartError> {
        if self.synchronizes || saved.known.program == self.fingerprint {
            return Ok((self.session(Some(saved))?, None));
        }
        let (plan, saved, edited) = self.edited(saved)?;
        Ok((plan.session(Some(&saved))?, Some(edited)))
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
        let route = if self.synchronizes {
            Route::Synchronized(Box::new(Synchronized::new(self, saved)?))
        } else if self.options.alignment.is_needed() {
            Route::Aligned(Box::new(Aligned::new(self, saved)?))
        } else {
            Route::Direct(Box::new(Direct::new(self, saved)?))
        };
        let shared = Shared::new(self, &route, saved)?;
        let mut session = Session {
            route,
            watch: self.options.missing_after.map(Watch::new),
            outages: Outages::default(),
            types: ResolvedTypes::default(),
            events: TopicEvents::new(self),
            plan: self.clone(),
            before: None,
            numbers: PayloadNumbers::new(self, shared.earlier.received),
            shared,
            sharing: self.sharing(),
            finished: false,
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
        let counts_steps = !(options.ids_by_time && has_own_times);
        properties.for_each(|(property, identity)| property.identify(identity, has_own_times, counts_steps));
    }
    properties.into()
}
