//! Tests of rows that are removed, kept, repeated and written in several ways.

use super::{Block, Layout, Rows};
use crate::{Slot, Timestamp, TopicId};

#[test]
fn pop_removes_all_traces_of_an_event() {
    let mut block = Block::new(Layout { topics: 2, bools: 1, ints: 1, floats: 1, strings: 1 });
    for topic in [0, 1] {
        let row = block.push(TopicId(topic), Timestamp::from_nanos(i64::from(topic)));
        block.set_bool(0, row, true);
        block.set_int(0, row, 7);
        block.set_float(0, row, 0.5);
        block.set_string(0, row, "abc");
        block.set_arrival(row, Timestamp::from_nanos(9));
    }
    block.pop();
    assert_eq!((block.arrival(0), block.arrival(1)), (Some(Timestamp::from_nanos(9)), None));
    block.forget_arrival(0);
    assert_eq!(block.arrival(0), None);
    assert_eq!((block.len(), block.rows()), (1, 1));
    assert_eq!((block.topic_rows(TopicId(0)), block.topic_rows(TopicId(1))), (1, 0));
    let c = block.bools(0);
    assert_eq!((c.present, c.valid, c.values), (1, 1, 1));
    assert_eq!((block.ints(0).present, block.floats(0).valid, block.strings(0).present), (1, 1, 1));
    assert_eq!(block.text(0, 0), b"abc");
    assert_eq!(block.text(0, 1), b"");
    assert_eq!(block.topic(0), Some(TopicId(0)));
}

#[test]
fn pop_keeps_the_texts_of_events_that_were_added_together() {
    let mut block = Block::new(Layout { topics: 1, strings: 2, ..Layout::default() });
    // Decoders of several messages write in the order of the fields or of other rows.
    for (column, rows) in [(0, [0, 1, 2]), (1, [1, 0, 2])] {
        for row in rows {
            assert!(block.write_string(column, row, ["a", "bc", "def"][row]));
        }
        block.mark_valid(Slot::String(column), 0b111);
    }
    block.extend(TopicId(0), 0b111);
    block.pop();
    for column in [0, 1] {
        assert_eq!([block.text(column, 0), block.text(column, 1)], [&b"a"[..], b"bc"]);
    }
    assert_eq!(block.text_bytes(), 9, "only a text at the end is removed");
    // Events that come and are removed again take no memory.
    for _ in 0..9 {
        let row = block.push(TopicId(0), Timestamp::ZERO);
        block.set_string(0, row, "some text");
        block.pop();
    }
    assert_eq!(block.text_bytes(), 9);
    block.pop();
    assert_eq!([block.text(0, 0), block.text(1, 0)], [b"a"; 2], "several can be removed");
    block.pop();
    assert!(block.is_empty() && block.text_bytes() == 0);
}

#[test]
fn kept_events_move_together_with_all_their_fields() {
    let mut block = Block::new(Layout { topics: 2, bools: 1, ints: 1, floats: 1, strings: 1 });
    for i in 0..64_i64 {
        let row = block.push(TopicId((i % 2) as u32), Timestamp::from_nanos(i));
        block.set_bool(0, row, i % 3 == 0);
        block.set_int(0, row, i);
        if i % 5 != 0 {
            block.set_float(0, row, i as f64);
        }
        block.set_string(0, row, &format!("text {i}"));
        if i % 7 == 0 {
            block.set_arrival(row, Timestamp::from_nanos(i + 1));
        }
    }
    let rows = 0x8421_f00f_0110_8002;
    block.keep(rows);
    let kept: Vec<i64> = (0..64).filter(|row| rows >> row & 1 == 1).collect();
    assert_eq!((block.len(), block.rows().count_ones() as usize), (kept.len(), kept.len()));
    for (row, i) in kept.into_iter().enumerate() {
        assert_eq!(block.time(row), Timestamp::from_nanos(i));
        assert_eq!(block.arrival(row), (i % 7 == 0).then(|| Timestamp::from_nanos(i + 1)));
        assert_eq!(block.topic(row), Some(TopicId((i % 2) as u32)));
        assert_eq!((block.bools(0).values >> row & 1 == 1, block.ints(0).values[row]), (i % 3 == 0, i));
        let float = (block.floats(0).valid >> row & 1 == 1).then(|| block.floats(0).values[row]);
        assert_eq!(float, (i % 5 != 0).then_some(i as f64));
        assert_eq!(block.text(0, row), format!("text {i}").as_bytes());
    }
    // Later rows are appended.
    let row = block.push(TopicId(0), Timestamp::ZERO);
    block.set_string(0, row, "last");
    assert_eq!((block.text(0, row), block.floats(0).present >> row), (&b"last"[..], 0));
    block.keep(0);
    assert!(block.is_empty() && block.topic_rows(TopicId(0)) == 0);
}

#[test]
fn ascii_text_is_written_and_read_in_words() {
    let text = b"abcdefghijklmnopqrst\"}       ";
    let word = |at: usize| u64::from_le_bytes(*text[at..].first_chunk().unwrap());
    let mut block = Block::new(Layout { topics: 1, strings: 1, ..Layout::default() });
    for len in 0..=20 {
        let row = block.push(TopicId(0), Timestamp::ZERO);
        assert!(block.write_ascii(0, row, len, word));
        block.mark_valid(Slot::String(0), 1 << row);
    }
    for len in 0..=20 {
        assert_eq!(block.text(0, len), &text[..len]);
        let words: Vec<u8> =
            (0..24).step_by(8).flat_map(|at| block.text_word(0, len, at).to_le_bytes()).collect();
        assert_eq!((&words[..len], words[len..].iter().all(|b| *b == 0)), (&text[..len], true));
    }
}

#[test]
fn repeat_copies_the_event_to_every_row() {
    let layout = Layout { topics: 2, bools: 1, ints: 2, floats: 1, strings: 2 };
    let (mut block, mut copies) = (Block::new(layout), Block::new(layout));
    for topic in [0, 1, 0] {
        let row = block.push(TopicId(topic), Timestamp::from_nanos(i64::from(topic) + 3));
        block.set_bool(0, row, true);
        block.set_int(0, row, 7 + row as i64);
        block.set_invalid(Slot::Int(1), row);
        block.set_string(1, row, ["a", "bc", "def"][row]);
    }
    copies.repeat(&block, 1);
    assert_eq!(
        (copies.len(), copies.topic_rows(TopicId(0)), copies.topic_rows(TopicId(1))),
        (64, 0, Rows::MAX)
    );
    for row in [0, 31, 63] {
        assert_eq!(copies.time(row), block.time(1));
        assert_eq!(copies.ints(0).values[row], 8);
        assert_eq!(copies.text(1, row), b"bc");
        assert_eq!(copies.text(0, row), b"");
    }
    assert_eq!((copies.ints(1).present, copies.ints(1).valid), (Rows::MAX, 0));
    assert_eq!((copies.floats(0).present, copies.bools(0).values), (0, Rows::MAX));
}

#[test]
fn the_last_write_counts_and_set_invalid_clears_it() {
    let mut block = Block::new(Layout { topics: 1, bools: 1, ..Layout::default() });
    let row = block.push(TopicId(0), Timestamp::ZERO);
    block.set_bool(0, row, true);
    block.set_bool(0, row, false);
    assert_eq!(block.bools(0).values, 0);
    block.set_bool(0, row, true);
    block.set_invalid(Slot::Bool(0), row);
    let c = block.bools(0);
    assert_eq!((c.present, c.valid, c.values), (1, 0, 0));
}
