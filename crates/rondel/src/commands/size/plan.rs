//! From measured figures to a plan: cores, memory, processes, partitions. Arithmetic only.

use std::fmt;

/// Share of a core that the messages of a process may need. The rest is for bursts, the network and sinks, which are not
/// measured.
const SHARE: f64 = 0.5;
/// Copies of a snapshot that are in memory while it is made: the state, that of the session, and the sealed bytes.
const SNAPSHOT_COPIES: f64 = 3.0;
/// Longest wanted recovery of a process, in seconds.
const RECOVERY_S: f64 = 60.0;
/// Number of partitions for each process, so that processes can be added: the keys of a topic change their partitions
/// when the number of partitions does.
const PARTITIONS: u64 = 4;
/// Greatest number of processes on Kafka. Their rollout and rebalancing is work that Flink does by itself.
const MOST_PROCESSES: u64 = 16;
/// Number of names of a topic that a process distinguishes, where the key is a part of the address.
const NAMES: u64 = 65_536;

/// Bytes of a key as a linear function of its rate.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Line {
    /// Bytes of a key without windows.
    pub at_rest: f64,
    /// Bytes in addition for each message per second.
    pub by_rate: f64,
}

impl Line {
    /// Fits a line through pairs of rate and bytes by least squares. Neither part is negative.
    pub fn fit(points: &[(f64, f64)]) -> Line {
        let count = points.len().max(1) as f64;
        let mean = |of: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
        let (rate, bytes) = (mean(&|point| point.0), mean(&|point| point.1));
        let spread: f64 = points.iter().map(|point| (point.0 - rate).powi(2)).sum();
        let common: f64 = points.iter().map(|point| (point.0 - rate) * (point.1 - bytes)).sum();
        let by_rate = if spread > 0.0 { (common / spread).max(0.0) } else { 0.0 };
        Line { at_rest: (bytes - by_rate * rate).max(0.0), by_rate }
    }

    /// Bytes of a key with this rate.
    pub fn at(self, rate: f64) -> f64 {
        self.at_rest + self.by_rate * rate
    }
}

/// Time to write or read a snapshot as a linear function of the state in it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Timing {
    /// Time without state, in nanoseconds.
    pub fixed_ns: f64,
    /// Time in addition for each byte of state, in nanoseconds.
    pub byte_ns: f64,
}

impl Timing {
    /// Seconds for this number of bytes.
    fn seconds(self, bytes: f64) -> f64 {
        (self.fixed_ns + bytes * self.byte_ns) / 1e9
    }
}

/// Figures of one process on one machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// Time to decode a message, in nanoseconds.
    pub decode_ns: f64,
    /// Time of a message in the session without decoding, in nanoseconds.
    pub evaluate_ns: f64,
    /// Memory of a process without state, in bytes.
    pub base_bytes: f64,
    /// State of a key; `None` where too few keys were measured.
    pub state: Option<StateFigures>,
    /// Whether every property is divided by `for each`, so that processes can share the keys.
    pub is_divisible: bool,
    /// Whether a key is a part of the address of a topic.
    pub has_named_keys: bool,
}

/// Figures of the state of keys.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StateFigures {
    /// Bytes of a key in memory.
    pub memory: Line,
    /// Bytes of a key in a snapshot.
    pub snapshot: Line,
    /// Time to make a snapshot.
    pub making: Timing,
    /// Time to restore it.
    pub recovery: Timing,
}

/// The load to plan for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// Messages per second.
    pub rate: f64,
    /// Number of keys; 1 without `for each`.
    pub keys: u64,
    /// Memory of a process, in bytes.
    pub process_bytes: f64,
}

impl Load {
    /// Messages per second of a key.
    pub fn rate_of_key(self) -> f64 {
        self.rate / self.keys.max(1) as f64
    }

    /// The load of this number of keys with the same rate each.
    pub fn of_keys(self, keys: u64) -> Load {
        Load { rate: self.rate_of_key() * keys as f64, keys, ..self }
    }
}

/// The three ways to check a fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// One process, on any network.
    OneProcess,
    /// Several processes, each with some partitions of the topics of Kafka.
    Kafka,
    /// A job of Apache Flink.
    Flink,
}

impl Way {
    /// Name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Way::OneProcess => "one-process",
            Way::Kafka => "kafka",
            Way::Flink => "flink",
        }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Way::OneProcess => "one process",
            Way::Kafka => "processes on Kafka",
            Way::Flink => "Flink",
        })
    }
}

/// Memory and times of the state of all keys.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StatePlan {
    /// State in memory, in bytes.
    pub state_bytes: f64,
    /// Size of all snapshots together, in bytes.
    pub snapshot_bytes: f64,
    /// Time to make the snapshot of one process, in seconds.
    pub snapshot_s: f64,
    /// Time to restore one process, in seconds.
    pub recovery_s: f64,
    /// Memory of each process while it makes a snapshot, in bytes.
    pub process_bytes: f64,
}

/// A plan for a load.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The load.
    pub load: Load,
    /// Cores that decoding and evaluation keep busy.
    pub busy_cores: f64,
    /// Cores to provide: one for each process.
    pub cores: u64,
    /// Memory and times of the state; `None` if it was not measured.
    pub state: Option<StatePlan>,
    /// Number of processes, or of subtasks of Flink.
    pub processes: u64,
    /// Partitions of each topic of Kafka, if the messages come from there.
    pub partitions: u64,
    /// The way that fits.
    pub way: Way,
    /// Whether the load fits at all.
    pub fits: bool,
    /// Reason for the way, as a sentence without a period.
    pub reason: String,
}

/// A limit of one process that needs several of them.
struct Limit {
    processes: u64,
    reason: String,
}

impl Plan {
    /// Plans for a load.
    pub fn new(figures: &Figures, load: Load) -> Plan {
        let busy_cores = load.rate * (figures.decode_ns + figures.evaluate_ns) / 1e9;
        let limits = limits(figures, load, busy_cores);
        let wanted = limits.iter().map(|limit| limit.processes).max().unwrap_or(1).max(1);
        let processes = if figures.is_divisible { wanted.min(load.keys.max(1)) } else { 1 };
        let fits = processes == wanted;
        let way = match processes {
            1 => Way::OneProcess,
            2..=MOST_PROCESSES => Way::Kafka,
            _ => Way::Flink,
        };
        let because: Vec<&str> =
            limits.iter().filter(|limit| limit.processes > 1).map(|limit| limit.reason.as_str()).collect();
        let because = because.join("; ");
        let reason = match way {
            _ if !fits && !figures.is_divisible => format!(
                "it does not fit into one process, and properties without `for each` cannot be divided: {because}"
            ),
            _ if !fits => format!("more processes are needed than there are keys: {because}"),
            Way::OneProcess if figures.state.is_none() => {
                format!("{busy_cores:.2} of a core for messages; the memory is not known")
            }
            Way::OneProcess => {
                format!(
                    "{busy_cores:.2} of a core for messages, and the state fits: nothing has to be divided"
                )
            }
            Way::Kafka => because,
            Way::Flink => format!(
                "more than {MOST_PROCESSES} processes would be needed; Flink divides the keys and moves their state by \
                 itself: {because}"
            ),
        };
        let partitions =
            if processes == 1 && !figures.is_divisible { 1 } else { processes.saturating_mul(PARTITIONS) };
        let state = figures.state.map(|state| state.plan(figures.base_bytes, load, processes));
        Plan { load, busy_cores, cores: processes, state, processes, partitions, way, fits, reason }
    }
}

impl StateFigures {
    fn plan(self, base_bytes: f64, load: Load, processes: u64) -> StatePlan {
        let (keys, rate) = (load.keys as f64, load.rate_of_key());
        let (state_bytes, snapshot_bytes) = (keys * self.memory.at(rate), keys * self.snapshot.at(rate));
        let share = 1.0 / processes.max(1) as f64;
        StatePlan {
            state_bytes,
            snapshot_bytes,
            snapshot_s: self.making.seconds(snapshot_bytes * share),
            recovery_s: self.recovery.seconds(snapshot_bytes * share),
            process_bytes: base_bytes + share * (state_bytes + SNAPSHOT_COPIES * snapshot_bytes),
        }
    }
}

/// Number of parts of at most `limit`.
fn parts(whole: f64, limit: f64) -> u64 {
    if limit > 0.0 { (whole / limit).ceil().max(1.0) as u64 } else { u64::MAX }
}

/// Limits of one process under a load, each with the number of processes that it needs.
fn limits(figures: &Figures, load: Load, busy_cores: f64) -> Vec<Limit> {
    let mut limits = vec![Limit {
        processes: parts(busy_cores, SHARE),
        reason: format!(
            "the messages need {busy_cores:.1} cores, and a process, which evaluates on one, should be busy for at most \
             {:.0} % of it",
            SHARE * 100.0
        ),
    }];
    if figures.has_named_keys {
        limits.push(Limit {
            processes: load.keys.div_ceil(NAMES),
            reason: format!(
                "the keys are parts of addresses, of which a process distinguishes {NAMES} for a topic"
            ),
        });
    }
    if let Some(state) = figures.state {
        let StatePlan { process_bytes, recovery_s, .. } = state.plan(figures.base_bytes, load, 1);
        let (of_state, room) = (process_bytes - figures.base_bytes, load.process_bytes - figures.base_bytes);
        limits.push(Limit {
            processes: parts(of_state, room),
            reason: format!(
                "the state needs {} while a snapshot is made, and a process has {}",
                bytes_text(of_state),
                bytes_text(load.process_bytes)
            ),
        });
        limits.push(Limit {
            processes: parts(recovery_s, RECOVERY_S),
            reason: format!("one process would recover in {recovery_s:.0} s, longer than {RECOVERY_S:.0} s"),
        });
    }
    limits
}

/// A size in bytes, rounded.
pub fn bytes_text(bytes: f64) -> String {
    match bytes {
        _ if bytes < 1e3 => format!("{bytes:.0} B"),
        _ if bytes < 1e6 => format!("{:.1} kB", bytes / 1e3),
        _ if bytes < 1e9 => format!("{:.1} MB", bytes / 1e6),
        _ => format!("{:.1} GB", bytes / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures() -> Figures {
        let flat = |bytes| Line { at_rest: bytes, by_rate: 0.0 };
        let timing = |byte_ns| Timing { fixed_ns: 0.0, byte_ns };
        let state = StateFigures {
            memory: flat(200.0),
            snapshot: flat(100.0),
            making: timing(1.0),
            recovery: timing(2.0),
        };
        Figures {
            decode_ns: 300.0,
            evaluate_ns: 200.0,
            base_bytes: 2e7,
            state: Some(state),
            is_divisible: true,
            has_named_keys: false,
        }
    }

    fn load(rate: f64, keys: u64) -> Load {
        Load { rate, keys, process_bytes: 4e9 }
    }

    #[test]
    fn line_goes_through_its_points() {
        let line = Line::fit(&[(1.0, 110.0), (2.0, 120.0), (4.0, 140.0)]);
        assert!((line.at_rest - 100.0).abs() < 1e-9 && (line.by_rate - 10.0).abs() < 1e-9, "{line:?}");
        assert!((line.at(100.0) - 1100.0).abs() < 1e-6);
        // One fill says nothing about growth.
        assert_eq!(Line::fit(&[(5.0, 64.0)]), Line { at_rest: 64.0, by_rate: 0.0 });
        // Noise does not make windows shrink with the rate.
        assert_eq!(Line::fit(&[(1.0, 12.0), (2.0, 8.0)]), Line { at_rest: 10.0, by_rate: 0.0 });
        assert_eq!(Line::fit(&[]), Line::default());
    }

    #[test]
    fn a_small_load_needs_one_process() {
        let plan = Plan::new(&figures(), load(100_000.0, 10_000));
        assert_eq!((plan.way, plan.processes, plan.cores, plan.partitions), (Way::OneProcess, 1, 1, 4));
        assert!((plan.busy_cores - 0.05).abs() < 1e-9 && plan.fits);
        let state = plan.state.unwrap();
        assert_eq!((state.state_bytes, state.snapshot_bytes), (2e6, 1e6));
        assert!((state.snapshot_s - 1e-3).abs() < 1e-9 && (state.recovery_s - 2e-3).abs() < 1e-9);
        assert_eq!(state.process_bytes, 2e7 + 2e6 + 3e6);
    }

    #[test]
    fn messages_divide_among_processes() {
        // 2.5 cores busy, at most half of each.
        let plan = Plan::new(&figures(), load(5e6, 1_000_000));
        assert_eq!((plan.way, plan.processes, plan.partitions), (Way::Kafka, 5, 20));
        assert!(plan.reason.contains("2.5 cores"), "{}", plan.reason);
        let many = Plan::new(&figures(), load(2e7, 1_000_000));
        assert_eq!((many.way, many.processes), (Way::Flink, 20));
    }

    #[test]
    fn memory_recovery_and_names_divide_too() {
        // 500 bytes a key while a snapshot is made.
        let plan = Plan::new(&figures(), load(1e3, 20_000_000));
        assert_eq!((plan.way, plan.processes), (Way::Kafka, 3));
        assert!(plan.reason.contains("10.0 GB while a snapshot is made"), "{}", plan.reason);
        assert!(plan.state.unwrap().process_bytes < 4e9);
        let mut slow = figures();
        slow.state = slow
            .state
            .map(|state| StateFigures { recovery: Timing { fixed_ns: 0.0, byte_ns: 1000.0 }, ..state });
        let plan = Plan::new(&slow, load(1e3, 2_000_000));
        assert_eq!((plan.processes, plan.state.unwrap().recovery_s), (4, 50.0));
        assert!(plan.reason.contains("200 s"), "{}", plan.reason);
        let named = Figures { has_named_keys: true, ..figures() };
        assert_eq!(Plan::new(&named, load(1e3, 65_536)).processes, 1);
        assert_eq!(Plan::new(&named, load(1e3, 65_537)).processes, 2);
    }

    #[test]
    fn indivisible_load_is_reported() {
        let whole = Figures { is_divisible: false, ..figures() };
        let small = Plan::new(&whole, load(1e3, 1));
        assert_eq!((small.way, small.partitions, small.fits), (Way::OneProcess, 1, true));
        let large = Plan::new(&whole, load(1e7, 1));
        assert_eq!((large.way, large.processes, large.fits), (Way::OneProcess, 1, false));
        assert!(large.reason.contains("cannot be divided"), "{}", large.reason);
        // Two keys are on two processes at most.
        let few = Plan::new(&figures(), load(1e7, 2));
        assert_eq!((few.processes, few.fits), (2, false));
    }

    #[test]
    fn windows_grow_with_the_rate_of_a_key() {
        let mut growing = figures();
        growing.state = growing
            .state
            .map(|state| StateFigures { memory: Line { at_rest: 200.0, by_rate: 160.0 }, ..state });
        let state = |load| Plan::new(&growing, load).state.unwrap().state_bytes;
        assert_eq!(state(load(1e3, 1_000)), 360.0 * 1e3);
        // The same messages of half as many keys.
        assert_eq!(state(load(1e3, 500)), 520.0 * 500.0);
        let fleet = load(1e3, 1_000).of_keys(1_000_000);
        assert_eq!((fleet.rate, fleet.rate_of_key()), (1e6, 1.0));
        let unknown = Figures { state: None, ..figures() };
        let plan = Plan::new(&unknown, load(1e3, 10));
        assert!(plan.state.is_none() && plan.reason.contains("not known"), "{}", plan.reason);
    }

    #[test]
    fn every_process_has_the_fixed_time_of_a_snapshot() {
        let mut fixed = figures();
        fixed.state =
            fixed.state.map(|state| StateFigures { making: Timing { fixed_ns: 5e7, byte_ns: 1.0 }, ..state });
        let snapshot_s = |load| Plan::new(&fixed, load).state.unwrap().snapshot_s;
        assert!((snapshot_s(load(1e3, 1)) - 0.05).abs() < 1e-6);
        // Five processes, each with a fifth of 100 MB.
        assert!((snapshot_s(load(5e6, 1_000_000)) - 0.07).abs() < 1e-6);
    }

    #[test]
    fn sizes_are_rounded() {
        let texts = [12.0, 1234.0, 5e6, 7.26e9].map(bytes_text);
        assert_eq!(texts, ["12 B", "1.2 kB", "5.0 MB", "7.3 GB"]);
    }
}
