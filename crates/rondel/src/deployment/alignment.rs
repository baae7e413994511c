//! How messages of several topics are put in order, as a deployment says it.

use rondel_align::{
    self as align, Order, OrderPolicy, OrderSettings, SetPolicy, SetSettings, Sets, TopicOrder,
};
use rondel_event::TopicId;
use rondel_runtime::align::Rule;

use super::Address;
use super::yaml::{Item, Members, Mistakes};
use super::{Binding, TimeOfEvent};

/// The section `alignment:`.
#[derive(Clone, Debug, PartialEq)]
pub struct Alignment {
    /// What is waited for.
    pub policy: Policy,
    /// Which time it is, for what waits.
    pub clock: AlignmentClock,
    /// What becomes of messages that come too late.
    pub tardy: Tardy,
    /// How many messages may wait.
    pub queue: usize,
    /// How far a time may be ahead of the clock, in nanoseconds.
    pub ahead: Option<i64>,
    /// How far a time may be behind the clock, in nanoseconds.
    pub behind: Option<i64>,
    /// Whether properties wait for the topics that they read, or all for all.
    pub wait_for: WaitFor,
    /// Where publishers say how far they are.
    pub progress: Option<Address>,
    /// Where is reported what was late, lost or refused.
    pub reports: Vec<Address>,
    /// What is special for each topic, in the order of the topics.
    pub topics: Vec<TopicAlignment>,
}

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Policy {
    /// Nothing.
    Arrival,
    /// Everything earlier.
    EventTime,
    /// One message of every topic with equal times.
    Exact,
    /// The best matching messages.
    Approximate {
        /// How much older sets are preferred to better ones.
        age_penalty: f64,
        /// How far apart the times of a set may be, in nanoseconds.
        max_interval: Option<i64>,
    },
    /// Messages no further apart than this, in nanoseconds.
    Epsilon(i64),
    /// The last of each.
    Latest,
}

impl Policy {
    /// Whether it makes sets, with a message of every topic.
    pub fn makes_sets(self) -> bool {
        !matches!(self, Policy::Arrival | Policy::EventTime)
    }
}

/// Which time it is, for what waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlignmentClock {
    /// The latest time of a message, and what has passed since it came.
    Messages,
    /// The clock of this machine.
    System,
}

/// What becomes of messages that come too late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tardy {
    /// They are not checked.
    Drop,
    /// They are checked as if they had come now.
    Late,
    /// What they say is unknown until the next message of the topic.
    Inconclusive,
}

/// Whom properties wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitFor {
    /// For the topics that they read.
    Property,
    /// For all topics of the specification.
    Specification,
}

/// How one topic is waited for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TopicAlignment {
    /// How long at most.
    pub max_wait: MaxWait,
    /// After how long without a message it is reported and no longer waited for, in nanoseconds.
    pub absent_after: Option<i64>,
    /// Whether its messages come in the order of their times.
    pub in_order: bool,
    /// The least time between two of its messages, in nanoseconds.
    pub lower_bound: i64,
}

/// How long a topic is waited for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MaxWait {
    /// Until it is known that nothing earlier comes, or the topic is absent.
    Unlimited,
    /// So many nanoseconds.
    Fixed(i64),
    /// As long as this part of its messages has needed so far.
    Estimated(f64),
}

/// How long topics are waited for where nothing is said, in nanoseconds.
pub const MAX_WAIT: i64 = 100_000_000;
/// After how long without a message a topic is absent where nothing is said, in nanoseconds.
pub const ABSENT_AFTER: i64 = 2_000_000_000;
/// How far a time may be from the clock where nothing is said, in nanoseconds.
const FAR: i64 = 3_600_000_000_000;
/// How many messages may wait where nothing is said.
const QUEUE: usize = 100_000;
/// The part of the messages that an estimate covers where nothing is said.
const QUANTILE: f64 = 0.999;

impl Alignment {
    /// With this policy, nothing else being said.
    pub fn new(policy: Policy) -> Alignment {
        Alignment {
            policy,
            clock: AlignmentClock::Messages,
            tardy: Tardy::Late,
            queue: QUEUE,
            ahead: Some(FAR),
            behind: Some(FAR),
            wait_for: WaitFor::Property,
            progress: None,
            reports: Vec::new(),
            topics: Vec::new(),
        }
    }

    /// What holds for topics that are read so, where a deployment says nothing of alignment: messages of several topics
    /// that all have times of their own are put in the order of these.
    pub fn by_default(bindings: &[Binding]) -> Alignment {
        Alignment::complete(None, &vec![TopicSettings::default(); bindings.len()], bindings)
    }

    /// What was said of all topics, together with what was said of each.
    pub(super) fn complete(
        said: Option<(Alignment, TopicSettings)>,
        topics: &[TopicSettings],
        bindings: &[Binding],
    ) -> Alignment {
        let (mut alignment, all) = said.unwrap_or_else(|| {
            // A time of arrival need not be on the clock of the others.
            let have_times = bindings.iter().all(|binding| binding.time != TimeOfEvent::Arrival);
            let is_said = topics.iter().any(TopicSettings::is_said);
            let matters = have_times && bindings.len() > 1 || is_said;
            let policy = if matters { Policy::EventTime } else { Policy::Arrival };
            (Alignment::new(policy), TopicSettings::default())
        });
        let complete = topics.iter().zip(bindings).map(|(own, binding)| own.or(all, binding));
        alignment.topics = complete.collect();
        alignment
    }

    /// A topic of which it is never known that nothing earlier comes, if there is one.
    pub(super) fn never_certain(&self) -> Option<TopicId> {
        if self.policy != Policy::EventTime || self.progress.is_some() {
            return None;
        }
        let never = |topic: &TopicAlignment| !topic.in_order && topic.max_wait == MaxWait::Unlimited;
        self.topics.iter().position(never).map(|topic| TopicId(topic as u32))
    }

    /// Whether anything has to be done: not where messages are checked as they come.
    pub fn is_needed(&self) -> bool {
        self.policy != Policy::Arrival || !self.reports.is_empty()
    }

    /// How events of these topics are put in order. Where the policy makes sets, a property for each key sees the
    /// messages of a set one by one.
    pub fn rule(&self, topics: &[TopicId], keyed: bool) -> Rule {
        match self.set_settings(topics) {
            Some(settings) => {
                Rule::Sets { sets: self.sets(settings), topics: topics.to_vec(), joined: !keyed }
            }
            None => Rule::Order(Order::new(self.order_settings(topics))),
        }
    }

    /// What makes sets by these settings.
    pub fn sets<T: Clone>(&self, settings: SetSettings) -> Sets<T> {
        Sets::new(settings).with_limits(self.ahead.map(i64::unsigned_abs), self.behind.map(i64::unsigned_abs))
    }

    /// The settings of an order of single messages of these topics.
    pub fn order_settings(&self, topics: &[TopicId]) -> OrderSettings {
        let topic = |(i, own): (u32, &TopicAlignment)| TopicOrder {
            max_wait: match own.max_wait {
                MaxWait::Unlimited => align::MaxWait::None,
                MaxWait::Fixed(nanos) => align::MaxWait::Fixed(nanos.unsigned_abs()),
                MaxWait::Estimated(quantile) => {
                    align::MaxWait::Estimated { quantile, at_most: ABSENT_AFTER.unsigned_abs() }
                }
            },
            absent_after: own.absent_after.map(i64::unsigned_abs),
            fifo: own.in_order,
            in_play: topics.contains(&TopicId(i)),
        };
        OrderSettings {
            policy: match self.policy {
                Policy::Arrival => OrderPolicy::Arrival,
                _ => OrderPolicy::EventTime,
            },
            topics: (0..).zip(&self.topics).map(topic).collect(),
            queue: self.queue,
            ahead: self.ahead.map(i64::unsigned_abs),
            behind: self.behind.map(i64::unsigned_abs),
            tardy: match self.tardy {
                Tardy::Drop => align::Tardy::Drop,
                Tardy::Late => align::Tardy::Late,
                Tardy::Inconclusive => align::Tardy::Inconclusive,
            },
        }
    }

    /// The settings of sets of messages of these topics, if the policy makes sets.
    pub fn set_settings(&self, topics: &[TopicId]) -> Option<SetSettings> {
        let time = i64::unsigned_abs;
        let own = || topics.iter().filter_map(|topic| self.topics.get(topic.index()));
        let queue = self.queue;
        let policy = match self.policy {
            Policy::Arrival | Policy::EventTime => return None,
            Policy::Exact => SetPolicy::Exact { queue },
            Policy::Approximate { age_penalty, max_interval } => SetPolicy::Approximate {
                queue,
                age_penalty,
                max_interval: max_interval.map(time),
                lower_bounds: own().map(|topic| time(topic.lower_bound)).collect(),
            },
            Policy::Epsilon(epsilon) => SetPolicy::Epsilon { epsilon: time(epsilon), queue },
            Policy::Latest => SetPolicy::latest(),
        };
        let absent_after = own().map(|topic| topic.absent_after.map(time)).collect();
        Some(SetSettings { policy, topics: topics.len(), absent_after })
    }
}

/// The settings of a topic that are about alignment, in the section of all topics or of one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TopicSettings {
    max_wait: Option<MaxWait>,
    absent_after: Option<Option<i64>>,
    in_order: Option<bool>,
    lower_bound: Option<i64>,
}

impl TopicSettings {
    /// Reads them where they may stand.
    pub(super) fn read(members: &mut Members<'_>, mistakes: &mut Mistakes) -> TopicSettings {
        let mut settings = TopicSettings::default();
        if let Some(item) = members.get("max_wait") {
            settings.max_wait = match item.text("max_wait", mistakes).as_deref() {
                Some("estimate") => Some(MaxWait::Estimated(QUANTILE)),
                Some("none") => Some(MaxWait::Unlimited),
                Some(text) => match text.strip_prefix("estimate ").map(|p| p.trim().parse::<f64>()) {
                    Some(Ok(quantile)) if quantile > 0.0 && quantile <= 1.0 => {
                        Some(MaxWait::Estimated(quantile))
                    }
                    Some(_) => {
                        mistakes.at(item, "what an estimate covers is from 0 to 1, such as `estimate 0.999`");
                        None
                    }
                    None => duration(
                        item,
                        "max_wait must be a time such as 50 ms, `none`, or `estimate`",
                        mistakes,
                    )
                    .map(MaxWait::Fixed),
                },
                None => None,
            };
        }
        if let Some(item) = members.get("absent_after") {
            settings.absent_after = match item.text("absent_after", mistakes).as_deref() {
                Some("never") => Some(None),
                Some(_) => {
                    duration(item, "absent_after must be a time such as 2 s, or `never`", mistakes).map(Some)
                }
                None => None,
            };
        }
        settings.in_order = members.get("in_order").and_then(|item| item.boolean("in_order", mistakes));
        settings.lower_bound = members
            .get("lower_bound")
            .and_then(|item| duration(item, "lower_bound must be a time such as 10 ms", mistakes));
        settings
    }

    /// These settings, and where they are silent those of all topics.
    pub(super) fn or(self, other: TopicSettings, binding: &Binding) -> TopicAlignment {
        let TopicSettings { max_wait, absent_after, in_order, lower_bound } = self;
        // A time of arrival is that of the clock: nothing can come with an earlier one.
        let arrives = binding.time == TimeOfEvent::Arrival;
        let usual = MaxWait::Fixed(if arrives { 0 } else { MAX_WAIT });
        TopicAlignment {
            max_wait: max_wait.or(other.max_wait.filter(|_| !arrives)).unwrap_or(usual),
            absent_after: absent_after.or(other.absent_after).unwrap_or(Some(ABSENT_AFTER)),
            in_order: in_order.or(other.in_order).unwrap_or(true),
            lower_bound: lower_bound.or(other.lower_bound).unwrap_or(0),
        }
    }

    /// Whether anything is said.
    pub(super) fn is_said(&self) -> bool {
        self.max_wait.is_some()
            || self.absent_after.is_some()
            || self.in_order.is_some()
            || self.lower_bound.is_some()
    }
}

/// Reads the section, but for what is special for single topics; and what it says of all topics.
pub(super) fn alignment(item: Item<'_>, mistakes: &mut Mistakes) -> (Alignment, TopicSettings) {
    let mut members = item.members("alignment", mistakes);
    let policy = members.get("policy");
    let name = policy.and_then(|item| item.text("policy", mistakes));
    let mut own = |setting: &'static str, of: &str| {
        let item = members.get(setting)?;
        if name.as_deref() != Some(of) {
            mistakes.at(item, format!("{setting} is a setting of the policy {of}"));
        }
        Some(item)
    };
    let penalty = own("age_penalty", "approximate");
    let interval = own("max_interval", "approximate");
    let epsilon = own("epsilon", "epsilon");
    let policy = match name.as_deref() {
        None | Some("event_time") => Policy::EventTime,
        Some("arrival") => Policy::Arrival,
        Some("exact") => Policy::Exact,
        Some("approximate") => Policy::Approximate {
            age_penalty: penalty.and_then(|item| number(item, "age_penalty", mistakes)).unwrap_or(0.1),
            max_interval: interval
                .and_then(|item| duration(item, "max_interval must be a time such as 50 ms", mistakes)),
        },
        Some("epsilon") => {
            if epsilon.is_none() {
                mistakes.at(item, "the policy epsilon needs `epsilon:`, such as 20 ms");
            }
            let read = |item| duration(item, "epsilon must be a time such as 20 ms", mistakes);
            Policy::Epsilon(epsilon.and_then(read).unwrap_or(0))
        }
        Some("latest") => Policy::Latest,
        Some(_) => {
            let known = "arrival, event_time, exact, approximate, epsilon or latest";
            mistakes.at(policy.unwrap_or(item), format!("policy must be {known}"));
            Policy::EventTime
        }
    };
    let mut alignment = Alignment::new(policy);
    let mut choice = |name: &'static str, known: &[&str]| {
        let item = members.get(name)?;
        let text = item.text(name, mistakes)?;
        let chosen = known.iter().position(|k| *k == text);
        if chosen.is_none() {
            mistakes.at(item, format!("{name} must be one of: {}", known.join(", ")));
        }
        chosen
    };
    if let Some(chosen) = choice("clock", &["messages", "system"]) {
        alignment.clock = [AlignmentClock::Messages, AlignmentClock::System][chosen];
    }
    if let Some(chosen) = choice("tardy", &["late", "drop", "inconclusive"]) {
        alignment.tardy = [Tardy::Late, Tardy::Drop, Tardy::Inconclusive][chosen];
    }
    if let Some(chosen) = choice("wait_for", &["property", "specification"]) {
        alignment.wait_for = [WaitFor::Property, WaitFor::Specification][chosen];
    }
    if let Some(queue) = members.get("queue").and_then(|item| item.integer("queue", 1..=1 << 30, mistakes)) {
        alignment.queue = queue as usize;
    }
    for (name, limit) in [("ahead", &mut alignment.ahead), ("behind", &mut alignment.behind)] {
        if let Some(item) = members.get(name) {
            *limit = match item.text(name, mistakes).as_deref() {
                Some("never") => None,
                _ => duration(item, &format!("{name} must be a time such as 10 s, or `never`"), mistakes),
            };
        }
    }
    if let Some(item) = members.get("progress")
        && let Some(text) = item.text("progress", mistakes)
    {
        match Address::parse_source(&text) {
            Ok(address) => alignment.progress = Some(address),
            Err(error) => mistakes.at(item, error),
        }
    }
    if let Some(item) = members.get("reports") {
        alignment.reports = super::addresses(item, mistakes);
    }
    let topics = TopicSettings::read(&mut members, mistakes);
    members.finish(mistakes);
    (alignment, topics)
}

fn number(item: Item<'_>, what: &str, mistakes: &mut Mistakes) -> Option<f64> {
    let text = item.text(what, mistakes)?;
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
    if number.is_none() {
        mistakes.at(item, format!("{what} must be a number that is not negative"));
    }
    number
}

/// A time with its unit, in nanoseconds.
fn duration(item: Item<'_>, wrong: &str, mistakes: &mut Mistakes) -> Option<i64> {
    let text = item.text("a time", mistakes)?;
    let parsed = nanoseconds(&text);
    if parsed.is_none() {
        mistakes.at(item, wrong);
    }
    parsed
}

/// Reads `50 ms`, `1.5s` and the like.
fn nanoseconds(text: &str) -> Option<i64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let factor = match unit.trim() {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "min" => 6e10,
        "h" => 3.6e12,
        _ => return None,
    };
    let nanos = number.parse::<f64>().ok()? * factor;
    // Longer than a century is a mistake.
    (nanos < 3e18).then_some(nanos.round() as i64)
}

#[cfg(test)]
mod tests {
    use super::nanoseconds;

    #[test]
    fn times_have_units() {
        assert_eq!(nanoseconds("50 ms"), Some(50_000_000));
        assert_eq!(nanoseconds("1.5s"), Some(1_500_000_000));
        assert_eq!(nanoseconds("0 us"), Some(0));
        assert_eq!(nanoseconds("2min"), Some(120_000_000_000));
        for wrong in ["", "5", "ms", "-1 s", "1 m", "1.2.3 s", "1e9 h", "9999999999 h"] {
            assert_eq!(nanoseconds(wrong), None, "{wrong}");
        }
    }
}
