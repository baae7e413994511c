//! The C interface: functions in any order with random arguments, as far as these are defined. No call panics inside, and
//! handles stay usable.

#![no_main]

use std::ptr::{null, null_mut};

use libfuzzer_sys::fuzz_target;
use rondel_ffi::*;

const SPECIFICATIONS: [&str; 4] = [
    "topic t { x: float, s: string }  property p = t.x < 3 and t.s != 'a'  property alive = age(t) <= 2 s",
    "topic t { id: int, x: float }  topic u \"u/{n}\" { id: int }
     property p for each i in (t.id, u.id) = on(t) -> eventually[0, 2 s] on(u)",
    "topic t { x: float, b: bool }  @robust property p = once[1 s, 3 s] t.x > 2
     machine m { initial a a -> b when t.b b -> a within 2 s when not t.b }",
    "topic t { x: int }  property p = t.y > 0",
];

const PAYLOADS: [&[u8]; 8] = [
    br#"{"x": 1.5, "s": "a", "id": 7, "b": true}"#,
    br#"{"x": NaN, "id": 8, "b": false}"#,
    br#"{"id": 7}"#,
    b"{}",
    b"{\"x\": ",
    b"5",
    &[0xa1, 0x61, b'x', 0x05],
    b"[{\"n\":\"x\",\"v\":1,\"t\":-1}]",
];

/// The input as choices.
struct Choices<'i>(&'i [u8]);

impl<'i> Choices<'i> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn below(&mut self, count: usize) -> usize {
        usize::from(self.byte()) % count
    }

    /// A time near the others, or any.
    fn time(&mut self) -> i64 {
        match self.byte() {
            0 => i64::MAX,
            1 => i64::MIN,
            2 => i64::from_le_bytes([self.byte(), 0, 0, 0, 0, 0, 0, self.byte()]),
            other => i64::from(other) * 100_000_000,
        }
    }

    /// A payload, or bytes of the input.
    fn payload(&mut self) -> &'i [u8] {
        let which = self.below(10);
        if let Some(payload) = PAYLOADS.get(which) {
            return payload;
        }
        let length = self.below(32).min(self.0.len());
        let (payload, rest) = self.0.split_at(length);
        self.0 = rest;
        payload
    }
}

/// A pointer to an option, which is null at times.
fn options(choices: &mut Choices<'_>) -> Options {
    Options {
        inputs: null(),
        input_count: 0,
        instance_bytes: choices.below(3) * 4096,
        emit: choices.below(4) as i32,
        encoding: [RONDEL_JSON, RONDEL_JSON, RONDEL_CBOR, RONDEL_PLAIN, RONDEL_SENML, RONDEL_CDR, 99]
            [choices.below(7)],
        explain: choices.below(2) as i32,
    }
}

fn text(choices: &mut Choices<'_>) -> &'static str {
    ["t", "u", "u/r1", "u/r2", "", "no topic"][choices.below(6)]
}

fn topic(choices: &mut Choices<'_>, monitor: *const Monitor) -> Topic {
    let mut topic = Topic { index: 0, name: RONDEL_NO_NAME };
    let name = text(choices);
    // SAFETY: valid arguments.
    let status = unsafe { rondel_monitor_topic(monitor, name.as_ptr().cast(), name.len(), &raw mut topic) };
    if status != RONDEL_OK && choices.below(4) == 0 {
        topic = Topic { index: choices.byte().into(), name: choices.byte().into() };
    }
    topic
}

/// Takes everything that waits.
///
/// # Safety
/// The monitor is null or valid.
unsafe fn take(monitor: *const Monitor) {
    let mut report = std::mem::MaybeUninit::<Report>::uninit();
    let mut notice = std::mem::MaybeUninit::<Notice>::uninit();
    // SAFETY: the contract of this function; results are read where they are there.
    unsafe {
        while rondel_monitor_next_report(monitor, report.as_mut_ptr()) == RONDEL_OK {
            let found = report.assume_init();
            for text in [found.property, found.severity, found.key, found.explanation, found.json] {
                let bytes = std::slice::from_raw_parts(text.data.cast::<u8>(), text.length + 1);
                assert_eq!(bytes[text.length], 0);
                assert!(std::str::from_utf8(bytes).is_ok());
            }
        }
        while rondel_monitor_next_notice(monitor, notice.as_mut_ptr()) == RONDEL_OK {}
    }
}

/// One call. The specification has no mistakes, or is refused by each call.
///
/// # Safety
/// Both handles are null or valid; the bytes are of the library.
unsafe fn call(
    choices: &mut Choices<'_>,
    specification: *const Specification,
    monitor: &mut *mut Monitor,
    saved: &mut Vec<Bytes>,
) -> Status {
    let own = *monitor;
    // SAFETY: the contract of this function.
    unsafe {
        match choices.below(12) {
            0..=2 => {
                let (topic, time, payload) = (topic(choices, own), choices.time(), choices.payload());
                rondel_monitor_push(own, topic, time, payload.as_ptr().cast(), payload.len())
            }
            3 => {
                let message = |choices: &mut Choices<'_>| {
                    let (topic, time, payload) = (topic(choices, own), choices.time(), choices.payload());
                    Message { time, payload: payload.as_ptr().cast(), length: payload.len(), topic }
                };
                let batch: Vec<Message> = (0..choices.below(70)).map(|_| message(choices)).collect();
                let mut refused = 0;
                let status = rondel_monitor_push_batch(own, batch.as_ptr(), batch.len(), &raw mut refused);
                assert!(refused <= batch.len());
                status
            }
            4 => rondel_monitor_advance(own, choices.time()),
            5 if choices.below(8) == 0 => rondel_monitor_finish(own),
            5 => {
                take(own);
                RONDEL_OK
            }
            6 => {
                let mut bytes = Bytes::EMPTY;
                let ends = [0, 1 << 30, RONDEL_KEY_HASHES / 2, RONDEL_KEY_HASHES, u64::MAX];
                let cuts = [ends[choices.below(5)], ends[choices.below(5)]];
                let status = match choices.below(3) {
                    0 => rondel_monitor_snapshot(own, &raw mut bytes),
                    1 => rondel_monitor_snapshot_part(own, cuts[0], cuts[1], &raw mut bytes),
                    _ => rondel_monitor_snapshot_parts(own, cuts.as_ptr(), 1, &raw mut bytes),
                };
                assert_eq!(status == RONDEL_OK, !bytes.data.is_null());
                saved.push(bytes);
                status
            }
            7 | 8 => {
                let options = options(choices);
                let options = if choices.below(3) == 0 { &raw const options } else { null() };
                let mut restored = null_mut();
                let some = &saved[..choices.below(saved.len() + 1)];
                let status = match (choices.below(2), some.last()) {
                    (0, Some(last)) => rondel_monitor_restore(
                        specification,
                        options,
                        last.data,
                        last.length,
                        &raw mut restored,
                    ),
                    _ => rondel_monitor_restore_parts(
                        specification,
                        options,
                        some.as_ptr(),
                        some.len(),
                        &raw mut restored,
                    ),
                };
                assert_eq!(status == RONDEL_OK, !restored.is_null());
                if status == RONDEL_OK {
                    rondel_monitor_free(std::mem::replace(monitor, restored));
                }
                status
            }
            9 => {
                let mut summary = Text::EMPTY;
                rondel_monitor_summary(own, &raw mut summary)
            }
            10 => {
                let payload = choices.payload();
                let mut hash = 0;
                rondel_key_hash(payload.as_ptr().cast(), payload.len(), &raw mut hash)
            }
            _ => {
                let mut deadline = 0;
                rondel_monitor_deadline(if choices.below(4) == 0 { null() } else { own }, &raw mut deadline)
            }
        }
    }
}

fuzz_target!(|input: &[u8]| {
    let mut choices = Choices(input);
    let source = SPECIFICATIONS[choices.below(SPECIFICATIONS.len())];
    let options = options(&mut choices);
    let (mut specification, mut monitor, mut saved) = (null_mut(), null_mut(), Vec::new());
    // SAFETY: handles and bytes are those of the library, and are freed once.
    unsafe {
        rondel_specification_compile(source.as_ptr().cast(), source.len(), &raw mut specification);
        rondel_monitor_open(specification, &raw const options, &raw mut monitor);
        while !choices.0.is_empty() && saved.len() < 16 {
            let status = call(&mut choices, specification, &mut monitor, &mut saved);
            assert_ne!(status, RONDEL_ERROR_PANIC);
        }
        take(monitor);
        rondel_monitor_free(monitor);
        rondel_specification_free(specification);
        saved.into_iter().for_each(|bytes| rondel_bytes_free(bytes));
    }
});
