//! Accounts of the messages of each topic: how many were received and, where publishers number their messages, how many
//! were lost or duplicated.

use rondel_align::{NumberOutcome, SequenceNumbers};
use rondel_event::{Origin, SnapshotError, Timestamp, TopicId};
use serde::{Deserialize, Serialize};

use serde_json::{Value, json};

use crate::report::notice::Notice;
use crate::text::counted;
use crate::time::clock::Clock;

/// The messages of one topic.
#[derive(Clone, Debug, Default)]
pub struct Account {
    /// Messages received.
    pub received: u64,
    /// Messages that could not be decoded.
    pub undecodable: u64,
    /// Messages missing according to the sequence numbers of their publishers.
    pub lost: u64,
    /// Messages that were missed, and fetched again from their publishers.
    pub recovered: u64,
    /// Messages received more than once, according to the sequence numbers.
    pub duplicated: u64,
    /// Interval in which messages were lost: from the last message before the first loss to the first one after the
    /// last loss.
    pub lost_between: Option<(Timestamp, Timestamp)>,
    /// Publishers no longer tracked because there were too many: their losses are unknown.
    pub forgotten: u64,
    /// Publishers that have numbered their messages.
    pub publishers: u64,
}

impl Account {
    /// Adds the account of later messages, or of another recording.
    pub(crate) fn add(&mut self, further: &Account) {
        let Account {
            received,
            undecodable,
            lost,
            recovered,
            duplicated,
            lost_between,
            forgotten,
            publishers,
        } = *further;
        self.received += received;
        self.undecodable += undecodable;
        self.lost += lost;
        self.recovered += recovered;
        self.duplicated += duplicated;
        self.forgotten += forgotten;
        self.publishers = self.publishers.max(publishers);
        self.lost_between = match (self.lost_between, lost_between) {
            (Some(own), Some(further)) => Some((own.0.min(further.0), own.1.max(further.1))),
            (own, further) => own.or(further),
        };
    }

    /// Returns the account of the topic of this name as a JSON object, with times in seconds.
    pub fn json(&self, name: &str) -> Value {
        let Account { received, undecodable, lost, recovered, duplicated, lost_between, forgotten, .. } =
            self;
        let mut object = json!({
            "topic": name,
            "received": received,
            "undecodable": undecodable,
            "lost": lost,
            "recovered": recovered,
            "duplicated": duplicated,
        });
        let seconds = |time: Timestamp| json!(time.as_nanos() as f64 / 1e9);
        if let Some((from, until)) = lost_between {
            object["lost_from"] = seconds(*from);
            object["lost_until"] = seconds(*until);
        }
        if *forgotten > 0 {
            object["forgotten_publishers"] = json!(forgotten);
        }
        object
    }

    /// Returns a sentence about lost, recovered and duplicated messages of the topic of this name, if there are any;
    /// `time` formats a time.
    pub fn sentence(&self, name: &str, time: &mut dyn FnMut(Timestamp) -> String) -> Option<String> {
        let Account { lost, recovered, duplicated, lost_between, .. } = self;
        let mut parts = Vec::new();
        if *lost > 0 {
            let between =
                lost_between.map(|(from, until)| format!(" between {} and {}", time(from), time(until)));
            parts.push(format!(
                "{} lost{}",
                counted(*lost, "message", "messages"),
                between.unwrap_or_default()
            ));
        }
        if *recovered > 0 {
            parts.push(format!("{} missed and received again", counted(*recovered, "message", "messages")));
        }
        if *duplicated > 0 {
            parts.push(format!("{} twice", counted(*duplicated, "message came", "messages came")));
        }
        (!parts.is_empty()).then(|| format!("{name}: {}, by the numbers of publishers", parts.join(", ")))
    }
}

/// Account of one topic during a session.
#[derive(Debug, Default)]
struct Entry {
    account: Account,
    /// Publisher of the last numbered message, with the number expected next.
    last: Option<Origin>,
    /// Number of messages of the session up to that one, including those before a snapshot.
    at: u64,
    /// Like `at`, for the message before the last loss, if that was the last message of the topic.
    before_loss: Option<u64>,
    numbers: SequenceNumbers,
    /// Losses not yet reported in a notice.
    pending: Option<Loss>,
}

/// Successive losses.
#[derive(Clone, Copy, Debug)]
struct Loss {
    count: u64,
    /// Publisher, unless there were several.
    publisher: Option<u64>,
    between: (Timestamp, Timestamp),
}

/// Outcome of checking the number of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineNumber {
    /// The number is the expected one.
    Fine,
    /// The line is a duplicate.
    Again,
    /// Lines are missing before it; `before` is the number of messages of the session up to the last one before the
    /// gap, if known.
    Gap { missing: u64, before: Option<u64> },
}

/// Sequence numbers in the lines of one topic.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct RecordedNumbers {
    numbers: SequenceNumbers,
    /// Publisher of the last line, and number of messages of the session up to it.
    last: Option<(u64, u64)>,
}

impl RecordedNumbers {
    /// Checks the number of a line; `count` is the number of messages of the session up to it, including those before a
    /// snapshot.
    pub(crate) fn line(&mut self, origin: Origin, count: u64) -> LineNumber {
        let outcome = self.numbers.number(origin);
        match outcome {
            NumberOutcome::Again => return LineNumber::Again,
            NumberOutcome::Old | NumberOutcome::Found => return LineNumber::Fine,
            NumberOutcome::Next | NumberOutcome::Gap(_) | NumberOutcome::Restarted(_) => {}
        }
        let last = self.last.replace((origin.publisher, count));
        let NumberOutcome::Gap(missing) = outcome else { return LineNumber::Fine };
        let before = last.filter(|last| last.0 == origin.publisher).map(|last| last.1);
        LineNumber::Gap { missing, before }
    }

    /// Begins another recording, whose lines may overlap with the earlier ones.
    pub(crate) fn join(&mut self) {
        self.numbers.join();
    }

    /// Whether the numbers are possible in an intact snapshot.
    pub(crate) fn is_plausible(&self) -> bool {
        self.numbers.is_plausible()
    }
}

/// Sequence numbers of publishers in a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct SavedNumbers {
    /// [`Accounts::seen`] in nanoseconds.
    seen: Option<i64>,
    topics: Vec<SavedTopic>,
}

impl SavedNumbers {
    /// Rearranges the numbers for other topics; `origins` gives the position of each of these here.
    pub(crate) fn moved(&self, origins: &[Option<usize>]) -> SavedNumbers {
        let of =
            |origin: &Option<usize>| origin.and_then(|at| self.topics.get(at).cloned()).unwrap_or_default();
        SavedNumbers { seen: self.seen, topics: origins.iter().map(of).collect() }
    }
}

/// State of a topic: publisher of its last numbered message with the number expected next, [`Entry::at`], and all
/// sequence numbers.
type SavedTopic = (Option<(u64, u64)>, u64, SequenceNumbers);

/// Accounts of all topics.
#[derive(Debug)]
pub struct Accounts {
    entries: Vec<Entry>,
    /// A time not after the last message of any topic; `None` before the first numbered message.
    seen: Option<Timestamp>,
    is_pending: bool,
}

impl Accounts {
    /// Creates accounts of `topics` topics.
    pub fn new(topics: usize) -> Accounts {
        let entries = (0..topics).map(|_| Entry::default()).collect();
        Accounts { entries, seen: None, is_pending: false }
    }

    /// Counts a message, and returns the outcome of checking its number. The usual case is one comparison, with the
    /// publisher of the last message and the number expected next.
    #[inline]
    pub fn receive(&mut self, topic: TopicId, origin: Option<Origin>, clock: &dyn Clock) -> NumberOutcome {
        self.receive_at(topic, origin, 0, clock)
    }

    /// Like [`Accounts::receive`] in a session; `count` is the number of its messages up to this one, including those
    /// before a snapshot.
    #[inline]
    pub(crate) fn receive_at(
        &mut self,
        topic: TopicId,
        origin: Option<Origin>,
        count: u64,
        clock: &dyn Clock,
    ) -> NumberOutcome {
        let Some(entry) = self.entries.get_mut(topic.index()) else { return NumberOutcome::Next };
        entry.account.received += 1;
        let Some(origin) = origin else { return NumberOutcome::Next };
        if entry.last == Some(origin) {
            entry.last = Some(Origin { number: origin.number.wrapping_add(1), ..origin });
            entry.at = count;
            NumberOutcome::Next
        } else {
            self.number(topic, origin, count, clock)
        }
    }

    /// Counts a message that could not be decoded.
    #[cold]
    pub(crate) fn undecodable(&mut self, topic: TopicId) {
        if let Some(entry) = self.entries.get_mut(topic.index()) {
            entry.account.undecodable += 1;
        }
    }

    /// Checks the number of a message that is not the expected one.
    #[cold]
    fn number(&mut self, topic: TopicId, origin: Origin, count: u64, clock: &dyn Clock) -> NumberOutcome {
        let now = clock.now();
        let since = *self.seen.get_or_insert(now);
        let Some(entry) = self.entries.get_mut(topic.index()) else { return NumberOutcome::Next };
        if let Some(last) = entry.last {
            // Numbers accepted by the fast path.
            entry.numbers.receive_through(last.publisher, last.number.wrapping_sub(1));
        }
        let known = entry.numbers.publishers();
        let outcome = entry.numbers.number(origin);
        if matches!(outcome, NumberOutcome::Next | NumberOutcome::Gap(_) | NumberOutcome::Restarted(_)) {
            let is_same = entry.last.is_some_and(|last| last.publisher == origin.publisher);
            entry.before_loss = is_same.then_some(entry.at);
            entry.at = count;
            entry.last = Some(Origin { number: origin.number.wrapping_add(1), ..origin });
        }
        let account = &mut entry.account;
        match outcome {
            NumberOutcome::Next => {
                let is_new = entry.numbers.is_first(origin);
                account.forgotten += u64::from(is_new && entry.numbers.publishers() == known);
            }
            NumberOutcome::Old | NumberOutcome::Restarted(_) => {}
            NumberOutcome::Again => account.duplicated += 1,
            NumberOutcome::Found => account.lost = account.lost.saturating_sub(1),
            NumberOutcome::Gap(count) => {
                account.lost = account.lost.saturating_add(count);
                account.lost_between = Some((account.lost_between.map_or(since, |(from, _)| from), now));
                let loss = Loss { count, publisher: Some(origin.publisher), between: (since, now) };
                entry.pending = Some(entry.pending.map_or(loss, |pending| pending.and(loss)));
                self.is_pending = true;
            }
        }
        outcome
    }

    /// Number of messages of the session up to the last message before the last loss of a topic, if known.
    pub(crate) fn before_loss(&self, topic: TopicId) -> Option<u64> {
        self.entries.get(topic.index())?.before_loss
    }

    /// Records that all received messages were evaluated. Must be called after messages only: a message may have been
    /// lost since the last call only if one was received.
    #[inline]
    pub fn pause(&mut self, clock: &dyn Clock) {
        if let Some(seen) = &mut self.seen {
            *seen = clock.now();
        }
    }

    /// Takes the notices of the losses since the last call, one for each topic.
    pub fn losses(&mut self) -> Vec<Notice> {
        if !std::mem::take(&mut self.is_pending) {
            return Vec::new();
        }
        let notice = |(topic, entry): (u32, &mut Entry)| {
            let Loss { count, publisher, between: (from, until) } = entry.pending.take()?;
            Some(Notice::lost(TopicId(topic), count, publisher, from, until))
        };
        (0..).zip(&mut self.entries).filter_map(notice).collect()
    }

    /// Returns the sequence numbers for a snapshot.
    pub(crate) fn saved(&self) -> SavedNumbers {
        let last = |entry: &Entry| entry.last.map(|last| (last.publisher, last.number));
        let numbers = |entry: &Entry| (last(entry), entry.at, entry.numbers.clone());
        let topics = self.entries.iter().map(numbers).collect();
        SavedNumbers { seen: self.seen.map(Timestamp::as_nanos), topics }
    }

    /// Continues with the sequence numbers of a snapshot.
    ///
    /// # Errors
    /// [`SnapshotError::Altered`] for impossible numbers.
    pub(crate) fn restore(&mut self, saved: &SavedNumbers) -> Result<(), SnapshotError> {
        if !saved.topics.iter().all(|(.., numbers)| numbers.is_plausible()) {
            return Err(SnapshotError::Altered);
        }
        self.seen = saved.seen.map(Timestamp::from_nanos);
        for (entry, (last, at, numbers)) in self.entries.iter_mut().zip(&saved.topics) {
            entry.last = last.map(|(publisher, number)| Origin { publisher, number });
            entry.at = *at;
            entry.numbers = numbers.clone();
            entry.numbers.join();
        }
        Ok(())
    }

    /// Takes over the entries of other accounts. `origins` has for each topic its position there; other topics begin
    /// without messages.
    pub(crate) fn inherit(&mut self, before: &mut Accounts, origins: &[Option<usize>]) {
        for (entry, origin) in self.entries.iter_mut().zip(origins) {
            let known = origin.and_then(|at| before.entries.get_mut(at)).map(std::mem::take);
            *entry = known.unwrap_or_default();
        }
        self.seen = before.seen;
        self.is_pending = before.is_pending;
    }

    /// Sequence number expected next from each publisher of a topic.
    pub(crate) fn expected(&self, topic: TopicId) -> Vec<Origin> {
        let Some(entry) = self.entries.get(topic.index()) else { return Vec::new() };
        let mut numbers = entry.numbers.clone();
        if let Some(last) = entry.last {
            numbers.receive_through(last.publisher, last.number.wrapping_sub(1));
        }
        numbers.expected().collect()
    }

    /// Resets the counts; the expected numbers stay known.
    pub(crate) fn begin_lap(&mut self) {
        self.entries.iter_mut().for_each(|entry| entry.account = Account::default());
    }

    /// Returns the accounts, in the order of the topics.
    pub fn all(&self) -> Vec<Account> {
        let account = |entry: &Entry| Account {
            publishers: entry.numbers.publishers() as u64,
            ..entry.account.clone()
        };
        self.entries.iter().map(account).collect()
    }
}

impl Loss {
    /// Combines this loss with a later one.
    fn and(self, later: Loss) -> Loss {
        Loss {
            count: self.count.saturating_add(later.count),
            publisher: self.publisher.filter(|publisher| Some(*publisher) == later.publisher),
            between: (self.between.0, later.between.1),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::time::clock::ManualClock;

    const TOPIC: TopicId = TopicId(0);

    struct Bench {
        accounts: Accounts,
        clock: ManualClock,
        notices: Vec<Notice>,
    }

    impl Bench {
        fn new() -> Bench {
            let clock = ManualClock::default();
            Bench { accounts: Accounts::new(1), clock, notices: Vec::new() }
        }

        fn at(&mut self, seconds: i64, publisher: u64, numbers: impl IntoIterator<Item = u64>) {
            self.clock.set(Timestamp::from_nanos(seconds * 1_000_000_000));
            for number in numbers {
                self.accounts.receive(TOPIC, Some(Origin { publisher, number }), &self.clock);
            }
            self.accounts.pause(&self.clock);
            self.notices.extend(self.accounts.losses());
        }

        fn account(&self) -> Account {
            self.accounts.all().remove(0)
        }
    }

    #[test]
    fn gaps_and_repetitions_are_counted_with_their_times() {
        let mut bench = Bench::new();
        bench.at(1, 7, 100..2_000);
        assert_eq!((bench.account().lost, bench.account().duplicated), (0, 0));
        bench.at(2, 7, 2_010..2_020);
        let account = bench.account();
        assert_eq!((account.received, account.lost, account.duplicated), (1_910, 10, 0));
        let seconds = |s: i64| Timestamp::from_nanos(s * 1_000_000_000);
        assert_eq!(account.lost_between, Some((seconds(1), seconds(2))));
        // Late messages reduce the loss, including those accepted by the fast path.
        bench.at(3, 7, (2_000..2_010).chain([2_019, 1_999]));
        assert_eq!((bench.account().lost, bench.account().duplicated), (0, 2));
        bench.at(9, 7, [2_020, 2_022]);
        assert_eq!(bench.account().lost_between, Some((seconds(1), seconds(9))));
        assert_eq!(bench.notices.iter().map(|notice| notice.kind).collect::<Vec<_>>(), ["lost", "lost"]);
    }

    #[test]
    fn messages_fetched_again_after_a_restart_are_duplicates() {
        let mut bench = Bench::new();
        bench.at(1, 7, 0..2_000);
        let saved = bench.accounts.saved();
        let mut bench = Bench::new();
        bench.accounts.restore(&saved).unwrap();
        bench.at(2, 7, 900..2_010);
        let account = bench.account();
        assert_eq!((account.received, account.lost, account.duplicated), (1_110, 0, 1_100));
    }

    #[test]
    fn publishers_in_turn_lose_nothing() {
        let mut bench = Bench::new();
        for i in 0..1_000 {
            bench.at(i, 1 + i as u64 % 3, [i as u64 / 3]);
        }
        let account = bench.account();
        assert_eq!((account.received, account.lost, account.duplicated), (1_000, 0, 0));
        assert_eq!(account.publishers, 3);
    }

    #[test]
    fn losses_between_two_looks_are_one_notice() {
        let mut bench = Bench::new();
        bench.at(1, 7, (0..=100).map(|i| 2 * i));
        bench.at(2, 7, [201, 203]);
        bench.at(3, 7, [204]);
        let count = |i: usize| bench.notices[i].members[0].1.clone();
        assert_eq!((bench.notices.len(), count(0), count(1)), (2, 100.into(), 1.into()));
        assert_eq!(bench.account().lost, 101);
    }

    #[test]
    fn publishers_beyond_the_limit_are_given_up_and_counted() {
        let mut bench = Bench::new();
        (0..5_000).for_each(|publisher| bench.at(1, publisher, [0]));
        assert_eq!(bench.account().forgotten, 5_000 - 4_096);
    }
}
