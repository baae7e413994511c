//! Random messages, of which a monitor misses some.

use std::ops::Range;

use rondel_engine::{Program, SeenAgain};
use rondel_event::{Block, Slot, Timestamp, TopicId};

use rondel_testkit::Random;

pub(crate) const MS: i64 = 1_000_000;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Message {
    pub(crate) topic: usize,
    pub(crate) time: i64,
    x: Option<f64>,
    ok: Option<bool>,
    k: Option<i64>,
}

/// A notice to a monitor about missed messages.
#[derive(Clone, Debug)]
pub(crate) enum Notice {
    Miss(Vec<TopicId>, i64, SeenAgain, Option<i64>),
    See(Vec<TopicId>, SeenAgain),
}

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Message { message: Message, number: usize, time: i64, is_forgotten: bool },
    Notice(Notice),
}

/// Messages in order of their times.
pub(crate) fn messages(numbers: &mut Random, topics: usize) -> Vec<Message> {
    let mut time = 0;
    let count = 20 + numbers.int(100);
    let pace = numbers.pick(&[1, 3, 8]);
    let one = |_| {
        if !numbers.one_in(8) {
            time += (1 + numbers.int(2 * pace)) * MS;
        }
        Message {
            topic: numbers.int(topics as i64) as usize,
            time,
            x: (!numbers.one_in(8)).then(|| numbers.int(5) as f64),
            ok: (!numbers.one_in(6)).then(|| numbers.one_in(2)),
            k: (!numbers.one_in(10)).then(|| numbers.int(3)),
        }
    };
    (0..count).map(one).collect()
}

/// The steps of a monitor that misses messages, and the ranges of steps between a missed message and its
/// notice.
pub(crate) fn blind(numbers: &mut Random, all: &[Message], topics: usize) -> (Vec<Step>, Vec<Range<usize>>) {
    let mut steps: Vec<Step> = Vec::new();
    let mut hidden: Vec<Range<usize>> = Vec::new();
    // Later notices: when, the first step with a missed message, and the message that arrives late.
    let mut late: Vec<(usize, usize, usize, bool)> = Vec::new();
    // Per topic, time of the last received message, and the step since which messages were lost.
    let mut last = vec![(i64::MIN / 4, None::<usize>); topics];
    let mut outage: Option<(usize, Vec<usize>)> = None;
    let rate = numbers.pick(&[6, 20, 60]);
    for (number, message) in all.iter().enumerate() {
        late.retain(|&(when, since, of, is_forgotten)| {
            if when > number {
                return true;
            }
            // Between two messages: events of the same time are time points of their own, on any topic.
            let before = all[number - 1].time;
            let is_forgotten = is_forgotten && message.time - before > 1;
            let now = if is_forgotten { before + (message.time - before) / 2 } else { message.time };
            let at = Timestamp::from_nanos;
            let (topic, stamp) = (TopicId(all[of].topic as u32), all[of].time);
            let until = if is_forgotten { SeenAgain::After(at(now)) } else { SeenAgain::Now(at(stamp)) };
            hidden.push(since..steps.len());
            steps.push(Step::Notice(Notice::Miss(vec![topic], stamp, until, Some(now))));
            if is_forgotten {
                steps.push(Step::Message { message: all[of], number: usize::MAX, time: now, is_forgotten });
            }
            false
        });
        // An outage ends, and another begins.
        if let Some((_, of)) = outage.clone().filter(|(ends, _)| *ends <= number) {
            let of = of.iter().map(|topic| TopicId(*topic as u32)).collect();
            let seen = Timestamp::from_nanos(message.time);
            let missed = Timestamp::from_nanos(message.time + numbers.int(8) * MS);
            let again =
                if numbers.one_in(2) { SeenAgain::Now(seen) } else { SeenAgain::Since { seen, missed } };
            steps.push(Step::Notice(Notice::See(of, again)));
            outage = None;
        }
        if outage.is_none() && numbers.one_in(5 * rate) {
            let of: Vec<usize> = (0..topics).filter(|_| numbers.one_in(2)).collect();
            let missed = of.iter().map(|topic| TopicId(*topic as u32)).collect();
            let now = Some(message.time).filter(|_| numbers.one_in(2));
            steps.push(Step::Notice(Notice::Miss(missed, message.time, SeenAgain::Open, now)));
            outage = Some((number + 1 + numbers.int(15) as usize, of));
        }
        if outage.as_ref().is_some_and(|(_, of)| of.contains(&message.topic)) {
            continue;
        }
        let (seen, lost) = last[message.topic];
        if numbers.one_in(rate) {
            match numbers.int(3) {
                0 => {
                    last[message.topic] = (seen, lost.or(Some(steps.len())));
                    continue;
                }
                kind => {
                    let when = number + 1 + numbers.int(8) as usize;
                    late.push((when, steps.len(), number, kind == 1));
                    continue;
                }
            }
        }
        if let Some(since) = lost {
            hidden.push(since..steps.len());
            let now = Timestamp::from_nanos(message.time);
            let until = if numbers.one_in(2) { SeenAgain::Now(now) } else { SeenAgain::At(now) };
            steps.push(Step::Notice(Notice::Miss(vec![TopicId(message.topic as u32)], seen, until, None)));
        }
        last[message.topic] = (message.time, None);
        steps.push(Step::Message { message: *message, number, time: message.time, is_forgotten: false });
    }
    hidden.extend(late.iter().map(|(_, since, ..)| *since..usize::MAX));
    hidden.extend(last.iter().filter_map(|(_, lost)| Some((*lost)?..usize::MAX)));
    (steps, hidden)
}

/// Writes the fields of a message.
pub(crate) fn write(block: &mut Block, row: usize, program: &Program, message: &Message, is_forgotten: bool) {
    for field in &program.projections()[message.topic].fields {
        let path = field.path.to_string();
        let carries = [("x", true), ("ok", message.ok.is_some()), ("k", message.k.is_some())];
        if is_forgotten {
            if carries.contains(&(path.as_str(), true)) {
                block.set_invalid(field.slot, row);
            }
            continue;
        }
        match (path.as_str(), field.slot) {
            ("x", Slot::Float(i)) => match message.x {
                Some(x) => block.set_float(i, row, x),
                None => block.set_invalid(field.slot, row),
            },
            ("ok", Slot::Bool(i)) => message.ok.into_iter().for_each(|ok| block.set_bool(i, row, ok)),
            ("k", Slot::Int(i)) => message.k.into_iter().for_each(|k| block.set_int(i, row, k)),
            (_, Slot::Bool(i)) => block.set_bool(i, row, true),
            (path, slot) => panic!("{path} in {slot:?}"),
        }
    }
}
