//! The session: messages in, reports out.

mod aligned;
mod blind;
mod decoders;
mod defaults;
mod direct;
mod edited;
mod emitter;
mod events;
mod intake;
mod jumps;
mod laps;
mod numbers;
mod pause;
mod plan;
mod remarks;
mod restart;
mod returning;
mod synchronized;
mod watch;

use std::collections::VecDeque;
use std::sync::Arc;

use rondel_align::{NumberOutcome, Refusal};
use rondel_decode::json::JsonForm;
use rondel_decode::lines::{Ahead, LineError, Lines, Mistyped, Part, Source};
use rondel_decode::plain;
use rondel_decode::{
    DecodeError, Decoder, DecoderError, LeftOut, MessageType, MessageWriter, TooManyElements, senml,
};
use rondel_event::{Block, NameId, Origin, Projection, TimeUnit, Timestamp, TopicId, TypeIndex};
use rondel_spec::Spec;

use crate::account::{Accounts, RecordedNumbers};
use crate::clock::{Clock, NO_TIME, Ticks};
use crate::explanation::Signal;
use crate::limits::Refused;
use crate::missing::{Missing, Needed};
use crate::notice::{INEXACT, Misread, Notice, field_in, no_number, no_value_of};
use crate::omission::{FirstOmission, Omission, Omissions, Reason};
use crate::options::{Input, Options, PublisherType};
use crate::report::{PropertyInfo, Report};
use crate::saved::StartError;
use crate::sharing::Sharing;
use crate::statistics::{Counts, Summary, TopicStatistics};
use crate::text::{duration, grouped, size};
use aligned::Aligned;
use decoders::TopicDecoder;
use direct::Direct;
pub use edited::Edited;
use emitter::Emitter;
use events::Deadlines;
use jumps::Jumps;
use laps::{LapDecision, Laps};
use numbers::PayloadNumbers;
pub(crate) use pause::GRACE;
use pause::Heartbeat;
pub use plan::SessionPlan;
use restart::Continued;
use synchronized::Synchronized;
use watch::Watch;

/// The times and the origin of a message, as far as they are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// When it was sent.
    pub source: Option<Timestamp>,
    /// When it arrived. Without it, the session reads its clock if it needs the time of arrival.
    pub arrival: Option<Timestamp>,
    /// Its publisher and its sequence number.
    pub origin: Option<Origin>,
    /// The name of its topic, where the address has parameters or the encoding reads it: see [`SessionPlan::names`].
    pub name: Option<NameId>,
    /// The type of the message among those of its topic: see [`SessionPlan::set_types`].
    pub of_type: TypeIndex,
}

impl Stamp {
    /// The stamp of a message that was sent at this time.
    pub fn at(time: Timestamp) -> Stamp {
        Stamp { source: Some(time), ..Stamp::default() }
    }

    #[inline]
    fn arrival(&self, clock: &dyn Clock) -> Timestamp {
        self.arrival.unwrap_or_else(|| clock.now())
    }
}

/// Messages in, reports out: decodes, aligns, evaluates.
///
/// A session is driven by its caller and does no I/O. [`push`](Session::push) takes a message,
/// [`flush`](Session::flush) evaluates all messages so far, [`poll`](Session::poll) and
/// [`advance`](Session::advance) let time pass, [`reports`](Session::reports) returns the verdicts.
pub struct Session {
    route: Route,
    watch: Option<Watch>,
    /// Numbers of messages received by some times, including those before a snapshot.
    counts_at: VecDeque<(Timestamp, u64)>,
    /// Whether values of another type were reported, for each topic.
    mistyped: Vec<bool>,
    /// Whether guesses of the form of wide strings were reported, for each topic.
    guessed: Vec<bool>,
    shared: Shared,
    properties: Arc<[PropertyInfo]>,
    explains: bool,
    /// Number of declared topics, followed by those of events, and for each of the latter the declared topic.
    declared: usize,
    events: Vec<TopicId>,
    /// Missed deadlines of each topic of events.
    deadlines: Vec<Deadlines>,
    /// For each topic of events: writer of the parameters of the declared topic's instances, if its type is known.
    keys: Vec<Option<MessageWriter>>,
    /// Whether verdicts that depend on missed messages are inconclusive.
    blind: bool,
    /// Time at which a network was disconnected, if it still is.
    cut_off_since: Option<Timestamp>,
    /// Inspection of topics that many publishers may share, during their first messages.
    sharing: Option<Box<Sharing>>,
    finished: bool,
    /// Plan of the session, and of further laps.
    plan: SessionPlan,
    /// Types resolved during the session.
    resolved: Vec<(TopicId, Arc<MessageType>)>,
    /// The laps before the current one in numbers.
    before: Option<Box<Summary>>,
    /// The fingerprint of the program, without the parts that explanations watch.
    fingerprint: u64,
    edited: Option<Edited>,
    /// The sequence numbers that messages have in their payloads.
    numbers: Option<Box<PayloadNumbers>>,
}

/// The route of messages through a session.
enum Route {
    /// Messages are evaluated on arrival.
    Direct(Box<Direct>),
    /// Messages are aligned first.
    Aligned(Box<Aligned>),
    /// Messages are aligned and handed back.
    Synchronized(Box<Synchronized>),
}

impl Route {
    /// The decoder of each topic; none where fields are not read.
    fn decoders(&self) -> &[TopicDecoder] {
        match self {
            Route::Direct(direct) => direct.decoders(),
            Route::Aligned(aligned) => aligned.decoders(),
            Route::Synchronized(_) => &[],
        }
    }

    /// The fields into whose slots messages are decoded.
    fn projections(&self) -> &[Projection] {
        match self {
            Route::Direct(direct) => direct.projections(),
            Route::Aligned(aligned) => aligned.projections(),
            Route::Synchronized(_) => &[],
        }
    }

    /// The decoder of each topic; none where fields are not read.
    fn decoders_mut(&mut self) -> Option<&mut [TopicDecoder]> {
        match self {
            Route::Direct(direct) => Some(direct.decoders_mut()),
            Route::Aligned(aligned) => Some(aligned.decoders_mut()),
            Route::Synchronized(_) => None,
        }
    }

    /// Adds a further type of a topic.
    fn add_type(
        &mut self,
        topic: TopicId,
        decoder: (Decoder, Vec<LeftOut>),
        of: &PublisherType,
    ) -> Result<(), DecoderError> {
        if let Route::Synchronized(synchronized) = self {
            synchronized.add_writer(topic, of)?;
        }
        let decoders = match self {
            Route::Direct(direct) => direct.decoders_mut(),
            Route::Aligned(aligned) => aligned.decoders_mut(),
            Route::Synchronized(synchronized) => synchronized.decoders_mut(),
        };
        if let Some(of_topic) = decoders.get_mut(topic.index()) {
            of_topic.add(decoder);
        }
        Ok(())
    }

    /// Continues the line counts of another route.
    fn continue_lines(&mut self, before: &Route) {
        match (self, before) {
            (Route::Direct(own), Route::Direct(before)) => own.continue_lines(before),
            (Route::Aligned(own), Route::Aligned(before)) => own.continue_lines(before),
            _ => {}
        }
    }

    /// Whether the arrival times of messages matter.
    fn measures_time(&self) -> bool {
        match self {
            Route::Direct(direct) => direct.needs_time(),
            Route::Aligned(_) | Route::Synchronized(_) => true,
        }
    }
}

/// The state that all routes share.
struct Shared {
    emitter: Emitter,
    counts: Counts,
    /// The messages received when all were last evaluated.
    flushed: u64,
    /// The messages that the monitor had counted before the session was restored.
    counted_before: u64,
    /// Events checked before the session was restored.
    checked_before: u64,
    topics: Vec<TopicStatistics>,
    missing: Missing,
    /// Messages that were not evaluated.
    omissions: Omissions,
    /// The first value of another type on a topic in lines, whose number the decoder counts.
    first_mistyped: Vec<(TopicId, FirstOmission)>,
    /// For each topic the elements of arrays in lines that were left out, as they are null.
    left_out: Vec<u64>,
    /// The times of the first and the last message.
    span: Option<(Timestamp, Timestamp)>,
    needed: Arc<Needed>,
    accounts: Accounts,
    notices: Vec<Notice>,
    /// Number of notices dropped since the last were taken, because too many waited.
    dropped_notices: u64,
    clock: Arc<dyn Clock>,
    largest_message: usize,
    exactly: bool,
    attachment: Vec<u8>,
    /// The snapshot that the session continues from.
    continued: Option<Continued>,
    /// Whether no message follows.
    is_whole: bool,
    /// In a recording that continues another: the time of the last event there, and of the first one here.
    seam: Option<(Timestamp, Option<Timestamp>)>,
    heartbeat: Heartbeat,
    /// For each topic the sequence numbers in lines.
    recorded: Vec<RecordedNumbers>,
    /// For each property: whether it joins after a restart, until the missed span is recorded; empty if none does.
    joining: Vec<bool>,
    /// The times of messages, where a new lap may begin.
    laps: Laps,
    /// The number of the lap, from 1.
    lap: u32,
    jumps: Jumps,
    /// Inputs of the topics.
    inputs: Arc<[Input]>,
}

/// Writer of the parameters of instances in messages of a type.
fn key_writer(message_type: &Arc<MessageType>) -> Option<MessageWriter> {
    let of = Some(Arc::clone(message_type));
    MessageWriter::new(message_type.encoding(), of, JsonForm::EXACT).ok()
}

/// Writer of messages of a type as JSON, for inspection.
fn value_writer(message_type: &Arc<MessageType>) -> Option<MessageWriter> {
    let form = JsonForm { names: false, infinite: false };
    MessageWriter::new(message_type.encoding(), Some(Arc::clone(message_type)), form).ok()
}

/// The limit of notices that wait to be taken.
const NOTICES: usize = 4096;

impl Shared {
    /// Records the topics, fields and times of the messages of a block.
    fn see(&mut self, block: &Block) {
        self.missing.see(block);
        if let Some(jump) = self.jumps.look(block, &self.inputs) {
            self.notice(jump);
        }
        let Some(last) = block.len().checked_sub(1) else { return };
        let (first, last) = (block.time(0), block.time(last));
        let (begin, end) = self.span.unwrap_or((first, last));
        self.span = Some((begin.min(first), end.max(last)));
    }

    /// Adds the times of all messages of a block, in which they are not in order, to the span.
    #[cold]
    fn widen(&mut self, block: &Block) {
        for time in (0..block.len()).map(|row| block.time(row)) {
            let (begin, end) = self.span.unwrap_or((time, time));
            self.span = Some((begin.min(time), end.max(time)));
        }
    }

    /// Whether a property joins after a restart, so that it missed nothing before.
    fn joins(&self, property: u32) -> bool {
        self.joining.get(property as usize) == Some(&true)
    }

    /// The joining ones among these properties, by their positions among them.
    fn joining_of(&self, properties: &[u32]) -> Vec<u32> {
        (0..).zip(properties).filter(|(_, property)| self.joins(**property)).map(|(place, _)| place).collect()
    }

    /// The number of messages received, those before a snapshot included.
    #[inline]
    fn counted(&self) -> u64 {
        self.counted_before + self.counts.received
    }

    /// Keeps a notice until it is taken.
    fn notice(&mut self, mut notice: Notice) {
        if self.notices.len() >= NOTICES {
            self.dropped_notices += 1;
            return;
        }
        let topic = notice.topic.and_then(|topic| self.topics.get(topic.index()));
        notice.topic_name = topic.map(|topic| topic.name.clone());
        self.notices.push(notice);
    }

    /// Counts a message without the time that it should carry.
    fn unstamped(&mut self, topic: TopicId, time: Timestamp) {
        if let Some(topic) = self.topics.get_mut(topic.index()) {
            topic.unstamped += 1;
        }
        self.notice(Notice::unstamped(topic, time));
    }

    /// Counts messages of a topic that were not evaluated; `time` is that of the first one or of the last message before
    /// it, `detail` says what is wrong with the first one.
    #[cold]
    fn omit(
        &mut self,
        reason: Reason,
        topic: Option<TopicId>,
        time: Option<Timestamp>,
        detail: impl FnOnce() -> String,
    ) {
        let first = || Some(FirstOmission { time: time.filter(|time| *time > NO_TIME), detail: detail() });
        self.omissions.add(reason, topic, 1, first);
    }

    /// Counts a message that was refused because of its size.
    #[cold]
    fn oversized(&mut self, topic: TopicId, time: Option<Timestamp>, bytes: usize) {
        self.counts.refused += 1;
        if let Some(topic) = self.topics.get_mut(topic.index()) {
            topic.oversized += 1;
        }
        let limit = self.largest_message;
        self.omit(Reason::TooLarge, Some(topic), time, || {
            format!("{} bytes, the limit is {}", grouped(bytes as u64), size(limit))
        });
        self.notice(Notice::oversized(topic, bytes, limit));
    }

    /// Counts a message that was refused because its time is too far from the clock.
    #[cold]
    fn refuse(&mut self, topic: TopicId, time: Timestamp, refused: Refused) {
        self.counts.refused += 1;
        if let Some(topic) = self.topics.get_mut(topic.index()) {
            topic.refused += 1;
        }
        self.omit(Reason::RefusedTime, Some(topic), Some(time), || {
            let side = if refused.side == Refusal::Ahead { "after" } else { "before" };
            format!("{} {side} the clock", duration(refused.distance))
        });
        self.notice(Notice::refused(topic, time, refused.side, refused.distance));
    }
}

impl Session {
    /// A session of a specification. Where several sessions share one, start them from a [`SessionPlan`].
    ///
    /// # Errors
    /// [`StartError::Compile`] when a property cannot be monitored.
    pub fn new(spec: &Spec, options: Options) -> Result<Session, StartError> {
        SessionPlan::new(spec, options)?.start()
    }

    /// Takes a message. It is decoded at once, and evaluated when a block of messages is full, at
    /// [`flush`](Session::flush), or when nothing earlier can come.
    ///
    /// # Errors
    /// [`DecodeError`] when the payload cannot be decoded; the message is counted, and nothing else
    /// happens.
    #[inline]
    pub fn push(&mut self, topic: TopicId, stamp: Stamp, payload: &[u8]) -> Result<(), DecodeError> {
        let mut stamp = stamp;
        if let Some(numbers) = &mut self.numbers {
            stamp.origin = numbers.origin(topic, &stamp, payload);
        }
        let count = self.shared.counted() + 1;
        let outcome = self.shared.accounts.receive_at(topic, stamp.origin, count, &*self.shared.clock);
        if matches!(outcome, NumberOutcome::Gap(_)) {
            if self.numbers.is_some()
                && let Some(decoder) = self.route.decoders_mut().and_then(|all| all.get_mut(topic.index()))
            {
                decoder.forget_aliases(&stamp);
            }
            if self.blind {
                return self.push_after_loss(topic, stamp, payload);
            }
        }
        self.shared.counts.received += 1;
        match outcome {
            NumberOutcome::Again if self.shared.exactly => Ok(()),
            _ => self.take(topic, stamp, payload),
        }
    }

    #[inline]
    fn take(&mut self, topic: TopicId, stamp: Stamp, payload: &[u8]) -> Result<(), DecodeError> {
        if payload.len() > self.shared.largest_message {
            self.shared.oversized(topic, stamp.source.or(stamp.arrival), payload.len());
            self.shared.missing.unread(topic);
            self.unread(topic, stamp.origin);
            return Ok(());
        }
        let taken = match &mut self.route {
            Route::Direct(direct) => direct.push(topic, &stamp, payload, &mut self.shared),
            Route::Aligned(aligned) => aligned.push(topic, &stamp, payload, &mut self.shared),
            Route::Synchronized(synchronized) => synchronized.push(topic, &stamp, payload, &mut self.shared),
        };
        if let Err(error) = &taken {
            if error.is_about_series()
                && let Some(taken) = self.take_series(topic, stamp, payload)
            {
                return taken;
            }
            self.shared.counts.undecodable += 1;
            self.shared.accounts.undecodable(topic);
            let reason = match error {
                _ if error.is_about_time() => Reason::RefusedTime,
                DecodeError::NoType(_) => Reason::OtherType,
                _ => Reason::Undecodable,
            };
            let time = stamp.source.or(stamp.arrival);
            let is_plain = matches!(error, DecodeError::Json(_)) && plain::is_plain(payload);
            let advice = if is_plain { "; a topic of plain values needs `encoding: plain`" } else { "" };
            let why = format!("{error}{advice}");
            self.shared.omit(reason, Some(topic), time, || {
                format!("of {} bytes: {why}", grouped(payload.len() as u64))
            });
            self.shared.notice(Notice::undecodable(topic, payload.len(), &why));
            self.shared.missing.unread(topic);
            self.unread(topic, stamp.origin);
        } else if self.sharing.is_some() && stamp.of_type == TypeIndex::default() {
            self.share(topic, payload);
        }
        if let Some(decision) = self.shared.laps.decided() {
            self.settle_lap(decision);
        }
        taken
    }

    /// Takes a message that holds several events, one after another; `None` if these cannot be separated.
    #[cold]
    fn take_series(
        &mut self,
        topic: TopicId,
        stamp: Stamp,
        payload: &[u8],
    ) -> Option<Result<(), DecodeError>> {
        // Times are relative to one time of arrival.
        let arrival = stamp.arrival(&*self.shared.clock);
        let events = senml::split(payload, arrival)?;
        let mut stamp = Stamp { arrival: Some(arrival), ..stamp };
        let mut taken = Ok(());
        for event in events {
            taken = taken.and(self.take(topic, stamp, &event));
            // The number is that of one message.
            stamp.origin = None;
        }
        Some(taken)
    }

    /// Inspects whether many publishers share a topic.
    #[cold]
    fn share(&mut self, topic: TopicId, payload: &[u8]) {
        let Some(sharing) = &mut self.sharing else { return };
        sharing.message(topic, payload, |notice| self.shared.notice(notice));
        if sharing.is_over() {
            self.sharing = None;
        }
    }

    /// Inspects lines that are [decoded ahead](Session::push_part); other lines are inspected when they are taken.
    #[inline]
    pub fn look_at(&mut self, lines: &[u8]) {
        if self.sharing.is_some() {
            self.share_lines(lines);
        }
    }

    #[cold]
    fn share_lines(&mut self, lines: &[u8]) {
        let Some(sharing) = &mut self.sharing else { return };
        sharing.lines(lines, |notice| self.shared.notice(notice));
        if sharing.is_over() {
            self.sharing = None;
        }
    }

    /// A decoder for JSON lines, each a message with its topic and time: see [`Session::push_lines`]. `unit` is
    /// the unit of the times beside the payload.
    pub fn lines(&self, unit: TimeUnit) -> Lines {
        let lines = match &self.route {
            // Message numbers show which messages are missing.
            Route::Direct(direct) if self.blind => direct.lines(unit).with_origins(),
            Route::Direct(direct) => direct.lines(unit),
            Route::Aligned(aligned) => aligned.lines(unit),
            Route::Synchronized(synchronized) => synchronized.lines(unit),
        };
        lines.with_largest(self.shared.largest_message)
    }

    /// Takes whole lines, `text[at..end]`, up to 64 at a time; returns where the first line begins that was
    /// not taken. `lines` comes from [`Session::lines`].
    ///
    /// # Errors
    /// [`LineError`] at the first line that cannot be used; the lines before it were taken.
    pub fn push_lines(
        &mut self,
        lines: &mut Lines,
        text: &[u8],
        at: usize,
        end: usize,
    ) -> Result<usize, LineError> {
        let taken = self.take_lines(lines, Source::Text { text, at, end });
        if self.sharing.is_some()
            && let Ok(next) = taken
        {
            self.share_lines(text.get(at..next).unwrap_or_default());
        }
        taken
    }

    /// A decoder that decodes lines ahead of their turn, on another thread: see [`Session::push_part`]. `lines` comes from
    /// [`Session::lines`] and has read nothing yet.
    pub fn ahead(&self, lines: &Lines) -> Ahead {
        let layout = match &self.route {
            Route::Direct(direct) => direct.layout(),
            Route::Aligned(aligned) => aligned.layout(),
            Route::Synchronized(synchronized) => synchronized.layout(),
        };
        Ahead::new(lines.clone(), layout)
    }

    /// Returns the values of all fields that properties read, from the beginning on and at a coarser resolution where
    /// they are many, and the number of values of further fields and instances; nothing without [`Options::courses`].
    pub fn courses(&self) -> (Vec<Signal>, u64) {
        match &self.route {
            Route::Direct(direct) => direct.courses(),
            Route::Aligned(aligned) => aligned.courses(),
            Route::Synchronized(_) => Default::default(),
        }
    }

    /// Whether violations are explained. Of several events at one time, the cut into blocks may decide which ones an
    /// explanation shows, and lines that are decoded ahead are cut at other places.
    pub fn explains(&self) -> bool {
        self.explains
    }

    /// Takes lines that were decoded ahead, in their turn; returns where the lines after them begin.
    pub fn push_part(&mut self, lines: &mut Lines, part: &mut Part) -> usize {
        let end = part.end();
        // Decoded lines have no errors.
        self.take_lines(lines, Source::Part(part)).unwrap_or(end)
    }

    #[inline]
    fn take_lines(&mut self, lines: &mut Lines, source: Source<'_>) -> Result<usize, LineError> {
        self.shared.jumps.reads_lines = true;
        let taken = match &mut self.route {
            Route::Direct(direct) => direct.push_lines(lines, source, &mut self.shared),
            Route::Aligned(aligned) => aligned.push_lines(lines, source, &mut self.shared),
            Route::Synchronized(synchronized) => synchronized.push_lines(lines, source),
        };
        for first in lines.first_mistyped() {
            self.see_mistyped(first);
        }
        for (topic, count) in lines.left_out() {
            if let Some(all) = self.shared.left_out.get_mut(topic.index()) {
                *all += count;
            }
        }
        if let Some(decision) = self.shared.laps.decided() {
            self.settle_lap(decision);
        }
        taken
    }

    /// Keeps the first value of another type on a topic, to be shown with their number.
    #[cold]
    fn see_mistyped(&mut self, first: &Mistyped) {
        let Some(projection) = self.route.projections().get(first.topic.index()) else { return };
        let Some(field) = field_in(projection, first.slot, first.member) else { return };
        let path = field.path.as_listed();
        let detail = match (first.is_inexact, &first.no_number, first.member) {
            (true, ..) => format!("`{path}` {INEXACT}"),
            (false, Some(text), _) => format!("`{path}` {}", no_number(text)),
            (false, None, Some(_)) => no_value_of(field),
            (false, None, None) => format!("`{path}`"),
        };
        let omission = FirstOmission { time: Some(first.time), detail };
        self.shared.first_mistyped.push((first.topic, omission));
    }

    /// Takes a progress marker of a publisher: `{"topic":"gear","complete":12.5}`.
    pub fn progress(&mut self, payload: &[u8]) {
        match &mut self.route {
            Route::Direct(_) => {}
            Route::Aligned(aligned) => aligned.progress(payload, &mut self.shared),
            Route::Synchronized(synchronized) => synchronized.progress(payload, &mut self.shared),
        }
    }

    /// The earliest time of a message that was evaluated, if there was one.
    pub fn begin(&self) -> Option<Timestamp> {
        self.shared.span.map(|(begin, _)| begin)
    }

    /// Evaluates all messages that need not wait. Call it when no more messages are waiting to be pushed.
    #[inline]
    pub fn flush(&mut self) {
        self.evaluate();
        let Shared { accounts, counts, flushed, clock, .. } = &mut self.shared;
        if std::mem::replace(flushed, counts.received) != counts.received {
            accounts.pause(&**clock);
        }
    }

    #[inline]
    fn evaluate(&mut self) {
        match &mut self.route {
            Route::Direct(direct) => direct.step(&mut self.shared),
            Route::Aligned(aligned) => aligned.step(&mut self.shared),
            Route::Synchronized(synchronized) => synchronized.step(&mut self.shared),
        }
        if let Some(decision) = self.shared.laps.decided() {
            self.settle_lap(decision);
        }
    }

    /// Heartbeat of the session: see [`Options::paused_after`]. Call it regularly, and after anything that may have
    /// taken long. Returns whether there was a pause or the clock was set: due times may have changed.
    pub fn alive(&mut self) -> bool {
        if !self.shared.heartbeat.is_on() {
            return false;
        }
        let now = self.shared.clock.ticks();
        let missed = self.shared.look(now);
        if let Some(missed) = &missed {
            self.pause(missed);
        }
        if self.shared.catches_up(now) {
            match &mut self.route {
                Route::Direct(direct) => direct.catch_up(&self.shared),
                Route::Aligned(aligned) => aligned.catch_up(&self.shared),
                Route::Synchronized(_) => {}
            }
        }
        missed.is_some()
    }

    /// Evaluates all messages, and the verdicts that time alone decides, up to the session's clock. Returns the
    /// reading of [`Clock::ticks`] at which to call it again.
    pub fn poll(&mut self) -> Option<Ticks> {
        if self.shared.laps.due().is_some_and(|due| due <= self.shared.clock.ticks()) {
            self.settle_lap((LapDecision::NewLap, usize::MAX));
        }
        if self.shared.laps.is_holding() {
            // Time advances once the lap is known.
            return self.shared.laps.due();
        }
        let due = match &mut self.route {
            Route::Direct(direct) => direct.poll(&mut self.shared),
            Route::Aligned(aligned) => aligned.poll(&mut self.shared),
            Route::Synchronized(synchronized) => synchronized.poll(&mut self.shared),
        };
        if let Some(decision) = self.shared.laps.decided() {
            self.settle_lap(decision);
            return Some(self.shared.clock.ticks());
        }
        let Some(watch) = &mut self.watch else { return due };
        let missing = watch.poll(&mut self.shared);
        if missing.is_none() {
            self.watch = None;
        }
        due.into_iter().chain(missing).min()
    }

    /// The reading of [`Clock::ticks`] at which time alone decides a verdict, ends a wait, or shows that something
    /// is missing.
    #[inline]
    pub fn due(&self) -> Option<Ticks> {
        let due = match &self.route {
            Route::Direct(direct) => direct.due(),
            Route::Aligned(aligned) => aligned.due(&*self.shared.clock),
            Route::Synchronized(synchronized) => synchronized.due(&*self.shared.clock),
        };
        let due = due.into_iter().chain(self.shared.laps.due()).min();
        match &self.watch {
            None => due,
            Some(watch) => due.into_iter().chain(watch.due()).min(),
        }
    }

    /// Whether time alone can bring reports or notices or end waits, so that [`poll`](Session::poll) must be called.
    pub fn is_timed(&self) -> bool {
        match &self.route {
            _ if self.watch.is_some() => true,
            Route::Direct(direct) => direct.is_timed(),
            Route::Aligned(_) | Route::Synchronized(_) => true,
        }
    }

    /// Evaluates all messages, and lets event time pass up to `time`: no earlier message follows.
    pub fn advance(&mut self, time: Timestamp) {
        self.settle_laps_now();
        match &mut self.route {
            Route::Direct(direct) => direct.advance(time, &mut self.shared),
            Route::Aligned(aligned) => aligned.advance(time, &mut self.shared),
            Route::Synchronized(synchronized) => synchronized.advance(time, &mut self.shared),
        }
    }

    /// The event time at which time alone decides a verdict, if no message arrives before.
    pub fn deadline(&self) -> Option<Timestamp> {
        match &self.route {
            Route::Direct(direct) => direct.deadline(),
            Route::Aligned(aligned) => aligned.deadline(),
            Route::Synchronized(synchronized) => synchronized.deadline(),
        }
    }

    /// Whether there are reports to take.
    #[inline]
    pub fn has_reports(&self) -> bool {
        !self.shared.emitter.reports.is_empty()
    }

    /// Takes the reports since the last call, in order.
    pub fn reports(&mut self) -> impl Iterator<Item = Report<'_>> {
        self.shared.emitter.reports.take(&self.properties)
    }

    /// Whether there are notices to take.
    #[inline]
    pub fn has_notices(&self) -> bool {
        !self.shared.notices.is_empty()
    }

    /// Takes the notices since the last call, in order; at most 4,096 wait.
    pub fn notices(&mut self) -> impl Iterator<Item = Notice> {
        let dropped = std::mem::take(&mut self.shared.dropped_notices);
        let dropped = (dropped > 0).then(|| Notice::dropped(dropped));
        self.shared.notices.drain(..).chain(dropped)
    }

    /// Takes notices of messages lost according to the numbers of their publishers since the last call, one for each
    /// topic, and of the first values of another type than the specification reads. Call it about once a second: it
    /// also records the number of messages received by now, so that [`Session::cut_off`] knows which verdicts are older
    /// than an outage.
    pub fn losses(&mut self) -> Vec<Notice> {
        self.note_count();
        self.note_guesses();
        let mut losses = self.shared.accounts.losses();
        let decoders = self.route.decoders();
        self.mistyped.resize(decoders.len(), false);
        for ((topic, decoder), is_said) in (0..).map(TopicId).zip(decoders).zip(&mut self.mistyped) {
            let count = decoder.mistyped();
            if count > 0 && !std::mem::replace(is_said, true) {
                let projection = self.route.projections().get(topic.index());
                let field_of = |slot| decoder.misread_field(projection?, slot);
                let large = decoder.too_large().and_then(field_of).map(|field| match field.exact {
                    true => Misread::Inexact(&field.path),
                    false => Misread::TooLarge(&field.path),
                });
                let text = || {
                    let text = decoder.no_number()?;
                    Some(Misread::Text(&field_of(text.slot())?.path, text))
                };
                let element = || Some(Misread::Element(field_of(decoder.mistyped_member()?.0)?));
                losses.push(Notice::mistyped(topic, count, large.or_else(text).or_else(element)));
            }
        }
        for notice in &mut losses {
            let topic = notice.topic.and_then(|topic| self.shared.topics.get(topic.index()));
            notice.topic_name = topic.map(|topic| topic.name.clone());
        }
        losses
    }

    /// Sets the type of the messages of a topic that was unknown when the session began (see [`Options::types_later`]):
    /// they are read from then on.
    ///
    /// # Errors
    /// A type of another encoding, and the fields that the type does not have. The topic then stays unread.
    pub fn resolve_type(
        &mut self,
        topic: TopicId,
        message_type: &Arc<MessageType>,
    ) -> Result<(), DecoderError> {
        let decoders = match &mut self.route {
            Route::Direct(direct) => direct.decoders_mut(),
            Route::Aligned(aligned) => aligned.decoders_mut(),
            Route::Synchronized(synchronized) => return synchronized.resolve_type(topic, message_type),
        };
        if let Some(decoder) = decoders.get_mut(topic.index()) {
            decoder.resolve_type(message_type)?;
        }
        self.resolved.push((topic, Arc::clone(message_type)));
        if let Some(sharing) = &mut self.sharing {
            sharing.set_writer(topic, value_writer(message_type));
        }
        for (of, key) in self.events.iter().zip(&mut self.keys) {
            if *of == topic {
                *key = key_writer(message_type);
            }
        }
        Ok(())
    }

    /// Takes the next message or set that a [synchronizer](SessionPlan::synchronizer) has released, as a JSON
    /// object: the time, and under the names of the topics the messages as received.
    pub fn released(&mut self) -> Option<&[u8]> {
        match &mut self.route {
            Route::Synchronized(synchronized) => synchronized.released(),
            _ => None,
        }
    }

    /// Outcome of the edit for the properties, if the session resumed from the snapshot of an edited specification.
    pub fn edited(&self) -> Option<&Edited> {
        self.edited.as_ref()
    }

    /// The state of the session as bytes, from which [`SessionPlan::restore`] continues. Reports and notices that
    /// were not taken are not included. [`SessionPlan::restore`] requires the same `note`.
    pub fn snapshot(&mut self, note: &str) -> Vec<u8> {
        self.flush();
        self.settle_laps_now();
        let mut saved = match &mut self.route {
            Route::Direct(direct) => {
                direct.return_now();
                direct.saved()
            }
            Route::Aligned(aligned) => aligned.saved(&*self.shared.clock),
            Route::Synchronized(synchronized) => synchronized.saved(&*self.shared.clock),
        };
        let Shared { emitter, counts, checked_before, missing, .. } = &self.shared;
        saved.known.explain = self.explains;
        saved.known.note = note.to_owned();
        saved.known.program = self.fingerprint;
        saved.known.topics = self.shared.topics.iter().map(|topic| topic.name.clone()).collect();
        saved.known.properties = self.properties.iter().map(|property| property.name.clone()).collect();
        saved.known.events = checked_before + counts.checked;
        let mut statistics = emitter.statistics.clone();
        match &self.route {
            Route::Direct(direct) => direct.see_robustness(&mut statistics),
            Route::Aligned(aligned) => aligned.see_robustness(&mut statistics),
            Route::Synchronized(_) => {}
        }
        saved.known.statistics = statistics.iter().map(|statistics| statistics.saved()).collect();
        saved.known.lap = self.shared.lap;
        saved.known.latest = self.shared.laps.saved();
        saved.known.omissions = self.omissions().saved(&saved.known.topics);
        saved.known.missing = missing.saved();
        saved.known.numbers = self.shared.accounts.saved();
        saved.known.attachment = self.shared.attachment.clone();
        self.shared.save_end(&mut saved.known);
        saved.known.recorded = self.shared.recorded.clone();
        saved.seal()
    }

    /// Sets bytes of the caller that are part of snapshots from here on.
    pub fn attach(&mut self, bytes: Vec<u8>) {
        self.shared.attachment = bytes;
    }

    /// The bytes that were [attached](Session::attach), also to the snapshot that the session continues from.
    pub fn attachment(&self) -> &[u8] {
        &self.shared.attachment
    }

    /// Sequence number expected next from each publisher of a topic, where publishers number their messages: a network
    /// that can recover messages requests them from there after a restart. With [`Options::exactly`] it is known from
    /// the snapshot.
    pub fn expected(&self, topic: TopicId) -> Vec<Origin> {
        self.shared.accounts.expected(topic)
    }

    /// Ends the recording: evaluates all messages, also waiting ones, and reports open obligations. Push no
    /// message afterwards.
    pub fn finish(&mut self) {
        if std::mem::replace(&mut self.finished, true) {
            return;
        }
        self.flush();
        self.settle_laps_now();
        if let Some(mut sharing) = self.sharing.take() {
            sharing.end(|notice| self.shared.notice(notice));
        }
        self.note_guesses();
        self.end_route();
    }

    /// Ends the lap: reports open obligations.
    fn end_route(&mut self) {
        self.shared.emitter.statistics.iter_mut().for_each(|statistics| statistics.over());
        match &mut self.route {
            Route::Direct(direct) => direct.finish(&mut self.shared),
            Route::Aligned(aligned) => aligned.finish(&mut self.shared),
            Route::Synchronized(synchronized) => synchronized.finish(&mut self.shared),
        }
    }

    /// Ends the run at the clock's time and not at the last message: the recorder stated that no further message came.
    pub fn end_now(&mut self) {
        match &mut self.route {
            Route::Direct(direct) => direct.end_now(),
            Route::Aligned(aligned) => aligned.end_now(),
            Route::Synchronized(_) => {}
        }
    }

    /// Records whether a message of a recording, which counts at this time, has a time of its own there.
    pub fn note_own_time(&mut self, topic: TopicId, time: Timestamp, has_time: bool) {
        if !self.route.measures_time() {
            return;
        }
        match self.shared.topics.get_mut(topic.index()) {
            Some(of) if has_time => of.stamped = true,
            _ => self.shared.unstamped(topic, time),
        }
    }

    /// Records that a recording was not read to its end: the rest could change the results of asserts.
    pub fn broke_off(&mut self) {
        self.shared.emitter.broke_off = true;
    }

    /// Records that no message follows, and that all messages were taken; the next [snapshot](Session::snapshot)
    /// contains that.
    pub fn end_part(&mut self) {
        self.shared.is_whole = true;
    }

    /// The number of checked events, with those before a snapshot.
    pub fn events(&self) -> u64 {
        self.shared.checked_before + self.shared.counts.checked
    }

    /// The session in numbers, from its beginning: of all laps.
    pub fn summary(&self) -> Summary {
        let current = self.lap_summary();
        let Some(before) = &self.before else { return current };
        let mut all = Summary::clone(before);
        all.continue_with(current);
        all
    }

    /// The current lap in numbers.
    fn lap_summary(&self) -> Summary {
        let Shared { emitter, counts, topics, accounts, missing, needed, .. } = &self.shared;
        let mut topics = topics.clone();
        let events = topics.split_off(self.declared);
        for (of, events) in self.events.iter().zip(&events) {
            topics[of.index()].add(events);
        }
        let mut accounts = accounts.all();
        accounts.truncate(self.declared);
        let mut summary = Summary {
            counts: *counts,
            accounts,
            properties: emitter.statistics.clone(),
            topics,
            missing: missing.clone(),
            needed: Arc::clone(needed),
            span: self.shared.span,
            pauses: self.shared.heartbeat.pauses.clone(),
            seam: self.shared.seam.and_then(|(from, until)| Some((from, until?))),
            ..Summary::default()
        };
        match &self.route {
            Route::Direct(direct) => direct.summarize(&mut summary, &self.shared),
            Route::Aligned(aligned) => aligned.summarize(&mut summary),
            Route::Synchronized(synchronized) => synchronized.summarize(&mut summary),
        }
        self.add_uncertain(&mut summary);
        summary.omissions.extend(self.remarks());
        summary.add_omissions(&self.omissions(), self.blind);
        summary
    }

    /// The messages that were not evaluated so far: at the end those of [`Summary::omitted`].
    pub fn omitted(&self) -> Vec<Omission> {
        self.omissions().all(|topic| self.shared.needed.name_of(topic))
    }

    /// The messages that were not evaluated, also those that other parts count.
    fn omissions(&self) -> Omissions {
        let mut omissions = self.shared.omissions.clone();
        let accounts = self.shared.accounts.all();
        for (topic, (account, statistics)) in (0..).map(TopicId).zip(accounts.iter().zip(&self.shared.topics))
        {
            let first = account.lost_between.map(|(from, _)| from);
            let first = || Some(FirstOmission { time: first, detail: String::new() });
            omissions.add(Reason::Lost, Some(topic), account.lost + statistics.gaps, first);
        }
        let decoders = (0..).map(TopicId).zip(self.route.decoders()).zip(self.route.projections());
        for ((topic, decoder), projection) in decoders {
            let first = || {
                let path = |slot| decoder.misread_field(projection, slot);
                let detail = match (decoder.too_large(), decoder.other_type()) {
                    (None, None) if decoder.no_number().is_none() => {
                        no_value_of(path(decoder.mistyped_member()?.0)?)
                    }
                    (None, None) if decoder.no_number().is_some() => {
                        let text = decoder.no_number()?;
                        format!("`{}` {}", path(text.slot())?.path, no_number(&text))
                    }
                    (Some(slot), _) => {
                        let field = path(slot)?;
                        let why =
                            if field.exact { INEXACT } else { "has an integer beyond 64 bits with a sign" };
                        format!("`{}` {why}", field.path)
                    }
                    (None, slot) => {
                        format!("`{}` has another type in messages of one publisher", path(slot?)?.path)
                    }
                };
                Some(FirstOmission { time: None, detail })
            };
            omissions.add(Reason::OtherFieldType, Some(topic), decoder.mistyped(), first);
            omissions.add(Reason::NotANumber, Some(topic), decoder.not_numbers(), || None);
            if let Some(TooManyElements { slot, messages, first, limit }) = decoder.too_many_elements() {
                omissions.add(Reason::OverLimit, Some(topic), messages, || {
                    let path = &field_in(projection, slot, None)?.path;
                    let (first, limit) = (grouped(first.into()), grouped(limit.into()));
                    let detail = format!("`{path}` has {first} elements, and at most {limit} are read");
                    Some(FirstOmission { time: None, detail })
                });
            }
        }
        match &self.route {
            Route::Direct(direct) => direct.add_omissions(&mut omissions),
            Route::Aligned(aligned) => aligned.add_omissions(&mut omissions),
            Route::Synchronized(_) => {}
        }
        for (topic, first) in &self.shared.first_mistyped {
            omissions.describe(Reason::OtherFieldType, *topic, first);
        }
        // Events of a topic are counted as its messages.
        omissions.rename(|topic| {
            topic.index().checked_sub(self.declared).map_or(topic, |event| self.events[event])
        });
        omissions
    }
}
