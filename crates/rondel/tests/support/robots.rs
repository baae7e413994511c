//! Five generated robots: what their topics carry over time, with jitter and noise, for tests of drafts.

use std::f64::consts::TAU;
use std::fmt::Write as _;

/// Numbers from a seed.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number between 0 and 1.
    fn unit(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Noise with a standard deviation of 1.
    fn noise(&mut self) -> f64 {
        (-2.0 * (1.0 - self.unit()).ln()).sqrt() * (TAU * self.unit()).cos()
    }
}

/// The state of a robot that its topics share.
struct Motion {
    time: f64,
    x: f64,
    y: f64,
    yaw: f64,
    speed: f64,
    turn: f64,
    charge: f64,
    heat: f64,
    stop_until: f64,
    /// Seconds of a lap, and the greatest speed.
    lap: f64,
    fast: f64,
}

impl Motion {
    fn new(lap: f64, fast: f64, random: &mut Random) -> Motion {
        Motion {
            time: 0.0,
            x: 0.0,
            y: 0.0,
            yaw: 0.0,
            speed: 0.0,
            turn: 0.0,
            charge: 0.6 + 0.3 * random.unit(),
            heat: 30.0 + 5.0 * random.unit(),
            stop_until: 0.0,
            lap,
            fast,
        }
    }

    fn advance(&mut self, time: f64, random: &mut Random) {
        let step = time - self.time;
        self.time = time;
        if time > self.stop_until && random.unit() < step / 40.0 {
            self.stop_until = time + 2.0 + 4.0 * random.unit();
        }
        let wanted = match time < self.stop_until {
            true => 0.0,
            false => self.fast * (0.7 + 0.3 * (TAU * time / self.lap).sin()),
        };
        self.speed += (wanted - self.speed) * (step / 0.5).min(1.0);
        self.turn = 0.4 * (TAU * time / (self.lap * 0.7)).sin() * (self.speed / self.fast);
        self.yaw = (self.yaw + self.turn * step + TAU / 2.0).rem_euclid(TAU) - TAU / 2.0;
        self.x += self.speed * self.yaw.cos() * step;
        self.y += self.speed * self.yaw.sin() * step;
        self.charge -= 1e-5 * step * (1.0 + self.speed);
        self.heat += (55.0 - self.heat) * step / 400.0;
    }
}

/// Writes the data of message `n` of a topic.
type Data = fn(&Motion, u64, &mut Random) -> String;

/// A topic: its name, its period in seconds, its jitter as a part of the period, the part of messages that is lost, and its data.
type Topic = (&'static str, f64, f64, f64, Data);

/// A robot.
pub(crate) struct Robot {
    pub(crate) name: &'static str,
    lap: f64,
    fast: f64,
    topics: &'static [Topic],
}

/// A fault in a recording.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// No message on a topic between these times.
    Silence(&'static str, f64, f64),
    /// The messages of a topic repeat the data of this time until the other one.
    Stuck(&'static str, f64, f64),
    /// In the first message of a topic after this time a member is a number far from all others.
    Wild(&'static str, &'static str, f64),
}

fn quaternion(yaw: f64) -> String {
    format!("{{\"x\": 0.0, \"y\": 0.0, \"z\": {:?}, \"w\": {:?}}}", (yaw / 2.0).sin(), (yaw / 2.0).cos())
}

fn stamp(time: f64) -> String {
    let nanos = (time * 1e9) as u64 + 1_700_000_000_000_000_000;
    format!("{{\"sec\": {}, \"nanosec\": {}}}", nanos / 1_000_000_000, nanos % 1_000_000_000)
}

fn odometry(m: &Motion, n: u64, r: &mut Random) -> String {
    format!(
        "{{\"header\": {{\"seq\": {n}, \"stamp\": {}, \"frame_id\": \"odom\"}}, \"child_frame_id\": \"base_link\", \
         \"pose\": {{\"pose\": {{\"position\": {{\"x\": {:?}, \"y\": {:?}, \"z\": 0.0}}, \"orientation\": {}}}, \
         \"covariance\": [0.01, 0.0, 0.01]}}, \"twist\": {{\"twist\": {{\"linear\": {{\"x\": {:?}, \"y\": 0.0, \
         \"z\": 0.0}}, \"angular\": {{\"x\": 0.0, \"y\": 0.0, \"z\": {:?}}}}}}}}}",
        stamp(m.time - 0.002 * r.unit()),
        m.x,
        m.y,
        quaternion(m.yaw),
        m.speed * (1.0 + 0.01 * r.noise()),
        m.turn + 0.002 * r.noise() * m.speed,
    )
}

fn imu(m: &Motion, n: u64, r: &mut Random) -> String {
    format!(
        "{{\"seq\": {n}, \"orientation\": {}, \"angular_velocity\": {{\"x\": {:?}, \"y\": {:?}, \"z\": {:?}}}, \
         \"linear_acceleration\": {{\"x\": {:?}, \"y\": {:?}, \"z\": {:?}}}}}",
        quaternion(m.yaw),
        0.01 * r.noise(),
        0.01 * r.noise(),
        m.turn + 0.01 * r.noise(),
        0.05 * r.noise() + 0.2 * m.speed * r.noise(),
        0.05 * r.noise() + m.turn * m.speed,
        9.81 + 0.05 * r.noise(),
    )
}

fn scan(m: &Motion, n: u64, r: &mut Random) -> String {
    let mut ranges = String::new();
    for beam in 0..24 {
        let far = 3.0 + 2.0 * (f64::from(beam) + m.x).sin() + 0.02 * r.noise();
        let _ = write!(ranges, "{}{far:?}", if beam > 0 { ", " } else { "" });
    }
    format!("{{\"seq\": {n}, \"range_min\": 0.12, \"range_max\": 12.0, \"ranges\": [{ranges}]}}")
}

fn battery(m: &Motion, _: u64, r: &mut Random) -> String {
    format!(
        "{{\"percentage\": {:?}, \"voltage\": {:?}, \"temperature\": {:?}, \"present\": true, \"current\": {:?}}}",
        m.charge,
        22.0 + 3.0 * m.charge + 0.02 * r.noise(),
        m.heat + 0.1 * r.noise(),
        -1.0 - 2.0 * m.speed + 0.05 * r.noise(),
    )
}

fn state(m: &Motion, n: u64, _: &mut Random) -> String {
    let state = if m.speed < 0.05 { "stopped" } else { "driving" };
    format!("{{\"state\": \"{state}\", \"errors\": 0, \"uptime\": {:?}, \"count\": {n}}}", m.time + 100.0)
}

fn joints(m: &Motion, _: u64, r: &mut Random) -> String {
    let angle = |phase: f64| (m.time * 0.9 + phase).sin();
    format!(
        "{{\"name\": [\"a\", \"b\"], \"position\": [{:?}, {:?}], \"velocity\": [{:?}, {:?}], \"effort\": {:?}}}",
        angle(0.0),
        angle(1.0),
        0.9 * (m.time * 0.9).cos(),
        0.9 * (m.time * 0.9 + 1.0).cos(),
        5.0 * angle(2.0) + 0.2 * r.noise(),
    )
}

fn gripper(m: &Motion, n: u64, r: &mut Random) -> String {
    let mode = (m.time / 3.0) as u64 % 3;
    format!(
        "{{\"mode\": {}, \"pressure\": {:?}, \"cycles_total\": {}}}",
        mode * 10,
        5.0 + 0.1 * r.noise(),
        n / 7
    )
}

fn position(m: &Motion, n: u64, r: &mut Random) -> String {
    format!(
        "{{\"number\": {n}, \"latitude\": {:?}, \"longitude\": {:?}, \"altitude\": {:?}, \"satellites\": {}, \
         \"unix\": {:?}}}",
        48.1 + m.x * 1e-5 + 1e-7 * r.noise(),
        11.5 + m.y * 1e-5 + 1e-7 * r.noise(),
        510.0 + 3.0 * (m.time / 50.0).sin() + 0.3 * r.noise(),
        11 + (2.0 * r.unit()) as u64,
        1.7e9 + m.time,
    )
}

fn attitude(m: &Motion, _: u64, r: &mut Random) -> String {
    format!(
        "{{\"roll\": {:?}, \"pitch\": {:?}, \"heading\": {:?}, \"thrust\": {:?}}}",
        0.1 * (m.time * 2.0).sin() + 0.005 * r.noise(),
        0.05 * r.noise(),
        m.yaw,
        0.5 + 0.02 * r.noise(),
    )
}

fn drive(m: &Motion, n: u64, r: &mut Random) -> String {
    format!(
        "{{\"speed\": {}, \"steering\": {:?}, \"encoder\": {}, \"load\": {}, \"seq\": {}}}",
        (m.speed * 100.0) as i64,
        m.turn,
        (m.x * 1000.0) as i64,
        400 + (20.0 * r.unit()) as i64,
        n % 256,
    )
}

fn meter(m: &Motion, n: u64, r: &mut Random) -> String {
    format!(
        "{{\"power\": \"{:.1}\", \"flow\": \"{:.2}\", \"unit\": \"W\", \"total\": \"{}\", \"soil\": {:.3}}}",
        150.0 + 80.0 * m.speed + 2.0 * r.noise(),
        3.0 + 0.5 * (m.time / 4.0).sin() + 0.05 * r.noise(),
        n * 3,
        0.31 + 0.002 * r.noise(),
    )
}

/// Five robots.
pub(crate) const ROBOTS: [Robot; 5] = [
    Robot {
        name: "wheels",
        lap: 25.0,
        fast: 1.2,
        topics: &[
            ("/odom", 0.02, 0.08, 0.0, odometry),
            ("/scan", 0.1, 0.1, 0.01, scan),
            ("/battery", 1.0, 0.02, 0.0, battery),
            ("/state", 0.5, 0.05, 0.0, state),
        ],
    },
    Robot {
        name: "arm",
        lap: 12.0,
        fast: 0.3,
        topics: &[("/joints", 0.008, 0.2, 0.0, joints), ("/gripper", 0.2, 0.1, 0.0, gripper)],
    },
    Robot {
        name: "drone",
        lap: 60.0,
        fast: 6.0,
        topics: &[
            ("/imu", 0.01, 0.15, 0.001, imu),
            ("/gps", 0.2, 0.05, 0.02, position),
            ("/attitude", 0.04, 0.1, 0.0, attitude),
            ("/battery", 2.0, 0.02, 0.0, battery),
        ],
    },
    Robot {
        name: "forklift",
        lap: 90.0,
        fast: 2.5,
        topics: &[
            ("/drive", 0.05, 0.3, 0.02, drive),
            ("/imu", 0.02, 0.1, 0.0, imu),
            ("/state", 1.0, 0.1, 0.0, state),
        ],
    },
    Robot {
        name: "field",
        lap: 40.0,
        fast: 0.6,
        topics: &[("/meter", 0.5, 0.1, 0.0, meter), ("/odom", 0.1, 0.1, 0.0, odometry)],
    },
];

impl Robot {
    /// JSON lines of so many seconds from the beginning on, with faults.
    pub(crate) fn lines(&self, seed: u64, seconds: f64, faults: &[Fault]) -> String {
        let mut random = Random::new(seed);
        let mut motion = Motion::new(self.lap, self.fast, &mut random);
        // The next due time of each topic, its number, and its last data.
        let mut due: Vec<(f64, u64, String)> =
            self.topics.iter().map(|topic| (topic.1 * random.unit(), 0, String::new())).collect();
        let mut wild: Vec<Fault> = faults.to_vec();
        let mut lines: Vec<(f64, String)> = Vec::new();
        let mut arrivals = vec![0.0f64; self.topics.len()];
        loop {
            let next = (0..due.len()).min_by(|a, b| due[*a].0.total_cmp(&due[*b].0)).unwrap_or(0);
            let (time, number, last) = &mut due[next];
            let (name, period, jitter, loss, data) = self.topics[next];
            if *time > seconds {
                lines.sort_by(|a, b| a.0.total_cmp(&b.0));
                return lines.into_iter().map(|(_, line)| line).collect();
            }
            motion.advance(*time, &mut random);
            *time += period;
            let late = period * jitter * random.noise().clamp(-4.0, 4.0) / 2.0;
            let arrival = (motion.time + late).max(arrivals[next]);
            arrivals[next] = arrival;
            let is_within = |fault: &Fault| match fault {
                Fault::Silence(topic, from, to) | Fault::Stuck(topic, from, to) => {
                    *topic == name && (*from..*to).contains(&motion.time)
                }
                Fault::Wild(..) => false,
            };
            let mut carried = data(&motion, *number, &mut random);
            *number += 1;
            let active = faults.iter().find(|fault| is_within(fault));
            if matches!(active, Some(Fault::Stuck(..))) && !last.is_empty() {
                carried.clone_from(last);
            }
            last.clone_from(&carried);
            if let Some(at) = wild.iter().position(|fault| {
                matches!(fault, Fault::Wild(topic, _, from) if *topic == name && motion.time >= *from)
            }) && let Fault::Wild(_, member, _) = wild.remove(at)
            {
                let member = format!("\"{member}\": ");
                let begin = carried.find(&member).map_or(0, |found| found + member.len());
                let length = carried[begin..].find([',', '}']).unwrap_or(0);
                carried.replace_range(begin..begin + length, "1234567.0");
            }
            if matches!(active, Some(Fault::Silence(..))) || random.unit() < loss {
                continue;
            }
            let line = format!("{{\"topic\": \"{name}\", \"time\": {arrival:.6}, \"data\": {carried}}}\n");
            lines.push((arrival, line));
        }
    }
}
