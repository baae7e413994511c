//! The section `alignment:` of a deployment.

use rondel_event::TopicId;
use rondel_runtime::alignment::{Alignment, Late, MaxWait, Policy, QUANTILE, TopicAlignment, WaitFor};
use rondel_runtime::{AlignmentClock, Input, TimeSource};

use super::places::{Place, Role};
use super::yaml::{Item, Members, Mistakes, Synonyms};
use super::{Address, addresses};

/// The section `alignment:`.
#[derive(Clone, Debug, PartialEq)]
pub struct AlignmentSection {
    /// The alignment of messages.
    pub alignment: Alignment,
    /// The source of progress markers.
    pub progress: Option<Address>,
    /// The sinks of notices about late, lost and refused messages.
    pub reports: Vec<Address>,
}

impl AlignmentSection {
    /// The section of a deployment that has none.
    pub fn by_default(inputs: &[Input]) -> AlignmentSection {
        AlignmentSection { alignment: Alignment::by_default(inputs), progress: None, reports: Vec::new() }
    }

    /// Combines the settings of all topics with those of each topic.
    pub(super) fn complete(
        section: Option<(AlignmentSection, TopicSettings)>,
        topics: &[TopicSettings],
        inputs: &[Input],
    ) -> AlignmentSection {
        let (mut section, all) = section.unwrap_or_else(|| {
            let mut section = AlignmentSection::by_default(inputs);
            if topics.iter().any(TopicSettings::is_set) {
                section.alignment.policy = Policy::EventTime;
            }
            (section, TopicSettings::default())
        });
        let complete = topics.iter().zip(inputs).map(|(own, input)| own.or(all, input));
        section.alignment.topics = complete.collect();
        section.alignment.notices = !section.reports.is_empty();
        section
    }

    /// A topic whose messages would wait for ever, if there is one.
    pub(super) fn never_certain(&self) -> Option<TopicId> {
        self.alignment.never_certain().filter(|_| self.progress.is_none())
    }
}

/// Names that people write for settings of alignment.
const SYNONYMS: Synonyms = &[
    (
        &["tolerance", "slop", "window"],
        "write `epsilon` with `policy: epsilon`, or `max_interval` with `policy: approximate`",
    ),
    (&["timeout", "wait", "max_delay"], "write `max_wait`"),
    (&["queue_size"], "write `queue`"),
    (&["watermark", "watermarks", "markers"], "write `progress`"),
    (&["order", "mode", "strategy", "synchronizer"], "write `policy`"),
];

/// The alignment settings of a topic, in the section of all topics or of one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TopicSettings {
    max_wait: Option<MaxWait>,
    absent_after: Option<Option<i64>>,
    in_order: Option<bool>,
    lower_bound: Option<i64>,
}

impl TopicSettings {
    /// Reads the settings from a section.
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
                        mistakes.at(
                            item,
                            "`max_wait: estimate P` needs P above 0 and at most 1, such as `estimate 0.999`",
                        );
                        None
                    }
                    None => duration(item, "max_wait", "50 ms", ", `none` or `estimate`", mistakes)
                        .map(MaxWait::Fixed),
                },
                None => None,
            };
        }
        if let Some(item) = members.get("absent_after") {
            settings.absent_after = match item.text("absent_after", mistakes).as_deref() {
                Some("never") => Some(None),
                Some(_) => duration(item, "absent_after", "2 s", " or `never`", mistakes).map(Some),
                None => None,
            };
        }
        settings.in_order = members.get("in_order").and_then(|item| item.boolean("in_order", mistakes));
        settings.lower_bound =
            members.get("lower_bound").and_then(|item| duration(item, "lower_bound", "10 ms", "", mistakes));
        settings
    }

    /// These settings, completed with those of all topics.
    pub(super) fn or(self, other: TopicSettings, input: &Input) -> TopicAlignment {
        let TopicSettings { max_wait, absent_after, in_order, lower_bound } = self;
        let usual = TopicAlignment::new(input);
        // Times of arrival are in order, so the common max_wait does not apply to them.
        let of_all = other.max_wait.filter(|_| input.time != TimeSource::Arrival);
        TopicAlignment {
            max_wait: max_wait.or(of_all).unwrap_or(usual.max_wait),
            absent_after: absent_after.or(other.absent_after).unwrap_or(usual.absent_after),
            in_order: in_order.or(other.in_order).unwrap_or(usual.in_order),
            lower_bound: lower_bound.or(other.lower_bound).unwrap_or(usual.lower_bound),
        }
    }

    /// Whether anything is set.
    pub(super) fn is_set(&self) -> bool {
        self.max_wait.is_some()
            || self.absent_after.is_some()
            || self.in_order.is_some()
            || self.lower_bound.is_some()
    }
}

/// Reads the section, its settings for all topics, and the places on networks that it names.
pub(super) fn alignment<'y>(
    item: Item<'y>,
    mistakes: &mut Mistakes,
) -> (AlignmentSection, TopicSettings, Vec<Place<'y>>) {
    let mut members = item.members("alignment", mistakes);
    let mut places = Vec::new();
    let mut alignment = Alignment::new(policy(item, &mut members, mistakes));
    let (mut progress, mut reports) = (None, Vec::new());
    choices(&mut alignment, &mut members, mistakes);
    if let Some(queue) = members.get("queue").and_then(|item| item.integer("queue", 1..=1 << 30, mistakes)) {
        alignment.queue = queue as usize;
    }
    limits(&mut alignment, &mut members, mistakes);
    if let Some(item) = members.get("progress")
        && let Some(text) = item.text("progress", mistakes)
    {
        match Address::parse_source(&text) {
            Ok(address) => {
                places.push(Place::new(Role::Progress, "`progress` of `alignment`", &address, item));
                progress = Some(address);
            }
            Err(error) => mistakes.at(item, error),
        }
    }
    if let Some(item) = members.get("reports") {
        for (address, item) in addresses("reports", item, Address::parse_sink, mistakes) {
            places.push(Place::new(Role::Reports, "`reports` of `alignment`", &address, item));
            reports.push(address);
        }
    }
    let topics = TopicSettings::read(&mut members, mistakes);
    members.finish(SYNONYMS, mistakes);
    (AlignmentSection { alignment, progress, reports }, topics, places)
}

/// Reads the policy and its own settings, and refuses those of another policy.
fn policy(item: Item<'_>, members: &mut Members<'_>, mistakes: &mut Mistakes) -> Policy {
    let policy = members.get("policy");
    let name = policy.and_then(|item| item.text("policy", mistakes));
    let mut own = |setting: &'static str, of: &str| {
        let item = members.get(setting)?;
        if name.as_deref() != Some(of) {
            mistakes
                .at(item, format!("`{setting}` belongs to `policy: {of}`; write that policy or remove it"));
        }
        Some(item)
    };
    let penalty = own("age_penalty", "approximate");
    let interval = own("max_interval", "approximate");
    let epsilon = own("epsilon", "epsilon");
    match name.as_deref() {
        None | Some("event_time") => Policy::EventTime,
        Some("arrival") => Policy::Arrival,
        Some("exact") => Policy::Exact,
        Some("approximate") => Policy::Approximate {
            age_penalty: penalty.and_then(|item| number(item, "age_penalty", mistakes)).unwrap_or(0.1),
            max_interval: interval.and_then(|item| duration(item, "max_interval", "50 ms", "", mistakes)),
        },
        Some("epsilon") => {
            if epsilon.is_none() {
                mistakes.at(item, "`policy: epsilon` needs `epsilon:`, such as `epsilon: 20 ms`");
            }
            let read = |item| duration(item, "epsilon", "20 ms", "", mistakes);
            Policy::Epsilon(epsilon.and_then(read).unwrap_or(0))
        }
        Some("latest") => Policy::Latest,
        Some(_) => {
            let known = "arrival, event_time, exact, approximate, epsilon or latest";
            mistakes.at(policy.unwrap_or(item), format!("`policy` must be {known}"));
            Policy::EventTime
        }
    }
}

/// Reads the settings that are one of several words.
fn choices(alignment: &mut Alignment, members: &mut Members<'_>, mistakes: &mut Mistakes) {
    const LATE: [&str; 3] = ["late", "drop", "inconclusive"];
    // The former name is accepted for one version.
    let former = members.get_former("tardy");
    if let Some(item) = former {
        mistakes.warn(
            item,
            "`tardy` of `alignment` is now called `late`; the next version accepts only that name",
        );
    }
    if let (Some(item), true) = (former, members.get("late").is_some()) {
        mistakes.at(item, "`tardy` is the former name of `late`: write only `late`");
    }
    let mut choice = |name: &'static str, known: &[&str]| {
        let item = members.get(name).or(former.filter(|_| name == "late"))?;
        let text = item.text(name, mistakes)?;
        let chosen = known.iter().position(|k| *k == text);
        if chosen.is_none() {
            mistakes.at(item, format!("`{name}` must be one of: {}", known.join(", ")));
        }
        chosen
    };
    if let Some(chosen) = choice("clock", &["messages", "system"]) {
        alignment.clock = [AlignmentClock::Messages, AlignmentClock::System][chosen];
    }
    if let Some(chosen) = choice("late", &LATE) {
        alignment.late = [Late::Late, Late::Drop, Late::Inconclusive][chosen];
    }
    if let Some(chosen) = choice("wait_for", &["property", "specification"]) {
        alignment.wait_for = [WaitFor::Property, WaitFor::Specification][chosen];
    }
}

/// Reads how far times may be from the clock.
fn limits(alignment: &mut Alignment, members: &mut Members<'_>, mistakes: &mut Mistakes) {
    let Alignment { ahead, behind, limited, .. } = alignment;
    for (name, limit) in [("ahead", ahead), ("behind", behind)] {
        if let Some(item) = members.get(name) {
            *limited = true;
            *limit = match item.text(name, mistakes).as_deref() {
                Some("never") => None,
                _ => duration(item, name, "10 s", " or `never`", mistakes),
            };
        }
    }
}

/// A number that is not negative.
fn number(item: Item<'_>, what: &str, mistakes: &mut Mistakes) -> Option<f64> {
    let text = item.text(what, mistakes)?;
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
    if number.is_none() {
        mistakes.at(item, format!("`{what}` must be a number that is not negative, such as 0.5"));
    }
    number
}

/// A duration with its unit, in nanoseconds. For messages: the setting, an example, and what else the
/// setting accepts.
pub(super) fn duration(
    item: Item<'_>,
    name: &str,
    example: &str,
    or: &str,
    mistakes: &mut Mistakes,
) -> Option<i64> {
    let text = item.text(name, mistakes)?;
    let parsed = nanoseconds(&text);
    if parsed.is_none() {
        let no_unit =
            if text.parse::<f64>().is_ok() { format!("; {text} has no unit") } else { String::new() };
        mistakes.at(item, format!("`{name}` must be a duration such as {example}{or}{no_unit}"));
    }
    parsed
}

/// Reads `50 ms`, `1.5s` and the like.
pub fn nanoseconds(text: &str) -> Option<i64> {
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
