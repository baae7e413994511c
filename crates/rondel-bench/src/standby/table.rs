//! The table of take-overs of a group, and their marks.

use super::Run;
use crate::report::Mark;
use crate::standby::account::Counts;
use crate::table::{Table, groups};
use crate::takeover;

fn sum<'a>(runs: impl IntoIterator<Item = &'a Run>) -> Counts {
    let mut sum = Counts::default();
    runs.into_iter().for_each(|run| sum.add(run.counts));
    sum
}

/// Returns the marks: no verdict is missing, and none has two ids.
pub fn marks(runs: &[Run]) -> Vec<Mark> {
    let counts = sum(runs);
    let mark = |what: &str, count: u64| Mark::at_most(format!("take-overs: {what}"), count as f64, 0.0, "");
    vec![mark("missing verdicts", counts.missing), mark("verdicts with another id", counts.differing)]
}

/// Returns the table.
pub fn table(runs: &[Run]) -> Table {
    let mut heads = vec!["network", "end of the active member", "lease, ms"];
    heads.extend(takeover::HEADS);
    heads.extend(["messages", "missing", "repeated", "other id", "overtaken", "undecided", "unasked"]);
    let mut table = Table::new("Fail-over of the monitor", &heads);
    for (setting, of) in groups(runs, |run| run.setting) {
        let times: Vec<f64> = of.iter().map(|run| run.take_over_ms).collect();
        let gaps: Vec<f64> = of.iter().map(|run| run.gap_ms).collect();
        let counts = sum(of.iter().copied());
        let mut cells = vec![
            setting.network.name().to_owned(),
            setting.end.name().to_owned(),
            setting.lease_ms.to_string(),
        ];
        cells.extend(takeover::cells(&times, &gaps));
        let Counts { messages, missing, repeated, differing, overtaken, undecided } = counts;
        let unasked = of.iter().map(|run| run.unasked).sum::<u64>();
        let all = [messages, missing, repeated, differing, overtaken, undecided, unasked];
        cells.extend(all.map(|count| count.to_string()));
        table.row(cells);
    }
    let mut paper = vec!["DDS", "shutdown of a publisher (paper)", "-"];
    paper.extend(takeover::PAPER);
    paper.resize(heads.len(), "-");
    table.row(paper.into_iter().map(str::to_owned).collect());
    table.note(
        "Two processes `rondel run` of one group receive a numbered message per period over loopback, each of which \
         violates the property. Times are from the signal to the active member until a verdict of the other one arrives; \
         of a handover from the arrival of its request. The gap is from the last verdict of the active member.",
    );
    table.note(
        "Missing: messages without a verdict. Repeated: verdicts that came again with the same id. Overtaken: verdicts of \
         an epoch that arrived after one of a later epoch. Undecided: verdicts that are no violation, or at a time without \
         a message. Unasked: take-overs although no member was ended, since its signs of life came too late.",
    );
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::Network;
    use crate::standby::{End, Setting};

    fn run(end: End, take_over_ms: f64, counts: Counts) -> Run {
        let setting = Setting { network: Network::Mqtt, end, lease_ms: 200 };
        Run { setting, repetition: 0, take_over_ms, gap_ms: 20.0, counts, unasked: 1 }
    }

    #[test]
    fn the_table_has_a_row_for_each_setting() {
        let counts = Counts { messages: 30, repeated: 4, overtaken: 1, undecided: 2, ..Counts::default() };
        let runs = [
            run(End::Kill, 190.0, counts),
            run(End::Promote, 3.0, Counts::default()),
            run(End::Kill, 200.0, counts),
        ];
        let text = table(&runs).markdown();
        let kill = "| MQTT | kill | 200 | 2 | 195.0 | 5.0 | 195.0 | 199.9 | 200.0 | 20.0 | 60 | 0 | 8 | 0 | 2 | 4 | 2 |";
        assert!(text.contains(kill), "{text}");
        let promote =
            "| MQTT | promote | 200 | 1 | 3.0 | 0.0 | 3.0 | 3.0 | 3.0 | 20.0 | 0 | 0 | 0 | 0 | 0 | 0 | 1 |";
        assert!(text.contains(promote) && text.contains("(paper) | - | 1000 | 16.8 | 10.4 |"), "{text}");
    }

    #[test]
    fn missing_verdicts_miss_the_mark() {
        let of = |missing, differing| {
            let counts = Counts { missing, differing, ..Counts::default() };
            marks(&[run(End::Kill, 1.0, counts)]).iter().map(Mark::met).collect::<Vec<_>>()
        };
        assert_eq!((of(0, 0), of(1, 0), of(0, 2)), (vec![true; 2], vec![false, true], vec![true, false]));
    }
}
