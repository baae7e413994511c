//! Taking messages: payloads, lines and progress markers.

use rondel_align::NumberOutcome;
use rondel_decode::lines::{Ahead, LineError, Lines, Mistyped, Part, Source};
use rondel_decode::{DecodeError, plain, senml};
use rondel_event::{TimeUnit, Timestamp, TopicId, TypeIndex};

use super::{Route, Session, Stamp};
use crate::report::notice::{INEXACT, Notice, field_in, no_number, no_value_of};
use crate::statistics::omission::{FirstOmission, Reason};
use crate::text::grouped;

impl Session {
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
            if self.withholds() {
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
    pub(super) fn take(&mut self, topic: TopicId, stamp: Stamp, payload: &[u8]) -> Result<(), DecodeError> {
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
            let reason = match error {
                DecodeError::NoType(_) => Reason::OtherType,
                _ => Reason::Undecodable,
            };
            let is_plain = matches!(error, DecodeError::Json(_)) && plain::is_plain(payload);
            let advice = if is_plain { "; a topic of plain values needs `encoding: plain`" } else { "" };
            self.undecodable(topic, &stamp, payload.len(), (reason, &format!("{error}{advice}")));
        } else if self.sharing.is_some() && stamp.of_type == TypeIndex::default() {
            self.share(topic, payload);
        }
        if let Some(decision) = self.shared.laps.decided() {
            self.settle_lap(decision);
        }
        taken
    }

    /// Takes a message whose name does not give the parameters of its topic, such as a record of Kafka without a key: it is
    /// undecodable. `bytes` is the size of its payload, and `why` the reason.
    #[cold]
    pub fn push_unnamed(&mut self, topic: TopicId, stamp: Stamp, bytes: usize, why: &str) {
        let count = self.shared.counted() + 1;
        self.shared.accounts.receive_at(topic, stamp.origin, count, &*self.shared.clock);
        self.shared.counts.received += 1;
        self.undecodable(topic, &stamp, bytes, (Reason::Undecodable, why));
    }

    /// Counts and reports an undecodable message of this size, with the reason also in words. Verdicts that depend on it are
    /// inconclusive.
    #[cold]
    fn undecodable(&mut self, topic: TopicId, stamp: &Stamp, bytes: usize, (reason, why): (Reason, &str)) {
        self.shared.counts.undecodable += 1;
        self.shared.accounts.undecodable(topic);
        let time = stamp.source.or(stamp.arrival);
        self.shared.omit(reason, Some(topic), time, || format!("of {} bytes: {why}", grouped(bytes as u64)));
        self.shared.notice(Notice::undecodable(topic, bytes, why));
        self.shared.missing.unread(topic);
        self.unread(topic, stamp.origin);
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
            Route::Direct(direct) if self.withholds() => direct.lines(unit).with_origins(),
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
            self.shared.omitted.leave_out(*topic, *count);
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
        self.shared.omitted.see_mistyped(first.topic, omission);
    }

    /// Takes a progress marker of a publisher: `{"topic":"gear","complete":12.5}`.
    pub fn progress(&mut self, payload: &[u8]) {
        match &mut self.route {
            Route::Direct(_) => {}
            Route::Aligned(aligned) => aligned.progress(payload, &mut self.shared),
            Route::Synchronized(synchronized) => synchronized.progress(payload, &mut self.shared),
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
}
