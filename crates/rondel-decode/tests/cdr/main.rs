//! Plans against a naive writer by the standard, with random types, values and encodings; and with messages of
//! independent writers.

#![allow(clippy::unwrap_used, clippy::panic)] // a test

#[path = "../common/conditions.rs"]
mod conditions;
mod json;
#[path = "../common/measures.rs"]
mod measures;
mod mutable;
mod peers;
mod random;
mod reads;
mod speed;
mod unions;
mod wide;
mod wire;

use conditions::Coverage;
use random::Tree;
use reads::Reads;
use rondel_decode::cdr::{Check, WideForm};
use rondel_decode::schema::{Extensibility, Library, Schema};
use rondel_event::Block;
use rondel_testkit::Random;
use wire::{Encoding, Wire};

fn schema(idl: &str) -> Schema {
    let mut library = Library::new();
    library.add_idl(idl, &|_| None).unwrap();
    library.schema("Root").unwrap()
}

fn encodings(schema: &Schema) -> Vec<Encoding> {
    let mut encodings = Vec::new();
    let has_wide = format!("{schema:?}").contains("wide: true");
    let forms = [WideForm::Bytes, WideForm::Units, WideForm::Words];
    let forms = if has_wide { &forms[..] } else { &forms[..1] };
    for (is_big, wide) in [false, true].into_iter().flat_map(|big| forms.iter().map(move |form| (big, *form)))
    {
        encodings.push(Encoding { version: 1, is_big, unstated: Extensibility::Final, wide });
        // The encapsulation determines the extensibility of types that do not state it.
        if schema.root().extensibility.is_none_or(|e| e == Extensibility::Final) {
            encodings.push(Encoding { version: 2, is_big, unstated: Extensibility::Final, wide });
        }
        if schema.root().extensibility != Some(Extensibility::Final) {
            encodings.push(Encoding { version: 2, is_big, unstated: Extensibility::Appendable, wide });
        }
    }
    encodings
}

fn cases() -> u64 {
    rondel_testkit::cases(400)
}

#[test]
fn plans_read_messages_written_by_the_standard() {
    let coverage = Coverage::default();
    let (mut messages, mut mistaken) = (0, 0);
    for seed in rondel_testkit::seeds("plans_read_messages_written_by_the_standard", 400) {
        let mut random = Random::new(seed);
        let idl = random::idl(&mut random);
        let schema = schema(&idl);
        let reads = Reads::random(&mut random, &schema);
        let decoders = [Check::Prefix, Check::Whole].map(|check| reads.decoder(&schema, check));
        for encoding in encodings(&schema) {
            let mut members = random::members(&mut random, &schema, schema.root());
            let is_appendable =
                schema.root().extensibility.unwrap_or(encoding.unstated) == Extensibility::Appendable;
            if encoding.version == 2 && is_appendable && random.one_in(3) {
                // An older writer, which knows fewer members.
                let known = 1 + random.index(members.len());
                members[known..].fill(None);
            }
            let message = Wire::message(&schema, encoding, random.next(), &members);
            let expected = reads.expected(&schema, &Tree::Struct(members));
            for decoder in &decoders {
                let mut decoder = decoder.clone();
                let mut block = Block::new(reads.layout());
                let result = decoder.decode(&message, rondel_event::Timestamp::ZERO, &mut block);
                messages += 1;
                if decoder.wide_form().is_some_and(|form| form != encoding.wide) {
                    // Only a message that fits several forms may be taken for another one, and then it is counted or
                    // refused.
                    let is_known = result.is_err() || decoder.guessed_wide().is_some();
                    assert!(is_known, "seed {seed}, {encoding:?}\n{idl}\n{message:02x?}");
                    mistaken += 1;
                    continue;
                }
                assert_eq!(result, Ok(()), "seed {seed}, {encoding:?}\n{idl}\n{message:02x?}");
                assert_eq!(reads.found(&block), expected, "seed {seed}, {encoding:?}\n{idl}\n{message:02x?}");
            }
        }
        coverage.add(&reads.coverage);
    }
    assert!(rondel_testkit::is_replay() || mistaken * 100 < messages, "{mistaken} of {messages}");
    coverage.assert(cases() / 8);
}

#[test]
fn damaged_messages_leave_the_block_unchanged() {
    for seed in rondel_testkit::seeds("cdr-damaged_messages_leave_the_block_unchanged", 400) {
        let mut random = Random::new(seed ^ 0x5555);
        let idl = random::idl(&mut random);
        let schema = schema(&idl);
        let reads = Reads::random(&mut random, &schema);
        let mut decoders = [Check::Prefix, Check::Whole].map(|check| reads.decoder(&schema, check));
        for encoding in encodings(&schema) {
            let members = random::members(&mut random, &schema, schema.root());
            let mut message = Wire::message(&schema, encoding, random.next(), &members);
            for _ in 0..20 {
                let at = random.index(message.len());
                match random.index(4) {
                    0 => message.truncate(at),
                    1 => message[at] = random.next() as u8,
                    2 => message[at] = 0xff,
                    _ => message[at] ^= 1 << random.index(8),
                }
                if message.is_empty() {
                    break;
                }
                let (mut results, mut forms) = (Vec::new(), Vec::new());
                for decoder in &mut decoders {
                    let mut block = Block::new(reads.layout());
                    let before = block.push(rondel_event::TopicId(0), rondel_event::Timestamp::ZERO);
                    let result = decoder.decode(&message, rondel_event::Timestamp::ZERO, &mut block);
                    assert_eq!(block.len(), before + 1 + usize::from(result.is_ok()));
                    if let Err(error) = &result {
                        assert!(error.offset <= message.len(), "{error}");
                        assert_eq!((reads.all(&block) >> 1, block.text_len()), (0, 0), "seed {seed}");
                    }
                    forms.push(decoder.wide_form());
                    results.push(result.ok().map(|()| reads.found_in(&block, 1)));
                }
                // A message that is entirely well formed is read from its prefix with the same result, in the same
                // form.
                if forms[0] == forms[1]
                    && let [prefix, Some(whole)] = &results[..]
                {
                    assert_eq!(
                        prefix.as_ref(),
                        Some(whole),
                        "seed {seed}, {encoding:?}\n{reads:?}\n{idl}\n{message:02x?}"
                    );
                }
            }
        }
    }
}
