use std::fs::OpenOptions;
use std::io::Write as _;
use std::sync::atomic::{AtomicU32, Ordering};

use sha2::{Digest as _, Sha256};

use super::line::{Hash, parse_hash, sha256};
use super::verify::{Failure, Fault, Verified, verify};
use super::*;

/// A path of one test, whose file is removed at its end.
struct Place(PathBuf);

impl Place {
    fn new() -> Place {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Place(std::env::temp_dir().join(format!("rondel-audit-{}-{number}", std::process::id())))
    }

    fn holding(bytes: &[u8]) -> Place {
        let place = Place::new();
        fs::write(&place.0, bytes).unwrap();
        place
    }

    fn add(&self, bytes: &[u8]) {
        OpenOptions::new().append(true).open(&self.0).unwrap().write_all(bytes).unwrap();
    }

    fn verified(&self) -> Verified {
        verify(&self.0, None).unwrap_or_else(|failure| panic!("{failure:?}"))
    }

    fn open(&self) -> Result<Opened, String> {
        Opened::open(AuditSettings { sync: Duration::ZERO, ..AuditSettings::of(self.0.clone()) })
    }

    /// The audit of a run that must not fail.
    fn start(&self) -> Arc<Audit> {
        let opened = self.open().unwrap();
        opened.start(&json!({"format": 1}), || panic!("the run must stop")).unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn end(audit: &Audit) -> AuditSummary {
    audit.end(&json!({"reason": "test"}), Duration::from_secs(60))
}

/// Lines of every kind, with an incomplete line among them.
fn lines() -> Vec<Vec<u8>> {
    let half = b"{\"before\":\"0123".to_vec();
    let whole = [&half[..], b"\n"].concat();
    let partial =
        format!("\"record\":\"partial\",\"bytes\":{},\"sha256\":\"{}\"", whole.len(), text(&sha256(&whole)));
    let mut all = vec![Vec::new(); 5];
    all.push(half);
    all.extend(vec![Vec::new(); 6]);
    let records = [
        "\"record\":\"start\",\"format\":1",
        "\"record\":\"verdict\",\"verdict\":{\"property\":\"p\",\"time\":1,\"verdict\":\"violated\"}",
        "\"record\":\"operator\",\"action\":\"stop\",\"signal\":\"SIGTERM\"",
        "\"record\":\"lost\",\"lines\":3",
        "\"record\":\"verdict\",\"verdict\":{\"property\":\"p\",\"time\":2,\"verdict\":\"satisfied\"}",
        partial.as_str(),
        "\"record\":\"start\",\"format\":1",
        "\"record\":\"verdict\",\"verdict\":{\"property\":\"\u{fc}\",\"time\":3,\"verdict\":\"violated\"}",
        "\"record\":\"verdict\",\"verdict\":{\"property\":\"p\",\"time\":4,\"verdict\":\"violated\"}",
        "\"record\":\"operator\",\"action\":\"stop\",\"signal\":\"SIGINT\"",
        "\"record\":\"stop\",\"reason\":\"signal\"",
    ];
    let mut last = Last::NONE;
    for (line, record) in all.iter_mut().filter(|line| line.is_empty()).zip(records) {
        last.append(Timestamp::from_nanos(1_790_000_000_250_000_000), record.as_bytes(), line);
        line.pop();
    }
    all
}

/// The place of the incomplete line among the lines.
const HALF: usize = 5;

fn joined(lines: &[Vec<u8>]) -> Vec<u8> {
    lines.iter().flat_map(|line| line.iter().copied().chain([b'\n'])).collect()
}

#[track_caller]
fn fault(lines: &[Vec<u8>]) -> Fault {
    match verify(&Place::holding(&joined(lines)).0, None) {
        Err(Failure::Fault(fault)) => fault,
        other => panic!("{other:?}"),
    }
}

/// Changes the time of a line, and computes its hash again.
fn forged(line: &[u8]) -> Vec<u8> {
    let text = String::from_utf8(line.to_vec()).unwrap().replacen("Z\"", "1Z\"", 1);
    let content = &text[..text.rfind(",\"hash\":").unwrap()];
    format!("{content},\"hash\":\"{:x}\"}}", Sha256::digest(content)).into_bytes()
}

#[test]
fn lines_have_the_documented_form() {
    let lines = lines();
    let first = String::from_utf8(lines[0].clone()).unwrap();
    let zeros = "0".repeat(64);
    let content = format!(
        "{{\"before\":\"{zeros}\",\"number\":1,\"time\":\"2026-09-21T14:13:20.25Z\",\"record\":\"start\",\"format\":1"
    );
    let hash = format!("{:x}", Sha256::digest(&content));
    assert_eq!(first, format!("{content},\"hash\":\"{hash}\"}}"));
    let second: Value = serde_json::from_slice(&lines[1]).unwrap();
    assert_eq!((&second["before"], &second["number"]), (&json!(hash), &json!(2)));
    assert_eq!(second["verdict"]["property"], "p");
}

#[test]
fn untouched_file_is_verified() {
    let lines = lines();
    let place = Place::holding(&joined(&lines));
    let last = Line::parse(lines.last().unwrap()).unwrap();
    let expected = Verified {
        last: Last { hash: last.hash, number: 11 },
        runs: 2,
        unended: 1,
        partial: 1,
        lost: 3,
        half: 0,
        expected: None,
    };
    assert_eq!(place.verified(), expected);
    for line in lines.iter().filter_map(|line| Line::parse(line)) {
        let found = verify(&place.0, Some(&line.hash)).unwrap();
        assert_eq!(found.expected, Some(line.number));
    }
    let Err(Failure::Fault(fault)) = verify(&place.0, Some(&[b'a'; 64])) else { panic!("a hash of no line") };
    assert_eq!(fault.line, 12);
    assert!(fault.reason.contains("expected hash"), "{fault:?}");
}

#[test]
fn a_changed_line_of_every_kind_is_named() {
    let lines = lines();
    for at in 0..lines.len() {
        for byte in (0..lines[at].len()).step_by(7) {
            let mut changed = lines.clone();
            changed[at][byte] ^= 1;
            let line = fault(&changed).line;
            // An incomplete line is not reported by a line that was changed.
            let is_half = at == HALF + 1 && line == at as u64;
            assert!(line == at as u64 + 1 || is_half, "line {line}, not {}, byte {byte}", at + 1);
        }
    }
}

#[test]
fn a_line_that_was_changed_with_its_hash_breaks_the_chain_after_it() {
    let lines = lines();
    for at in (0..lines.len() - 1).filter(|at| ![HALF, HALF - 1].contains(at)) {
        let mut changed = lines.clone();
        changed[at] = forged(&changed[at]);
        let fault = fault(&changed);
        assert_eq!(fault.line, at as u64 + 2, "{fault:?}");
        assert!(fault.reason.contains("replaced"), "{fault:?}");
    }
}

#[test]
fn removed_lines_are_found_except_at_the_end() {
    let lines = lines();
    let whole: Vec<usize> =
        (0..lines.len() - 1).filter(|at| ![HALF, HALF - 1, HALF + 1].contains(at)).collect();
    for at in whole {
        let mut removed = lines.clone();
        removed.remove(at);
        let fault = fault(&removed);
        assert_eq!(fault.line, at as u64 + 1, "{fault:?}");
        assert!(fault.reason.contains("1 line is missing before it"), "{fault:?}");
    }
    let mut removed = lines.clone();
    removed.remove(HALF);
    assert!(fault(&removed).reason.contains("an incomplete line before it, which is missing"));
    let place = Place::holding(&joined(&lines[..lines.len() - 1]));
    assert_eq!(place.verified().last.number, 10);
    let last = Line::parse(lines.last().unwrap()).unwrap().hash;
    assert!(matches!(verify(&place.0, Some(&last)), Err(Failure::Fault(Fault { line: 11, .. }))));
}

#[test]
fn reordered_repeated_and_inserted_lines_are_found() {
    let lines = lines();
    for at in [0, 1, 2, 3, 7, 8, 9] {
        let mut swapped = lines.clone();
        swapped.swap(at, at + 1);
        let found = fault(&swapped);
        assert_eq!(found.line, at as u64 + 1, "{found:?}");
        let mut repeated = lines.clone();
        repeated.insert(at + 1, lines[at].clone());
        let found = fault(&repeated);
        assert!([at as u64 + 1, at as u64 + 2].contains(&found.line), "{found:?}");
        // A line that continues the one before it, as one who knows the form can write it.
        let mut last = Line::parse(&lines[at]).unwrap().as_last();
        let mut own = Vec::new();
        last.append(Timestamp::from_nanos(0), b"\"record\":\"verdict\"", &mut own);
        own.pop();
        let mut inserted = lines.clone();
        inserted.insert(at + 1, own);
        let found = fault(&inserted);
        assert_eq!(found.line, at as u64 + 2, "{found:?}");
        assert!(found.reason.contains("inserted"), "{found:?}");
        let mut inserted = lines.clone();
        inserted.insert(at + 1, b"{\"record\":\"verdict\"}".to_vec());
        assert_eq!(fault(&inserted).line, at as u64 + 2);
    }
}

/// The first line at which a check fails, by the definition of the form.
fn naive(bytes: &[u8]) -> Option<usize> {
    let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    let half = lines.pop().filter(|half| !half.is_empty());
    let (mut last, mut number, mut damaged) = ("0".repeat(64), 0, Vec::<usize>::new());
    for (at, line) in lines.iter().enumerate() {
        let text = String::from_utf8_lossy(line);
        let value: Option<Value> = serde_json::from_slice(line).ok();
        let whole = value.filter(|value| value["hash"].is_string() && text.contains(",\"hash\":\""));
        let Some(value) = whole else {
            damaged.push(at);
            continue;
        };
        let content = &text[..text.rfind(",\"hash\":\"").unwrap()];
        let is_intact = value["hash"] == format!("{:x}", Sha256::digest(content));
        let is_report = value["record"] == "partial";
        if !damaged.is_empty() || is_report {
            let region = joined(&damaged.iter().map(|at| lines[*at].to_vec()).collect::<Vec<_>>());
            let is_reported = is_report
                && value["bytes"] == region.len()
                && value["sha256"] == format!("{:x}", Sha256::digest(&region));
            if !is_reported {
                return Some(damaged.first().map_or(at, |first| *first) + 1);
            }
            damaged.clear();
        }
        if !is_intact || value["before"] != last || value["number"] != number + 1 {
            return Some(at + 1);
        }
        number += 1;
        last = value["hash"].as_str().unwrap().to_owned();
    }
    let next = format!("{{\"before\":\"{last}\",\"number\":{},\"time\":\"", number + 1);
    let continues = |half: &[u8]| half.iter().zip(next.as_bytes()).all(|(found, expected)| found == expected);
    match (damaged.first(), half) {
        (Some(first), _) => Some(first + 1),
        (None, Some(half)) if !continues(half) => Some(lines.len() + 1),
        (None, None) if lines.is_empty() => Some(1),
        _ => None,
    }
}

/// Whether a line has the form of one, and is JSON.
fn is_line(line: &[u8]) -> bool {
    Line::parse(line).is_some() && serde_json::from_slice::<Value>(line).is_ok()
}

#[test]
fn random_tampering_is_found_exactly_where_the_definition_says() {
    let original = lines();
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = |limit: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) as usize % limit
    };
    let (mut broken, place) = (0, Place::new());
    for case in 0..3000 {
        let mut lines = original.clone();
        for _ in 0..random(4) {
            let at = random(lines.len());
            match random(6) {
                0 => {
                    let byte = random(lines[at].len());
                    lines[at][byte] ^= 1;
                }
                1 => drop(lines.remove(at)),
                2 => lines.insert(at, lines[at].clone()),
                3 => {
                    let other = random(lines.len());
                    lines.swap(at, other);
                }
                4 if is_line(&lines[at]) => lines[at] = forged(&lines[at]),
                _ => lines.insert(at, b"{\"record\":\"verdict\"}".to_vec()),
            }
        }
        let mut bytes = joined(&lines);
        if random(4) == 0 {
            // Without the end of a line.
            bytes.truncate(bytes.len() - 3 - random(10));
        }
        fs::write(&place.0, &bytes).unwrap();
        match (verify(&place.0, None), naive(&bytes)) {
            // A run continues what is fine.
            (Ok(_), None) => assert!(AuditFile::open(&place.0).is_ok(), "case {case}"),
            (Err(Failure::Fault(fault)), Some(line)) => {
                broken += 1;
                assert!(fault.line <= line as u64, "case {case}: {fault:?}, line {line}");
                // The fault may be far from the end.
                let _ = AuditFile::open(&place.0);
            }
            (found, expected) => {
                panic!("case {case}: {found:?}, expected {expected:?}\n{}", String::from_utf8_lossy(&bytes))
            }
        }
    }
    assert!(broken > 1000, "only {broken}");
}

#[test]
fn a_run_is_recorded_and_the_next_one_continues_the_chain() {
    let place = Place::new();
    for run in 1..=3 {
        let audit = place.start();
        assert!(place.open().unwrap_err().contains("another process writes it"));
        audit.record("operator", &json!({"action": "stop"}));
        audit.record("empty", &json!({}));
        let summary = end(&audit);
        assert!(summary.is_complete(), "{summary:?}");
        drop(audit);
        let verified = place.verified();
        assert_eq!((verified.runs, verified.unended, verified.last.number), (run, 0, 4 * run));
        let account = summary.json();
        assert_eq!((&account["lines"], &account["number"]), (&json!(4), &json!(4 * run)));
        assert_eq!(account["hash"], text(&verified.last.hash));
    }
}

#[test]
fn half_lines_stay_and_are_reported() {
    let place = Place::new();
    let first = |place: &Place| fs::read(&place.0).unwrap();
    drop(end(&place.start()));
    let mut before = first(&place);
    // The line break alone, an incomplete line, zeros, and a run that was cut off while it reported an incomplete line.
    for (number, cut) in (1..).zip(["", "{\"before\":\"HASH\",\"num", "\0\0\0", "{\"before\":\"HASH\n{\"bef"])
    {
        let cut = cut.replace("HASH", text(&place.verified().last.hash));
        if cut.is_empty() {
            before.pop();
            fs::write(&place.0, &before).unwrap();
            assert_eq!(place.verified().last.number, 2);
        } else {
            place.add(cut.as_bytes());
        }
        before = first(&place);
        drop(end(&place.start()));
        let after = first(&place);
        assert!(after.starts_with(&before), "bytes were changed");
        let verified = place.verified();
        assert_eq!((verified.runs, verified.unended), (number + 1, 0), "{verified:?}");
        before = after;
    }
    assert_eq!(place.verified().partial, 4);
    // The very first line.
    let place = Place::holding(b"{\"before\":\"0000");
    drop(end(&place.start()));
    assert_eq!((place.verified().partial, place.verified().last.number), (1, 3));
}

#[test]
fn files_that_are_no_audit_or_were_changed_are_refused() {
    let why = |bytes: &[u8]| Place::holding(bytes).open().unwrap_err();
    for foreign in [&b"hello"[..], b"hello\n", b"\n", b"{\"a\":1}\n{\"a\":2}\n", &[0; 100_000]] {
        assert!(why(foreign).contains("it is not an audit file"), "{}", why(foreign));
    }
    let lines = lines();
    let mut changed = lines.clone();
    changed[11][100] ^= 1;
    assert!(why(&joined(&changed)).contains("rondel audit verify"), "{}", why(&joined(&changed)));
    let mut removed = lines.clone();
    removed.remove(10);
    assert!(why(&joined(&removed)).contains("rondel audit verify"));
    assert!(why(&joined(&lines[11..])).contains("rondel audit verify"));
    // Nothing that ends in a line break was cut off, and a line that was cut off continues the one before it.
    for added in ["hello", "hello\n", "{\"before\":\"0000", "\0\0\n"] {
        let bytes = [&joined(&lines), added.as_bytes()].concat();
        assert!(why(&bytes).contains("rondel audit verify"), "{added:?}");
    }
    let broken = |line: &Vec<u8>| [&line[..line.len() - 1], b"]"].concat();
    for from in [10, 11] {
        let changed: Vec<Vec<u8>> = lines
            .iter()
            .enumerate()
            .map(|(at, line)| if at < from { line.clone() } else { broken(line) })
            .collect();
        assert!(why(&joined(&changed)).contains("rondel audit verify"), "{from}");
    }
    let folder = Opened::open(AuditSettings::of(std::env::temp_dir())).unwrap_err();
    assert!(folder.contains("it is a folder"), "{folder}");
    let device = Opened::open(AuditSettings::of("/dev/null".into())).unwrap_err();
    assert!(device.contains("it is not a regular file"), "{device}");
    let nowhere = Opened::open(AuditSettings::of("/nowhere/audit.jsonl".into())).unwrap_err();
    assert!(nowhere.contains("/nowhere/audit.jsonl") && nowhere.contains("No such file"), "{nowhere}");
    assert!(matches!(verify(Path::new("/nowhere/audit.jsonl"), None), Err(Failure::Unreadable(_))));
    assert!(matches!(verify(&std::env::temp_dir(), None), Err(Failure::Unreadable(_))));
    assert!(matches!(verify(&Place::holding(b"").0, None), Err(Failure::Fault(Fault { line: 1, .. }))));
}

/// The last lines are found where they are longer than what is read first.
#[test]
fn long_lines_are_continued() {
    let place = Place::new();
    let audit = place.start();
    audit.record("long", &json!({"text": "x".repeat(1 << 20)}));
    drop(end(&audit));
    drop(audit);
    let last = place.verified().last;
    let half = format!("{{\"before\":\"{}\",\"number\":{},\"time\":\"", text(&last.hash), last.number + 1);
    place.add(&[half.as_bytes(), &[b'y'; 200_000]].concat());
    drop(end(&place.start()));
    let verified = place.verified();
    assert_eq!((verified.runs, verified.partial, verified.last.number), (2, 1, 6));
}

#[test]
fn a_file_that_is_removed_or_changed_meanwhile_stops_the_run() {
    type Interfere = fn(&Place);
    let cases: [(Interfere, &str); 2] = [
        (|place| fs::remove_file(&place.0).unwrap(), "was removed"),
        (|place| place.add(b"x\n"), "was changed"),
    ];
    for (interfere, reason) in cases {
        let (place, (stop, stopped)) = (Place::new(), mpsc::channel());
        let audit = place.open().unwrap().start(&json!({}), move || stop.send(()).unwrap()).unwrap();
        interfere(&place);
        audit.record("operator", &json!({}));
        stopped.recv_timeout(Duration::from_secs(60)).unwrap();
        let summary = end(&audit).json();
        assert!(summary["failure"].as_str().unwrap().contains(reason), "{summary}");
    }
}

#[test]
fn records_without_room_are_counted_and_reported() {
    let shared = Shared { queue: Mutex::new(Queue::new()), wakes: Condvar::new() };
    let record = |shared: &Shared| shared.push(|out| out.resize(out.len() + LIMIT / 2, b' '));
    (0..5).for_each(|_| record(&shared));
    let mut queue = shared.queue();
    assert_eq!((queue.ends.len(), queue.dropped, queue.status.lost), (2, 3, 3));
    queue.bytes.clear();
    queue.ends.clear();
    drop(queue);
    record(&shared);
    let queue = shared.queue();
    assert_eq!((queue.ends.len(), queue.dropped, queue.status.lost), (2, 0, 3));
    assert!(queue.bytes.starts_with(b"\"record\":\"lost\",\"lines\":3"));
}

#[test]
fn hashes_are_read_in_either_case() {
    let hash: Hash = sha256(b"abc");
    assert_eq!(text(&hash), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_eq!(parse_hash(&text(&hash).to_uppercase()), Some(hash));
    for wrong in ["", "ba78", &"g".repeat(64), &"0".repeat(65)] {
        assert_eq!(parse_hash(wrong), None, "{wrong}");
    }
}
