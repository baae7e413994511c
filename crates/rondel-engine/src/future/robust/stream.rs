use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::levels::Levels;
use crate::future::key::{self, Key};

/// Value of a formula on an interval: a single place at a time point, whole coordinates in between.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct RobustPiece {
    pub(super) from: Key,
    pub(super) to: Key,
    pub(super) levels: Levels,
}

/// Buffered values of one operand that the other operands have not reached yet, in order, and the last known
/// place. There is a piece for every time point; in dense time pieces without gaps lie between them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Stream {
    pieces: VecDeque<RobustPiece>,
    pub(super) known: Key,
}

impl Stream {
    pub(super) fn new() -> Stream {
        Stream { pieces: VecDeque::new(), known: key::START }
    }

    pub(super) fn push(&mut self, piece: RobustPiece) {
        match self.pieces.back_mut() {
            // An open interval that arrives in parts is one piece.
            Some(back)
                if back.from < back.to
                    && piece.from < piece.to
                    && back.to + 1 == piece.from
                    && back.levels == piece.levels =>
            {
                back.to = piece.to;
            }
            _ => self.pieces.push_back(piece),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.pieces.len()
    }
}

/// Removes the first interval on which all streams have a value, and returns it with these values.
pub(super) fn take<const N: usize>(streams: &mut [Stream]) -> Option<(Key, Key, [Levels; N])> {
    let mut levels = [Levels::UNKNOWN; N];
    let (mut from, mut to) = (key::START, Key::MAX);
    for (stream, levels) in streams.iter().zip(&mut levels) {
        let front = stream.pieces.front()?;
        (from, to) = (from.max(front.from), to.min(front.to));
        *levels = front.levels;
    }
    for stream in streams {
        match stream.pieces.front_mut() {
            Some(front) if front.to > to => front.from = to + 1,
            _ => drop(stream.pieces.pop_front()),
        }
    }
    Some((from, to, levels))
}
