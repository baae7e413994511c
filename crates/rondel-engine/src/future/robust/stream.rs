use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::levels::Levels;
use crate::future::key::{self, Key};

/// What a formula is on an interval: a single place at a moment, and whole coordinates in between.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct RobustPiece {
    pub(super) from: Key,
    pub(super) to: Key,
    pub(super) levels: Levels,
}

/// What an operand of a node has become and the others not yet, in order, and up to where it is known. There is a piece
/// for every moment; between them, in dense time, there are pieces without gaps.
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
            // Time that goes on in parts is one piece.
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

/// Takes from streams what is there in all of them: an interval, and what each is there.
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
