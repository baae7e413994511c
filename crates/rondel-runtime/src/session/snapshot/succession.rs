//! Exchanging the specification of a running session: unchanged properties keep their states, and no message is missed in
//! between.
//!
//! The state of monitors, statistics and waiting messages passes through a [snapshot](Session::snapshot) in memory, as for
//! an edited specification after a restart. Everything that a restart would lose is taken over here: clocks, accounts of
//! publishers, counts, resolved types.

use std::sync::Arc;

use rondel_engine::RestartReason;
use rondel_event::TopicId;

use super::saved::{Saved, StartError};
use crate::session::reading::decoders::TopicDecoder;
use crate::session::results::notices::PendingNotices;
use crate::session::{Session, SessionPlan, Shared};
use crate::specification::input::Input;
use crate::statistics::Summary;
use crate::statistics::omission::Omissions;

/// A session that has succeeded another: see [`SessionPlan::succeed`].
pub struct Succession {
    /// The session.
    pub session: Session,
    /// For each of its properties the position in the former session, if the property keeps its state.
    pub kept: Vec<Option<u32>>,
    /// The properties that restart with the next message, with the reason. Those whose name is new are among them.
    pub restarted: Vec<(String, RestartReason)>,
}

impl SessionPlan {
    /// Starts a session that succeeds `before`, which then must not be used any more, except to take its reports and
    /// notices. Properties whose meaning is unchanged keep their states, others begin with the next message.
    ///
    /// `origins` has for each declared topic its number in `before`, if its messages come from the same subscription: the
    /// topic then keeps its [names](SessionPlan::names), the types of its publishers and their sequence numbers.
    ///
    /// # Errors
    /// [`StartError`] if one of them is a synchronizer, if only one of them aligns messages, if messages wait for sets of
    /// other topics, or if births of Sparkplug would be lost. `before` is then unchanged.
    pub fn succeed(
        &self,
        before: &mut Session,
        origins: &[Option<TopicId>],
    ) -> Result<Succession, StartError> {
        if self.synchronizes || before.plan.synchronizes {
            return Err("the specification of a synchronizer cannot be exchanged while it runs".into());
        }
        let mut plan = self.clone();
        plan.adopt(before, origins);
        plan.check_births(before, origins)?;
        let saved = Saved::open(&before.snapshot(""), plan.options.explain, "")?;
        let is_same = saved.known.program == plan.fingerprint;
        let known = &saved.known.properties;
        let of_before = |name: &String| known.iter().position(|own| own == name).map(|at| at as u32);
        let names: Vec<String> = plan.properties.iter().map(|property| property.name.clone()).collect();
        let (mut session, kept, restarted) = match plan.continued(&saved) {
            Ok((session, None)) => (session, (0..names.len() as u32).map(Some).collect(), Vec::new()),
            Ok((session, Some(edited))) => {
                let is_kept = |name: &String| edited.continued.contains(name);
                let kept = names.iter().map(|name| of_before(name).filter(|_| is_kept(name)));
                (session, kept.collect::<Vec<_>>(), edited.restarted)
            }
            Err(StartError::Unrelated) => {
                let reason = |name: &String| match of_before(name) {
                    Some(_) => RestartReason::Changed,
                    None => RestartReason::New,
                };
                let restarted = names.iter().map(|name| (name.clone(), reason(name)));
                (plan.session(None)?, vec![None; names.len()], restarted.collect())
            }
            Err(error) => return Err(error),
        };
        session.inherit(before, origins, is_same);
        if !restarted.is_empty() || origins.iter().any(Option::is_none) {
            // Topics and fields are missing again only after the same time.
            session.shared.heartbeat.held = 0;
        } else {
            session.watch = before.watch.take();
        }
        Ok(Succession { session, kept, restarted })
    }

    /// Takes over the names of topics and the types of their messages that a session has resolved.
    pub(super) fn adopt(&mut self, before: &Session, origins: &[Option<TopicId>]) {
        let mut names = self.names.to_vec();
        for (at, origin) in origins.iter().enumerate() {
            let Some(origin) = *origin else { continue };
            if let Some(own) = names.get_mut(at).filter(|own| own.is_some())
                && let Some(known) = before.plan.names(origin)
            {
                *own = Some(Arc::clone(known));
            }
            let Some(known) = before.plan.input(origin) else { continue };
            let Some(input) = self.options.inputs.get_mut(at) else { continue };
            if input.awaits_type() {
                input.message_type = before.types.of(origin).or(known.message_type.as_ref()).cloned();
            }
            if input.further.is_empty() {
                (input.further, input.is_partial) = (known.further.clone(), known.is_partial);
            }
        }
        self.names = names.into();
    }

    /// Refuses other programs for decoders that need earlier messages.
    fn check_births(&self, before: &Session, origins: &[Option<TopicId>]) -> Result<(), StartError> {
        let is_same = before.plan.fingerprint == self.fingerprint;
        for (at, origin) in origins.iter().enumerate() {
            let Some(origin) = *origin else { continue };
            let of_before = before.route.decoders().get(origin.index());
            if !of_before.is_some_and(|decoder| decoder.keeps_births()) {
                continue;
            }
            let inputs = self.options.inputs.get(at).zip(before.plan.input(origin));
            let is_read_alike = inputs.is_some_and(|(own, known)| reads_alike(own, known));
            if !(is_same && origin.index() == at && is_read_alike) {
                let name = self.specification.spec.topics.get(at).map_or("", |topic| &topic.name);
                return Err(StartError::Mismatch(format!(
                    "topic '{name}' has messages of Sparkplug, whose births would be forgotten"
                )));
            }
        }
        Ok(())
    }
}

/// Whether messages are decoded in the same way.
fn reads_alike(own: &Input, known: &Input) -> bool {
    own.encoding == known.encoding && own.time == known.time && own.number_texts == known.number_texts
}

impl Session {
    /// Takes over the state of another session that no snapshot contains. `origins` has for each declared topic its number
    /// there; `is_same`: the programs are equal.
    fn inherit(&mut self, before: &mut Session, origins: &[Option<TopicId>], is_same: bool) {
        let topics = self.positions(before, origins);
        let is_unmoved = topics.iter().enumerate().all(|(at, origin)| *origin == Some(at));
        self.route.inherit(&mut before.route, &topics, is_same);
        if is_same {
            let decoders = self.route.decoders_mut().into_iter().flatten();
            let known = before.route.decoders_mut().into_iter().flatten();
            for (at, (own, known)) in decoders.zip(known).enumerate() {
                if topics.get(at) == Some(&Some(at)) && known.keeps_births() {
                    std::mem::swap(own, known);
                }
            }
        }
        let names =
            |shared: &Shared| shared.topics.iter().map(|topic| topic.name.clone()).collect::<Vec<_>>();
        let (from, to) = (names(&before.shared), names(&self.shared));
        let renamed = |omissions: &Omissions| Omissions::restored(&omissions.saved(&from), &to);
        self.shared.omitted.inherit(renamed(&before.own_omissions()));
        let mistyped: u64 = before.route.decoders().iter().map(TopicDecoder::mistyped).sum();
        before.shared.counts.mistyped += mistyped;
        self.shared.inherit(&mut before.shared, &topics);
        self.events.inherit(&before.events, origins);
        self.types.inherit(&before.types, &topics);
        self.outages = std::mem::take(&mut before.outages);
        if is_same && is_unmoved {
            self.numbers = before.numbers.take();
            self.sharing = before.sharing.take();
            self.before = before.before.take();
        } else if let Some(earlier) = before.before.take() {
            // The statistics of properties begin with the present lap.
            let not_evaluated = renamed(&earlier.not_evaluated);
            let Summary { counts, backwards, span, pauses, seam, alignment, .. } = *earlier;
            let earlier = Summary { counts, backwards, span, pauses, seam, alignment, ..Summary::default() };
            self.before = Some(Box::new(Summary { not_evaluated, ..earlier }));
        }
    }

    /// For each topic, those of events included, its position in another session.
    fn positions(&self, before: &Session, origins: &[Option<TopicId>]) -> Vec<Option<usize>> {
        let declared = origins.iter().map(|origin| origin.map(TopicId::index));
        let events = self.events.of().iter().map(|of| {
            let origin = origins.get(of.index()).copied().flatten()?;
            let at = before.events.of().iter().position(|known| *known == origin)?;
            Some(before.events.declared() + at)
        });
        declared.chain(events).collect()
    }
}

impl Shared {
    /// Takes over counts, accounts and times. `origins` has for each topic its position in the state before.
    fn inherit(&mut self, before: &mut Shared, origins: &[Option<usize>]) {
        self.counts = before.counts;
        self.flushed = before.flushed;
        self.earlier = before.earlier;
        self.span = before.span;
        for (topic, origin) in self.topics.iter_mut().zip(origins) {
            if let Some(known) = origin.and_then(|at| before.topics.get(at)) {
                let name = std::mem::take(&mut topic.name);
                *topic = known.clone();
                topic.name = name;
            }
        }
        self.accounts.inherit(&mut before.accounts, origins);
        self.heartbeat.inherit(&mut before.heartbeat);
        self.laps.inherit(&before.laps, origins);
        self.jumps.inherit(&before.jumps);
        self.workers = std::mem::take(&mut before.workers);
        self.lap = before.lap;
        self.emitter.reports.begin_lap(before.lap);
        self.emitter.broke_off = before.emitter.broke_off;
        self.emitter.is_cut = before.emitter.is_cut;
        self.resumption = std::mem::take(&mut before.resumption);
        // Notices about types were emitted when the types were found.
        self.notices = PendingNotices::default();
    }
}
