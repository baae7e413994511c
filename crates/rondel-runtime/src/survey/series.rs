//! Statistics of a number over the messages of a topic, in a fixed amount of memory.
//!
//! The values are divided into segments of equal length; once there are too many segments, neighbours are joined. The
//! extremes of the segments show whether a range was reached repeatedly or is still growing, and which segments hold
//! outliers.

use rondel_event::Timestamp;

use super::pace::{RecordedTime, between};

/// Maximum number of segments; at least half as many once there are many values.
const SEGMENTS: usize = 24;
/// Maximum number of outliers of a series.
const OUTLIERS: usize = 3;
/// Minimum fall of a counter that restarts.
pub(super) const FAR: f64 = 20.0;

/// The values of a number over time.
#[derive(Clone, Debug, Default)]
pub(super) struct Series {
    segments: Vec<Segment>,
    /// Values of a full segment.
    capacity: u64,
    /// First value of the current recording, and previous value.
    previous: Option<(f64, RecordedTime)>,
    /// Time of the last change of the value.
    unchanged_since: Option<Timestamp>,
    rises_last: Option<bool>,
    /// The number of values.
    pub count: u64,
    /// Pairs of consecutive values.
    pub steps: u64,
    /// Pairs of which the second is greater, and less.
    pub rises: u64,
    pub falls: u64,
    /// When the second was less for the first time.
    pub first_fall: Option<RecordedTime>,
    /// Pairs of which the second is greater by exactly 1.
    pub by_one: u64,
    /// Falls to exactly 0.
    pub resets: u64,
    /// Falls by [`FAR`] and more: those of a restarted counter.
    pub far_falls: u64,
    /// Changes of direction.
    pub turns: u64,
    /// The longest time between the first and the last of equal values, in nanoseconds.
    pub longest_unchanged: u64,
    /// Values that are exactly 0.
    pub zeros: u64,
    /// Values that are whole numbers.
    pub whole: u64,
}

/// Consecutive values.
#[derive(Clone, Copy, Debug)]
struct Segment {
    count: u64,
    mean: f64,
    /// The sum of the squares of the differences from the mean.
    squares: f64,
    least: (f64, RecordedTime),
    most: (f64, RecordedTime),
    /// The greatest difference of two consecutive values.
    step: f64,
    turns: u64,
    first: (f64, RecordedTime),
}

impl Segment {
    fn new(value: f64, at: RecordedTime) -> Segment {
        let here = (value, at);
        Segment {
            count: 1,
            mean: value,
            squares: 0.0,
            least: here,
            most: here,
            step: 0.0,
            turns: 0,
            first: here,
        }
    }

    fn join(&mut self, other: &Segment) {
        let (n, m) = (self.count as f64, other.count as f64);
        let difference = other.mean - self.mean;
        self.mean += difference * m / (n + m);
        self.squares += other.squares + difference * difference * n * m / (n + m);
        self.count += other.count;
        self.turns += other.turns;
        self.step = self.step.max(other.step);
        if other.least.0 < self.least.0 {
            self.least = other.least;
        }
        if other.most.0 > self.most.0 {
            self.most = other.most;
        }
    }
}

/// Common features of the values of a series.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    /// The least and the greatest value, without outliers.
    pub range: (f64, f64),
    /// The times at which they first came.
    pub ends: (RecordedTime, RecordedTime),
    /// Single values far from all others, with the times at which they came.
    pub outliers: Vec<(f64, RecordedTime)>,
    /// The margins below and above the range that a longer run of the same kind should keep.
    pub margins: (f64, f64),
    /// Whether both ends of the range were reached repeatedly, and the values do not drift.
    pub is_settled: bool,
    /// Fraction of the segments in which the magnitude reached half of its maximum.
    pub share_of_half: f64,
    /// Whether consecutive values differ by noise alone.
    pub is_noise: bool,
    /// Whether there is noise everywhere: the values change direction repeatedly in every segment.
    pub is_noisy_throughout: bool,
    /// Greatest difference of two consecutive values, if the greatest ones came repeatedly.
    pub step: Option<f64>,
    /// The greatest difference of two consecutive values, also if it came once, as after a silence; outliers are left out.
    pub greatest_step: f64,
}

impl Series {
    /// Adds a value.
    pub(super) fn add(&mut self, value: f64, at: RecordedTime) {
        if !value.is_finite() {
            return;
        }
        self.count += 1;
        self.zeros += u64::from(value == 0.0);
        self.whole += u64::from(value.fract() == 0.0);
        let (mut step, mut turns) = (0.0, false);
        match self.previous.filter(|(_, before)| before.part == at.part) {
            Some((before, _)) => {
                self.steps += 1;
                step = (value - before).abs();
                if value == before {
                    let since = self.unchanged_since.unwrap_or(at.time);
                    self.longest_unchanged = self.longest_unchanged.max(between(since, at.time));
                } else {
                    self.unchanged_since = Some(at.time);
                    let rises = value > before;
                    self.rises += u64::from(rises);
                    self.falls += u64::from(!rises);
                    self.first_fall = self.first_fall.or((!rises).then_some(at));
                    self.by_one += u64::from(value - before == 1.0);
                    self.resets += u64::from(!rises && value == 0.0);
                    self.far_falls += u64::from(before - value >= FAR);
                    turns = self.rises_last.is_some_and(|last| last != rises);
                    self.rises_last = Some(rises);
                }
                self.turns += u64::from(turns);
            }
            None => (self.unchanged_since, self.rises_last) = (Some(at.time), None),
        }
        self.previous = Some((value, at));
        let mut one = Segment::new(value, at);
        (one.step, one.turns) = (step, u64::from(turns));
        match self.segments.last_mut().filter(|last| last.count < self.capacity) {
            Some(last) => last.join(&one),
            None => {
                if self.segments.len() == SEGMENTS {
                    self.halve();
                }
                self.capacity = self.capacity.max(1);
                match self.segments.last_mut().filter(|last| last.count < self.capacity) {
                    Some(last) => last.join(&one),
                    None => self.segments.push(one),
                }
            }
        }
    }

    /// Joins each two neighbours.
    fn halve(&mut self) {
        let joined = self.segments.chunks(2).map(|pair| {
            let mut first = pair[0];
            pair[1..].iter().for_each(|second| first.join(second));
            first
        });
        self.segments = joined.collect();
        self.capacity = self.capacity.max(1) * 2;
    }

    /// The mean change per second, if it is that of a clock: the same in most segments, in a unit of time. Returns this unit in
    /// seconds.
    pub(super) fn clock(&self) -> Option<f64> {
        const UNITS: [f64; 4] = [1.0, 1e-3, 1e-6, 1e-9];
        if self.falls > 0 || self.rises * 2 < self.steps {
            return None;
        }
        let slopes = self.segments.windows(2).filter_map(|pair| {
            let ((a, from), (b, to)) = (pair[0].first, pair[1].first);
            let nanos = between(from.time, to.time);
            (from.part == to.part && nanos > 0).then(|| (b - a) * 1e9 / nanos as f64)
        });
        let mut slopes: Vec<f64> = slopes.collect();
        slopes.sort_by(f64::total_cmp);
        let median = *slopes.get(slopes.len() / 2).filter(|_| slopes.len() >= 4)?;
        UNITS.into_iter().find(|unit| (median * unit - 1.0).abs() < 0.05)
    }

    /// Returns the common features of the values; `None` without values.
    pub(super) fn shape(&self) -> Option<Shape> {
        let (kept, outliers) = self.without_outliers();
        let (least, least_at) =
            kept.iter().map(|segment| segment.least).reduce(|a, b| if b.0 < a.0 { b } else { a })?;
        let (most, most_at) =
            kept.iter().map(|segment| segment.most).reduce(|a, b| if b.0 > a.0 { b } else { a })?;
        let span = most - least;
        let near = 0.2 * span;
        let is_settled = span > 0.0
            && recurs(&kept, |segment| segment.most.0 >= most - near)
            && recurs(&kept, |segment| segment.least.0 <= least + near);
        let drift = drift(&kept);
        let tail = |ends: Vec<f64>| spread(&ends).max(0.3 * span).min(2.0 * span);
        let mut margins = (
            tail(kept.iter().map(|segment| -segment.least.0).collect()),
            tail(kept.iter().map(|segment| segment.most.0).collect()),
        );
        // The drift of one recording, ten times over.
        margins.0 += (-10.0 * drift).max(0.0);
        margins.1 += (10.0 * drift).max(0.0);
        let magnitude = least.abs().max(most.abs());
        let is_half = |segment: &&Segment| segment.least.0.abs().max(segment.most.0.abs()) >= magnitude / 2.0;
        let share_of_half = kept.iter().filter(is_half).count() as f64 / kept.len() as f64;
        // With pure noise, two thirds of the steps change the direction.
        let is_turning =
            |segment: &&Segment| segment.count < 4 || segment.turns as f64 > 0.2 * segment.count as f64;
        let step = usual_step(&kept);
        let is_step_settled = step > 0.0 && recurs(&kept, |segment| segment.step >= step / 2.0);
        Some(Shape {
            range: (least, most),
            ends: (least_at, most_at),
            outliers,
            margins,
            is_settled: is_settled && (10.0 * drift).abs() <= 2.0 * span,
            share_of_half,
            is_noise: self.turns as f64 > 0.55 * self.steps as f64 && drift == 0.0 && !wanders(&kept),
            is_noisy_throughout: self.count >= 20 && kept.iter().all(|segment| is_turning(&segment)),
            step: is_step_settled.then_some(step),
            greatest_step: kept.iter().map(|segment| segment.step).fold(0.0, f64::max),
        })
    }

    /// The segments without those that hold a single value far from all others, and these values.
    fn without_outliers(&self) -> (Vec<Segment>, Vec<(f64, RecordedTime)>) {
        let mut kept = self.segments.clone();
        let mut outliers = Vec::new();
        while kept.len() >= SEGMENTS / 2 && outliers.len() < OUTLIERS {
            let Some(at) = far(&kept) else { break };
            let (segment, is_high) = (kept.remove(at.0), at.1);
            outliers.push(if is_high { segment.most } else { segment.least });
        }
        outliers.sort_by_key(|(_, at)| (at.part, at.time));
        (kept, outliers)
    }
}

/// The segment whose extreme lies far from those of all others, and whether it is its greatest value.
fn far(segments: &[Segment]) -> Option<(usize, bool)> {
    /// Minimum ratio of an outlier's distance from the middle to that of all other values.
    const DISTANT: f64 = 3.0;
    let mut means: Vec<f64> = segments.iter().map(|segment| segment.mean).collect();
    means.sort_by(f64::total_cmp);
    let middle = means[means.len() / 2];
    let reach = |segment: &Segment| {
        let (low, high) = (middle - segment.least.0, segment.most.0 - middle);
        if high >= low { (high, true) } else { (low, false) }
    };
    let mut reaches: Vec<f64> = segments.iter().map(|segment| reach(segment).0).collect();
    reaches.sort_by(|a, b| b.total_cmp(a));
    let usual = *reaches.get(OUTLIERS)?;
    let (at, (farthest, is_high)) =
        segments.iter().map(reach).enumerate().max_by(|(_, (a, _)), (_, (b, _))| a.total_cmp(b))?;
    // A single value: without it, its segment is like the others.
    let segment = &segments[at];
    let (value, count) = (if is_high { segment.most.0 } else { segment.least.0 }, segment.count as f64);
    let rest = (segment.mean * count - value) / (count - 1.0);
    let squares = segment.squares - (value - segment.mean).powi(2) * count / (count - 1.0);
    let is_single = count > 2.0 && (rest - middle).abs() <= usual && squares <= (count - 1.0) * usual * usual;
    (is_single && usual > 0.0 && farthest > DISTANT * usual).then_some((at, is_high))
}

/// The greatest difference of consecutive values, without those across a silence or a single leap.
fn usual_step(segments: &[Segment]) -> f64 {
    const DISTANT: f64 = 3.0;
    let mut steps: Vec<f64> = segments.iter().map(|segment| segment.step).collect();
    steps.sort_by(|a, b| b.total_cmp(a));
    let usual = steps.get(OUTLIERS).copied().unwrap_or(0.0);
    steps.into_iter().find(|step| usual == 0.0 || *step <= DISTANT * usual).unwrap_or(0.0)
}

/// Whether a condition was met repeatedly: in most segments, or in three that are apart.
fn recurs(segments: &[Segment], meets: impl Fn(&Segment) -> bool) -> bool {
    let met: Vec<bool> = segments.iter().map(meets).collect();
    let count = met.iter().filter(|met| **met).count();
    let visits = met.chunk_by(|a, b| a == b).filter(|chunk| chunk[0]).count();
    segments.len() >= 6 && (visits >= 3 || count * 10 >= 6 * segments.len())
}

/// The change of the mean over the whole series, if it is more than chance; otherwise 0.
fn drift(segments: &[Segment]) -> f64 {
    let count = segments.len() as f64;
    if count < 4.0 {
        return 0.0;
    }
    let middle = (count - 1.0) / 2.0;
    let mean = segments.iter().map(|segment| segment.mean).sum::<f64>() / count;
    let places = || segments.iter().enumerate().map(|(index, segment)| (index as f64 - middle, segment.mean));
    let square: f64 = places().map(|(place, _)| place * place).sum();
    let slope = places().map(|(place, value)| place * (value - mean)).sum::<f64>() / square;
    let rest: f64 = places().map(|(place, value)| (value - mean - slope * place).powi(2)).sum();
    let error = (rest / (count - 2.0) / square).sqrt();
    if slope.abs() > 3.0 * error { slope * count } else { 0.0 }
}

/// Whether the means of the segments differ by more than noise makes them differ.
fn wanders(segments: &[Segment]) -> bool {
    let count: u64 = segments.iter().map(|segment| segment.count).sum();
    let inner: f64 = segments.iter().map(|segment| segment.squares).sum();
    if segments.len() < 4 || count <= segments.len() as u64 {
        return false;
    }
    let mean = segments.iter().map(|segment| segment.mean).sum::<f64>() / segments.len() as f64;
    let outer: f64 =
        segments.iter().map(|segment| segment.count as f64 * (segment.mean - mean).powi(2)).sum();
    let (inner_free, outer_free) = ((count - segments.len() as u64) as f64, (segments.len() - 1) as f64);
    // The ratio of the variances is about 1 for noise.
    outer / outer_free > 3.0 * (inner / inner_free)
}

/// Distance by which the greatest of many more segments may exceed the greatest of these: by the distribution of
/// extremes, once in some thousand runs of ten times the length.
fn spread(ends: &[f64]) -> f64 {
    let count = ends.len() as f64;
    if count < 4.0 {
        return 0.0;
    }
    let mean = ends.iter().sum::<f64>() / count;
    let deviation = (ends.iter().map(|end| (end - mean).powi(2)).sum::<f64>() / (count - 1.0)).sqrt();
    let most = ends.iter().copied().fold(f64::MIN, f64::max);
    let scale = deviation * 6f64.sqrt() / std::f64::consts::PI;
    let level = mean - 0.58 * scale + scale * ((10.0 * count).ln() + 9.0);
    (level - most).max(0.0)
}
