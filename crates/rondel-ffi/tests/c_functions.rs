//! The functions, called as C calls them: results, and wrong arguments.

#![allow(clippy::unwrap_used, clippy::expect_used)] // a test

use std::ffi::{CStr, c_char, c_void};
use std::ptr::{null, null_mut};
use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi, to_ffi};
use arrow_array::{
    Array, ArrayRef, BinaryArray, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray, StructArray,
};
use rondel_ffi::*;

const TEXT: &str = "topic t { x: float }  property p = t.x < 3";
const FLEET: &str = "topic t { id: int, x: float }  property p for each i in t.id = once[0, 9 s] t.x > 3";

fn last() -> String {
    // SAFETY: no call fails meanwhile.
    unsafe { CStr::from_ptr(rondel_last_error()) }.to_str().unwrap().to_owned()
}

fn text(text: Text) -> String {
    // SAFETY: a text of the library, before the next call.
    let bytes = unsafe { std::slice::from_raw_parts(text.data.cast::<u8>(), text.length + 1) };
    assert_eq!(bytes.last(), Some(&0));
    String::from_utf8(bytes[..text.length].to_vec()).unwrap()
}

fn compile(source: &str) -> (Status, *mut Specification) {
    let mut out = null_mut();
    // SAFETY: valid arguments.
    let status = unsafe { rondel_specification_compile(source.as_ptr().cast(), source.len(), &raw mut out) };
    (status, out)
}

/// A monitor, which is freed at its end.
struct Opened(*mut Monitor);

impl Opened {
    fn new(source: &str, options: Option<&Options>) -> Result<Opened, Status> {
        Opened::start(source, |specification, out| {
            let options = options.map_or(null(), std::ptr::from_ref);
            // SAFETY: valid arguments.
            unsafe { rondel_monitor_open(specification, options, out) }
        })
    }

    fn start(
        source: &str,
        open: impl FnOnce(*const Specification, *mut *mut Monitor) -> Status,
    ) -> Result<Opened, Status> {
        let (status, specification) = compile(source);
        assert_eq!(status, RONDEL_OK, "{}", last());
        let mut monitor = null_mut();
        let status = open(specification, &raw mut monitor);
        // SAFETY: from the library, freed once.
        unsafe { rondel_specification_free(specification) };
        if status == RONDEL_OK {
            return Ok(Opened(monitor));
        }
        assert!(monitor.is_null());
        Err(status)
    }

    fn topic(&self, name: &str) -> Topic {
        let mut topic = Topic { index: 0, name: 0 };
        // SAFETY: valid arguments.
        let status =
            unsafe { rondel_monitor_topic(self.0, name.as_ptr().cast(), name.len(), &raw mut topic) };
        assert_eq!(status, RONDEL_OK, "{}", last());
        topic
    }

    fn push(&self, time: i64, payload: &[u8]) -> Status {
        // SAFETY: valid arguments.
        unsafe { rondel_monitor_push(self.0, self.topic("t"), time, payload.as_ptr().cast(), payload.len()) }
    }

    /// The verdicts as networks publish them.
    fn reports(&self) -> Vec<String> {
        let mut all = Vec::new();
        let mut report = std::mem::MaybeUninit::<Report>::uninit();
        // SAFETY: valid arguments; the result is there with RONDEL_OK.
        while unsafe { rondel_monitor_next_report(self.0, report.as_mut_ptr()) } == RONDEL_OK {
            // SAFETY: as above.
            all.push(text(unsafe { report.assume_init() }.json));
        }
        all
    }

    fn push_columns(&self, rows: &StructArray, refused: Option<&mut usize>) -> Status {
        let (mut array, schema) = to_ffi(&rows.to_data()).unwrap();
        let (name, refused) = ("time", refused.map_or(null_mut(), std::ptr::from_mut));
        // SAFETY: valid arguments; the array is moved out.
        let status = unsafe {
            rondel_monitor_push_columns(
                self.0,
                self.topic("t"),
                name.as_ptr().cast(),
                name.len(),
                &raw mut array,
                &raw const schema,
                refused,
            )
        };
        assert!(array.is_released());
        status
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // SAFETY: from the library, freed once.
        unsafe { rondel_monitor_free(self.0) };
    }
}

fn rows(columns: &[(&str, ArrayRef)]) -> StructArray {
    StructArray::from(RecordBatch::try_from_iter(columns.iter().cloned()).unwrap())
}

#[test]
fn diagnostics_have_places_and_are_freed() {
    let (status, specification) = compile("topic t { x: int }\nproperty p = t.y > 0");
    assert_eq!(status, RONDEL_ERROR_SPECIFICATION);
    assert!(last().contains("unknown field 'y'"));
    let mut found = std::mem::MaybeUninit::<Diagnostic>::uninit();
    // SAFETY: valid arguments, or null, which is allowed or refused; the specification is freed once.
    unsafe {
        assert_eq!(rondel_specification_diagnostics(specification), 1);
        assert_eq!(rondel_specification_properties(specification), 0);
        assert_eq!(rondel_specification_diagnostic(specification, 0, found.as_mut_ptr()), RONDEL_OK);
        let found = found.assume_init();
        assert_eq!(text(found.message), "unknown field 'y' in topic 't'");
        assert_eq!((found.line, found.column, found.severity), (2, 16, RONDEL_ERROR));
        assert_eq!((found.start, found.end), (34, 35));
        assert!(text(rondel_specification_rendered(specification)).contains("specification:2:16"));
        assert_eq!(rondel_specification_diagnostic(specification, 1, null_mut()), RONDEL_ERROR_ARGUMENT);
        let mut monitor = null_mut();
        assert_eq!(rondel_monitor_open(specification, null(), &raw mut monitor), RONDEL_ERROR_SPECIFICATION);
        assert!(monitor.is_null());
        rondel_specification_free(specification);
        rondel_specification_free(null_mut());
        assert_eq!(rondel_specification_topics(null()), 0);
        assert_eq!(rondel_specification_rendered(null()).length, 0);
    }
    let (status, specification) = compile(TEXT);
    assert_eq!(status, RONDEL_OK);
    let mut name = Text::EMPTY;
    // SAFETY: valid arguments; freed once.
    unsafe {
        assert_eq!(rondel_specification_topic(specification, 0, &raw mut name), RONDEL_OK);
        assert_eq!(text(name), "t");
        assert_eq!(rondel_specification_property(specification, 0, &raw mut name), RONDEL_OK);
        assert_eq!(text(name), "p");
        assert_eq!(rondel_specification_property(specification, 1, &raw mut name), RONDEL_ERROR_ARGUMENT);
        rondel_specification_free(specification);
    }
    assert_eq!(last(), "there is no property 1: there are 1");
}

#[test]
fn null_pointers_and_wrong_texts_are_refused() {
    let mut specification = null_mut();
    // SAFETY: null is refused.
    unsafe {
        assert_eq!(rondel_specification_compile(null(), 3, &raw mut specification), RONDEL_ERROR_ARGUMENT);
        assert_eq!(last(), "`source` is null");
        assert_eq!(rondel_specification_compile(TEXT.as_ptr().cast(), 3, null_mut()), RONDEL_ERROR_ARGUMENT);
        let wrong = b"topic \xff";
        assert_eq!(
            rondel_specification_compile(wrong.as_ptr().cast(), wrong.len(), &raw mut specification),
            RONDEL_ERROR_ARGUMENT
        );
        assert_eq!(last(), "`source` is not UTF-8 at byte 6");
        let too_long = usize::MAX - 1;
        assert_eq!(
            rondel_specification_compile(wrong.as_ptr().cast(), too_long, &raw mut specification),
            RONDEL_ERROR_ARGUMENT
        );
        assert!(specification.is_null());
    }
    let monitor = Opened::new(TEXT, None).unwrap();
    let topic = monitor.topic("t");
    // SAFETY: null is refused or allowed.
    unsafe {
        assert_eq!(rondel_monitor_open(null(), null(), null_mut()), RONDEL_ERROR_ARGUMENT);
        assert_eq!(rondel_monitor_topic(monitor.0, null(), 1, null_mut()), RONDEL_ERROR_ARGUMENT);
        assert_eq!(rondel_monitor_push(null(), topic, 0, null(), 0), RONDEL_ERROR_ARGUMENT);
        assert_eq!(rondel_monitor_push(monitor.0, topic, 0, null(), 1), RONDEL_ERROR_ARGUMENT);
        assert_eq!(
            rondel_monitor_push(monitor.0, topic, 0, null(), RONDEL_NUL_TERMINATED),
            RONDEL_ERROR_ARGUMENT
        );
        assert_eq!(rondel_monitor_push_batch(monitor.0, null(), 1, null_mut()), RONDEL_ERROR_ARGUMENT);
        assert_eq!(rondel_monitor_push_batch(monitor.0, null(), 0, null_mut()), RONDEL_OK);
        assert_eq!(
            rondel_monitor_push_columns(monitor.0, topic, null(), 0, null_mut(), null(), null_mut()),
            RONDEL_ERROR_ARGUMENT
        );
        assert_eq!(rondel_monitor_advance(null(), 0), RONDEL_ERROR_ARGUMENT);
        assert_eq!(rondel_monitor_finish(null()), RONDEL_ERROR_ARGUMENT);
        assert_eq!(rondel_monitor_deadline(monitor.0, null_mut()), RONDEL_ERROR_ARGUMENT);
        assert_eq!(rondel_monitor_next_report(monitor.0, null_mut()), RONDEL_ERROR_ARGUMENT);
        assert_eq!(rondel_monitor_next_notice(null(), null_mut()), RONDEL_ERROR_ARGUMENT);
        assert_eq!(rondel_monitor_take_reports(monitor.0, null_mut(), null_mut()), RONDEL_ERROR_ARGUMENT);
        assert_eq!(rondel_monitor_summary(monitor.0, null_mut()), RONDEL_ERROR_ARGUMENT);
        assert_eq!(rondel_monitor_snapshot(monitor.0, null_mut()), RONDEL_ERROR_ARGUMENT);
        rondel_bytes_free(Bytes::EMPTY);
        rondel_monitor_free(null_mut());
    }
    for wrong in [Topic { index: 1, ..topic }, Topic { name: 0, ..topic }, Topic { index: u32::MAX, ..topic }]
    {
        // SAFETY: valid arguments.
        let status = unsafe { rondel_monitor_push(monitor.0, wrong, 0, b"{}".as_ptr().cast(), 2) };
        assert_eq!(status, RONDEL_ERROR_ARGUMENT);
        assert!(last().contains("rondel_monitor_topic"));
    }
    let mut found = topic;
    // SAFETY: valid arguments.
    let status =
        unsafe { rondel_monitor_topic(monitor.0, c"u".as_ptr(), RONDEL_NUL_TERMINATED, &raw mut found) };
    assert_eq!(
        (status, last().as_str()),
        (RONDEL_ERROR_ARGUMENT, "the specification has no topic 'u'; it has t")
    );
}

#[test]
fn verdicts_are_taken_one_by_one_until_the_end() {
    let monitor = Opened::new(TEXT, None).unwrap();
    assert_eq!(monitor.push(1_000_000_000, br#"{"x": 1}"#), RONDEL_OK);
    assert_eq!(monitor.push(2_000_000_000, br#"{"x": 5}"#), RONDEL_OK);
    let expected = [
        r#"{"property":"p","time":1,"step":0,"verdict":"satisfied"}"#,
        r#"{"property":"p","time":2,"step":1,"verdict":"violated"}"#,
    ];
    assert_eq!(monitor.reports(), expected);
    assert!(monitor.reports().is_empty());
    assert_eq!(monitor.push(3_000_000_000, b"{"), RONDEL_ERROR_MESSAGE);
    let mut notice = std::mem::MaybeUninit::<Notice>::uninit();
    let mut out = Text::EMPTY;
    let mut deadline = 0;
    let mut nothing = Bytes::EMPTY;
    // SAFETY: valid arguments; the result is there with RONDEL_OK.
    unsafe {
        assert_eq!(rondel_monitor_next_notice(monitor.0, notice.as_mut_ptr()), RONDEL_OK);
        let notice = notice.assume_init();
        assert_eq!((text(notice.kind), text(notice.topic)), ("undecodable".into(), "t".into()));
        assert!(text(notice.json).contains("\"report\":\"undecodable\""));
        assert_eq!(rondel_monitor_deadline(monitor.0, &raw mut deadline), RONDEL_END);
        assert_eq!(rondel_monitor_finish(monitor.0), RONDEL_OK);
        assert_eq!(rondel_monitor_finish(monitor.0), RONDEL_OK);
        assert_eq!(rondel_monitor_advance(monitor.0, 9), RONDEL_ERROR_FINISHED);
        assert_eq!(rondel_monitor_snapshot(monitor.0, &raw mut nothing), RONDEL_ERROR_FINISHED);
        assert_eq!(rondel_monitor_summary(monitor.0, &raw mut out), RONDEL_OK);
    }
    assert_eq!(monitor.push(4_000_000_000, br#"{"x": 5}"#), RONDEL_ERROR_FINISHED);
    assert!(last().starts_with("the monitor is finished"));
    assert!(text(out).contains("\"violations\":1"));
}

#[test]
fn a_batch_evaluates_what_can_be_read() {
    let monitor = Opened::new(TEXT, None).unwrap();
    let topic = monitor.topic("t");
    let message = |time: i64, payload: &'static CStr| Message {
        time,
        payload: payload.as_ptr().cast(),
        length: RONDEL_NUL_TERMINATED,
        topic,
    };
    let batch = [message(1, c"{\"x\": 1}"), message(2, c"no"), message(3, c"{\"x\": 4}"), message(4, c"")];
    let mut refused = 7;
    // SAFETY: valid arguments.
    let status = unsafe { rondel_monitor_push_batch(monitor.0, batch.as_ptr(), 4, &raw mut refused) };
    assert_eq!((status, refused), (RONDEL_ERROR_MESSAGE, 2));
    assert!(last().starts_with("2 messages cannot be read; the first is message 1: "));
    assert!(monitor.reports().iter().any(|report| report.contains("violated")));
    let wrong = [batch[2], Message { topic: Topic { index: 9, name: 9 }, ..batch[0] }];
    // SAFETY: valid arguments.
    let status = unsafe { rondel_monitor_push_batch(monitor.0, wrong.as_ptr(), 2, null_mut()) };
    assert_eq!(status, RONDEL_ERROR_ARGUMENT);
    assert!(last().starts_with("message 1: "));
    assert!(monitor.reports().is_empty());
}

#[test]
fn columns_in_and_reports_out() {
    let monitor = Opened::new(FLEET, None).unwrap();
    let columns = rows(&[
        ("time", Arc::new(Int64Array::from(vec![1, 2, 3]))),
        ("id", Arc::new(Int64Array::from(vec![7, 8, 7]))),
        ("x", Arc::new(Float64Array::from(vec![1.0, 5.0, f64::NAN]))),
        ("other", Arc::new(StringArray::from(vec!["a", "b", "c"]))),
    ]);
    assert_eq!(monitor.push_columns(&columns, None), RONDEL_OK, "{}", last());
    let (mut array, mut schema) = (FFI_ArrowArray::empty(), FFI_ArrowSchema::empty());
    // SAFETY: valid arguments; what is written is read as it is defined.
    let taken = unsafe {
        assert_eq!(rondel_monitor_take_reports(monitor.0, &raw mut array, &raw mut schema), RONDEL_OK);
        StructArray::from(from_ffi(array, &schema).unwrap())
    };
    let column = |name: &str| taken.column_by_name(name).unwrap().to_data();
    let (keys, verdicts) = (StringArray::from(column("key")), StringArray::from(column("verdict")));
    let times = Int64Array::from(column("time_ns"));
    let found: Vec<_> =
        (0..taken.len()).map(|i| (times.value(i), keys.value(i), verdicts.value(i))).collect();
    assert!(found.contains(&(1, r#"{"i":7}"#, "violated")), "{found:?}");
    assert!(found.contains(&(2, r#"{"i":8}"#, "satisfied")), "{found:?}");
    let (mut array, mut schema) = (FFI_ArrowArray::empty(), FFI_ArrowSchema::empty());
    // SAFETY: valid arguments.
    let status = unsafe { rondel_monitor_take_reports(monitor.0, &raw mut array, &raw mut schema) };
    assert_eq!((status, array.is_released()), (RONDEL_END, true));
}

#[test]
fn wrong_columns_are_refused_and_released() {
    let monitor = Opened::new(TEXT, None).unwrap();
    let x: ArrayRef = Arc::new(Float64Array::from(vec![1.0]));
    let time: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let refused = |columns: &[(&str, ArrayRef)]| {
        assert_eq!(monitor.push_columns(&rows(columns), None), RONDEL_ERROR_COLUMNS);
        last()
    };
    assert_eq!(refused(&[("x", x.clone())]), "the table has no column 'time' with the times; it has x");
    assert!(refused(&[("time", time.clone())]).contains("no column 'x'"));
    let integers: ArrayRef = Arc::new(Int32Array::from(vec![1]));
    let text = refused(&[("time", integers), ("x", x.clone())]);
    assert!(text.ends_with("use 64-bit integers of nanoseconds, float seconds, or timestamps"), "{text}");
    let names: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
    assert!(refused(&[("time", time.clone()), ("x", names)]).contains("reads values of the type float"));
    // An array without columns, one that was released, and a schema of another array.
    let (mut array, schema) = to_ffi(&x.to_data()).unwrap();
    let push = |array: *mut FFI_ArrowArray, schema: *const FFI_ArrowSchema| {
        // SAFETY: valid arguments; the array is moved out.
        let status = unsafe {
            rondel_monitor_push_columns(
                monitor.0,
                monitor.topic("t"),
                c"time".as_ptr(),
                4,
                array,
                schema,
                null_mut(),
            )
        };
        (status, last())
    };
    let without = (
        RONDEL_ERROR_COLUMNS,
        "the columns cannot be read: the array has no columns: it must be a structure",
    );
    let (status, text) = push(&raw mut array, &raw const schema);
    assert_eq!((status, text.as_str()), without);
    assert!(array.is_released());
    let both = rows(&[("time", time), ("x", x)]);
    let (mut array, schema) = to_ffi(&both.to_data()).unwrap();
    assert_eq!(push(&raw mut array, &raw const schema).0, RONDEL_OK);
    assert!(push(&raw mut array, &raw const schema).1.contains("was released"));
    let one = rows(&[("x", Arc::new(Float64Array::from(vec![1.0])))]);
    let (mut array, _) = to_ffi(&one.to_data()).unwrap();
    assert!(push(&raw mut array, &raw const schema).1.contains("different numbers of children"));
    assert_eq!(push(null_mut(), &raw const schema).0, RONDEL_ERROR_ARGUMENT);
}

#[test]
fn text_of_columns_that_is_not_utf8_is_refused() {
    let monitor = Opened::new("topic t { s: string }  property p = t.s == 'a'", None).unwrap();
    let time: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let bytes: ArrayRef = Arc::new(BinaryArray::from(vec![&b"a\xff"[..]]));
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["ab"]));
    // Both have the same buffers.
    let (mut array, _) = to_ffi(&rows(&[("time", time.clone()), ("s", bytes)]).to_data()).unwrap();
    let (_, schema) = to_ffi(&rows(&[("time", time), ("s", texts)]).to_data()).unwrap();
    // SAFETY: valid arguments; the array is moved out.
    let status = unsafe {
        rondel_monitor_push_columns(
            monitor.0,
            monitor.topic("t"),
            c"time".as_ptr(),
            RONDEL_NUL_TERMINATED,
            &raw mut array,
            &raw const schema,
            null_mut(),
        )
    };
    assert_eq!((status, array.is_released()), (RONDEL_ERROR_COLUMNS, true));
    assert!(last().contains("the columns cannot be read"));
}

fn options() -> Options {
    Options { inputs: null(), input_count: 0, instance_bytes: 0, emit: 0, encoding: 0, explain: 0 }
}

#[test]
fn encodings_and_options_are_checked() {
    let emit = Options { emit: 9, ..options() };
    assert_eq!(Opened::new(TEXT, Some(&emit)).map(drop), Err(RONDEL_ERROR_ARGUMENT));
    let encoding = Options { encoding: -1, ..options() };
    assert_eq!(Opened::new(TEXT, Some(&encoding)).map(drop), Err(RONDEL_ERROR_ARGUMENT));
    // A type is missing.
    let encoding = Options { encoding: RONDEL_PROTOBUF, ..options() };
    assert_eq!(Opened::new(TEXT, Some(&encoding)).map(drop), Err(RONDEL_ERROR_SPECIFICATION));
    let of = |text: &'static str| Text { data: text.as_ptr().cast::<c_char>(), length: text.len() };
    let input =
        |topic: &'static str, encoding: i32, type_name: &'static str, definition: &'static [u8]| Input {
            topic: of(topic),
            type_name: of(type_name),
            definition: definition.as_ptr().cast::<c_void>(),
            definition_length: definition.len(),
            encoding,
        };
    let open = |input: &Input| {
        let options = Options { inputs: input, input_count: 1, ..options() };
        Opened::new(TEXT, Some(&options)).map_err(|status| (status, last()))
    };
    let refused = |input: Input| open(&input).map(drop).unwrap_err();
    assert_eq!(refused(input("u", RONDEL_CBOR, "", b"")).1, "the specification has no topic 'u'; it has t");
    assert!(refused(input("t", RONDEL_CBOR, "T", b"")).1.contains("have no type"));
    assert!(refused(input("t", RONDEL_CDR, "", b"")).1.contains("need a type"));
    assert!(refused(input("t", RONDEL_CDR, "m/T", b"struct \xff")).1.contains("not UTF-8"));
    assert!(refused(input("t", RONDEL_PROTOBUF, "T", b"no")).1.starts_with("topic 't': "));
    assert!(refused(input("t", RONDEL_FLATBUFFERS, "T", b"no")).1.starts_with("topic 't': "));
    let idl = b"module m { struct T { double x; }; };";
    let monitor = open(&input("t", RONDEL_CDR, "m/T", idl)).unwrap();
    let mut payload = vec![0, 1, 0, 0];
    payload.extend(5.0_f64.to_le_bytes());
    assert_eq!(monitor.push(1, &payload), RONDEL_OK, "{}", last());
    assert!(monitor.reports()[0].contains("violated"));
    let columns = rows(&[
        ("time", Arc::new(Int64Array::from(vec![2]))),
        ("x", Arc::new(Float64Array::from(vec![1.0]))),
    ]);
    assert_eq!(monitor.push_columns(&columns, None), RONDEL_ERROR_ARGUMENT);
    let monitor = open(&input("t", RONDEL_CBOR, "", b"")).unwrap();
    // {"x": 5}
    assert_eq!(monitor.push(1, &[0xa1, 0x61, b'x', 0x05]), RONDEL_OK, "{}", last());
    assert!(monitor.reports()[0].contains("violated"));
}

#[test]
fn snapshots_continue_whole_and_in_parts() {
    let monitor = Opened::new(FLEET, None).unwrap();
    for (time, payload) in [(1, br#"{"id": 7, "x": 4}"#), (2, br#"{"id": 8, "x": 4}"#)] {
        assert_eq!(monitor.push(time, payload), RONDEL_OK);
    }
    let half = RONDEL_KEY_HASHES / 2;
    let (mut whole, mut low, mut high) = (Bytes::EMPTY, Bytes::EMPTY, Bytes::EMPTY);
    let mut nothing = Bytes::EMPTY;
    // SAFETY: valid arguments.
    unsafe {
        assert_eq!(rondel_monitor_snapshot(monitor.0, &raw mut whole), RONDEL_OK);
        assert_eq!(rondel_monitor_snapshot_part(monitor.0, 0, half, &raw mut low), RONDEL_OK);
        assert_eq!(
            rondel_monitor_snapshot_part(monitor.0, half, RONDEL_KEY_HASHES, &raw mut high),
            RONDEL_OK
        );
        let wrong = rondel_monitor_snapshot_part(monitor.0, half, half - 1, &raw mut nothing);
        assert_eq!(wrong, RONDEL_ERROR_ARGUMENT);
        let cuts = [0, half, RONDEL_KEY_HASHES];
        let mut both = [Bytes::EMPTY; 2];
        let parts = |cuts: &[u64], out: *mut Bytes| {
            rondel_monitor_snapshot_parts(monitor.0, cuts.as_ptr(), cuts.len() - 1, out)
        };
        assert_eq!(parts(&cuts, both.as_mut_ptr()), RONDEL_OK);
        for (part, one) in both.into_iter().zip([low, high]) {
            assert_eq!(part.length, one.length);
            rondel_bytes_free(part);
        }
        assert_eq!(parts(&[half, 0, half], both.as_mut_ptr()), RONDEL_ERROR_ARGUMENT);
        assert!(both.iter().all(|part| part.data.is_null()));
        assert_eq!(parts(&[0, half, half + RONDEL_KEY_HASHES], both.as_mut_ptr()), RONDEL_ERROR_ARGUMENT);
        assert_eq!(parts(&cuts, std::ptr::null_mut()), RONDEL_ERROR_ARGUMENT);
        assert_eq!(parts(&[0], std::ptr::null_mut()), RONDEL_OK);
    }
    let restore = |bytes: Bytes| {
        // SAFETY: valid arguments.
        Opened::start(FLEET, |of, out| unsafe {
            rondel_monitor_restore(of, null(), bytes.data, bytes.length, out)
        })
    };
    let join = |parts: &[Bytes]| {
        // SAFETY: valid arguments.
        Opened::start(FLEET, |of, out| unsafe {
            rondel_monitor_restore_parts(of, null(), parts.as_ptr(), parts.len(), out)
        })
    };
    for continued in [restore(whole).unwrap(), join(&[low, high]).unwrap()] {
        assert_eq!(continued.push(3, br#"{"id": 7, "x": 1}"#), RONDEL_OK);
        // Still satisfied: no change.
        assert!(continued.reports().is_empty());
    }
    assert_eq!(restore(low).map(drop), Err(RONDEL_ERROR_SNAPSHOT));
    assert_eq!(restore(Bytes::EMPTY).map(drop), Err(RONDEL_ERROR_SNAPSHOT));
    assert_eq!(join(&[low, low]).map(drop), Err(RONDEL_ERROR_SNAPSHOT));
    assert_eq!(last(), "the ranges of parts 0 and 1 overlap");
    assert_eq!(join(&[]).map(drop), Err(RONDEL_ERROR_SNAPSHOT));
    // SAFETY: from the library, freed once.
    unsafe { [whole, low, high].into_iter().for_each(|bytes| rondel_bytes_free(bytes)) };
}

#[test]
fn hashes_of_keys_are_those_of_the_engine() {
    let hash = |parameters: &str| {
        let mut out = 0;
        // SAFETY: valid arguments.
        let status = unsafe { rondel_key_hash(parameters.as_ptr().cast(), parameters.len(), &raw mut out) };
        if status == RONDEL_OK { Ok(out) } else { Err(last()) }
    };
    assert_eq!(hash("[7]"), Ok(196_479_209));
    assert_eq!(hash("[\"r7\"]"), Ok(2_576_826_288));
    assert_ne!(hash("[7.0]"), hash("[7]"));
    for wrong in ["7", "[null]", "[[1]]", "[18446744073709551615]", "["] {
        assert!(hash(wrong).unwrap_err().starts_with("`parameters` "), "{wrong}");
    }
}

#[test]
fn threads_take_turns() {
    struct Shared(*mut Monitor);
    // SAFETY: the interface allows several threads.
    unsafe impl Sync for Shared {}
    let monitor = Opened::new(TEXT, None).unwrap();
    let (topic, shared) = (monitor.topic("t"), &Shared(monitor.0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(move || {
                for _ in 0..500 {
                    // SAFETY: valid arguments.
                    let pushed =
                        unsafe { rondel_monitor_push(shared.0, topic, 1, b"{\"x\": 1}".as_ptr().cast(), 8) };
                    assert_eq!(pushed, RONDEL_OK);
                }
            });
        }
    });
    let mut summary = Text::EMPTY;
    // SAFETY: valid arguments.
    unsafe { assert_eq!(rondel_monitor_summary(monitor.0, &raw mut summary), RONDEL_OK) };
    assert!(text(summary).contains("\"checked\":2000"));
}

#[test]
fn the_version_is_there() {
    assert_eq!(rondel_abi_version(), RONDEL_ABI_VERSION);
    // SAFETY: a text of the library.
    let version = unsafe { CStr::from_ptr(rondel_version()) };
    assert_eq!(version.to_str(), Ok(env!("CARGO_PKG_VERSION")));
}
