//! Sets: those of a direct call.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rondel_align::{SetPolicy, SetSettings, Sets};
use rondel_event::{Block, Timestamp, TopicId};
use rondel_runtime::align::{AlignedMonitor, Rule};

use crate::network::{MS, Rough, What, traffic};
use crate::recording::{All, Row, difference, note, replay, write};
use crate::specs::WATCHED;
use rondel_testkit::Random;

fn policy(numbers: &mut Random) -> SetPolicy {
    let queue = numbers.pick(&[0, 1, 4, 10]);
    match numbers.int(5) {
        0 => SetPolicy::Exact { queue },
        1 => SetPolicy::approximate(queue),
        2 => SetPolicy::Approximate {
            queue,
            age_penalty: 0.1,
            max_interval: Some(numbers.int(30 * MS) as u64),
            lower_bounds: Vec::new(),
        },
        3 => SetPolicy::Epsilon { epsilon: numbers.int(20 * MS) as u64, queue },
        _ => SetPolicy::latest(),
    }
}

/// The verdicts about the sets of a network are those about the sets that a direct call makes of what comes.
pub(crate) fn agree(numbers: &mut Random) -> Result<bool, String> {
    let at = Timestamp::from_nanos;
    let watched = &WATCHED[numbers.int(WATCHED.len() as i64) as usize];
    let (division, program) = &watched.joined[numbers.int(watched.joined.len() as i64) as usize];
    let traffic = traffic(numbers, watched.topics, Rough::Lossless);
    let topics = division.topics.len();
    let settings = SetSettings {
        policy: policy(numbers),
        topics,
        absent_after: vec![Some(50 * MS as u64).filter(|_| numbers.one_in(2)); topics],
    };
    let joined = !division.keyed && numbers.one_in(2);
    let rule = || Rule::Sets { sets: Sets::new(settings.clone()), topics: division.topics.clone(), joined };
    let mut monitor = AlignedMonitor::new(program.clone(), rule());
    let cut = numbers.pick(&[0, 1, 5, 40]);
    let every = numbers.one_in(2);
    monitor.monitor_mut().report_every(every);
    let mut direct = Sets::new(settings.clone());
    let mut found = All::new();
    let mut block = Block::new(program.layout());
    let arrivals = traffic.arrivals.iter().enumerate();
    let mut heap: BinaryHeap<_> = arrivals.map(|(i, (comes, _))| Reverse((*comes, i))).collect();
    while let Some(Reverse((now, i))) = heap.pop() {
        while let Some(due) = monitor.deadline().filter(|due| due.as_nanos() <= now) {
            monitor.advance(due);
            if monitor.deadline().is_some_and(|next| next < due) {
                return Err(format!("the deadline goes back from {due:?}"));
            }
            if monitor.deadline() == Some(due) {
                return Err(format!("the deadline {due:?} stays"));
            }
        }
        match traffic.arrivals[i].1 {
            What::Message(i) => {
                let message = &traffic.messages[i];
                let topic = TopicId(message.topic as u32);
                block.clear();
                let row = block.push(topic, at(message.stamp));
                write(&mut block, row, program, message, false);
                monitor.push(&block, row, topic, None, at(now));
                direct.push(topic, at(message.stamp), at(now), i);
            }
            What::Marker(topic, marker) => monitor.mark(TopicId(topic as u32), &marker, at(now)),
        }
        if !numbers.one_in(3) {
            monitor.run(&mut |_, monitor| note(&division.spec, monitor, &mut found));
        }
        if cut > 0 && numbers.one_in(cut) {
            let bytes = monitor.snapshot();
            monitor = AlignedMonitor::restore(program.clone(), rule(), &bytes).unwrap();
            monitor.monitor_mut().report_every(every);
        }
    }
    monitor.end(&mut |_, monitor| note(&division.spec, monitor, &mut found));
    direct.flush();
    let mut rows = Vec::new();
    let mut set = Vec::new();
    while let Some(of) = direct.pop(&mut set) {
        let time = of.time.as_nanos();
        let messages: Vec<_> = set.iter().map(|(_, i)| &traffic.messages[*i]).collect();
        if joined {
            rows.push(Row { time, messages, forgotten: false });
        } else {
            rows.extend(messages.iter().map(|m| Row { time, messages: vec![*m], forgotten: false }));
        }
    }
    let expected = replay(&division.spec, program, &rows, &[], None, every);
    let Rule::Sets { sets, .. } = monitor.rule() else { return Err("no sets".to_owned()) };
    let described = || format!("\n{settings:?}, joined: {joined}\n{:#?}", traffic.lines);
    for (topic, counts) in sets.statistics().topics.iter().enumerate() {
        if counts.received != counts.used + counts.unused() || counts.waiting() != 0 {
            return Err(format!("topic {topic} does not add up: {counts:?}{}", described()));
        }
    }
    match difference(program, &found, &expected) {
        None => Ok(!rows.is_empty()),
        Some(difference) => Err(format!("{difference}{}", described())),
    }
}
