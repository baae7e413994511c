//! Time lines: one line per topic, one column per second, a letter for an item.
//!
//! Items arrive in the order of their columns, those of one column from top to bottom. The stamp is the
//! column, unless `stamps` sets another one. Expected are the sets, each with the column at which it is
//! emitted (`end`: at the end of the input), and the unused items.

use std::collections::HashMap;

use rondel_align::{SetNotice, SetPolicy, SetSettings, Sets};
use rondel_event::{Timestamp, TopicId};

const SECOND: i64 = 1_000_000_000;
const S: u64 = SECOND as u64;

struct Picture {
    policy: SetPolicy,
    lines: &'static [&'static str],
    /// Letters whose stamp is not their column.
    stamps: &'static [(char, i64)],
    sets: &'static str,
    unused: &'static str,
}

fn approximate(queue: usize) -> SetPolicy {
    SetPolicy::approximate(queue)
}

fn bounded(bounds: &[u64]) -> SetPolicy {
    let lower_bounds = bounds.to_vec();
    SetPolicy::Approximate { queue: 10, age_penalty: 0.1, max_interval: None, lower_bounds }
}

fn within(max_interval: u64) -> SetPolicy {
    SetPolicy::Approximate {
        queue: 10,
        age_penalty: 0.1,
        max_interval: Some(max_interval),
        lower_bounds: Vec::new(),
    }
}

fn epsilon(epsilon: u64, queue: usize) -> SetPolicy {
    SetPolicy::Epsilon { epsilon, queue }
}

const PLAIN: Picture =
    Picture { policy: SetPolicy::Exact { queue: 0 }, lines: &[], stamps: &[], sets: "", unused: "" };

/// Returns the sets and the unused items in the notation of the pictures.
fn draw(picture: &Picture) -> (String, String) {
    let topics = picture.lines.len();
    let settings = SetSettings { policy: picture.policy.clone(), topics, absent_after: Vec::new() };
    let mut sets = Sets::new(settings);
    let (mut given, mut unused) = (Vec::new(), Vec::new());
    let mut names: HashMap<(usize, i64), Vec<char>> = HashMap::new();
    let width = picture.lines.iter().map(|line| line.len()).max().unwrap();
    for column in 0..=width {
        for (topic, line) in picture.lines.iter().enumerate() {
            let Some(letter) = line.chars().nth(column).filter(char::is_ascii_alphanumeric) else { continue };
            let stamp = picture.stamps.iter().find(|(l, _)| *l == letter);
            let time = stamp.map_or(column as i64, |(_, stamp)| *stamp) * SECOND;
            names.entry((topic, time)).or_default().push(letter);
            let now = Timestamp::from_nanos(column as i64 * SECOND);
            sets.push(TopicId(topic as u32), Timestamp::from_nanos(time), now, letter);
        }
        if column == width {
            sets.flush();
        }
        let mut items = Vec::new();
        while sets.pop(&mut items).is_some() {
            for (topic, (time, item)) in items.iter().enumerate() {
                names.entry((topic, time.as_nanos())).or_default().retain(|letter| letter != item);
            }
            let when = if column == width { "end".to_owned() } else { column.to_string() };
            given.push(format!("{when} {}", items.iter().map(|&(_, item)| item).collect::<String>()));
        }
        for notice in sets.notices() {
            if let SetNotice::Unused { topic, time, why } = notice {
                // Items of equal stamps leave in order of arrival.
                let letter = names.entry((topic.index(), time.as_nanos())).or_default().remove(0);
                unused.push(format!("{letter} {}", why.name()));
            }
        }
    }
    let reasons = sets.statistics().topics.iter().map(|topic| topic.unused()).sum::<u64>();
    assert_eq!(reasons, unused.len() as u64);
    (given.join(", "), unused.join(", "))
}

fn check(pictures: &[Picture]) {
    for picture in pictures {
        let (sets, unused) = draw(picture);
        let lines = picture.lines.join("\n");
        let what = format!("{:?}\n{lines}\n{:?}", picture.policy, picture.stamps);
        assert_eq!(sets, picture.sets, "{what}");
        assert_eq!(unused, picture.unused, "{what}");
    }
}

#[test]
fn closest_sets() {
    check(&[
        // Exact match.
        Picture {
            policy: approximate(10),
            lines: &[
                "a..b..c", //
                "A..B..C",
            ],
            sets: "0 aA, 3 bB, 6 cC",
            ..PLAIN
        },
        // Perfect match: each set waits for the next item, which might have been closer.
        Picture {
            policy: approximate(10),
            lines: &[
                "a..b..c.", //
                ".A..B..C",
            ],
            sets: "3 aA, 6 bB, end cC",
            ..PLAIN
        },
        // Imperfect match.
        Picture {
            policy: approximate(10),
            lines: &[
                "a.xb..c.", //
                ".A...B.C",
            ],
            sets: "2 aA, 6 cB",
            unused: "x worse, b worse, C end",
            ..PLAIN
        },
        // Acceleration: a later item is a better match.
        Picture {
            policy: approximate(10),
            lines: &[
                "a...........b....c.", //
                ".......A.......B..C",
            ],
            sets: "12 bA, 18 cC",
            unused: "a worse, B worse",
            ..PLAIN
        },
    ]);
}

#[test]
fn lost_items() {
    check(&[
        // A queue of one item is too short.
        Picture {
            policy: approximate(1),
            lines: &[
                "a...b...c.d..e.", //
                ".A.B...C...D..E",
            ],
            sets: "7 bB, 13 dD, end eE",
            unused: "A queue_full, a after_loss, c queue_full, C after_loss",
            ..PLAIN
        },
        // A queue of two items is sufficient.
        Picture {
            policy: approximate(2),
            lines: &[
                "a...b...c.d..e.", //
                ".A.B...C...D..E",
            ],
            sets: "4 aA, 7 bB, 11 cC, 13 dD, end eE",
            ..PLAIN
        },
        // A long queue, with one topic much slower than the other.
        Picture {
            policy: approximate(5),
            lines: &[
                "abcdefghi..klmn.p", //
                ".........j.....o.",
            ],
            stamps: &[('j', 3), ('k', 9), ('l', 10), ('m', 11), ('n', 12), ('o', 10), ('p', 13)],
            sets: "15 lo",
            unused: "a queue_full, b queue_full, c queue_full, d queue_full, j after_loss, \
                     e queue_full, f queue_full, g queue_full, h queue_full, i worse, k worse, \
                     m end, n end, p end",
        },
        // The topic ahead has dropped an item that may have matched A: no set contains A.
        Picture {
            policy: approximate(3),
            lines: &[
                "abcdef....g.", //
                "......A..B..",
            ],
            stamps: &[('A', 1)],
            sets: "10 gB",
            unused: "a queue_full, b queue_full, c queue_full, A after_loss, d worse, e worse, f worse",
        },
        // Dropping an item during a search discards the candidate.
        Picture {
            policy: approximate(3),
            lines: &[
                "a...........", //
                ".A..........",
                "..1234......",
            ],
            sets: "",
            unused: "1 queue_full, a after_loss, A end, 2 end, 3 end, 4 end",
            ..PLAIN
        },
    ]);
}

#[test]
fn many_at_once() {
    check(&[
        // One item completes two sets.
        Picture {
            policy: approximate(10),
            lines: &[
                "a...b", //
                ".A.B.",
            ],
            stamps: &[('b', 3)],
            sets: "4 aA, 4 bB",
            ..PLAIN
        },
        Picture {
            policy: approximate(10),
            lines: &[
                "a....e..i...mn.", //
                ".b....g..j....o",
                "..c...h...k....",
                "...d.f.....l...",
            ],
            stamps: &[('m', 10)],
            sets: "6 abcd, 8 eghf, 14 mjkl",
            unused: "i worse, n end, o end",
        },
        // Equal stamps on a topic: the first item is equally close and older.
        Picture {
            policy: approximate(10),
            lines: &[
                "abc.d.e", //
                "..A.B.C",
            ],
            stamps: &[('a', 2), ('b', 2), ('c', 2)],
            sets: "2 aA, 4 dB, 6 eC",
            unused: "b worse, c worse",
        },
        // A stamp of zero is valid. After a step back (here a restarted clock) items find no match until the
        // queues have dropped the earlier items.
        Picture {
            policy: approximate(3),
            lines: &[
                "a.bcdefgh..", //
                ".ABCDEFGH.I",
            ],
            stamps: &[
                ('a', 90),
                ('A', 91),
                ('b', 0),
                ('B', 0),
                ('c', 1),
                ('C', 1),
                ('d', 2),
                ('D', 2),
                ('e', 3),
                ('E', 3),
                ('f', 4),
                ('F', 4),
                ('g', 5),
                ('G', 5),
                ('h', 6),
                ('H', 6),
                ('I', 8),
            ],
            sets: "4 dD, 5 eE, 6 fF, 7 gG, 8 hH",
            unused: "a queue_full, b worse, c worse, A queue_full, B worse, C worse, I end",
        },
    ]);
}

#[test]
fn nine_topics() {
    check(&[Picture {
        policy: approximate(10),
        lines: &[
            "a.......j.......s.",
            ".b.......k.......t",
            "..c....l........u.",
            "...d....m.......v.",
            "....e....n......w.",
            "...f....o...x.....",
            "..g..p..y.........",
            ".h......q........z",
            "i.......r.......A.",
        ],
        sets: "8 abcdefghi, 16 jklmnoyqr",
        unused: "p worse, s end, t end, u end, v end, w end, x end, z end, A end",
        ..PLAIN
    }]);
}

/// Fifty topics with an item every 100 s, each a second after the previous topic.
#[test]
fn fifty_topics() {
    for bound in [0, 99 * S] {
        let lower_bounds = vec![bound; 50];
        let policy = SetPolicy::Approximate { queue: 2, age_penalty: 0.1, max_interval: None, lower_bounds };
        let mut sets = Sets::new(SetSettings { policy, topics: 50, absent_after: Vec::new() });
        let mut given = Vec::new();
        let mut items = Vec::new();
        for round in 0..10 {
            for topic in 0..50 {
                let time = Timestamp::from_nanos((round * 100 + i64::from(topic)) * SECOND);
                sets.push(TopicId(topic), time, time, round);
                while sets.pop(&mut items).is_some() {
                    assert!(items.iter().all(|&(_, item)| item == items[0].1));
                    given.push((round, topic, items[0].1));
                }
            }
        }
        let expected: Vec<_> = match bound {
            // The first item of the next round completes the set.
            0 => (1..10).map(|round| (round, 0, round - 1)).collect(),
            _ => (0..10).map(|round| (round, 49, round)).collect(),
        };
        assert_eq!(given, expected);
        assert_eq!(sets.notices().count(), 0);
    }
}

#[test]
fn early_sets() {
    check(&[
        // All topics but the first are too far from e for a better set than abcd.
        Picture {
            policy: approximate(10),
            lines: &[
                "a......e", //
                ".b......", "..c.....", "...d....",
            ],
            sets: "7 abcd",
            unused: "e end",
            ..PLAIN
        },
        // The first topic has no item within 7 s, and a later one would be too far away.
        Picture {
            policy: bounded(&[7 * S]),
            lines: &[
                "a.......", //
                ".b......", "..c.....", "...d....",
            ],
            sets: "3 abcd",
            ..PLAIN
        },
        // The lower bound of the first topic is too low to exclude a better set.
        Picture {
            policy: bounded(&[3 * S / 2]),
            lines: &[
                "a..b..c.", //
                ".A..B..C",
            ],
            sets: "3 aA, 6 bB, end cC",
            ..PLAIN
        },
        Picture {
            policy: bounded(&[2 * S]),
            lines: &[
                "a..b..c.", //
                ".A..B..C",
            ],
            sets: "1 aA, 4 bB, 7 cC",
            ..PLAIN
        },
        // The lower bound was wrong: with x the set would have been better.
        Picture {
            policy: bounded(&[2 * S]),
            lines: &[
                "a.x...", //
                ".A....",
            ],
            stamps: &[('x', 1)],
            sets: "1 aA",
            unused: "x end",
        },
    ]);
}

#[test]
fn narrow_sets() {
    check(&[
        // At most 2 s from the first to the last.
        Picture {
            policy: within(2 * S),
            lines: &[
                "a....b......c...", //
                "..A.....B....C..",
            ],
            sets: "5 aA, end cC",
            unused: "b interval, B interval",
            ..PLAIN
        },
        Picture {
            policy: within(0),
            lines: &[
                "a.b.c", //
                "A..BC",
            ],
            sets: "0 aA, 4 cC",
            unused: "b interval, B interval",
            ..PLAIN
        },
    ]);
}

#[test]
fn equal_stamps() {
    check(&[
        Picture {
            policy: SetPolicy::Exact { queue: 0 },
            lines: &[
                "ab.c..d.e", //
                "..B..CD..",
                "...ol..h.",
            ],
            stamps: &[('b', 2), ('o', 2), ('c', 4), ('l', 4), ('C', 5), ('d', 6), ('D', 6), ('h', 6)],
            sets: "3 bBo, 7 dDh",
            unused: "a older, c older, l older, C older, e end",
        },
        // The queue counts stamps.
        Picture {
            policy: SetPolicy::Exact { queue: 2 },
            lines: &[
                "abc...", //
                "...ABC",
            ],
            stamps: &[('A', 0), ('B', 1), ('C', 2)],
            sets: "4 bB, 5 cC",
            unused: "a queue_full, A queue_full",
        },
        // The same stamp twice: the later item counts.
        Picture {
            policy: SetPolicy::Exact { queue: 0 },
            lines: &[
                "ab.", //
                "..A",
            ],
            stamps: &[('a', 7), ('b', 7), ('A', 7)],
            sets: "2 bA",
            unused: "a replaced",
        },
    ]);
}

#[test]
fn close_heads() {
    check(&[
        Picture {
            policy: epsilon(S, 0),
            lines: &[
                "a..b...c..d", //
                ".A..B...C.D",
                ".1..2....3.",
            ],
            sets: "1 aA1, 4 bB2, 10 dD3",
            unused: "c no_match, C no_match",
            ..PLAIN
        },
        // Once every topic has an item, no queue exceeds its limit.
        Picture {
            policy: epsilon(0, 2),
            lines: &[
                "abcd..", //
                "....AB",
            ],
            stamps: &[('A', 2), ('B', 3)],
            sets: "4 cA, 5 dB",
            unused: "a queue_full, b queue_full",
        },
    ]);
}

#[test]
fn last_items() {
    check(&[
        // A set needs two items of the fast topic and one of the slow one.
        Picture {
            policy: SetPolicy::latest(),
            lines: &[
                "abcdefghi", //
                "..A...B..",
            ],
            sets: "3 dA, 4 eA, 5 fA, 6 gA, 7 hB, 8 iB",
            unused: "a superseded, b superseded, c superseded",
            ..PLAIN
        },
        // The fast topic stops. Once it is late, the slow one takes over.
        Picture {
            policy: SetPolicy::latest(),
            lines: &[
                "abcd...............", //
                ".A...B...C...D...E.",
            ],
            sets: "2 cA, 3 dA, 5 dB, 9 dC, 13 dD, 17 dE",
            unused: "a superseded, b superseded",
            ..PLAIN
        },
    ]);
}
