//! Publishers of one topic that have different types: each message is read by its own.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use rondel_decode::MessageType;
use rondel_decode::schema::Library;
use rondel_event::{Path, Timestamp, TopicId, TypeIndex, Verdict};
use rondel_runtime::alignment::Policy;
use rondel_runtime::{
    Alignment, Encoding, Input, Options, PublisherType, Reason, Session, SessionPlan, Specification, Stamp,
    TimeSource,
};

const A: TopicId = TopicId(0);

fn of(definition: &str, publisher: &str) -> PublisherType {
    let mut library = Library::new();
    library.add_msg("p/msg/A", definition).unwrap();
    let message_type = Some(Arc::new(MessageType::Cdr(library.schema("p/msg/A").unwrap())));
    PublisherType { encoding: Encoding::Cdr, message_type, publisher: publisher.to_owned() }
}

fn spec(text: &str) -> rondel_spec::Spec {
    rondel_spec::parse(text).spec.unwrap()
}

fn plan(formula: &str) -> SessionPlan {
    SessionPlan::new(&spec(&format!("topic a property p = {formula}")), Options::default()).unwrap()
}

fn cdr(parts: &[&[u8]]) -> Vec<u8> {
    [&[0, 1, 0, 0], parts.concat().as_slice()].concat()
}

fn push(session: &mut Session, second: i64, of_type: u16, payload: &[u8]) {
    let stamp = Stamp::at(Timestamp::from_nanos(second * 1_000_000_000));
    let stamp = Stamp { of_type: TypeIndex(of_type), ..stamp };
    session.push(A, stamp, payload).unwrap();
}

fn verdicts(session: &mut Session) -> Vec<Verdict> {
    session.finish();
    session.reports().map(|report| report.verdict()).collect()
}

fn sentences(session: &mut Session) -> Vec<String> {
    session.notices().map(|notice| notice.text(&mut |time| time.to_string())).collect()
}

#[test]
fn each_type_is_decoded_by_its_own_definition() {
    let mut plan = plan("a.v < 5");
    let types = vec![of("float64 v", "channel 1"), of("int32 extra\nfloat64 v", "channel 2")];
    assert_eq!(plan.set_types(A, types), [Ok(TypeIndex(0)), Ok(TypeIndex(1))]);
    let mut session = plan.start().unwrap();
    assert_eq!(
        sentences(&mut session),
        [
            "publishers have different types; each is read as its own: field `extra` is new in p/msg/A of channel 2"
        ]
    );
    push(&mut session, 1, 0, &cdr(&[&1.0_f64.to_le_bytes()]));
    push(&mut session, 2, 1, &cdr(&[&7_i32.to_le_bytes(), &[0; 4], &9.0_f64.to_le_bytes()]));
    push(&mut session, 3, 0, &cdr(&[&2.0_f64.to_le_bytes()]));
    assert_eq!(verdicts(&mut session), [Verdict::Satisfied, Verdict::Violated, Verdict::Satisfied]);
    assert_eq!(session.summary().counts.checked, 3);
    assert!(session.summary().omitted().is_empty());
}

/// The first type in the recording need not be the one with all fields.
#[test]
fn a_missing_field_is_unknown_and_no_error() {
    let mut plan = plan("a.v < 5 and a.w < 5");
    let types = vec![of("float64 v", "channel 1"), of("float64 v\nfloat64 w", "channel 2")];
    assert_eq!(plan.set_types(A, types), [Ok(TypeIndex(1)), Ok(TypeIndex(0))]);
    let mut session = plan.start().unwrap();
    assert_eq!(
        sentences(&mut session),
        ["publishers have different types; each is read as its own: \
          field `w` is missing in p/msg/A of channel 1, and unknown there"]
    );
    let two = [1.0_f64.to_le_bytes(), 1.0_f64.to_le_bytes()].concat();
    push(&mut session, 1, 0, &cdr(&[&two]));
    push(&mut session, 2, 1, &cdr(&[&1.0_f64.to_le_bytes()]));
    push(&mut session, 3, 1, &cdr(&[&9.0_f64.to_le_bytes()]));
    push(&mut session, 4, 0, &cdr(&[&two]));
    let expected = [Verdict::Satisfied, Verdict::Inconclusive, Verdict::Violated, Verdict::Satisfied];
    assert_eq!(verdicts(&mut session), expected);
    assert!(session.summary().omitted().is_empty());
}

#[test]
fn fields_may_be_spread_over_the_types() {
    let mut plan = plan("a.v < 5 or a.w < 5");
    let types = vec![of("float64 v", "channel 1"), of("float64 w", "channel 2")];
    assert_eq!(plan.set_types(A, types), [Ok(TypeIndex(0)), Ok(TypeIndex(1))]);
    let mut session = plan.start().unwrap();
    push(&mut session, 1, 0, &cdr(&[&1.0_f64.to_le_bytes()]));
    push(&mut session, 2, 1, &cdr(&[&2.0_f64.to_le_bytes()]));
    push(&mut session, 3, 1, &cdr(&[&9.0_f64.to_le_bytes()]));
    push(&mut session, 4, 0, &cdr(&[&1.0_f64.to_le_bytes()]));
    assert_eq!(verdicts(&mut session), [Verdict::Satisfied, Verdict::Inconclusive, Verdict::Satisfied]);
    // A field that no type has is an error, as with a single type.
    let mut plan = self::plan("a.v < 5 or a.w < 5 or a.x < 5");
    let types = vec![of("float64 v", "channel 1"), of("float64 w", "channel 2")];
    let found = plan.set_types(A, types);
    assert!(found.iter().all(Result::is_err), "{found:?}");
}

#[test]
fn a_field_of_another_type_is_counted() {
    let mut plan = plan("a.v < 5");
    let types = vec![of("float64 v", ""), of("string v", "channel 2"), of("int32 v", "channel 3")];
    assert_eq!(plan.set_types(A, types), [Ok(TypeIndex(0)), Ok(TypeIndex(1)), Ok(TypeIndex(2))]);
    let mut session = plan.start().unwrap();
    push(&mut session, 1, 0, &cdr(&[&1.0_f64.to_le_bytes()]));
    push(&mut session, 2, 1, &cdr(&[&2_u32.to_le_bytes(), b"9\0"]));
    // An integer is read as a float.
    push(&mut session, 3, 2, &cdr(&[&9_i32.to_le_bytes()]));
    assert_eq!(verdicts(&mut session), [Verdict::Satisfied, Verdict::Inconclusive, Verdict::Violated]);
    let summary = session.summary();
    assert_eq!(summary.counts.checked, 3);
    let omitted = summary.omitted();
    let [omission] = &omitted[..] else { panic!("{omitted:?}") };
    assert_eq!((omission.reason, omission.count), (Reason::OtherFieldType, 1));
    let sentence = omission.sentence(&mut |time| time.to_string());
    assert!(sentence.ends_with("`v` has another type in messages of one publisher"), "{sentence}");
}

#[test]
fn a_type_without_any_field_that_is_read_is_refused() {
    let mut plan = plan("a.v < 5");
    let types = vec![of("float64 v", "channel 1"), of("string other", "channel 2")];
    let found = plan.set_types(A, types);
    assert_eq!(found[0], Ok(TypeIndex(0)));
    let error = found[1].as_ref().unwrap_err().to_string();
    assert!(error.starts_with("field `v`: the message type has no such field"), "{error}");
    // So is one without the field that holds the time.
    let time = TimeSource::Field(Path::keys(["t"]));
    let options = Options { inputs: vec![Input { time, ..Input::default() }], ..Options::default() };
    let mut plan = SessionPlan::new(&spec("topic a property p = a.v < 5"), options).unwrap();
    let found =
        plan.set_types(A, vec![of("float64 v\nfloat64 t", "channel 1"), of("float64 v", "channel 2")]);
    assert!(found[0].is_ok() && found[1].is_err(), "{found:?}");
}

/// A type that is found while the session runs survives a new lap.
#[test]
fn a_type_can_be_added_while_the_session_runs() {
    let input = Input { encoding: Encoding::Cdr, ..Input::default() };
    for policy in [Policy::Arrival, Policy::EventTime] {
        let alignment = Alignment::new(policy);
        let options =
            Options { inputs: vec![input.clone()], types_later: true, alignment, ..Options::default() };
        let mut session = Session::new(&spec("topic a property p = a.v < 5"), options).unwrap();
        let second = of("int32 extra\nfloat64 v", "publisher 2");
        assert!(session.add_type(A, second.clone()).is_err(), "the first type is not known yet");
        session.resolve_type(A, of("float64 v", "").message_type.as_ref().unwrap()).unwrap();
        assert_eq!(session.add_type(A, second.clone()), Ok(TypeIndex(1)));
        assert_eq!(session.add_type(A, second), Ok(TypeIndex(1)), "a type is added once");
        assert_eq!(sentences(&mut session).len(), 1);
        let high = cdr(&[&7_i32.to_le_bytes(), &[0; 4], &9.0_f64.to_le_bytes()]);
        let low = cdr(&[&1.0_f64.to_le_bytes()]);
        for start in [100, 1] {
            for second in 0..4 {
                push(&mut session, start + second, 0, &low);
            }
            push(&mut session, start + 4, 1, &high);
            push(&mut session, start + 5, 1, &high);
        }
        let found = verdicts(&mut session);
        let violated = found.iter().filter(|verdict| **verdict == Verdict::Violated).count();
        assert_eq!(violated, 2, "{policy:?}: {found:?}");
        assert_eq!(session.summary().counts.undecodable, 0);
    }
}

#[test]
fn a_message_of_an_unknown_type_is_counted() {
    let mut plan = plan("a.v < 5");
    assert_eq!(plan.set_types(A, vec![of("float64 v", "")]), [Ok(TypeIndex(0))]);
    let mut session = plan.start().unwrap();
    let stamp = Stamp { of_type: TypeIndex(3), ..Stamp::at(Timestamp::from_nanos(1)) };
    assert!(session.push(A, stamp, &cdr(&[&1.0_f64.to_le_bytes()])).is_err());
    session.finish();
    assert_eq!(session.summary().omitted()[0].reason, Reason::OtherType);
}

#[test]
fn a_synchronizer_passes_each_type_on() {
    let options = Options { alignment: Alignment::new(Policy::Arrival), ..Options::default() };
    let specification = Specification::new(spec("topic a")).unwrap();
    let mut plan = SessionPlan::synchronizer(specification, options);
    let types = vec![of("float64 v", "channel 1"), of("int32 n\nint32 m", "channel 2")];
    assert_eq!(plan.set_types(A, types), [Ok(TypeIndex(0)), Ok(TypeIndex(1))]);
    let mut session = plan.start().unwrap();
    push(&mut session, 1, 0, &cdr(&[&1.5_f64.to_le_bytes()]));
    push(&mut session, 2, 1, &cdr(&[&7_i32.to_le_bytes(), &8_i32.to_le_bytes()]));
    session.finish();
    let mut released = Vec::new();
    while let Some(message) = session.released() {
        released.push(String::from_utf8_lossy(message).into_owned());
    }
    assert_eq!(released, ["{\"time\":1,\"a\":{\"v\":1.5}}", "{\"time\":2,\"a\":{\"n\":7,\"m\":8}}"]);
}
