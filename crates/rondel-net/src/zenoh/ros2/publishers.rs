//! The publishers of ROS 2 over Zenoh, as their tokens appear and disappear.

use std::sync::{Arc, Mutex, PoisonError};

use ::zenoh::Wait;
use ::zenoh::sample::SampleKind;

use super::network;
use crate::ros2::Token;
use crate::zenoh::{DeclareError, parse_key};

/// Changes that wait to be looked at.
const WAITING: usize = 65_536;

/// The publishers in a domain of ROS 2, as they appear and leave.
#[derive(Debug)]
pub struct Ros2Publishers {
    news: Arc<Mutex<Vec<(String, bool)>>>,
    _subscriber: ::zenoh::pubsub::Subscriber<()>,
}

impl Ros2Publishers {
    pub(super) fn watch(session: &::zenoh::Session, domain: u32) -> Result<Ros2Publishers, DeclareError> {
        let news = Arc::<Mutex<Vec<(String, bool)>>>::default();
        let own = Arc::clone(&news);
        let subscriber = session
            .liveliness()
            .declare_subscriber(parse_key(&Token::all_publishers(domain))?)
            .history(true)
            .callback(move |sample| {
                let mut news = own.lock().unwrap_or_else(PoisonError::into_inner);
                if news.len() < WAITING {
                    news.push((sample.key_expr().to_string(), sample.kind() == SampleKind::Put));
                } else if news.len() == WAITING {
                    tracing::warn!("too many publishers of ROS 2 appear at once; further ones are ignored");
                    news.push((String::new(), false));
                }
            })
            .wait()
            .map_err(network)?;
        Ok(Ros2Publishers { news, _subscriber: subscriber })
    }

    /// Calls `each` for every change since the last call: with the key of the publisher's token, the token, and whether
    /// it is there still.
    pub fn look(&self, mut each: impl FnMut(&str, Token, bool)) {
        let news = std::mem::take(&mut *self.news.lock().unwrap_or_else(PoisonError::into_inner));
        for (key, is_there) in news {
            if let Some(token) = Token::parse(&key) {
                each(&key, token, is_there);
            }
        }
    }
}
