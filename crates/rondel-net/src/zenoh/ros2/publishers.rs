//! Publishers of ROS 2 over Zenoh, watched through their tokens.

use std::sync::{Arc, Mutex, PoisonError};

use ::zenoh::Wait;
use ::zenoh::sample::SampleKind;

use super::network;
use crate::ros2::Token;
use crate::zenoh::{DeclareError, parse_key};

/// Limit of changes that wait to be read.
const WAITING: usize = 65_536;

/// The publishers in a domain of ROS 2, as they appear and leave.
#[derive(Debug)]
pub struct Ros2Publishers {
    changes: Arc<Mutex<Vec<(String, bool)>>>,
    _subscriber: ::zenoh::pubsub::Subscriber<()>,
}

impl Ros2Publishers {
    pub(super) fn watch(session: &::zenoh::Session, domain: u32) -> Result<Ros2Publishers, DeclareError> {
        let changes = Arc::<Mutex<Vec<(String, bool)>>>::default();
        let own = Arc::clone(&changes);
        let subscriber = session
            .liveliness()
            .declare_subscriber(parse_key(&Token::all_publishers(domain))?)
            .history(true)
            .callback(move |sample| {
                let mut changes = own.lock().unwrap_or_else(PoisonError::into_inner);
                if changes.len() < WAITING {
                    changes.push((sample.key_expr().to_string(), sample.kind() == SampleKind::Put));
                } else if changes.len() == WAITING {
                    tracing::warn!("too many publishers of ROS 2 appear at once; further ones are ignored");
                    changes.push((String::new(), false));
                }
            })
            .wait()
            .map_err(network)?;
        Ok(Ros2Publishers { changes, _subscriber: subscriber })
    }

    /// Calls `each` for every change since the last call, with the key of the publisher's token, the token, and whether
    /// it still exists.
    pub fn look(&self, mut each: impl FnMut(&str, Token, bool)) {
        let changes = std::mem::take(&mut *self.changes.lock().unwrap_or_else(PoisonError::into_inner));
        for (key, is_there) in changes {
            if let Some(token) = Token::parse(&key) {
                each(&key, token, is_there);
            }
        }
    }
}
