//! Tests of the file of a spool: kept payloads across runs, and losses by damage.

#![allow(clippy::unwrap_used)]

use std::collections::VecDeque;

use rondel_testkit::{Folder, Random};

use super::*;

#[test]
fn payloads_wait_in_order_within_the_limit() {
    let folder = Folder::new();
    let path = folder.as_path().join("a/b.spool");
    let mut spool = SpoolFile::open(path.clone(), 10_000, false).unwrap();
    assert!(!path.exists(), "nothing waits");
    let (mut waiting, mut payload, mut seed) = (VecDeque::new(), Vec::new(), 1u64);
    let (mut full, mut taken, mut sent) = (0, 0, 0);
    for i in 0..20_000u32 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        // Long stretches in which more is added, or more is taken.
        if (seed >> 33) % 100 < if (i / 500).is_multiple_of(2) { 70 } else { 30 } {
            let one = vec![i as u8; 1 + (seed >> 40) as usize % 300];
            if spool.push(&one).unwrap() {
                waiting.push_back(one);
            } else {
                full += 1;
                let bytes: usize = waiting.iter().map(|one| one.len() + 16).sum();
                assert!(bytes > 4_500, "at least half of the file is used: {bytes}");
            }
        } else if (seed >> 50) % 40 == 0 {
            // The consumer has left.
            spool.rewind();
            sent = 0;
        } else if spool.next(&mut payload).unwrap() == Next::Payload {
            taken += 1;
            assert_eq!(payload, waiting[sent]);
            spool.send(payload.len());
            sent += 1;
            let confirmed = (seed >> 45) as usize % (sent + 1);
            spool.confirm(confirmed as u64).unwrap();
            waiting.drain(..confirmed);
            sent -= confirmed;
        } else {
            assert_eq!((sent, spool.is_sent()), (waiting.len(), true));
            spool.confirm(sent as u64).unwrap();
            waiting.clear();
            sent = 0;
            assert!(!path.exists());
        }
        assert_eq!((spool.len(), spool.sent()), (waiting.len() as u64, sent as u64));
        assert!(fs::metadata(&path).map_or(0, |metadata| metadata.len()) <= 10_000);
    }
    assert!(full > 100 && taken > 4_000, "{full} {taken}");
}

#[test]
fn another_run_finds_waiting_payloads() {
    let folder = Folder::new();
    let path = folder.as_path().join("c.spool");
    let mut spool = SpoolFile::open(path.clone(), 1_000_000, false).unwrap();
    for i in 1..=9u8 {
        assert!(spool.push(&vec![i; i.into()]).unwrap());
    }
    let mut payload = Vec::new();
    for i in 1..=3 {
        assert_eq!(spool.next(&mut payload).unwrap(), Next::Payload);
        spool.send(i);
    }
    // Sent payloads wait for the other run, unless they are confirmed.
    spool.confirm(1).unwrap();
    let busy = SpoolFile::open(path.clone(), 1_000_000, false).unwrap_err();
    assert!(busy.to_string().contains("another process uses it"), "{busy}");
    drop(spool);
    // The last was not written to its end.
    let size = fs::metadata(&path).unwrap().len();
    OpenOptions::new().write(true).open(&path).unwrap().set_len(size - 1).unwrap();
    let mut spool = SpoolFile::open(path.clone(), 1_000_000, false).unwrap();
    assert_eq!(spool.len(), 7);
    for i in 2..=8u8 {
        assert_eq!(spool.next(&mut payload).unwrap(), Next::Payload);
        assert_eq!(payload, vec![i; i.into()]);
        spool.send(payload.len());
    }
    spool.confirm(7).unwrap();
    assert_eq!(spool.next(&mut payload).unwrap(), Next::Nothing);
    assert!(!path.exists());
    // Something else is left alone.
    for other in [&b"{\"property\":\"p\"}"[..], b"x"] {
        fs::write(&path, other).unwrap();
        assert!(SpoolFile::open(path.clone(), 1_000_000, false).is_err());
        assert_eq!(fs::read(&path).unwrap(), other);
    }
}

#[test]
fn file_without_checksums_stays_in_use() {
    let folder = Folder::new();
    let path = folder.as_path().join("d.spool");
    let old = |payloads: &[&[u8]], tail: &[u8]| {
        let mut bytes = [&UNCHECKED[..], &UNCHECKED_BEGIN.to_le_bytes()].concat();
        for payload in payloads {
            bytes.extend_from_slice(&(payload.len() as u32).to_le_bytes());
            bytes.extend_from_slice(payload);
        }
        fs::write(&path, [&bytes, tail].concat()).unwrap();
        SpoolFile::open(path.clone(), 1_000_000, false).unwrap()
    };
    let mut spool = old(&[b"one", b"two"], &[]);
    assert_eq!((spool.len(), spool.damage()), (2, Damage::default()));
    assert!(spool.push(b"three").unwrap());
    drop(spool);
    let mut spool = SpoolFile::open(path.clone(), 1_000_000, false).unwrap();
    let mut payload = Vec::new();
    for expected in ["one", "two", "three"] {
        assert_eq!(spool.next(&mut payload).unwrap(), Next::Payload);
        assert_eq!(payload, expected.as_bytes());
        spool.send(payload.len());
        spool.confirm(1).unwrap();
    }
    // The next one has them.
    assert!(spool.push(b"four").unwrap());
    assert!(fs::read(&path).unwrap().starts_with(MAGIC));
    drop(spool);
    // One that was not written to its end is no damage, a length that is too large is.
    assert_eq!(old(&[b"one"], &[0, 0, 0, 0, 7]).damage().payloads, 0);
    let spool = old(&[b"one"], &[9, 0, 0, 0, 7]);
    assert_eq!((spool.len(), spool.damage().payloads), (1, 1));
}

#[test]
fn damage_loses_only_the_damaged_payloads() {
    let folder = Folder::new();
    let path = folder.as_path().join("e.spool");
    let (mut lost, mut whole, mut begins) = (0, 0, 0);
    for (round, seed) in rondel_testkit::fresh_seeds("spool-damage", 400).enumerate() {
        let mut random = Random::new(seed);
        let mut spool = SpoolFile::open(path.clone(), 1_000_000, false).unwrap();
        assert_eq!((spool.len(), spool.damage()), (0, Damage::default()));
        let count = 2 + random.below(40);
        let payload = |number: u64| format!("{number}:{}", "z".repeat((number * 37 % 90) as usize));
        let mut ends = Vec::new();
        for number in 0..count {
            assert!(spool.push(payload(number).as_bytes()).unwrap());
            ends.push(spool.end);
        }
        let confirmed = random.below(count);
        let mut read = Vec::new();
        for _ in 0..confirmed {
            assert_eq!(spool.next(&mut read).unwrap(), Next::Payload);
            spool.send(read.len());
        }
        spool.confirm(confirmed).unwrap();
        drop(spool);
        let mut bytes = fs::read(&path).unwrap();
        // Behind the first bytes, which say that it is a spool; now and then where the payloads begin.
        let until = if round % 10 == 0 { BEGIN } else { bytes.len() as u64 };
        let from = 8 + random.below(until - 8) as usize;
        let to = (from + 1 + random.below(60) as usize).min(bytes.len());
        bytes[from..to].iter_mut().for_each(|byte| *byte ^= 1 + random.below(255) as u8);
        fs::write(&path, &bytes).unwrap();
        let is_hit = |number: u64| {
            let begin = if number == 0 { BEGIN } else { ends[number as usize - 1] };
            (from as u64) < ends[number as usize] && to as u64 > begin
        };
        let mut spool = SpoolFile::open(path.clone(), 1_000_000, false).unwrap();
        let damage = spool.damage();
        assert_eq!(damage.begin, from < BEGIN as usize);
        begins += u64::from(damage.begin);
        let first = if damage.begin { 0 } else { confirmed };
        let hit = (first..count).filter(|number| is_hit(*number)).count() as u64;
        // At the end, or where the begin is not known, it may be more than can be said.
        assert!(damage.payloads <= hit && (hit == 0) == (damage.payloads == 0), "{damage:?} of {hit}");
        let is_last = is_hit(count - 1);
        assert!(is_last || damage.begin || damage.payloads == hit, "{damage:?} of {hit}");
        let opened_again = spool.len();
        drop(spool);
        // Once said, not said again.
        spool = SpoolFile::open(path.clone(), 1_000_000, false).unwrap();
        assert_eq!((spool.len(), spool.damage().payloads), (opened_again, 0));
        assert!(spool.push(b"behind").unwrap());
        let mut expected: Vec<String> = (first..count).filter(|n| !is_hit(*n)).map(payload).collect();
        (lost, whole) = (lost + hit, whole + expected.len());
        expected.push("behind".to_owned());
        for expected in expected {
            assert_eq!(spool.next(&mut read).unwrap(), Next::Payload);
            assert_eq!(String::from_utf8_lossy(&read), expected);
            spool.send(read.len());
            spool.confirm(1).unwrap();
        }
        assert_eq!((spool.next(&mut read).unwrap(), path.exists()), (Next::Nothing, false));
    }
    assert!(
        rondel_testkit::is_replay() || lost > 200 && whole > 2_000 && begins >= 40,
        "{lost} {whole} {begins}"
    );
}

#[test]
fn damage_of_an_open_file_costs_one_payload() {
    let folder = Folder::new();
    let path = folder.as_path().join("f.spool");
    let mut spool = SpoolFile::open(path.clone(), 1_000_000, false).unwrap();
    for text in ["one", "two", "three"] {
        assert!(spool.push(text.as_bytes()).unwrap());
    }
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all_at(b"T", BEGIN + 2 * HEAD + 3).unwrap();
    let (mut read, mut found) = (Vec::new(), Vec::new());
    loop {
        found.push(spool.next(&mut read).unwrap());
        if found.ends_with(&[Next::Nothing]) {
            break;
        }
        spool.send(read.len());
    }
    assert_eq!(found, [Next::Payload, Next::Damaged, Next::Payload, Next::Nothing]);
}

#[test]
fn last_payload_has_room_in_a_full_file() {
    let folder = Folder::new();
    let path = folder.as_path().join("f.spool");
    let mut spool = SpoolFile::open(path.clone(), 1_000, false).unwrap();
    while spool.push(&[7; 100]).unwrap() {}
    while spool.push(&[7]).unwrap() {}
    let count = spool.len();
    assert!(spool.push_beyond_limit(b"last").unwrap() && !spool.push(b"further").unwrap());
    drop(spool);
    assert_eq!(SpoolFile::open(path, 1_000, false).unwrap().len(), count + 1);
}
